//! A flag that stops the preparation of arrays when a step is aborted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::{LoadError, Probe};

/// Flag that is set when the step of a thread is aborted. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub(super) struct Halt(Arc<AtomicBool>);

impl Halt {
    /// Returns whether the step was not aborted.
    pub(super) fn goes_on(&self) -> bool {
        !self.0.load(Relaxed)
    }

    /// Returns an error if the step was aborted.
    pub(super) fn check(&self) -> Result<(), LoadError> {
        if self.goes_on() {
            return Ok(());
        }
        let what = "the step was aborted before its memory was ready".to_owned();
        Err(LoadError::Protocol { what })
    }

    /// Returns a probe through which another thread can abort the step. Memory has no counters to read.
    pub(super) fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(self.clone())]
    }
}

impl Probe for Halt {
    fn abort(&self) {
        self.0.store(true, Relaxed);
    }
}
