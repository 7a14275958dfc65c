//! Single measurements by datagrams, by the built program in a lab.

use std::ops::Range;

use linerate_test::program::{Outcome, outcome_of};
use linerate_test::{Turn, ask, has, turn};
use serde_json::Value;

use crate::lab::{self, Given};

/// The document of a command in a lab.
fn measured(turn: &Turn, lab: &[&str], command: &[&str]) -> Given<Value> {
    let home = tempfile::TempDir::new().unwrap();
    lab::document(turn, home.path(), &[lab, &["--"], command].concat())
}

/// A document that passes a check. A machine that stood still may send less than requested, or lose some datagrams:
/// then the measurement is repeated.
fn passes(
    measure: impl Fn(&Turn) -> Given<Value>,
    check: impl Fn(&Value) -> Result<(), String>,
) -> Option<Value> {
    let turn = turn();
    ask(&turn, || {
        let Some(document) = measure(&turn)? else {
            return Ok(None);
        };
        check(&document).map(|()| Some(document))
    })?
}

/// Whether a figure lies in a range.
fn within(what: &str, figure: &Value, range: Range<f64>) -> Result<(), String> {
    let figure = figure.as_f64().unwrap_or(f64::NAN);
    let lies = range.contains(&figure);
    lies.then_some(()).ok_or_else(|| format!("{what}: {figure} is not within {range:?}"))
}

/// Payload of datagrams that a path of `rate` bits a second, in Ethernet frames, can carry.
fn payload(rate: f64) -> f64 {
    rate * 1472.0 / 1514.0
}

fn search(turn: &Turn, rate: &str, more: &[&str]) -> Given<Value> {
    let fault = format!("path-rate:{rate},shallow,forward");
    let find = [lab::PROGRAM, "bw", "FAR", "--open", "--engine", "udp", "--quiet", "--json"];
    let find = [&find[..], &["--find-rate=0.5%", "-t", "3s"], more].concat();
    measured(turn, &["--fault", &fault], &find)
}

/// The expected result of a search on a path of this many bits a second.
fn is_found(found: &Value, bits: f64) -> Result<(), String> {
    let search = &found["search"];
    let payload = payload(bits);
    within("rate_bps", &search["rate_bps"], payload * 0.85..payload * 1.05)?;
    within("lost above", &search["above"]["lost_share"], 0.005..1.0)?;
    let lost = &found["directions"]["forward"]["datagrams"]["lost_share"];
    within("lost_share", lost, 0.0..0.00501)?;
    let more = search["above"]["sent_bps"].as_f64() > search["rate_bps"].as_f64();
    more.then_some(()).ok_or_else(|| format!("{search:#}"))
}

/// The expected result of a search up to 30 Mb/s on a faster path: no higher rate was tried, so none lost datagrams.
fn is_the_bound(found: &Value) -> Result<(), String> {
    let search = &found["search"];
    if !search["above"].is_null() {
        return Err(format!("{search:#}"));
    }
    within("rate_bps", &search["rate_bps"], 25e6..31e6)
}

/// Planted: a higher rate that lost some datagrams, and a rate far below the bound.
#[test]
fn a_bound_that_was_not_reached_is_refused() {
    let found =
        |above: Value, rate: f64| serde_json::json!({"search": {"above": above, "rate_bps": rate}});
    assert_eq!(is_the_bound(&found(Value::Null, 30e6)), Ok(()));
    assert!(is_the_bound(&found(Value::Null, 10e6)).is_err());
    let lossy = serde_json::json!({"lost_share": 0.1});
    assert!(is_the_bound(&found(lossy, 30e6)).is_err());
}

mod long {
    use super::*;

    #[test]
    fn the_rate_of_a_faster_path_is_found() {
        passes(|turn| search(turn, "100Mb/s", &[]), |found| is_found(found, 100e6));
    }

    #[test]
    fn datagrams_go_on_where_the_path_takes_the_same_packets_as_before() {
        passes(|turn| shrunk(turn, "1500"), |found| goes_on(found, false));
    }

    #[test]
    fn a_queue_that_is_not_full_refuses_nothing() {
        passes(|turn| queued(turn, "20mbit"), |found| is_refused(found, 20e6));
    }

    #[test]
    fn large_datagrams_travel_in_fragments() {
        passes(|turn| sized(turn, "4000B"), |found| is_split(found, true));
    }

    #[test]
    fn other_things_that_anybody_may_say_change_nothing_either() {
        // ICMP code 5: a source route failed, although no datagram has one.
        for size in ["1472B", "40000B"] {
            passes(|turn| blamed(turn, 5, size), is_counted);
        }
        passes(|turn| blamed_with_iperf3(turn, [1, 0]), is_unchanged);
    }

    #[test]
    fn a_bound_below_the_rate_of_a_path_is_what_is_found() {
        let bound = ["--pacing", "30Mbit/s"];
        passes(|turn| search(turn, "100Mb/s", &bound), is_the_bound);
    }

    #[test]
    fn datagrams_that_a_rule_of_their_own_host_forbids_are_not_sent_and_others_are() {
        passes(forbidden, is_forbidden);
    }

    #[test]
    fn a_datagram_that_fits_no_packet_travels_in_fragments_which_is_told() {
        for (size, fragments) in [("1472B", false), ("1473B", true)] {
            passes(|turn| sized(turn, size), |found| is_split(found, fragments));
        }
    }

    #[test]
    fn a_path_that_says_again_and_again_that_packets_are_too_long_breaks_no_test_with_iperf3() {
        // ICMP code 4: the datagram is too long for a path that carries packets of at most this many bytes.
        passes(|turn| blamed_with_iperf3(turn, [4, 1300]), is_unchanged);
    }

    #[test]
    fn the_rate_of_a_path_is_found_and_the_next_one_loses() {
        if let Some(found) =
            passes(|turn| search(turn, "20Mb/s", &[]), |found| is_found(found, 20e6))
        {
            // Planted: a path of another rate.
            assert!(is_found(&found, 30e6).is_err() && is_found(&found, 15e6).is_err());
        }
    }

    #[test]
    fn datagrams_go_on_in_fragments_where_the_path_takes_shorter_packets_than_before() {
        passes(|turn| shrunk(turn, "1300"), |found| goes_on(found, true));
    }
}

/// Sends datagrams that fill packets, while the MTU of the sending port is changed in the middle.
fn shrunk(turn: &Turn, mtu: &str) -> Given<Value> {
    let send = "bw $1 --open --engine udp --pacing 5Mbit/s -t 4s --quiet --json --with-record";
    let script = format!(
        "(sleep 3; ip -o route get $1 | sed 's/.* dev \\([^ ]*\\).*/\\1/' \
         | xargs -I PORT ip link set dev PORT mtu {mtu}) & {} {send}; wait",
        lab::PROGRAM
    );
    measured(turn, &[], &["sh", "-c", &script, "sh", "FAR"])
}

/// The expected result of `shrunk`: complete, with payload all the time; `fragments` tells whether datagrams are
/// fragmented once the MTU has changed.
fn goes_on(found: &Value, fragments: bool) -> Result<(), String> {
    assert_eq!(found["complete"], true, "{found:#}");
    let unknown = found["unknown"].to_string();
    let reported = unknown.contains("they were fragmented since then");
    assert_eq!(reported, fragments, "{unknown}");
    let parts = found["directions"]["forward"]["intervals"].as_array();
    parts.unwrap().iter().try_for_each(|part| {
        let rate = part["bytes"].as_f64().unwrap() * 8e9 / part["ns"].as_f64().unwrap();
        within("rate of a part", &rate.into(), 2e6..10e6)
    })
}

/// A document of `shrunk`, `sized` or `unreachable`, made by hand: what is unknown, and the rates in two parts of a
/// second each.
fn planted(unknown: &Value, rates: [f64; 2]) -> Value {
    let parts = rates.map(|rate| serde_json::json!({"bytes": rate / 8.0, "ns": 1e9}));
    let goodput = f64::midpoint(rates[0], rates[1]);
    let way = serde_json::json!({"goodput_bps": goodput, "intervals": parts});
    serde_json::json!({"complete": true, "unknown": unknown, "directions": {"forward": way}})
}

/// Whether a check panics, because no disturbance explains such a document.
fn never_forgiven(check: impl FnOnce() -> Result<(), String>) -> bool {
    outcome_of(|| drop(check())) == Outcome::Failed
}

/// Planted: fragments where none are expected, no fragments where some are, and a part without payload.
#[test]
fn what_stops_or_travels_otherwise_does_not_go_on() {
    let whole = planted(&Value::Array(Vec::new()), [5e6, 5e6]);
    let why = "they were fragmented since then 3 s";
    let split = planted(&serde_json::json!([{"why": why}]), [5e6, 5e6]);
    assert_eq!((goes_on(&whole, false), goes_on(&split, true)), (Ok(()), Ok(())));
    assert!(never_forgiven(|| goes_on(&whole, true)));
    assert!(never_forgiven(|| goes_on(&split, false)));
    let stopped = planted(&Value::Array(Vec::new()), [5e6, 0.0]);
    assert!(goes_on(&stopped, false).is_err());
}

/// Adds the folders of administrators' programs to the path of a script: a user's path may lack them.
const SBIN: &str = "export PATH=$PATH:/usr/sbin:/sbin";

/// Sends datagrams at 5 Mb/s, while a rule of the near host rejects those that exceed 1 Mb/s.
fn forbidden(turn: &Turn) -> Given<Value> {
    // Only nftables lets some datagrams pass and rejects others with an error that their sender gets (EPERM).
    if !has("nft") {
        return Ok(None);
    }
    let rule = "add table inet t; add chain inet t out { type filter hook output priority 0; }; \
                add rule inet t out meta l4proto udp limit rate over 125 kbytes/second burst 8 kbytes drop";
    let send = "bw $1 --open --engine udp --pacing 5Mbit/s -t 2s --quiet --json --with-record";
    let script = format!("{SBIN}; nft '{rule}' && exec {} {send}", lab::PROGRAM);
    measured(turn, &[], &["sh", "-c", &script, "sh", "FAR"])
}

/// The expected result of `forbidden`: datagrams that the rule allows are received, and all others are refused.
fn is_forbidden(found: &Value) -> Result<(), String> {
    assert_eq!(found["complete"], true, "{found:#}");
    let way = &found["directions"]["forward"];
    within("goodput_bps", &way["goodput_bps"], 0.5e6..2e6)?;
    within("lost", &way["datagrams"]["lost"], 0.0..1.0)?;
    within("refused", &way["datagrams"]["refused"], 100.0..1e9)
}

/// Planted: datagrams that no rule refuses, and some that were lost instead.
#[test]
fn datagrams_that_were_not_refused_are_not_forbidden() {
    let found = |goodput: f64, lost: u64, refused: u64| {
        let datagrams = serde_json::json!({"lost": lost, "refused": refused});
        let way = serde_json::json!({"goodput_bps": goodput, "datagrams": datagrams});
        serde_json::json!({"complete": true, "directions": {"forward": way}})
    };
    assert_eq!(is_forbidden(&found(1e6, 0, 500)), Ok(()));
    for (goodput, lost, refused) in [(5e6, 0, 500), (1e6, 500, 500), (1e6, 0, 0)] {
        assert!(is_forbidden(&found(goodput, lost, refused)).is_err());
    }
}

/// Sends 5 Mb/s of datagrams through a queue of the near host's own port that drains at `rate`.
fn queued(turn: &Turn, rate: &str) -> Given<Value> {
    if !has("tc") {
        return Ok(None);
    }
    let send = "bw $1 --open --engine udp --pacing 5Mbit/s -t 2s --quiet --json";
    let script = format!(
        "{SBIN}; port=$(ip -o route get $1 | sed 's/.* dev \\([^ ]*\\).*/\\1/') \
         && tc qdisc replace dev $port root tbf rate {rate} burst 16kb limit 16kb && exec {} {send}",
        lab::PROGRAM
    );
    measured(turn, &[], &["sh", "-c", &script, "sh", "FAR"])
}

/// The expected result of `queued` for 5 Mb/s, if the queue carries `rate`.
fn is_refused(found: &Value, rate: f64) -> Result<(), String> {
    assert_eq!(found["complete"], true, "{found:#}");
    let way = &found["directions"]["forward"];
    let full = rate < 5e6;
    within("lost", &way["datagrams"]["lost"], 0.0..1.0)?;
    let refused = if full { 1.0..1e9 } else { 0.0..1.0 };
    within("refused", &way["datagrams"]["refused"], refused)?;
    // Payload that the queue passes at its rate, which counts Ethernet frames.
    let most = payload(rate).min(5e6);
    within("goodput_bps", &way["goodput_bps"], most * 0.8..most * 1.1)
}

#[test]
fn what_a_full_queue_of_the_own_host_refuses_is_counted_and_the_rest_is_sent() {
    if let Some(found) = passes(|turn| queued(turn, "2mbit"), |found| is_refused(found, 2e6)) {
        // Planted: the result of a full queue, checked as that of a queue that carries everything.
        assert!(is_refused(&found, 20e6).is_err());
    }
}

/// Sends datagrams of a size that may be too large for a packet.
fn sized(turn: &Turn, size: &str) -> Given<Value> {
    let send = "bw FAR --open --engine udp --pacing 5Mbit/s -t 1s --quiet --json --write-size";
    let send: Vec<&str> =
        std::iter::once(lab::PROGRAM).chain(send.split(' ')).chain([size]).collect();
    measured(turn, &[], &send)
}

/// The expected result of `sized`: whether datagrams are fragmented, and the size that would not be.
fn is_split(found: &Value, fragments: bool) -> Result<(), String> {
    assert_eq!(found["complete"], true, "{found:#}");
    let unknown = found["unknown"].as_array().unwrap();
    let gap = unknown.iter().find(|gap| gap["what"] == "near set.fragments");
    assert_eq!(gap.is_some(), fragments, "{unknown:?}");
    if let Some(gap) = gap {
        assert_eq!(gap["hint"], "--write-size 1472B", "{gap}");
    }
    let goodput = &found["directions"]["forward"]["goodput_bps"];
    within("goodput_bps", goodput, 4e6..6e6)
}

/// Planted: fragments where none are expected, no fragments where some are, and a rate that was not requested.
#[test]
fn a_size_that_travels_otherwise_is_refused() {
    let whole = planted(&Value::Array(Vec::new()), [5e6; 2]);
    let gap = serde_json::json!({"what": "near set.fragments", "hint": "--write-size 1472B"});
    let split = planted(&serde_json::json!([gap]), [5e6; 2]);
    assert_eq!((is_split(&whole, false), is_split(&split, true)), (Ok(()), Ok(())));
    assert!(never_forgiven(|| is_split(&whole, true)));
    assert!(never_forgiven(|| is_split(&split, false)));
    let slow = planted(&Value::Array(Vec::new()), [1e6; 2]);
    assert!(is_split(&slow, false).is_err());
}

/// Sends the near host forged ICMP errors, as anyone on the path could: destination unreachable, with the given code
/// and the given largest packet size.
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

/// Sends datagrams to `target` while forged ICMP errors with `code` and `mtu` report that they cannot be delivered.
fn unreachable(turn: &Turn, target: &str, more: &str, [code, mtu]: [u16; 2]) -> Given<Value> {
    let send = format!("bw {target} --engine udp --pacing 5Mbit/s -t 2s --quiet --json {more}");
    let script = format!(
        "rm -f \"$HOME/ready\"; timeout 60 python3 -c \"$2\" {code} {mtu} & \
         for look in $(seq 100); do [ ! -e \"$HOME/ready\" ] || break; sleep 0.1; done; {} {send}; wait",
        lab::PROGRAM
    );
    let iperf3 = ["--fault", "environment:far,LINERATE_SERVE_IPERF3=5201"];
    measured(turn, &iperf3, &["sh", "-c", &script, "sh", "FAR", UNREACHABLE])
}

/// Number of ICMP errors that the sender's socket received.
fn path_errors(found: &Value) -> i64 {
    let tables = found["record"]["steps"][0]["ends"][0]["tables"].as_array();
    let table = tables.unwrap().iter().find(|t| t["source"] == "udp");
    let columns = table.unwrap()["columns"].as_array().unwrap();
    let errors = columns.iter().find(|c| c["name"] == "path_errors").unwrap();
    let values = errors["values"].as_array().unwrap();
    values.last().unwrap().as_i64().unwrap()
}

/// The expected result of `unreachable` at 5 Mb/s: everything was sent at the requested rate and received.
fn is_unchanged(found: &Value) -> Result<(), String> {
    assert_eq!(found["complete"], true, "{}", found["unknown"]);
    let goodput = &found["directions"]["forward"]["goodput_bps"];
    within("goodput_bps", goodput, 4e6..6e6)
}

/// The expected result of `unreachable` if, in addition, the sender's socket counted the ICMP errors.
fn is_counted(found: &Value) -> Result<(), String> {
    let unknown = found["unknown"].to_string();
    assert!(!unknown.contains("UDP_SEGMENT"), "{unknown}");
    within("path_errors", &path_errors(found).into(), 1.0..1e9)?;
    is_unchanged(found)
}

fn has_python(measure: impl FnOnce() -> Given<Value>) -> Given<Value> {
    if has("python3") { measure() } else { Ok(None) }
}

/// Sends datagrams of a size to linerate, while forged ICMP errors report that they cannot be delivered.
fn blamed(turn: &Turn, code: u16, size: &str) -> Given<Value> {
    let more = format!("--open --with-record --write-size {size}");
    has_python(|| unreachable(turn, "$1", &more, [code, 0]))
}

/// Sends datagrams to an iperf3 server, while forged ICMP errors report that they cannot be delivered.
fn blamed_with_iperf3(turn: &Turn, why: [u16; 2]) -> Given<Value> {
    has_python(|| unreachable(turn, "iperf3://$1", "", why))
}

/// Planted: a rate that fell, errors that were not counted, and a sender that stopped using UDP_SEGMENT.
#[test]
fn what_the_path_says_must_be_counted_and_change_nothing() {
    let found = |errors: u64, rate: f64, unknown: &Value| {
        let mut found = planted(unknown, [rate; 2]);
        let column = serde_json::json!({"name": "path_errors", "values": [0, errors]});
        let table = serde_json::json!({"source": "udp", "columns": [column]});
        found["record"] = serde_json::json!({"steps": [{"ends": [{"tables": [table]}]}]});
        found
    };
    let none = Value::Array(Vec::new());
    assert_eq!(is_unchanged(&found(0, 5e6, &none)), Ok(()));
    assert!(is_unchanged(&found(0, 2e6, &none)).is_err());
    assert_eq!(is_counted(&found(10, 5e6, &none)), Ok(()));
    assert!(is_counted(&found(0, 5e6, &none)).is_err());
    assert!(is_counted(&found(10, 2e6, &none)).is_err());
    let lost = serde_json::json!([{"why": "UDP_SEGMENT was refused"}]);
    assert!(never_forgiven(|| is_counted(&found(10, 5e6, &lost))));
}

#[test]
fn what_anybody_may_say_of_the_path_is_counted_and_changes_nothing() {
    // ICMP code 1: the host cannot be reached.
    passes(|turn| blamed(turn, 1, "1472B"), is_counted);
}
