//! The probe of a data connection that carries no payload: it has no counters and can only abort.

use linerate_sys::socket;

use crate::Probe;
use crate::transport::line::Line;

/// Probe that shuts down the data connection of a worker when a step is aborted.
pub(super) struct Abort(pub(super) Line);

impl Probe for Abort {
    fn abort(&self) {
        // A connection that is closed already needs no shutdown.
        let _ = socket::shutdown(self.0.fd());
    }
}
