//! Records of real runs, judged by the current library. In the `EDGES`, a limit is just above or just below a cause's
//! threshold: `benches/truth/edges.sh` makes them and describes their faults. The faults of the others are described in
//! `benches/truth/2026-11-21-replayed.md`; those records are kept without warm-ups and without the other direction.

use std::path::{Path, PathBuf};

use linerate_judge::causes::{CAUSES, cause};
use linerate_judge::model::derive;
use linerate_judge::verdict::judge;
use linerate_record::{Record, frame};

use super::{CELLS, Cell};

/// A record, the limits that must be named first (none if the limit may be unknown), and a similar cause that must not
/// be named.
type Kept = (&'static str, &'static [&'static str], &'static str);

const EDGES: &[Kept] = &[
    ("receive-window-over", &["receive-window"], "path-rate"),
    ("receive-window-under", &["path-rate"], "receive-window"),
    ("send-buffer-over", &["send-buffer"], "path-rate"),
    ("send-buffer-under", &["path-rate"], "send-buffer"),
    ("receiver-core-over", &["receiver-core"], "path-rate"),
    ("receiver-core-under", &["path-rate"], "receiver-core"),
    ("sender-core-over", &["sender-core"], "path-rate"),
    ("sender-core-under", &["path-rate"], "sender-core"),
    ("receiver-app-over", &["receiver-app"], "path-rate"),
    // The same plan in another run, in which the buffer held all payload: the window never closed.
    ("receiver-app-open", &["receiver-app"], "path-rate"),
    ("receiver-app-under", &["path-rate"], "receiver-app"),
    ("sender-app-over", &["sender-app"], "path-rate"),
    ("sender-app-under", &["path-rate"], "sender-app"),
    ("pacing-over", &["pacing"], "path-rate"),
    ("pacing-under", &["path-rate"], "pacing"),
    ("contended-under", &["path-rate"], ""),
    ("interrupted-under", &[], ""),
];

/// A record, its expected first limits and all expected disturbances, and a similar cause that must not be named.
type Disturbed = (&'static str, [&'static [&'static str]; 2], &'static str);

/// Records with disturbances. All other records, near misses included, must have none.
const DISTURBED: &[Disturbed] = &[
    // The path carries 100 Mb/s, of which other programs use 30 Mb/s.
    ("contended-over", [&["path-rate"], &["contended"]], "interrupted"),
    ("interrupted-over", [&[], &["interrupted"]], "contended"),
    // The path carries 300 Mb/s, on two CPUs that other programs also use. The run made no trials.
    ("path-rate-crowded", [&["path-rate"], &["cpu-contention"]], "receiver-core"),
    ("path-rate-long-name", [&["path-rate"], &["cpu-contention"]], "receiver-core"),
    // UDP at 3 Gb/s into a receive buffer of 32 KiB, and without a pace through 300 Mb/s. Both runs made no trials, on
    // a machine whose CPUs others used for three quarters of the time.
    ("planted-socket-drops", [&["socket-drops"], &["cpu-contention"]], "pacing"),
    // Writes of 128 KiB at random places, 32 in flight, on a virtual disk, while the host took CPU time.
    ("disk-writes", [&[], &["cpu-steal"]], "disk-capped"),
    ("planted-udp-path-rate", [&["path-rate"], &["cpu-contention"]], "sender-core"),
];

/// Records of faults that limit the path clearly, and the cause that must be named first.
const PLANTED: &[Kept] = &[
    ("path-rate-1g", &["path-rate"], ""),
    ("path-rate-5g", &["path-rate"], ""),
    // Writes of 128 KiB in a folder: through the page cache, and past it.
    ("planted-dirty", &["disk-dirty"], "queue-depth"),
    ("past-page-cache", &[], "disk-dirty"),
    // Writes of 64 KiB, each with the wait for its data.
    ("planted-sync", &["disk-sync"], "disk-depth-held"),
    // Disks of a virtual machine, made by null_blk (`tests/vm/disk.rs`): requests of 20 ms, read ahead by 128 KiB; a
    // control group with 100 reads a second; a queue of 4 requests for 32 operations; operations of 1 MiB cut into
    // requests of 32 KiB for a queue of 8; and a disk of 4 MB/s.
    ("planted-disk-read-ahead", &["disk-read-ahead"], "disk-page-cache"),
    ("planted-disk-throttled", &["disk-throttled"], "disk-depth-held"),
    ("planted-disk-depth-held", &["disk-depth-held"], "queue-depth"),
    ("planted-disk-split", &["disk-split"], "queue-depth"),
    ("planted-disk-capped", &["disk-capped"], "queue-depth"),
    // 128 KiB at random places, 32 in flight, on a virtual disk: reads that it has no time for.
    ("disk-reads", &["disk-capped"], "disk-depth-held"),
    ("planted-flow-rate", &["flow-rate-cap"], ""),
    ("planted-loss", &["path-loss"], ""),
    ("planted-black-hole", &["mtu-black-hole"], ""),
    // Packets to far wait for a tick of 1 ms: a round trip takes 1 ms, but the kernel's shortest one is far shorter.
    ("planted-hold", &["receive-window"], "path-rate"),
    // A route of the far host limits the window, whatever its buffer is (`window 65536`, with a round trip of 10 ms).
    ("planted-window-clamp", &["receive-window"], "flow-rate-cap"),
    ("planted-host-shaping", &["host-shaping"], ""),
    ("planted-small-packets", &["small-packets"], ""),
    ("planted-cpu-contention", &["cpu-contention"], ""),
    ("planted-cpu-quota", &["cpu-quota"], ""),
    ("planted-one-cpu", &["sender-core"], ""),
    ("planted-two-streams", &["path-rate"], ""),
    ("planted-deep-queue", &["latency-queue"], "latency-wakeup"),
    // Both ends run on one CPU, and may use no other.
    ("planted-shared-core", &["shared-core"], ""),
    // One of 50 packets is received 10 ms late, on a path of 5 ms.
    ("planted-reorder", &["path-reordering"], "path-loss"),
    // In a virtual machine, `netem delay 10ms reorder 25% 50%` under cubic, and `delay 20ms 20ms` under bbr: most
    // packets are late, and none is lost. Both runs made no trials.
    ("planted-reorder-early", &["path-reordering"], "flow-rate-cap"),
    ("planted-jitter-bbr", &["path-reordering"], "flow-rate-cap"),
    // The path carries 400 Mb/s until 110 MB are sent, then 60 Mb/s.
    ("planted-burst-credit", &["burst-credit"], "path-rate"),
    // bbr over a round trip of 20 ms, and 200 kb/s for the acknowledgements.
    ("planted-ack-way", &["ack-way"], "path-rate"),
    // 38 % of the packets are lost in rows, over a round trip of 1 ms: almost nothing is received.
    ("planted-loss-in-rows", &["path-loss"], "mtu-black-hole"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records")
}

/// The kept record of this name.
pub(super) fn record(name: &str) -> Record {
    let bytes = std::fs::read(folder().join(format!("{name}.lnr"))).unwrap();
    let (record, damage) = frame::decode(&bytes).unwrap();
    assert_eq!(damage, None, "{name}");
    record
}

/// Names of all kept records.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let all = EDGES.iter().chain(PLANTED).map(|(name, ..)| *name);
    all.chain(DISTURBED.iter().map(|(name, ..)| *name))
}

pub(super) fn cells() -> Vec<Cell> {
    let all = EDGES.iter().chain(PLANTED);
    let cell =
        |&(name, first, not): &Kept| Cell::new(name.to_owned(), &record(name), [first, &[]], not);
    let disturbed = DISTURBED.iter();
    let disturbed = disturbed
        .map(|&(name, reported, not)| Cell::new(name.to_owned(), &record(name), reported, not));
    all.map(cell).chain(disturbed).collect()
}

#[test]
fn each_names_what_bound_it_and_not_what_nearly_did() {
    let kept = &CELLS[..EDGES.len() + PLANTED.len() + DISTURBED.len()];
    let wrong = kept.iter().filter(|cell| !cell.is_right(CAUSES));
    let wrong: Vec<String> =
        wrong.map(|cell| format!("{}: {:?}", cell.name, cell.named(CAUSES))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Least ratio of two gains at which one counts as larger than the other.
const MORE: f64 = 1.02;

#[test]
fn no_limit_contradicts_the_trials_and_the_streams_beside_it() {
    for name in names() {
        let model = derive(&record(name));
        let verdict = judge(&model);
        for unknown in &verdict.unknown {
            assert!(!unknown.hint.is_empty(), "{name}: no next step: {unknown:#?}");
        }
        for limit in verdict.limits {
            let Some(dir) = model.direction(limit.direction) else {
                continue;
            };
            // Each stream has its own thread, so all streams together may gain more than one can.
            let of_one = ["cpu-contention", "cpu-steal"].contains(&limit.cause);
            let gains = limit.advice.iter().filter_map(|advice| advice.gain);
            let gain = gains.fold(1.0, f64::max);
            let most = dir.sweep.iter().map(|l| l.goodput.mean / dir.base.goodput.mean);
            let most = most.fold(1.0, f64::max);
            let doubled = most >= 1.8;
            assert!(!of_one || doubled || gain <= most * MORE, "{name}: {limit:#?}");
            let cause = cause(limit.cause).unwrap();
            let mut own = model
                .trials
                .iter()
                .filter(|t| t.plan.direction == limit.direction && cause.is_about(&model, &t.plan));
            let denied = own.find(|t| {
                let differs =
                    cause.predict(&model, &t.plan).is_some_and(|p| p.high < 0.95 || p.low > 1.05);
                differs && t.effect.is_some_and(|e| e.low > 0.97 && e.high < 1.03)
            });
            assert!(denied.is_none(), "{name}: {limit:#?} {denied:#?}");
        }
    }
}

#[test]
fn every_record_is_judged() {
    let mut kept: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    kept.sort();
    let mut reported: Vec<String> = names().map(|name| format!("{name}.lnr")).collect();
    reported.sort();
    assert_eq!(kept, reported);
}
