//! Tests of the outcome of each cause just below and just above its thresholds.

use super::*;

type Change = fn(&mut Load, f64);
/// Values of the quantity, and the outcome that is expected at each.
type Cases = &'static [(f64, &'static str)];

/// A cause, the quantity that is varied, and the outcome that is expected at each value.
const ROWS: &[(&str, Change, Cases)] = &[
    (
        "receive-window",
        |l, v| {
            l.tcp.rwnd_limited = Some(v);
            l.tcp.rtt = UNQUEUED;
        },
        &[(0.19, "clear"), (0.21, "suspect"), (0.49, "suspect"), (0.51, "enough")],
    ),
    (
        "receive-window",
        |l, v| {
            l.tcp.rwnd_limited = Some(0.9);
            l.tcp.rtt = UNQUEUED;
            l.receivers = vec![thread(v)];
        },
        &[(0.89, "enough"), (0.91, "suspect")],
    ),
    (
        "send-buffer",
        |l, v| {
            l.tcp.sndbuf_limited = Some(v);
            l.tcp.rtt = UNQUEUED;
        },
        &[(0.19, "clear"), (0.21, "suspect"), (0.49, "suspect"), (0.51, "enough")],
    ),
    (
        "receiver-core",
        |l, v| l.receivers = vec![thread(v)],
        &[(0.79, "clear"), (0.81, "suspect"), (0.94, "suspect"), (0.96, "enough")],
    ),
    (
        "sender-core",
        |l, v| l.senders = vec![thread(v)],
        &[(0.79, "clear"), (0.81, "suspect"), (0.94, "suspect"), (0.96, "enough")],
    ),
    ("path-rate", |l, v| l.senders = vec![thread(v)], &[(0.89, "enough"), (0.91, "clear")]),
    (
        "path-rate",
        |l, v| {
            l.tcp.network = Some(v);
            l.tcp.rtt = UNQUEUED;
            l.tcp.retransmitted = Some(0.001);
        },
        &[(0.51, "enough"), (0.49, "clear")],
    ),
    ("sender-app", |l, v| l.tcp.starved = Some(v), &[(0.49, "clear"), (0.51, "enough")]),
    // The pauses are the time of starvation times the share that the thread is idle: the threshold is a quarter.
    (
        "sender-app",
        |l, v| {
            l.tcp.starved = Some(0.5);
            l.senders = vec![thread(v)];
        },
        &[(0.49, "enough"), (0.51, "suspect"), (0.79, "suspect"), (0.81, "clear")],
    ),
    (
        "receiver-app",
        |l, v| {
            l.tcp.rwnd_limited = Some(0.5);
            l.unread = Some(v * 1e6);
        },
        // The threshold is 30 % of the outstanding bytes, in addition to the 64 KiB of a read.
        &[(0.17, "clear"), (0.19, "enough")],
    ),
    (
        "receiver-app",
        |l, v| {
            l.tcp.rwnd_limited = Some(v);
            l.unread = Some(1e6);
        },
        &[(0.19, "clear"), (0.21, "enough")],
    ),
    (
        "receiver-app",
        |l, v| {
            l.tcp.rwnd_limited = Some(0.5);
            l.unread = Some(1e6);
            l.caught_up = Some(v);
        },
        &[(0.24, "enough"), (0.26, "clear")],
    ),
    ("receiver-app", |l, v| l.behind = Some(v), &[(0.049, "clear"), (0.051, "enough")]),
    // If the thread is busy, its core is the cause.
    (
        "receiver-app",
        |l, v| {
            l.behind = Some(0.15);
            l.receivers = vec![thread(v)];
        },
        &[(0.79, "enough"), (0.81, "clear")],
    ),
    (
        "pacing",
        |l, v| l.knobs.pacing = Some(Rate((v * 1e9) as u64)),
        &[(1.17, "enough"), (1.19, "suspect"), (1.99, "suspect"), (2.01, "clear")],
    ),
    (
        "contended",
        |l, share| {
            let side = Side::Far;
            l.foreign = Some(Foreign { side, share });
        },
        &[(0.19, "clear"), (0.21, "enough")],
    ),
];

#[test]
fn each_cause_answers_on_both_sides_of_its_thresholds() {
    for (id, change, cases) in ROWS {
        for (value, expected) in *cases {
            let mut load = load();
            change(&mut load, *value);
            assert_eq!(&outcome(&model(load), id), expected, "{id} at {value}");
        }
    }
}

#[test]
fn a_missing_counter_is_unknown_and_never_fine() {
    let mut load = load();
    load.tcp = TcpShares::default();
    load.senders = vec![Thread::default()];
    load.receivers = vec![Thread::default()];
    let verdict = judge(&model(load));
    assert!(verdict.limits.is_empty());
    assert!(verdict.unknown.iter().any(|u| u.what.contains("what limits forward")));
    let cleared = verdict.answers.iter().filter(|a| a.outcome == "clear").count();
    assert_eq!(
        cleared, 23,
        "contended, interrupted, pacing, a rate that did not fall, an exchange of other programs, packets that vanish, \
         drops that nobody counted, one stream, small writes of other programs, and wires, slots, shapers, tunnels, offloads, allowances, interrupts, nodes, clocks, cards and CPUs full \
         of packets that are not there need none"
    );
}

#[test]
fn a_thread_that_waits_for_its_cpu_has_not_used_it_up() {
    let mut base = load();
    base.senders = vec![Thread { busy: Some(0.5), waiting: Some(0.49), ..thread(0.5) }];
    let mut m = model(base);
    tried(&mut m, "sender-work", 0.8);
    assert!(judge(&m).limits.is_empty());
}

#[test]
fn a_wire_is_full_from_98_per_cent_of_its_ceiling_and_unknown_without_its_speed() {
    let at = |goodput: f64| {
        let mut m = model(load());
        m.directions[0].base.goodput.mean = goodput;
        m.directions[0].ceilings = vec![ceiling(Stage::Net, 1e9, 1e9)];
        m
    };
    assert_eq!(outcome(&at(0.979e9), "wire-full"), "clear");
    let scattered = |goodput: f64| {
        let mut m = at(goodput);
        let half = goodput * 0.15;
        m.directions[0].base.goodput.interval =
            Some(Interval { low: goodput - half, mid: goodput, high: goodput + half });
        outcome(&m, "wire-full")
    };
    // The upper end of the interval counts, but at most a hundredth above the mean.
    assert_eq!(scattered(0.9e9), "clear", "it comes and goes");
    assert_eq!((scattered(0.969e9), scattered(0.972e9)), ("clear", "enough"));
    let full = judge(&at(0.981e9));
    let limit = &full.limits[0];
    assert_eq!((limit.cause, limit.certainty), ("wire-full", Certainty::Proved));
    assert!(limit.trial.is_none(), "a ceiling needs none");
    assert_eq!(next_trial(&at(0.981e9), Direction::Forward, 0), None);
    assert!(full.next.is_empty(), "nothing is above the ceiling");
    let mut below = at(1e9);
    below.directions[0].ceilings[0].rate = Rate(3_000_000_000);
    tried(&mut below, "more-streams", 1.0);
    let below = judge(&below);
    assert_eq!(below.limits[0].cause, "path-rate");
    assert_eq!(below.next[0].cause, "wire-full");

    let mut m = model(load());
    assert_eq!(outcome(&m, "wire-full"), "clear", "virtual ports");
    m.hosts[1].facts.port = Some(Port { is_ethernet: true, ..Port::default() });
    assert_eq!(outcome(&m, "wire-full"), "unknown", "a port without a speed");
}

#[test]
fn a_reader_that_has_nothing_outstanding_keeps_up() {
    let mut base = load();
    base.tcp.in_flight = Some(Bytes(0));
    assert_eq!(outcome(&model(base.clone()), "receiver-app"), "clear");
    base.tcp.rwnd_limited = Some(0.9);
    assert_eq!(outcome(&model(base), "receiver-app"), "clear");
}
