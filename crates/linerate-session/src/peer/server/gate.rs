//! The gate admits clients that prove that they hold the key, and data connections that prove that they belong to a
//! session.
//!
//! The gate reads exactly the bytes that a phase needs, so that the bytes after the proof stay in the socket.

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, Scope};

use linerate_record::wire::preamble::{Access, HELLO_LEN, Hello, Kind, REPLY_LEN, Reply, VERSIONS};
use linerate_record::wire::proof::{CLAIM_LEN, Claim, Prover};
use snow::TransportState;

use super::Server;
use super::rooms::{Full, Membership};
use super::session::{self, Guest};
use crate::guests::Present;
use crate::net::Stop;
use crate::peer::handshake::{MESSAGE_LEN, Preamble, random, status};
use crate::peer::keys::Key;
use crate::strangers::{Doorman, Refusal, Stranger, group};

/// Message that is expected next on a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Hello,
    Handshake,
    Claim,
}

impl Phase {
    const fn need(self) -> usize {
        match self {
            Self::Hello => HELLO_LEN,
            Self::Handshake => MESSAGE_LEN,
            Self::Claim => CLAIM_LEN,
        }
    }
}

/// Part of a message that an unauthenticated connection has sent so far.
pub(super) struct PartialOpening {
    phase: Phase,
    preamble: Preamble,
    buffer: [u8; CLAIM_LEN],
    have: usize,
}

impl Default for PartialOpening {
    fn default() -> Self {
        Self {
            phase: Phase::Hello,
            preamble: Preamble { hello: [0; HELLO_LEN], reply: [0; REPLY_LEN] },
            buffer: [0; CLAIM_LEN],
            have: 0,
        }
    }
}

type Pending = Stranger<PartialOpening>;

/// Admits new connections. Sessions run in `scope`, which ends when the last session has ended.
pub(super) struct Gate<'scope, 'env> {
    pub(super) server: &'env Server,
    pub(super) stop: &'env Stop,
    pub(super) scope: &'scope Scope<'scope, 'env>,
    /// Number of sessions opened so far. The name of the next session contains its number.
    pub(super) begun: Cell<u64>,
}

impl Doorman for Gate<'_, '_> {
    type Received = PartialOpening;

    const LATE: Refusal = "dropped, it did not prove itself in time";
    const CROWDED: Refusal = "dropped, too many connections without proof";

    fn hear(&self, pending: &mut Pending) -> Result<bool, Refusal> {
        let received = &mut pending.received;
        let need = received.phase.need();
        match (&pending.stream).read(&mut received.buffer[received.have..need]) {
            Ok(0) => return Err("closed before it proved itself"),
            Ok(n) => received.have += n,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Err("broke before it proved itself"),
        }
        if received.have < need {
            return Ok(false);
        }
        received.have = 0;
        if received.phase == Phase::Hello {
            let access = match self.server.options.key {
                Some(_) => Access::Key,
                None => Access::Open,
            };
            return greet(pending, access).map(|()| false);
        }
        Ok(true)
    }

    fn admit(&self, pending: Pending) -> Result<(), Refusal> {
        match pending.received.phase {
            Phase::Claim => self.seat(pending),
            Phase::Hello | Phase::Handshake => self.begin_session(pending),
        }
    }
}

impl Gate<'_, '_> {
    fn begin_session(&self, pending: Pending) -> Result<(), Refusal> {
        let open = Key::open();
        let key = self.server.options.key.as_ref().unwrap_or(&open);
        let mut message = [0; MESSAGE_LEN];
        message.copy_from_slice(&pending.received.buffer[..MESSAGE_LEN]);
        let Ok((answer, noise)) = pending.received.preamble.respond(key, &message) else {
            say(&pending, &[status::WRONG_KEY]);
            return Err("refused, wrong key");
        };
        let limits = &self.server.options.limits;
        let opened = self.server.sessions.open(limits.sessions, group(pending.from));
        let membership = match opened {
            Ok(Ok(membership)) => membership,
            full => {
                say(&pending, &[status::BUSY]);
                return Err(match full {
                    Ok(Err(Full::Address)) => {
                        "refused, its address has its maximum number of sessions"
                    }
                    _ => "refused, the maximum number of sessions is open",
                });
            }
        };
        let mut reply = [status::OK; 1 + MESSAGE_LEN];
        reply[1..].copy_from_slice(&answer);
        if !say(&pending, &reply) {
            return Err("broke during the handshake");
        }
        self.spawn(pending, noise, membership)
    }

    fn spawn(
        &self,
        pending: Pending,
        noise: TransportState,
        membership: Membership,
    ) -> Result<(), Refusal> {
        let options = &self.server.options;
        self.begun.set(self.begun.get() + 1);
        let guest = Guest {
            stream: pending.stream,
            name: format!("{}: session {}", pending.from, self.begun.get()),
            from: pending.from,
            noise,
            membership,
            machine: Arc::clone(&options.machine),
            changes: options.changes.clone(),
            limits: options.limits,
            process: options.process,
            storage: options.storage.clone(),
            stop: self.stop.clone(),
            lines: self.server.lines.clone(),
        };
        let serve = move || {
            let _present = Present::enter();
            // A panic in a session has already been reported as a bug. It ends only that session.
            drop(catch_unwind(AssertUnwindSafe(|| session::serve(guest))));
        };
        Builder::new()
            .name("session".into())
            .spawn_scoped(self.scope, serve)
            .map(|_| ())
            .map_err(|_| "refused, no thread left for its session")
    }

    /// Passes a data connection to the session to which the connection proves to belong.
    fn seat(&self, pending: Pending) -> Result<(), Refusal> {
        let claim = Claim::decode(&pending.received.buffer);
        let preamble = &pending.received.preamble;
        let room = self.server.sessions.room(&claim.session);
        let room = room.ok_or("data connection refused, no such session")?;
        let secret = room.secret();
        if !preamble.verify(Prover::Near, secret, &claim, &claim.proof) {
            return Err("data connection refused, wrong proof");
        }
        if !room.expects(claim.set, claim.stream) {
            return Err("data connection refused, not expected");
        }
        if !say(&pending, &preamble.prove(Prover::Far, secret, &claim)) {
            return Err("data connection broke");
        }
        let blocking = pending.stream.set_nonblocking(false);
        blocking.map_err(|_| "data connection broke")?;
        room.admit(claim.set, claim.stream, pending.stream);
        Ok(())
    }
}

/// Answers the hello of a client, and sets the message that must follow.
fn greet(pending: &mut Pending, access: Access) -> Result<(), Refusal> {
    let received = &mut pending.received;
    received.preamble.hello.copy_from_slice(&received.buffer[..HELLO_LEN]);
    let hello = Hello::decode(&received.preamble.hello)
        .map_err(|_| "refused, it does not speak the linerate protocol")?;
    let reply = Reply { versions: VERSIONS, access, nonce: random() };
    received.preamble.reply = reply.encode();
    received.phase = match hello.kind {
        Kind::Control => Phase::Handshake,
        Kind::Data => Phase::Claim,
    };
    if !say(pending, &pending.received.preamble.reply) {
        return Err("broke during the preamble");
    }
    if VERSIONS.common(hello.versions).is_none() {
        return Err("refused, it speaks other versions of the protocol");
    }
    Ok(())
}

/// Sends a few bytes without waiting; returns false if that fails. The send buffer of a new connection has room for
/// these bytes; a connection without that room is dropped.
fn say(pending: &Pending, bytes: &[u8]) -> bool {
    matches!((&pending.stream).write(bytes), Ok(n) if n == bytes.len())
}
