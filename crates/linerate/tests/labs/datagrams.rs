//! Single probes by datagrams, by the built program in a lab.

use std::ops::Range;

use linerate_test::{ask, has};
use serde_json::Value;

use crate::lab;

/// The document of a command in a lab; `None` where there can be no lab.
fn measured(lab: &[&str], command: &[&str]) -> Option<Value> {
    let home = tempfile::TempDir::new().unwrap();
    let [out, _] = lab::run(home.path(), &[lab, &["--"], command].concat())?;
    Some(serde_json::from_str(&out).unwrap())
}

/// A document that passes a check. A machine that stood still sends less than it was asked for, or loses
/// some of it: it is asked again.
fn passes(
    measure: impl Fn() -> Option<Value>,
    check: impl Fn(&Value) -> Result<(), String>,
) -> Option<Value> {
    ask(|| {
        let Some(document) = measure() else {
            return Ok(None);
        };
        check(&document).map(|()| Some(document))
    })?
}

/// Whether a figure lies in a range.
fn within(what: &str, figure: &Value, range: Range<f64>) -> Result<(), String> {
    let figure = figure.as_f64().unwrap_or(f64::NAN);
    let lies = range.contains(&figure);
    lies.then_some(())
        .ok_or_else(|| format!("{what}: {figure} is not within {range:?}"))
}

/// Payload of datagrams that a path of so many bits a second carries, in frames of Ethernet.
fn payload(rate: f64) -> f64 {
    rate * 1472.0 / 1514.0
}

fn search(rate: &str, more: &[&str]) -> Option<Value> {
    let fault = format!("path-rate:{rate},shallow,forward");
    let find = [
        lab::PROGRAM,
        "bw",
        "FAR",
        "--open",
        "--engine",
        "udp",
        "--quiet",
        "--json",
    ];
    let find = [&find[..], &["--find-rate=0.5%", "-t", "3s"], more].concat();
    measured(&["--fault", &fault], &find)
}

/// What a search on a path of so many bits a second must have found.
fn is_found(found: &Value, bits: f64) -> Result<(), String> {
    let search = &found["search"];
    let payload = payload(bits);
    within(
        "rate_bps",
        &search["rate_bps"],
        payload * 0.85..payload * 1.05,
    )?;
    within("lost above", &search["above"]["lost_share"], 0.005..1.0)?;
    let lost = &found["directions"]["forward"]["datagrams"]["lost_share"];
    within("lost_share", lost, 0.0..0.00501)?;
    let more = search["above"]["sent_bps"].as_f64() > search["rate_bps"].as_f64();
    more.then_some(()).ok_or_else(|| format!("{search:#}"))
}

#[test]
fn the_rate_of_a_path_is_found_and_the_next_one_loses() {
    if let Some(found) = passes(|| search("20Mb/s", &[]), |found| is_found(found, 20e6)) {
        // Planted: a path of another rate.
        assert!(is_found(&found, 30e6).is_err() && is_found(&found, 15e6).is_err());
    }
}

mod long {
    use super::*;

    #[test]
    fn the_rate_of_a_faster_path_is_found() {
        passes(|| search("100Mb/s", &[]), |found| is_found(found, 100e6));
    }

    #[test]
    fn datagrams_go_on_where_the_path_takes_the_same_packets_as_before() {
        passes(|| shrunk("1500"), |found| goes_on(found, false));
    }

    #[test]
    fn a_queue_that_is_not_full_refuses_nothing() {
        passes(|| queued("20mbit"), |found| is_refused(found, 20e6));
    }

    #[test]
    fn large_datagrams_travel_in_fragments() {
        passes(|| sized("4000B"), |found| is_split(found, true));
    }

    #[test]
    fn other_things_that_anybody_may_say_change_nothing_either() {
        // 5: a source route that failed, which nobody asked for.
        for size in ["1472B", "40000B"] {
            passes(|| blamed(5, size), is_counted);
        }
        passes(|| blamed_with_iperf3([1, 0]), is_unchanged);
    }

    #[test]
    fn a_bound_below_the_rate_of_a_path_is_what_is_found() {
        let check = |found: &Value| {
            assert_eq!(found["search"]["above"], Value::Null);
            within("rate_bps", &found["search"]["rate_bps"], 25e6..31e6)
        };
        passes(|| search("100Mb/s", &["--pacing", "30Mbit/s"]), check);
    }

    #[test]
    fn datagrams_that_a_rule_of_their_own_host_forbids_are_not_sent_and_others_are() {
        passes(forbidden, |found| {
            assert_eq!(found["complete"], true, "{found:#}");
            let way = &found["directions"]["forward"];
            within("goodput_bps", &way["goodput_bps"], 0.5e6..2e6)?;
            within("lost", &way["datagrams"]["lost"], 0.0..1.0)?;
            within("refused", &way["datagrams"]["refused"], 100.0..1e9)
        });
    }

    #[test]
    fn a_datagram_that_fits_no_packet_travels_in_fragments_which_is_told() {
        for (size, fragments) in [("1472B", false), ("1473B", true)] {
            passes(|| sized(size), |found| is_split(found, fragments));
        }
    }

    #[test]
    fn a_path_that_says_again_and_again_that_packets_are_too_long_breaks_no_test_with_iperf3() {
        // 4: too long for a path that takes so many bytes.
        passes(|| blamed_with_iperf3([4, 1300]), is_unchanged);
    }
}

/// Sends datagrams that fill packets, while the port's MTU becomes another one in the middle.
fn shrunk(mtu: &str) -> Option<Value> {
    let send = "bw $1 --open --engine udp --pacing 5Mbit/s -t 4s --quiet --json --with-record";
    let script = format!(
        "(sleep 3; ip -o route get $1 | sed 's/.* dev \\([^ ]*\\).*/\\1/' \
         | xargs -I PORT ip link set dev PORT mtu {mtu}) & {} {send}; wait",
        lab::PROGRAM
    );
    measured(&[], &["sh", "-c", &script, "sh", "FAR"])
}

/// What `shrunk` must tell: all is measured, payload flows all the time, and whether it travels in
/// fragments since the MTU changed.
fn goes_on(found: &Value, fragments: bool) -> Result<(), String> {
    assert_eq!(found["complete"], true, "{found:#}");
    let unknown = found["unknown"].to_string();
    let told = unknown.contains("they travel in fragments since");
    assert_eq!(told, fragments, "{unknown}");
    let parts = found["directions"]["forward"]["intervals"].as_array();
    parts.unwrap().iter().try_for_each(|part| {
        let rate = part["bytes"].as_f64().unwrap() * 8e9 / part["ns"].as_f64().unwrap();
        within("rate of a part", &rate.into(), 2e6..10e6)
    })
}

#[test]
fn datagrams_go_on_in_fragments_where_the_path_takes_shorter_packets_than_before() {
    passes(|| shrunk("1300"), |found| goes_on(found, true));
}

/// Where programs of administrators are, in the path of a script: not everybody's has these folders.
const SBIN: &str = "export PATH=$PATH:/usr/sbin:/sbin";

/// Sends datagrams, of which a rule of the near host itself forbids those that exceed 1 Mb/s.
fn forbidden() -> Option<Value> {
    // Nothing else lets some datagrams pass and forbids others so that their sender hears of it (EPERM).
    if !has("nft") {
        return None;
    }
    let rule = "add table inet t; add chain inet t out { type filter hook output priority 0; }; \
                add rule inet t out meta l4proto udp limit rate over 125 kbytes/second burst 8 kbytes drop";
    let send = "bw $1 --open --engine udp --pacing 5Mbit/s -t 2s --quiet --json --with-record";
    let script = format!("{SBIN}; nft '{rule}' && exec {} {send}", lab::PROGRAM);
    measured(&[], &["sh", "-c", &script, "sh", "FAR"])
}

/// Sends 5 Mb/s of datagrams through a queue of the near host's own port that drains at `rate`.
fn queued(rate: &str) -> Option<Value> {
    if !has("tc") {
        return None;
    }
    let send = "bw $1 --open --engine udp --pacing 5Mbit/s -t 2s --quiet --json";
    let script = format!(
        "{SBIN}; port=$(ip -o route get $1 | sed 's/.* dev \\([^ ]*\\).*/\\1/') \
         && tc qdisc replace dev $port root tbf rate {rate} burst 16kb limit 16kb && exec {} {send}",
        lab::PROGRAM
    );
    measured(&[], &["sh", "-c", &script, "sh", "FAR"])
}

/// What `queued` must tell of 5 Mb/s where the queue carries this rate.
fn is_refused(found: &Value, rate: f64) -> Result<(), String> {
    assert_eq!(found["complete"], true, "{found:#}");
    let way = &found["directions"]["forward"];
    let full = rate < 5e6;
    within("lost", &way["datagrams"]["lost"], 0.0..1.0)?;
    let refused = if full { 1.0..1e9 } else { 0.0..1.0 };
    within("refused", &way["datagrams"]["refused"], refused)?;
    // What the queue lets through, in frames of Ethernet.
    let most = payload(rate).min(5e6);
    within("goodput_bps", &way["goodput_bps"], most * 0.8..most * 1.1)
}

#[test]
fn what_a_full_queue_of_their_own_host_takes_not_is_counted_and_others_are_sent() {
    if let Some(found) = passes(|| queued("2mbit"), |found| is_refused(found, 2e6)) {
        // Planted: a queue that would not be full.
        assert!(is_refused(&found, 20e6).is_err());
    }
}

/// Sends datagrams of a size that may not fit a packet.
fn sized(size: &str) -> Option<Value> {
    let send = "bw FAR --open --engine udp --pacing 5Mbit/s -t 1s --quiet --json --write-size";
    let send: Vec<&str> = std::iter::once(lab::PROGRAM)
        .chain(send.split(' '))
        .chain([size])
        .collect();
    measured(&[], &send)
}

/// What `sized` must tell: whether the datagrams travel in fragments, and which size would not.
fn is_split(found: &Value, fragments: bool) -> Result<(), String> {
    assert_eq!(found["complete"], true, "{found:#}");
    let unknown = found["unknown"].as_array().unwrap();
    let gap = unknown
        .iter()
        .find(|gap| gap["what"] == "near set.fragments");
    assert_eq!(gap.is_some(), fragments, "{unknown:?}");
    if let Some(gap) = gap {
        assert_eq!(gap["hint"], "--write-size 1472B", "{gap}");
    }
    let goodput = &found["directions"]["forward"]["goodput_bps"];
    within("goodput_bps", goodput, 4e6..6e6)
}

/// Tells the near host, as anybody on the way could (ICMP), that its datagrams did not get there: destination
/// unreachable, with this code, and how long packets may be.
const UNREACHABLE: &str = r#"
import os, socket, struct, sys, time
open(os.environ["HOME"] + "/ready", "w")
def checksum(b):
    n = sum(struct.unpack("!%dH" % (len(b) // 2), b))
    n = (n >> 16) + (n & 0xFFFF)
    return ~(n + (n >> 16)) & 0xFFFF
def place(text):
    host, port = text.split(":")
    return struct.pack("<I", int(host, 16)), int(port, 16)
ends = []
while not ends:
    time.sleep(0.1)
    rows = [line.split() for line in open("/proc/net/udp").readlines()[1:]]
    ends = [[place(p) for p in row[1:3]] for row in rows if row[3] == "01"]
(own, from_port), (other, to_port) = ends[0]
time.sleep(1)
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 1, 0, 64, socket.IPPROTO_UDP, 0, own, other)
udp = struct.pack("!HHHH", from_port, to_port, 8, 0)
code, mtu = int(sys.argv[1]), int(sys.argv[2])
head = lambda n: struct.pack("!BBHHH", 3, code, n, 0, mtu)
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
for _ in range(10):
    raw.sendto(head(checksum(head(0) + ip + udp)) + ip + udp, (socket.inet_ntoa(own), 0))
    time.sleep(0.05)
"#;

/// Sends datagrams to `target` while the path says that it cannot carry them, for `code` and by `mtu`.
fn unreachable(target: &str, more: &str, [code, mtu]: [u16; 2]) -> Option<Value> {
    let send = format!("bw {target} --engine udp --pacing 5Mbit/s -t 2s --quiet --json {more}");
    let script = format!(
        "rm -f \"$HOME/ready\"; timeout 60 python3 -c \"$2\" {code} {mtu} & \
         for look in $(seq 100); do [ ! -e \"$HOME/ready\" ] || break; sleep 0.1; done; {} {send}; wait",
        lab::PROGRAM
    );
    let iperf3 = ["--fault", "environment:far,LINERATE_SERVE_IPERF3=5201"];
    measured(&iperf3, &["sh", "-c", &script, "sh", "FAR", UNREACHABLE])
}

/// Messages of the path that came to the sender's socket.
fn path_errors(found: &Value) -> i64 {
    let tables = found["record"]["steps"][0]["ends"][0]["tables"].as_array();
    let table = tables.unwrap().iter().find(|t| t["source"] == "udp");
    let columns = table.unwrap()["columns"].as_array().unwrap();
    let errors = columns.iter().find(|c| c["name"] == "path_errors").unwrap();
    let values = errors["values"].as_array().unwrap();
    values.last().unwrap().as_i64().unwrap()
}

/// What `unreachable` must tell of 5 Mb/s: all that was asked for was sent and arrived.
fn is_unchanged(found: &Value) -> Result<(), String> {
    assert_eq!(found["complete"], true, "{}", found["unknown"]);
    let goodput = &found["directions"]["forward"]["goodput_bps"];
    within("goodput_bps", goodput, 4e6..6e6)
}

/// The same, where the messages of the path were counted by the sender's socket.
fn is_counted(found: &Value) -> Result<(), String> {
    let unknown = found["unknown"].to_string();
    assert!(!unknown.contains("UDP_SEGMENT"), "{unknown}");
    within("path_errors", &path_errors(found).into(), 1.0..1e9)?;
    is_unchanged(found)
}

/// Datagrams of a size, while the path says that it cannot carry them.
fn blamed(code: u16, size: &str) -> Option<Value> {
    let more = format!("--open --with-record --write-size {size}");
    has("python3").then(|| unreachable("$1", &more, [code, 0]))?
}

/// A server of iperf3, while the path says that it cannot carry what is sent there.
fn blamed_with_iperf3(why: [u16; 2]) -> Option<Value> {
    has("python3").then(|| unreachable("iperf3://$1", "", why))?
}

#[test]
fn what_anybody_may_say_of_the_path_is_counted_and_changes_nothing() {
    // 1: a host that is not reached.
    passes(|| blamed(1, "1472B"), is_counted);
}
