//! Search for the highest rate without loss: short steps at different
//! rates, then a longer step at the highest rate that was good.

use linerate_judge::model::looks;
use linerate_plan::path::Direction;
use linerate_plan::search::{Ask, Search};
use linerate_plan::{Knobs, Plan, Purpose};
use linerate_record::Record;
use linerate_units::{Nanos, Rate};

use super::{Label, Run, session, steps};
use crate::link::{Link, LinkError};
use linerate_judge::event::Sink;

/// Length of a short step. A queue that needs longer to fill is detected by the longer step.
const SHORT: Nanos = Nanos::from_millis(500);

/// Searches for the highest rate of the first direction of `plan` at which the share of lost packets is at most
/// `allowed`. The plan's pace is the highest rate that is tried. The longer step lasts as long as the plan's time; its
/// first `washout` does not count. Returns the record and the error, as [`super::run`] does.
pub fn search(
    link: &mut dyn Link,
    plan: Plan,
    washout: Nanos,
    allowed: f64,
    label: Label,
    sink: &mut dyn Sink,
) -> (Record, Option<LinkError>) {
    session(link, plan, label, sink, |run| run.search(washout, allowed))
}

impl Run<'_> {
    fn search(&mut self, washout: Nanos, allowed: f64) -> Result<(), LinkError> {
        let plan = self.record.start.plan.clone();
        let Some(&direction) = plan.directions.first() else {
            return Ok(());
        };
        let measure = Nanos(plan.time.0.saturating_sub(washout.0));
        let mut search = Search::new(allowed, plan.knobs.rate());
        while !self.stopped {
            let (rate, purpose, before, time) = match search.next() {
                Ask::Short(rate) => (rate, Purpose::Sweep { direction }, Nanos(0), SHORT),
                Ask::Long(rate) => (rate, Purpose::Base { direction }, washout, measure),
                Ask::Over => break,
            };
            self.at(rate, purpose, direction, before, time)?;
            let known = looks(&self.record);
            match known.last() {
                Some(look) if known.len() > search.looks().len() => search.add(*look),
                // The step did not end in order; the trouble in its record is the reason.
                _ => break,
            }
        }
        Ok(())
    }

    /// Runs one step in which all streams together send at `rate`.
    fn at(
        &mut self,
        rate: Rate,
        purpose: Purpose,
        direction: Direction,
        washout: Nanos,
        measure: Nanos,
    ) -> Result<(), LinkError> {
        let knobs = &self.record.start.plan.knobs;
        let streams = knobs.streams;
        let each = Rate((rate.0 / u64::from(streams.max(1))).max(1));
        let knobs = Knobs { pacing: Some(each), ..knobs.clone() };
        let set = self.stream(direction, knobs)?;
        let words = format!("{}, {}, {rate}", direction.name(), steps::streams(streams));
        self.step(purpose, &[set], washout, measure, &words)?;
        self.link.release(set)
    }
}
