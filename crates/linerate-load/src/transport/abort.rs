//! The probe of a data connection without payload: it reads nothing.

use linerate_sys::socket;

use crate::Probe;
use crate::transport::line::Line;

/// Probe that ends the connection of a worker.
pub(super) struct Abort(pub(super) Line);

impl Probe for Abort {
    fn abort(&self) {
        // A connection that is closed already needs no shutdown.
        let _ = socket::shutdown(self.0.fd());
    }
}
