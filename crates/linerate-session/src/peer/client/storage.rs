//! The disk of a far host, as a [`Link`]: only the far end works, and its record is that of a disk of its own host.

use std::time::{Duration, Instant};

use linerate_plan::path::Side;
use linerate_plan::{SetPlan, StepPlan};
use linerate_record::wire::message::{Answer, Ask};
use linerate_record::{Host, Set, Step, Trouble};
use linerate_units::{Bytes, Nanos, Rate};

use super::waiting::GIVEN_UP;
use super::{Client, ClientOptions};
use crate::link::{Ended, Link, LinkError, Live, StepControl};
use crate::peer::PeerError;

/// Time between calls of `watch`.
const LOOK: Duration = Duration::from_millis(100);
/// Time in which the far end makes its file, beyond the time for an answer.
const LAID_OUT: Duration = Duration::from_secs(30);

/// A session about a disk of the far host.
pub struct Storage(Client);

impl Storage {
    /// Opens a session with a server that lets clients measure its disk. The options must name the engine of files.
    pub fn connect_unless(
        options: &ClientOptions,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self, PeerError> {
        Client::connect_unless(options, stopped).map(Self)
    }

    /// Returns the session, to stop its waits or to ask for its address.
    pub fn client(&mut self) -> &mut Client {
        &mut self.0
    }

    /// Waits until the planned end of a step, or until the user or the run ends it.
    fn watch(
        &mut self,
        plan: &StepPlan,
        watch: &mut dyn FnMut(Live) -> StepControl,
    ) -> Result<Ended, LinkError> {
        let began = Instant::now();
        let planned = plan.washout.duration() + plan.measure.duration();
        let mut ended = Ended::default();
        while began.elapsed() < planned && !ended.stopped {
            std::thread::sleep(LOOK.min(planned.saturating_sub(began.elapsed())));
            // What the far end moves is known once it has ended.
            let elapsed = began.elapsed().into();
            let live = Live { rate: Rate(0), moved: Bytes(0), setbacks: None, elapsed };
            if watch(live) == StepControl::Stop && ended.by(StepControl::Stop, live) {
                self.0.send(&Ask::Stop)?;
            }
            if let Some(answer) = self.0.receive_by(Instant::now())? {
                return Err(self.unexpected(&answer));
            }
            self.0.beat()?;
            self.0.still(GIVEN_UP)?;
        }
        Ok(ended)
    }

    fn unexpected(&mut self, _: &Answer) -> LinkError {
        self.0.out_of_turn()
    }
}

impl Link for Storage {
    fn now(&self) -> Nanos {
        self.0.now()
    }

    fn hosts(&mut self) -> Result<Vec<Host>, LinkError> {
        match self.0.request(&Ask::Facts)? {
            Answer::Facts { facts } => Ok(vec![Host { side: Side::Near, facts: *facts }]),
            other => Err(self.unexpected(&other)),
        }
    }

    fn prepare(&mut self, plan: &SetPlan) -> Result<Set, LinkError> {
        match self.0.request(&Ask::Prepare { plan: Box::new(plan.clone()) })? {
            Answer::Offered { .. } => {}
            other => return Err(self.unexpected(&other)),
        }
        self.0.send(&Ask::Connect { set: plan.id, offer: Vec::new() })?;
        match self.0.receive(GIVEN_UP + LAID_OUT)? {
            Answer::Connected { end } => Ok(Set { plan: plan.clone(), ends: vec![end] }),
            other => Err(self.unexpected(&other)),
        }
    }

    fn step(
        &mut self,
        plan: &StepPlan,
        watch: &mut dyn FnMut(Live) -> StepControl,
    ) -> Result<Step, LinkError> {
        match self.0.request(&Ask::Step { plan: plan.clone() })? {
            Answer::Armed => {}
            other => return Err(self.unexpected(&other)),
        }
        let began = self.now();
        match self.0.request(&Ask::Go)? {
            Answer::Going { .. } => {}
            other => return Err(self.unexpected(&other)),
        }
        let ended = self.watch(plan, watch)?;
        match self.0.request(&Ask::Read)? {
            Answer::Readings { end } => Ok(Step {
                plan: ended.plan(plan),
                began,
                ends: vec![end],
                clock: None,
                took: Nanos(0),
                trouble: ended
                    .stopped
                    .then(|| Trouble { side: Side::Near, what: "stopped".to_owned() }),
            }),
            other => Err(self.unexpected(&other)),
        }
    }

    fn release(&mut self, set: u32) -> Result<(), LinkError> {
        match self.0.request(&Ask::Release { set })? {
            Answer::Released => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }
}
