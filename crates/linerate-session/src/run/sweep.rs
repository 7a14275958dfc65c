//! A sweep without the other steps of a run: one load with each of several settings, in interleaved rounds.

use linerate_facts::Gap;
use linerate_plan::path::Side;
use linerate_plan::study::order;
use linerate_plan::{Plan, Purpose};
use linerate_record::Record;
use linerate_units::stats::FEWEST;

use super::{Label, Run, session};
use crate::link::{Link, LinkError};
use linerate_judge::event::Sink;
use linerate_judge::model::SweepPlan;

/// Measures with each setting in turn, in alternating order, for several rounds. If an end refuses a setting, the
/// setting is left out and the user is informed. Returns the record and the error, as [`super::run`] does.
pub fn sweep(
    link: &mut dyn Link,
    plan: Plan,
    sweep: &mut SweepPlan,
    label: Label,
    sink: &mut dyn Sink,
) -> (Record, Option<LinkError>) {
    session(link, plan, label, sink, |run| run.rounds(sweep))
}

impl Run<'_> {
    fn rounds(&mut self, sweep: &mut SweepPlan) -> Result<(), LinkError> {
        let mut sets = Vec::new();
        for at in 0..sweep.settings.len() {
            sets.push(self.setting(sweep, at)?);
        }
        // The first round only warms up the connections.
        for round in 0..=sweep.pace.rounds {
            let needed = round <= FEWEST as u32;
            let time = sweep.pace.round(sets.len());
            if self.stopped || !(needed || self.budget.affords(self.link.now(), time)) {
                break;
            }
            for at in order(round, sets.len()) {
                sets[at] = match sets[at] {
                    Some(set) => self.slice(sweep, at, set)?,
                    None => None,
                };
            }
        }
        for set in sets.into_iter().flatten() {
            self.link.release(set)?;
        }
        Ok(())
    }

    /// Prepares a set with a setting; `None` if an end refuses it.
    fn setting(&mut self, sweep: &mut SweepPlan, at: usize) -> Result<Option<u32>, LinkError> {
        let direction = sweep.direction;
        let made = self.stream(direction, sweep.settings[at].clone());
        self.unless_left_out(sweep, at, made.map(Some))
    }

    /// Measures a setting once. Returns the set that the next slice
    /// with this setting uses; `None` if the setting is left out.
    fn slice(
        &mut self,
        sweep: &mut SweepPlan,
        at: usize,
        set: u32,
    ) -> Result<Option<u32>, LinkError> {
        let (direction, pace) = (sweep.direction, sweep.pace);
        let name = sweep.swept.value(&sweep.settings[at]).label;
        let words = format!("{}, {name}", direction.name());
        let purpose = Purpose::Sweep { direction };
        let done = self.step(purpose, &[set], pace.washout, pace.measure, &words);
        let lost = done.is_err() || self.broke();
        let kept = self.unless_left_out(sweep, at, done.map(|()| Some(set)))?;
        if lost {
            self.link.release(set)?;
        }
        match kept {
            Some(_) if lost => self.setting(sweep, at),
            kept => Ok(kept),
        }
    }

    /// If an end refuses a setting, leaves the setting out and informs the user.
    fn unless_left_out(
        &mut self,
        sweep: &mut SweepPlan,
        at: usize,
        outcome: Result<Option<u32>, LinkError>,
    ) -> Result<Option<u32>, LinkError> {
        let Err(LinkError::Refused { what, hint }) = outcome else {
            return outcome;
        };
        let gap = Gap {
            what: sweep.swept.value(&sweep.settings[at]).label,
            why: format!("left out: {what}"),
            hint,
        };
        self.hint(Side::Far, &gap);
        sweep.left_out.push(gap);
        Ok(None)
    }
}
