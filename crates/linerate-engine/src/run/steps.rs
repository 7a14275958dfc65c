//! The steps of every run: idle latency, each direction, more streams, both directions at once.

use linerate_core::facts::Gap;
use linerate_core::model::latency_of;
use linerate_core::path::{Direction, Side};
use linerate_core::plan::{Knobs, Pattern, Purpose, SetPlan, StepPlan};
use linerate_core::record::Step;
use linerate_core::units::{Bytes, Nanos};
use linerate_core::wire::samples::{read_of, tick};

use super::Run;
use super::budget::Budget;
use crate::event::{Event, Level, RunControl};
use crate::link::LinkError;

/// Time between two round trips under load.
pub(super) const BESIDE: Nanos = Nanos::from_millis(5);

/// Payload of a latency probe: fits any MTU.
const PROBE: Bytes = Bytes(64);

/// More streams that gain less than this are past the knee.
const KNEE: f64 = 1.05;

/// Most streams of a sweep.
const MOST_STREAMS: u32 = 16;

impl Run<'_> {
    pub(super) fn steps(&mut self) -> Result<(), LinkError> {
        let plan = self.record.start.plan.clone();
        let idle = self.ping(Nanos(0))?;
        self.step(
            Purpose::IdleLatency,
            &[idle],
            Nanos(0),
            self.budget.idle,
            "latency of the idle path",
        )?;
        self.link.release(idle)?;
        let step = self.record.steps.last();
        if let Some(idle) = step.and_then(|step| latency_of(&self.record, step)) {
            self.budget.stretch(&plan, idle.least);
        }
        let mut beside = self.ping(BESIDE)?;
        let mut bases = Vec::new();
        for direction in plan.directions {
            let set = self.stream(direction, plan.knobs.clone())?;
            let words = format!("{}, {}", direction.name(), streams(plan.knobs.streams));
            let purpose = Purpose::Base { direction };
            self.step(purpose, &[set, beside], Nanos(0), self.budget.base, &words)?;
            if self.broke() {
                self.link.release(set)?;
                self.link.release(beside)?;
                beside = self.ping(BESIDE)?;
            } else {
                bases.push(set);
            }
            if plan.sweep {
                self.sweep(direction, &plan.knobs)?;
            }
        }
        if bases.len() == 2 {
            self.both(&bases)?;
        }
        for set in bases.into_iter().chain([beside]) {
            self.link.release(set)?;
        }
        Ok(())
    }

    /// Both directions at once: the one step that a verdict does not need, so it is left out where
    /// the others took its time.
    fn both(&mut self, bases: &[u32]) -> Result<(), LinkError> {
        let words = "both directions at once";
        if self.budget.affords(self.link.now(), self.budget.both) {
            let washout = Nanos::from_millis(300);
            return self.step(Purpose::Both, bases, washout, self.budget.both, words);
        }
        self.hint(
            Side::Near,
            &Gap {
                what: words.to_owned(),
                why: "not measured: no time was left".to_owned(),
                hint: format!(
                    "--time {:.0}s",
                    (self.record.start.plan.time.secs() * 2.0).ceil()
                ),
            },
        );
        Ok(())
    }

    /// Tells the user about a part that is left out of the run.
    pub(super) fn hint(&mut self, side: Side, gap: &Gap) {
        self.sink.event(&Event::Notice {
            level: Level::Hint,
            side,
            gap,
        });
    }

    /// Doubles the streams until they gain nothing.
    fn sweep(&mut self, direction: Direction, knobs: &Knobs) -> Result<(), LinkError> {
        let mut best = self.goodput(direction);
        let mut n = knobs.streams;
        let until = Nanos(self.link.now().0 + self.budget.sweeps.0);
        while !self.stopped && n < MOST_STREAMS && self.link.now() < until {
            n = n.saturating_mul(2).min(MOST_STREAMS.max(knobs.streams));
            let more = Knobs {
                streams: n,
                ..knobs.clone()
            };
            let Some(set) = self.offered(direction, &more)? else {
                break;
            };
            let purpose = Purpose::Sweep { direction };
            let words = format!("{}, {}", direction.name(), streams(n));
            let Budget { washout, sweep, .. } = self.budget;
            self.step(purpose, &[set], washout, sweep, &words)?;
            self.link.release(set)?;
            let now = self.goodput(direction);
            // Nothing is not more than nothing, either.
            if now <= best * KNEE {
                break;
            }
            best = now;
        }
        Ok(())
    }

    /// Whether the last step did not end in order: its connections are lost then.
    pub(super) fn broke(&self) -> bool {
        !self.stopped
            && self
                .record
                .steps
                .last()
                .is_some_and(|s| s.trouble.is_some())
    }

    /// Best goodput of a direction so far, bits per second.
    fn goodput(&mut self, direction: Direction) -> f64 {
        let measured = self.deriver.direction(&self.record, direction);
        measured.map_or(0.0, |d| {
            d.sweep
                .iter()
                .chain([&d.base])
                .map(|l| l.goodput.mean)
                .fold(0.0, f64::max)
        })
    }

    pub(super) fn ping(&mut self, interval: Nanos) -> Result<u32, LinkError> {
        let pattern = Pattern::PingPong {
            size: PROBE,
            interval,
        };
        self.set(
            pattern,
            Knobs {
                nodelay: true,
                ..Knobs::default()
            },
        )
    }

    pub(super) fn stream(&mut self, direction: Direction, knobs: Knobs) -> Result<u32, LinkError> {
        self.set(self.record.start.plan.load(direction), knobs)
    }

    /// Makes a set that may be refused. If it is, its step is left out and the user is told.
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
                    &Gap {
                        what: format!("a load {}", direction.name()),
                        why: what,
                        hint,
                    },
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

    /// Runs one step and records it. A step of a run that was stopped is not begun.
    pub(super) fn step(
        &mut self,
        purpose: Purpose,
        sets: &[u32],
        washout: Nanos,
        measure: Nanos,
        words: &str,
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
            tick: tick(
                Nanos(washout.0.saturating_add(measure.0)),
                self.read_of(sets),
            ),
        };
        let began = self.link.now();
        let left = self.budget.left(began);
        if self.sink.event(&Event::StepBegan {
            plan: &plan,
            words,
            left,
        }) == RunControl::Stop
        {
            self.stopped = true;
            return Ok(());
        }
        let step = self.watched(&plan, direction_of(purpose), left)?;
        // What waits for an end that does not answer says nothing of the next step.
        if step.trouble.is_none() {
            let own = plan.washout.0.saturating_add(plan.measure.0);
            let took = self.link.now().0.saturating_sub(began.0);
            self.beyond.count(Nanos(took.saturating_sub(own)));
        }
        self.note(
            |record| record.steps.push(step.clone()),
            &Event::Step(&step),
        );
        Ok(())
    }

    /// Streams of sets whose connections are read, together.
    fn read_of(&self, sets: &[u32]) -> u64 {
        let all = self.record.sets.iter().map(|set| &set.plan);
        let these = all.filter(|plan| sets.contains(&plan.id));
        these
            .map(|plan| u64::from(read_of(plan.knobs.streams)))
            .sum()
    }

    fn watched(
        &mut self,
        plan: &StepPlan,
        direction: Option<Direction>,
        left: Nanos,
    ) -> Result<Step, LinkError> {
        let (sink, stopped) = (&mut *self.sink, &mut self.stopped);
        self.link.step(plan, &mut |live| {
            let left = Nanos(left.0.saturating_sub(live.elapsed.0));
            let rate = direction.map(|_| live.rate);
            let control = sink.event(&Event::Progress {
                rate,
                direction,
                left,
            });
            if control == RunControl::Stop {
                *stopped = true;
            }
            control
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
    if n == 1 {
        "1 stream".to_owned()
    } else {
        format!("{n} streams")
    }
}
