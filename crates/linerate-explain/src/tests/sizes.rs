//! Tests of the rules about tables by message size.

use super::*;

#[test]
fn sockets_are_compared_with_verbs_as_whole_round_trips() {
    let with = |sockets: f64| {
        let verbs = sizes(Carrier::Rdma, Trip::Whole, &[(2, 2.36), (64, 2.42)]);
        let udp = sizes(Carrier::Udp, Trip::Half, &[(16, sockets), (64, sockets)]);
        vec![source(Side::Near, vec![Measured::Sizes(verbs), Measured::Sizes(udp)])]
    };
    let all = remarks(with(9.133), &[]);
    let words = &all.iter().find(|(id, _)| *id == "sockets-slower").unwrap().1;
    assert!(words.contains("18.3 us through sockets and 2.36 us by verbs"), "{words}");
    assert!(!has("sockets-slower", with(2.0), &[]));
    assert!(has("half-and-whole", with(9.133), &[]));
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
    assert!(all[0].1.contains("95.8 us, 40 times the typical 2.37 us"), "{all:?}");
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
    assert!(says(&rows).unwrap().ends_with("larger messages do not catch up"));
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
fn an_echo_that_counts_both_directions_moves_one_way_at_a_time() {
    let rate = |trip: Trip| {
        let mut table = sizes(Carrier::Messages, trip, &[(1000, 20.0)]);
        (table.both, table.rows[0].rate) = (true, Some(Rate(800_000_000)));
        Table::each_way(&table, &table.rows[0]).unwrap()
    };
    assert_eq!(rate(Trip::Whole), Rate(800_000_000));
    assert_eq!(rate(Trip::Unknown), Rate(400_000_000));
}
