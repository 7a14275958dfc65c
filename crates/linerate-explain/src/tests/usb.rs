//! Tests of the rules about USB 2.

use super::*;
use linerate_facts::block::BlockDevice;
use linerate_facts::nic::Nic;
use linerate_facts::usb::Function;

fn function(class: &str, driver: &str, megabits: u64) -> Function {
    Function {
        class: class.to_owned(),
        driver: driver.to_owned(),
        speed: Rate(megabits * 1_000_000),
    }
}

fn causes(sources: Vec<Source>, near: Inventory, id: &str) -> Vec<&'static str> {
    let material = Material { sources, near, ..Material::default() };
    let all = explain(&material).remarks;
    let found = all.into_iter().find(|remark| remark.finding.id == id);
    found.map_or(Vec::new(), |remark| remark.answer.unwrap().causes)
}

fn near_of(megabits: f64) -> Vec<Source> {
    near(vec![tcp(1, megabits / 1e3)])
}

#[test]
fn an_adapter_on_usb_2_is_the_limit_at_what_the_bus_carries() {
    let with = |megabits: f64, speed: u64, ports: usize| {
        let mut near = Inventory {
            usb: vec![function("Vendor Specific Class", "r8152", speed)],
            ..Inventory::default()
        };
        let nic = |at: usize| Nic { name: format!("eth{at}"), ..Nic::default() };
        near.network.nics = (0..ports).map(nic).collect();
        causes(near_of(megabits), near, "adapter-on-usb-2")
    };
    assert_eq!(with(192.5, 480, 1), ["usb"]);
    assert_eq!(with(434.0, 480, 0), ["usb"]);
    for (megabits, speed) in [(191.5, 480), (436.0, 480), (94.0, 480), (300.0, 5_000)] {
        assert_eq!(with(megabits, speed, 1), [""; 0], "{megabits} {speed}");
    }
    // Another port of the host may have carried the transfer.
    assert_eq!(with(300.0, 480, 2), ["usb", "path-rate"]);
    let stick =
        Inventory { usb: vec![function("Mass Storage", "uas", 480)], ..Inventory::default() };
    assert_eq!(causes(near_of(300.0), stick, "adapter-on-usb-2"), [""; 0]);
}

/// A disk benchmark with rates in MB/s: large reads and writes, each with several and with one in flight; then small
/// reads.
fn bench(large: [f64; 4], small: f64) -> Vec<Source> {
    let row = |at: usize, megabytes: f64| {
        let does = if at < 2 { Does::Read } else { Does::Write };
        let mut row = file(does, megabytes);
        row.block = Some(Bytes(1 << 20));
        (row.depth, row.threads) = (Some(if at.is_multiple_of(2) { 8 } else { 1 }), Some(1));
        row
    };
    let mut rows: Vec<DiskRow> = large.iter().enumerate().map(|(at, mb)| row(at, *mb)).collect();
    let mut random = DiskRow::new(Access::Random, Does::Read, small * 1e6);
    (random.block, random.depth, random.threads) = (Some(Bytes(4_096)), Some(1), Some(1));
    rows.push(random);
    near(vec![disk(rows)])
}

#[test]
fn a_disk_that_moves_the_same_both_ways_and_at_each_depth_is_behind_a_bus() {
    let with = |large: [f64; 4], small: f64, near: Inventory| {
        causes(bench(large, small), near, "disk-on-usb-2")
    };
    let plain = |large: [f64; 4], small: f64| with(large, small, Inventory::default());
    let maybe = ["usb", "path-rate"];
    assert_eq!(plain([41.0, 40.0, 38.0, 37.0], 9.0), maybe);
    assert_eq!(plain([45.0, 40.0, 38.0, 30.0], 17.9), maybe);
    for (large, small) in [
        ([45.1, 40.0, 38.0, 37.0], 9.0),
        ([41.0, 40.0, 38.0, 29.9], 9.0),
        ([41.0, 40.0, 38.0, 37.0], 22.3),
        ([41.0, 28.0, 38.0, 37.0], 9.0),
        ([540.0, 500.0, 480.0, 470.0], 30.0),
    ] {
        assert_eq!(plain(large, small), [""; 0], "{large:?} {small}");
    }
    let facts = |transport: &str, turns: Option<bool>| {
        let mut near = Inventory::default();
        let mut one = BlockDevice {
            name: "sdb".to_owned(),
            transport: transport.to_owned(),
            ..BlockDevice::default()
        };
        one.queue.rotational = turns;
        near.storage.devices = vec![one];
        with([41.0, 40.0, 38.0, 37.0], 9.0, near)
    };
    assert_eq!(facts("usb", None), ["usb"]);
    assert_eq!(facts("ata", None), [""; 0]);
    assert_eq!(facts("", Some(true)), [""; 0]);
    assert_eq!(facts("", Some(false)), maybe);
}

#[test]
fn a_disk_that_is_listed_on_usb_2_is_limited_by_it() {
    let with = |megabytes: f64, target: &str, speeds: &[u64]| {
        let storage = |speed: &u64| function("Mass Storage", "usb-storage", *speed);
        let near = Inventory { usb: speeds.iter().map(storage).collect(), ..Inventory::default() };
        let disk = Disk {
            target: target.to_owned(),
            rows: vec![file(Does::Read, megabytes)],
            ..Disk::default()
        };
        causes(super::near(vec![Measured::Disk(disk)]), near, "disk-on-usb-2")
    };
    assert_eq!(with(38.0, "/dev/sda", &[480]), ["usb"]);
    assert_eq!(with(30.1, "/media/me/stick/f", &[480, 480]), ["usb"]);
    assert_eq!(with(54.0, "/dev/sda", &[480]), ["usb"]);
    // A memory card in its own slot is as fast as a disk on USB 2.
    assert_eq!(with(38.0, "/home/me/f", &[480]), ["usb", "path-rate"]);
    for (megabytes, target, speeds) in [
        (29.9, "/dev/sda", &[480][..]),
        (54.5, "/dev/sda", &[480]),
        (38.0, "/dev/sda", &[480, 5_000]),
        (38.0, "/dev/sda", &[5_000]),
        (38.0, "/dev/mmcblk0", &[480]),
        (38.0, "/dev/sda", &[]),
    ] {
        assert_eq!(with(megabytes, target, speeds), [""; 0], "{megabytes} {target} {speeds:?}");
    }
}
