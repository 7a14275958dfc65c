//! Tests of the iperf3 client and server over real sockets on loopback, with each other and with peers that break the
//! rules. No test asserts a duration.

mod datagrams;
mod fakes;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_facts::Gap;
use linerate_judge::model::{Once, once as derived};
use linerate_plan::path::{Direction, Side};
use linerate_plan::{Knobs, Pattern, Plan, Purpose, SetPlan, StepPlan};
use linerate_record::iperf3::{COOKIE_LEN, Protocol, Refusal, State, WRITE_MAX, frame};
use linerate_record::{End, Record, Total};
use linerate_units::{Nanos, Rate};

use super::client::ClientError;
use super::server::{Limits, Server, ServerOptions};
use crate::iperf3::link::{Iperf3, Options};
use crate::link::{Link as _, LinkError, StepControl};
use crate::peer::Stop;
use crate::run::{Label, once};
use linerate_host::Live;
use linerate_judge::event::{Event, RunControl, Sink};

/// Long enough for anything that should happen at all on a busy machine.
const LONG: Duration = Duration::from_secs(20);
/// Length of a test in which every part of a test can happen.
const TEST: Nanos = Nanos::from_millis(400);

/// Returns a TCP listener and a UDP socket at the same port number. If
/// the UDP port is in use by another test, another number is tried.
fn both_ports() -> (TcpListener, UdpSocket) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        if let Ok(door) = UdpSocket::bind(listener.local_addr().unwrap()) {
            return (listener, door);
        }
    }
}

/// An iperf3 server on loopback, which is stopped when this value is dropped.
struct Harness {
    address: SocketAddr,
    stop: Stop,
    lines: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Harness {
    fn start(limits: Limits) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let server = Server::bind(ServerOptions {
            listen: vec![IpAddr::from(Ipv4Addr::LOCALHOST)],
            port: 0,
            allow: Vec::new(),
            limits,
            machine: Arc::new(Live::new()),
            log: Arc::new(move |line| sink.lock().unwrap().push(line.to_owned())),
        });
        let server = server.unwrap();
        let address = server.addresses()[0];
        // Another test may use the UDP port of the same number. Then another port is tried.
        if UdpSocket::bind(address).is_err() {
            return Self::start(limits);
        }
        let stop = Stop::new().unwrap();
        let until = stop.clone();
        let thread = thread::spawn(move || server.run(&until).unwrap());
        Self { address, stop, lines, thread: Some(thread) }
    }

    /// Waits for a log line that contains `words`.
    fn said(&self, words: &str) {
        let end = Instant::now() + LONG;
        while !self.lines.lock().unwrap().iter().any(|l| l.contains(words)) {
            assert!(Instant::now() < end, "no `{words}` in {:?}", self.lines);
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asserts that an ordinary test succeeds, once the previous test has ended.
    fn still_serves(&self) {
        let end = Instant::now() + LONG;
        loop {
            match test(self.address, Direction::Forward, 2) {
                Ok(outcome) if outcome.broken().is_none() => {
                    return assert!(outcome.goodput().is_some(), "{outcome:?}");
                }
                // A server with short time limits may end a test if this
                // machine stands still, so the test is tried again.
                failed => assert!(Instant::now() < end, "{failed:?}"),
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn quick() -> Limits {
    Limits {
        word: Duration::from_millis(300),
        stall: Duration::from_millis(300),
        ..Limits::default()
    }
}

/// Result of a test, or of the part of it that was run.
#[derive(Debug)]
struct Outcome {
    record: Record,
    error: Option<LinkError>,
    direction: Direction,
}

impl Outcome {
    /// Returns what was derived for the test's direction; `None` if the received payload is unknown.
    fn once(&self) -> Option<Once> {
        derived(&self.record, self.record.steps.first()?, self.direction)
    }

    fn goodput(&self) -> Option<Rate> {
        Some(Rate(self.once()?.load.goodput.mean as u64))
    }

    /// Returns the payload of all streams at one end, in bytes.
    fn bytes(&self, side: Side) -> u64 {
        let end = &self.record.steps[0].ends[usize::from(side == Side::Far)];
        let moved = |total: &Total| total.sent.max(total.received);
        end.totals.iter().map(moved).sum()
    }

    fn streams(&self, side: Side) -> usize {
        self.record.steps[0].ends[usize::from(side == Side::Far)].totals.len()
    }

    /// Returns whether the server did not report `what`, so that it is a gap.
    fn lacks(&self, what: &str) -> bool {
        let gaps: &[Gap] = &self.record.steps[0].ends[1].gaps;
        gaps.iter().any(|gap| gap.what == what)
    }

    /// Returns why the test ended early; `None` if it is complete.
    fn broken(&self) -> Option<String> {
        match &self.record.end {
            Some(End::Complete) => None,
            Some(End::Failed { why }) => Some(why.clone()),
            other => Some(format!("{other:?}")),
        }
    }
}

/// Why there was no test, and the hint for the user.
#[derive(Debug)]
struct Failed {
    what: String,
    hint: String,
}

impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Self {
        Self { what: error.to_string(), hint: error.hint() }
    }
}

/// Receiver of events that ignores them.
struct Deaf;

impl Sink for Deaf {
    fn event(&mut self, _: &Event<'_>) -> RunControl {
        RunControl::Go
    }
}

fn test(server: SocketAddr, direction: Direction, streams: u32) -> Result<Outcome, Failed> {
    let knobs = Knobs { streams, ..Knobs::default() };
    tested(server, Protocol::Tcp, direction, knobs)
}

fn tested(
    server: SocketAddr,
    protocol: Protocol,
    direction: Direction,
    knobs: Knobs,
) -> Result<Outcome, Failed> {
    tested_unless(server, protocol, direction, knobs, &Arc::default())
}

fn tested_unless(
    server: SocketAddr,
    protocol: Protocol,
    direction: Direction,
    knobs: Knobs,
    stop: &Arc<AtomicBool>,
) -> Result<Outcome, Failed> {
    super::client::possible(protocol, direction, &knobs)?;
    let options = Options {
        servers: vec![server],
        protocol,
        washout: Nanos(0),
        time: TEST,
        machine: Arc::new(Live::new()),
    };
    let mut link = Iperf3::reach(options, stop)?;
    let plan = Plan {
        engine: if protocol == Protocol::Udp { "udp" } else { "tcp" }.to_owned(),
        peer: Some(server.to_string()),
        reach: Vec::new(),
        knobs,
        directions: vec![direction],
        time: TEST,
        sweep: false,
        trials: false,
    };
    let (record, error) = once(&mut link, plan, Nanos(0), None, Label::default(), &mut Deaf);
    if record.steps.is_empty() {
        let (what, hint) = match error {
            Some(LinkError::Lost { what, hint } | LinkError::Refused { what, hint }) => {
                (what, hint)
            }
            other => (format!("{other:?}"), String::new()),
        };
        return Err(Failed { what, hint });
    }
    Ok(Outcome { record, error, direction })
}

/// A client whose messages the test writes itself.
struct Raw(TcpStream);

impl Raw {
    fn dial(address: SocketAddr, cookie: u8) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(&[cookie; COOKIE_LEN]).unwrap();
        Self(stream)
    }

    fn hear(&mut self) -> Option<State> {
        let mut byte = [0];
        let got = self.0.read(&mut byte).unwrap_or(0);
        (got == 1).then(|| State::decode(byte[0]).unwrap())
    }

    /// Runs a client up to the middle of a test. Returns its control connection and its data connections.
    fn running(address: SocketAddr, json: &str, streams: usize) -> (Self, Vec<Self>) {
        let mut raw = Self::dial(address, b'r');
        assert_eq!(raw.hear(), Some(State::ParamExchange));
        raw.0.write_all(&frame(json.as_bytes())).unwrap();
        assert_eq!(raw.hear(), Some(State::CreateStreams));
        let lines = (0..streams).map(|_| Self::dial(address, b'r')).collect();
        assert_eq!(raw.hear(), Some(State::TestStart));
        assert_eq!(raw.hear(), Some(State::TestRunning));
        (raw, lines)
    }
}

/// Returns the largest number of payload bytes that one connection can hold: both buffers at their largest, and bytes
/// that a call has read but that are not counted yet.
fn on_the_way() -> u64 {
    let largest = |name: &str| {
        let path = format!("/proc/sys/net/ipv4/{name}");
        let text = std::fs::read_to_string(path).unwrap();
        let words = text.split_whitespace().last().unwrap().parse::<u64>();
        words.unwrap()
    };
    largest("tcp_wmem") + largest("tcp_rmem") + WRITE_MAX
}

#[test]
fn both_of_ours_count_the_same() {
    let harness = Harness::start(Limits::default());
    for direction in Direction::ALL {
        for streams in [1, 4] {
            let outcome = test(harness.address, direction, streams).unwrap();
            assert_eq!(outcome.broken(), None);
            assert_eq!(outcome.streams(Side::Far), streams as usize);
            let [sent, got] =
                [direction.sender(), direction.receiver()].map(|side| outcome.bytes(side));
            // Both ends count the same number of bytes, except for data in flight when
            // the time is up. iperf3 has no end mark in its stream, so a receiver
            // cannot wait for this data. Bytes that were not sent are not received.
            assert!(got > 0 && got <= sent, "{got} of {sent}");
            let most = on_the_way() * u64::from(streams);
            assert!(sent - got <= most, "{got} of {sent}, {most} on the way");
            let once = outcome.once().unwrap();
            assert!(outcome.goodput().unwrap().0 > 0);
            assert!(once.retransmitted.is_some(), "both tell what they retransmitted");
            assert_eq!(once.sampled, direction == Direction::Reverse);
            assert_eq!(once.intervals.is_empty(), direction == Direction::Forward);
            let program = [once.program.sender, once.program.receiver];
            assert!(program.iter().all(Option::is_some), "{program:?}");
        }
    }
    harness.said("received in");
    harness.said("sent in");
}

#[test]
fn a_server_runs_one_test_at_a_time_and_the_next_once_it_has_ended() {
    let harness = Harness::start(Limits::default());
    let mut first = Raw::dial(harness.address, b'a');
    assert_eq!(first.hear(), Some(State::ParamExchange));
    let busy = test(harness.address, Direction::Forward, 1).unwrap_err();
    assert!(busy.what.contains("busy with another test"), "{busy:?}");
    assert!(!busy.hint.is_empty());
    // A data connection that belongs to no test.
    assert_eq!(Raw::dial(harness.address, b'b').hear(), Some(State::AccessDenied));
    drop(first);
    harness.still_serves();
}

#[test]
fn what_makes_no_sense_or_is_too_much_is_refused_by_number() {
    let harness = Harness::start(quick());
    let mut long = u32::MAX.to_be_bytes().to_vec();
    long.extend([b'{'; 100]);
    for (sent, wanted) in [
        (frame(b"[]"), Refusal::PARAMETERS),
        (frame(b"{\"time\":"), Refusal::PARAMETERS),
        (frame(b"{\"parallel\":129}"), Refusal::PARAMETERS),
        (long, Refusal::PARAMETERS),
        (frame(b"{\"sctp\":true}"), Refusal::PROTOCOL),
        (frame(b"{\"udp\":true,\"len\":65508}"), Refusal::DATAGRAM_SIZE),
        (
            frame(b"{\"udp\":true,\"bidirectional\":true,\"skip_rx_copy\":true}"),
            Refusal::UNSUPPORTED,
        ),
        (frame(b"{\"tcp\":true,\"len\":1048577}"), Refusal::WRITE_SIZE),
    ] {
        let mut raw = Raw::dial(harness.address, b'x');
        // The server is busy until the previous test has ended.
        while raw.hear() == Some(State::AccessDenied) {
            raw = Raw::dial(harness.address, b'x');
        }
        raw.0.write_all(&sent).unwrap();
        assert_eq!(raw.hear(), Some(State::ServerError), "{wanted:?}");
        let mut bytes = [0; 8];
        raw.0.read_exact(&mut bytes).unwrap();
        assert_eq!(Refusal::decode(bytes), wanted);
    }
    harness.still_serves();
}

#[test]
fn who_says_nothing_more_is_dropped_at_every_stage() {
    let harness = Harness::start(quick());
    // The client stops in the middle of its cookie.
    let mut silent = TcpStream::connect(harness.address).unwrap();
    silent.write_all(b"half a cookie").unwrap();
    harness.said("did not send a cookie in time");
    // The client stops before its parameters.
    let mut raw = Raw::dial(harness.address, b's');
    assert_eq!(raw.hear(), Some(State::ParamExchange));
    assert_eq!(raw.hear(), Some(State::ServerTerminate));
    harness.said("did not answer");
    // The client stops before its data connections.
    let mut raw = Raw::dial(harness.address, b't');
    while raw.hear() == Some(State::AccessDenied) {
        raw = Raw::dial(harness.address, b't');
    }
    raw.0.write_all(&frame(b"{\"tcp\":true,\"parallel\":2}")).unwrap();
    assert_eq!(raw.hear(), Some(State::CreateStreams));
    assert_eq!(raw.hear(), Some(State::ServerTerminate));
    harness.said("did not arrive");
    harness.still_serves();
}

#[test]
fn a_test_that_moves_nothing_or_lasts_too_long_is_ended() {
    let harness = Harness::start(quick());
    let (mut raw, _lines) = Raw::running(harness.address, "{\"tcp\":true,\"time\":60}", 1);
    assert_eq!(raw.hear(), Some(State::ServerTerminate));
    harness.said("no payload");
    drop(harness);

    let harness = Harness::start(Limits { grace: Duration::ZERO, ..Limits::default() });
    let json = "{\"tcp\":true,\"time\":1,\"reverse\":true}";
    let (mut raw, mut lines) = Raw::running(harness.address, json, 1);
    let drain = thread::spawn(move || std::io::copy(&mut lines[0].0, &mut std::io::sink()));
    assert_eq!(raw.hear(), Some(State::ServerTerminate));
    harness.said("longer than planned");
    let _ = drain.join();
}

#[test]
fn a_client_that_dies_in_mid_test_makes_room() {
    let harness = Harness::start(Limits::default());
    for json in ["{\"tcp\":true,\"parallel\":3}", "{\"tcp\":true,\"parallel\":3,\"reverse\":true}"]
    {
        let (raw, lines) = Raw::running(harness.address, json, 3);
        drop(raw);
        drop(lines);
        harness.said("closed the connection");
        harness.lines.lock().unwrap().clear();
        harness.still_serves();
    }
}

#[test]
fn a_server_that_is_stopped_tells_its_client() {
    let harness = Harness::start(Limits::default());
    let address = harness.address;
    let client = thread::spawn(move || {
        let options = Direction::Forward;
        let mut last = None;
        for _ in 0..100 {
            let outcome = test(address, options, 1);
            let ended = !matches!(&outcome, Ok(o) if o.broken().is_none());
            last = Some(outcome);
            if ended {
                break;
            }
        }
        last.unwrap()
    });
    harness.said("receives from it");
    drop(harness);
    // Between two tests, the server is gone without a message; within a test, it has reported its end.
    match client.join().unwrap() {
        Ok(outcome) => assert!(outcome.broken().is_some(), "{outcome:?}"),
        Err(error) => assert!(!error.what.is_empty()),
    }
}

#[test]
fn a_client_that_sends_hears_that_the_server_is_stopped_before_its_connections_end() {
    let harness = Harness::start(Limits::default());
    // The server takes longer to end this many streams than a sender takes to notice a closed connection.
    let json = "{\"tcp\":true,\"time\":60,\"parallel\":64}";
    let (mut raw, mut lines) = Raw::running(harness.address, json, 64);
    let sender = thread::spawn(move || {
        while lines[0].0.write_all(&[7; 10_000]).is_ok() {}
        // A message that has not arrived by now is too late: an iperf3 client has already reported a broken pipe.
        raw.0.set_nonblocking(true).unwrap();
        raw.hear()
    });
    drop(harness);
    assert_eq!(sender.join().unwrap(), Some(State::ServerTerminate));
}

#[test]
fn each_step_of_a_set_is_a_test_of_its_own() {
    let harness = Harness::start(Limits::default());
    let options = Options {
        servers: vec![harness.address],
        protocol: Protocol::Tcp,
        washout: Nanos(0),
        time: TEST,
        machine: Arc::new(Live::new()),
    };
    let mut link = Iperf3::reach(options, &Arc::default()).unwrap();
    let set = SetPlan {
        id: 7,
        pattern: Pattern::Stream { direction: Direction::Reverse },
        knobs: Knobs::default(),
    };
    let made = link.prepare(&set).unwrap();
    assert!(made.ends[0].recv_buffer.is_some());
    for index in 0..2 {
        let plan = StepPlan {
            index,
            purpose: Purpose::Both,
            sets: vec![set.id],
            washout: Nanos(0),
            measure: TEST,
            tick: Nanos::from_millis(50),
        };
        let step = link.step(&plan, &mut |_| StepControl::Continue).unwrap();
        assert_eq!(step.trouble, None);
        assert!(step.ends.iter().all(|end| end.totals.len() == 1));
        assert!(step.ends[0].totals[0].received > 0);
        assert_eq!(link.streams().len(), 1);
    }
    let both = StepPlan {
        index: 2,
        purpose: Purpose::Both,
        sets: vec![set.id, 8],
        washout: Nanos(0),
        measure: TEST,
        tick: TEST,
    };
    assert!(matches!(
        link.step(&both, &mut |_| StepControl::Continue),
        Err(LinkError::Refused { .. })
    ));
    link.release(set.id).unwrap();
}

#[test]
fn a_user_who_wants_to_stop_keeps_what_was_measured() {
    let harness = Harness::start(Limits::default());
    for direction in Direction::ALL {
        let options = Options {
            servers: vec![harness.address],
            protocol: Protocol::Tcp,
            washout: Nanos(0),
            time: Nanos::from_secs(60),
            machine: Arc::new(Live::new()),
        };
        let mut link = Iperf3::reach(options, &Arc::default()).unwrap();
        let set =
            SetPlan { id: 0, pattern: Pattern::Stream { direction }, knobs: Knobs::default() };
        link.prepare(&set).unwrap();
        let plan = StepPlan {
            index: 0,
            purpose: Purpose::Both,
            sets: vec![set.id],
            washout: Nanos(0),
            measure: Nanos::from_secs(60),
            tick: Nanos::from_millis(50),
        };
        let enough = |live: crate::link::Live| {
            if live.elapsed < TEST { StepControl::Continue } else { StepControl::Stop }
        };
        let step = link.step(&plan, &mut { enough }).unwrap();
        let why = step.trouble.map(|trouble| trouble.what);
        assert_eq!(why.as_deref(), Some("stopped"));
        // Both ends ended in order, so each has readings.
        assert!(step.ends[0].totals[0].complete, "{direction:?}");
        assert!(step.ends.iter().all(|end| end.tables.iter().any(|t| t.source == "worker")));
        link.release(set.id).unwrap();
    }
}
