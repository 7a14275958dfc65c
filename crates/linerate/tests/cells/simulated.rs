//! A run on a simulated path that sees other readings than those that were taken: what it tries next
//! depends on them.

use linerate_plan::path::Direction;
use linerate_plan::{Knobs, Plan, SetPlan, StepPlan};
use linerate_record::{Host, Record, Set, Step};
use linerate_session::link::{Link, LinkError, Live, StepControl};
use linerate_session::run::run;
use linerate_sim::{Sim, SimPath};
use linerate_units::Nanos;

use super::hardware::sent_again;

/// A path that loses packets and never says so: its sender's congestion control slows down for no
/// reason that shows.
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
        tables.for_each(|table| sent_again(table, 0.0));
        Ok(step)
    }
    fn release(&mut self, set: u32) -> Result<(), LinkError> {
        self.0.release(set)
    }
}

/// A run on it.
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
