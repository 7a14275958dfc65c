//! Forked processes that belong to the lab itself; they end with the lab.

use std::io;

use linerate_sys::process;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::start::on_cpus;
use crate::error::LabError;

/// A process that the agent has forked.
pub(super) struct Child(pub(super) Pid);

impl Child {
    pub(super) fn stop(&self) -> Result<(), LabError> {
        // The agent's loop collects this process with the ended programs. If the process no longer exists, it has been
        // collected already.
        match rustix::process::kill_process(self.0, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(e) => Err(LabError::step("cannot stop a process of the lab", &e.into())),
        }
    }
}

/// Starts processes that each spin on a CPU, as busy programs do.
pub(super) fn hog(cpu: usize, threads: u32) -> Result<Vec<Child>, LabError> {
    let spin = || -> io::Result<Child> {
        let pid = process::fork(&[], || {
            loop {
                std::hint::spin_loop();
            }
        });
        Ok(Child(pid?))
    };
    let mut all = Vec::new();
    for _ in 0..threads {
        match on_cpus(&[cpu], spin) {
            Ok(child) => all.push(child),
            Err(e) => {
                stop_all(&all)?;
                let what = format!("cannot keep CPU {cpu} busy");
                return Err(LabError::step(what, &e));
            }
        }
    }
    Ok(all)
}

pub(super) fn stop_all(all: &[Child]) -> Result<(), LabError> {
    all.iter().try_for_each(Child::stop)
}
