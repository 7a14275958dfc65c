//! RDMA verbs over Soft-RoCE: both ends in the guest, on one port.

use serde_json::Value;

use super::guest::{Guest, PROGRAM};

/// A port with an address, and a serving end.
const HOST: &str = r"modprobe -a veth rdma_rxe ib_uverbs
ip link add verbs0 mtu 4500 type veth peer name verbs1 mtu 4500
ip addr add 10.9.8.1/24 dev verbs0
ip link set verbs1 up
ip link set verbs0 up
rdma link add rxe8 type rxe netdev verbs0
timeout -k 5 300 setsid PROGRAM serve --open >/run/served 2>&1 </dev/null &
for _ in $(seq 200); do
  grep -q listening /run/served && exit
  sleep 0.1
done
cat /run/served >&2
exit 1";

/// Ends the serving end and removes the port.
const GONE: &str = "pkill -f '[s]erve --open'
rdma link delete rxe8
ip link delete verbs0";

/// The result of a measurement of one second.
fn measured(guest: &mut Guest, words: &str) -> Value {
    let told = guest.ask(&format!(
        "{PROGRAM} {words} --open --engine rdma --time 1s --quiet --json"
    ));
    serde_json::from_str(&told).unwrap()
}

/// The message of a measurement that fails.
fn refused(guest: &mut Guest, before: &str, words: &str) -> String {
    guest.ask(&format!(
        "{before} {PROGRAM} {words} --open --engine rdma --time 1s --quiet 2>&1 && exit 9 || true"
    ))
}

/// Runs a part of the tests between making the port and removing it.
fn beside(guest: &mut Guest, part: fn(&mut Guest)) {
    guest.ask(&HOST.replace("PROGRAM", PROGRAM));
    part(guest);
    guest.ask(GONE);
}

/// Round trips by an operation.
fn timed(guest: &mut Guest, op: &str, size: u64) {
    let result = measured(guest, &format!("lat 10.9.8.1 --op {op} --size {size}B"));
    assert!(result["samples"].as_u64() > Some(5), "{op}: {result}");
    assert_eq!(result["complete"], true, "{op}: {result}");
    assert_eq!(result["options"]["op"], op, "{result}");
}

/// Goodput by an operation. Both ends count the same payload, as far as it arrived by the end of the time.
fn moved(guest: &mut Guest, op: &str, direction: &str) {
    let result = measured(
        guest,
        &format!("bw 10.9.8.1 --op {op} --direction {direction}"),
    );
    let flow = &result["directions"][direction];
    assert!(
        flow["received_bytes"].as_u64() > Some(1 << 20),
        "{op}: {result}"
    );
    let ends = ["near", "far"].map(|end| flow[end]["bytes"].as_f64().unwrap());
    let ratio = ends[0] / ends[1];
    assert!((0.5..2.0).contains(&ratio), "{op} {direction}: {flow}");
}

pub(crate) fn operations(guest: &mut Guest) {
    beside(guest, |guest| {
        timed(guest, "write", 64);
        timed(guest, "read", 1);
        moved(guest, "send", "forward");
        refusals(guest);
    });
}

pub(crate) fn all_operations(guest: &mut Guest) {
    beside(guest, |guest| {
        timed(guest, "send", 4096);
        timed(guest, "atomic", 8);
        for direction in ["forward", "reverse"] {
            for op in ["write", "send", "read"] {
                moved(guest, op, direction);
            }
        }
        let result = measured(guest, "lat 10.9.8.1 --op send --events --size 64B");
        assert!(result["samples"].as_u64() > Some(5), "{result}");
    });
}

/// What cannot be measured, in words.
fn refusals(guest: &mut Guest) {
    for (before, words, wanted) in [
        (
            "",
            "lat 10.9.8.1 --op atomic --size 64B",
            "an atomic operation of 64 B",
        ),
        (
            "",
            "lat 10.9.8.1 --gid-index 99 --size 64B",
            "port 1 of rxe8: its table of GIDs has nothing at 99",
        ),
        (
            "",
            "bw 10.9.8.1 --mtu 300B",
            "none of 256, 512, 1024, 2048 and 4096",
        ),
        // The far end has the right to lock memory.
        (
            "ulimit -l 64; setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/",
            "bw 10.9.8.1 --size 1MiB",
            "ibv_reg_mr failed",
        ),
        (
            "mount -t tmpfs hidden /sys/class/infiniband;",
            "lat 10.9.8.1 --size 64B",
            "this host has no RDMA device",
        ),
    ] {
        let told = refused(guest, before, words);
        assert!(told.contains(wanted), "{words}: {told}");
    }
}
