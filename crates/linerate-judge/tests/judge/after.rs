//! Tests of the next limit: what limits once the limit that was found is removed.

use super::*;

/// A load that a small receive window limits to 100 Mb/s, with a round trip of 20 ms.
fn windowed() -> Load {
    let mut held = load();
    held.goodput.mean = 1e8;
    held.tcp.network = Some(0.0);
    held.tcp.rwnd_limited = Some(1.0);
    held.tcp.window = held.tcp.in_flight;
    held.tcp.rtt = Some(Nanos::from_millis(20));
    held.tcp.min_rtt = Some(Nanos::from_millis(20));
    held
}

/// The verdict on `windowed`, after a trial with a larger window: goodput was `gain` times as much, with `after` as the
/// new load. Two streams with the small window carried `two` bits per second.
fn lifted(gain: f64, after: Load, two: f64) -> Verdict {
    let mut m = model(windowed());
    m.idle = None;
    m.directions[0].sweep[0].goodput = steady(two);
    tried(&mut m, "larger-window", gain);
    m.trials[0].changed = Some(after);
    judge(&m)
}

#[test]
fn what_held_the_lifted_load_is_next() {
    let verdict = lifted(1.5, load(), 1e9);
    assert_eq!(verdict.limits[0].cause, "receive-window");
    assert_eq!(verdict.next[0].cause, "path-rate");
    let evidence = &verdict.next[0].evidence[0];
    assert!(evidence.starts_with("a larger receive buffer gave x1.50, and then "), "{evidence}");
}

/// A load of 300 Mb/s whose larger window is full again, because data waits in a queue of the path: with four times the
/// data in flight, only three times as much arrives.
fn full_once_more() -> Load {
    let mut load = windowed();
    load.goodput = steady(3e8);
    load.tcp.in_flight = load.tcp.in_flight.map(|b| Bytes(b.0 * 4));
    load.tcp.window = load.tcp.in_flight;
    load.tcp.rtt = Some(Nanos::from_micros(26_700));
    load
}

fn next_cause(verdict: &Verdict) -> Option<&'static str> {
    verdict.next.first().map(|limit| limit.cause)
}

#[test]
fn a_larger_window_that_fills_a_queue_is_not_what_binds_next() {
    // Two streams with small windows carry as much as the path's rate, or more than one stream may; else the next limit
    // is unknown.
    for (two, next) in [(2.9e8, Some("path-rate")), (3.4e8, Some("flow-rate-cap")), (2e8, None)] {
        assert_eq!(next_cause(&lifted(3.0, full_once_more(), two)), next, "{two}");
    }
    // Goodput grows about as much as the data in flight, so the window is still the limit.
    let mut in_proportion = full_once_more();
    in_proportion.goodput.mean = 3.8e8;
    assert_eq!(next_cause(&lifted(3.8, in_proportion, 3.8e8)), None);
}

#[test]
fn a_pace_that_is_reached_is_next_and_not_who_keeps_it() {
    let mut m = model(windowed());
    let idle = m.idle.as_mut().expect("timed");
    idle.percentiles = vec![(50.0, Nanos::from_millis(20))];
    tried(&mut m, "larger-window", 2.4);
    let mut paced = load();
    paced.goodput.mean = 2.4e8;
    paced.tcp.rtt = Some(Nanos::from_millis(20));
    paced.tcp.min_rtt = paced.tcp.rtt;
    paced.knobs.pacing = Some(Rate(242_000_000));
    m.trials[0].changed = Some(paced);
    m.directions[0].sweep[0].goodput.mean = 4e8;
    assert_eq!(next_cause(&judge(&m)), Some("pacing"));
}

#[test]
fn more_of_the_same_is_no_next_limit() {
    assert_eq!(lifted(1.5, windowed(), 1e9).next, Vec::new());
}

#[test]
fn a_change_that_carried_no_more_lifted_nothing() {
    let mut m = model(windowed());
    m.idle = None;
    tried(&mut m, "half-window", 0.5);
    m.trials[0].changed = Some(load());
    assert_eq!(judge(&m).next, Vec::new());
}

#[test]
fn more_streams_tell_what_is_next_only_where_it_is_sure() {
    let next = |busy: f64| {
        let mut m = model(Load { senders: vec![thread(0.99)], ..load() });
        let mut more = load();
        more.streams = 2;
        more.goodput.mean = 1.5e9;
        more.receivers = vec![Thread { waiting: Some(0.99 - busy), ..thread(busy) }];
        m.directions[0].sweep = vec![more];
        tried(&mut m, "sender-work", 0.8);
        let next = judge(&m).next;
        next.first().map(|limit| limit.cause)
    };
    assert_eq!(next(0.97), Some("receiver-core"));
    assert_eq!(next(0.4), None, "it waits for others");
}
