//! Both sides over real sockets on loopback, with each other and with those who break the rules.
//! None asserts how long something takes.

mod datagrams;

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_core::iperf3::{COOKIE_LEN, Protocol, Refusal, State, WRITE_MAX, frame};
use linerate_core::plan::{Direction, Knobs};
use linerate_core::units::Nanos;

use super::client::{self, ClientError, ClientOptions, Outcome};
use super::server::{Limits, Server, ServerOptions};
use crate::host::Live;
use crate::peer::Stop;

/// Long enough for anything that should happen at all.
const LONG: Duration = Duration::from_secs(20);
/// A test that is long enough for all of its parts.
const TEST: Nanos = Nanos::from_millis(400);

/// One port of both protocols: who draws a free one of one may meet a socket of another test's there.
fn both_ports() -> (TcpListener, UdpSocket) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        if let Ok(door) = UdpSocket::bind(listener.local_addr().unwrap()) {
            return (listener, door);
        }
    }
}

/// A server on loopback that ends with the test.
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
        // Another test may have a socket for datagrams there.
        if UdpSocket::bind(address).is_err() {
            return Self::start(limits);
        }
        let stop = Stop::new().unwrap();
        let until = stop.clone();
        let thread = thread::spawn(move || server.run(&until).unwrap());
        Self {
            address,
            stop,
            lines,
            thread: Some(thread),
        }
    }

    /// Waits for a log line with this in it.
    fn said(&self, words: &str) {
        let end = Instant::now() + LONG;
        while !self.lines.lock().unwrap().iter().any(|l| l.contains(words)) {
            assert!(Instant::now() < end, "no `{words}` in {:?}", self.lines);
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// An honest test works, once the one before has made room.
    fn still_serves(&self) {
        let end = Instant::now() + LONG;
        loop {
            match test(self.address, Direction::Forward, 2) {
                Ok(outcome) => return assert!(outcome.goodput().is_some(), "{outcome:?}"),
                // A server that grants little time is too hasty for a machine that stands still.
                Err(error) => assert!(Instant::now() < end, "{error}"),
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

fn test(server: SocketAddr, direction: Direction, streams: u32) -> Result<Outcome, ClientError> {
    test_unless(server, direction, streams, &|| false)
}

fn test_unless(
    server: SocketAddr,
    direction: Direction,
    streams: u32,
    stopped: &dyn Fn() -> bool,
) -> Result<Outcome, ClientError> {
    let knobs = Knobs {
        streams,
        ..Knobs::default()
    };
    let options = options(server, Protocol::Tcp, direction, knobs);
    client::run(&options, stopped)
}

fn options(
    server: SocketAddr,
    protocol: Protocol,
    direction: Direction,
    knobs: Knobs,
) -> ClientOptions {
    ClientOptions {
        servers: vec![server],
        protocol,
        direction,
        time: TEST,
        knobs,
        machine: Arc::new(Live::new()),
    }
}

/// A client that does as it likes.
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

    /// Up to the middle of a test, with its data connections.
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

/// The most payload that one connection can hold: both buffers at their largest, and what a call has
/// read and not yet counted.
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
            assert!(outcome.broken.is_none(), "{outcome:?}");
            let far = outcome.far.as_ref().unwrap();
            assert_eq!(far.streams.len(), streams as usize);
            let (sent, got) = match direction {
                Direction::Forward => (outcome.moved.0, far.bytes()),
                Direction::Reverse => (far.bytes(), outcome.moved.0),
            };
            // To the byte, but for what is on the way when the time is up: iperf3 has no mark of the end in
            // its stream, so a receiver cannot wait for it. What was not sent is not received.
            assert!(got > 0 && got <= sent, "{got} of {sent}");
            let most = on_the_way() * u64::from(streams);
            assert!(sent - got <= most, "{got} of {sent}, {most} on the way");
            assert!(outcome.goodput().unwrap().0 > 0);
            assert_eq!(
                outcome.retransmits.is_some(),
                direction == Direction::Forward
            );
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
    assert!(matches!(busy, ClientError::Busy(_)), "{busy}");
    assert!(!busy.hint().is_empty());
    // A data connection of nobody's.
    assert_eq!(
        Raw::dial(harness.address, b'b').hear(),
        Some(State::AccessDenied)
    );
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
        (
            frame(b"{\"udp\":true,\"len\":65508}"),
            Refusal::DATAGRAM_SIZE,
        ),
        (
            frame(b"{\"udp\":true,\"bidirectional\":true}"),
            Refusal::UNSUPPORTED,
        ),
        (
            frame(b"{\"tcp\":true,\"bidirectional\":true}"),
            Refusal::UNSUPPORTED,
        ),
        (
            frame(b"{\"tcp\":true,\"len\":1048577}"),
            Refusal::WRITE_SIZE,
        ),
    ] {
        let mut raw = Raw::dial(harness.address, b'x');
        // The one before makes room when it has ended.
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
    // In its cookie.
    let mut silent = TcpStream::connect(harness.address).unwrap();
    silent.write_all(b"half a cookie").unwrap();
    harness.said("did not send a cookie in time");
    // Before its parameters.
    let mut raw = Raw::dial(harness.address, b's');
    assert_eq!(raw.hear(), Some(State::ParamExchange));
    assert_eq!(raw.hear(), Some(State::ServerTerminate));
    harness.said("did not answer");
    // Before its data connections.
    let mut raw = Raw::dial(harness.address, b't');
    while raw.hear() == Some(State::AccessDenied) {
        raw = Raw::dial(harness.address, b't');
    }
    raw.0
        .write_all(&frame(b"{\"tcp\":true,\"parallel\":2}"))
        .unwrap();
    assert_eq!(raw.hear(), Some(State::CreateStreams));
    assert_eq!(raw.hear(), Some(State::ServerTerminate));
    harness.said("did not come");
    harness.still_serves();
}

#[test]
fn a_test_that_moves_nothing_or_lasts_too_long_is_ended() {
    let harness = Harness::start(quick());
    let (mut raw, _lines) = Raw::running(harness.address, "{\"tcp\":true,\"time\":60}", 1);
    assert_eq!(raw.hear(), Some(State::ServerTerminate));
    harness.said("no payload");
    drop(harness);

    let harness = Harness::start(Limits {
        grace: Duration::ZERO,
        ..Limits::default()
    });
    let json = "{\"tcp\":true,\"time\":1,\"reverse\":true}";
    let (mut raw, mut lines) = Raw::running(harness.address, json, 1);
    let drain = thread::spawn(move || std::io::copy(&mut lines[0].0, &mut std::io::sink()));
    assert_eq!(raw.hear(), Some(State::ServerTerminate));
    harness.said("longer than it should");
    let _ = drain.join();
}

#[test]
fn a_client_that_dies_in_mid_test_makes_room() {
    let harness = Harness::start(Limits::default());
    for json in [
        "{\"tcp\":true,\"parallel\":3}",
        "{\"tcp\":true,\"parallel\":3,\"reverse\":true}",
    ] {
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
            let ended = !matches!(&outcome, Ok(o) if o.broken.is_none());
            last = Some(outcome);
            if ended {
                break;
            }
        }
        last.unwrap()
    });
    harness.said("receives from it");
    drop(harness);
    // Between two tests nobody is there any more; within one it was told.
    match client.join().unwrap() {
        Ok(outcome) => assert!(outcome.broken.is_some(), "{outcome:?}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

#[test]
fn a_client_that_sends_hears_that_the_server_is_stopped_before_its_connections_end() {
    let harness = Harness::start(Limits::default());
    // To end so many takes longer than a sender needs to notice.
    let json = "{\"tcp\":true,\"time\":60,\"parallel\":64}";
    let (mut raw, mut lines) = Raw::running(harness.address, json, 64);
    let sender = thread::spawn(move || {
        while lines[0].0.write_all(&[7; 10_000]).is_ok() {}
        // What was not said by now comes too late: the client has told of a broken pipe.
        raw.0.set_nonblocking(true).unwrap();
        raw.hear()
    });
    drop(harness);
    assert_eq!(sender.join().unwrap(), Some(State::ServerTerminate));
}

/// A server that does as it likes with one client.
fn fake(script: impl FnOnce(TcpListener) + Send + 'static) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (address, thread::spawn(move || script(listener)))
}

#[test]
fn a_server_that_refuses_while_data_connections_are_made_is_heard() {
    let (address, thread) = fake(|listener| {
        let (mut stream, _) = listener.accept().unwrap();
        // From here on no data connection is taken.
        drop(listener);
        stream.read_exact(&mut [0; COOKIE_LEN]).unwrap();
        stream.write_all(&[State::ParamExchange.encode()]).unwrap();
        let mut prefix = [0; 4];
        stream.read_exact(&mut prefix).unwrap();
        let mut params = vec![0; u32::from_be_bytes(prefix) as usize];
        stream.read_exact(&mut params).unwrap();
        let last = [State::CreateStreams, State::ServerTerminate].map(State::encode);
        stream.write_all(&last).unwrap();
        let _ = stream.read(&mut [0]);
    });
    let error = test(address, Direction::Forward, 1).unwrap_err();
    thread.join().unwrap();
    let stage = "while the data connections were made";
    assert!(
        matches!(&error, ClientError::Terminated { stage: s, .. } if *s == stage),
        "{error}"
    );
}

#[test]
fn a_stop_is_heeded_while_the_server_does_not_take_the_connection() {
    // A full queue of a listener that accepts nothing: further handshakes are left unanswered.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let short = Duration::from_millis(200);
    let mut held = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, short) {
        held.push(stream);
        assert!(held.len() < 100, "its queue is never full");
    }
    let asked = std::cell::Cell::new(0);
    let stopped = || {
        asked.set(asked.get() + 1);
        asked.get() > 2
    };
    let error = test_unless(address, Direction::Forward, 1, &stopped).unwrap_err();
    assert!(matches!(error, ClientError::Interrupted), "{error}");
}

/// Says these bytes to the first client, which has said its cookie.
fn says(bytes: &'static [u8]) -> ClientError {
    let (address, thread) = fake(move |listener| {
        let (mut stream, _) = listener.accept().unwrap();
        let mut cookie = [0; COOKIE_LEN];
        stream.read_exact(&mut cookie).unwrap();
        stream.write_all(bytes).unwrap();
        // All that it says; what the client says is heard until it has gone.
        // It may have gone by itself after the first of it.
        let _ = stream.shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let error = test(address, Direction::Forward, 1).unwrap_err();
    thread.join().unwrap();
    error
}

#[test]
fn what_a_server_says_instead_of_beginning_is_told_in_words() {
    assert!(matches!(says(b""), ClientError::NotIperf3 { .. }));
    let web = says(b"HTTP/1.1 400 Bad Request\r\n");
    assert!(matches!(web, ClientError::NotIperf3 { .. }), "{web}");
    assert!(web.hint().contains("5201"));
    assert!(matches!(says(b"\xff"), ClientError::Busy(_)));
    assert!(matches!(says(b"\x0b"), ClientError::Terminated { .. }));
    let refused = says(b"\xfe\0\0\0\x8d\0\0\0\0");
    assert!(refused.to_string().contains("socket buffer"), "{refused}");
    assert!(says(b"\xfe\0\0").to_string().contains("lost"));
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let error = test(nobody, Direction::Forward, 1).unwrap_err();
    assert!(matches!(error, ClientError::NoServer(_)), "{error}");
    assert!(error.hint().contains("iperf3 -s"));
    let error = test(nobody, Direction::Forward, 129).unwrap_err();
    assert!(matches!(error, ClientError::Streams(129)));
}

#[test]
fn a_server_that_asks_who_we_are_is_named_so() {
    let login = says(b"\x09\xfe\0\0\0\x8e\0\0\0\0");
    assert!(matches!(login, ClientError::Login(_)), "{login}");
    assert!(!login.hint().is_empty());
}

/// A server that runs a forward test in order, then tells `results`, or dies where there are none.
fn ends_with(results: Option<&'static str>) -> Outcome {
    let (address, thread) = fake(move |listener| {
        let accept = || {
            let mut stream = listener.accept().unwrap().0;
            stream.read_exact(&mut [0; COOKIE_LEN]).unwrap();
            stream
        };
        let mut control = accept();
        control.write_all(&[9]).unwrap();
        let mut length = [0; 4];
        control.read_exact(&mut length).unwrap();
        let mut json = vec![0; u32::from_be_bytes(length) as usize];
        control.read_exact(&mut json).unwrap();
        control.write_all(&[10]).unwrap();
        let mut data = accept();
        control.write_all(&[1, 2]).unwrap();
        data.read_exact(&mut vec![0; 100_000]).unwrap();
        let Some(results) = results else {
            return;
        };
        let drain = thread::spawn(move || std::io::copy(&mut data, &mut std::io::sink()));
        control.read_exact(&mut [0]).unwrap();
        control.write_all(&[13]).unwrap();
        control.read_exact(&mut length).unwrap();
        let mut json = vec![0; u32::from_be_bytes(length) as usize];
        control.read_exact(&mut json).unwrap();
        control.write_all(&frame(results.as_bytes())).unwrap();
        control.write_all(&[14]).unwrap();
        let _ = control.read(&mut [0]);
        drop(control);
        let _ = drain.join();
    });
    let outcome = test(address, Direction::Forward, 1).unwrap();
    thread.join().unwrap();
    outcome
}

#[test]
fn what_was_measured_is_kept_when_a_server_dies_or_tells_nonsense() {
    for results in [None, Some("[]"), Some("{\"streams\":[{\"id\":1}]}")] {
        let outcome = ends_with(results);
        let broken = outcome.broken.as_ref().unwrap().to_string();
        assert!(broken.contains("lost the iperf3 server"), "{broken}");
        assert!(outcome.moved.0 > 0 && outcome.time.0 > 0);
        assert_eq!(outcome.goodput(), None);
        assert!(outcome.gaps.iter().any(|gap| gap.what == "goodput"));
    }
}

#[test]
fn an_old_server_lacks_its_time_and_one_that_boasts_is_not_believed() {
    let old = r#"{"cpu_util_total":1,"cpu_util_user":0,"cpu_util_system":1,
        "sender_has_retransmits":-1,"streams":[{"id":1,"bytes":100000,"retransmits":-1,
        "jitter":0,"errors":0,"packets":0}]}"#;
    let outcome = ends_with(Some(old));
    assert!(outcome.broken.is_none(), "{outcome:?}");
    assert!(outcome.goodput().is_some());
    let lacks = |outcome: &Outcome, what: &str| outcome.gaps.iter().any(|gap| gap.what == what);
    assert!(lacks(&outcome, "time of the far end"));

    for boast in [
        r#"{"streams":[{"id":1,"bytes":9000000000000000}]}"#,
        r#"{"streams":[{"id":1,"bytes":100000,"start_time":0,"end_time":0.001}]}"#,
        r#"{"streams":[]}"#,
    ] {
        let outcome = ends_with(Some(boast));
        assert_eq!(outcome.goodput(), None, "{boast}");
        assert!(lacks(&outcome, "goodput"), "{boast}");
    }
}
