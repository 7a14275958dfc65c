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
use linerate_core::units::{Bytes, Nanos, Rate};

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
    /// Payload since the step began, at the same end.
    pub moved: Bytes,
    /// Packets that were lost or reordered since the step began, as far as that end counts them; `None` where it does not
    /// count them.
    pub setbacks: Option<u64>,
    /// Time since the step began.
    pub elapsed: Nanos,
}

/// How a step goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepControl {
    /// As planned.
    Continue,
    /// Enough is measured: the step ends now, in order. The plan in its record has the time that was measured. A link that
    /// cannot end a step before its time continues.
    Enough,
    /// The user wants to stop: the step ends now, and what was read is returned with the trouble "stopped".
    Stop,
}

/// Whether a step was ended before its time, and how.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ended {
    /// When enough was measured, since the step began.
    enough: Option<Nanos>,
    /// The user wants to stop.
    pub(crate) stopped: bool,
}

impl Ended {
    /// Takes what `watch` said of a step; true where its end is to be asked for: once for each reason.
    pub(crate) fn by(&mut self, control: StepControl, live: Live) -> bool {
        let before = (self.enough, self.stopped);
        match control {
            StepControl::Continue => {}
            StepControl::Enough => self.enough = self.enough.or(Some(live.elapsed)),
            StepControl::Stop => self.stopped = true,
        }
        before != (self.enough, self.stopped)
    }

    /// Whether its end was asked for.
    pub(crate) fn is_asked(&self) -> bool {
        self.enough.is_some() || self.stopped
    }

    /// The plan that its record gets.
    pub(crate) fn plan(&self, plan: &StepPlan) -> StepPlan {
        let measure = self.enough.map(|elapsed| plan.measured(elapsed));
        StepPlan {
            measure: measure.unwrap_or(plan.measure),
            ..plan.clone()
        }
    }
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
    /// second, and says how the step goes on.
    fn step(
        &mut self,
        plan: &StepPlan,
        watch: &mut dyn FnMut(Live) -> StepControl,
    ) -> Result<Step, LinkError>;
    /// Closes a set.
    fn release(&mut self, set: u32) -> Result<(), LinkError>;
}
