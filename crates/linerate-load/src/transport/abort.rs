//! The probe of a data connection without payload: it reads nothing.

use linerate_facts::Gap;
use linerate_record::Table;
use linerate_sys::socket;

use crate::Probe;
use crate::transport::line::Line;
use linerate_host::Machine;

/// Probe that ends the connection of a worker.
pub(super) struct Abort(pub(super) Line);

impl Probe for Abort {
    fn observe(&mut self, _: &dyn Machine, _: &dyn Fn() -> u64) {}

    fn take(&mut self, _: &mut Vec<Gap>) -> Vec<Table> {
        Vec::new()
    }

    fn abort(&self) {
        // A connection that is closed already needs no shutdown.
        let _ = socket::shutdown(self.0.fd());
    }
}
