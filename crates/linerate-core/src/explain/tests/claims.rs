//! Rules about claims.

use super::*;

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
        all.into_iter()
            .find(|(id, _)| *id == "claim-not-reached")
            .unwrap()
            .1
    };
    let words = says("goodput>=20Gbit/s");
    assert!(
        words.starts_with("no figure reaches") && words.contains("18.4 Gb/s"),
        "{words}"
    );
    assert!(says("goodput>=18Gbit/s").contains("holds"));
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
