//! Debian's iperf3 as a client of `linerate serve --iperf3`, and `linerate bw` with an iperf3 server: both sides must
//! count the same bytes.
#[path = "datagrams.rs"]
mod datagrams;
#[path = "vanished.rs"]
mod vanished;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::schema::fits;
use linerate_test::{Turn, ask, free_ports, has, turn};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Time limit of waits, long enough for everything that should happen.
const LONG: Duration = Duration::from_secs(30);

fn linerate(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.env("HOME", home).stdin(Stdio::null());
    command
}

/// The loopback address that every machine has.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The loopback addresses that this machine has: some are built without IPv6.
fn loopbacks() -> Vec<IpAddr> {
    let six = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let has_six = TcpListener::bind((six, 0)).is_ok();
    std::iter::once(HERE).chain(has_six.then_some(six)).collect()
}

/// A process that is killed when the test ends.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(quiet.spawn().unwrap())
    }

    /// Ends the process by SIGTERM; returns its exit code.
    fn end(mut self) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        self.0.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Words in the output of `bw` while an iperf3 server does not listen yet, or is busy with the previous test.
const ABSENT: &[&str] = &["connection refused", "busy with another test"];

/// Repeats `run` while its output has one of the words in `absent`.
fn patient(mut run: impl FnMut() -> Output, absent: &[&str]) -> Output {
    let end = Instant::now() + LONG;
    loop {
        let output = run();
        let words = [&output.stdout[..], &output.stderr].concat();
        let words = String::from_utf8_lossy(&words).into_owned();
        if !absent.iter().any(|part| words.contains(part)) || Instant::now() > end {
            return output;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Most bytes that may be in flight when the time is over: both buffers at their largest, and a call that was not
/// counted yet.
fn on_the_way(streams: u64) -> u64 {
    let largest = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
        let largest = text.split_whitespace().last().unwrap();
        largest.parse::<u64>().unwrap()
    };
    streams * (largest("tcp_wmem") + largest("tcp_rmem") + (1 << 20))
}

/// Whether the bytes sent and received differ by no more than may be in flight at the end. An iperf3 client that gets
/// its CPU late may send more, which nobody counts: then this is an `Err`.
fn alike([sent, received]: [u64; 2], streams: u64) -> Result<(), String> {
    // iperf3 counts a write when the call returns, and its last call may not have returned.
    assert!(received > 0 && received <= sent + streams * (1 << 20), "{received} of {sent}");
    let most = on_the_way(streams);
    (sent.saturating_sub(received) <= most)
        .then_some(())
        .ok_or_else(|| format!("{received} of {sent}, {most} on the way"))
}

/// Seconds by which the two sides of a `bw` test may begin and end to count at different times: each has its own clock,
/// and a thread that reads it.
const APART: f64 = 0.2;

/// Whether the bytes that the two ends of a `bw` test counted differ by no more than those in flight and those of
/// [`APART`].
fn alike_apart(way: &Value, direction: &str, streams: u64) -> Result<(), String> {
    let ends = match direction {
        "forward" => ["near", "far"],
        _ => ["far", "near"],
    };
    let [sent, received] = ends.map(|end| way[end]["bytes"].as_u64().unwrap());
    let seconds = way[ends[0]]["time_ns"].as_f64().unwrap() / 1e9;
    assert!(received > 0, "{way}");
    let most = on_the_way(streams) + (sent as f64 / seconds * APART) as u64;
    // Bytes received during the ramp do not count at the receiver, but were counted at the sender.
    let ramp = way["ramp_ns"].as_u64() > Some(0);
    let missing = sent.saturating_sub(received);
    let apart = if ramp { 0 } else { missing };
    (apart.max(received.saturating_sub(sent)) <= most)
        .then_some(())
        .ok_or_else(|| format!("{received} of {sent}, {most} may differ"))
}

/// Planted: the far end counted half of the bytes, or half as many more.
#[test]
fn counts_of_bw_that_differ_by_half_are_not_alike() {
    let way = |received: u64| {
        let end = |bytes| serde_json::json!({"bytes": bytes, "time_ns": 2_000_000_000});
        serde_json::json!({"near": end(20_u64 << 30), "far": end(received), "ramp_ns": 0})
    };
    assert_eq!(alike_apart(&way(20 << 30), "forward", 1), Ok(()));
    assert!(alike_apart(&way(10 << 30), "forward", 1).is_err());
    assert!(alike_apart(&way(30 << 30), "forward", 1).is_err());
}

/// Share of the pace that a sender never reaches.
const PACE_MOST: f64 = 1.25;

/// Checks the share of a pace that was sent. A busy machine may send less, which is an `Err`. It never sends more: an
/// omitted second that counts would make the share 1.5.
fn is_paced(share: f64) -> Result<(), String> {
    assert!(share < PACE_MOST, "{share} of the pace");
    let reached = share >= 0.4;
    reached.then_some(()).ok_or_else(|| format!("{share} of the pace"))
}

/// Planted: too small a share, and an omitted second that counts.
#[test]
#[should_panic(expected = "1.5 of the pace")]
fn what_exceeds_a_pace_is_never_forgiven() {
    assert!(is_paced(0.39).is_err() && is_paced(0.41).is_ok());
    let _ = is_paced(1.5);
}

/// Planted: more bytes are missing than can be in flight.
#[test]
fn counts_that_differ_by_more_than_the_buffers_hold_are_not_alike() {
    let (sent, most) = (10 << 30, on_the_way(1));
    assert_eq!(alike([sent, sent - most], 1), Ok(()));
    assert!(alike([sent, sent - most - 1], 1).is_err());
}

/// A load of `linerate bw`: its direction, its number of streams, and whether the receiver uses `--discard`.
type BwLoad = (&'static str, u64, bool);

/// Checks that `linerate bw` and an iperf3 server count the same bytes under each of these loads.
fn bw_counts_as_a_server(loads: &[BwLoad]) {
    if !has("iperf3") {
        return;
    }
    let turn = turn();
    let home = TempDir::new().unwrap();
    let [port] = free_ports();
    let _server = Running::start(Command::new("iperf3").args(["-s", "-p", &port.to_string()]));
    let target = format!("iperf3://127.0.0.1:{port}");
    for &(direction, streams, discards) in loads {
        let number = streams.to_string();
        let args = ["bw", &target, "-t", "2s", "-d", direction, "-P", &number, "--json"];
        let more: &[_] = if discards { &["--discard"] } else { &[] };
        let args = [&args[..], more].concat();
        ask(&turn, || {
            let output = patient(|| linerate(home.path()).args(&args).output().unwrap(), ABSENT);
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(0), "{words}");
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            fits("bw", &report);
            let way = &report["directions"][direction];
            assert_eq!(way["discarded"], discards);
            assert!(way["retransmits"].is_u64());
            assert_eq!(report["complete"], true);
            assert!(way["goodput_bps"].as_u64().unwrap() > 0);
            // If this end is the receiver, it is read ten times a second.
            let parts = way["intervals"].as_array().unwrap();
            assert_eq!(parts.is_empty(), direction == "forward", "{way}");
            assert!(way["near"]["cpu_ns_per_byte"].as_f64() > Some(0.0), "{way}");
            assert!(way["far"]["cpu_percent"].is_number(), "{way}");
            alike_apart(way, direction, streams)
        });
    }
}

/// The stdout of `bw` for a test with an iperf3 server, with these arguments.
fn measured(args: &[&str]) -> String {
    let home = TempDir::new().unwrap();
    let [port] = free_ports();
    let _server = Running::start(Command::new("iperf3").args(["-s", "-p", &port.to_string()]));
    let target = format!("iperf3://127.0.0.1:{port}");
    let run = || {
        let mut command = linerate(home.path());
        command.args(["bw", &target, "-t", "1s"]).args(args);
        command.output().unwrap()
    };
    let output = patient(run, ABSENT);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{words}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_test_with_a_server_of_iperf3_leaves_a_record_and_is_streamed() {
    if !has("iperf3") {
        return;
    }
    let _turn = turn();
    let report: Value = serde_json::from_str(&measured(&["--json", "--with-record"])).unwrap();
    let record = &report["record"];
    assert_eq!(record["hosts"].as_array().unwrap().len(), 1, "of the far one nothing is read");
    let ends = record["steps"][0]["ends"].as_array().unwrap();
    let rows = |end: usize, source: &str| -> Vec<usize> {
        let tables = ends[end]["tables"].as_array().unwrap().iter();
        let of = tables.filter(|table| table["source"] == source);
        of.map(|table| table["at"].as_array().unwrap().len()).collect()
    };
    // The counters of this end are sampled; the iperf3 server reports only sums.
    assert!(rows(0, "tcp")[0] > 5 && rows(0, "thread")[0] > 5);
    assert_eq!((rows(1, "worker"), rows(1, "process")), (vec![2], vec![2]));
    assert!(ends[1]["congestion"].is_string());
    assert!(!ends[1]["gaps"].as_array().unwrap().is_empty());

    let lines = measured(&["--stream-json", "-d", "reverse"]);
    let lines: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(lines.len() > 5, "{lines:?}");
    let last = lines.last().unwrap();
    assert_eq!(last["result"]["far_end"], "iperf3", "{last}");
}

#[test]
fn many_streams_share_threads_so_that_a_test_can_end_in_time() {
    if !has("iperf3") {
        return;
    }
    let turn = turn();
    for direction in ["forward", "reverse"] {
        let all = || {
            let report = measured(&["--json", "--with-record", "-P", "128", "-d", direction]);
            let report: Value = serde_json::from_str(&report).unwrap();
            assert_eq!((&report["complete"], &report["streams"]), (&true.into(), &128.into()));
            let ends = &report["record"]["steps"][0]["ends"];
            let threads = ends[0]["tables"].as_array().unwrap().iter();
            let threads = threads.filter(|table| table["source"] == "worker").count();
            let cpus = thread::available_parallelism().unwrap().get();
            assert_eq!(threads, cpus.min(64));
            let streams = ends[0]["totals"].as_array().unwrap();
            assert_eq!(streams.len(), 128);
            // A server that gets no CPU time may report no stream.
            match ends[1]["totals"].as_array().unwrap().len() {
                0 => Err("the server reported no stream".to_owned()),
                reported => Ok(reported),
            }
        };
        assert!(ask(&turn, all).is_none_or(|reported| reported == 128), "{direction}");
    }
}

#[test]
fn bw_and_a_server_of_iperf3_count_the_same() {
    bw_counts_as_a_server(&[("forward", 1, false), ("reverse", 4, false), ("reverse", 1, true)]);
}

/// Checks tests that end after a number of bytes: the bytes sent and received must match it.
fn amounts_are_met(measured: &dyn Fn(&[&str]) -> [u64; 2]) {
    // If the client sends, both ends count this number of bytes, rounded up to a whole block.
    for (args, wanted) in [
        (&["-n", "200M"][..], 200 << 20),
        (&["-k", "1000"], 1000 << 17),
        (&["-k", "1000", "-l", "64K"], 1000 << 16),
        (&["-n", "200M", "-R"], 200 << 20),
        (&["-n", "1000000"], 8 << 17),
    ] {
        assert_eq!(measured(args), [wanted; 2], "{args:?}");
    }
    // A client that receives ends the test once it has enough bytes; the server sends whole blocks.
    for streams in ["1", "4"] {
        let [sent, received] = measured(&["-n", "1000000", "-R", "-P", streams]);
        assert!(
            sent == 8 << 17 && (1_000_000..=sent).contains(&received),
            "{streams}: {received} of {sent}"
        );
    }
    // With `-k`, a client that receives counts its reads as blocks, though each reads only a part of one: it ends the
    // test early, or in time.
    for args in [&["-k", "5", "-R"][..], &["-k", "1000", "-R", "-P", "4"]] {
        let wanted = args[1].parse::<u64>().unwrap() << 17;
        let [sent, received] = measured(args);
        assert!(
            0 < received && received <= sent && sent <= wanted,
            "{args:?}: {received} of {sent}"
        );
    }
}

/// `linerate serve` with a port for iperf3 clients.
struct Served {
    server: Running,
    address: String,
    port: String,
    _home: TempDir,
    /// Released once the server has ended.
    turn: Turn,
}

impl Served {
    fn start(address: IpAddr) -> Self {
        let turn = turn();
        let address = address.to_string();
        let home = TempDir::new().unwrap();
        let [port, own] = free_ports().map(|port| port.to_string());
        let serve = ["serve", "--open", "--listen", &address, "--port", &own];
        let iperf3 = format!("--iperf3={port}");
        Self {
            server: Running::start(linerate(home.path()).args(serve).arg(iperf3)),
            address,
            port,
            _home: home,
            turn,
        }
    }

    fn client(&self, args: &[&str]) -> Command {
        let mut command = Command::new("iperf3");
        command.args(["-c", &self.address, "-p", &self.port]);
        command.args(args);
        command
    }

    /// The JSON document of an iperf3 client with these arguments.
    fn result_of(&self, args: &[&str]) -> Value {
        let run = || self.client(args).arg("-J").output().unwrap();
        let output = patient(run, &["Connection refused"]);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Bytes that were sent and received in the test of a client.
    fn measured(&self, args: &[&str]) -> [u64; 2] {
        let report = self.result_of(args);
        assert_eq!(report.get("error"), None, "{args:?}");
        ["sum_sent", "sum_received"].map(|side| report["end"][side]["bytes"].as_u64().unwrap())
    }

    fn refused(&self, args: &[&str]) -> String {
        self.result_of(args)["error"].as_str().unwrap().to_owned()
    }

    /// Checks that both ends count the same bytes for a client with these arguments and this many streams.
    fn counts_alike(&self, args: &[&str], streams: u64) {
        ask(&self.turn, || alike(self.measured(args), streams));
    }

    /// Checks that the sender keeps a pace of 400 Mb/s for 2 s, and that an omitted second does not count.
    fn keeps_its_pace(&self, args: &[&str]) {
        let args = [args, &["-b", "400M"]].concat();
        ask(&self.turn, || {
            let shares = self.measured(&args).map(|bytes| bytes as f64 / (2.0 * 400e6 / 8.0));
            shares.into_iter().try_for_each(is_paced)
        });
    }
}

/// Checks that both ends count the same bytes in both directions of a client that sends and receives at once.
fn both_ways_count_alike(served: &Served) {
    let bytes = |report: &Value, side: &str| report["end"][side]["bytes"].as_u64().unwrap();
    for args in [&["--bidir", "-t", "1"][..], &["--bidir", "-t", "1", "-P", "3"]] {
        let streams = if args.len() > 3 { 3 } else { 1 };
        ask(&served.turn, || {
            let report = served.result_of(args);
            assert_eq!(report.get("error"), None, "{args:?}");
            let both = [
                ["sum_sent", "sum_received"],
                ["sum_sent_bidir_reverse", "sum_received_bidir_reverse"],
            ];
            both.iter().try_for_each(|sides| {
                let counted = sides.map(|side| bytes(&report, side));
                // A sender that gets its CPU late may send nothing for a while, but not for a whole second.
                assert!(counted[1] > 0, "{args:?}: {counted:?}");
                alike(counted, streams)
            })
        });
    }
}

#[test]
fn a_client_of_iperf3_and_serve_count_the_same_and_what_is_refused_is_shown() {
    if !has("iperf3") {
        return;
    }
    let served = Served::start(HERE);
    served.counts_alike(&["-t", "2"], 1);
    served.counts_alike(&["-t", "2", "-R", "-P", "4"], 4);
    amounts_are_met(&|args| served.measured(args));
    served.keeps_its_pace(&["-O", "1", "-t", "2", "-R"]);
    both_ways_count_alike(&served);
    served.counts_alike(&["-t", "1", "-R", "-Z"], 1);
    served.counts_alike(&["-t", "1", "-R", "--dscp", "46"], 1);
    let unknown = served.refused(&["-R", "-C", "nosuch"]);
    assert!(unknown.contains("TCP_CONGESTION"), "{unknown}");
    assert_eq!(served.server.end(), Some(0));
}

#[test]
fn a_client_of_iperf3_that_sends_says_that_the_server_was_stopped() {
    if !has("iperf3") {
        return;
    }
    let _turn = turn();
    let home = TempDir::new().unwrap();
    let [port, own] = free_ports();
    let server = Running::start(
        linerate(home.path())
            .args(["serve", "--open", "--listen", "127.0.0.1", "--port"])
            .args([own.to_string(), format!("--iperf3={port}")]),
    );
    let stopper = thread::spawn(move || {
        until("a client has called", || is_called(port));
        thread::sleep(Duration::from_secs(1));
        server.end()
    });
    let run = || {
        let mut command = Command::new("iperf3");
        command.args(["-c", "127.0.0.1", "-p", &port.to_string(), "-t", "60"]);
        command.output().unwrap()
    };
    let output = patient(run, &["Connection refused"]);
    assert_eq!(stopper.join().unwrap(), Some(0));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("the server has terminated"), "{words}");
}

#[test]
fn a_server_that_is_killed_in_mid_test_loses_nothing_that_was_measured() {
    if !has("iperf3") {
        return;
    }
    for engine in ["tcp", "udp"] {
        killed_in_mid_test(engine);
    }
}

/// Whether a program has an established connection to a TCP port of this machine.
fn is_called(port: u16) -> bool {
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
    // The far address of a connection in state 01, which is established.
    sockets.contains(&format!(":{port:04X} 01 "))
}

fn until(what: &str, so: impl Fn() -> bool) {
    let end = Instant::now() + LONG;
    while !so() {
        assert!(Instant::now() < end, "never: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn killed_in_mid_test(engine: &str) {
    let _turn = turn();
    let home = TempDir::new().unwrap();
    let [port] = free_ports();
    let server = Running::start(Command::new("iperf3").args(["-s", "-p", &port.to_string()]));
    let target = format!("iperf3://127.0.0.1:{port}");
    let killer = thread::spawn(move || {
        until("a client has called", || is_called(port));
        thread::sleep(Duration::from_secs(2));
        drop(server);
    });
    let args = ["bw", &target, "-t", "60s", "--json", "--engine", engine];
    let paced = ["--pacing", "50Mbit/s"];
    let run = || {
        let mut command = linerate(home.path());
        command.args(args).args(paced).output().unwrap()
    };
    let output = patient(run, ABSENT);
    killer.join().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    fits("bw", &report);
    assert_eq!(report["complete"], false);
    let way = &report["directions"]["forward"];
    assert_eq!(way["goodput_bps"], Value::Null);
    assert_eq!(way["datagrams"], Value::Null);
    assert!(way["near"]["bytes"].as_u64().unwrap() > 0);
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("error: lost the iperf3 server"), "{words}");
}

#[test]
fn other_targets_and_absent_servers_are_told_apart() {
    let home = TempDir::new().unwrap();
    let run = |target: &str| {
        let output = linerate(home.path()).args(["bw", target]).output().unwrap();
        let words = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), words)
    };
    let [port, other] = free_ports();
    let (code, words) = run(&format!("127.0.0.1:{port}"));
    assert_eq!(code, Some(3));
    assert!(words.contains("linerate serve"), "{words}");
    for wrong in ["ftp://brook", "iperf3://", "iperf3://brook:0"] {
        assert_eq!(run(wrong).0, Some(2), "{wrong}");
    }
    let (code, words) = run(&format!("iperf3://127.0.0.1:{other}"));
    assert_eq!(code, Some(3));
    assert!(words.contains("no iperf3 server") && words.contains("hint: "), "{words}");
}

mod long {
    use super::*;

    #[test]
    fn bw_and_a_server_of_iperf3_count_the_same_of_other_loads() {
        bw_counts_as_a_server(&[
            ("forward", 4, false),
            ("reverse", 1, false),
            ("reverse", 4, true),
        ]);
    }

    #[test]
    fn a_client_of_iperf3_and_serve_count_the_same_by_other_options() {
        if !has("iperf3") {
            return;
        }
        let served = Served::start(HERE);
        for (args, streams) in [
            (&["-t", "2", "-P", "4"][..], 4),
            (&["-t", "2", "-R"], 1),
            (&["-t", "1", "-C", "reno", "-R"], 1),
            (&["-t", "1", "-l", "64K", "-w", "128K"], 1),
        ] {
            served.counts_alike(args, streams);
        }
        for args in [&["-t", "2"][..], &["-O", "1", "-t", "2"], &["-t", "2", "-R"]] {
            served.keeps_its_pace(args);
        }
    }
}
