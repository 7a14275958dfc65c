//! The gate assigns new connections to tests by the cookies that they send.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{TrySendError, sync_channel};
use std::thread::{Builder, Scope};

use linerate_record::iperf3::{COOKIE_LEN, Cookie, STREAMS_MAX, State};

use super::session::Test;
use super::{Seated, Server};
use crate::net::Stop;
use crate::strangers::{Doorman, Refusal, Stranger};

/// Part of a cookie that a new connection has sent so far.
pub(super) struct PartialCookie {
    cookie: Cookie,
    have: usize,
}

impl Default for PartialCookie {
    fn default() -> Self {
        Self { cookie: [0; COOKIE_LEN], have: 0 }
    }
}

/// Assigns connections to tests. The threads of the tests run in `scope`.
pub(super) struct Gate<'scope, 'env> {
    pub(super) server: &'env Server,
    pub(super) stop: &'env Stop,
    pub(super) scope: &'scope Scope<'scope, 'env>,
}

impl Doorman for Gate<'_, '_> {
    type Received = PartialCookie;

    const LATE: Refusal = "dropped, it did not send a cookie in time";
    const CROWDED: Refusal = "dropped, too many silent connections";

    fn hear(&self, pending: &mut Stranger<PartialCookie>) -> Result<bool, Refusal> {
        let received = &mut pending.received;
        match (&pending.stream).read(&mut received.cookie[received.have..]) {
            Ok(0) => return Err("closed before it sent a cookie"),
            Ok(n) => received.have += n,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Err("broke before it sent a cookie"),
        }
        Ok(received.have == COOKIE_LEN)
    }

    /// Passes a connection to the running test if the cookies match. If no test runs, the connection starts one.
    fn admit(&self, pending: Stranger<PartialCookie>) -> Result<(), Refusal> {
        let cookie = pending.received.cookie;
        let mut slot = self.server.slot.lock();
        let Some(seated) = &*slot else {
            let (streams, seats) = sync_channel(2 * STREAMS_MAX as usize);
            *slot = Some(Seated { cookie, streams });
            drop(slot);
            return self.begin(Test {
                stream: pending.stream,
                from: pending.from,
                seats,
                server: self.server,
                stop: self.stop,
            });
        };
        if seated.cookie != cookie {
            deny(&pending.stream);
            return Err("refused, another test runs");
        }
        // If the test needs no more streams, the connection is denied and closed.
        if let Err(TrySendError::Full(stream) | TrySendError::Disconnected(stream)) =
            seated.streams.try_send(pending.stream)
        {
            deny(&stream);
        }
        Ok(())
    }
}

impl<'env> Gate<'_, 'env> {
    fn begin(&self, test: Test<'env>) -> Result<(), Refusal> {
        let thread = Builder::new().name("iperf3".into());
        // A panic in a test has already been reported as a bug. It ends only that test.
        let serve = || drop(catch_unwind(AssertUnwindSafe(|| test.serve())));
        let begun = thread.spawn_scoped(self.scope, serve).map(drop);
        begun.map_err(|_| {
            self.server.slot.leave();
            "refused, no thread left for its test"
        })
    }
}

/// Informs a client that another test is running. The send buffer of a new connection has room for one byte.
fn deny(mut stream: &TcpStream) {
    let _ = stream.write(&[State::AccessDenied.encode()]);
}
