//! The gate: all connections that have proved nothing yet, in one poll loop without threads.
//!
//! Each has a small budget of time and bytes. Reads take exactly what a phase needs, so that
//! nothing of what follows the proof is swallowed here.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use linerate_core::wire::preamble::{Access, HELLO_LEN, Hello, Kind, REPLY_LEN, Reply, VERSIONS};
use linerate_core::wire::proof::{CLAIM_LEN, Claim, Prover};
use rustix::event::{PollFd, PollFlags, poll};
use snow::TransportState;

use super::rooms::Membership;
use super::session::{self, Guest};
use super::{Log, Server};
use crate::peer::Stop;
use crate::peer::channel::timespec;
use crate::peer::handshake::{MESSAGE_LEN, Preamble, random, status};
use crate::peer::keys::Key;

/// How long no connection is accepted after the system had no descriptor left.
const REST: Duration = Duration::from_millis(100);
/// Log lines about strangers in one second; a flood of them must not fill the admin's disk.
const LINES_PER_SECOND: u32 = 10;

/// What a connection is expected to say next.
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

struct Pending {
    stream: TcpStream,
    from: IpAddr,
    deadline: Instant,
    phase: Phase,
    preamble: Preamble,
    buffer: [u8; CLAIM_LEN],
    have: usize,
}

/// Why a connection is not kept.
type Refusal = &'static str;

pub(super) struct Gate<'a> {
    server: &'a Server,
    stop: &'a Stop,
    // In the order of arrival.
    pending: Vec<Pending>,
    rest_until: Option<Instant>,
    lines: Lines,
}

impl<'a> Gate<'a> {
    pub(super) fn new(server: &'a Server, stop: &'a Stop) -> Self {
        Self {
            server,
            stop,
            pending: Vec::new(),
            rest_until: None,
            lines: Lines::new(Arc::clone(&server.options.log)),
        }
    }

    /// Until the stop is requested.
    pub(super) fn run(&mut self) -> io::Result<()> {
        while !self.stop.requested() {
            let (arrivals, ready) = self.wait()?;
            // From the last on, so that removing one does not move the others.
            for at in ready.into_iter().rev() {
                self.advance(at);
            }
            self.expire();
            for listener in arrivals {
                self.accept(listener);
            }
        }
        Ok(())
    }

    /// Waits for something to do: listeners with arrivals, and pending connections with bytes.
    fn wait(&mut self) -> io::Result<(Vec<usize>, Vec<usize>)> {
        let now = Instant::now();
        self.rest_until = self.rest_until.filter(|until| *until > now);
        let listeners = match self.rest_until {
            Some(_) => &[],
            None => &self.server.listeners[..],
        };
        let deadlines = self.pending.iter().map(|p| p.deadline);
        let timeout = deadlines
            .chain(self.rest_until)
            .min()
            .map(|d| timespec(d.saturating_duration_since(now)));
        let mut fds = vec![PollFd::new(self.stop, PollFlags::IN)];
        fds.extend(listeners.iter().map(|l| PollFd::new(l, PollFlags::IN)));
        let connections = self.pending.iter().map(|p| &p.stream);
        fds.extend(connections.map(|s| PollFd::new(s, PollFlags::IN)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let ready = |fds: &[PollFd<'_>]| {
            let all = fds.iter().enumerate();
            all.filter(|(_, f)| !f.revents().is_empty())
                .map(|(i, _)| i)
                .collect()
        };
        let (listening, connected) = fds[1..].split_at(listeners.len());
        Ok((ready(listening), ready(connected)))
    }

    fn accept(&mut self, listener: usize) {
        // One at a time: the loop comes back for more, after it has looked at the others.
        match self.server.listeners[listener].accept() {
            Ok((stream, from)) => {
                let from = from.ip().to_canonical();
                if stream.set_nonblocking(true).is_ok() {
                    self.make_room(from);
                    self.pending.push(Pending {
                        stream,
                        from,
                        deadline: Instant::now() + self.server.options.limits.proof,
                        phase: Phase::Hello,
                        preamble: Preamble {
                            hello: [0; HELLO_LEN],
                            reply: [0; REPLY_LEN],
                        },
                        buffer: [0; CLAIM_LEN],
                        have: 0,
                    });
                }
            }
            Err(e) if exhausted(&e) => {
                // The listener stays readable: without a rest this would be a busy loop.
                self.rest_until = Some(Instant::now() + REST);
                self.lines.say(&format!("cannot take a connection: {e}"));
                if !self.pending.is_empty() {
                    self.drop_pending(0, "dropped to make room");
                }
            }
            // The other side gave up in the meantime, or another thread was faster.
            Err(_) => {}
        }
    }

    fn make_room(&mut self, from: IpAddr) {
        let limits = &self.server.options.limits;
        let newcomer = group(from);
        let same = |p: &Pending| group(p.from) == newcomer;
        let crowd = self.pending.iter().filter(|p| same(p)).count();
        let oldest = if crowd >= limits.pending_per_address {
            self.pending.iter().position(same)
        } else {
            (self.pending.len() >= limits.pending).then_some(0)
        };
        if let Some(at) = oldest {
            self.drop_pending(at, "dropped, too many connections without proof");
        }
    }

    fn drop_pending(&mut self, at: usize, why: Refusal) {
        let pending = self.pending.remove(at);
        self.lines.say(&format!("{}: {why}", pending.from));
    }

    fn expire(&mut self) {
        let now = Instant::now();
        while let Some(at) = self.pending.iter().position(|p| p.deadline <= now) {
            self.drop_pending(at, "dropped, it did not prove itself in time");
        }
    }

    /// Reads what is there for one connection, and acts when a phase is complete.
    fn advance(&mut self, at: usize) {
        let pending = &mut self.pending[at];
        let need = pending.phase.need();
        match (&pending.stream).read(&mut pending.buffer[pending.have..need]) {
            Ok(0) => return self.drop_pending(at, "closed before it proved itself"),
            Ok(n) => pending.have += n,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            Err(_) => return self.drop_pending(at, "broke before it proved itself"),
        }
        if pending.have < need {
            return;
        }
        pending.have = 0;
        match pending.phase {
            Phase::Hello => {
                let access = match self.server.options.key {
                    Some(_) => Access::Key,
                    None => Access::Open,
                };
                if let Err(why) = pending.greet(access) {
                    self.drop_pending(at, why);
                }
            }
            Phase::Handshake => {
                let pending = self.pending.remove(at);
                let from = pending.from;
                if let Err(why) = self.begin_session(pending) {
                    self.lines.say(&format!("{from}: {why}"));
                }
            }
            Phase::Claim => {
                let pending = self.pending.remove(at);
                let from = pending.from;
                if let Err(why) = self.seat(pending) {
                    self.lines.say(&format!("{from}: {why}"));
                }
            }
        }
    }

    fn begin_session(&self, pending: Pending) -> Result<(), Refusal> {
        let open = Key::open();
        let key = self.server.options.key.as_ref().unwrap_or(&open);
        let mut message = [0; MESSAGE_LEN];
        message.copy_from_slice(&pending.buffer[..MESSAGE_LEN]);
        let Ok((answer, noise)) = pending.preamble.respond(key, &message) else {
            pending.say(&[status::WRONG_KEY]);
            return Err("refused, wrong key");
        };
        let limits = &self.server.options.limits;
        let Ok(Some(membership)) = self.server.sessions.open(limits.sessions) else {
            pending.say(&[status::BUSY]);
            return Err("refused, as many sessions as allowed are open");
        };
        let mut reply = [status::OK; 1 + MESSAGE_LEN];
        reply[1..].copy_from_slice(&answer);
        if !pending.say(&reply) {
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
        let guest = Guest {
            stream: pending.stream,
            from: pending.from,
            noise,
            membership,
            machine: Arc::clone(&options.machine),
            changes: options.changes.clone(),
            limits: options.limits,
            stop: self.stop.clone(),
            log: Arc::clone(&options.log),
        };
        thread::Builder::new()
            .name("session".into())
            .spawn(move || session::serve(guest))
            .map(|_| ())
            .map_err(|_| "refused, no thread left for its session")
    }

    /// Hands a data connection that proves its session to the room of that session.
    fn seat(&self, pending: Pending) -> Result<(), Refusal> {
        let claim = Claim::decode(&pending.buffer);
        let preamble = &pending.preamble;
        let room = self.server.sessions.room(&claim.session);
        let room = room.ok_or("data connection refused, no such session")?;
        let secret = room.secret();
        if !preamble.verify(Prover::Near, secret, &claim, &claim.proof) {
            return Err("data connection refused, wrong proof");
        }
        if !room.expects(claim.set, claim.stream) {
            return Err("data connection refused, not expected");
        }
        if !pending.say(&preamble.prove(Prover::Far, secret, &claim)) {
            return Err("data connection broke");
        }
        let blocking = pending.stream.set_nonblocking(false);
        blocking.map_err(|_| "data connection broke")?;
        room.admit(claim.set, claim.stream, pending.stream);
        Ok(())
    }
}

impl Pending {
    /// Answers the hello, and turns to what must follow it.
    fn greet(&mut self, access: Access) -> Result<(), Refusal> {
        self.preamble
            .hello
            .copy_from_slice(&self.buffer[..HELLO_LEN]);
        let hello = Hello::decode(&self.preamble.hello)
            .map_err(|_| "refused, it does not speak the linerate protocol")?;
        let reply = Reply {
            versions: VERSIONS,
            access,
            nonce: random(),
        };
        self.preamble.reply = reply.encode();
        if !self.say(&self.preamble.reply) {
            return Err("broke during the preamble");
        }
        if VERSIONS.common(hello.versions).is_none() {
            return Err("refused, it speaks other versions of the protocol");
        }
        self.phase = match hello.kind {
            Kind::Control => Phase::Handshake,
            Kind::Data => Phase::Claim,
        };
        Ok(())
    }

    /// Sends a few bytes. The send buffer of a young connection takes them at once; a connection
    /// where it does not is not worth waiting for.
    fn say(&self, bytes: &[u8]) -> bool {
        matches!((&self.stream).write(bytes), Ok(n) if n == bytes.len())
    }
}

/// Addresses that one party can have many of count as one.
fn group(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

fn exhausted(e: &io::Error) -> bool {
    use rustix::io::Errno;
    let codes = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    e.raw_os_error()
        .is_some_and(|code| codes.iter().any(|c| c.raw_os_error() == code))
}

/// Log lines about strangers, so many in a second.
struct Lines {
    log: Log,
    second: Instant,
    said: u32,
    kept_back: u32,
}

impl Lines {
    fn new(log: Log) -> Self {
        Self {
            log,
            second: Instant::now(),
            said: 0,
            kept_back: 0,
        }
    }

    fn say(&mut self, line: &str) {
        if self.second.elapsed() >= Duration::from_secs(1) {
            if self.kept_back > 0 {
                (self.log)(&format!("{} more lines like these", self.kept_back));
            }
            (self.second, self.said, self.kept_back) = (Instant::now(), 0, 0);
        }
        if self.said < LINES_PER_SECOND {
            self.said += 1;
            (self.log)(line);
        } else {
            self.kept_back += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_network_of_addresses_is_one_group() {
        let group = |text: &str| group(text.parse().unwrap());
        assert_eq!(group("fe80::1"), group("fe80::ffff:1:2:3"));
        assert_ne!(group("fe80:0:0:1::1"), group("fe80::1"));
        assert_ne!(group("10.0.0.1"), group("10.0.0.2"));
    }

    #[test]
    fn a_flood_of_lines_is_counted_not_written() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let mut gate = Lines::new(Arc::new(move |l: &str| {
            sink.lock().unwrap().push(l.to_owned());
        }));
        for _ in 0..LINES_PER_SECOND + 5 {
            gate.say("x");
        }
        assert_eq!(lines.lock().unwrap().len(), LINES_PER_SECOND as usize);
        gate.second = gate.second.checked_sub(Duration::from_secs(1)).unwrap();
        gate.say("y");
        let lines = lines.lock().unwrap();
        assert_eq!(lines[lines.len() - 2..], ["5 more lines like these", "y"]);
    }
}
