//! Two ends of a path, ready to run steps.
//!
//! A link to real hosts is a session with a peer, a path to an iperf3 server, or this host alone. The simulated path is
//! a link in virtual time. The run, its trials and the judge do not depend on the kind of link.

pub mod alone;

use std::time::Duration;

use linerate_plan::{SetPlan, StepPlan};
use linerate_record::{Host, Set, Step};
use linerate_units::Nanos;

pub use crate::end::Live;
use linerate_judge::event::Silences;

/// Error of a request to a link. Texts are lowercase sentence
/// fragments; `hint` is the command or change that helps, or empty.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The far end or the path to it is gone; the run ends.
    #[error("{what}")]
    Lost {
        /// Description of what happened, with the address of the far end.
        what: String,
        /// Command or change that helps.
        hint: String,
    },
    /// The link cannot fulfil this request, but still works.
    #[error("{what}")]
    Refused {
        /// Description of what was refused, with the requested value.
        what: String,
        /// Command or change that helps.
        hint: String,
    },
    /// The user requested a stop.
    #[error("interrupted")]
    Interrupted,
}

/// Answer of the `watch` callback: whether and how a step continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepControl {
    /// The step continues as planned.
    Continue,
    /// The step has measured enough and ends now, in order. The plan in its record gets the time that was measured. A
    /// link that cannot end a step early ignores this.
    Enough,
    /// The user wants to stop: the step ends now, and the readings are returned with the trouble "stopped".
    Stop,
}

/// Whether a step was ended before its planned time, and why.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ended {
    /// Time since the step began at which it had measured enough; `None` if it was not ended for this reason.
    enough: Option<Nanos>,
    /// Whether the user wants to stop.
    pub stopped: bool,
}

impl Ended {
    /// Stores the answer of `watch`. Returns true if the end of the step
    /// must be requested now; it is requested once for each reason.
    pub fn by(&mut self, control: StepControl, live: Live) -> bool {
        let before = (self.enough, self.stopped);
        match control {
            StepControl::Continue => {}
            StepControl::Enough => self.enough = self.enough.or(Some(live.elapsed)),
            StepControl::Stop => self.stopped = true,
        }
        before != (self.enough, self.stopped)
    }

    /// Notes that the far end has not answered for the time
    /// `silent`. What this end measured in that time does not count.
    pub fn unanswered(&mut self, live: Live, silent: Duration) {
        let until = live.elapsed.0.saturating_sub(Nanos::from(silent).0);
        self.enough = self.enough.or(Some(Nanos(until)));
    }

    /// Returns whether the end of the step was requested.
    pub fn is_requested(&self) -> bool {
        self.enough.is_some() || self.stopped
    }

    /// Returns the plan for the step's record, with the time that was measured.
    pub fn plan(&self, plan: &StepPlan) -> StepPlan {
        let measure = self.enough.map(|elapsed| plan.measured(elapsed));
        StepPlan { measure: measure.unwrap_or(plan.measure), ..plan.clone() }
    }
}

/// Two ends of a path.
pub trait Link {
    /// Sets the callback that is called while the far end does not answer. A link without such waits ignores it.
    fn tell_silences(&mut self, _: Option<Silences>) {}
    /// Returns the time since the run began, on the near clock.
    fn now(&self) -> Nanos;
    /// Returns the facts of the hosts, the near one first.
    fn hosts(&mut self) -> Result<Vec<Host>, LinkError>;
    /// Prepares a set of connections that stay open until the set is released.
    fn prepare(&mut self, plan: &SetPlan) -> Result<Set, LinkError>;
    /// Runs one step and returns the readings of both ends. `watch` is called
    /// about ten times a second and returns whether the step continues.
    fn step(
        &mut self,
        plan: &StepPlan,
        watch: &mut dyn FnMut(Live) -> StepControl,
    ) -> Result<Step, LinkError>;
    /// Closes a set.
    fn release(&mut self, set: u32) -> Result<(), LinkError>;
}
