//! Tests with clients that hold the key and misbehave, or vanish, at every step of the protocol.

use std::io::Write;

use linerate_plan::path::Direction;
use linerate_plan::{Pattern, SetPlan};
use linerate_record::wire::message::{Answer, Ask, Secret};
use linerate_record::wire::preamble::{HELLO_LEN, Hello, Kind, REPLY_LEN, VERSIONS};
use linerate_record::wire::proof::{CLAIM_LEN, Claim, PROOF_LEN, Prover};
use linerate_units::{Bytes, Nanos};
use rustix::net::sockopt;

use super::place::larger;
use super::sessions::{step, stream};
use super::*;
use crate::peer::channel::{Channel, ChannelError};
use crate::peer::client::{RawDialler, hold};
use crate::peer::handshake::Preamble;
use linerate_load::transport::Lines;

/// A session whose messages the test sends itself.
struct Raw {
    channel: Channel,
    address: SocketAddr,
    session: [u8; 16],
    secret: Secret,
}

impl Raw {
    fn open(server: &Harness) -> Self {
        Self::open_for(server, "tcp")
    }

    fn open_for(server: &Harness, engine: &str) -> Self {
        let channel = hold(&target(server.address), server.key.as_ref().unwrap()).unwrap();
        let mut raw =
            Self { channel, address: server.address, session: [0; 16], secret: Secret([0; 32]) };
        let hello = Ask::Hello {
            linerate: "\u{1b}[31mtest".into(),
            engine: engine.into(),
            boot_id: String::new(),
        };
        let Answer::Welcome { session, secret, .. } = raw.ask(&hello) else {
            panic!("no welcome");
        };
        (raw.session, raw.secret) = (session, secret);
        raw
    }

    fn tell(&mut self, ask: &Ask) {
        let bytes = ask.encode().unwrap();
        self.channel.send(&bytes, Instant::now() + LONG).unwrap();
    }

    fn hear(&mut self) -> Result<Answer, ChannelError> {
        let bytes = self.channel.receive(Instant::now() + LONG)?;
        Ok(Answer::decode(&bytes).unwrap())
    }

    fn ask(&mut self, ask: &Ask) -> Answer {
        self.tell(ask);
        self.hear().unwrap()
    }

    /// Asserts that the server sends the reason `why` and closes the session.
    fn is_thrown_out(&mut self, why: &str) {
        match self.hear() {
            Ok(Answer::Bye { what }) => assert!(what.contains(why), "{what}"),
            // The server closed before it had read all that was sent,
            // so the kernel discarded the server's last message.
            Err(ChannelError::Closed) => {}
            other => panic!("{other:?}"),
        }
        assert!(matches!(self.hear(), Err(ChannelError::Closed)));
    }

    fn lines(&self) -> RawDialler {
        RawDialler {
            address: self.address,
            round_trip: None,
            session: self.session,
            secret: self.secret,
            stop: Arc::default(),
            source: None,
            waiting: super::super::client::waiting::Waiting::default(),
        }
    }

    fn claim(&self, set: u32, stream: u32) -> Claim {
        Claim { session: self.session, set, stream, nonce: [3; 16], proof: [0; PROOF_LEN] }
    }

    fn prepared(&mut self, plan: &SetPlan) {
        let answer = self.ask(&Ask::Prepare { plan: plan.clone().into() });
        assert!(matches!(answer, Answer::Offered { .. }), "{answer:?}");
    }

    fn connected(&mut self, plan: &SetPlan) -> Vec<std::os::fd::OwnedFd> {
        self.prepared(plan);
        let (set, offer) = (plan.id, Vec::new());
        self.tell(&Ask::Connect { set, offer });
        let mut dialler = self.lines();
        let lines = dialler.lines(set, plan.knobs.streams, &mut |_, _| Ok(()));
        let lines = lines.unwrap();
        let answer = self.hear().unwrap();
        assert!(matches!(answer, Answer::Connected { .. }), "{answer:?}");
        lines
    }
}

/// Opens a data connection and reads the server's reply; returns the preamble.
fn data(server: &Harness) -> (TcpStream, Preamble) {
    let mut stream = server.dial();
    let hello = Hello { versions: VERSIONS, kind: Kind::Data };
    let hello: [u8; HELLO_LEN] = hello.encode();
    stream.write_all(&hello).unwrap();
    let mut reply = [0; REPLY_LEN];
    stream.read_exact(&mut reply).unwrap();
    (stream, Preamble { hello, reply })
}

/// Sends a claim; returns the server's proof, or `None` if the server sent none.
fn claim(mut stream: &TcpStream, claim: &[u8; CLAIM_LEN]) -> Option<[u8; PROOF_LEN]> {
    stream.write_all(claim).unwrap();
    let mut proof = [0; PROOF_LEN];
    stream.read_exact(&mut proof).ok().map(|()| proof)
}

#[test]
fn a_data_connection_needs_the_proof_of_its_own_session() {
    let server = Harness::keyed();
    let (mut own, mut other) = (Raw::open(&server), Raw::open(&server));
    own.prepared(&stream(0, Direction::Forward, 1));
    other.prepared(&stream(0, Direction::Forward, 1));
    let attempt = |mut wanted: Claim, secret: &Secret| {
        let (stream, preamble) = data(&server);
        wanted.proof = preamble.prove(Prover::Near, secret, &wanted);
        let proof = claim(&stream, &wanted.encode());
        proof.map(|p| assert!(preamble.verify(Prover::Far, secret, &wanted, &p)))
    };
    assert_eq!(attempt(own.claim(0, 0), &other.secret), None);
    server.logged("wrong proof");
    assert_eq!(attempt(own.claim(0, 1), &own.secret), None);
    assert_eq!(attempt(own.claim(1, 0), &own.secret), None);
    server.logged("not expected");
    let nobody = Claim { session: [0; 16], ..own.claim(0, 0) };
    assert_eq!(attempt(nobody, &own.secret), None);
    server.logged("no such session");
    assert_eq!(attempt(own.claim(0, 0), &own.secret), Some(()));
    // A second claim for the same stream is refused.
    assert_eq!(attempt(own.claim(0, 0), &own.secret), None);
    assert_eq!(attempt(other.claim(0, 0), &other.secret), Some(()));
}

#[test]
fn a_recorded_claim_proves_nothing() {
    let server = Harness::keyed();
    let mut raw = Raw::open(&server);
    raw.prepared(&stream(0, Direction::Forward, 2));
    let mut recorded = raw.claim(0, 0);
    let (first, preamble) = data(&server);
    recorded.proof = preamble.prove(Prover::Near, &raw.secret, &recorded);
    let (replay, _) = data(&server);
    assert_eq!(claim(&replay, &recorded.encode()), None);
    assert!(claim(&first, &recorded.encode()).is_some());
}

#[test]
fn messages_that_make_no_sense_end_the_session_alone() {
    let server = Harness::keyed();
    let mut bystander = Raw::open(&server);
    let plan = stream(0, Direction::Forward, 1);
    for (ask, why) in [
        (Ask::Go, "unexpected `go`"),
        (Ask::Read, "unexpected `read`"),
        (Ask::Stop, "unexpected `stop`"),
        (Ask::Disarm, "unexpected `disarm`"),
    ] {
        let mut raw = Raw::open(&server);
        raw.connected(&plan);
        raw.tell(&ask);
        raw.is_thrown_out(why);
    }
    for bytes in [vec![0xFF; 9], vec![], vec![0x9F; 99]] {
        let mut raw = Raw::open(&server);
        raw.channel.send(&bytes, Instant::now() + LONG).unwrap();
        raw.is_thrown_out("violated the protocol");
    }
    assert!(matches!(bystander.ask(&Ask::Ping), Answer::Pong { .. }));
}

#[test]
fn a_message_too_large_ends_the_session() {
    let server = Harness::keyed();
    let mut raw = Raw::open(&server);
    // The server may close the connection before all bytes are sent.
    let _ = raw.channel.send(&vec![0; 1 << 20], Instant::now() + LONG);
    assert!(eventually(|| server.server.sessions() == 0));
    server.logged("message of more than 65536 bytes");
    server.still_serves();
}

#[test]
fn bytes_that_are_not_sealed_end_the_session() {
    let server = Harness::keyed();
    for bytes in
        [&[0, 0][..], &[0, 20, 1, 2], &[0, 17, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]]
    {
        let raw = Raw::open(&server);
        raw.channel.stream().write_all(bytes).unwrap();
        // The server waits for the announced bytes, but no longer than the client's connection exists.
        drop(raw);
        assert!(eventually(|| server.server.sessions() == 0));
    }
    server.logged("not encrypted");
    server.still_serves();
}

#[test]
fn a_hello_is_awaited_as_long_as_a_proof() {
    let server = Harness::hasty(Duration::from_millis(200));
    let mut held = None;
    assert!(eventually(|| {
        held = hold(&target(server.address), server.key.as_ref().unwrap()).ok();
        held.is_some()
    }));
    assert!(eventually(|| server.server.sessions() == 0));
    drop(held);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let server = Harness::keyed();
    let mut raw = Raw::open(&server);
    let plan = stream(0, Direction::Forward, 1);
    let lines = raw.connected(&plan);
    let (set, offer) = (0, Vec::new());
    let pings = SetPlan {
        id: 1,
        pattern: Pattern::PingPong { size: Bytes(u64::MAX), interval: Nanos(u64::MAX) },
        ..plan.clone()
    };
    for ask in [
        Ask::Prepare { plan: plan.into() },
        Ask::Prepare { plan: pings.into() },
        Ask::Connect { set, offer },
        Ask::Connect { set: 7, offer: vec![1] },
        Ask::Step { plan: step(&[], 1) },
        Ask::Step { plan: step(&[7], 1) },
        Ask::Step { plan: step(&[0, 0], 1) },
        Ask::Step { plan: step(&[0], u64::MAX / 1_000_000) },
    ] {
        let answer = raw.ask(&ask);
        assert!(matches!(answer, Answer::Refused { .. }), "{ask:?}: {answer:?}");
    }
    assert!(matches!(raw.ask(&Ask::Release { set: 9 }), Answer::Released));
    drop(lines);
}

#[test]
fn a_set_that_the_engine_refuses_gives_back_its_place() {
    let mut limits = Limits::default();
    limits.plan.streams = 400;
    let server = Harness::start(Some(Key::generate()), limits);
    let (mut raw, mut other) = (Raw::open(&server), Raw::open(&server));
    let all = limits.plan.streams;
    let quarter = |id| stream(id, Direction::Forward, all / 4);
    (0..2).for_each(|id| raw.prepared(&quarter(id)));
    let mut refused = quarter(2);
    // This server allows no changes.
    refused.knobs.host = Some(larger());
    let Answer::Refused { what, .. } = raw.ask(&Ask::Prepare { plan: refused.into() }) else {
        panic!("nobody allowed the change");
    };
    assert!(what.contains("may not be changed"), "{what}");
    // All sessions of one address together may use one and a half times as much as one session.
    (0..4).for_each(|id| other.prepared(&quarter(id)));
    let one_more = other.ask(&Ask::Prepare { plan: quarter(4).into() });
    assert!(matches!(one_more, Answer::Refused { .. }), "{one_more:?}");
}

#[test]
fn streams_of_datagrams_count_with_what_their_receivers_make() {
    let server = Harness::keyed();
    for (engine, good) in [("tcp", true), ("udp", false)] {
        let mut raw = Raw::open_for(&server, engine);
        let mut prepared = 0;
        let refused = (0..32).find_map(|id| {
            let mut plan = stream(id, Direction::Forward, 64);
            (plan.knobs.write_size, plan.knobs.read_size) = (Bytes(64), Bytes(64));
            if let Answer::Refused { what, .. } = raw.ask(&Ask::Prepare { plan: plan.into() }) {
                return Some(what);
            }
            prepared += 1;
            None
        });
        assert_eq!(refused.is_none(), good, "{engine}: {refused:?}");
        if let Some(what) = refused {
            assert!(what.contains("in all sets of a session"), "{what}");
            // A session may use 4 GiB, and each receiver takes a little over 2 MiB of them.
            assert!((24..32).contains(&prepared), "{prepared}");
        }
    }
}

/// Runs a client that prepares a set with a connection for each round trip, but opens no such connection. In the
/// meantime `tell` runs. Returns the server's refusal.
fn makes_no_connection(server: &Harness, tell: impl FnOnce(&Harness, &mut Raw)) -> String {
    let mut raw = Raw::open_for(server, "connect");
    let mut plan = stream(0, Direction::Forward, 1);
    plan.pattern = Pattern::PingPong { size: Bytes(1), interval: Nanos(0) };
    raw.prepared(&plan);
    let (set, offer) = (0, Vec::new());
    raw.tell(&Ask::Connect { set, offer });
    let mut lines = raw.lines().lines(0, 1, &mut |_, _| Ok(())).unwrap();
    let mut line = TcpStream::from(lines.remove(0));
    // The server listens and sends its port.
    line.read_exact(&mut [0; 2]).unwrap();
    tell(server, &mut raw);
    match raw.hear() {
        Ok(Answer::Refused { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_first_connection_is_not_waited_for_once_the_server_or_the_client_gives_up() {
    let server = Harness::keyed();
    let released = makes_no_connection(&server, |_, raw| raw.tell(&Ask::Release { set: 0 }));
    assert!(released.contains("was given up"), "{released}");
    server.still_serves();
    let stopped = makes_no_connection(&server, |server, _| server.stop.request());
    assert!(stopped.contains("was given up"), "{stopped}");
}

/// Starts a server with these time limits: for sending an answer, and for the client's next request.
fn impatient(answer: Duration, idle: Duration) -> Harness {
    let limits = Limits { idle, answer, ..Limits::default() };
    Harness::start(Some(Key::generate()), limits)
}

#[test]
fn a_client_that_asks_and_reads_no_answer_loses_its_session() {
    let server = impatient(Duration::from_millis(300), LONG);
    let mut raw = Raw::open(&server);
    let facts = Ask::Facts.encode().unwrap();
    // Sends until the buffers of both ends are full and the server has closed the connection.
    while raw.channel.send(&facts, Instant::now() + LONG).is_ok() {}
    assert!(eventually(|| server.server.sessions() == 0));
    server.logged("the client read no answer for 300 ms");
    server.still_serves();
}

#[test]
fn a_client_that_asks_for_readings_and_reads_none_loses_its_session() {
    let server = impatient(LONG, Duration::from_secs(1));
    let mut raw = Raw::open(&server);
    let lines = raw.connected(&stream(0, Direction::Forward, 2));
    let plan = step(&[0], 60_000);
    assert!(matches!(raw.ask(&Ask::Step { plan }), Answer::Armed));
    assert!(matches!(raw.ask(&Ask::Go), Answer::Going { .. }));
    raw.tell(&Ask::Read);
    // Without its data connections, the step is over.
    drop(lines);
    assert!(eventually(|| server.server.sessions() == 0));
    server.logged("the client sent no request for 1 s after the last answer");
    server.still_serves();
}

/// Stage of the protocol at which a client vanishes.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Stage {
    Dialled,
    Greeted,
    Held,
    Welcomed,
    Prepared,
    Connecting,
    HalfConnected,
    Connected,
    Armed,
    Going,
    Stopped,
    Reading,
}

const STAGES: [Stage; 12] = [
    Stage::Dialled,
    Stage::Greeted,
    Stage::Held,
    Stage::Welcomed,
    Stage::Prepared,
    Stage::Connecting,
    Stage::HalfConnected,
    Stage::Connected,
    Stage::Armed,
    Stage::Going,
    Stage::Stopped,
    Stage::Reading,
];

/// Runs a client up to `stage`, and closes its connections: in order (FIN), or with a reset, as after a crash.
fn vanish(server: &Harness, stage: Stage, direction: Direction, reset: bool) {
    let cut = |stream: &TcpStream| {
        let linger = reset.then_some(Duration::ZERO);
        sockopt::set_socket_linger(stream, linger).unwrap();
    };
    if stage <= Stage::Greeted {
        let mut stream = server.dial();
        if stage == Stage::Greeted {
            stream.write_all(&[b'L'; HELLO_LEN][..HELLO_LEN / 2]).unwrap();
        }
        return cut(&stream);
    }
    if stage == Stage::Held {
        let held = hold(&target(server.address), server.key.as_ref().unwrap()).unwrap();
        return cut(held.stream());
    }
    let mut raw = Raw::open(server);
    let plan = stream(0, direction, 2);
    let mut lines = Vec::new();
    if stage >= Stage::Connected {
        lines = raw.connected(&plan);
    } else if stage >= Stage::Prepared {
        raw.prepared(&plan);
    }
    if (Stage::Connecting..Stage::Connected).contains(&stage) {
        let (set, offer) = (0, Vec::new());
        raw.tell(&Ask::Connect { set, offer });
        if stage == Stage::HalfConnected {
            let one = raw.lines().lines(0, 1, &mut |_, _| Ok(()));
            lines.extend(one.unwrap());
        }
    }
    if stage >= Stage::Armed {
        let plan = step(&[0], 60_000);
        assert!(matches!(raw.ask(&Ask::Step { plan }), Answer::Armed));
    }
    if stage >= Stage::Going {
        assert!(matches!(raw.ask(&Ask::Go), Answer::Going { .. }));
    }
    if stage >= Stage::Stopped {
        raw.tell(&Ask::Stop);
    }
    if stage >= Stage::Reading {
        raw.tell(&Ask::Read);
    }
    cut(raw.channel.stream());
}

#[test]
fn a_client_that_vanishes_at_any_step_leaves_nothing() {
    let server = Harness::keyed();
    for stage in STAGES {
        for (direction, reset) in
            [(Direction::Forward, true), (Direction::Reverse, true), (Direction::Reverse, false)]
        {
            vanish(&server, stage, direction, reset);
            assert!(
                eventually(|| server.server.sessions() == 0),
                "{stage:?} {direction:?} {reset}"
            );
        }
    }
    server.still_serves();
}
