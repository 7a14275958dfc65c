//! A link without a far end, for operations within this host.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use linerate_plan::path::Side;
use linerate_plan::{SetPlan, StepPlan};
use linerate_record::{EndReadings, Host, Set, Step, Trouble};
use linerate_units::{Bytes, Nanos, Rate};

use super::{Ended, Link, LinkError, Live, StepControl};
use crate::end::{LocalEnd, Running, is_unfinished};
use linerate_host::{Machine, Subject};
use linerate_load::LoadError;
use linerate_load::transport::{ConfigureEach, Datagrams, Lines, NoLines};

/// Time between calls of `watch`.
const LOOK: Duration = Duration::from_millis(100);
/// What helps after an operation on a file that failed, or never ended.
const FAILED: &str = "`dmesg` shows what the kernel says of the disk";
/// Time that a step may last beyond its planned end.
const OVERTIME: Duration = Duration::from_secs(20);

/// A link with a near end only.
pub struct Alone {
    end: LocalEnd,
    subject: Subject,
    epoch: Instant,
    stop: Arc<AtomicBool>,
    /// Why the last step did not end in order: what follows would measure a disk that is gone.
    failed: Option<String>,
}

/// No lines to any far end, until the user asks to stop.
struct Until<'a>(NoLines<'a>, &'a AtomicBool);

impl Lines for Until<'_> {
    fn lines(
        &mut self,
        set: u32,
        streams: u32,
        configure: ConfigureEach<'_>,
    ) -> Result<Vec<OwnedFd>, LoadError> {
        self.0.lines(set, streams, configure)
    }

    fn datagrams(
        &mut self,
        set: u32,
        stream: u32,
        configure: &mut dyn FnMut(&OwnedFd) -> Result<(), LoadError>,
    ) -> Result<Datagrams, LoadError> {
        self.0.datagrams(set, stream, configure)
    }

    fn subject(&self) -> &Subject {
        self.0.subject()
    }

    fn given_up(&self) -> bool {
        self.1.load(Relaxed)
    }
}

impl Alone {
    /// Makes a link for a transport without a program at a far
    /// end. `subject` is the path or device whose facts are read.
    pub fn new(engine: &str, machine: Arc<dyn Machine>, subject: Subject) -> Self {
        let end = LocalEnd::new(Side::Near, engine, machine, subject.clone());
        Self { end, subject, epoch: Instant::now(), stop: Arc::default(), failed: None }
    }

    /// Ends the preparation of a set once `stop` is set.
    pub fn heed(&mut self, stop: &Arc<AtomicBool>) {
        self.stop = Arc::clone(stop);
    }

    /// Runs a step until it ends. Returns its readings, and whether and why it ended early.
    fn drive(
        plan: &StepPlan,
        mut running: Running,
        watch: &mut dyn FnMut(Live) -> StepControl,
    ) -> (EndReadings, Ended) {
        let time = plan.washout.duration() + plan.measure.duration() + OVERTIME;
        let deadline = Instant::now() + time;
        let mut ended = Ended::default();
        while !running.done(LOOK) {
            let live = running.live();
            if ended.by(watch(live), live) {
                running.stop();
            }
            if Instant::now() >= deadline {
                running.abort();
                break;
            }
        }
        (running.finish(), ended)
    }
}

impl Link for Alone {
    fn now(&self) -> Nanos {
        self.epoch.elapsed().into()
    }

    fn hosts(&mut self) -> Result<Vec<Host>, LinkError> {
        Ok(vec![Host { side: Side::Near, facts: self.end.facts() }])
    }

    fn prepare(&mut self, plan: &SetPlan) -> Result<Set, LinkError> {
        let offer = self.end.prepare(plan).map_err(|e| refused(&e))?;
        let mut lines = Until(NoLines(&self.subject), &self.stop);
        let end = self.end.connect(plan.id, &offer, &mut lines);
        let end = end.map_err(|e| refused(&e))?;
        Ok(Set { plan: plan.clone(), ends: vec![end] })
    }

    fn step(
        &mut self,
        plan: &StepPlan,
        watch: &mut dyn FnMut(Live) -> StepControl,
    ) -> Result<Step, LinkError> {
        if let (Some(what), Subject::File(path)) = (self.failed.clone(), &self.subject) {
            let what = format!("{path} failed: {what}");
            return Err(LinkError::Lost { what, hint: FAILED.to_owned() });
        }
        let still = Live { rate: Rate(0), moved: Bytes(0), setbacks: None, elapsed: Nanos(0) };
        let armed = self.end.arm_while(plan, &mut || watch(still) != StepControl::Stop);
        let mut running = armed.map_err(|e| refused(&e))?;
        let began = self.now();
        running.go();
        let (readings, ended) = Self::drive(plan, running, watch);
        let trouble = if ended.stopped {
            Some("stopped".to_owned())
        } else {
            self.failed = unfinished(&readings);
            self.failed.clone()
        };
        Ok(Step {
            plan: ended.plan(plan),
            began,
            ends: vec![readings],
            clock: None,
            took: Nanos(0),
            trouble: trouble.map(|what| Trouble { side: Side::Near, what }),
        })
    }

    fn release(&mut self, set: u32) -> Result<(), LinkError> {
        self.end.release(set);
        Ok(())
    }
}

/// Describes the first stream that did not end in order, and why.
fn unfinished(readings: &EndReadings) -> Option<String> {
    let total = readings.totals.iter().find(|total| !total.complete)?;
    let why = readings.gaps.iter().find(|gap| is_unfinished(gap));
    let why = why.map_or_else(String::new, |gap| format!(": {}", gap.why));
    Some(format!("stream {} of set {} did not end in order{why}", total.stream, total.set))
}

fn refused(e: &LoadError) -> LinkError {
    if matches!(e, LoadError::Interrupted) {
        return LinkError::Interrupted;
    }
    LinkError::Refused { what: e.to_string(), hint: e.hint().into() }
}

#[cfg(test)]
mod tests {
    use linerate_judge::model::{is_alone, memory_load, once};
    use linerate_plan::path::Direction;
    use linerate_plan::{Knobs, Pattern, Plan, Purpose};
    use linerate_record::End;
    use linerate_units::Bytes;

    use super::*;
    use crate::run;
    use linerate_host::{Captured, Replay};

    /// A machine that answers no query.
    fn blank() -> Arc<dyn Machine> {
        Arc::new(Replay::new(Captured::default()))
    }

    fn set(id: u32, knobs: Knobs) -> SetPlan {
        SetPlan { id, pattern: Pattern::Operations { access: linerate_plan::Access::Copy }, knobs }
    }

    fn small(streams: u32) -> Knobs {
        Knobs { streams, write_size: Bytes(65_536), read_size: Bytes(65_536), ..Knobs::default() }
    }

    fn step(sets: &[u32], millis: u64) -> StepPlan {
        StepPlan {
            index: 0,
            purpose: Purpose::Both,
            sets: sets.to_vec(),
            washout: Nanos(0),
            measure: Nanos::from_millis(millis),
            tick: Nanos::from_millis(20),
        }
    }

    #[test]
    fn a_run_of_one_end_leaves_a_record_of_one_host() {
        let mut link = Alone::new("memory", blank(), Subject::Host);
        let plan = Plan {
            engine: "memory".to_owned(),
            peer: None,
            reach: Vec::new(),
            knobs: small(2),
            directions: vec![Direction::Forward],
            time: Nanos::from_millis(150),
            sweep: false,
            trials: false,
        };
        let (record, error) =
            run::once(&mut link, plan, Nanos(0), None, run::Label::default(), &mut ());
        assert!(error.is_none(), "{error:?}");
        assert_eq!(record.end, Some(End::Complete));
        assert!(is_alone(&record));
        let [step] = record.steps.as_slice() else { panic!("{:?}", record.steps) };
        assert_eq!((step.ends.len(), step.trouble.clone()), (1, None));
        let found = once(&record, step, Direction::Forward).unwrap();
        assert!(found.load.goodput.mean > 0.0);
        assert_eq!(found.moved.sender, found.moved.receiver);
        let load = memory_load(&record, step).unwrap();
        assert_eq!(load.array, Bytes(65_536));
        assert!(load.ceiling.is_err(), "nothing is known of the machine");
    }

    /// Stops a step once its payload flows.
    fn stop_at_work(live: Live) -> StepControl {
        match live.elapsed {
            Nanos(0) => StepControl::Continue,
            _ => StepControl::Stop,
        }
    }

    #[test]
    fn a_stop_ends_a_step_and_its_set_can_be_used_again() {
        let mut link = Alone::new("memory", blank(), Subject::Host);
        link.prepare(&set(3, small(1))).unwrap();
        let stopped = link.step(&step(&[3], 600_000), &mut stop_at_work).unwrap();
        assert_eq!(stopped.trouble.unwrap().what, "stopped");
        assert!(stopped.ends[0].totals[0].complete);
        let whole = link.step(&step(&[3], 50), &mut |_| StepControl::Continue).unwrap();
        assert_eq!(whole.trouble, None);
        link.release(3).unwrap();
        let gone = link.step(&step(&[3], 50), &mut |_| StepControl::Continue);
        assert!(matches!(gone, Err(LinkError::Refused { .. })));
    }

    #[test]
    fn more_memory_than_there_is_is_refused_before_it_is_touched() {
        let mut link = Alone::new("memory", blank(), Subject::Host);
        // The largest arrays that are possible: 2 TiB for all streams together.
        let mut knobs = small(64);
        (knobs.write_size, knobs.read_size) = (Bytes(16 << 30), Bytes(16 << 30));
        let Err(LinkError::Refused { what, .. }) = link.prepare(&set(0, knobs)) else {
            panic!("so much was found")
        };
        assert!(what.contains("may be used"), "{what}");
    }
}
