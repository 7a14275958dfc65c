//! Trials: one factor changed, both settings measured in interleaved slices, until it is decided.

use linerate_core::facts::Gap;
use linerate_core::model::{self, Model, TcpShares, derive, effect, slices, undisturbed};
use linerate_core::plan::{Direction, Purpose};
use linerate_core::record::TrialPlan;
use linerate_core::trial::{kind, washout};
use linerate_core::units::Nanos;
use linerate_core::verdict::{decides, next_trial};

use super::Run;
use crate::event::Event;
use crate::link::LinkError;

/// Time of a slice that counts.
const SLICE: Nanos = Nanos::from_millis(400);

/// Slices of a block (A B B A).
const BLOCK: usize = 4;

/// Slices below which a trial says nothing: two blocks.
const FEWEST: u64 = 8;

impl Run<'_> {
    /// Runs trials, one for each open direction in turn, until each is proved, nothing is left to
    /// try, or the time is up.
    pub(super) fn trials(&mut self) -> Result<(), LinkError> {
        while !self.stopped {
            let model = derive(&self.record);
            let first = self.record.trials.len() as u32;
            let directions = self.record.start.plan.directions.clone();
            let open: Vec<TrialPlan> = directions
                .into_iter()
                .filter_map(|d| next_trial(&model, d, first))
                .collect();
            let mut waiting = open.len() as u64;
            let Some(cheapest) = open.iter().map(|p| cost(&model, p.direction)).min() else {
                return Ok(());
            };
            if !self.budget.affords(self.link.now(), cheapest) {
                return Ok(());
            }
            for (i, plan) in open.into_iter().enumerate() {
                // Each direction that still waits gets its share of what is left.
                let now = self.link.now();
                let until = Nanos(now.0 + self.budget.left(now).0 / waiting);
                waiting -= 1;
                if self.budget.affords(now, cost(&model, plan.direction)) && !self.stopped {
                    let id = first + i as u32;
                    self.trial(&model, &TrialPlan { id, ..plan }, until)?;
                }
            }
        }
        Ok(())
    }

    fn trial(&mut self, model: &Model, plan: &TrialPlan, until: Nanos) -> Result<(), LinkError> {
        let what = kind(&plan.kind).map_or("", |k| k.words);
        let words = format!("testing {what} ({})", plan.direction.name());
        self.note(
            |record| record.trials.push(plan.clone()),
            &Event::Trial {
                plan,
                words: &words,
            },
        );
        let Some(before) = self.offered(plan.direction, &plan.before)? else {
            return Ok(());
        };
        let Some(after) = self.offered(plan.direction, &plan.after)? else {
            return self.link.release(before);
        };
        let trial = Interleaved {
            model,
            plan,
            sets: [before, after],
            settle: settle(model, plan.direction),
            until,
            words: &words,
        };
        let outcome = self.interleave(&trial);
        let outcome = self.unless_refused(plan, outcome);
        // A link that is lost has no sets to release.
        if !matches!(outcome, Err(LinkError::Lost { .. })) {
            self.link.release(before)?;
            self.link.release(after)?;
        }
        outcome
    }

    fn interleave(&mut self, trial: &Interleaved<'_>) -> Result<(), LinkError> {
        let id = trial.plan.id;
        for set in trial.sets {
            let purpose = Purpose::Warm { trial: id };
            self.step(purpose, &[set], Nanos(0), trial.slice(), trial.words)?;
        }
        while !self.stopped {
            let Some(changed) = self.goes_on(trial) else {
                return Ok(());
            };
            let purpose = Purpose::Slice { trial: id, changed };
            let set = trial.sets[usize::from(changed)];
            self.step(purpose, &[set], trial.settle, SLICE, trial.words)?;
        }
        Ok(())
    }

    /// A host that is no longer as a trial of its settings needs it ends the trial, not the run.
    fn unless_refused(
        &mut self,
        plan: &TrialPlan,
        outcome: Result<(), LinkError>,
    ) -> Result<(), LinkError> {
        match (plan.after.host, outcome) {
            (Some(change), Err(LinkError::Refused { what, hint })) => {
                let what = Gap {
                    what: format!("the trial {}", plan.kind),
                    why: what,
                    hint,
                };
                self.hint(change.side, &what);
                Ok(())
            }
            (_, outcome) => outcome,
        }
    }

    /// Which setting comes next; `None` when the trial has ended: it decided, its time is up, or its
    /// connections are lost. A slice that was disturbed does not count, and is taken again.
    fn goes_on(&self, trial: &Interleaved<'_>) -> Option<bool> {
        let slice = self.record.steps.last();
        let lost = slice.is_some_and(|s| s.trouble.is_some());
        let so_far = effect(trial.plan, &slices(&self.record, trial.plan.id));
        let next = so_far.next_changed().filter(|_| !lost)?;
        if slice.is_some_and(|s| !undisturbed(s)) {
            let ends = self.link.now().0 + spent(trial.slice(), 1).0;
            return (ends <= trial.until.0).then_some(next);
        }
        if !so_far.slices().is_multiple_of(BLOCK) || so_far.slices() == 0 {
            return Some(next);
        }
        let decided = model::trial(&self.record, trial.plan.id)
            .is_some_and(|so_far| decides(trial.model, &so_far));
        // Fewer than two blocks say nothing: a trial that was begun gets them.
        let begun = (so_far.slices() as u64) < FEWEST;
        let block_ends = self.link.now().0 + spent(trial.slice(), BLOCK as u64).0;
        (begun || (!decided && block_ends <= trial.until.0)).then_some(next)
    }
}

/// A trial with its warm connections.
struct Interleaved<'a> {
    /// What was known before it.
    model: &'a Model,
    plan: &'a TrialPlan,
    /// Setting A and setting B.
    sets: [u32; 2],
    /// Wash-out of a slice.
    settle: Nanos,
    /// When the next trial wants its turn.
    until: Nanos,
    words: &'a str,
}

impl Interleaved<'_> {
    /// Time of a slice, wash-out included.
    fn slice(&self) -> Nanos {
        Nanos(self.settle.0 + SLICE.0)
    }
}

/// Wash-out of a slice in this direction.
fn settle(model: &Model, direction: Direction) -> Nanos {
    model
        .direction(direction)
        .map_or_else(|| washout(&TcpShares::default()), |d| washout(&d.base.tcp))
}

/// The least time that a trial takes.
fn cost(model: &Model, direction: Direction) -> Nanos {
    spent(Nanos(settle(model, direction).0 + SLICE.0), FEWEST + 2)
}

/// Time that so many slices take, with what lies between them (arming both ends, clock pairs,
/// readings): about a fifth more.
fn spent(slice: Nanos, n: u64) -> Nanos {
    Nanos(slice.0 * n * 6 / 5)
}
