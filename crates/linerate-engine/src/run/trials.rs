//! Trials: one factor changed, both settings measured in interleaved slices, until it is decided.

use linerate_core::model::{Model, derive, effect, slices};
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

/// Slices below which a trial says nothing: two blocks of four.
const FEWEST: u64 = 8;

impl Run<'_> {
    /// Runs trials, the directions in turn, until each is proved, nothing is left to try, or the
    /// time is up.
    pub(super) fn trials(&mut self) -> Result<(), LinkError> {
        let mut open: Vec<Direction> = self.record.start.plan.directions.clone();
        while !open.is_empty() && !self.stopped {
            let mut still = Vec::new();
            for direction in open {
                let model = derive(&self.record);
                let id = self.record.trials.len() as u32;
                let Some(plan) = next_trial(&model, direction, id) else {
                    continue;
                };
                if !self
                    .budget
                    .affords(self.link.now(), cost(&model, direction))
                {
                    return Ok(());
                }
                self.trial(&model, &plan)?;
                still.push(direction);
            }
            open = still;
        }
        Ok(())
    }

    fn trial(&mut self, model: &Model, plan: &TrialPlan) -> Result<(), LinkError> {
        let what = kind(&plan.kind).map_or("", |k| k.words);
        let words = format!("testing {what} ({})", plan.direction.name());
        self.note(
            |record| record.trials.push(plan.clone()),
            &Event::Trial {
                plan,
                words: &words,
            },
        );
        let before = self.stream(plan.direction, plan.before.clone())?;
        let after = self.stream(plan.direction, plan.after.clone())?;
        let outcome = self.interleave(model, plan, [before, after], &words);
        // A link that is lost has no sets to release.
        if !matches!(outcome, Err(LinkError::Lost { .. })) {
            self.link.release(before)?;
            self.link.release(after)?;
        }
        outcome
    }

    fn interleave(
        &mut self,
        model: &Model,
        plan: &TrialPlan,
        sets: [u32; 2],
        words: &str,
    ) -> Result<(), LinkError> {
        let settle = settle(model, plan.direction);
        for set in sets {
            let warm = Nanos(settle.0 + SLICE.0);
            self.step(
                Purpose::Warm { trial: plan.id },
                &[set],
                Nanos(0),
                warm,
                words,
            )?;
        }
        let mut looked = 0;
        while !self.stopped {
            let measured = slices(&self.record, plan.id);
            let so_far = effect(plan, &measured);
            if so_far.slices() < measured.len() {
                // A slice went wrong and was left out: what came after it is out of order.
                return Ok(());
            }
            let Some(changed) = so_far.next_changed() else {
                return Ok(());
            };
            if so_far.slices().is_multiple_of(4) && so_far.slices() > looked {
                looked = so_far.slices();
                let decided = so_far.interval().is_some_and(|i| decides(model, plan, i));
                let block = Nanos((settle.0 + SLICE.0) * 4);
                if decided || !self.budget.affords(self.link.now(), block) {
                    return Ok(());
                }
            }
            let purpose = Purpose::Slice {
                trial: plan.id,
                changed,
            };
            let steps = self.record.steps.len();
            self.step(purpose, &[sets[usize::from(changed)]], settle, SLICE, words)?;
            let went_wrong = self
                .record
                .steps
                .get(steps)
                .is_none_or(|s| s.trouble.is_some());
            if went_wrong {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Wash-out of a slice in this direction.
fn settle(model: &Model, direction: Direction) -> Nanos {
    washout(model.direction(direction).and_then(|d| d.base.tcp.rtt))
}

/// The least time that a trial takes.
fn cost(model: &Model, direction: Direction) -> Nanos {
    Nanos((settle(model, direction).0 + SLICE.0) * (FEWEST + 2))
}
