//! Errors of a virtual machine: why it could not be started, or failed.

use std::io;
use std::time::Duration;

/// Failures of a virtual machine.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// A required program is not installed.
    #[error(
        "a virtual machine needs {program}, which is not installed (hint: sudo apt-get install --no-install-recommends {package})"
    )]
    Missing {
        /// Name of the missing program.
        program: String,
        /// Debian package that contains the program.
        package: &'static str,
    },
    /// There is no kernel that a guest could boot, and none could be fetched.
    #[error(
        "there is no kernel to boot: {why} (hint: sudo apt-get update && sudo apt-get install linux-image-amd64)"
    )]
    NoKernel {
        /// Action that failed.
        why: String,
    },
    /// The specified machine cannot be made.
    #[error("cannot make this virtual machine: {why}")]
    Impossible {
        /// What is wrong with the specification.
        why: String,
    },
    /// A step on this machine failed.
    #[error("{what}: {source}")]
    Step {
        /// Action that failed, and its object.
        what: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// The guest ended by itself.
    #[error("the virtual machine ended {during}; its last output:\n{console}")]
    Died {
        /// Activity of the virtual machine when it ended.
        during: String,
        /// Last lines on the console of the guest.
        console: String,
    },
    /// The guest was stopped because it took too long.
    #[error("the virtual machine was ended {during}, after {} s; its last output:\n{console}", .within.as_secs())]
    Late {
        /// Activity of the virtual machine when it was stopped.
        during: String,
        /// Time limit of the guest.
        within: Duration,
        /// Last lines on the console of the guest.
        console: String,
    },
}

impl VmError {
    /// Makes the error of a failed step, for `map_err`.
    pub(super) fn step(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::Step { what, source }
    }

    pub(super) fn impossible(why: impl Into<String>) -> Self {
        Self::Impossible { why: why.into() }
    }
}
