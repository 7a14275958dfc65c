//! A link without a far end: operations of this host alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_core::path::Side;
use linerate_core::plan::{SetPlan, StepPlan};
use linerate_core::record::{EndReadings, Host, Set, Step, Trouble};
use linerate_core::units::Nanos;

use super::{Link, LinkError, Live};
use crate::end::{LocalEnd, Running};
use crate::event::Flow;
use crate::host::Machine;
use crate::load::LoadError;
use crate::load::transport::NoLines;

/// Time from one call of `watch` to the next.
const LOOK: Duration = Duration::from_millis(100);
/// Time that a step may take beyond its plan.
const OVERTIME: Duration = Duration::from_secs(20);

/// This end, and no other.
pub struct Alone {
    end: LocalEnd,
    epoch: Instant,
}

impl Alone {
    /// For a transport without a far end.
    pub fn new(engine: &str, machine: Arc<dyn Machine>) -> Self {
        Self {
            end: LocalEnd::alone(Side::Near, engine, machine),
            epoch: Instant::now(),
        }
    }

    /// Runs a step to its end.
    fn drive(
        plan: &StepPlan,
        mut running: Running,
        watch: &mut dyn FnMut(Live) -> Flow,
    ) -> (EndReadings, bool) {
        let time = plan.washout.duration() + plan.measure.duration() + OVERTIME;
        let deadline = Instant::now() + time;
        let mut stopped = false;
        while !running.done(LOOK) {
            if watch(running.live()) == Flow::Stop && !stopped {
                stopped = true;
                running.stop();
            }
            if Instant::now() >= deadline {
                running.abort();
                break;
            }
        }
        (running.finish(), stopped)
    }
}

impl Link for Alone {
    fn now(&self) -> Nanos {
        self.epoch.elapsed().into()
    }

    fn hosts(&mut self) -> Result<Vec<Host>, LinkError> {
        Ok(vec![Host {
            side: Side::Near,
            facts: self.end.facts(),
        }])
    }

    fn prepare(&mut self, plan: &SetPlan) -> Result<Set, LinkError> {
        let offer = self.end.prepare(plan).map_err(|e| refused(&e))?;
        let end = self.end.connect(plan.id, &offer, &mut NoLines);
        let end = end.map_err(|e| refused(&e))?;
        Ok(Set {
            plan: plan.clone(),
            ends: vec![end],
        })
    }

    fn step(
        &mut self,
        plan: &StepPlan,
        watch: &mut dyn FnMut(Live) -> Flow,
    ) -> Result<Step, LinkError> {
        let mut running = self.end.arm(plan).map_err(|e| refused(&e))?;
        let began = self.now();
        running.go();
        let (readings, stopped) = Self::drive(plan, running, watch);
        let trouble = if stopped {
            Some("stopped".to_owned())
        } else {
            unfinished(&readings)
        };
        Ok(Step {
            plan: plan.clone(),
            began,
            ends: vec![readings],
            clock: None,
            trouble: trouble.map(|what| Trouble {
                side: Side::Near,
                what,
            }),
        })
    }

    fn release(&mut self, set: u32) -> Result<(), LinkError> {
        self.end.release(set);
        Ok(())
    }
}

/// The first stream that did not end in order.
fn unfinished(readings: &EndReadings) -> Option<String> {
    let total = readings.totals.iter().find(|total| !total.complete)?;
    Some(format!(
        "stream {} of set {} did not end in order",
        total.stream, total.set
    ))
}

fn refused(e: &LoadError) -> LinkError {
    LinkError::Refused {
        what: e.to_string(),
        hint: e.hint().into(),
    }
}
