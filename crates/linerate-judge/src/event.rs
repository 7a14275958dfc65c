//! Events of a run, and the sinks that receive them.

use std::sync::Arc;
use std::time::Duration;

use crate::verdict::Limit;
use linerate_facts::{Gap, Level};
use linerate_plan::StepPlan;
use linerate_plan::path::{Direction, Side};
use linerate_record::{Host, Set, Start, Step, TrialPlan};
use linerate_units::{Nanos, Rate};

/// Events of a run, in order.
#[derive(Debug)]
pub enum Event<'a> {
    /// The run begins. This is the first event.
    Started(&'a Start),
    /// The facts of a host have been read.
    Host(&'a Host),
    /// A set of connections was made.
    Set(&'a Set),
    /// A trial begins; `words` describe the trial and its reason.
    Trial {
        /// The plan of the trial.
        plan: &'a TrialPlan,
        /// Description for people, such as "testing whether a second stream helps".
        words: &'a str,
    },
    /// A step begins.
    StepBegan {
        /// The plan of the step.
        plan: &'a StepPlan,
        /// Description for people, such as "forward, 1 stream".
        words: &'a str,
        /// Time that is left of the run's budget.
        left: Nanos,
    },
    /// A step continues; sent about ten times a second.
    Progress {
        /// Rate over the last tick, at the receiver if the near end receives.
        rate: Option<Rate>,
        /// Direction in which payload moves at this rate.
        direction: Option<Direction>,
        /// Time that is left of the run's budget.
        left: Nanos,
    },
    /// A step has ended.
    Step(&'a Step),
    /// A trial proved the limit of a direction. The run continues to answer open questions.
    Proved {
        /// The proved limit.
        limit: &'a Limit,
        /// Time since the run began.
        after: Nanos,
    },
    /// A notice that the user should see now.
    Notice {
        /// The severity of the notice.
        level: Level,
        /// The end whose host the notice is about.
        side: Side,
        /// Action or reading that failed.
        gap: &'a Gap,
    },
    /// The run has ended. This is the last event.
    Ended(&'a linerate_record::End),
}

/// Whether the run continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunControl {
    /// The run continues.
    Go,
    /// Stop the run as soon as its measurements are saved.
    Stop,
}

/// How long the far end has not answered.
#[derive(Debug, Clone, Copy)]
pub struct Silence {
    /// Time without an answer.
    pub lasted: Duration,
    /// Time until the run counts the far end as lost.
    pub left: Duration,
}

/// A function that is called about ten times a second while the far end does not answer, and with `None` once it
/// answers again.
pub type Silences = Arc<dyn Fn(Option<Silence>) + Send + Sync>;

/// Receives the events of a run. The progress line, the recorder and the screen are sinks; a pair of sinks is a sink.
pub trait Sink {
    /// Receives one event. [`RunControl::Stop`] asks the run to end early and keep its results.
    fn event(&mut self, event: &Event<'_>) -> RunControl;

    /// Returns the function to call while the far end does not answer. Such a silence is no event: it may begin at
    /// any time, also while no step runs.
    fn silences(&self) -> Option<Silences> {
        None
    }
}

impl<A: Sink, B: Sink> Sink for (A, B) {
    fn event(&mut self, event: &Event<'_>) -> RunControl {
        let (a, b) = (self.0.event(event), self.1.event(event));
        if a == RunControl::Stop || b == RunControl::Stop {
            RunControl::Stop
        } else {
            RunControl::Go
        }
    }

    fn silences(&self) -> Option<Silences> {
        self.1.silences().or_else(|| self.0.silences())
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn event(&mut self, event: &Event<'_>) -> RunControl {
        (**self).event(event)
    }

    fn silences(&self) -> Option<Silences> {
        (**self).silences()
    }
}

/// `()` is a sink that ignores all events and never stops a run.
impl Sink for () {
    fn event(&mut self, _: &Event<'_>) -> RunControl {
        RunControl::Go
    }
}
