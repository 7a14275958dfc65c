//! Tests of what trials prove, exclude, and leave open.

use super::*;

#[test]
fn what_only_disturbs_is_no_limit_and_says_what_it_explains() {
    let mut load = load();
    load.contended = true;
    load.interruptions = vec!["the link went down".to_owned()];
    let result_of = |load: &Load| {
        let verdict = judge(&model(load.clone()));
        let limit = |cause| verdict.limits.iter().any(|l| l.cause == cause);
        assert!(!limit("contended") && !limit("interrupted"));
        let result_of = |d: &Disturbance| (d.cause, d.gain());
        verdict.disturbances.iter().map(result_of).collect::<Vec<_>>()
    };
    let unknown = [("contended", None), ("interrupted", None)];
    assert_eq!(result_of(&load), unknown, "how much is not known");
    load.ticks[..6].fill(0.0);
    load.foreign = Some(Foreign { side: Side::Far, share: 0.25 });
    let known = [("contended", None), ("interrupted", Some(1.25))];
    assert_eq!(result_of(&load), known, "nobody knows what the other session's threads took");
    load.contended = false;
    assert_eq!(result_of(&load)[0], ("contended", Some(1.25)));
    load.ticks.fill(0.0);
    assert_eq!(result_of(&load)[1].1, None, "nothing is left to compare with");
}

#[test]
fn the_path_is_proved_only_when_twice_the_streams_carry_the_same() {
    let mut m = model(load());
    assert_eq!(judge(&m).limits[0].certainty, Certainty::Supported, "no trial, no proof");
    tried(&mut m, "more-streams", 1.0);
    let verdict = judge(&m);
    assert_eq!(verdict.limits.len(), 1);
    assert_eq!(verdict.limits[0].cause, "path-rate");
    assert_eq!(verdict.limits[0].certainty, Certainty::Proved);
    assert!(verdict.limits[0].trial.as_ref().expect("decided").excluded.contains(&"flow-rate-cap"));
    assert_eq!(next_trial(&m, Direction::Forward, 9), None, "what is proved needs no trial");
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
    // The trial with two streams shows nothing about four.
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
fn what_nobody_predicts_is_said_in_words() {
    let mut base = load();
    base.senders = vec![thread(0.97)];
    base.tcp.network = Some(0.0);
    let mut m = model(base);
    tried(&mut m, "receiver-work", 1.25);
    let verdict = judge(&m);
    assert!(verdict.limits.is_empty());
    let why = &verdict.unknown[0].why;
    assert!(why.contains("gave x1.25") && why.contains("no cause"), "{why}");
}

#[test]
fn a_trial_too_wide_for_equality_proves_nothing() {
    let mut m = model(load());
    tried(&mut m, "more-streams", 1.0);
    m.trials[0].effect = Some(Interval { low: 0.95, mid: 1.0, high: 1.05 });
    let verdict = judge(&m);
    assert!(verdict.limits.iter().all(|l| l.certainty == Certainty::Supported));
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
fn a_full_core_is_proved_by_more_work_and_not_by_evidence_alone() {
    let mut base = load();
    base.senders = vec![thread(0.99)];
    let mut m = model(base);
    let limit = &judge(&m).limits[0];
    assert_eq!((limit.cause, limit.certainty), ("sender-core", Certainty::Supported));
    assert_eq!(next_trial(&m, Direction::Forward, 0).expect("a trial").kind, "sender-work");
    tried(&mut m, "sender-work", 0.8);
    let limit = &judge(&m).limits[0];
    assert_eq!((limit.cause, limit.certainty), ("sender-core", Certainty::Proved));
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
    assert!(verdict.answers.iter().any(|a| a.cause == "sender-core" && a.outcome == "excluded"));
}

#[test]
fn a_trial_decides_only_when_no_prediction_is_cut() {
    let m = model(load());
    let plan =
        propose(kind("more-streams").expect("kind"), &m, Direction::Forward, 0).expect("plan");
    let decided = |low, high| {
        let mid = f64::midpoint(low, high);
        let so_far = TrialModel {
            plan: plan.clone(),
            effect: Some(Interval { low, mid, high }),
            slices: 8,
            goodput: [1e9, mid * 1e9],
            cost: [None; 2],
            lost: [None; 2],
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
    // A quarter more work at 1 Gb/s is three quarters more at three times that rate.
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
    assert!(verdict.answers.iter().any(|a| a.cause == "send-buffer" && a.outcome == "excluded"));
    let limit = &verdict.limits[0];
    assert_eq!((limit.cause, limit.certainty), ("sender-core", Certainty::Supported));
}

/// Checks that more streams are tried next, and that they prove the path if they carry the same.
pub(super) fn more_streams_prove_the_path(mut m: Model) {
    let next = next_trial(&m, Direction::Forward, m.trials.len() as u32).map(|t| t.kind);
    assert_eq!(next.as_deref(), Some("more-streams"));
    tried(&mut m, "more-streams", 1.0);
    let limits = judge(&m).limits;
    assert_eq!((limits[0].cause, limits[0].certainty), ("path-rate", Certainty::Proved));
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
    // The shortest round trip is 100 us: the threshold is 200 us more.
    assert_eq!((at(290), at(310)), ("suspect", "enough"));
}

#[test]
fn a_buffer_that_hardly_held_is_no_rate_for_being_lifted() {
    let at = |held: f64| {
        let mut base = load();
        base.tcp.rtt = UNQUEUED;
        base.tcp.sndbuf_limited = Some(held);
        base.tcp.network = Some(1.0 - held);
        let mut m = model(base);
        tried(&mut m, "more-streams", 1.0);
        outcome(&m, "path-rate")
    };
    assert_eq!((at(0.19), at(0.21)), ("suspect", "enough"));
}
