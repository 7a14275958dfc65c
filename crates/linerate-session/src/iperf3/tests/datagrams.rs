//! Tests with datagrams: between linerate's own client and server, and with peers that are old, silent or hostile.

use std::net::UdpSocket;

use linerate_record::iperf3::{HELLO, Header, Results, Width};
use linerate_units::{Bytes, Rate};

use super::*;

/// Pace that loopback can carry even on a busy machine.
const PACE: Rate = Rate(20_000_000);
/// Payload of each datagram, in bytes.
const SIZE: u64 = 1000;

fn by_datagrams(server: SocketAddr, direction: Direction, streams: u32) -> Result<Outcome, Failed> {
    let knobs = Knobs { streams, write_size: Bytes(SIZE), pacing: Some(PACE), ..Knobs::default() };
    tested(server, Protocol::Udp, direction, knobs)
}

/// Opens a UDP socket on the address `host`. A read of it fails after [`LONG`].
fn socket(host: &str) -> UdpSocket {
    let socket = UdpSocket::bind((host, 0)).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket
}

/// Returns whether no datagram has arrived at a socket.
fn is_silent(socket: &UdpSocket) -> bool {
    socket.set_nonblocking(true).unwrap();
    socket.recv(&mut [0]).is_err()
}

/// Sends a hello, and receives the answer.
fn enter(socket: &UdpSocket, server: SocketAddr) {
    socket.send_to(&HELLO, server).unwrap();
    assert_eq!(heard(socket), b"6789");
}

fn heard(socket: &UdpSocket) -> Vec<u8> {
    let mut bytes = [0; 16];
    let got = socket.recv(&mut bytes).unwrap();
    bytes[..got].to_vec()
}

/// Makes datagram `number` of a stream, `size` bytes long.
fn datagram(number: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![7; size];
    let header = Header { micros: number * 1000, number };
    header.write(Width::Narrow, &mut bytes);
    bytes
}

impl Raw {
    /// Sends the parameters `json` to the server, up to the point at which it waits for the streams.
    fn asking(server: SocketAddr, json: &str) -> Self {
        let mut raw = Self::dial(server, b'u');
        // The server is busy until the previous test has ended.
        let mut first = raw.hear();
        while first == Some(State::AccessDenied) {
            raw = Self::dial(server, b'u');
            first = raw.hear();
        }
        assert_eq!(first, Some(State::ParamExchange));
        raw.0.write_all(&frame(json.as_bytes())).unwrap();
        assert_eq!(raw.hear(), Some(State::CreateStreams));
        raw
    }

    fn begun(&mut self) {
        assert_eq!(self.hear(), Some(State::TestStart));
        assert_eq!(self.hear(), Some(State::TestRunning));
    }

    /// Ends the test; returns the results of the server.
    fn conclude(mut self) -> Results {
        self.0.write_all(&[State::TestEnd.encode()]).unwrap();
        assert_eq!(self.hear(), Some(State::ExchangeResults));
        self.0.write_all(&frame(b"{\"streams\":[]}")).unwrap();
        let mut prefix = [0; 4];
        self.0.read_exact(&mut prefix).unwrap();
        let mut json = vec![0; u32::from_be_bytes(prefix) as usize];
        self.0.read_exact(&mut json).unwrap();
        assert_eq!(self.hear(), Some(State::DisplayResults));
        Results::decode(&json).unwrap()
    }
}

#[test]
fn both_of_ours_count_the_same_datagrams() {
    let harness = Harness::start(Limits::default());
    for direction in Direction::ALL {
        for streams in [1, 4] {
            let outcome = by_datagrams(harness.address, direction, streams).unwrap();
            assert_eq!(outcome.broken(), None);
            assert_eq!(outcome.streams(Side::Far), streams as usize);
            let once = outcome.once().unwrap();
            let counted = once.datagrams.unwrap();
            assert!(counted.received > 0, "{counted:?}");
            // This end counts datagrams only up to the last row, so its total of bytes may include more.
            assert!(outcome.bytes(direction.receiver()) >= counted.received * SIZE, "{counted:?}");
            assert!(counted.sent.unwrap() >= counted.received + counted.lost, "{counted:?}");
            assert_eq!(counted.reordered.is_some(), direction == Direction::Reverse);
            assert_eq!(counted.duplicated.is_some(), direction == Direction::Reverse);
            assert!(once.jitter.is_some());
            assert_eq!(once.load.made.sender.write_size, SIZE);
            assert!(outcome.goodput().unwrap().0 > 0);
            assert_eq!(once.retransmitted, None, "datagrams are not retransmitted");
        }
    }
    harness.said("of datagrams");
    harness.said("datagrams lost");
}

#[test]
fn as_fast_as_it_can_and_as_long_as_ipv4_carries() {
    let harness = Harness::start(Limits::default());
    for size in [16, 65_507] {
        for direction in Direction::ALL {
            let knobs = Knobs { write_size: Bytes(size), ..Knobs::default() };
            let outcome = tested(harness.address, Protocol::Udp, direction, knobs).unwrap();
            let counted = outcome.once().unwrap().datagrams.unwrap();
            assert!(counted.received > 0, "{outcome:?}");
        }
    }
}

#[test]
fn only_the_host_of_the_control_connection_is_let_in_and_nobody_else_is_answered() {
    let harness = Harness::start(Limits::default());
    let mut raw = Raw::asking(harness.address, "{\"udp\":true,\"parallel\":2,\"reverse\":true}");
    let (foreign, ours) = (socket("127.0.0.2"), [socket("127.0.0.1"), socket("127.0.0.1")]);
    foreign.send_to(&HELLO, harness.address).unwrap();
    // From the client's host, but not a hello.
    for other in [&b""[..], b"987", b"hello", &[0; 4], &vec![9; 65_507]] {
        ours[0].send_to(other, harness.address).unwrap();
    }
    enter(&ours[0], harness.address);
    // If the answer was lost, the client repeats its hello, and the server answers again.
    enter(&ours[0], harness.address);
    foreign.send_to(&HELLO, harness.address).unwrap();
    enter(&ours[1], harness.address);
    raw.begun();
    for socket in &ours {
        let first = Header::read(&heard(socket), Width::Narrow).unwrap();
        assert_eq!(first.number, 1);
    }
    assert!(is_silent(&foreign));
    let counted = raw.conclude();
    assert!(is_silent(&foreign));
    assert_eq!(counted.streams.len(), 2);
    assert_eq!(counted.errors(), Some(0));
    assert!(counted.packets().unwrap() >= 2);
    harness.still_serves();
}

#[test]
fn hostile_datagrams_count_for_what_they_are_and_no_more() {
    let harness = Harness::start(Limits::default());
    let mut raw = Raw::asking(harness.address, "{\"udp\":true,\"len\":1000}");
    let (ours, foreign) = (socket("127.0.0.1"), socket("127.0.0.1"));
    enter(&ours, harness.address);
    raw.begun();
    ours.connect(harness.address).unwrap();
    for number in [1, 2, 3] {
        ours.send(&datagram(number, 1000)).unwrap();
    }
    // These datagrams are ignored: too short for a header, or with a number
    // that no sender can have reached. So is the one from another port.
    for wrong in [
        Vec::new(),
        HELLO.to_vec(),
        datagram(4, 1000)[..11].to_vec(),
        datagram(0, 1000),
        datagram(u64::from(u32::MAX), 1000),
        datagram(2_000_000_000, 1000),
        datagram(2, 1000),
    ] {
        ours.send(&wrong).unwrap();
    }
    let _ = foreign.send_to(&datagram(4, 1000), harness.address);
    // A datagram that is longer than agreed, after a missing one. Both count.
    ours.send(&datagram(5, 65_507)).unwrap();
    // Some datagrams have send times that are milliseconds apart. In a
    // test that is shorter than that, the jitter must not become infinite.
    thread::sleep(Duration::from_millis(20));
    let counted = raw.conclude();
    assert_eq!(counted.bytes(), 3 * 1000 + 65_507);
    assert_eq!((counted.packets(), counted.errors()), (Some(5), Some(1)));
    assert!(counted.jitter().unwrap().is_finite());
    harness.still_serves();
}

#[test]
fn what_is_omitted_is_told_apart() {
    let harness = Harness::start(Limits::default());
    let json = "{\"udp\":true,\"len\":100,\"omit\":1,\"time\":1}";
    let mut raw = Raw::asking(harness.address, json);
    let ours = socket("127.0.0.1");
    enter(&ours, harness.address);
    raw.begun();
    ours.connect(harness.address).unwrap();
    // Two datagrams are lost in the omitted part.
    for number in [1, 4] {
        ours.send(&datagram(number, 100)).unwrap();
    }
    // The server checks its clock each 50 ms.
    thread::sleep(Duration::from_millis(1500));
    for number in [5, 7] {
        ours.send(&datagram(number, 100)).unwrap();
    }
    let counted = raw.conclude();
    // Old clients subtract the datagrams that they sent in the omitted
    // part, new ones the number `omitted` that the server reports.
    let datagrams = counted.streams[0].datagrams;
    assert_eq!((datagrams.packets, datagrams.omitted), (Some(7), 4));
    assert_eq!((counted.packets(), counted.errors()), (Some(3), Some(1)));
    assert_eq!(counted.bytes(), 200);
}

#[test]
fn who_says_no_hello_or_goes_away_makes_room() {
    let harness = Harness::start(quick());
    let mut silent = Raw::asking(harness.address, "{\"udp\":true,\"parallel\":2}");
    enter(&socket("127.0.0.1"), harness.address);
    assert_eq!(silent.hear(), Some(State::ServerTerminate));
    harness.said("its datagrams did not arrive");
    drop(harness);

    let harness = Harness::start(Limits::default());
    for json in ["{\"udp\":true}", "{\"udp\":true,\"reverse\":true}"] {
        let mut raw = Raw::asking(harness.address, json);
        let ours = socket("127.0.0.1");
        enter(&ours, harness.address);
        raw.begun();
        drop((raw, ours));
        harness.said("closed the connection");
        harness.lines.lock().unwrap().clear();
        harness.still_serves();
    }
}

#[test]
fn who_takes_no_datagrams_any_more_gets_none() {
    let harness = Harness::start(quick());
    let mut raw = Raw::asking(harness.address, "{\"udp\":true,\"reverse\":true,\"time\":60}");
    let ours = socket("127.0.0.1");
    enter(&ours, harness.address);
    raw.begun();
    heard(&ours);
    // The control connection stays open. Only the UDP port is closed, and the kernel reports this to the sender.
    drop(ours);
    assert_eq!(raw.hear(), Some(State::ServerTerminate));
    harness.said("nothing receives datagrams there");
    harness.still_serves();
}

#[test]
fn a_server_of_datagrams_that_is_busy_says_so() {
    let harness = Harness::start(Limits::default());
    let raw = Raw::asking(harness.address, "{\"udp\":true}");
    let busy = by_datagrams(harness.address, Direction::Forward, 1).unwrap_err();
    assert!(busy.what.contains("busy with another test"), "{busy:?}");
    drop(raw);
    harness.still_serves();
}

/// Starts a server that accepts a test's parameters and then
/// runs `script` with the control connection and the UDP port.
fn scripted(
    script: impl FnOnce(TcpStream, UdpSocket) + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let (listener, door) = both_ports();
    let address = listener.local_addr().unwrap();
    door.set_read_timeout(Some(LONG)).unwrap();
    let thread = thread::spawn(move || {
        let (mut control, _) = listener.accept().unwrap();
        control.read_exact(&mut [0; COOKIE_LEN]).unwrap();
        control.write_all(&[State::ParamExchange.encode()]).unwrap();
        let mut prefix = [0; 4];
        control.read_exact(&mut prefix).unwrap();
        let mut params = vec![0; u32::from_be_bytes(prefix) as usize];
        control.read_exact(&mut params).unwrap();
        control.write_all(&[State::CreateStreams.encode()]).unwrap();
        script(control, door);
    });
    (address, thread)
}

/// Tests with a server that sends `answer` to a hello, runs the test, and sends `results`.
fn answers(answer: &'static [u8], results: &'static str) -> Outcome {
    let (address, thread) = scripted(move |mut control, door| {
        let mut hello = [0; 16];
        let (got, from) = door.recv_from(&mut hello).unwrap();
        assert_eq!(hello[..got], HELLO);
        door.send_to(answer, from).unwrap();
        control.write_all(&[1, 2]).unwrap();
        // Waits until the client ends the test.
        control.read_exact(&mut [0]).unwrap();
        control.write_all(&[13]).unwrap();
        let mut prefix = [0; 4];
        control.read_exact(&mut prefix).unwrap();
        let mut json = vec![0; u32::from_be_bytes(prefix) as usize];
        control.read_exact(&mut json).unwrap();
        control.write_all(&frame(results.as_bytes())).unwrap();
        control.write_all(&[14]).unwrap();
        let _ = control.read(&mut [0]);
    });
    let outcome = by_datagrams(address, Direction::Forward, 1).unwrap();
    thread.join().unwrap();
    outcome
}

#[test]
fn old_servers_answer_in_their_own_words() {
    let results = r#"{"streams":[{"id":1,"bytes":5000,"jitter":0.002,"errors":1,"packets":6}]}"#;
    for answer in [&b"6789"[..], &[0xb1, 0x68, 0xde, 0x3a], &[0x3a, 0xde, 0x68, 0xb1]] {
        let outcome = answers(answer, results);
        let once = outcome.once().unwrap();
        let counted = once.datagrams.unwrap();
        assert_eq!((counted.received, counted.lost, counted.reordered), (5, 1, None));
        assert_eq!(once.jitter, Some(Nanos::from_millis(2)));
        assert!(outcome.lacks("order of datagrams") && outcome.lacks("time of the far end"));
    }
}

#[test]
fn loss_that_a_server_does_not_tell_or_cannot_know_is_unknown() {
    for results in [
        r#"{"streams":[{"id":1,"bytes":5000}]}"#,
        r#"{"streams":[{"id":1,"bytes":5000,"errors":-1,"packets":6}]}"#,
        r#"{"streams":[{"id":1,"bytes":5000,"errors":7,"packets":6}]}"#,
        r#"{"streams":[{"id":1,"bytes":5000,"errors":0,"packets":600000000}]}"#,
    ] {
        let outcome = answers(b"6789", results);
        assert!(outcome.goodput().is_some());
        assert_eq!(outcome.once().unwrap().datagrams, None, "{results}");
        assert!(outcome.lacks("loss of datagrams"));
    }
}

#[test]
fn a_server_that_gives_up_before_it_answers_is_heard() {
    let (address, thread) = scripted(|mut control, _door| {
        control.write_all(&[State::ServerTerminate.encode()]).unwrap();
        let _ = control.read(&mut [0]);
    });
    let error = by_datagrams(address, Direction::Forward, 1).unwrap_err();
    thread.join().unwrap();
    assert!(error.what.contains("was stopped"), "{error:?}");
}

#[test]
fn a_port_that_takes_no_datagrams_is_named() {
    let (address, thread) = scripted(|mut control, door| {
        drop(door);
        let _ = control.read(&mut [0]);
    });
    let error = by_datagrams(address, Direction::Forward, 1).unwrap_err();
    thread.join().unwrap();
    assert!(error.what.starts_with("no UDP datagram reaches"), "{error:?}");
    assert!(error.hint.contains("UDP"));
}

#[test]
fn payload_that_overtakes_the_answer_is_no_answer() {
    let (address, thread) = scripted(|mut control, door| {
        let (_, from) = door.recv_from(&mut [0; 16]).unwrap();
        for number in [1, 2] {
            door.send_to(&datagram(number, 1000), from).unwrap();
        }
        // A service that returns the hello unchanged is an echo service, and its reply is not an answer.
        door.send_to(&HELLO, from).unwrap();
        door.send_to(b"6789", from).unwrap();
        control.write_all(&[1, 2]).unwrap();
        for number in [3, 5, 4, 4] {
            door.send_to(&datagram(number, 1000), from).unwrap();
        }
        let _ = control.read(&mut [0]);
    });
    let outcome = by_datagrams(address, Direction::Reverse, 1).unwrap();
    thread.join().unwrap();
    // The client ends before it reports its own count. The datagrams that this end received are still known.
    assert!(outcome.broken().is_some(), "{outcome:?}");
    let counted = outcome.once().unwrap().datagrams.unwrap();
    assert_eq!((counted.received, counted.lost), (3, 2));
    assert_eq!((counted.reordered, counted.duplicated), (Some(1), Some(1)));
    assert_eq!(counted.sent, None);
}
