//! Tests which rows are compared, and how the others are reported.

use super::*;
use crate::{Material, explain};
use linerate_plan::path::{Direction, Side};
use linerate_record::reported::{
    Access, Carrier, Counted, Disk, DiskRow, Does, Measured, Outcome as Result, Setup, SizeRow,
    Sizes, Source, Transfer, Trip,
};
use linerate_units::{Nanos, Rate};

fn rows(all: Vec<(&str, Measured)>) -> Vec<Row> {
    let result =
        |(title, measured): (&str, Measured)| Result { title: title.to_owned(), line: 1, measured };
    let material = Material {
        sources: vec![Source {
            file: "a.txt".to_owned(),
            side: Some(Side::Near),
            results: all.into_iter().map(result).collect(),
            ..Source::default()
        }],
        ..Material::default()
    };
    of_import(&explain(&material))
}

fn of(before: Vec<Measured>, after: Vec<Measured>) -> Compared {
    let untitled = |all: Vec<Measured>| rows(all.into_iter().map(|one| ("", one)).collect());
    compared(&untitled(before), &untitled(after), None)
}

/// The compared rows: title with size, figure, and the ratio of both values.
fn ratios(compared: &Compared) -> Vec<(String, &'static str, f64)> {
    let each = compared.rows.iter().map(|row| {
        let Outcome::Bare(ratio) = row.outcome else {
            panic!("{row:?}");
        };
        let size = row.size.map_or(String::new(), |size| format!(" {size}"));
        let rounded = (ratio * 100.0).round() / 100.0;
        (format!("{}{size}", row.title), row.figure.key, rounded)
    });
    each.collect()
}

fn disk(depth: u32, megabytes: f64) -> Measured {
    disk_with(depth, megabytes, |_| ())
}

fn disk_with(depth: u32, megabytes: f64, change: impl FnOnce(&mut Disk)) -> Measured {
    let mut disk = Disk {
        rows: vec![DiskRow {
            depth: Some(depth),
            block: Some(Bytes(1 << 20)),
            ..DiskRow::new(Access::Sequential, Does::Read, megabytes * 1e6)
        }],
        ..Disk::default()
    };
    change(&mut disk);
    Measured::Disk(disk)
}

fn table(carrier: Option<Carrier>, trip: Trip, rows: &[(u64, u64)]) -> Measured {
    let row = |(size, micros): &(u64, u64)| SizeRow {
        size: Bytes(*size),
        mean: Some(Nanos::from_micros(*micros)),
        ..SizeRow::default()
    };
    Measured::Sizes(Sizes {
        carrier,
        operation: "ping".to_owned(),
        trip,
        both: false,
        setup: Setup::default(),
        rows: rows.iter().map(row).collect(),
    })
}

fn transfer(streams: u32, gigabits: u64, change: impl FnOnce(&mut Transfer)) -> Measured {
    let rate = Rate(gigabits * 1_000_000_000);
    let mut one = Transfer::new(Carrier::Tcp, Direction::Forward, rate, Counted::Receiver);
    one.streams = Some(streams);
    change(&mut one);
    Measured::Transfer(Box::new(one))
}

#[test]
fn operations_of_one_kind_are_compared_and_others_named() {
    let same = of(vec![disk(8, 500.0)], vec![disk(8, 250.0)]);
    let title = "sequential read, 1 MiB, 8 in flight".to_owned();
    assert_eq!(ratios(&same), [(title, "bytes_per_sec", 0.5)]);
    assert_eq!(same.notes, ["not known of all rows, and may differ: cache bypassed, threads"]);
    assert_eq!(same.unlike, [""; 0]);
    let other = of(vec![disk(32, 500.0)], vec![disk(8, 250.0)]);
    assert!(other.rows.is_empty());
    assert_eq!(other.unlike, ["operations on a disk: in flight 32 before, 8 after"]);
    let cached = disk_with(8, 900.0, |disk| disk.direct = Some(false));
    let direct = disk_with(8, 300.0, |disk| disk.direct = Some(true));
    assert_eq!(
        of(vec![cached], vec![direct]).unlike,
        ["operations on a disk: cache bypassed no before, yes after"]
    );
    let direct = disk_with(8, 300.0, |disk| disk.direct = Some(true));
    assert_eq!(of(vec![disk(8, 300.0)], vec![direct]).rows.len(), 1);
}

#[test]
fn another_target_is_compared_and_told() {
    let on =
        |target: &'static str| vec![disk_with(8, 500.0, |disk| disk.target = target.to_owned())];
    let compared = of(on("C:"), on("D:"));
    assert_eq!(compared.rows.len(), 1);
    assert!(compared.notes.contains(&"target C: before, D: after".to_owned()));
}

#[test]
fn halves_are_doubled_and_times_of_unknown_kind_stand_alone() {
    let tcp = |trip, micros| vec![table(Some(Carrier::Tcp), trip, &[(16, micros)])];
    let compared = of(tcp(Trip::Half, 10), tcp(Trip::Whole, 10));
    let title = "ping-pong, TCP, whole round trips 16 B".to_owned();
    assert_eq!(ratios(&compared), [(title, "mean_ns", 0.5)]);
    let unknown = of(tcp(Trip::Unknown, 10), tcp(Trip::Whole, 10));
    assert!(unknown.rows.is_empty());
    assert!(
        unknown.unlike[0].contains("round trips not known before, whole after"),
        "{:?}",
        unknown.unlike
    );
}

#[test]
fn sizes_of_one_record_alone_are_told_and_protocols_are_kept_apart() {
    let sized = |carrier, sizes: &[u64]| {
        let rows: Vec<(u64, u64)> = sizes.iter().map(|size| (*size, 10)).collect();
        vec![table(carrier, Trip::Whole, &rows)]
    };
    let tcp = Some(Carrier::Tcp);
    let compared = of(sized(tcp, &[16, 64]), sized(tcp, &[64, 128]));
    assert_eq!(compared.rows.len(), 1);
    assert_eq!(
        compared.unlike,
        ["message size only before: 16 B", "message size only after: 128 B"]
    );
    let other = of(sized(tcp, &[16]), sized(Some(Carrier::Udp), &[16]));
    assert_eq!(other.unlike, ["messages by size: protocol TCP before, UDP after"]);
    let open = of(sized(None, &[16]), sized(None, &[16]));
    assert_eq!(open.rows.len(), 1);
    assert!(open.notes[0].ends_with("may differ: protocol"), "{open:?}");
    let read = of(sized(Some(Carrier::Rdma), &[2, 4]), sized(tcp, &[2, 8]));
    assert_eq!(
        read.unlike,
        [
            "messages by size: protocol RDMA before, TCP after; operation ping before, ping-pong after"
        ]
    );
    let half = of(sized(None, &[16]), sized(tcp, &[16]));
    assert!(half.unlike[0].contains("protocol not known before, TCP after"));
}

#[test]
fn transfers_are_compared_by_streams_and_the_base_stands_elsewhere() {
    let sweep = |rates: [u64; 2]| {
        let [one, four] = rates;
        vec![transfer(1, one, |_| ()), transfer(4, four, |_| ())]
    };
    let alone = of(sweep([4, 8]), vec![transfer(1, 4, |_| ())]);
    assert_eq!(alone.unlike, ["streams only before: 4"]);
    let compared = of(sweep([4, 8]), sweep([4, 6]));
    let title = "TCP, 4 streams, client to server".to_owned();
    assert_eq!(ratios(&compared), [(title, "goodput_bps", 0.75)]);
    let sent = |one: &mut Transfer| one.counted = Counted::Sender;
    let both = of(vec![transfer(1, 4, sent)], vec![transfer(1, 2, sent)]);
    assert_eq!(ratios(&both)[0].2.to_bits(), 0.5_f64.to_bits());
    let other = of(vec![transfer(1, 4, sent)], vec![transfer(1, 2, |_| ())]);
    assert!(other.rows.is_empty());
    assert_eq!(other.unlike, ["transfers: counted by the sender before, the receiver after"]);
}

#[test]
fn rows_that_look_alike_are_told_apart_by_name_or_not_at_all() {
    let named =
        |a: &'static str, b: &'static str| rows(vec![(a, disk(8, 500.0)), (b, disk(8, 250.0))]);
    let swapped = compared(&named("x", "y"), &named("y", "x"), None);
    let ratios: Vec<f64> = ratios(&swapped).iter().map(|row| row.2).collect();
    assert_eq!(ratios, [0.5, 2.0]);
    let doubled = compared(&named("x", "x"), &named("x", "x"), None);
    assert!(doubled.rows.is_empty());
    assert!(
        doubled.unlike[0].ends_with("2 rows before and 2 after cannot be told apart"),
        "{:?}",
        doubled.unlike
    );
}

#[test]
fn results_of_another_kind_are_named() {
    let compared = of(vec![disk(8, 500.0)], vec![transfer(4, 8, |_| ())]);
    assert_eq!(compared.unlike, ["operations on a disk only before", "transfers only after"]);
    let none = of(vec![disk(8, 500.0)], Vec::new());
    assert_eq!(none.unlike, [""; 0]);
}

#[test]
fn many_rows_that_differ_are_counted() {
    let all = |depth: u32| (0..20).map(|n| disk(depth + n, 500.0)).collect::<Vec<_>>();
    let compared = of(all(100), all(200));
    assert_eq!(compared.unlike.len(), MOST_LISTED + 1);
    assert!(compared.unlike[MOST_LISTED].ends_with("more differences of rows"));
}
