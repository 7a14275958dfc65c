//! iperf3 and linerate over UDP: each datagram that one side sent must be received or counted as lost by the other.

use super::*;

/// Payload of each datagram, in bytes.
const SIZE: u64 = 1000;

/// Counts of the datagrams of one direction, from the reports of both sides.
#[derive(Debug)]
struct Counted {
    /// Payload in bytes: sent, as the sender reports, and received, as the receiver does.
    bytes: [u64; 2],
    /// Datagrams that the sender sent, and the highest number that the receiver received.
    packets: [u64; 2],
    /// Datagrams that were lost, as the receiver reports.
    lost: u64,
}

impl Counted {
    /// Whether both sides counted the same datagrams, except for those in flight at the end. If the clock ends a test,
    /// a sender that gets its CPU late may send more datagrams, which nobody counts: then this is an `Err`.
    fn agrees(&self) -> Result<(), String> {
        let Self { bytes: [sent, received], packets: [all, seen], lost } = *self;
        // On a busy machine some are lost; then both sides must report them.
        assert!(received > 0 && lost < seen, "{self:?}");
        let (whole, few) = (sent / 100 + 5 * SIZE, all / 200 + 5);
        // `bw` counts bytes up to its last row, but datagrams up to the end, as the server does.
        assert!((sent / SIZE).abs_diff(all) <= few, "{self:?}");
        let alike = sent.abs_diff(received + lost * SIZE) <= whole
            && all.abs_diff(seen) <= few
            && (seen - lost).abs_diff(received / SIZE) <= few;
        alike.then_some(()).ok_or_else(|| format!("{self:?}"))
    }
}

/// Planted: a tenth of the datagrams is missing in the receiver's report.
#[test]
fn reports_that_differ_by_a_tenth_do_not_agree() {
    let counted = |received: u64| Counted {
        bytes: [1000 * SIZE, received * SIZE],
        packets: [1000, received],
        lost: 0,
    };
    assert_eq!(counted(1000).agrees(), Ok(()));
    assert!(counted(900).agrees().is_err());
}

/// The counts in the JSON document of an iperf3 client.
fn reported(report: &Value) -> Counted {
    let of = |side: &str, what: &str| report["end"][side][what].as_u64().unwrap();
    let both = |what| ["sum_sent", "sum_received"].map(|side| of(side, what));
    Counted {
        bytes: both("bytes"),
        packets: both("packets"),
        lost: of("sum_received", "lost_packets"),
    }
}

/// The counts in the document of `bw` for 50 Mb/s in a direction. A sender that gets its CPU late sends less, and both
/// ends count that.
fn counted(report: &Value, direction: &str) -> Counted {
    assert_eq!((&report["complete"], &report["engine"]), (&true.into(), &"udp".into()));
    let way = &report["directions"][direction];
    let n = |name: &str| way["datagrams"][name].as_u64().unwrap();
    assert_eq!((n("size_bytes"), n("requested_bps")), (SIZE, 50_000_000));
    assert!(n("sent_bps") as f64 <= 50e6 * PACE_MOST);
    assert_eq!(way["datagrams"]["reordered"].is_u64(), direction == "reverse");
    assert!(n("jitter_ns") < 1_000_000_000);
    let ends = if direction == "forward" { ["near", "far"] } else { ["far", "near"] };
    Counted {
        bytes: ends.map(|end| way[end]["bytes"].as_u64().unwrap()),
        packets: [n("sent"), n("received") + n("lost")],
        lost: n("lost"),
    }
}

#[test]
fn bw_and_a_server_of_iperf3_count_the_same_datagrams() {
    if !has("iperf3") {
        return;
    }
    let turn = turn();
    let home = TempDir::new().unwrap();
    let [port] = free_ports();
    let _server = Running::start(Command::new("iperf3").args(["-s", "-p", &port.to_string()]));
    let rounds = [("1", "50Mbit/s"), ("2", "25Mbit/s")];
    // One stream uses IPv4, two use IPv6 if there is one, each in both directions.
    let rounds = rounds.into_iter().zip(loopbacks().into_iter().cycle());
    for direction in ["forward", "reverse"] {
        for ((streams, pace), address) in rounds.clone() {
            let target = format!("iperf3://{}", SocketAddr::new(address, port));
            let run = || {
                let mut command = linerate(home.path());
                command.args(["bw", &target, "--engine", "udp", "--json", "-t", "2s"]);
                command.args(["-d", direction, "-P", streams, "--write-size", "1000B"]);
                command.args(["--pacing", pace]).output().unwrap()
            };
            ask(&turn, || {
                let output = patient(run, ABSENT);
                let words = String::from_utf8_lossy(&output.stderr).into_owned();
                assert_eq!(output.status.code(), Some(0), "{words}");
                let report: Value = serde_json::from_slice(&output.stdout).unwrap();
                fits("bw", &report);
                counted(&report, direction).agrees()
            });
        }
    }
}

/// Arguments of an iperf3 client that sends datagrams of 1000 bytes.
fn datagrams<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["-u", "-l", "1000"], args].concat()
}

impl Served {
    /// The counts of an iperf3 client, whose test must succeed.
    fn counted(&self, args: &[&str]) -> Counted {
        let report = self.result_of(&datagrams(args));
        assert_eq!(report.get("error"), None, "{args:?}");
        let jitter = report["end"]["sum"]["jitter_ms"].as_f64().unwrap();
        assert!((0.0..1000.0).contains(&jitter), "{args:?}: {jitter}");
        reported(&report)
    }

    /// Number of descriptors and threads of the server, once they no longer change.
    fn settled(&self) -> [usize; 2] {
        let (mut seen, mut alike) = (self.holds(), 1);
        while alike < 3 {
            thread::sleep(Duration::from_millis(200));
            let before = std::mem::replace(&mut seen, self.holds());
            alike = if seen == before { alike + 1 } else { 1 };
        }
        seen
    }

    /// Number of descriptors and threads of the server now.
    fn holds(&self) -> [usize; 2] {
        let of = |what: &str| {
            let path = format!("/proc/{}/{what}", self.server.0.id());
            std::fs::read_dir(path).unwrap().count()
        };
        [of("fd"), of("task")]
    }
}

#[test]
fn a_client_of_iperf3_and_serve_count_the_same_datagrams() {
    if !has("iperf3") {
        return;
    }
    for address in loopbacks() {
        let served = Served::start(address);
        for way in [&["-b", "50M"][..], &["-b", "50M", "-R"]] {
            let args = [way, &["-n", "2M"]].concat();
            ask(&served.turn, || served.counted(&args).agrees());
        }
    }
}

#[test]
fn a_client_that_is_killed_leaves_nothing_behind() {
    if !has("iperf3") {
        return;
    }
    let served = Served::start(HERE);
    let report = served.result_of(&datagrams(&["-b", "10M", "-n", "100K"]));
    assert_eq!(report.get("error"), None);
    let idle = served.settled();
    for way in [&["-P", "4"][..], &["-P", "4", "-R"]] {
        let mut client = served.client(&datagrams(&["-b", "10M", "-t", "60"]));
        let client = Running::start(client.args(way));
        until("a test runs", || served.holds()[1] >= idle[1] + 4);
        drop(client);
        until("nothing is left of it", || served.holds() == idle);
        let report = served.result_of(&datagrams(&["-b", "10M", "-n", "100K"]));
        assert_eq!(report.get("error"), None, "{way:?}");
        until("nothing is left of that", || served.holds() == idle);
    }
}

mod long {
    use super::*;

    #[test]
    fn amounts_times_streams_and_options_of_a_client_count_the_same() {
        if !has("iperf3") {
            return;
        }
        let served = Served::start(HERE);
        for args in [
            &["-b", "50M", "-t", "2"][..],
            &["-b", "50M", "-t", "2", "-R"],
            &["-b", "25M", "-t", "2", "-P", "2"],
            &["-b", "25M", "-t", "2", "-P", "2", "-R"],
            &["-b", "50M/20", "-t", "1", "-R", "--udp-counters-64bit"],
            &["-b", "50M", "-t", "1", "--udp-counters-64bit", "-w", "200K"],
            &["-b", "50M", "-k", "5000"],
            &["-b", "50M", "-k", "5000", "-R"],
        ] {
            ask(&served.turn, || served.counted(args).agrees());
        }
        // The omitted first second does not count: 2 s of 3 s at 50 Mb/s do.
        for way in [&["-b", "50M"][..], &["-b", "50M", "-R"]] {
            let args = [way, &["-O", "1", "-t", "2"]].concat();
            ask(&served.turn, || {
                let Counted { bytes, packets, .. } = reported(&served.result_of(&datagrams(&args)));
                let bytes = bytes.map(|bytes| bytes as f64 / (2.0 * 50e6 / 8.0));
                let packets = packets.map(|n| n as f64 / (2.0 * 50e6 / 8000.0));
                bytes.into_iter().chain(packets).try_for_each(is_paced)
            });
        }
        // Without a rate the server sends as fast as it can, which is more than the client can receive.
        let report = served.result_of(&datagrams(&["-b", "0", "-t", "1", "-R"]));
        assert_eq!(report.get("error"), None);
        assert!(reported(&report).bytes[1] > 0);
        assert_eq!(served.server.end(), Some(0));
    }
}
