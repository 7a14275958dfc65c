//! The steps of every run. Before the trials: idle latency, the base load of each direction, and a load with twice the
//! streams. After the trials: loads with more streams, and both directions at once.

use linerate_facts::Gap;
use linerate_judge::model::latency_of;
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::{self, options_of};
use linerate_plan::{Knobs, Pattern, Purpose, SetPlan, StepPlan};
use linerate_record::Step;
use linerate_record::wire::samples::{read_of, tick};
use linerate_units::{Bytes, Nanos};

use super::Run;
use super::budget::Budget;
use super::enough::Enough;
use crate::link::{LinkError, StepControl};
use linerate_facts::Level;
use linerate_judge::event::{Event, RunControl};

/// Time between the starts of two round trips under load.
pub(super) const BESIDE: Nanos = Nanos::from_millis(5);

/// A sweep continues if goodput with more streams is more than this many times the best goodput so far.
const KNEE: f64 = 1.05;

/// Largest number of streams in a sweep.
const MOST_STREAMS: u32 = 16;

/// State of a direction whose base load was measured.
pub(super) struct Base {
    direction: Direction,
    /// Set of the base load, which a later step uses again; `None` if its connections were lost.
    set: Option<u32>,
    /// Largest number of streams measured so far; `None` if more streams would gain nothing or are not requested.
    swept: Option<u32>,
    /// Whether the step with twice the streams was measured or left out.
    doubled: bool,
    /// Twice the number of streams, if they gained nothing. The reason may be that flows were hashed onto the same one
    /// of several links. `None` otherwise.
    flat: Option<u32>,
}

impl Run<'_> {
    /// Runs the steps before the trials.
    pub(super) fn steps(&mut self) -> Result<(), LinkError> {
        let plan = self.record.start.plan.clone();
        self.idle()?;
        let mut beside = self.ping(BESIDE)?;
        for direction in plan.directions {
            let set = self.stream(direction, plan.knobs.clone())?;
            self.base(direction, &[set, beside])?;
            let broke = self.broke();
            if broke {
                self.link.release(set)?;
                self.link.release(beside)?;
                beside = self.ping(BESIDE)?;
            }
            self.bases.push(Base {
                direction,
                set: (!broke).then_some(set),
                swept: plan.sweep.then_some(plan.knobs.streams),
                doubled: false,
                flat: None,
            });
        }
        self.link.release(beside)?;
        self.budget.keep(self.rest_of());
        Ok(())
    }

    /// Measures round trips on the idle path.
    fn idle(&mut self) -> Result<(), LinkError> {
        let set = self.ping(Nanos(0))?;
        let words = "latency of the idle path";
        let purpose = Purpose::IdleLatency;
        let mut enough = self.early(Enough::Trips(self.probe()));
        self.step_until(purpose, &[set], Nanos(0), self.budget.idle, words, &mut enough)?;
        self.link.release(set)?;
        let step = self.record.steps.last();
        if let Some(idle) = step.and_then(|step| latency_of(&self.record, step)) {
            self.budget.stretch(&self.record.start.plan, idle.least);
        }
        Ok(())
    }

    /// Measures the base load of a direction, and round trips under this load.
    fn base(&mut self, direction: Direction, sets: &[u32]) -> Result<(), LinkError> {
        let streams = streams(self.record.start.plan.knobs.streams);
        let words = format!("{}, {streams}", direction.name());
        let purpose = Purpose::Base { direction };
        let planned = self.budget.base;
        let mut enough = self.early(Enough::of_load(&self.budget));
        self.step_until(purpose, sets, Nanos(0), planned, &words, &mut enough)
    }

    /// Returns the criterion for ending a step early, or [`Enough::Never`]
    /// without trials, which could use the remaining time.
    fn early(&self, enough: Enough) -> Enough {
        if self.record.start.plan.trials { enough } else { Enough::Never }
    }

    /// Runs the steps after the trials. The verdict does not need these steps, so they are left out if no time remains.
    pub(super) fn rest(&mut self) -> Result<(), LinkError> {
        self.budget.keep(Nanos(0));
        let mut bases = std::mem::take(&mut self.bases);
        for base in &mut bases {
            self.sweep(base)?;
        }
        let sets: Vec<u32> = bases.iter().filter_map(|base| base.set).collect();
        if sets.len() == Direction::ALL.len() && !self.stopped {
            self.both(&sets)?;
        }
        for set in sets {
            self.link.release(set)?;
        }
        for base in &bases {
            self.once_more(base)?;
        }
        Ok(())
    }

    /// Doubles the number of streams once more if twice as many gained nothing, and if time is left. Two flows may
    /// share one of several links, and hashing rarely puts four flows on one.
    fn once_more(&mut self, base: &Base) -> Result<(), LinkError> {
        let Budget { washout, sweep, .. } = self.budget;
        let needed = Nanos(washout.0.saturating_add(sweep.0));
        let affords = self.budget.affords(self.link.now(), needed);
        match base.flat.filter(|_| affords) {
            Some(streams) => self.swept(base.direction, streams).map(drop),
            None => Ok(()),
        }
    }

    /// Returns the time that the steps after the trials need.
    fn rest_of(&self) -> Nanos {
        let swept = self.bases.iter().filter(|base| base.swept.is_some());
        let sets = self.bases.iter().filter(|base| base.set.is_some());
        let both = sets.count() == Direction::ALL.len();
        Nanos(swept.count() as u64 * self.budget.sweeps.0 + u64::from(both) * self.budget.both.0)
    }

    /// Measures a load in both directions at once, or reports that the time does not suffice.
    fn both(&mut self, sets: &[u32]) -> Result<(), LinkError> {
        let words = "both directions at once";
        if self.budget.affords(self.link.now(), self.budget.both) {
            let washout = Nanos::from_millis(300);
            return self.step(Purpose::Both, sets, washout, self.budget.both, words);
        }
        self.hint(
            Side::Near,
            &Gap {
                what: words.to_owned(),
                why: "not measured: no time was left".to_owned(),
                hint: format!("--time {:.0}s", (self.record.start.plan.time.secs() * 2.0).ceil()),
            },
        );
        Ok(())
    }

    /// Informs the user of a part that is left out of the run.
    pub(super) fn hint(&mut self, side: Side, gap: &Gap) {
        self.sink.event(&Event::Notice { level: Level::Hint, side, gap });
    }

    /// Measures with twice the streams of the base load, unless this was done before. The judge needs no larger number
    /// of streams. Returns whether a step was measured.
    pub(super) fn doubled(&mut self, direction: Direction) -> Result<bool, LinkError> {
        let Some(base) = self.base_of(direction).filter(|base| !base.doubled) else {
            return Ok(false);
        };
        base.doubled = true;
        let Some(streams) = base.swept else {
            return Ok(false);
        };
        let swept = self.swept(direction, streams)?;
        if let Some(base) = self.base_of(direction) {
            base.swept = swept;
            base.flat = swept.xor(streams.checked_mul(2));
        }
        self.budget.keep(self.rest_of());
        Ok(true)
    }

    fn base_of(&mut self, direction: Direction) -> Option<&mut Base> {
        self.bases.iter_mut().find(|base| base.direction == direction)
    }

    /// Doubles the number of streams until goodput no longer rises, or the time is used up.
    fn sweep(&mut self, base: &mut Base) -> Result<(), LinkError> {
        let until = Nanos(self.link.now().0 + self.budget.sweeps.0);
        while let Some(streams) = base.swept {
            let Budget { washout, sweep, .. } = self.budget;
            let now = self.link.now();
            let needed = Nanos(washout.0 + sweep.0);
            if self.stopped || now >= until || !self.budget.affords(now, needed) {
                break;
            }
            base.swept = self.swept(base.direction, streams)?;
            if !std::mem::replace(&mut base.doubled, true) {
                base.flat = base.swept.xor(streams.checked_mul(2));
            }
        }
        Ok(())
    }

    /// Measures with twice as many streams. Returns this doubled number if even more streams may raise goodput.
    fn swept(&mut self, direction: Direction, streams: u32) -> Result<Option<u32>, LinkError> {
        let knobs = self.record.start.plan.knobs.clone();
        if self.stopped || streams >= MOST_STREAMS {
            return Ok(None);
        }
        let best = self.goodput(direction);
        let more = streams.saturating_mul(2).min(MOST_STREAMS);
        let Some(set) = self.offered(direction, &Knobs { streams: more, ..knobs })? else {
            return Ok(None);
        };
        let purpose = Purpose::Sweep { direction };
        let words = format!("{}, {}", direction.name(), self::streams(more));
        let Budget { washout, sweep, .. } = self.budget;
        self.step(purpose, &[set], washout, sweep, &words)?;
        self.link.release(set)?;
        // The comparison is strict: if both goodputs are zero, the sweep ends.
        let gains = self.goodput(direction) > best * KNEE;
        Ok((gains && more < MOST_STREAMS).then_some(more))
    }

    /// Returns whether the last step did not end in order. If so, its connections are lost.
    pub(super) fn broke(&self) -> bool {
        !self.stopped && self.record.steps.last().is_some_and(|s| s.trouble.is_some())
    }

    /// Returns the best goodput of a direction so far, in bits per second.
    fn goodput(&mut self, direction: Direction) -> f64 {
        let measured = self.deriver.direction(&self.record, direction);
        measured.map_or(0.0, |d| {
            d.sweep.iter().chain([&d.base]).map(|l| l.goodput.mean).fold(0.0, f64::max)
        })
    }

    /// Returns the size of a message that measures latency.
    fn probe(&self) -> Bytes {
        Bytes(transport::of(&self.record.start.plan.engine).message)
    }

    pub(super) fn ping(&mut self, interval: Nanos) -> Result<u32, LinkError> {
        let plan = &self.record.start.plan;
        let pattern = Pattern::PingPong { size: self.probe(), interval };
        let rows = options_of(&plan.engine);
        let knobs =
            Knobs { nodelay: true, options: plan.knobs.options.of_path(rows), ..Knobs::default() };
        self.set(pattern, knobs)
    }

    pub(super) fn stream(&mut self, direction: Direction, knobs: Knobs) -> Result<u32, LinkError> {
        self.set(self.record.start.plan.load(direction), knobs)
    }

    /// Prepares a set that an end may refuse. If the set is refused, its step is left out and the user is informed.
    pub(super) fn offered(
        &mut self,
        direction: Direction,
        knobs: &Knobs,
    ) -> Result<Option<u32>, LinkError> {
        match self.stream(direction, knobs.clone()) {
            Err(LinkError::Refused { what, hint }) => {
                let side = knobs.host.map_or(Side::Far, |change| change.side);
                self.hint(
                    side,
                    &Gap { what: format!("a load {}", direction.name()), why: what, hint },
                );
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    pub(super) fn set(&mut self, pattern: Pattern, knobs: Knobs) -> Result<u32, LinkError> {
        let id = self.next_set;
        self.next_set += 1;
        let plan = SetPlan::of(&self.record.start.plan.engine, id, pattern, knobs);
        let set = self.link.prepare(&plan)?;
        self.note(|record| record.sets.push(set.clone()), &Event::Set(&set));
        Ok(id)
    }

    /// Runs one step for its planned time and records it.
    pub(super) fn step(
        &mut self,
        purpose: Purpose,
        sets: &[u32],
        washout: Nanos,
        measure: Nanos,
        words: &str,
    ) -> Result<(), LinkError> {
        self.step_until(purpose, sets, washout, measure, words, &mut Enough::Never)
    }

    /// Runs one step and records it. The step ends early once `enough` is reached. If the run was stopped, the step
    /// does not begin.
    fn step_until(
        &mut self,
        purpose: Purpose,
        sets: &[u32],
        washout: Nanos,
        measure: Nanos,
        words: &str,
        enough: &mut Enough,
    ) -> Result<(), LinkError> {
        if self.stopped {
            return Ok(());
        }
        let index = self.record.steps.len() as u32;
        let plan = StepPlan {
            index,
            purpose,
            sets: sets.to_vec(),
            washout,
            measure,
            tick: tick(Nanos(washout.0.saturating_add(measure.0)), self.read_of(sets)),
        };
        let began = self.link.now();
        let left = self.budget.left(began);
        if self.sink.event(&Event::StepBegan { plan: &plan, words, left }) == RunControl::Stop {
            self.stopped = true;
            return Ok(());
        }
        let mut step = self.watched(&plan, direction_of(purpose), left, enough)?;
        step.took = Nanos(self.link.now().0.saturating_sub(step.began.0));
        // If a step had trouble, its additional time is mostly a wait
        // for an unresponsive end, and does not predict later steps.
        if step.trouble.is_none() {
            let own = step.plan.washout.0.saturating_add(step.plan.measure.0);
            let took = self.link.now().0.saturating_sub(began.0);
            self.beyond.count(Nanos(took.saturating_sub(own)));
        }
        self.note(|record| record.steps.push(step.clone()), &Event::Step(&step));
        Ok(())
    }

    /// Returns the number of streams in `sets` whose connections are sampled.
    fn read_of(&self, sets: &[u32]) -> u64 {
        let all = self.record.sets.iter().map(|set| &set.plan);
        let these = all.filter(|plan| sets.contains(&plan.id));
        these.map(|plan| u64::from(read_of(plan.knobs.streams))).sum()
    }

    fn watched(
        &mut self,
        plan: &StepPlan,
        direction: Option<Direction>,
        left: Nanos,
        enough: &mut Enough,
    ) -> Result<Step, LinkError> {
        let (sink, stopped) = (&mut *self.sink, &mut self.stopped);
        self.link.step(plan, &mut |live| {
            let left = Nanos(left.0.saturating_sub(live.elapsed.0));
            let rate = direction.map(|_| live.rate);
            let control = sink.event(&Event::Progress { rate, direction, left });
            if control == RunControl::Stop {
                *stopped = true;
                StepControl::Stop
            } else if enough.reached(live) {
                StepControl::Enough
            } else {
                StepControl::Continue
            }
        })
    }
}

fn direction_of(purpose: Purpose) -> Option<Direction> {
    match purpose {
        Purpose::Base { direction } | Purpose::Sweep { direction } => Some(direction),
        _ => None,
    }
}

pub(super) fn streams(n: u32) -> String {
    if n == 1 { "1 stream".to_owned() } else { format!("{n} streams") }
}
