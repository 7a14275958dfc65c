//! A run on a simulated path whose readings are changed before the run sees them: its trials depend on the readings.

use linerate_plan::path::Direction;
use linerate_plan::{Knobs, Plan, SetPlan, StepPlan};
use linerate_record::{Host, Record, Set, Step};
use linerate_session::link::{Link, LinkError, Live, StepControl};
use linerate_session::run::run;
use linerate_sim::{Sim, SimPath};
use linerate_units::Nanos;

use super::hardware::retransmit;

/// A path that loses packets, but whose counters of retransmissions stay zero: the sender's congestion control slows
/// down for no visible reason.
struct Silent(Sim);

impl Link for Silent {
    fn now(&self) -> Nanos {
        self.0.now()
    }
    fn hosts(&mut self) -> Result<Vec<Host>, LinkError> {
        self.0.hosts()
    }
    fn prepare(&mut self, plan: &SetPlan) -> Result<Set, LinkError> {
        self.0.prepare(plan)
    }
    fn step(
        &mut self,
        plan: &StepPlan,
        watch: &mut dyn FnMut(Live) -> StepControl,
    ) -> Result<Step, LinkError> {
        let mut step = self.0.step(plan, watch)?;
        let tables = step.ends.iter_mut().flat_map(|end| &mut end.tables);
        tables.for_each(|table| retransmit(table, 0.0));
        Ok(step)
    }
    fn release(&mut self, set: u32) -> Result<(), LinkError> {
        self.0.release(set)
    }
}

/// The record of a run on this path.
pub(super) fn record() -> Record {
    let mut path = SimPath { rtt: Nanos::from_millis(20), ..SimPath::default() };
    path.forward.loss = 0.01;
    let plan = Plan {
        engine: "sim".to_owned(),
        peer: None,
        reach: Vec::new(),
        knobs: Knobs::default(),
        directions: vec![Direction::Forward],
        time: Nanos::from_secs(60),
        sweep: true,
        trials: true,
    };
    let (record, error) =
        run(&mut Silent(Sim::new(path, 3)), plan, linerate_session::run::Label::default(), &mut ());
    assert!(error.is_none(), "{error:?}");
    record
}
