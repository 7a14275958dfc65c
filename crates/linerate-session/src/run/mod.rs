//! A run: the steps of a plan, then trials until the verdict is proved or the time is used up. A run can also be a
//! single step or a single sweep.
//!
//! A run works on any [`Link`], real or simulated, and reports all events to a [`Sink`]. It returns the record; sinks
//! that store the record have already received every part of it.

mod budget;
mod enough;
mod once;
mod search;
mod steps;
mod sweep;
mod trials;
mod trips;

use linerate_facts::Gap;
use linerate_judge::model::Deriver;
use linerate_plan::study::Part;
use linerate_plan::{Plan, SetPlan};
use linerate_record::{End, FORMAT, Host, Made, Record, Start};

use crate::link::{Link, LinkError};
use budget::{Beyond, Budget};
use linerate_host::change::SETTINGS_GAP;
use linerate_judge::event::{Event, RunControl, Sink};
use linerate_load::transport::{self, Notice};
pub use once::{RoundTrips, once, possible};
pub use search::search;
use steps::Base;
pub use sweep::sweep;
pub use trips::{TripSweep, trip_sizes, trip_sweep};

/// A run in progress.
struct Run<'a> {
    link: &'a mut dyn Link,
    sink: &'a mut dyn Sink,
    record: Record,
    /// Derives the model from the record so far.
    deriver: Deriver,
    budget: Budget,
    /// Time that the steps of the current trial took beyond their planned length.
    beyond: Beyond,
    /// Directions whose base load was measured.
    bases: Vec<Base>,
    next_set: u32,
    stopped: bool,
}

/// Data at the start of a record in addition to its plan. None of it is measured.
#[derive(Debug, Clone, Default)]
pub struct Label {
    /// Wall-clock time in seconds since 1970.
    pub wall_secs: u64,
    /// The command that makes the record.
    pub made: Made,
    /// Note that the user gave the record; empty if there is none.
    pub note: String,
    /// The study to which the record belongs; `None` if there is none.
    pub study: Option<Part>,
}

/// Runs `plan` over `link`. `label` is stored in the record. Always returns
/// a record, even if the run failed; the error is also in [`Record::end`].
pub fn run(
    link: &mut dyn Link,
    plan: Plan,
    label: Label,
    sink: &mut dyn Sink,
) -> (Record, Option<LinkError>) {
    session(link, plan, label, sink, |run| {
        run.settings();
        run.steps_and_trials()
    })
}

/// Reports both hosts, lets `body` measure, and returns the record, even if `body` failed.
fn session(
    link: &mut dyn Link,
    plan: Plan,
    label: Label,
    sink: &mut dyn Sink,
    body: impl FnOnce(&mut Run<'_>) -> Result<(), LinkError>,
) -> (Record, Option<LinkError>) {
    link.tell_silences(sink.silences());
    let budget = Budget::new(&plan, link.now());
    let start = Start {
        format: FORMAT,
        linerate: env!("CARGO_PKG_VERSION").to_owned(),
        wall_secs: label.wall_secs,
        plan,
        made: label.made,
        note: label.note,
        study: label.study,
    };
    sink.event(&Event::Started(&start));
    let record = Record {
        start,
        hosts: Vec::new(),
        sets: Vec::new(),
        trials: Vec::new(),
        steps: Vec::new(),
        imported: None,
        end: None,
    };
    let mut run = Run {
        link,
        sink,
        record,
        deriver: Deriver::default(),
        budget,
        beyond: Beyond::default(),
        bases: Vec::new(),
        next_set: 0,
        stopped: false,
    };
    let outcome = run.begin().and_then(|()| body(&mut run));
    let (end, error) = match outcome {
        // The user stopped the run, so a far end that no longer answers is not reported as an error.
        Ok(()) | Err(LinkError::Lost { .. }) if run.stopped => (End::Interrupted, None),
        Ok(()) => (End::Complete, None),
        Err(LinkError::Interrupted) => (End::Interrupted, None),
        Err(error) => (End::Failed { why: error.to_string() }, Some(error)),
    };
    run.sink.event(&Event::Ended(&end));
    run.record.end = Some(end);
    (run.record, error)
}

impl Run<'_> {
    fn begin(&mut self) -> Result<(), LinkError> {
        for host in self.link.hosts()? {
            self.note(|record| record.hosts.push(host.clone()), &Event::Host(&host));
        }
        self.notices();
        Ok(())
    }

    fn steps_and_trials(&mut self) -> Result<(), LinkError> {
        self.steps()?;
        if self.record.start.plan.trials && !self.stopped {
            self.trials()?;
        }
        self.rest()
    }

    /// Reports to the user the transport's known problems with the base load on these hosts. The streams of both
    /// directions have the same settings, so only the first direction is checked.
    fn notices(&mut self) {
        let plan = &self.record.start.plan;
        let (Some(engine), Some(&direction)) =
            (transport::transport(&plan.engine), plan.directions.first())
        else {
            return;
        };
        let load = plan.load(direction);
        let set = SetPlan::of(&plan.engine, 0, load, plan.knobs.clone());
        for host in self.record.hosts.clone() {
            for Notice { level, gap } in engine.check(host.side, &host.facts, &set) {
                let (side, gap) = (host.side, &gap);
                self.note(|_| (), &Event::Notice { level, side, gap });
            }
        }
    }

    /// Reports why trials cannot change the settings of a host, if they can change those of the other host, or if
    /// changes were allowed but are impossible.
    fn settings(&mut self) {
        let hosts = self.record.hosts.clone();
        let lack = |host: &Host| host.facts.gaps.iter().find(|g| g.what == SETTINGS_GAP).cloned();
        if !hosts.iter().any(|h| !h.facts.changeable.is_empty() || lack(h).is_some()) {
            return;
        }
        for host in hosts.iter().filter(|host| host.facts.changeable.is_empty()) {
            let gap = lack(host).unwrap_or_else(|| Gap {
                what: SETTINGS_GAP.to_owned(),
                why: "not tried: they may not be changed on that host".to_owned(),
                hint: format!(
                    "start linerate on the {} host with --allow-changes",
                    host.side.name()
                ),
            });
            self.hint(host.side, &gap);
        }
    }

    /// Adds a part to the record with `add`, and reports `event`. If the sink requests a stop, the run is stopped.
    fn note(&mut self, add: impl FnOnce(&mut Record), event: &Event<'_>) {
        add(&mut self.record);
        if self.sink.event(event) == RunControl::Stop {
            self.stopped = true;
        }
    }
}
