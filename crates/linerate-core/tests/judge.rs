//! The judge on models built by hand: what is named, what is proved, and what is not, on both
//! sides of each threshold.

use linerate_core::causes::{Answer, cause};
use linerate_core::facts::{HostFacts, Port};
use linerate_core::model::{
    Ceiling, DirectionModel, Estimate, Foreign, Latency, Load, Model, TcpShares, Thread, TrialModel,
};
use linerate_core::plan::{Direction, Knobs, Side};
use linerate_core::record::{Host, SetEnd};
use linerate_core::stats::Interval;
use linerate_core::trial::kind;
use linerate_core::units::{Bytes, Nanos, Rate};
use linerate_core::verdict::{Certainty, Place, Stage, Verdict, decides, judge, next_trial};

fn thread(busy: f64) -> Thread {
    Thread {
        busy: Some(busy),
        waiting: Some(0.0),
        bytes_per_op: Some(65_536.0),
        ..Thread::default()
    }
}

/// A load of 1 Gb/s that congestion control holds, on idle CPUs.
fn load() -> Load {
    Load {
        streams: 1,
        knobs: Knobs::default(),
        made: [SetEnd::default(), SetEnd::default()],
        goodput: Estimate {
            mean: 1e9,
            interval: None,
            samples: 30,
        },
        goodput_with_ramp: 1e9,
        ticks: vec![1e9; 30],
        steady: true,
        tcp: TcpShares {
            network: Some(1.0),
            rwnd_limited: Some(0.0),
            sndbuf_limited: Some(0.0),
            starved: Some(0.0),
            in_flight: Some(Bytes(256 * 1024)),
            window: Some(Bytes(4 << 20)),
            rtt: Some(Nanos::from_millis(2)),
            min_rtt: Some(Nanos::from_micros(100)),
            send_memory: Some(Bytes(1 << 20)),
            ..TcpShares::default()
        },
        senders: vec![thread(0.2)],
        receivers: vec![thread(0.2)],
        unread: Some(0.0),
        recv_memory: Some(Bytes(1 << 20)),
        cpus: [Vec::new(), Vec::new()],
        latency: None,
        contended: false,
        foreign: None,
        local: Vec::new(),
        interruptions: Vec::new(),
    }
}

/// The round trip of a path on which nothing queues: windows and buffers may bind.
const UNQUEUED: Option<Nanos> = Some(Nanos::from_micros(110));

fn model(base: Load) -> Model {
    let host = |side| {
        let mut facts = HostFacts {
            boot_id: format!("{side:?}"),
            ..HostFacts::default()
        };
        // Without a wire of its own.
        facts.port = Some(Port {
            is_virtual: true,
            ..Port::default()
        });
        facts.buffers.rmem_max = Some(4 << 20);
        facts.buffers.wmem_max = Some(4 << 20);
        facts.buffers.tcp_rmem = Some([4096, 131_072, 1 << 20]);
        facts.buffers.tcp_wmem = Some([4096, 16_384, 1 << 20]);
        Host { side, facts }
    };
    let sweep = Load {
        streams: 2,
        ..base.clone()
    };
    Model {
        hosts: vec![host(Side::Near), host(Side::Far)],
        same_machine: false,
        idle: Some(Latency {
            percentiles: vec![(50.0, Nanos::from_micros(100))],
            samples: 500,
        }),
        directions: vec![DirectionModel {
            direction: Direction::Forward,
            base,
            sweep: vec![sweep],
            ceiling: None,
        }],
        both: Vec::new(),
        trials: Vec::new(),
        resources: Vec::new(),
        gaps: Vec::new(),
        complete: true,
    }
}

fn outcome(model: &Model, id: &str) -> &'static str {
    match cause(id)
        .expect("a known cause")
        .check(model, Direction::Forward)
    {
        Answer::Finding(f) if f.enough => "enough",
        Answer::Finding(_) => "suspect",
        Answer::Clear(_) => "clear",
        Answer::Unknown(_) => "unknown",
    }
}

/// Adds a trial of `id` whose effect is `ratio`, to within one per cent.
fn tried(model: &mut Model, id: &str, ratio: f64) {
    let number = model.trials.len() as u32;
    let plan = kind(id)
        .expect("a known kind")
        .propose(model, Direction::Forward, number)
        .expect("it can be tried");
    model.trials.push(TrialModel {
        plan,
        effect: Some(Interval {
            low: ratio * 0.99,
            mid: ratio,
            high: ratio * 1.01,
        }),
        slices: 8,
        goodput: [1e9, 1e9 * ratio],
    });
}

type Change = fn(&mut Load, f64);
/// Values and the answers expected at them.
type Cases = &'static [(f64, &'static str)];

/// Cause, what is varied, and what it answers at each value.
const ROWS: &[(&str, Change, Cases)] = &[
    (
        "receive-window",
        |l, v| {
            l.tcp.rwnd_limited = Some(v);
            l.tcp.rtt = UNQUEUED;
        },
        &[
            (0.19, "clear"),
            (0.21, "suspect"),
            (0.49, "suspect"),
            (0.51, "enough"),
        ],
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
        &[
            (0.19, "clear"),
            (0.21, "suspect"),
            (0.49, "suspect"),
            (0.51, "enough"),
        ],
    ),
    (
        "receiver-core",
        |l, v| l.receivers = vec![thread(v)],
        &[
            (0.79, "clear"),
            (0.81, "suspect"),
            (0.94, "suspect"),
            (0.96, "enough"),
        ],
    ),
    (
        "sender-core",
        |l, v| l.senders = vec![thread(v)],
        &[
            (0.79, "clear"),
            (0.81, "suspect"),
            (0.94, "suspect"),
            (0.96, "enough"),
        ],
    ),
    (
        "path-rate",
        |l, v| l.senders = vec![thread(v)],
        &[(0.89, "enough"), (0.91, "clear")],
    ),
    (
        "path-rate",
        |l, v| {
            l.tcp.network = Some(v);
            l.tcp.rtt = UNQUEUED;
            l.tcp.retransmitted = Some(0.001);
        },
        &[(0.51, "enough"), (0.49, "clear")],
    ),
    (
        "sender-app",
        |l, v| l.tcp.starved = Some(v),
        &[(0.49, "clear"), (0.51, "enough")],
    ),
    (
        "receiver-app",
        |l, v| {
            l.tcp.rwnd_limited = Some(0.5);
            l.unread = Some(v * 1e6);
        },
        // 30 % of what is outstanding, beyond the 64 KiB of a read.
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
        "pacing",
        |l, v| l.knobs.pacing = Some(Rate((v * 1e9) as u64)),
        &[(1.17, "enough"), (1.19, "clear")],
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
fn what_invalidates_a_measurement_comes_first() {
    let mut load = load();
    load.contended = true;
    load.interruptions = vec!["the link went down".to_owned()];
    let verdict = judge(&model(load));
    let ids: Vec<_> = verdict.limits.iter().map(|l| l.cause).collect();
    assert_eq!(ids[..2], ["contended", "interrupted"]);
}

#[test]
fn a_missing_counter_is_unknown_and_never_fine() {
    let mut load = load();
    load.tcp = TcpShares::default();
    load.senders = vec![Thread::default()];
    load.receivers = vec![Thread::default()];
    let verdict = judge(&model(load));
    assert!(verdict.limits.is_empty());
    assert!(
        verdict
            .unknown
            .iter()
            .any(|u| u.what.contains("what limits forward"))
    );
    let cleared = verdict
        .answers
        .iter()
        .filter(|a| a.outcome == "clear")
        .count();
    assert_eq!(
        cleared, 4,
        "contended, interrupted, pacing, and a wire that is not there need no counter"
    );
}

#[test]
fn the_path_is_proved_only_when_twice_the_streams_carry_the_same() {
    let mut m = model(load());
    assert_eq!(
        judge(&m).limits[0].certainty,
        Certainty::Supported,
        "no trial, no proof"
    );
    tried(&mut m, "more-streams", 1.0);
    let verdict = judge(&m);
    assert_eq!(verdict.limits.len(), 1);
    assert_eq!(verdict.limits[0].cause, "path-rate");
    assert_eq!(verdict.limits[0].certainty, Certainty::Proved);
    assert!(
        verdict.limits[0]
            .trial
            .as_ref()
            .expect("decided")
            .excluded
            .contains(&"flow-rate-cap")
    );
    assert_eq!(
        next_trial(&m, Direction::Forward, 9),
        None,
        "what is proved needs no trial"
    );
}

#[test]
fn a_trial_too_wide_for_equality_proves_nothing() {
    let mut m = model(load());
    tried(&mut m, "more-streams", 1.0);
    m.trials[0].effect = Some(Interval {
        low: 0.95,
        mid: 1.0,
        high: 1.05,
    });
    let verdict = judge(&m);
    assert!(
        verdict
            .limits
            .iter()
            .all(|l| l.certainty == Certainty::Supported)
    );
}

#[test]
fn a_cap_for_each_flow_is_told_from_one_rate_by_twice_the_streams() {
    let mut base = load();
    base.tcp.rtt = Some(Nanos::from_millis(1));
    let mut m = model(base);
    m.directions[0].sweep[0].goodput.mean = 2e9;
    tried(&mut m, "more-streams", 2.0);
    let verdict = judge(&m);
    assert_eq!(verdict.limits[0].cause, "flow-rate-cap");
    assert_eq!(verdict.limits[0].certainty, Certainty::Proved);
}

#[test]
fn where_no_larger_buffer_is_permitted_more_streams_prove_the_window() {
    let mut base = load();
    base.tcp.rwnd_limited = Some(0.97);
    base.tcp.rtt = UNQUEUED;
    base.tcp.network = Some(0.03);
    let mut m = model(base);
    m.hosts[1].facts.buffers.rmem_max = Some(512 * 1024);
    let next = next_trial(&m, Direction::Forward, 0).expect("something to try");
    assert_eq!(next.kind, "more-streams");
    tried(&mut m, "more-streams", 1.9);
    let limit = &judge(&m).limits[0];
    assert_eq!((limit.cause, limit.side), ("receive-window", Place::Far));
    assert_eq!(limit.certainty, Certainty::Proved);
}

#[test]
fn a_larger_buffer_that_gains_proves_the_window_and_says_what_to_set() {
    let mut base = load();
    base.tcp.rwnd_limited = Some(0.97);
    base.tcp.rtt = UNQUEUED;
    base.tcp.network = Some(0.03);
    let mut m = model(base);
    assert_eq!(
        next_trial(&m, Direction::Forward, 0).expect("a trial").kind,
        "larger-window"
    );
    tried(&mut m, "larger-window", 3.8);
    let limit = &judge(&m).limits[0];
    assert_eq!(
        (limit.cause, limit.certainty),
        ("receive-window", Certainty::Proved)
    );
    assert_eq!(limit.advice[0].gain, Some(3.8));
    assert!(
        limit.advice[0]
            .action
            .contains("tcp_rmem=\"4096 131072 4194304\"")
    );
    assert!(limit.advice[0].undo.contains("1048576"));
}

#[test]
fn a_full_core_is_proved_by_more_work_and_not_by_evidence_alone() {
    let mut base = load();
    base.senders = vec![thread(0.99)];
    let mut m = model(base);
    let limit = &judge(&m).limits[0];
    assert_eq!(
        (limit.cause, limit.certainty),
        ("sender-core", Certainty::Supported)
    );
    assert_eq!(
        next_trial(&m, Direction::Forward, 0).expect("a trial").kind,
        "sender-work"
    );
    tried(&mut m, "sender-work", 0.8);
    let limit = &judge(&m).limits[0];
    assert_eq!(
        (limit.cause, limit.certainty),
        ("sender-core", Certainty::Proved)
    );
    assert_eq!(limit.side, Place::Near);
}

#[test]
fn a_busy_core_that_takes_more_work_without_loss_is_excluded() {
    let mut base = load();
    base.senders = vec![thread(0.96)];
    let mut m = model(base);
    tried(&mut m, "sender-work", 1.0);
    let verdict = judge(&m);
    assert!(verdict.limits.iter().all(|l| l.cause != "sender-core"));
    assert!(
        verdict
            .answers
            .iter()
            .any(|a| a.cause == "sender-core" && a.outcome == "excluded")
    );
}

#[test]
fn a_trial_decides_only_when_no_prediction_is_cut() {
    let m = model(load());
    let plan = kind("more-streams")
        .expect("kind")
        .propose(&m, Direction::Forward, 0)
        .expect("plan");
    let decided = |low, high| {
        let mid = f64::midpoint(low, high);
        let so_far = TrialModel {
            plan: plan.clone(),
            effect: Some(Interval { low, mid, high }),
            slices: 8,
            goodput: [1e9, mid * 1e9],
        };
        decides(&m, &so_far)
    };
    assert!(decided(0.99, 1.01));
    assert!(!decided(0.96, 1.01));
    assert!(!decided(0.99, 1.80));
    assert!(decided(1.8, 2.1));
}

#[test]
fn work_is_weighed_by_the_rate_at_which_the_trial_ran() {
    let mut base = load();
    base.senders = vec![thread(0.99)];
    base.tcp.network = Some(0.0);
    let mut m = model(base);
    // A quarter more work at 1 Gb/s is half as much again at twice that.
    tried(&mut m, "sender-work", 1.0 / 1.5);
    let certainty = |m: &Model| judge(m).limits.first().map(|l| l.certainty);
    assert_eq!(certainty(&m), None, "outside of what it predicted");
    m.trials[0].goodput = [2e9, 2e9 / 1.5];
    assert_eq!(certainty(&m), Some(Certainty::Proved));
}

#[test]
fn a_trial_about_another_cause_excludes_but_does_not_prove() {
    let mut base = load();
    base.senders = vec![thread(0.96)];
    base.tcp.sndbuf_limited = Some(0.6);
    let mut m = model(base);
    tried(&mut m, "half-send-buffer", 1.0);
    let verdict = judge(&m);
    assert!(
        verdict
            .answers
            .iter()
            .any(|a| a.cause == "send-buffer" && a.outcome == "excluded")
    );
    let limit = &verdict.limits[0];
    assert_eq!(
        (limit.cause, limit.certainty),
        ("sender-core", Certainty::Supported)
    );
}

/// A receiving thread without slack at a rate, with the send buffer for a rival, on an unqueued round
/// trip that half of that buffer has room for, or not.
fn full_receiver(rate: f64, sender: f64, roomy: bool) -> Model {
    let mut base = load();
    base.goodput.mean = rate;
    base.receivers = vec![thread(0.97)];
    base.senders = vec![thread(sender)];
    base.tcp.sndbuf_limited = Some(0.3);
    let micros = if roomy { 10 } else { 1_000 };
    base.tcp.min_rtt = Some(Nanos::from_micros(micros));
    model(base)
}

#[test]
fn the_copy_is_dropped_only_where_no_earlier_trial_parts_the_rivals() {
    let next = |m: &Model| next_trial(m, Direction::Forward, 0).map(|plan| plan.kind);
    assert_eq!(
        next(&full_receiver(2e10, 0.5, true)).as_deref(),
        Some("half-send-buffer")
    );
    assert_eq!(
        next(&full_receiver(2e10, 0.5, false)).as_deref(),
        Some("discard")
    );
    // Where a copy may weigh nothing, or the sender has no time for more, it would show nothing.
    for (rate, sender) in [(5e9, 0.5), (2e10, 0.99)] {
        let kind = next(&full_receiver(rate, sender, false));
        assert!(
            kind.is_some() && kind.as_deref() != Some("discard"),
            "{kind:?}"
        );
    }
}

#[test]
fn a_copy_that_is_saved_parts_a_full_reader_from_its_rivals_but_proves_nothing_by_itself() {
    let tried_at = |rate, ratio| {
        let mut m = full_receiver(rate, 0.5, false);
        tried(&mut m, "discard", ratio);
        judge(&m)
    };
    let outcome = |verdict: &Verdict, id| {
        let answer = verdict.answers.iter().find(|a| a.cause == id);
        answer.expect("every cause answers").outcome
    };
    let gained = tried_at(2e10, 1.3);
    assert_eq!(outcome(&gained, "send-buffer"), "excluded");
    assert_eq!(outcome(&gained, "receiver-core"), "finding");
    assert_eq!(gained.limits[0].certainty, Certainty::Supported);
    let nothing = tried_at(2e10, 1.0);
    assert_eq!(outcome(&nothing, "receiver-core"), "excluded");
    assert_eq!(outcome(&nothing, "send-buffer"), "finding");
    // At a tenth of the rate a copy may weigh too little to be seen.
    assert_eq!(outcome(&tried_at(2e9, 1.0), "receiver-core"), "finding");
}

#[test]
fn a_pausing_reader_gains_no_more_from_discarding_than_the_time_it_does_not_pause() {
    let mut base = load();
    base.receivers = vec![thread(0.5)];
    base.unread = Some(512.0 * 1024.0);
    base.tcp.rwnd_limited = Some(0.6);
    let m = model(base);
    assert_eq!(outcome(&m, "receiver-app"), "enough");
    let excluded = |ratio| {
        let mut m = m.clone();
        tried(&mut m, "discard", ratio);
        let answers = judge(&m).answers;
        let found = answers.iter().find(|a| a.cause == "receiver-app");
        found.expect("every cause answers").outcome == "excluded"
    };
    assert!(!excluded(1.0));
    assert!(!excluded(1.9));
    assert!(excluded(2.2));
    assert!(excluded(0.9));
}

#[test]
fn a_thread_that_waits_for_its_cpu_has_not_used_it_up() {
    let mut base = load();
    base.senders = vec![Thread {
        busy: Some(0.5),
        waiting: Some(0.49),
        ..thread(0.5)
    }];
    let mut m = model(base);
    tried(&mut m, "sender-work", 0.8);
    assert!(judge(&m).limits.is_empty());
}

#[test]
fn a_wire_is_full_from_98_per_cent_of_its_ceiling_and_unknown_without_its_speed() {
    let at = |goodput: f64| {
        let mut m = model(load());
        m.directions[0].base.goodput.mean = goodput;
        m.directions[0].ceiling = Some(Ceiling {
            rate: Rate(1_000_000_000),
            stage: Stage::Net,
            name: "far port eth0".into(),
            formula: String::new(),
        });
        m
    };
    assert_eq!(outcome(&at(0.979e9), "wire-full"), "clear");
    let full = judge(&at(0.981e9));
    let limit = &full.limits[0];
    assert_eq!(
        (limit.cause, limit.certainty),
        ("wire-full", Certainty::Proved)
    );
    assert!(limit.trial.is_none(), "a ceiling needs none");
    assert_eq!(next_trial(&at(0.981e9), Direction::Forward, 0), None);
    assert!(full.next.is_empty(), "nothing is above the ceiling");
    let mut below = at(1e9);
    let ceiling = below.directions[0].ceiling.as_mut().expect("a ceiling");
    ceiling.rate = Rate(3_000_000_000);
    tried(&mut below, "more-streams", 1.0);
    let below = judge(&below);
    assert_eq!(below.limits[0].cause, "path-rate");
    assert_eq!(below.next[0].cause, "wire-full");

    let mut m = model(load());
    assert_eq!(outcome(&m, "wire-full"), "clear", "virtual ports");
    m.hosts[1].facts.port = Some(Port {
        is_ethernet: true,
        ..Port::default()
    });
    assert_eq!(
        outcome(&m, "wire-full"),
        "unknown",
        "a port without a speed"
    );
}

#[test]
fn a_reader_that_has_nothing_outstanding_keeps_up() {
    let mut base = load();
    base.tcp.in_flight = Some(Bytes(0));
    assert_eq!(outcome(&model(base.clone()), "receiver-app"), "clear");
    base.tcp.rwnd_limited = Some(0.9);
    assert_eq!(outcome(&model(base), "receiver-app"), "clear");
}

#[test]
fn a_buffer_full_of_what_stands_in_a_queue_leaves_the_path_in_play() {
    let full = |rtt: u64| {
        let mut base = load();
        base.tcp.network = Some(0.05);
        base.tcp.sndbuf_limited = Some(0.95);
        base.tcp.rtt = Some(Nanos::from_micros(rtt));
        model(base)
    };
    // Idle 100 us: twice that and 200 us more are the bounds.
    for (rtt, path, buffer) in [(290, "clear", "enough"), (310, "enough", "suspect")] {
        let m = full(rtt);
        assert_eq!(outcome(&m, "path-rate"), path, "{rtt} us");
        assert_eq!(outcome(&m, "send-buffer"), buffer, "{rtt} us");
    }
    let mut m = full(5_000);
    let first = next_trial(&m, Direction::Forward, 0).map(|t| t.kind);
    assert_eq!(first.as_deref(), Some("more-streams"));
    tried(&mut m, "more-streams", 1.0);
    let limits = judge(&m).limits;
    assert_eq!(
        (limits[0].cause, limits[0].certainty),
        ("path-rate", Certainty::Proved)
    );
}

#[test]
fn what_a_host_drops_itself_is_not_the_path() {
    let mut base = load();
    base.local = vec!["900 packets dropped by the queue of near eth0".to_owned()];
    let verdict = judge(&model(base));
    assert!(verdict.limits.is_empty());
    assert!(verdict.unknown.iter().any(|u| u.why.contains("near eth0")));
}
