//! Rules on material made by hand, each on both sides of its threshold.

use super::*;
use crate::path::Direction;
use crate::reported::{
    Access, Carrier, Counted, DiskRow, Does, Outcome, SizeRow, Sizes, Tool, Trip,
};
use crate::units::{Bytes, Nanos, Rate};

fn source(side: Side, measured: Vec<Measured>) -> Source {
    let outcome = |measured| Outcome {
        title: String::new(),
        line: 1,
        measured,
    };
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
    Measured::Disk(Disk {
        rows,
        ..Disk::default()
    })
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
    }
}

/// Ids of the remarks, and their sentences.
fn remarks(sources: Vec<Source>, claims: &[&str]) -> Vec<(&'static str, String)> {
    let material = Material {
        sources,
        claims: claims.iter().map(|claim| claim.parse().unwrap()).collect(),
        ..Material::default()
    };
    let explained = explain(&material);
    let each = explained.remarks.into_iter();
    each.map(|remark| (remark.id, remark.what)).collect()
}

fn has(id: &str, sources: Vec<Source>, claims: &[&str]) -> bool {
    remarks(sources, claims)
        .iter()
        .any(|(found, _)| *found == id)
}

/// The files of case 1: the client's rows, the server's rows, and transfers by number of streams.
fn home(client_writes: f64, streams: &[(u32, f64)]) -> Vec<Source> {
    let client = disk(vec![
        file(Does::Read, 2201.0),
        file(Does::Write, client_writes),
    ]);
    let server = disk(vec![file(Does::Read, 718.0), file(Does::Write, 2301.0)]);
    let transfers = streams.iter().map(|(n, rate)| tcp(*n, *rate)).collect();
    vec![
        source(Side::Near, vec![client]),
        source(Side::Far, vec![server]),
        source(Side::Near, transfers),
    ]
}

const SWEEP: [(u32, f64); 6] = [
    (1, 3.73),
    (4, 6.96),
    (6, 15.2),
    (8, 16.3),
    (10, 13.2),
    (12, 12.6),
];

#[test]
fn the_network_is_cleared_in_the_slow_direction_only_if_it_carries_more_there() {
    assert!(has("direction-cleared", home(375.0, &SWEEP), &[]));
    assert!(
        !has("direction-cleared", home(375.0, &[(1, 3.73)]), &[]),
        "TCP is as slow"
    );
    assert!(
        !has("direction-cleared", home(1200.0, &SWEEP), &[]),
        "not half as fast"
    );
    let reverse = remarks(home(375.0, &SWEEP), &[]);
    let words = &reverse
        .iter()
        .find(|(id, _)| *id == "direction-cleared")
        .unwrap()
        .1;
    assert!(words.contains("from client to server"), "{words}");
}

#[test]
fn rdma_is_not_shown_by_files_as_fast_as_tcp() {
    let claim = ["transport=rdma"];
    assert!(has("transport-not-shown", home(375.0, &SWEEP), &claim));
    assert!(
        !has("transport-not-shown", home(375.0, &SWEEP), &[]),
        "nobody claims it"
    );
    assert!(
        !has("transport-not-shown", home(375.0, &[(1, 3.73)]), &claim),
        "TCP cannot"
    );
}

#[test]
fn a_headline_is_held_against_the_best_figure() {
    let says = |claim: &str| {
        let all = remarks(home(375.0, &SWEEP), &[claim]);
        all.into_iter().find(|(id, _)| *id == "headline").unwrap().1
    };
    let words = says("goodput>=20Gbit/s");
    assert!(
        words.starts_with("no figure reaches") && words.contains("18.4 Gb/s"),
        "{words}"
    );
    assert!(says("goodput>=18Gbit/s").contains("holds"));
}

#[test]
fn a_rate_that_grows_faster_than_the_streams_is_doubted() {
    let ids: Vec<_> = remarks(home(375.0, &SWEEP), &[]);
    let jumps: Vec<_> = ids
        .iter()
        .filter(|(id, _)| *id == "more-than-proportional")
        .collect();
    assert_eq!(jumps.len(), 1, "{jumps:?}");
    assert!(
        jumps[0]
            .1
            .contains("from 4 to 6 streams the rate grew x2.18"),
        "{jumps:?}"
    );
    let even = [(4, 6.96), (6, 10.4)];
    assert!(!has("more-than-proportional", home(375.0, &even), &[]));
}

#[test]
fn more_streams_than_the_best_number_are_named_if_they_carry_less() {
    let all = remarks(home(375.0, &SWEEP), &[]);
    let words = &all.iter().find(|(id, _)| *id == "past-the-best").unwrap().1;
    assert!(
        words.starts_with("8 streams carried most, and 12 only 77 %"),
        "{words}"
    );
    assert!(!has(
        "past-the-best",
        home(375.0, &[(8, 16.3), (12, 15.9)]),
        &[]
    ));
}

#[test]
fn sockets_are_compared_with_verbs_as_whole_round_trips() {
    let with = |sockets: f64| {
        let verbs = sizes(Carrier::Rdma, Trip::Whole, &[(2, 2.36), (64, 2.42)]);
        let udp = sizes(Carrier::Udp, Trip::Half, &[(16, sockets), (64, sockets)]);
        vec![source(
            Side::Near,
            vec![Measured::Sizes(verbs), Measured::Sizes(udp)],
        )]
    };
    let all = remarks(with(9.133), &[]);
    let words = &all
        .iter()
        .find(|(id, _)| *id == "sockets-slower")
        .unwrap()
        .1;
    assert!(
        words.contains("18.3 us through sockets and 2.36 us by verbs"),
        "{words}"
    );
    assert!(!has("sockets-slower", with(2.0), &[]));
    assert!(has(
        "slower-than-before",
        with(9.133),
        &["before.latency=6.5us"]
    ));
    assert!(!has(
        "slower-than-before",
        with(6.0),
        &["before.latency=6.5us"]
    ));
    assert!(has("half-and-whole", with(9.133), &[]));
}

#[test]
fn a_time_that_only_halves_keep_is_doubted() {
    let table = || {
        let verbs = sizes(Carrier::Rdma, Trip::Half, &[(2, 1.28)]);
        vec![source(Side::Near, vec![Measured::Sizes(verbs)])]
    };
    let says = |claim: &str| remarks(table(), &[claim]).remove(0).1;
    assert!(
        says("latency<=2us").contains("only of halves"),
        "{}",
        says("latency<=2us")
    );
    assert!(says("latency<=3us").contains("holds: "));
    assert!(says("latency<=1us").starts_with("no figure keeps"));
}

#[test]
fn a_long_tail_is_ten_times_the_typical_time() {
    let with = |most: f64| {
        let mut table = sizes(Carrier::Rdma, Trip::Whole, &[(2, 2.36), (4, 2.37)]);
        table.rows[1].most = Some(Nanos((most * 1e3) as u64));
        table.rows[1].samples = Some(1000);
        vec![source(Side::Near, vec![Measured::Sizes(table)])]
    };
    let all = remarks(with(95.75), &[]);
    assert!(
        all[0].1.contains("95.8 us, 40 times the typical 2.37 us"),
        "{all:?}"
    );
    assert!(!has("long-tail", with(23.0), &[]));
}

#[test]
fn a_rate_that_falls_and_returns_is_no_fall() {
    let table = |last: f64| {
        let rows = [(2048, 400.0), (4096, 485.0), (8192, 1570.0), (16384, last)];
        let table = sizes(Carrier::Messages, Trip::Half, &rows);
        vec![source(Side::Near, vec![Measured::Sizes(table)])]
    };
    assert!(has("rate-falls", table(2862.0), &[]));
    assert!(!has("rate-falls", table(1900.0), &[]));
}

#[test]
fn a_copy_is_compared_with_the_row_of_its_direction() {
    let with = |megabytes: f64| {
        let mut rows = vec![file(Does::Write, 375.0), file(Does::Read, 2201.0)];
        rows.push(DiskRow::new(Access::Copy, Does::Write, megabytes * 1e6));
        vec![source(Side::Near, vec![disk(rows)])]
    };
    assert!(has("copy-above-row", with(562.0), &[]));
    assert!(!has("copy-above-row", with(380.0), &[]));
}

#[test]
fn operations_in_flight_are_counted_by_their_time() {
    let with = |micros: u64, at_disk: u64| {
        let mut row = file(Does::Read, 400.0);
        (row.depth, row.operations) = (Some(32), Some(100_000.0));
        row.mean = Some(Nanos::from_micros(micros));
        (row.seconds, row.at_disk) = (Some(10.0), Some(Bytes(at_disk)));
        vec![source(Side::Near, vec![disk(vec![row])])]
    };
    assert!(has("depth-not-reached", with(100, 4_000_000_000), &[]));
    assert!(!has("depth-not-reached", with(310, 4_000_000_000), &[]));
    assert!(has("cache", with(310, 100_000_000), &[]));
    assert!(!has("cache", with(310, 4_000_000_000), &[]));
}

#[test]
fn a_copy_of_unknown_direction_is_beside_the_rows_of_both() {
    let with = |megabytes: f64| {
        let mut sources = home(375.0, &SWEEP);
        let copy = DiskRow::new(Access::Copy, Does::Mix, megabytes * 1e6);
        sources.push(source(Side::Near, vec![disk(vec![copy])]));
        sources
    };
    let evidence = |megabytes: f64| {
        let material = Material {
            sources: with(megabytes),
            ..Material::default()
        };
        let found = explain(&material).remarks.into_iter();
        let copy = found
            .into_iter()
            .find(|remark| remark.id == "copy-above-row");
        copy.map_or(String::new(), |remark| remark.evidence.concat())
    };
    let (slow, fast) = (evidence(562.0), evidence(1012.0));
    assert!(
        slow.contains("375 MB/s") && !slow.contains("718 MB/s"),
        "{slow}"
    );
    assert!(
        fast.contains("at the server has 5.74 Gb/s (718 MB/s)"),
        "{fast}"
    );
    assert!(!has("copy-above-row", with(400.0), &[]));
}

#[test]
fn the_management_path_is_not_that_of_data() {
    let ping = |tool: &str| {
        let table = sizes(Carrier::Udp, Trip::Whole, &[(256, 239.0)]);
        let mut one = source(Side::Near, vec![Measured::Sizes(table)]);
        one.tool = Tool::named(tool);
        vec![one]
    };
    assert!(has("management-ping", ping("ibping"), &[]));
    assert!(!has("management-ping", ping("ping"), &[]));
}

#[test]
fn an_echo_that_counts_both_directions_moves_one_way_at_a_time() {
    let rate = |trip: Trip| {
        let mut table = sizes(Carrier::Messages, trip, &[(1000, 20.0)]);
        (table.both, table.rows[0].rate) = (true, Some(Rate(800_000_000)));
        Table::rate(&table, &table.rows[0]).unwrap()
    };
    assert_eq!(rate(Trip::Whole), Rate(800_000_000));
    assert_eq!(rate(Trip::Unknown), Rate(400_000_000));
}

/// A path with a link of this ceiling, in Gb/s, and slots.
fn hardware(low: f64, high: f64, generation: u32, lanes: u32) -> Hardware {
    let goodput = crate::ceiling::Bounds::new(low * 1e9, high * 1e9);
    let slot = crate::ceiling::pcie::Slot {
        generations: vec![generation],
        lanes: vec![lanes],
        payloads: vec![128],
        requests: vec![512],
    };
    Hardware {
        ways: vec![crate::ceiling::Solution {
            goodput,
            each: Vec::new(),
            binding: vec!["link".to_owned()],
            next: None,
        }],
        parts: vec![Part {
            name: "link".to_owned(),
            goodput,
        }],
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
    remarks.iter().find(|remark| remark.id == id)
}

#[test]
fn the_best_rate_stands_beside_the_ceiling_of_the_hardware() {
    let says = |best: f64| {
        let all = beside(hardware(9.4, 9.5, 3, 8), &[(1, best)], &[]);
        find(&all, "hardware").unwrap().what.clone()
    };
    for (best, part) in [
        (9.3, "is reached: 9.3 Gb/s"),
        (9.0, "is reached within 10 %"),
        (8.3, "is not the limit: the best is 8.3 Gb/s"),
        (11.0, "more than the hardware as described carries"),
    ] {
        assert!(says(best).contains(part), "{best}: {}", says(best));
    }
    let wide = beside(hardware(5.0, 9.5, 3, 8), &[(1, 7.0)], &[]);
    assert!(
        find(&wide, "hardware")
            .unwrap()
            .what
            .contains("may be the limit")
    );
    let nothing = beside(Hardware::default(), &[(1, 7.0)], &[]);
    assert_eq!(find(&nothing, "hardware"), None);
}

#[test]
fn a_line_code_that_is_taken_off_twice_is_doubted() {
    let says = |slot: (u32, u32), claim: &str| {
        let all = beside(hardware(23.0, 27.0, slot.0, slot.1), &[(1, 26.4)], &[claim]);
        find(&all, "coded-twice").map(|remark| remark.what.clone())
    };
    let words = says((2, 8), "ceiling=3.2GB/s").unwrap();
    assert!(
        words.contains("0.8 of 32 Gb/s (4.00 GB/s), which its 8 lanes carry after 8b/10b"),
        "{words}"
    );
    for (slot, claim) in [
        ((2, 8), "ceiling=4GB/s"),
        ((2, 8), "ceiling=3GB/s"),
        ((2, 4), "ceiling=3.2GB/s"),
        ((3, 4), "ceiling=3.88GB/s"),
        ((2, 8), "goodput>=3.2GB/s"),
    ] {
        assert_eq!(says(slot, claim), None, "{slot:?} {claim}");
    }
}

#[test]
fn a_mean_at_a_known_cap_may_be_capped_if_the_hardware_carries_more() {
    let says = |ceiling: f64, transfer: (u32, f64)| {
        let all = beside(hardware(ceiling, ceiling, 3, 8), &[transfer], &[]);
        find(&all, "flow-cap").map(|remark| remark.what.clone())
    };
    let words = says(99.0, (5, 25.0)).unwrap();
    assert!(
        words.contains("on average about 5 Gb/s") && words.contains("one full processor"),
        "{words}"
    );
    assert_eq!(says(99.0, (5, 22.0)), None, "not at the cap");
    assert_eq!(says(24.7, (5, 24.7)), None, "the link is full");
    assert_eq!(says(99.0, (2, 10.0)), None, "two are no pattern");
    assert_eq!(
        find(&beside(Hardware::default(), &[(5, 25.0)], &[]), "flow-cap"),
        None
    );
}

#[test]
fn equal_streams_at_a_known_cap_may_be_capped() {
    let with = |each: Vec<f64>| {
        let Measured::Transfer(mut one) = tcp(each.len() as u32, 25.0) else {
            unreachable!();
        };
        one.each = each;
        vec![source(Side::Near, vec![Measured::Transfer(one)])]
    };
    assert!(has(
        "flow-cap",
        with(vec![4.9e9, 4.95e9, 4.8e9, 4.97e9]),
        &[]
    ));
    assert!(!has("flow-cap", with(vec![4.9e9, 4.95e9, 4.2e9]), &[]));
    assert!(
        !has("flow-cap", with(vec![4.9e9, 4.95e9]), &[]),
        "two are no pattern"
    );
    assert!(has("streams-differ", with(vec![1e9, 4e9]), &[]));
    assert!(!has("streams-differ", with(vec![3e9, 4e9]), &[]));
}

/// A stream with a window, a round trip in milliseconds and retransmissions in 10 s.
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

#[test]
fn a_window_is_full_if_its_bytes_are_in_flight() {
    // 0.1 Gb/s for 50 ms are 625 kB.
    assert!(has("window-full", connection(0.1, 700_000, 50, 0), &[]));
    assert!(
        !has("window-full", connection(0.1, 900_000, 50, 0), &[]),
        "it has room"
    );
    assert!(
        !has("window-full", connection(0.1, 64_000, 50, 0), &[]),
        "not possible"
    );
}

#[test]
fn a_loss_is_named_where_it_leaves_about_the_rate() {
    // 10 Mb/s at 50 ms: 8600 segments in 10 s; 0.1 % of them lost leave about 9 Mb/s.
    assert!(has(
        "loss-explains",
        connection(0.010, 9_000_000, 50, 9),
        &[]
    ));
    assert!(
        !has("loss-explains", connection(0.100, 9_000_000, 50, 9), &[]),
        "a tenth of that loss"
    );
    assert!(!has(
        "loss-explains",
        connection(0.010, 9_000_000, 50, 0),
        &[]
    ));
}

/// A transfer, changed.
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

#[test]
fn disks_of_the_host_itself_say_nothing_of_the_path() {
    let with = |target: &str, at_disk: Option<Bytes>| {
        let mut rows = vec![file(Does::Read, 3000.0), file(Does::Write, 500.0)];
        rows[0].at_disk = at_disk;
        let own = Measured::Disk(Disk {
            target: target.to_owned(),
            rows,
            ..Disk::default()
        });
        near(vec![own, tcp(1, 18.0)])
    };
    let claim = ["goodput>=20Gbit/s"];
    assert!(has("direction-cleared", with("Z:", None), &[]));
    for (target, at_disk) in [("/dev/nvme0n1", None), ("", Some(Bytes(1)))] {
        assert!(!has("direction-cleared", with(target, at_disk), &[]));
        let all = remarks(with(target, at_disk), &claim);
        let headline = all.iter().find(|(id, _)| *id == "headline").unwrap();
        assert!(headline.1.starts_with("no figure reaches"), "{headline:?}");
    }
    let alone = vec![with("/dev/nvme0n1", None).remove(0)];
    let disk = alone.into_iter().map(|mut one| {
        one.results.pop();
        one
    });
    assert!(
        remarks(disk.collect(), &claim)
            .iter()
            .any(|(_, what)| what.contains("holds"))
    );
}

#[test]
fn bytes_that_bypass_the_cache_are_not_said_to_be_in_it() {
    let with = |direct: Option<bool>| {
        let mut row = file(Does::Read, 400.0);
        (row.seconds, row.at_disk) = (Some(10.0), Some(Bytes(100_000_000)));
        near(vec![Measured::Disk(Disk {
            direct,
            rows: vec![row],
            ..Disk::default()
        })])
    };
    assert!(has("cache", with(None), &[]) && has("cache", with(Some(false)), &[]));
    assert!(!has("cache", with(Some(true)), &[]));
}

#[test]
fn runs_with_other_settings_are_no_sweep_of_streams() {
    type Change = fn(&mut Transfer);
    let changes: [(Change, bool); 4] = [
        (|_| {}, true),
        (|one| one.asked = Some(Rate(1_000_000_000)), false),
        (|one| one.buffer = Some(Bytes(65_536)), false),
        (|one| one.error = Some("interrupted".to_owned()), false),
    ];
    for (change, is_sweep) in changes {
        let slow = changed(1, 1.0, change);
        let both = || near(vec![slow.clone(), tcp(4, 9.4)]);
        assert_eq!(has("more-than-proportional", both(), &[]), is_sweep);
    }
}

#[test]
fn streams_that_fill_a_link_or_keep_a_rate_are_not_capped() {
    let with = |streams: u32, each: f64, asked: Option<Rate>| {
        let each = vec![each * 1e9; streams as usize];
        let total = each.iter().sum::<f64>() / 1e9;
        near(vec![changed(streams, total, |one| {
            (one.each, one.asked) = (each, asked);
        })])
    };
    assert!(has("flow-cap", with(3, 4.9, None), &[]));
    assert!(!has(
        "flow-cap",
        with(3, 4.9, Some(Rate(15_000_000_000))),
        &[]
    ));
    for (streams, each) in [(5, 4.7), (4, 9.4), (10, 9.4), (10, 4.7)] {
        assert!(
            !has("flow-cap", with(streams, each, None), &[]),
            "{streams}"
        );
    }
}

#[test]
fn a_congestion_window_below_the_offered_one_is_what_limits() {
    let with = |congestion: u64| {
        let mut sources = connection(0.1, 700_000, 50, 0);
        let Measured::Transfer(one) = &mut sources[0].results[0].measured else {
            unreachable!();
        };
        one.window = Some(Bytes(congestion));
        sources
    };
    assert!(has("window-full", with(700_000), &[]));
    assert!(!has("window-full", with(650_000), &[]));
}

#[test]
fn a_fall_names_the_best_size_and_larger_ones_only_if_there_are() {
    let says = |rows: &[(u64, f64)]| {
        let table = sizes(Carrier::Messages, Trip::Half, rows);
        let all = remarks(near(vec![Measured::Sizes(table)]), &[]);
        let mut falls = all.into_iter().filter(|(id, _)| *id == "rate-falls");
        falls.next().map(|(_, words)| words)
    };
    let rows = [(1000, 10.0), (2000, 22.0), (4000, 49.0), (8000, 110.0)];
    let words = says(&rows[..]).unwrap();
    assert!(words.contains("from 1000 B to 7.81 KiB"), "{words}");
    assert!(!words.contains("catch up"), "{words}");
    let rows = [(1000, 10.0), (2000, 30.0), (4000, 60.0)];
    assert!(
        says(&rows)
            .unwrap()
            .ends_with("larger messages do not catch up")
    );
    assert_eq!(says(&[(1000, 10.0), (1000, 20.0)]), None, "one size");
}

#[test]
fn a_time_that_was_rounded_to_zero_has_no_tail() {
    let with = |typical: u64| {
        let mut table = sizes(Carrier::Tcp, Trip::Whole, &[(56, 0.0)]);
        table.rows[0].typical = Some(Nanos(typical));
        table.rows[0].most = Some(Nanos::from_millis(15));
        near(vec![Measured::Sizes(table)])
    };
    assert!(!has("long-tail", with(0), &[]));
    assert!(has("long-tail", with(1_000_000), &[]));
}

#[test]
fn a_claim_without_a_figure_is_said_to_be_open() {
    for claim in ["goodput>=1Gbit/s", "latency<=1us", "ceiling=1GB/s"] {
        let words = &remarks(Vec::new(), &[claim])[0].1;
        assert_eq!(
            *words,
            format!("no figure that was read can be held against `{claim}`")
        );
    }
    let verbs = || {
        near(vec![Measured::Sizes(sizes(
            Carrier::Rdma,
            Trip::Half,
            &[(2, 1.3)],
        ))])
    };
    assert!(has("slower-than-before", verbs(), &["before.latency=1us"]));
}

#[test]
fn a_claimed_capacity_stands_beside_the_best_figure() {
    let says = |claim: &str| remarks(near(vec![tcp(1, 9.4)]), &[claim]).remove(0).1;
    assert!(says("ceiling=10Gbit/s").starts_with("the best figure is 94 % of"));
    assert!(says("ceiling=9.3Gbit/s").starts_with("the best figure is 101 % of"));
    assert!(says("ceiling=9Gbit/s").starts_with("a figure is above"));
}

#[test]
fn a_time_is_longer_than_before_by_more_than_runs_differ() {
    let with = |micros: f64| {
        near(vec![Measured::Sizes(sizes(
            Carrier::Udp,
            Trip::Half,
            &[(16, micros)],
        ))])
    };
    let claim = ["before.latency=6.5us"];
    assert!(!has("slower-than-before", with(6.8), &claim));
    assert!(has("slower-than-before", with(6.9), &claim));
}
