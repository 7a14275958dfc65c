//! Tests of the rules with material made by hand: each rule on both sides of its threshold.

mod answers;
mod changed;
mod claims;
mod collective;
mod disks;
mod echoes;
mod fabric;
mod files;
mod links;
mod rates;
mod sizes;
mod streams;
mod tables;
mod usb;

use super::*;
use linerate_plan::path::Direction;
use linerate_record::reported::{
    Access, Carrier, Counted, DiskRow, Does, Outcome, Setup, SizeRow, Sizes, Tool, Trip,
};
use linerate_units::{Bytes, Nanos, Rate};

fn source(side: Side, measured: Vec<Measured>) -> Source {
    let outcome = |measured| Outcome { title: String::new(), line: 1, measured };
    Source {
        file: "a.txt".to_owned(),
        side: Some(side),
        label: "iperf3, text".to_owned(),
        tool: Tool::named("iperf3"),
        results: measured.into_iter().map(outcome).collect(),
        notes: Vec::new(),
    }
}

fn tcp(streams: u32, gigabits: f64) -> Measured {
    let rate = Rate((gigabits * 1e9) as u64);
    let mut one = Transfer::new(Carrier::Tcp, Direction::Forward, rate, Counted::Receiver);
    one.streams = Some(streams);
    Measured::Transfer(Box::new(one))
}

fn file(does: Does, megabytes: f64) -> DiskRow {
    DiskRow::new(Access::Sequential, does, megabytes * 1e6)
}

fn disk(rows: Vec<DiskRow>) -> Measured {
    Measured::Disk(Disk { rows, ..Disk::default() })
}

fn sizes(carrier: Carrier, trip: Trip, rows: &[(u64, f64)]) -> Sizes {
    let row = |(size, micros): &(u64, f64)| SizeRow {
        size: Bytes(*size),
        typical: Some(Nanos((micros * 1e3) as u64)),
        ..SizeRow::default()
    };
    Sizes {
        carrier: Some(carrier),
        operation: String::new(),
        trip,
        both: false,
        rows: rows.iter().map(row).collect(),
        setup: Setup::default(),
    }
}

/// The remarks: id and sentence of each.
fn remarks(sources: Vec<Source>, claims: &[&str]) -> Vec<(&'static str, String)> {
    let material = Material {
        sources,
        claims: claims.iter().map(|claim| claim.parse().unwrap()).collect(),
        ..Material::default()
    };
    let explained = explain(&material);
    let each = explained.remarks.into_iter();
    each.map(|remark| (remark.finding.id, remark.finding.what)).collect()
}

fn has(id: &str, sources: Vec<Source>, claims: &[&str]) -> bool {
    remarks(sources, claims).iter().any(|(found, _)| *found == id)
}

/// The results of case 1: rates of files at the client and at the server in MB/s, and transfers by number of streams.
fn home(client_writes: f64, streams: &[(u32, f64)]) -> Vec<Source> {
    let client = disk(vec![file(Does::Read, 2201.0), file(Does::Write, client_writes)]);
    let server = disk(vec![file(Does::Read, 718.0), file(Does::Write, 2301.0)]);
    let transfers = streams.iter().map(|(n, rate)| tcp(*n, *rate)).collect();
    vec![
        source(Side::Near, vec![client]),
        source(Side::Far, vec![server]),
        source(Side::Near, transfers),
    ]
}

const SWEEP: [(u32, f64); 6] = [(1, 3.73), (4, 6.96), (6, 15.2), (8, 16.3), (10, 13.2), (12, 12.6)];

/// A path with a slot, and a link whose ceiling is in this range of Gb/s.
fn hardware(low: f64, high: f64, generation: u32, lanes: u32) -> Hardware {
    let goodput = linerate_ceiling::Bounds::new(low * 1e9, high * 1e9);
    let slot = linerate_ceiling::pcie::Slot {
        generations: vec![generation],
        lanes: vec![lanes],
        payloads: vec![128],
        requests: vec![512],
    };
    Hardware {
        ways: vec![linerate_ceiling::Solution {
            goodput,
            each: Vec::new(),
            binding: vec!["link".to_owned()],
            next: None,
        }],
        parts: vec![Part { name: "link".to_owned(), goodput }],
        slots: vec![("near slot".to_owned(), slot)],
    }
}

fn beside(hardware: Hardware, streams: &[(u32, f64)], claims: &[&str]) -> Vec<Remark> {
    let transfers = streams.iter().map(|(n, rate)| tcp(*n, *rate)).collect();
    let material = Material {
        sources: vec![source(Side::Near, transfers)],
        claims: claims.iter().map(|claim| claim.parse().unwrap()).collect(),
        hardware,
        ..Material::default()
    };
    explain(&material).remarks
}

fn find<'a>(remarks: &'a [Remark], id: &str) -> Option<&'a Remark> {
    remarks.iter().find(|remark| remark.finding.id == id)
}

/// A transfer of one stream and 10 s, with a window in bytes, a round trip in milliseconds, and retransmissions.
fn connection(gigabits: f64, window: u64, millis: u64, retransmits: u64) -> Vec<Source> {
    let Measured::Transfer(mut one) = tcp(1, gigabits) else {
        unreachable!();
    };
    one.offered = Some(Bytes(window));
    one.round_trip.mean = Some(Nanos::from_millis(millis));
    (one.retransmits, one.seconds, one.segment) = (Some(retransmits), Some(10.0), Some(1448));
    one.congestion = Some("cubic".to_owned());
    vec![source(Side::Near, vec![Measured::Transfer(one)])]
}

/// A TCP transfer that `with` changes.
fn changed(streams: u32, gigabits: f64, with: impl FnOnce(&mut Transfer)) -> Measured {
    let Measured::Transfer(mut one) = tcp(streams, gigabits) else {
        unreachable!();
    };
    with(&mut one);
    Measured::Transfer(one)
}

fn near(measured: Vec<Measured>) -> Vec<Source> {
    vec![source(Side::Near, measured)]
}
