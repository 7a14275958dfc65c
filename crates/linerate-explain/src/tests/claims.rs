//! Tests of the rules about claims.

use super::*;
use linerate_facts::finding::Stands;

#[test]
fn rdma_is_not_shown_by_files_as_fast_as_tcp() {
    let claim = ["transport=rdma"];
    assert!(has("transport-not-shown", home(375.0, &SWEEP), &claim));
    assert!(!has("transport-not-shown", home(375.0, &SWEEP), &[]), "nobody claims it");
    assert!(!has("transport-not-shown", home(375.0, &[(1, 3.73)]), &claim), "TCP cannot");
}

#[test]
fn a_headline_is_held_against_the_best_figure() {
    let says = |claim: &str| {
        let all = remarks(home(375.0, &SWEEP), &[claim]);
        all.into_iter().find(|(id, _)| *id == "claim-not-reached").unwrap().1
    };
    let words = says("goodput>=20Gbit/s");
    assert!(words.starts_with("no figure reaches") && words.contains("18.4 Gb/s"), "{words}");
    assert!(says("goodput>=18Gbit/s").contains("holds"));
}

#[test]
fn a_claim_without_a_figure_is_said_to_be_open() {
    for claim in ["goodput>=1Gbit/s", "latency<=1us", "ceiling=1GB/s", "before.udp.latency=1us"] {
        let words = &remarks(Vec::new(), &[claim])[0].1;
        assert_eq!(*words, format!("no figure that was read can be held against `{claim}`"));
    }
}

#[test]
fn a_claimed_capacity_stands_beside_the_best_figure() {
    let says = |claim: &str| remarks(near(vec![tcp(1, 9.4)]), &[claim]).remove(0).1;
    assert!(says("ceiling=10Gbit/s").starts_with("the best figure is 94 % of"));
    assert!(says("ceiling=9.3Gbit/s").starts_with("the best figure is 101 % of"));
    assert!(says("ceiling=9Gbit/s").starts_with("a figure is above"));
}

/// Tables of ping-pong tests with 16 and 64 bytes, one for each protocol, with the time of 16 bytes in microseconds.
fn pings(all: &[(Carrier, Trip, f64)]) -> Vec<Source> {
    let table = |(carrier, trip, micros): &(Carrier, Trip, f64)| {
        Measured::Sizes(sizes(*carrier, *trip, &[(16, *micros), (64, micros * 2.0)]))
    };
    near(all.iter().map(table).collect())
}

/// The remark about a claimed time before a change: its kind, and its sentence.
fn before(sources: Vec<Source>, claim: &str) -> Option<(Stands, String)> {
    let material =
        Material { sources, claims: vec![claim.parse().unwrap()], ..Material::default() };
    let all = explain(&material).remarks.into_iter();
    let mut of = all.filter(|remark| remark.finding.id == "slower-than-before");
    of.next().map(|remark| (remark.finding.stands, remark.finding.what))
}

#[test]
fn a_time_is_longer_than_before_by_more_than_runs_differ_as_whole_round_trips() {
    for (trip, within, longer) in [(Trip::Half, 3.4, 3.45), (Trip::Whole, 6.8, 6.9)] {
        let says = |micros| {
            let udp = pings(&[(Carrier::Udp, trip, micros)]);
            before(udp, "before.udp.latency=6.5us")
        };
        assert_eq!(says(within), None);
        let (stands, words) = says(longer).unwrap();
        assert_eq!(stands, Stands::Found);
        assert!(words.contains("16 B take 6.9 us, longer than the 6.5 us"), "{words}");
    }
}

#[test]
fn the_shortest_time_of_a_kind_counts() {
    let both = || pings(&[(Carrier::Rdma, Trip::Half, 1.34), (Carrier::Rdma, Trip::Whole, 2.36)]);
    assert_eq!(before(both(), "before.verbs.latency=2.3us"), None);
    assert!(before(both(), "before.verbs.latency=2.2us").is_some());
    let sockets = || pings(&[(Carrier::Tcp, Trip::Half, 10.5), (Carrier::Udp, Trip::Half, 9.1)]);
    assert_eq!(before(sockets(), "before.sockets.latency=18us"), None);
    assert!(before(sockets(), "before.tcp.latency=18us").is_some());
}

#[test]
fn a_time_of_another_kind_is_not_called_slower() {
    let half = || pings(&[(Carrier::Udp, Trip::Half, 9.133)]);
    for (claim, part) in [
        ("before.latency=7us", "does not say what took 7 us"),
        ("before.application.latency=7us", "are of two applications"),
        ("before.tcp.latency=7us", "through TCP, and no time that was read is"),
        ("before.verbs.latency=7us", "through RDMA, and no time that was read is"),
    ] {
        let (stands, words) = before(half(), claim).unwrap();
        assert!(stands == Stands::Doubt && words.contains(part), "{claim}: {words}");
        assert!(!words.contains("longer"), "{claim}: {words}");
    }
    let open = pings(&[(Carrier::Udp, Trip::Unknown, 9.133)]);
    let (_, words) = before(open, "before.udp.latency=7us").unwrap();
    assert!(words.starts_with("no figure that was read can be held against"), "{words}");
}

#[test]
fn a_rounded_figure_does_not_keep_a_claim_above_the_hardware() {
    let says = |best: f64, claim: &str| {
        let material = Material {
            sources: near(vec![tcp(20, best)]),
            claims: vec![claim.parse().unwrap()],
            hardware: hardware(99.0, 99.1, 3, 16),
            ..Material::default()
        };
        let all = explain(&material).remarks.into_iter();
        let mut of = all.filter(|remark| remark.finding.id == "claim-not-reached");
        of.next().unwrap().finding.what
    };
    let beyond = "is more than the hardware as described carries, 99.1 Gb/s";
    assert!(says(100.0, "goodput>=100Gbit/s").contains(beyond));
    assert!(says(99.1, "goodput>=99Gbit/s").contains("holds: "));
    assert!(says(98.0, "goodput>=100Gbit/s").starts_with("no figure reaches"));
    assert!(says(120.0, "goodput>=100Gbit/s").contains("holds: "));
}

#[test]
fn a_time_that_only_halves_keep_is_doubted() {
    let table = || {
        let verbs = sizes(Carrier::Rdma, Trip::Half, &[(2, 1.28)]);
        vec![source(Side::Near, vec![Measured::Sizes(verbs)])]
    };
    let says = |claim: &str| remarks(table(), &[claim]).remove(0).1;
    assert!(says("latency<=2us").contains("only of halves"), "{}", says("latency<=2us"));
    assert!(says("latency<=3us").contains("holds: "));
    assert!(says("latency<=1us").starts_with("no figure keeps"));
}
