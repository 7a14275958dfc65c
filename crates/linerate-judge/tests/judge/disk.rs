//! Loads of files and disks: each cause on both sides of its threshold.

use linerate_facts::block::{BlockDevice, FileSystem, IoLimit, Layer};
use linerate_judge::causes::{NoFinding, cause};
use linerate_judge::model::{Cpu, DiskLoad, Done, Fell, Latency, Load, Model};
use linerate_plan::path::{Certainty, Direction, Stage};
use linerate_plan::transport::{FILE, Setting, file};
use linerate_units::{Bytes, Nanos, Rate};

use super::{ceiling, judge, load, model, steady, tried, tried_in};

/// Operations in a second, and bytes of each.
const OPERATIONS: f64 = 1000.0;
const BLOCK: f64 = 131_072.0;

/// What is changed of a load of a disk that is slow by itself: 32 operations of 128 KiB in flight, all of them at the
/// disk.
type Change = fn(&mut Model, &mut DiskLoad);

/// The model of a load in a direction, with a change.
fn changed(direction: Direction, change: impl Fn(&mut Model, &mut DiskLoad)) -> Model {
    let done = Done { bytes: OPERATIONS * BLOCK, requests: OPERATIONS };
    let mut disk = DiskLoad { own: done, in_flight: 31.0, busy: 1.0, ..DiskLoad::default() };
    let mut base = Load {
        transport: &FILE,
        goodput: steady(OPERATIONS * BLOCK * 8.0),
        operations: Some(steady(OPERATIONS)),
        ..load()
    };
    base.knobs.depth = 32;
    base.knobs.options.set(file::DEPTH.key, Setting::Number(32));
    (base.made.receiver.read_size, base.made.sender.write_size) = (BLOCK as u64, BLOCK as u64);
    "io_uring".clone_into(&mut base.made.receiver.way);
    "io_uring".clone_into(&mut base.made.sender.way);
    let mut model = model(base);
    model.directions[0].direction = direction;
    model.directions[0].sweep.clear();
    let mut device =
        BlockDevice { name: "sda".to_owned(), number: "8:0".to_owned(), ..BlockDevice::default() };
    (device.queue.requests, device.queue.queues) = (Some(64), Some(1));
    device.queue.largest = Some(Bytes(512 << 10));
    device.queue.read_ahead = Some(Bytes(128 << 10));
    model.hosts[0].facts.disks = vec![device];
    change(&mut model, &mut disk);
    model.directions[0].base.disk = Some(disk);
    model
}

fn found(model: &Model, id: &str) -> &'static str {
    match cause(id).expect("a known cause").check(model, model.directions[0].direction) {
        Ok(found) if found.enough => "enough",
        Ok(_) => "suspect",
        Err(NoFinding::Clear(_)) => "clear",
        Err(NoFinding::Unknown(_)) => "unknown",
    }
}

fn option(model: &mut Model, key: &'static str) {
    model.directions[0].base.knobs.options.set(key, Setting::Switch(true));
}

fn disks(model: &mut Model) -> &mut BlockDevice {
    &mut model.hosts[0].facts.disks[0]
}

/// Puts the file into memory.
fn in_memory(model: &mut Model) {
    let kind = "tmpfs".to_owned();
    model.hosts[0].facts.filesystem = Some(FileSystem { kind, ..FileSystem::default() });
}

/// Puts a device above the disk.
fn above(model: &mut Model, layer: Layer, raid: &str, bitmap: &str) {
    let device = BlockDevice {
        name: "top".to_owned(),
        layer,
        raid: raid.to_owned(),
        bitmap: bitmap.to_owned(),
        below: vec!["sda".to_owned()],
        ..BlockDevice::default()
    };
    model.hosts[0].facts.disks.insert(0, device);
}

fn limited(model: &mut Model, reads: u64) {
    let group = "/a.slice".to_owned();
    let limit =
        IoLimit { group, number: "8:0".to_owned(), reads: Some(reads), ..IoLimit::default() };
    model.hosts[0].facts.io_limits = vec![limit];
}

fn passes(disk: &mut DiskLoad, share: f64) {
    disk.own.bytes *= share;
    disk.own.requests *= share;
}

/// Cause, direction, the change, and what the cause then finds.
const TABLE: &[(&str, Direction, Change, &str)] = {
    use Direction::{Forward, Reverse};
    &[
        ("disk-page-cache", Reverse, |_, disk| passes(disk, 0.04), "enough"),
        ("disk-page-cache", Reverse, |_, disk| passes(disk, 0.06), "suspect"),
        ("disk-page-cache", Reverse, |_, disk| passes(disk, 0.51), "clear"),
        ("disk-page-cache", Forward, |_, disk| passes(disk, 0.0), "clear"),
        // Of a file in memory no disk could move anything.
        ("disk-page-cache", Reverse, |m, _| in_memory(m), "clear"),
        ("disk-dirty", Forward, |_, disk| passes(disk, 0.04), "enough"),
        ("disk-dirty", Forward, |_, disk| passes(disk, 0.51), "clear"),
        ("disk-dirty", Reverse, |_, disk| passes(disk, 0.0), "clear"),
        // The queue takes 4 of the 32, and is full.
        (
            "disk-depth-held",
            Reverse,
            |m, d| {
                disks(m).queue.requests = Some(4);
                d.in_flight = 3.9;
            },
            "enough",
        ),
        (
            "disk-depth-held",
            Reverse,
            |m, d| {
                disks(m).queue.requests = Some(4);
                d.in_flight = 3.0;
            },
            "suspect",
        ),
        (
            "disk-depth-held",
            Reverse,
            |m, d| {
                disks(m).queue.requests = Some(4);
                d.in_flight = 2.0;
            },
            "clear",
        ),
        ("disk-depth-held", Reverse, |_, d| d.in_flight = 4.0, "clear"),
        (
            "disk-depth-held",
            Reverse,
            |m, d| {
                disks(m).queue.requests = None;
                d.in_flight = 4.0;
            },
            "suspect",
        ),
        ("disk-depth-held", Reverse, |_, d| d.in_flight = 20.0, "clear"),
        ("disk-capped", Reverse, |_, _| (), "suspect"),
        ("disk-capped", Reverse, |_, d| d.in_flight = 19.0, "clear"),
        ("disk-capped", Reverse, |_, d| d.busy = 0.89, "clear"),
        ("disk-capped", Reverse, |m, _| option(m, "buffered"), "clear"),
        // Each operation is four requests.
        (
            "disk-split",
            Reverse,
            |m, d| {
                disks(m).queue.largest = Some(Bytes(32 << 10));
                d.own.requests *= 4.0;
            },
            "clear",
        ),
        (
            "disk-split",
            Reverse,
            |m, d| {
                disks(m).queue.largest = Some(Bytes(32 << 10));
                d.own.requests *= 4.0;
                d.in_flight = 60.0;
            },
            "enough",
        ),
        (
            "disk-split",
            Reverse,
            |m, d| {
                disks(m).queue.largest = Some(Bytes(32 << 10));
                d.own.requests *= 1.4;
            },
            "clear",
        ),
        (
            "disk-split",
            Reverse,
            |m, d| {
                disks(m).queue.largest = Some(Bytes(32 << 10));
                disks(m).queue.requests = None;
                d.own.requests *= 4.0;
            },
            "suspect",
        ),
        ("disk-split", Reverse, |_, d| d.own.requests *= 4.0, "clear"),
        (
            "disk-split",
            Reverse,
            |m, d| {
                disks(m).queue.largest = None;
                d.own.requests *= 4.0;
            },
            "unknown",
        ),
        ("disk-sync", Forward, |m, _| option(m, "sync"), "suspect"),
        ("disk-sync", Forward, |_, _| (), "clear"),
        (
            "disk-sync",
            Forward,
            |m, _| {
                m.hosts[0].facts.filesystem =
                    Some(FileSystem { options: vec!["sync".to_owned()], ..FileSystem::default() });
            },
            "suspect",
        ),
        ("disk-sync", Reverse, |m, _| option(m, "sync"), "clear"),
        ("disk-throttled", Reverse, |m, _| limited(m, 1000), "enough"),
        ("disk-throttled", Reverse, |m, _| limited(m, 1100), "enough"),
        ("disk-throttled", Reverse, |m, _| limited(m, 1120), "clear"),
        // Far beyond its limit, it is not this limit that holds.
        ("disk-throttled", Reverse, |m, _| limited(m, 800), "suspect"),
        ("disk-throttled", Reverse, |_, _| (), "clear"),
        ("disk-throttled", Forward, |m, _| limited(m, 1000), "clear"),
        (
            "disk-not-async",
            Reverse,
            |m, d| {
                "threads".clone_into(&mut m.directions[0].base.made.receiver.way);
                d.in_flight = 19.0;
            },
            "enough",
        ),
        (
            "disk-not-async",
            Reverse,
            |m, d| {
                workers(m);
                d.in_flight = 20.0;
            },
            "clear",
        ),
        ("disk-not-async", Reverse, |_, _| (), "clear"),
        (
            "disk-not-async",
            Reverse,
            |m, d| {
                workers(m);
                in_memory(m);
                d.in_flight = 0.0;
            },
            "clear",
        ),
        (
            "disk-not-async",
            Reverse,
            |m, _| m.directions[0].base.made.receiver.way.clear(),
            "unknown",
        ),
        (
            "disk-crypt",
            Reverse,
            |m, d| {
                above(m, Layer::Crypt, "", "");
                filled(m, 0.81);
                d.in_flight = 3.0;
            },
            "enough",
        ),
        (
            "disk-crypt",
            Reverse,
            |m, d| {
                above(m, Layer::Crypt, "", "");
                filled(m, 0.79);
                d.in_flight = 3.0;
            },
            "suspect",
        ),
        (
            "disk-crypt",
            Reverse,
            |m, _| {
                above(m, Layer::Crypt, "", "");
                filled(m, 0.9);
            },
            "clear",
        ),
        (
            "disk-crypt",
            Reverse,
            |m, d| {
                above(m, Layer::Volume, "", "");
                filled(m, 0.9);
                d.in_flight = 3.0;
            },
            "clear",
        ),
        (
            "disk-raid-write",
            Forward,
            |m, d| {
                above(m, Layer::Raid, "raid1", "+8");
                d.own.requests *= 1.25;
            },
            "enough",
        ),
        (
            "disk-raid-write",
            Forward,
            |m, d| {
                above(m, Layer::Raid, "raid1", "+8");
                d.own.requests *= 1.15;
            },
            "clear",
        ),
        (
            "disk-raid-write",
            Forward,
            |m, d| {
                above(m, Layer::Raid, "raid1", "none");
                d.own.requests *= 1.25;
            },
            "clear",
        ),
        (
            "disk-raid-write",
            Forward,
            |m, d| {
                above(m, Layer::Raid, "raid5", "none");
                d.other.bytes = d.own.bytes * 0.26;
            },
            "enough",
        ),
        (
            "disk-raid-write",
            Forward,
            |m, d| {
                above(m, Layer::Raid, "raid5", "none");
                d.other.bytes = d.own.bytes * 0.24;
            },
            "clear",
        ),
        (
            "disk-raid-write",
            Forward,
            |m, d| {
                above(m, Layer::Raid, "raid0", "");
                d.other.bytes = d.own.bytes;
            },
            "clear",
        ),
        ("disk-link", Reverse, |m, _| linked(m, 1.01), "enough"),
        ("disk-link", Reverse, |m, _| linked(m, 1.05), "suspect"),
        ("disk-link", Reverse, |m, _| linked(m, 1.15), "clear"),
        ("disk-link", Reverse, |_, _| (), "clear"),
        (
            "disk-thermal",
            Forward,
            |m, d| {
                disks(m).hottest = Some(80_000);
                d.hottest = Some(79_000.0);
                fell(m);
            },
            "enough",
        ),
        (
            "disk-thermal",
            Forward,
            |m, d| {
                disks(m).hottest = Some(80_000);
                d.hottest = Some(79_000.0);
            },
            "suspect",
        ),
        (
            "disk-thermal",
            Forward,
            |m, d| {
                disks(m).hottest = Some(80_000);
                d.hottest = Some(77_000.0);
                fell(m);
            },
            "clear",
        ),
        ("disk-thermal", Forward, |m, _| fell(m), "clear"),
        ("disk-cache-knee", Forward, |m, _| fell(m), "enough"),
        ("disk-cache-knee", Reverse, |m, _| fell(m), "clear"),
        ("disk-cache-knee", Forward, |_, _| (), "clear"),
        (
            "disk-read-ahead",
            Reverse,
            |m, d| {
                option(m, "buffered");
                d.in_flight = 2.0;
            },
            "suspect",
        ),
        (
            "disk-read-ahead",
            Reverse,
            |m, d| {
                option(m, "buffered");
                d.in_flight = 2.3;
            },
            "clear",
        ),
        ("disk-read-ahead", Reverse, |_, d| d.in_flight = 1.0, "clear"),
        (
            "disk-read-ahead",
            Reverse,
            |m, d| {
                option(m, "buffered");
                d.in_flight = 1.0;
                passes(d, 0.4);
            },
            "clear",
        ),
        ("disk-contended", Reverse, |_, d| d.other.requests = d.own.requests * 0.2, "enough"),
        ("disk-contended", Reverse, |_, d| d.other.requests = d.own.requests * 0.1, "clear"),
        ("disk-contended", Reverse, |_, d| passes(d, 1.2), "enough"),
        ("disk-contended", Reverse, |_, d| passes(d, 1.05), "clear"),
        (
            "disk-contended",
            Forward,
            |m, d| {
                above(m, Layer::Raid, "raid5", "");
                d.other = d.own;
            },
            "clear",
        ),
    ]
};

/// Fills this share of a CPU with the work of others.
fn filled(model: &mut Model, others: f64) {
    let cpu = Cpu { busy: others + 0.4, ..Cpu::default() };
    model.directions[0].base.cpus = [vec![cpu.clone()], vec![cpu]].into();
}

/// Gives the disk a link that carries `times` the goodput at least.
fn linked(model: &mut Model, times: f64) {
    let goodput = model.directions[0].base.goodput.mean * times;
    model.directions[0].ceilings = vec![ceiling(Stage::Pcie, goodput, goodput * 1.05)];
}

fn fell(model: &mut Model) {
    let goodput = model.directions[0].base.goodput.mean;
    model.directions[0].fell = Some(Fell {
        first: Rate(goodput as u64 * 3),
        lasting: Rate(goodput as u64),
        bytes: Bytes(20 << 30),
        loaded: Nanos::from_secs(10),
    });
}

#[test]
fn each_cause_is_found_on_one_side_of_its_threshold() {
    for (number, (id, direction, change, expected)) in TABLE.iter().enumerate() {
        let model = changed(*direction, change);
        assert_eq!(found(&model, id), *expected, "{id}, row {number}");
    }
}

#[test]
fn without_the_counters_of_a_disk_it_is_unknown_what_it_did() {
    let mut model = changed(Direction::Reverse, |_, _| ());
    model.directions[0].base.disk = None;
    for id in ["disk-page-cache", "disk-depth-held", "disk-capped", "disk-split"] {
        assert_eq!(found(&model, id), "unknown", "{id}");
    }
}

/// The first limit of a model and how certain it is.
fn named(model: &Model) -> Option<(&'static str, Certainty)> {
    judge(model).limits.first().map(|limit| (limit.cause, limit.certainty))
}

#[test]
fn twice_in_flight_tells_a_slow_disk_from_too_little_in_flight() {
    for (ratio, expected) in [
        (1.0, Some(("disk-capped", Certainty::Proved))),
        (1.9, Some(("queue-depth", Certainty::Proved))),
        (0.5, None),
    ] {
        let mut model = changed(Direction::Forward, |_, _| ());
        tried(&mut model, "more-depth", ratio);
        assert_eq!(named(&model), expected, "{ratio}");
    }
}

#[test]
fn requests_of_half_the_size_tell_whether_splitting_costs() {
    for (ratio, is_named) in [(0.5, true), (1.0, false)] {
        let mut model = changed(Direction::Forward, |m, d| {
            disks(m).queue.largest = Some(Bytes(32 << 10));
            d.own.requests *= 4.0;
            d.in_flight = 60.0;
        });
        tried(&mut model, "more-depth", 1.0);
        tried(&mut model, "smaller-operations", ratio);
        let is = judge(&model).limits.iter().any(|limit| limit.cause == "disk-split");
        assert_eq!(is, is_named, "{ratio}: {:?}", named(&model));
    }
}

#[test]
fn a_trial_without_the_wait_for_stored_data_tells_what_it_costs() {
    for (ratio, is_named) in [(3.0, true), (1.0, false)] {
        let mut model = changed(Direction::Forward, |m, _| option(m, "sync"));
        tried(&mut model, "unsynced", ratio);
        let is = named(&model).is_some_and(|(id, _)| id == "disk-sync");
        assert_eq!(is, is_named, "{ratio}: {:?}", named(&model));
    }
}

/// Public reports with a known cause: the figures that the report shows, the cause that must be the first suspect or the
/// limit, and the trial that its reporter made, with its effect.
//= linux-nfs list 83232; openzfs 3528, 16993; liburing 1499; fio 508, 642, 1863; louwrentius.com 2020 on md;
//= terraform-provider-iterative 761; KDiskMark 108, 143; Fedora discussion 40525
type Report = (&'static str, Direction, Change, Option<(&'static str, f64)>, Option<&'static str>);

const REPORTS: &[Report] = {
    use Direction::{Forward, Reverse};
    &[
        // Reads fell to a third as read-ahead fell to 128 KiB, and rose with it.
        (
            "read-ahead",
            Reverse,
            |m, d| {
                option(m, "buffered");
                shallow(m);
                d.in_flight = 1.0;
            },
            Some(("larger-read-ahead", 1.9)),
            Some("disk-read-ahead"),
        ),
        // 512 B with sync to hard disks: 0.2 kB/s, and 717 with a log device.
        (
            "sync on hard disks",
            Forward,
            |m, d| {
                option(m, "sync");
                shallow(m);
                d.in_flight = 1.0;
            },
            Some(("unsynced", 30.0)),
            Some("disk-sync"),
        ),
        (
            "sync=always over iSCSI",
            Forward,
            |m, d| {
                option(m, "sync");
                shallow(m);
                d.in_flight = 1.0;
            },
            Some(("unsynced", 2.7)),
            Some("disk-sync"),
        ),
        // NFS by io_uring's workers; ZFS that blocks in each submit: threads carry more.
        (
            "io_uring over NFS",
            Reverse,
            |m, d| {
                workers(m);
                d.in_flight = 2.0;
            },
            Some(("more-streams", 1.9)),
            Some("disk-not-async"),
        ),
        (
            "libaio on ZFS",
            Reverse,
            |m, d| {
                workers(m);
                d.in_flight = 1.0;
            },
            Some(("more-streams", 1.8)),
            Some("disk-not-async"),
        ),
        // A synchronous engine: one operation in flight on a fast path.
        (
            "one in flight over iSCSI",
            Forward,
            |m, d| {
                shallow(m);
                d.in_flight = 0.9;
            },
            Some(("more-depth", 1.95)),
            Some("queue-depth"),
        ),
        // Random writes to a mirror with a bitmap on its disks.
        (
            "md with a bitmap",
            Forward,
            |m, d| {
                above(m, Layer::Raid, "raid1", "+8");
                d.own.requests *= 2.0;
                d.in_flight = 3.0;
            },
            None,
            Some("disk-raid-write"),
        ),
        // The same driver and link under two names: no counter tells, so nothing is named without a trial.
        (
            "USB bridge",
            Reverse,
            |_, d| {
                d.in_flight = 25.0;
                d.busy = 0.5;
            },
            None,
            None,
        ),
        // 105 operations in a second at any size and depth.
        ("cloud volume", Reverse, |_, _| (), Some(("more-depth", 1.0)), Some("disk-capped")),
        // LUKS between the file and the disk.
        (
            "encrypted file",
            Reverse,
            |m, d| {
                above(m, Layer::Crypt, "", "");
                filled(m, 0.95);
                d.in_flight = 4.0;
            },
            None,
            Some("disk-crypt"),
        ),
        (
            "queues of dm-crypt",
            Forward,
            |m, d| {
                above(m, Layer::Crypt, "", "");
                filled(m, 0.9);
                d.in_flight = 2.0;
            },
            None,
            Some("disk-crypt"),
        ),
        // O_DIRECT was refused without a word.
        ("no O_DIRECT", Reverse, |_, d| passes(d, 0.0), None, Some("disk-page-cache")),
        // No cause in the thread.
        (
            "unknown in the thread",
            Forward,
            |_, d| {
                d.busy = 0.4;
                d.in_flight = 10.0;
            },
            None,
            None,
        ),
    ]
};

/// One operation in flight.
fn shallow(model: &mut Model) {
    let knobs = &mut model.directions[0].base.knobs;
    knobs.depth = 1;
    knobs.options.set(file::DEPTH.key, Setting::Number(1));
}

/// Operations that kernel workers handle.
fn workers(model: &mut Model) {
    let base = &mut model.directions[0].base;
    "io_uring, by kernel workers".clone_into(&mut base.made.receiver.way);
    // 32 at once take 30 times as long as one alone.
    base.latency = Some(Latency {
        percentiles: vec![(50.0, Nanos::from_millis(3))],
        samples: 500,
        least: Nanos::from_micros(100),
    });
}

#[test]
fn public_reports_get_the_cause_that_was_found() {
    let mut wrong = Vec::new();
    for (name, direction, change, trial, expected) in REPORTS {
        let mut model = changed(*direction, change);
        if let Some((kind, ratio)) = trial {
            tried_in(&mut model, *direction, kind, *ratio);
        }
        let got = named(&model).map(|(id, _)| id);
        if got != *expected {
            wrong.push(format!("{name}: {got:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
