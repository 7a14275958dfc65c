//! Whoever this process serves, by whichever protocol.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use linerate_sys::memory;

/// How many there are: the memory that the last one leaves behind is the process's.
static PRESENT: AtomicUsize = AtomicUsize::new(0);

/// A client that is being served. Unused memory is returned when the last one leaves, not before: returning it
/// makes others wait.
#[derive(Debug)]
pub(crate) struct Present(());

impl Present {
    /// From the start until this value is dropped.
    pub(crate) fn enter() -> Self {
        PRESENT.fetch_add(1, SeqCst);
        Self(())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        if PRESENT.fetch_sub(1, SeqCst) == 1 {
            memory::give_back();
        }
    }
}
