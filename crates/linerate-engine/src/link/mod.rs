//! Two ends of a path, ready to run steps.
//!
//! A real link is a session with a peer, a path to an iperf3 server, or this host alone; the simulated path is a link in
//! virtual time. Everything above this trait (the run, its trials, the judge) cannot tell which one it has.

pub mod alone;
pub mod iperf3;
#[cfg(feature = "lab-dev")]
pub mod sim;

use linerate_core::plan::{SetPlan, StepPlan};
use linerate_core::record::{Host, Set, Step};
use linerate_core::units::{Nanos, Rate};

use crate::event::RunControl;

/// Why a link could not do what was asked. Texts are lowercase sentence fragments; `hint` is the
/// command or change that helps, empty when there is none.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The far end, or the path to it, is gone: the run ends here.
    #[error("{what}")]
    Lost {
        /// What happened, with the address.
        what: String,
        /// What helps.
        hint: String,
    },
    /// This request cannot be met, but the link is alive.
    #[error("{what}")]
    Refused {
        /// What was refused, with the value.
        what: String,
        /// What helps.
        hint: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// What is seen of a step while it runs.
#[derive(Debug, Clone, Copy)]
pub struct Live {
    /// Rate over the last tick at the receiving end, if that is the near end; else at the sender.
    pub rate: Rate,
    /// Time since the step began.
    pub elapsed: Nanos,
}

/// Two ends of a path.
pub trait Link {
    /// Time since the run began, on the near clock.
    fn now(&self) -> Nanos;
    /// Facts of the hosts, near first.
    fn hosts(&mut self) -> Result<Vec<Host>, LinkError>;
    /// Makes a set of connections and keeps them warm.
    fn prepare(&mut self, plan: &SetPlan) -> Result<Set, LinkError>;
    /// Runs one step and returns the readings of both ends. `watch` is called about ten times a
    /// second; when it says [`RunControl::Stop`] the step ends early and what was read is returned, with
    /// the trouble "stopped".
    fn step(
        &mut self,
        plan: &StepPlan,
        watch: &mut dyn FnMut(Live) -> RunControl,
    ) -> Result<Step, LinkError>;
    /// Closes a set.
    fn release(&mut self, set: u32) -> Result<(), LinkError>;
}
