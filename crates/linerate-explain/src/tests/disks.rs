//! Tests of the rules about what limits a disk.

use super::*;
use crate::Answered;
use linerate_facts::block::{BlockDevice, FileSystem, Layer, Path};
use linerate_facts::nic::Nic;

/// The output of a program with one disk result.
fn of(tool: &str, disk: Disk) -> Source {
    let mut source = source(Side::Near, vec![Measured::Disk(disk)]);
    source.tool = Tool::named(tool);
    source
}

fn row(does: Does, operations: f64, micros: f64) -> DiskRow {
    let mut row = DiskRow::new(Access::Random, does, operations * 4096.0);
    row.block = Some(Bytes(4096));
    row.operations = Some(operations);
    row.mean = Some(Nanos((micros * 1e3) as u64)).filter(|time| time.0 > 0);
    (row.depth, row.threads) = (Some(1), Some(1));
    row
}

fn fio(rows: Vec<DiskRow>) -> Source {
    let disk = Disk { direct: Some(true), rows, ..Disk::default() };
    of("fio", disk)
}

/// The headline: kind of answer, and its causes.
fn answer(sources: Vec<Source>, near: Inventory) -> (Answered, Vec<&'static str>) {
    let material = Material { sources, near, ..Material::default() };
    let headline = explain(&material).headline.unwrap();
    let causes = headline.cause.into_iter().chain(headline.candidates);
    (headline.stands, causes.collect())
}

fn limit(sources: Vec<Source>) -> Option<&'static str> {
    let (stands, causes) = answer(sources, Inventory::default());
    causes.first().copied().filter(|_| stands == Answered::Limit)
}

#[test]
fn a_flush_that_is_most_of_a_write_is_the_limit() {
    let with = |flush_micros: u64, flushed: Option<f64>| {
        let mut one = row(Does::Write, 118.0, 31.6);
        (one.flush, one.flushed) = (Some(Nanos::from_micros(flush_micros)), flushed);
        limit(vec![fio(vec![one])])
    };
    // One of 118 writes per second takes 8475 us.
    assert_eq!(with(8_430, Some(1.0)), Some("disk-sync"));
    assert_eq!(with(8_430, None), Some("disk-sync"));
    assert_eq!(with(4_240, Some(1.0)), Some("disk-sync"));
    assert_eq!(with(4_230, Some(1.0)), None);
    // It is unknown how many writes share a flush.
    assert_eq!(with(84_300, None), None);
    assert_eq!(with(84_300, Some(0.1)), Some("disk-sync"));
    let mut few = row(Does::Write, 118.0, 31.6);
    (few.flush, few.flushed) = (Some(Nanos::from_millis(80)), Some(0.1));
    let words = remarks(vec![fio(vec![few])], &[]).remove(0).1;
    assert!(words.ends_with("take most of the time, one for 10 writes"), "{words}");
    let fast = |micros: u64| {
        let mut one = row(Does::Write, 4_000.0, 20.0);
        (one.flush, one.flushed) = (Some(Nanos::from_micros(micros)), Some(1.0));
        limit(vec![fio(vec![one])])
    };
    assert_eq!(fast(200), Some("disk-sync"));
    assert_ne!(fast(199), Some("disk-sync"));
}

#[test]
fn writes_that_each_wait_for_the_disk_are_flushes() {
    let with = |operations: f64, block: u64, flushed: f64| {
        let mut one = row(Does::Write, operations, 0.0);
        (one.block, one.flushed) = (Some(Bytes(block)), Some(flushed));
        limit(vec![of("dd", Disk { direct: Some(false), rows: vec![one], ..Disk::default() })])
    };
    assert_eq!(with(41.0, 512, 1.0), Some("disk-sync"));
    assert_eq!(with(41.0, 64 << 10, 1.0), Some("disk-sync"));
    assert_eq!(with(4.0, 128 << 10, 1.0), None);
    assert_ne!(with(41.0, 512, 0.01), Some("disk-sync"));
    assert_ne!(with(5_001.0, 512, 1.0), Some("disk-sync"));
    let words = remarks(
        vec![fio(vec![{
            let mut one = row(Does::Write, 118.0, 31.6);
            (one.flush, one.flushed) = (Some(Nanos(8_430_000)), Some(1.0));
            one
        }])],
        &[],
    );
    assert!(words[0].1.contains("118 writes/s are one flush after the other"), "{words:?}");
}

#[test]
fn an_engine_that_cannot_queue_has_one_in_flight() {
    let with = |operations: f64, requested: Option<u32>, block: u64| {
        let mut one = row(Does::Read, operations, 83.3);
        (one.requested, one.block) = (requested, Some(Bytes(block)));
        let disk = Disk {
            engine: "pvsync2".to_owned(),
            rows: vec![one, row(Does::Read, 400_000.0, 159.0)],
            ..Disk::default()
        };
        answer(vec![of("fio", disk)], Inventory::default())
    };
    assert_eq!(with(11_900.0, Some(64), 4096), (Answered::Limit, vec!["queue-depth"]));
    // Large operations, one after the other, may fill the disk.
    let both = vec!["queue-depth", "disk-latency"];
    assert_eq!(with(11_900.0, Some(64), 128 << 10), (Answered::Unknown, both));
    assert_eq!(with(11_900.0, None, 4096).0, Answered::Unknown);
}

#[test]
fn the_depth_that_was_asked_is_held_against_littles_law() {
    let with = |micros: f64| {
        let mut one = row(Does::Read, 10_000.0, micros);
        one.depth = Some(32);
        limit(vec![fio(vec![one])])
    };
    for (micros, is_one) in
        [(89.0, false), (90.0, true), (110.0, true), (111.0, false), (3_180.0, false)]
    {
        assert_eq!(with(micros) == Some("queue-depth"), is_one, "{micros}");
    }
    let mut used = row(Does::Read, 402_000.0, 158.8);
    used.depth = Some(64);
    let material = Material { sources: vec![fio(vec![used])], ..Material::default() };
    let headline = explain(&material).headline.unwrap();
    assert_eq!((headline.stands, headline.rule), (Answered::Unknown, Some("disk-open")));
    assert_eq!(headline.ruled_out, ["queue-depth", "disk-page-cache"]);
    assert!(headline.what.contains("63.8 of 64"), "{}", headline.what);
}

#[test]
fn a_small_operation_after_the_other_is_as_fast_as_the_disk_answers() {
    let with =
        |operations: f64, micros: f64| limit(vec![fio(vec![row(Does::Read, operations, micros)])]);
    assert_eq!(with(12_000.0, 83.0), Some("queue-depth"));
    assert_eq!(with(501.0, 1_995.0), Some("queue-depth"));
    assert_eq!(with(499.0, 2_004.0), Some("disk-latency"));
    assert_eq!(with(118.0, 8_460.0), Some("disk-latency"));
    // The disk takes only half of the time: something else takes the rest.
    assert_eq!(with(118.0, 4_000.0), None);
    let mut large = row(Does::Read, 400.0, 2_500.0);
    large.block = Some(Bytes(1 << 20));
    assert_eq!(limit(vec![fio(vec![large])]), None);
    let mut deep = row(Does::Read, 300_000.0, 100.0);
    deep.depth = Some(32);
    assert_eq!(limit(vec![fio(vec![row(Does::Read, 118.0, 8_460.0), deep])]), None);
}

#[test]
fn a_thread_that_only_submits_gives_the_disk_no_more() {
    let with = |submit: u64| {
        let mut one = row(Does::Write, 5_000.0, 6_000.0);
        (one.depth, one.submit) = (Some(32), Some(Nanos(submit)));
        limit(vec![fio(vec![one])])
    };
    assert_eq!(with(180_000), Some("disk-submit"));
    assert_ne!(with(179_000), Some("disk-submit"));
    let mut four = row(Does::Write, 5_000.0, 6_000.0);
    (four.threads, four.depth, four.submit) = (Some(4), Some(32), Some(Nanos(180_000)));
    assert_eq!(limit(vec![fio(vec![four])]), None);
}

/// Reports of `iostat` about writes: each has requests per second, and milliseconds of a request.
fn iostat(rows: &[(f64, f64)]) -> Source {
    let row = |(operations, ms): &(f64, f64)| {
        let mut row = row(Does::Write, *operations, ms * 1e3);
        (row.access, row.depth, row.threads) = (Access::Unknown, None, None);
        row.busy = Some(1.0);
        row
    };
    let disk =
        Disk { target: "sdc".to_owned(), rows: rows.iter().map(row).collect(), ..Disk::default() };
    of("iostat", disk)
}

#[test]
fn a_disk_that_takes_a_second_for_few_requests_is_sick() {
    let with = |rows: &[(f64, f64)]| limit(vec![iostat(rows)]);
    assert_eq!(with(&[(3.0, 912.4), (2.0, 1_204.0)]), Some("disk-latency"));
    assert_eq!(with(&[(20.0, 100.0)]), Some("disk-latency"));
    assert_eq!(with(&[(20.5, 100.0)]), None);
    assert_eq!(with(&[(20.0, 99.0)]), None);
    // At 120 requests per second, a queue explains the long time.
    assert_eq!(with(&[(120.0, 900.0)]), None);
    assert_eq!(with(&[(3.0, 900.0), (3.0, 5.0), (3.0, 5.0)]), None);
    let all = remarks(vec![iostat(&[(3.0, 912.4), (2.0, 1_204.0)])], &[]);
    assert!(all[0].1.contains("912 ms to 1.2 s, at 2.0 to 3.0 a second"), "{all:?}");
}

#[test]
fn a_busy_device_that_answers_quickly_is_not_at_its_limit() {
    let ruled_out = |ms: f64| {
        let material =
            Material { sources: vec![iostat(&[(212_000.0, ms)])], ..Material::default() };
        let headline = explain(&material).headline.unwrap();
        assert_eq!(headline.stands, Answered::Unknown);
        headline.ruled_out
    };
    assert_eq!(ruled_out(1.0), ["disk-latency"]);
    assert!(ruled_out(1.01).is_empty());
}

/// The facts of a host with one disk.
fn with_disk(name: &str, rotational: Option<bool>, transport: &str, model: &str) -> Inventory {
    let mut disk = BlockDevice {
        name: name.to_owned(),
        transport: transport.to_owned(),
        model: model.to_owned(),
        ..BlockDevice::default()
    };
    disk.queue.rotational = rotational;
    let mut host = Inventory::default();
    host.storage.devices = vec![disk];
    host
}

/// A file that `dd` reads, in MB/s.
fn dd(megabytes: f64, direct: Option<bool>) -> Source {
    let mut row = file(Does::Read, megabytes);
    (row.depth, row.threads) = (Some(1), Some(1));
    let disk =
        Disk { target: "/mnt/a/file".to_owned(), direct, rows: vec![row], ..Disk::default() };
    of("dd", disk)
}

#[test]
fn what_no_disk_moves_was_in_memory() {
    let cached = |host: Inventory, megabytes: f64, direct: bool| {
        let (_, causes) = answer(vec![dd(megabytes, Some(direct))], host);
        causes == ["disk-page-cache"]
    };
    let turning = || with_disk("sdb", Some(true), "", "MAKER HD40");
    assert!(cached(turning(), 301.0, false));
    assert!(!cached(turning(), 300.0, false));
    assert!(!cached(turning(), 6_900.0, true));
    let sata = || with_disk("sda", Some(false), "ata", "");
    assert!(cached(sata(), 601.0, false) && !cached(sata(), 600.0, false));
    assert!(cached(Inventory::default(), 15_751.0, false));
    assert!(!cached(Inventory::default(), 15_749.0, false));
    // Volumes of several disks, and disks of virtual machines, may report that they rotate.
    for model in ["PERC H730P", "QEMU HARDDISK", "LOGICAL VOLUME"] {
        assert!(!cached(with_disk("sdb", Some(true), "", model), 6_900.0, false), "{model}");
    }
    assert!(!cached(with_disk("vda", Some(true), "", ""), 6_900.0, false));
    let mut guest = turning();
    guest.machine.platform.guest = Some(true);
    assert!(!cached(guest, 6_900.0, false));
}

#[test]
fn a_write_that_waits_for_the_disk_was_not_in_memory_alone() {
    let cached = |flushed: Option<f64>| {
        let mut source = dd(2_100.0, Some(false));
        let Measured::Disk(disk) = &mut source.results[0].measured else {
            unreachable!();
        };
        (disk.rows[0].does, disk.rows[0].flushed) = (Does::Write, flushed);
        let (_, causes) = answer(vec![source], with_disk("sdb", Some(true), "", ""));
        causes == ["disk-page-cache"]
    };
    assert!(cached(Some(0.0)));
    assert!(!cached(Some(0.001)) && !cached(None));
}

#[test]
fn few_bytes_that_no_disk_was_waited_for_were_left_in_memory() {
    let left = |megabytes: f64, seconds: f64, flushed: f64| {
        let mut source = dd(megabytes, Some(false));
        let Measured::Disk(disk) = &mut source.results[0].measured else {
            unreachable!();
        };
        let row = &mut disk.rows[0];
        (row.does, row.flushed, row.seconds) = (Does::Write, Some(flushed), Some(seconds));
        limit(vec![source]) == Some("disk-page-cache")
    };
    assert!(left(2_100.0, 1.0, 0.0) && !left(2_100.0, 1.1, 0.0));
    assert!(left(601.0, 1.0, 0.0) && !left(600.0, 1.0, 0.0));
    assert!(!left(2_100.0, 1.0, 0.001));
}

#[test]
fn what_is_not_known_of_a_disk_has_a_step_that_tells_it() {
    let next = |source: Source| {
        let material = Material { sources: vec![source], ..Material::default() };
        let headline = explain(&material).headline.unwrap();
        assert_eq!(headline.stands, Answered::Unknown);
        headline.next.unwrap().command.unwrap_or_default()
    };
    assert!(next(dd(301.0, Some(false))).contains("iflag=direct"));
    assert!(next(dd(300.0, Some(false))).contains("--iodepth"));
    assert!(next(dd(301.0, Some(true))).contains("--iodepth"));
    assert!(next(iostat(&[(118.0, 61.3)])).contains("lsblk"));
    assert!(next(iostat(&[(212_000.0, 0.11)])).contains("pidstat"));
    // None of these programs exists on Windows.
    assert_eq!(next(crystal(1_712.0, 51.0)), "");
    let mut copy = file(Does::Mix, 117.3);
    copy.access = Access::Copy;
    let copy = of("scp", Disk { rows: vec![copy], ..Disk::default() });
    assert_eq!(next(copy), "linerate run HOST");
}

/// A multipath disk, given for each path: its state, whether its group is in use, and the state that the target
/// reports.
fn multipath(paths: &[(&str, bool, &str)]) -> Option<Headline> {
    let path = |(at, (state, used, ana)): (usize, &(&str, bool, &str))| Path {
        name: format!("sd{at}"),
        address: format!("{at}:0:0:3"),
        state: (*state).to_owned(),
        in_use: Some(*used),
        ana_state: (*ana).to_owned(),
        ..Path::default()
    };
    let mut near = with_disk("dm-4", None, "", "");
    near.storage.devices[0].layer = Layer::Multipath;
    near.storage.devices[0].paths = paths.iter().enumerate().map(path).collect();
    let material = Material { near, ..Material::default() };
    explain(&material).headline
}

#[test]
fn a_failed_path_of_the_group_in_use_is_the_limit() {
    const BEST: (&str, bool, &str) = ("running", true, "optimized");
    const OTHER: (&str, bool, &str) = ("running", false, "non-optimized");
    let dead = |path: (&'static str, bool, &'static str)| ("failed faulty running", path.1, path.2);
    let lost = multipath(&[BEST, dead(BEST), OTHER, OTHER]).unwrap();
    assert_eq!((lost.cause, lost.side), (Some("disk-path-failed"), Some(Side::Near)));
    assert!(lost.what.contains("1 of 2 paths"), "{}", lost.what);
    assert!(lost.evidence[0].contains("sd1 (1:0:0:3) is failed faulty running"));
    assert_eq!(multipath(&[BEST, BEST, OTHER, OTHER]), None);
    // A failed path that is not in use limits nothing.
    assert_eq!(multipath(&[BEST, BEST, OTHER, dead(OTHER)]), None);
    let gone = ("failed faulty running", false, "");
    let worse = ("running", true, "non-optimized");
    let all = multipath(&[gone, gone, worse, worse]).unwrap();
    assert_eq!(all.cause, Some("disk-path-failed"));
    assert_eq!(multipath(&[gone, ("running", false, ""), worse]), None);
}

#[test]
fn paths_that_are_groups_of_their_own_leave_one_to_carry_all() {
    const OWN: [(u32, u32); 3] = [(1, 50), (2, 50), (3, 50)];
    let with = |groups: &[(u32, u32)], rate: f64, block: u64, device: &str, busy: &[&str]| {
        let path = |(at, (group, priority)): (usize, &(u32, u32))| Path {
            name: format!("sd{at}"),
            state: "running".to_owned(),
            in_use: Some(at == 0),
            group: Some(*group),
            priority: Some(*priority),
            ..Path::default()
        };
        let mut near = with_disk("dm-4", None, "", "");
        near.storage.devices[0].layer = Layer::Multipath;
        near.storage.devices[0].label = "mpathq".to_owned();
        near.storage.devices[0].paths = groups.iter().enumerate().map(path).collect();
        let mut one = dd(rate, Some(true));
        if let Measured::Disk(disk) = &mut one.results[0].measured {
            disk.rows[0].block = Some(Bytes(block));
            device.clone_into(&mut disk.target);
        }
        let mut sources = vec![one];
        sources.extend(busy.iter().map(|name| {
            let mut counted = iostat(&[(200.0, 20.0)]);
            if let Measured::Disk(disk) = &mut counted.results[0].measured {
                (*name).clone_into(&mut disk.target);
            }
            counted
        }));
        let causes = answer(sources, near).1;
        causes.contains(&"disk-path-idle").then_some(causes.len())
    };
    let at = |rate: f64, block: u64| with(&OWN, rate, block, "/dev/mapper/mpathq", &["sd0"]);
    assert_eq!(at(110.1, 4 << 20), Some(1));
    assert_eq!(at(125.1, 4 << 20), Some(2));
    assert_eq!(at(109.9, 4 << 20), Some(2));
    assert_eq!(at(109.9, 64 << 10), None);
    assert_eq!(with(&OWN, 115.0, 4 << 20, "/dev/dm-4", &[]), Some(1));
    assert_eq!(with(&OWN, 115.0, 4 << 20, "/dev/sdx", &[]), None);
    // Other paths carry requests, so the disk is not limited to one path.
    assert_eq!(with(&OWN, 115.0, 4 << 20, "/dev/dm-4", &["sd0", "sd1"]), None);
    // Paths in one group, or one path that the target prefers, are as they should be.
    for groups in [
        &[(1, 50), (1, 50), (1, 50)][..],
        &[(1, 50), (2, 10)],
        &[(1, 50), (2, 50), (2, 50)],
        &[(1, 50)],
    ] {
        assert_eq!(with(groups, 115.0, 4 << 20, "/dev/dm-4", &[]), None, "{groups:?}");
    }
}

#[test]
fn small_requests_of_a_mount_split_larger_operations() {
    let at = |megabytes: f64, size: u64, block: Option<u64>, target: &str| {
        let mut near = Inventory::default();
        near.storage.filesystems = vec![FileSystem {
            point: "/mnt/a".to_owned(),
            kind: "nfs4".to_owned(),
            device: String::new(),
            options: vec![format!("rsize={size}"), "wsize=1048576".to_owned()],
        }];
        let mut one = dd(megabytes, Some(true));
        if let Measured::Disk(disk) = &mut one.results[0].measured {
            disk.rows[0].block = block.map(Bytes);
            target.clone_into(&mut disk.target);
        }
        let sources = if block.is_some() { vec![one] } else { Vec::new() };
        let material = Material { sources, near, ..Material::default() };
        explain(&material).headline.and_then(|headline| headline.cause)
    };
    let with = |size: u64, block: Option<u64>, target: &str| at(90.0, size, block, target);
    let found = Some("nfs-io-size");
    assert_eq!(with(65_535, Some(1 << 20), "/mnt/a/f"), found);
    assert_eq!(with(65_536, Some(1 << 20), "/mnt/a/f"), None);
    assert_eq!(with(4096, Some(4097), "/mnt/a/f"), found);
    assert_eq!(with(4096, Some(4096), "/mnt/a/f"), None);
    // A file name without its folder does not tell on which mount the file is.
    assert_eq!(with(4096, Some(1 << 20), "f"), None);
    // A link of 1 Gb/s is full, so the size of requests does not limit.
    assert_eq!(at(117.0, 4096, Some(1 << 20), "/mnt/a/f"), None);
    // Results for files on another mount are not explained by this one.
    assert_eq!(with(4096, Some(1 << 20), "/mnt/ab/f"), None);
    assert_eq!(with(4096, None, ""), found);
    assert_eq!(with(65_536, None, ""), None);
}

#[test]
fn small_requests_of_nfs_alone_are_judged_and_a_copy_has_large_blocks() {
    // Options of other network filesystems have other limits.
    let bare = |kind: &str| {
        let mut near = Inventory::default();
        near.storage.filesystems = vec![FileSystem {
            point: "/mnt/a".to_owned(),
            kind: kind.to_owned(),
            options: vec!["rsize=4096".to_owned()],
            ..FileSystem::default()
        }];
        let material = Material { near, ..Material::default() };
        explain(&material).headline.and_then(|head| head.cause)
    };
    assert_eq!((bare("nfs"), bare("cifs")), (Some("nfs-io-size"), None));
    // A program that copies a file uses large blocks.
    let copied = |megabytes: f64| {
        let mut copy = file(Does::Mix, megabytes);
        copy.access = Access::Copy;
        let disk = Disk { rows: vec![copy], ..Disk::default() };
        let mut near = Inventory::default();
        near.storage.filesystems = vec![FileSystem {
            point: "/mnt/a".to_owned(),
            kind: "nfs".to_owned(),
            options: vec!["wsize=8192".to_owned()],
            ..FileSystem::default()
        }];
        answer(vec![of("rsync", disk)], near).1
    };
    assert_eq!(copied(20.0), ["nfs-io-size"]);
    assert_eq!(copied(117.0), ["nfs-io-size", "wire-full"]);
}

#[test]
fn a_rate_of_a_full_link_beside_small_requests_is_either_until_the_link_is_known() {
    let with = |megabytes: f64, port: Option<u64>, network: Option<f64>| {
        let mut near = Inventory::default();
        near.storage.filesystems = vec![FileSystem {
            point: "/mnt/a".to_owned(),
            kind: "nfs".to_owned(),
            options: vec!["rsize=16384".to_owned()],
            ..FileSystem::default()
        }];
        near.network.nics.extend(port.map(|gigabits| {
            let mut nic = Nic { name: "eth0".to_owned(), ..Nic::default() };
            nic.link.speed = Some(Rate(gigabits * 1_000_000_000));
            nic
        }));
        let mut one = dd(megabytes, Some(true));
        if let Measured::Disk(disk) = &mut one.results[0].measured {
            disk.rows[0].block = Some(Bytes(1 << 20));
            "/mnt/a/f".clone_into(&mut disk.target);
        }
        let mut sources = vec![one];
        sources.extend(network.map(|gigabits| source(Side::Near, vec![tcp(1, gigabits)])));
        let material = Material { sources, near, ..Material::default() };
        let all = explain(&material).remarks;
        let found = all.into_iter().find(|remark| remark.finding.id == "nfs-io-size");
        found.map_or(Vec::new(), |remark| remark.answer.unwrap().causes)
    };
    let either = vec!["nfs-io-size", "wire-full"];
    assert_eq!(with(117.0, None, None), either);
    assert_eq!(with(117.0, Some(10), None), ["nfs-io-size"]);
    assert_eq!(with(117.0, Some(1), None), [""; 0]);
    // 1.3 times 117 MB/s is 1.217 Gb/s: a network that carries this much is not full.
    assert_eq!(with(117.0, None, Some(1.22)), ["nfs-io-size"]);
    assert_eq!(with(117.0, None, Some(1.21)), either);
    assert_eq!(with(90.0, Some(1), None), ["nfs-io-size"]);
}

#[test]
fn small_requests_that_the_kernel_counts_are_those_of_the_mount_or_of_the_program() {
    let with = |size: u64, operations: f64, option: Option<u64>, block: Option<u64>| {
        let mut row = row(Does::Read, operations, 1_000.0);
        (row.block, row.bytes_per_sec) = (Some(Bytes(size)), operations * size as f64);
        (row.access, row.depth, row.threads) = (Access::Unknown, None, None);
        let disk = Disk { target: "/mnt/a".to_owned(), rows: vec![row], ..Disk::default() };
        let mut near = Inventory::default();
        near.storage.filesystems.extend(option.map(|size| FileSystem {
            point: "/mnt/a".to_owned(),
            kind: "nfs4".to_owned(),
            options: vec![format!("rsize={size}")],
            ..FileSystem::default()
        }));
        let mut sources = vec![of("nfsiostat", disk)];
        sources.extend(block.map(|block| {
            let mut one = dd(90.0, Some(true));
            if let Measured::Disk(disk) = &mut one.results[0].measured {
                disk.rows[0].block = Some(Bytes(block));
                "/mnt/a/f".clone_into(&mut disk.target);
            }
            one
        }));
        answer(sources, near)
    };
    let open = (Answered::Unknown, vec!["nfs-io-size", "queue-depth"]);
    let limit = (Answered::Limit, vec!["nfs-io-size"]);
    assert_eq!(with(8_300, 9_000.0, None, None), open);
    assert_eq!(with(8_300, 9_000.0, Some(8_192), None), open);
    assert_eq!(with(8_300, 9_000.0, None, Some(1 << 20)), limit);
    assert_eq!(with(8_300, 9_000.0, Some(8_192), Some(1 << 20)), limit);
    assert_ne!(with(65_536, 1_000.0, None, None), open);
    assert_ne!(with(8_300, 99.0, None, None), open);
    // Programs request less than the mount allows.
    assert_ne!(with(4_200, 9_000.0, Some(8_192), None), open);
    assert_ne!(with(8_300, 9_000.0, Some(1 << 20), None), open);
    assert_ne!(with(8_300, 9_000.0, None, Some(8_192)), limit);
}

/// A report of CrystalDiskMark: the rate of large reads in MB/s, and the time of small reads in microseconds.
fn crystal(megabytes: f64, micros: f64) -> Source {
    let mut large = file(Does::Read, megabytes);
    (large.block, large.depth, large.threads) = (Some(Bytes(1 << 20)), Some(8), Some(1));
    let small = row(Does::Read, 1e6 / micros, micros);
    let disk = Disk { direct: Some(true), rows: vec![large, small], ..Disk::default() };
    of("CrystalDiskMark", disk)
}

#[test]
fn a_quarter_of_the_rate_with_the_same_latency_is_the_link() {
    let then = |before: (f64, f64), after: (f64, f64)| {
        let runs = [before, after].map(|(rate, time)| crystal(rate, time));
        answer(runs.to_vec(), Inventory::default())
    };
    let slot = (Answered::Limit, vec!["pcie-slot"]);
    assert_eq!(then((6_890.0, 50.3), (1_712.0, 51.7)), slot);
    assert_eq!(then((6_890.0, 50.3), (3_450.0, 50.3)), slot);
    // A fall that fits no step of a PCIe link; small reads that are slower, too; a second run that is faster.
    assert_eq!(then((6_890.0, 50.3), (2_500.0, 50.3)), (Answered::Unknown, Vec::new()));
    assert_ne!(then((6_890.0, 50.3), (1_712.0, 58.0)), slot);
    assert_eq!(then((6_890.0, 50.3), (1_712.0, 57.8)), slot);
    assert_ne!(then((6_890.0, 50.3), (4_140.0, 50.3)), slot);
    assert_ne!(then((1_712.0, 50.3), (6_890.0, 50.3)), slot);
    // A disk of this rate may be on USB instead of in a slot; a slower one may be on SATA.
    let both = (Answered::Unknown, vec!["pcie-slot", "usb"]);
    assert_eq!(then((2_000.0, 50.3), (1_000.0, 50.3)), both);
    assert_eq!(then((550.0, 50.3), (275.0, 50.3)), (Answered::Unknown, Vec::new()));
    assert_ne!(answer(vec![crystal(1_712.0, 51.0)], Inventory::default()), slot);
}
