//! Faults of an RDMA path: two Soft-RoCE ports of the guest with a wire between them.

use serde_json::Value;

use super::guest::{Guest, PROGRAM};
use super::rdma::serving;

/// Makes two ports with a bridge between them. `linerate serve` is reached at the address of the second port, and
/// connections from this host to it have the address of the first port.
const WIRE: &str = r"modprobe -a veth bridge sch_netem rdma_rxe ib_uverbs
ip link add name verbs4 type bridge
ip link set verbs4 mtu 4500 up
for n in 0 1; do
  ip link add verbs$n mtu 4500 type veth peer name between$n mtu 4500
  ip addr add 10.9.7.$((n + 1))/24 dev verbs$n
  ip link set verbs$n up
  ip link set between$n master verbs4 up
done
for port in all verbs0 verbs1; do
  echo 1 >/proc/sys/net/ipv4/conf/$port/accept_local
  echo 0 >/proc/sys/net/ipv4/conf/$port/rp_filter
  echo 1 >/proc/sys/net/ipv4/conf/$port/arp_ignore
done
for n in 0 1; do
  rdma link add rxe$n type rxe netdev verbs$n
done
ip route replace local 10.9.7.2 dev verbs1 table local proto kernel scope host src 10.9.7.1";

/// Ends `linerate serve` and removes the ports.
pub(crate) const NO_WIRE: &str = "pkill -f '[s]erve --open'
rdma link delete rxe0
rdma link delete rxe1
ip link delete verbs0
ip link delete verbs1
ip link delete verbs4
for name in accept_local rp_filter arp_ignore; do
  echo 0 >/proc/sys/net/ipv4/conf/all/$name
done";

/// The result of a run over the wire, with these options.
fn ran(guest: &mut Guest, words: &str) -> Value {
    let reported = guest.ask(&format!(
        "{PROGRAM} run 10.9.7.2 --open --engine rdma {words} --direction forward --quiet --json"
    ));
    serde_json::from_str(&reported).unwrap()
}

/// The limits that a run names, and the unknowns, which include causes that it cannot tell apart: a busy machine adds
/// others.
fn suspects(result: &Value) -> String {
    let verdict = &result["verdict"];
    format!("{} {}", verdict["limits"], verdict["unknown"])
}

/// Loss of the sender's packets must be named. Loss of acknowledgements costs almost nothing, and must not be named.
pub(crate) fn loss(guest: &mut Guest) {
    serving(guest, WIRE);
    for (port, op, wanted) in [
        (None, "write", false),
        (Some("between1"), "write", true),
        (Some("between1"), "send", true),
        (Some("between0"), "write", false),
    ] {
        if let Some(port) = port {
            guest.ask(&format!("tc qdisc add dev {port} root netem loss 3%"));
        }
        let words = format!("--op {op} --events --time 20s --no-trials");
        let result = ran(guest, &words);
        let cause = if wanted { "rdma-loss" } else { "rdma-" };
        let found = suspects(&result).contains(cause);
        assert_eq!(found, wanted, "{port:?} {op}: {result}");
        if let Some(port) = port {
            guest.ask(&format!("tc qdisc del dev {port} root"));
        }
    }
    guest.ask(NO_WIRE);
}

/// A queue of requests that runs empty on a long path must be named, and one that is long enough must not.
pub(crate) fn queues(guest: &mut Guest) {
    serving(guest, WIRE);
    guest.ask("for n in 0 1; do tc qdisc add dev between$n root netem delay 2ms limit 10000; done");
    let depth = ["rdma-depth", "rdma-read-depth"];
    for (words, wanted) in [
        ("--op write --depth 1", [true, false]),
        ("--op read --reads 1 --depth 64", [false, true]),
        ("--op write --depth 16", [false, false]),
    ] {
        let result = ran(guest, &format!("{words} --time 40s"));
        let limits = result["verdict"]["limits"].as_array().unwrap();
        let is_limit = |cause: &str| limits.iter().any(|limit| limit["cause"] == cause);
        // On a busy machine the cause may be unknown, but the other cause must not be suspected more than on an idle
        // one.
        let unknown = result["verdict"]["unknown"].to_string();
        let found = depth.map(|cause| is_limit(cause) || unknown.contains(cause));
        assert_eq!(found, wanted, "{words}: {}", result["verdict"]);
        // Round trips go over the same wire as the load.
        let idle = result["latency"]["idle"]["p50_ns"].as_u64();
        assert!(idle.is_none_or(|idle| idle > 4_000_000), "{words}: {result}");
    }
    guest.ask(NO_WIRE);
}

/// Takes the link of the second port down again and again, once the load is running: a run is refused if a port is down
/// when it begins.
const FLAPS: &str = r"sent() { cat /sys/class/net/verbs0/statistics/tx_bytes; }
(
  before=$(sent)
  until [ $(($(sent) - before)) -gt 1000000 ]; do sleep 0.2; done
  while sleep 1; do
    ip link set between1 down
    sleep 0.3
    ip link set between1 up
  done
) >/dev/null 2>&1 </dev/null &
echo $! >/run/flaps";
const NO_FLAPS: &str = "kill $(cat /run/flaps); sleep 0.5; ip link set between1 up; sleep 1";

/// A fault, the commands that plant and remove it, the options of the run, and the cause that must be named.
struct Fault {
    plant: &'static str,
    undo: &'static str,
    words: &'static str,
    cause: Option<&'static str>,
}

/// Small packets, a receiver without posted requests, and a link that goes down must be named.
pub(crate) fn ports(guest: &mut Guest) {
    serving(guest, WIRE);
    for fault in [
        Fault { plant: "", undo: "", words: "--op write --time 20s", cause: None },
        Fault {
            plant: "",
            undo: "",
            words: "--op send --size 4KiB --depth 64 --time 20s",
            cause: None,
        },
        Fault {
            plant: "ip link set verbs1 mtu 1500",
            undo: "ip link set verbs1 mtu 4500",
            words: "--op write --time 20s",
            cause: Some("rdma-mtu"),
        },
        Fault {
            plant: "",
            undo: "",
            words: "--op send --size 4KiB --depth 64 --receives 1 --time 20s",
            cause: Some("rdma-receiver-not-ready"),
        },
        Fault {
            plant: FLAPS,
            undo: NO_FLAPS,
            words: "--op write --size 16KiB --time 40s",
            cause: Some("rdma-link-down"),
        },
    ] {
        let words = fault.words;
        guest.ask(fault.plant);
        let result = ran(guest, &format!("{words} --events --no-trials"));
        guest.ask(fault.undo);
        let found = suspects(&result);
        println!("{words}: {found}");
        match fault.cause {
            Some(cause) => assert!(found.contains(cause), "{cause}: {result}"),
            None => assert!(!found.contains("rdma-"), "{words}: {result}"),
        }
    }
    guest.ask(NO_WIRE);
}
