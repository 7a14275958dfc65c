//! Errors of a simulated network: why it could not be made, or failed.

use std::io;
use std::time::Duration;

/// Failures of a simulated InfiniBand network.
#[derive(Debug, thiserror::Error)]
pub enum IbError {
    /// A required program or library is not installed.
    #[error(
        "a simulated InfiniBand network needs {what}, which is not installed (hint: sudo apt-get install \
         --no-install-recommends ibsim-utils libumad2sim0 opensm util-linux)"
    )]
    Missing {
        /// Name of the missing program or library.
        what: &'static str,
    },
    /// The specified network cannot be made.
    #[error("cannot make this network: {why}")]
    Impossible {
        /// What is wrong with the specification, and what would be possible.
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
    /// A program of the network ended by itself.
    #[error("{program} ended; its last output:\n{output}")]
    Died {
        /// Name of the program, and where it ran.
        program: String,
        /// Last lines of its output.
        output: String,
    },
    /// A program of the network did not become ready in time.
    #[error("{program} did not become ready within {} s; its last output:\n{output}", .within.as_secs())]
    Late {
        /// Name of the program, and where it ran.
        program: String,
        /// Time within which it should have been ready.
        within: Duration,
        /// Last lines of its output.
        output: String,
    },
    /// The simulator refused a command of its console.
    #[error("ibsim refused `{command}`: {answer}")]
    Refused {
        /// The refused command.
        command: String,
        /// The reply of ibsim.
        answer: String,
    },
}

impl IbError {
    /// Makes the error of a failed step, for `map_err`.
    pub(super) fn step(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::Step { what, source }
    }

    pub(super) fn impossible(why: impl Into<String>) -> Self {
        Self::Impossible { why: why.into() }
    }
}
