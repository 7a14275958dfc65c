//! Tests of causes that are named because no other one is possible.

use super::cpu::{cpus, kept, named, unread};
use super::*;

/// A sending thread on CPU 1, of which other threads use `others`.
fn sending(busy: f64, others: f64) -> Model {
    let mut base = load();
    base.senders = vec![kept(busy, others)];
    base.cpus.sender = cpus(busy, others);
    base.made.sender.cpus = vec![1];
    // A sender that waits for its CPU lets its socket run empty.
    base.tcp.starved = Some(if others > 0.0 { 0.3 } else { 0.0 });
    model(base)
}

#[test]
fn a_core_that_is_not_quite_used_up_is_named_where_nothing_else_is_left() {
    let core = vec![("sender-core", Certainty::Supported, Place::Near)];
    // Below nine tenths of a CPU, the network stays possible.
    let path = vec![("path-rate", Certainty::Supported, Place::Path)];
    for (busy, others, expected) in
        [(0.89, 0.0, &path), (0.91, 0.0, &core), (0.84, 0.08, &core), (0.96, 0.0, &core)]
    {
        assert_eq!(named(&sending(busy, others)), *expected, "{busy} {others}");
        let reported = judge(&sending(busy, others)).limits[0].evidence.clone();
        let alone = reported.iter().any(|e| e == "no other cause is left in play");
        assert_eq!(alone, (0.9..0.95).contains(&(busy + others)), "{reported:?}");
    }
}

#[test]
fn a_core_that_is_not_quite_used_up_gives_way_to_what_else_may_be() {
    let mut m = sending(0.91, 0.0);
    m.directions[0].base.receivers = vec![thread(0.85)];
    assert_eq!(named(&m), [], "the reader is as good a suspect");
    m.directions[0].base.receivers = vec![thread(0.5)];
    assert_eq!(named(&m).len(), 1, "the reader keeps up");
    m.directions[0].base.cpus.sender.clear();
    m.gaps.push((Side::Near, unread("cpu")));
    assert_eq!(named(&m), [], "what could not be read may be it");
}

#[test]
fn a_rate_that_is_not_sure_is_named_where_a_queue_stands_and_nothing_else_is_left() {
    let mut m = model(load());
    m.idle =
        m.idle.map(|idle| Latency { percentiles: vec![(50.0, Nanos::from_millis(1))], ..idle });
    tried(&mut m, "more-streams", 1.06);
    m.trials[0].effect = Some(Interval { low: 0.98, mid: 1.06, high: 1.14 });
    // A queue makes the round trip at least 1.5 times as long as the idle one of 1 ms.
    for (millis, named) in [(1, None), (2, Some("path-rate"))] {
        m.directions[0].base.tcp.rtt = Some(Nanos::from_millis(millis));
        assert_eq!(outcome(&m, "path-rate"), "suspect");
        let verdict = judge(&m);
        let first = verdict.limits.first();
        assert_eq!(first.map(|l| l.cause), named, "{:#?}", verdict.answers);
    }
    m.directions[0].base.receivers = vec![thread(0.85)];
    assert!(judge(&m).limits.is_empty(), "the reader may be it");
}

#[test]
fn a_cap_that_a_wide_trial_did_not_prove_is_named_where_many_streams_got_a_whole_rate_each() {
    for (streams, gain, within, named) in [
        (8, 7.1, Some(0.1), Some("flow-rate-cap")),
        (8, 6.9, Some(0.1), None),
        (3, 3.0, Some(0.1), None),
        (8, 7.1, Some(0.29), Some("flow-rate-cap")),
        (8, 7.1, Some(0.31), None),
        // The goodput varied too slowly for an interval, by half of its mean.
        (8, 7.1, None, None),
    ] {
        let mut m = model(load());
        let base = &mut m.directions[0].base;
        base.goodput.interval = within.map(|within| Interval {
            low: 1e9 * (1.0 - within),
            mid: 1e9,
            high: 1e9 * (1.0 + within),
        });
        base.ticks = (0..30).map(|n| 0.75e9 + 1e9 / 60.0 * f64::from(n)).collect();
        let look = &mut m.directions[0].sweep[0];
        look.goodput = steady(2e9);
        let mut many = look.clone();
        (many.streams, many.goodput) = (streams, steady(gain * 1e9));
        m.directions[0].sweep.push(many);
        tried(&mut m, "more-streams", 1.9);
        m.trials[0].effect = Some(Interval { low: 1.6, mid: 1.9, high: 2.3 });
        let verdict = judge(&m);
        let first = verdict.limits.first();
        assert_eq!(first.map(|l| l.cause), named, "{streams} {gain} {within:?}");
    }
}
