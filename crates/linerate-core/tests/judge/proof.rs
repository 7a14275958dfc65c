//! What trials prove, exclude, and leave open.

use super::*;

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
fn more_streams_clear_a_rate_only_where_they_surely_carried_more() {
    for (half, answer) in [(0.15, "clear"), (0.25, "suspect")] {
        let mut m = model(load());
        let scattered = |mean: f64| Estimate {
            interval: Some(Interval {
                low: mean * (1.0 - half),
                mid: mean,
                high: mean * (1.0 + half),
            }),
            ..steady(mean)
        };
        m.directions[0].base.goodput = scattered(1e9);
        m.directions[0].sweep[0].goodput = scattered(1.3e9);
        assert_eq!(outcome(&m, "path-rate"), answer, "{half}");
    }
}

#[test]
fn a_trial_of_more_streams_outranks_one_short_look_at_as_many() {
    let looked = |streams, look: f64| {
        let mut m = model(load());
        m.directions[0].base.goodput = steady(1e9);
        let more = &mut m.directions[0].sweep[0];
        (more.streams, more.goodput) = (streams, steady(look * 1e9));
        m
    };
    let m = looked(2, 1.06);
    assert_eq!(outcome(&m, "path-rate"), "clear");
    more_streams_prove_the_path(m);
    // It tells nothing of twice as many again.
    let mut m = looked(4, 1.06);
    tried(&mut m, "more-streams", 1.0);
    assert_eq!(outcome(&m, "path-rate"), "clear");
    for (ratio, path) in [(1.04, "enough"), (1.06, "suspect"), (1.08, "clear")] {
        let mut m = looked(2, 1.0);
        tried(&mut m, "more-streams", ratio);
        assert_eq!(outcome(&m, "path-rate"), path, "x{ratio}");
    }
}

#[test]
fn a_rate_that_is_not_sure_is_named_where_a_queue_stands_and_nothing_else_is_left() {
    let mut m = model(load());
    m.idle = m.idle.map(|idle| Latency {
        percentiles: vec![(50.0, Nanos::from_millis(1))],
        ..idle
    });
    tried(&mut m, "more-streams", 1.06);
    m.trials[0].effect = Some(Interval {
        low: 0.98,
        mid: 1.06,
        high: 1.14,
    });
    // A queue of 1 ms and more is longer than an idle round trip by half.
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
fn what_nobody_predicts_is_said_in_words() {
    let mut base = load();
    base.senders = vec![thread(0.97)];
    base.tcp.network = Some(0.0);
    let mut m = model(base);
    tried(&mut m, "receiver-work", 1.25);
    let verdict = judge(&m);
    assert!(verdict.limits.is_empty());
    let why = &verdict.unknown[0].why;
    assert!(
        why.contains("gave x1.25") && why.contains("no cause"),
        "{why}"
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
fn a_cap_that_a_wide_trial_did_not_prove_is_named_where_many_streams_got_a_whole_rate_each() {
    for (streams, gain, named) in [
        (8, 7.1, Some("flow-rate-cap")),
        (8, 6.9, None),
        (3, 3.0, None),
    ] {
        let mut m = model(load());
        let look = &mut m.directions[0].sweep[0];
        look.goodput = steady(2e9);
        let mut many = look.clone();
        (many.streams, many.goodput) = (streams, steady(gain * 1e9));
        m.directions[0].sweep.push(many);
        tried(&mut m, "more-streams", 1.9);
        m.trials[0].effect = Some(Interval {
            low: 1.6,
            mid: 1.9,
            high: 2.3,
        });
        let verdict = judge(&m);
        let first = verdict.limits.first();
        assert_eq!(first.map(|l| l.cause), named, "{streams} {gain}");
    }
}

#[test]
fn a_congestion_window_that_stands_still_is_clamped_at_the_sender_and_no_cap_of_a_flow() {
    let judged = |stood: bool, congestion: &str| {
        let mut base = load();
        base.tcp.rtt = UNQUEUED;
        base.tcp.cwnd_stood = stood.then_some(Bytes(28_960));
        base.made[0].congestion = congestion.to_owned();
        let mut m = model(base);
        m.directions[0].sweep[0].goodput.mean = 2e9;
        tried(&mut m, "more-streams", 2.0);
        judge(&m).limits.first().cloned()
    };
    let limit = judged(true, "cubic").expect("it is proved");
    assert_eq!(
        (limit.cause, limit.side),
        ("congestion-control", Place::Near)
    );
    assert_eq!(limit.certainty, Certainty::Proved);
    assert!(limit.advice[0].action.contains("cwnd lock"), "{limit:?}");
    // One that goes by rates may stand; of one that moves, or was not told, nothing follows.
    for (stood, congestion) in [(true, "bbr"), (true, "vegas"), (false, "cubic")] {
        let limit = judged(stood, congestion);
        assert!(
            limit.is_none(),
            "a cap of the flow looks the same: {limit:?}"
        );
    }
}

#[test]
fn a_window_that_somebody_on_the_way_offers_is_not_the_far_ends() {
    let judged = |micros| {
        let mut base = load();
        base.tcp.rwnd_limited = Some(0.97);
        base.tcp.rtt = UNQUEUED;
        base.tcp.network = Some(0.03);
        let mut m = model(base);
        m.idle = m.idle.map(|idle| Latency {
            least: Nanos::from_micros(micros),
            ..idle
        });
        tried(&mut m, "more-streams", 1.9);
        let verdict = judge(&m);
        let unknown = verdict.unknown.iter().any(|u| u.why.contains("a proxy"));
        (verdict.limits.first().map(|l| l.cause), unknown)
    };
    // An acknowledgement takes 100 us.
    assert_eq!(judged(2_099), (Some("receive-window"), false));
    assert_eq!(judged(2_101), (None, true));
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
fn a_window_that_a_larger_buffer_leaves_as_it_was_is_clamped_elsewhere() {
    let mut base = load();
    base.tcp.rwnd_limited = Some(0.97);
    base.tcp.rtt = UNQUEUED;
    base.tcp.network = Some(0.03);
    let judged = |window, memory| {
        let mut m = model(base.clone());
        tried(&mut m, "larger-window", 1.0);
        let mut changed = base.clone();
        changed.tcp.window = Some(Bytes(window));
        changed.recv_memory = Some(Bytes(memory));
        (m.trials[0].effect, m.trials[0].changed) = (None, Some(changed));
        tried(&mut m, "more-streams", 2.0);
        judge(&m).limits[0].clone()
    };
    // The window of 4 MiB stays in a buffer of more than 1 MiB; one that was refused tells nothing.
    for (window, memory, clamped) in [
        (4 << 20, 2 << 20, true),
        (5 << 20, 2 << 20, false),
        (4 << 20, 1 << 20, false),
    ] {
        let limit = judged(window, memory);
        assert_eq!(limit.cause, "receive-window");
        assert_eq!(limit.certainty, Certainty::Proved);
        let told = limit
            .advice
            .iter()
            .any(|a| a.action.contains("`ip route show`"));
        assert_eq!(told, clamped, "{:?}", limit.advice);
    }
}

#[test]
fn a_window_that_is_not_scaled_is_not_mended_by_a_buffer() {
    let judged = |scaled| {
        let mut base = load();
        base.tcp.rwnd_limited = Some(0.97);
        base.tcp.rtt = UNQUEUED;
        base.tcp.network = Some(0.03);
        base.tcp.window_scaling = Some(scaled);
        let m = model(base);
        let trial = next_trial(&m, Direction::Forward, 0).expect("a trial");
        (trial.kind, judge(&m).limits[0].clone())
    };
    let (trial, limit) = judged(true);
    assert_eq!(trial, "larger-window");
    assert!(limit.advice[0].action.contains("tcp_rmem"), "{limit:?}");
    let (trial, limit) = judged(false);
    assert_ne!(trial, "larger-window");
    assert_eq!(limit.cause, "receive-window");
    assert!(limit.advice[0].action.contains("tcp_window_scaling=1"));
    assert!(
        limit
            .evidence
            .iter()
            .any(|e| e.contains("none exceeds 64 KiB"))
    );
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
            cost: [None; 2],
            changed: None,
            loss: None,
            latency: None,
        };
        decides(&m, &so_far)
    };
    assert!(decided(0.99, 1.01));
    assert!(decided(0.91, 1.01), "several overrun the queue more often");
    assert!(!decided(0.89, 1.01));
    assert!(!decided(0.99, 1.80));
    assert!(decided(1.8, 2.1));
}

#[test]
fn work_is_weighed_by_the_rate_at_which_the_trial_ran() {
    let mut base = load();
    base.senders = vec![thread(0.99)];
    base.tcp.network = Some(0.0);
    let mut m = model(base);
    // A quarter more work at 1 Gb/s is three quarters at thrice that.
    tried(&mut m, "sender-work", 1.0 / 1.75);
    let certainty = |m: &Model| judge(m).limits.first().map(|l| l.certainty);
    assert_eq!(certainty(&m), None, "outside of what it predicted");
    m.trials[0].goodput = [3e9, 3e9 / 1.75];
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

/// More streams are tried next, and prove the path once they carry the same.
fn more_streams_prove_the_path(mut m: Model) {
    let next = next_trial(&m, Direction::Forward, m.trials.len() as u32).map(|t| t.kind);
    assert_eq!(next.as_deref(), Some("more-streams"));
    tried(&mut m, "more-streams", 1.0);
    let limits = judge(&m).limits;
    assert_eq!(
        (limits[0].cause, limits[0].certainty),
        ("path-rate", Certainty::Proved)
    );
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
    more_streams_prove_the_path(full(5_000));
}

#[test]
fn a_window_a_little_larger_than_the_path_gives_way_to_the_path_once_it_was_lifted() {
    let full = || {
        let mut base = load();
        base.tcp.network = Some(0.0);
        base.tcp.rwnd_limited = Some(1.0);
        base.tcp.rtt = UNQUEUED;
        model(base)
    };
    let m = full();
    assert_eq!(outcome(&m, "path-rate"), "clear");
    assert_eq!(outcome(&m, "receive-window"), "enough");
    // With one per cent to either side: 1.05 is the least that a window which binds gains.
    for (ratio, path) in [
        (1.0, "enough"),
        (1.03, "enough"),
        (1.05, "clear"),
        (0.8, "clear"),
    ] {
        let mut m = full();
        tried(&mut m, "larger-window", ratio);
        assert_eq!(outcome(&m, "path-rate"), path, "x{ratio}");
    }
    let mut m = full();
    tried(&mut m, "larger-window", 1.0);
    more_streams_prove_the_path(m);
}

#[test]
fn a_queue_shows_in_the_least_round_trip_where_too_few_were_timed_before() {
    let at = |rtt: u64| {
        let mut base = load();
        base.tcp.rtt = Some(Nanos::from_micros(rtt));
        let mut m = model(base);
        m.idle.as_mut().expect("timed").percentiles.clear();
        outcome(&m, "path-rate")
    };
    // 100 us at least: 200 us more are the bound.
    assert_eq!((at(290), at(310)), ("suspect", "enough"));
}

#[test]
fn a_send_buffer_below_a_group_of_segments_takes_one_all_the_same() {
    let asked = |id: &str, memory: u64| {
        let mut base = load();
        base.tcp.send_memory = Some(Bytes(memory));
        base.tcp.in_flight = Some(Bytes(64_000));
        let plan = kind(id)?.propose(&model(base), Direction::Forward, 0);
        Some(plan?.after.send_buffer?.0)
    };
    assert_eq!(asked("larger-send-buffer", 16_384), Some(128_000));
    assert_eq!(asked("larger-send-buffer", 80_000), Some(160_000));
    // Half of four groups of 64 KiB.
    assert_eq!(asked("half-send-buffer", 262_143), None);
    assert_eq!(asked("half-send-buffer", 262_144), Some(65_536));
}
