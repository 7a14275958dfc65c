//! Single probes by datagrams, by the built program in a lab.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not take for tests"
)]

mod lab;
mod skip;

use serde_json::Value;

/// The document of a command in a lab; `None` where there can be no lab. A machine that stood still for a
/// while, which the document tells, is given another try, twice: a sender that was not allowed to run does not
/// make up for that.
fn told(lab: &[&str], command: &[&str]) -> Option<Value> {
    let home = tempfile::TempDir::new().unwrap();
    let mut document = Value::Null;
    for _ in 0..3 {
        let [out, _] = lab::run(home.path(), &[lab, &["--"], command].concat())?;
        document = serde_json::from_str(&out).unwrap();
        let mut ways = document["directions"].as_object().unwrap().values();
        let stood = |way: &Value| {
            let count = |key: &str| way["datagrams"][key].as_f64();
            let free = count("refused").is_none_or(|refused| refused == 0.0);
            let short = count("sent_bps") < count("asked_bps").map(|asked| asked * 0.95);
            way["interruptions"].to_string().contains("no CPU left") || free && short
        };
        if !ways.any(stood) {
            break;
        }
    }
    Some(document)
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
    told(&["--fault", &fault], &find)
}

#[test]
fn the_rate_of_a_path_is_found_and_the_next_one_loses() {
    for (rate, bits) in [("20Mb/s", 20e6), ("100Mb/s", 100e6)] {
        let Some(found) = search(rate, &[]) else {
            return;
        };
        let search = &found["search"];
        let told = search["rate_bps"].as_f64().unwrap() / payload(bits);
        assert!((0.85..1.05).contains(&told), "{search:#}");
        assert!(search["above"]["lost_share"].as_f64().unwrap() > 0.005);
        assert!(search["above"]["sent_bps"].as_f64() > search["rate_bps"].as_f64());
        let lost = &found["directions"]["forward"]["datagrams"]["lost_share"];
        assert!(lost.as_f64().unwrap() <= 0.005, "{lost}");
    }
}

#[test]
fn a_bound_below_the_rate_of_a_path_is_what_is_found() {
    let Some(found) = search("100Mb/s", &["--pacing", "30Mbit/s"]) else {
        return;
    };
    let search = &found["search"];
    let rate = search["rate_bps"].as_f64().unwrap();
    assert!((25e6..31e6).contains(&rate), "{search:#}");
    assert_eq!(search["above"], Value::Null);
}

/// Sends datagrams that fill packets, while the port's MTU becomes another one in the middle.
fn shrunk(mtu: &str) -> Option<Value> {
    let send = "bw $1 --open --engine udp --pacing 5Mbit/s -t 4s --quiet --json --with-record";
    let script = format!(
        "(sleep 3; ip -o route get $1 | sed 's/.* dev \\([^ ]*\\).*/\\1/' \
         | xargs -I PORT ip link set dev PORT mtu {mtu}) & {} {send}; wait",
        lab::PROGRAM
    );
    told(&[], &["sh", "-c", &script, "sh", "FAR"])
}

#[test]
fn datagrams_go_on_in_fragments_where_the_path_takes_shorter_packets_than_before() {
    for (mtu, fragments) in [("1500", false), ("1300", true)] {
        let Some(found) = shrunk(mtu) else { return };
        assert_eq!(found["complete"], true, "{mtu}: {found:#}");
        let parts = found["directions"]["forward"]["intervals"].as_array();
        for part in parts.unwrap() {
            let number = |key: &str| part[key].as_f64().unwrap();
            assert!(number("bytes") * 8e9 / number("ns") > 2e6, "{part}");
        }
        let told = found["unknown"].to_string();
        assert_eq!(
            told.contains("they travel in fragments since"),
            fragments,
            "{mtu}"
        );
    }
}

/// Where programs of administrators are, in the path of a script: not everybody's has these folders.
const SBIN: &str = "export PATH=$PATH:/usr/sbin:/sbin";

/// Whether a program is installed, `package` of Debian; says loudly where not.
fn is_there(program: &str, package: &str) -> bool {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    let there = std::env::split_paths(&path).any(|p| p.join(program).exists());
    if !there {
        skip::skip(program, &format!("{program} is not installed ({package})"));
    }
    there
}

/// Sends datagrams, of which a rule of the near host itself forbids those that exceed 1 Mb/s.
fn forbidden() -> Option<Value> {
    // Nothing else lets some datagrams pass and forbids others so that their sender hears of it (EPERM).
    if !is_there("nft", "nftables") {
        return None;
    }
    let rule = "add table inet t; add chain inet t out { type filter hook output priority 0; }; \
                add rule inet t out meta l4proto udp limit rate over 125 kbytes/second burst 8 kbytes drop";
    let send = "bw $1 --open --engine udp --pacing 5Mbit/s -t 2s --quiet --json --with-record";
    let script = format!("{SBIN}; nft '{rule}' && exec {} {send}", lab::PROGRAM);
    told(&[], &["sh", "-c", &script, "sh", "FAR"])
}

#[test]
fn datagrams_that_a_rule_of_their_own_host_forbids_are_not_sent_and_others_are() {
    let Some(found) = forbidden() else { return };
    assert_eq!(found["complete"], true, "{found:#}");
    let way = &found["directions"]["forward"];
    let goodput = way["goodput_bps"].as_f64().unwrap();
    assert!((0.5e6..2e6).contains(&goodput), "{way:#}");
    let datagrams = &way["datagrams"];
    assert_eq!(datagrams["lost"], 0, "{datagrams:#}");
    assert!(datagrams["refused"].as_u64() > Some(100), "{datagrams:#}");
}

/// Sends 5 Mb/s of datagrams through a queue of the near host's own port that drains at `rate`.
fn queued(rate: &str) -> Option<Value> {
    if !is_there("tc", "iproute2") {
        return None;
    }
    let send = "bw $1 --open --engine udp --pacing 5Mbit/s -t 2s --quiet --json";
    let script = format!(
        "{SBIN}; port=$(ip -o route get $1 | sed 's/.* dev \\([^ ]*\\).*/\\1/') \
         && tc qdisc replace dev $port root tbf rate {rate} burst 16kb limit 16kb && exec {} {send}",
        lab::PROGRAM
    );
    told(&[], &["sh", "-c", &script, "sh", "FAR"])
}

#[test]
fn what_a_full_queue_of_their_own_host_takes_not_is_counted_and_others_are_sent() {
    for (rate, full) in [("20mbit", false), ("2mbit", true)] {
        let Some(found) = queued(rate) else { return };
        assert_eq!(found["complete"], true, "{rate}: {found:#}");
        let way = &found["directions"]["forward"];
        let (goodput, datagrams) = (way["goodput_bps"].as_f64().unwrap(), &way["datagrams"]);
        assert_eq!(datagrams["lost"], 0, "{rate}: {datagrams:#}");
        let refused = datagrams["refused"].as_u64().unwrap();
        assert_eq!(refused > 0, full, "{rate}: {datagrams:#}");
        // What the queue lets through, in frames of Ethernet.
        let most = if full { payload(2e6) } else { 5e6 };
        assert!((0.8..1.1).contains(&(goodput / most)), "{rate}: {way:#}");
    }
}

#[test]
fn a_datagram_that_fits_no_packet_travels_in_fragments_which_is_told() {
    for (size, fragments) in [("1472B", false), ("1473B", true), ("4000B", true)] {
        let send = "bw FAR --open --engine udp --pacing 5Mbit/s -t 1s --quiet --json --write-size";
        let mut send: Vec<&str> = send.split(' ').collect();
        send.insert(0, lab::PROGRAM);
        send.push(size);
        let Some(found) = told(&[], &send) else {
            return;
        };
        assert_eq!(found["complete"], true, "{size}: {found:#}");
        let way = &found["directions"]["forward"];
        assert!(way["goodput_bps"].as_f64() > Some(4e6), "{size}: {way:#}");
        let told = found["unknown"].as_array().unwrap();
        let told = told.iter().find(|gap| gap["what"] == "near set.fragments");
        assert_eq!(told.is_some(), fragments, "{size}: {told:?}");
        if let Some(told) = told {
            assert_eq!(told["hint"], "--write-size 1472B", "{told}");
        }
    }
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
    told(&iperf3, &["sh", "-c", &script, "sh", "FAR", UNREACHABLE])
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

#[test]
fn what_anybody_may_say_of_the_path_is_counted_and_changes_nothing() {
    if !is_there("python3", "python3") {
        return;
    }
    // 1: a host that is not reached. 5: a source route that failed, which nobody asked for.
    for (code, size) in [(1, "1472B"), (5, "1472B"), (5, "40000B")] {
        let more = format!("--open --with-record --write-size {size}");
        let Some(found) = unreachable("$1", &more, [code, 0]) else {
            return;
        };
        let case = format!("code {code}, {size}");
        assert_eq!(found["complete"], true, "{case}: {}", found["unknown"]);
        assert!(path_errors(&found) > 0, "{case}");
        let goodput = found["directions"]["forward"]["goodput_bps"].as_f64();
        assert!(goodput > Some(4e6), "{case}: {goodput:?}");
        let told = found["unknown"].to_string();
        assert!(!told.contains("UDP_SEGMENT"), "{case}: {told}");
    }
}

#[test]
fn a_path_that_says_again_and_again_that_packets_are_too_long_breaks_no_test_with_iperf3() {
    if !is_there("python3", "python3") {
        return;
    }
    // 1: a host that is not reached. 4: too long for a path that takes so many bytes.
    for why in [[1, 0], [4, 1300]] {
        let Some(found) = unreachable("iperf3://$1", "", why) else {
            return;
        };
        assert_eq!(found["complete"], true, "{why:?}: {}", found["unknown"]);
        let way = &found["directions"]["forward"];
        assert!(way["goodput_bps"].as_f64() > Some(4e6), "{why:?}: {way:#}");
    }
}
