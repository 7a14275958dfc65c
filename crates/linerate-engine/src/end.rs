//! One end of a path: its sets of connections and the steps that run on them.
//!
//! Both the near end (the client of a session) and the far end (the server's side of it) own one.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::facts::HostFacts;
use linerate_core::plan::{SetPlan, Side, StepPlan};
use linerate_core::record::{EndReadings, SetEnd};

use crate::host::Machine;
use crate::link::Live;
use crate::load::{Lines, LoadError, Offer};

/// One end of a path.
pub struct LocalEnd {}

impl LocalEnd {
    /// An end without sets. `toward` is the address of the other end: the port that the route to
    /// it leaves by is the one that is watched.
    pub fn new(_side: Side, _engine: &str, _machine: Arc<dyn Machine>, _toward: IpAddr) -> Self {
        todo!()
    }

    /// Facts of this host.
    pub fn facts(&mut self) -> HostFacts {
        todo!()
    }

    /// Says that both ends share one machine: the near end then takes CPUs from the first on, the
    /// far end from the last on.
    pub fn share_machine(&mut self, _shared: bool) {
        todo!()
    }

    /// Prepares a set; the offer goes to the other end.
    pub fn prepare(&mut self, _plan: &SetPlan) -> Result<Offer, LoadError> {
        todo!()
    }

    /// Connects a prepared set to the other end's offer.
    pub fn connect(
        &mut self,
        _set: u32,
        _offer: &Offer,
        _lines: &mut dyn Lines,
    ) -> Result<SetEnd, LoadError> {
        todo!()
    }

    /// Closes a set; unknown ids are ignored.
    pub fn release(&mut self, _set: u32) {
        todo!()
    }

    /// Starts the threads of a step and takes the first row of every table; payload flows only
    /// after [`Running::go`].
    pub fn arm(&mut self, _plan: &StepPlan) -> Result<Running, LoadError> {
        todo!()
    }
}

/// A step in progress on one end. Dropping it aborts it.
pub struct Running {}

impl Running {
    /// Opens the barrier: the step's clock starts.
    pub fn go(&mut self) {
        todo!()
    }

    /// Waits up to `wait`; true once all threads have ended.
    pub fn done(&mut self, _wait: Duration) -> bool {
        todo!()
    }

    /// What is seen right now.
    pub fn live(&self) -> Live {
        todo!()
    }

    /// Ends the step early and in order: senders put their end marks now.
    pub fn stop(&self) {
        todo!()
    }

    /// Ends the step at once: connections are shut down, their sets are lost.
    pub fn abort(&self) {
        todo!()
    }

    /// Joins the threads (never longer than the drain deadline, 3 s after the step's end) and
    /// returns what was read.
    pub fn finish(self) -> EndReadings {
        todo!()
    }
}
