//! RDMA verbs over Soft-RoCE: both ends in the guest, on one port.

use linerate_test::unwrapped;
use serde_json::Value;

use super::faults::NO_WIRE;
use super::guest::{Guest, PROGRAM};

/// Makes a Soft-RoCE port with an address.
const HOST: &str = r"modprobe -a veth rdma_rxe ib_uverbs
ip link add verbs0 mtu 4500 type veth peer name verbs1 mtu 4500
ip addr add 10.9.8.1/24 dev verbs0
ip link set verbs1 up
ip link set verbs0 up
rdma link add rxe8 type rxe netdev verbs0";

/// Starts `linerate serve`, and waits until it listens.
const SERVE: &str = "timeout -k 5 900 setsid PROGRAM serve --open >/run/served 2>&1 </dev/null &
for _ in $(seq 200); do
  grep -q listening /run/served && exit
  sleep 0.1
done
cat /run/served >&2
exit 1";

/// Makes ports by a script, and starts `linerate serve` on this host.
pub(crate) fn serving(guest: &mut Guest, ports: &str) {
    // A case that failed may have left its ports and its server.
    guest.ask(&format!("({GONE}\n{NO_WIRE}) 2>/run/gone || true"));
    let serve = SERVE.replace("PROGRAM", PROGRAM);
    guest.ask(&format!("{ports}\n{serve}"));
}

/// Ends `linerate serve` and removes the port.
const GONE: &str = "pkill -f '[s]erve --open'
rdma link delete rxe8
ip link delete verbs0";

/// The document of a measurement of one second.
fn measured(guest: &mut Guest, words: &str) -> Value {
    let reported =
        guest.ask(&format!("{PROGRAM} {words} --open --engine rdma --time 1s --quiet --json"));
    serde_json::from_str(&reported).unwrap()
}

/// The error message of a measurement that must fail; `before` precedes the command.
fn refused(guest: &mut Guest, before: &str, words: &str) -> String {
    guest.ask(&format!(
        "{before} {PROGRAM} {words} --open --engine rdma --time 1s --quiet 2>&1 && exit 9 || true"
    ))
}

/// Runs `part` while there is a port and `linerate serve` runs.
pub(crate) fn beside(guest: &mut Guest, part: fn(&mut Guest)) {
    serving(guest, HOST);
    part(guest);
    guest.ask(GONE);
}

/// The option that compares received payload, for operations that carry any.
fn verify(op: &str) -> &'static str {
    match op {
        "atomic" => "",
        _ => "--verify",
    }
}

/// Checks round trips by an operation, whose payload is compared.
fn timed(guest: &mut Guest, op: &str, size: u64, options: &str) {
    let result =
        measured(guest, &format!("lat 10.9.8.1 --op {op} --size {size}B {} {options}", verify(op)));
    assert!(result["samples"].as_u64() > Some(3), "{op}: {result}");
    assert_eq!(result["complete"], true, "{op}: {result}");
    assert_eq!(result["options"]["op"], op, "{result}");
}

/// Checks goodput by an operation, whose payload is compared. Both ends must count about the same payload: some is in
/// flight at the end.
fn moved(guest: &mut Guest, op: &str, direction: &str, options: &str) {
    let verify = verify(op);
    // With few requests in flight, the payload in flight at the end is small compared with the rest, even on a slow
    // guest.
    let depth = if options.contains("--depth") { "" } else { "--depth 8" };
    let words = format!("bw 10.9.8.1 --op {op} --direction {direction} {depth} {verify} {options}");
    let result = measured(guest, &words);
    assert_eq!(result["complete"], true, "{words}: {result}");
    let flow = &result["directions"][direction];
    let least = if op == "atomic" { 1 << 10 } else { 1 << 20 };
    assert!(flow["received_bytes"].as_u64() > Some(least), "{words}: {result}");
    let figures = result["figures"].as_array().unwrap();
    let messages = figures.iter().find(|f| f["figure"] == "messages_per_sec");
    assert!(messages.is_some_and(|f| f["value"].as_f64() > Some(0.0)), "{words}: {figures:?}");
    let ends = ["near", "far"].map(|end| flow[end]["bytes"].as_f64().unwrap());
    let ratio = ends[0] / ends[1];
    assert!((0.5..2.0).contains(&ratio), "{words}: {flow}");
}

pub(crate) fn operations(guest: &mut Guest) {
    beside(guest, |guest| {
        timed(guest, "write", 64, "");
        timed(guest, "read", 1, "--post-send");
        moved(guest, "send", "forward", "--qps 3 --post-list 2");
        a_flipped_byte(guest);
        refusals(guest);
    });
}

pub(crate) fn all_operations(guest: &mut Guest) {
    beside(guest, |guest| {
        timed(guest, "send", 4096, "");
        timed(guest, "write-imm", 4096, "");
        timed(guest, "atomic", 8, "");
        timed(guest, "send", 1024, "--service ud");
        timed(guest, "send", 65_536, "--service uc");
        timed(guest, "write-imm", 1, "--service uc");
        for direction in ["forward", "reverse"] {
            for op in ["write", "write-imm", "send", "read", "atomic"] {
                moved(guest, op, direction, "");
            }
            moved(guest, "send", direction, "--service uc");
            moved(guest, "write-imm", direction, "--service uc");
            moved(guest, "send", direction, "--service ud");
        }
        moved(guest, "write", "forward", "--post-send --post-list 4");
        moved(guest, "atomic", "forward", "--post-send");
        moved(guest, "send", "forward", "--post-send --service ud");
        moved(guest, "write", "forward", "--qps 64 --depth 2");
        moved(guest, "read", "forward", "--streams 2 --depth 1");
        let result = measured(guest, "lat 10.9.8.1 --op send --events --size 64B");
        assert!(result["samples"].as_u64() > Some(3), "{result}");
    });
}

/// Changes a byte of the payload in the memory of process $1 again and again until the process ends, because a change
/// may miss copies on their way to the queue pair's memory. The payload of stream 0 of set 0 begins with the searched
/// bytes.
const FLIP: &str = r#"my $head = pack("H*", "afcd1d7b39a820e2f465b9a16a9e786e");
my $changed;
for (1 .. 300) {
  open(my $maps, "<", "/proc/$ARGV[0]/maps") or exit;
  open(my $memory, "+<", "/proc/$ARGV[0]/mem") or exit;
  my @maps = <$maps> or exit;
  for (@maps) {
    /^([0-9a-f]+)-([0-9a-f]+) rw/ or next;
    my ($from, $to) = (hex $1, hex $2);
    sysseek($memory, $from, 0);
    sysread($memory, my $bytes, $to - $from) or next;
    my $at = index($bytes, $head);
    $at < 0 and next;
    $changed //= chr(ord(substr($bytes, $at + 100, 1)) ^ 1);
    sysseek($memory, $from + $at + 100, 0);
    syswrite($memory, $changed);
  }
  select(undef, undef, undef, 0.1);
}
die "the measurement went on";"#;

/// Checks that a byte that differs from what was sent ends a measurement that compares payload.
fn a_flipped_byte(guest: &mut Guest) {
    let reported = guest.ask(&format!(
        "cat >/run/flip <<'END'\n{FLIP}\nEND
{PROGRAM} bw 10.9.8.1 --open --engine rdma --op send --verify --time 60s --quiet >/run/flipped 2>&1 &
perl /run/flip $!
wait $! && exit 9
cat /run/flipped"
    ));
    let wanted = "the received payload is not what was sent";
    assert!(unwrapped(&reported).contains(wanted), "{reported}");
}

/// Text before the program, its arguments, and a part of the error message.
const REFUSALS: &[(&str, &str, &str)] = &[
    ("", "lat 10.9.8.1 --op atomic --size 64B", "an atomic operation of 64 B"),
    (
        "",
        "lat 10.9.8.1 --gid-index 99 --size 64B",
        "port 1 of rxe8: its table of GIDs has nothing at 99",
    ),
    ("", "bw 10.9.8.1 --mtu 300B", "none of 256, 512, 1024, 2048 and 4096"),
    // Only the near end lacks the right to lock memory.
    (
        "ulimit -l 64; setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/",
        "bw 10.9.8.1 --size 1MiB",
        "ibv_reg_mr failed",
    ),
    ("", "bw 10.9.8.1 --device rxe9", "this host has no RDMA device rxe9: it has rxe8"),
    ("", "bw 10.9.8.1 --far-device rxe8:2", "rxe8 has no port 2"),
    ("", "bw 10.9.8.1 --op write --service uc", "use the operation write-imm"),
    (
        "",
        "lat 10.9.8.1 --op send --service ud --size 8KiB",
        "a datagram of 8 KiB: a packet of this path carries 4 KiB",
    ),
    ("", "bw 10.9.8.1 --post-list 9 --depth 16", "allowed is half of it"),
    ("", "bw 10.9.8.1 --qps 64 --depth 8192", "65536 requests in flight"),
    ("ip link set verbs0 down;", "bw 10.9.8.1 --device rxe8", "port 1 of rxe8: it is down"),
    (
        "ip link set verbs0 up; mount -t tmpfs hidden /sys/class/infiniband;",
        "lat 10.9.8.1 --size 64B",
        "has no RDMA device",
    ),
];

/// Checks the messages for measurements that are impossible.
fn refusals(guest: &mut Guest) {
    for (before, words, wanted) in REFUSALS {
        let reported = refused(guest, before, words);
        assert!(unwrapped(&reported).contains(wanted), "{words}: {reported}");
    }
}
