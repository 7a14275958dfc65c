//! Tests of loss on the path: at random, by a policer, and of packets that are too large.

use super::*;

/// Runs a path; returns the first limit of the verdict, and the explanation.
fn named(path: &SimPath, seed: u64) -> (Option<(&'static str, Place, Certainty)>, String) {
    let verdict = verdict_of(path, Knobs::default(), seed);
    let limit = first(&verdict).map(|l| (l.cause, l.side, l.certainty));
    (limit, explain(&verdict))
}

fn under(congestion: Congestion) -> SimPath {
    SimPath { congestion, rtt: Nanos::from_millis(5), ..SimPath::default() }
}

#[test]
fn a_policer_for_all_is_a_rate_and_one_for_each_flow_a_cap() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        for seed in [3, 4, 5] {
            let mut path = under(congestion);
            path.forward.rate = gigabits(1.0);
            path.forward.buffer = Bytes(0);
            let (limit, why) = named(&path, seed);
            let want = Some(("path-rate", Place::Path, Certainty::Proved));
            assert_eq!(limit, want, "{} {seed}: {why}", congestion.name());
            let mut path = under(congestion);
            path.forward.flow_cap = Some(gigabits(0.5));
            path.forward.policed = true;
            let (limit, why) = named(&path, seed);
            let want = Some(("flow-rate-cap", Place::Path, Certainty::Proved));
            assert_eq!(limit, want, "{} {seed}: {why}", congestion.name());
        }
    }
}

#[test]
fn random_loss_is_told_from_a_rate_that_is_exceeded() {
    for (loss, rtt, seed) in [(0.01, 20, 3), (0.001, 20, 4), (0.05, 5, 5)] {
        let mut path = SimPath { rtt: Nanos::from_millis(rtt), ..SimPath::default() };
        path.forward.loss = loss;
        let (limit, why) = named(&path, seed);
        let want = Some(("path-loss", Place::Path, Certainty::Proved));
        assert_eq!(limit, want, "{loss}: {why}");
    }
}

#[test]
fn loss_that_does_not_bind_is_not_named() {
    // Under BBR loss does not limit goodput, and neither does it if the path is full before.
    let mut path = under(Congestion::Bbr);
    path.forward.rate = gigabits(1.0);
    path.forward.loss = 0.01;
    let (limit, why) = named(&path, 3);
    assert_ne!(limit.map(|l| l.0), Some("path-loss"), "{why}");
    let mut path = under(Congestion::Cubic);
    path.forward.rate = Rate(20_000_000);
    path.forward.loss = 0.0006;
    let (limit, why) = named(&path, 3);
    assert_ne!(limit.map(|l| l.0), Some("path-loss"), "{why}");
}

#[test]
fn a_hole_for_large_packets_is_found_in_time_and_the_other_way_goes_on() {
    for directions in [vec![Direction::Forward], Direction::ALL.to_vec()] {
        let mut path = SimPath::default();
        path.forward.passes = Some(1400);
        let plan = Plan { directions: directions.clone(), ..plan(Knobs::default()) };
        let mut sim = Sim::new(path, 3);
        let (record, error) = run(&mut sim, plan, linerate_session::run::Label::default(), &mut ());
        assert!(error.is_none(), "{error:?}");
        let verdict = judge(&derive(&record));
        let limit = first(&verdict).map(|l| (l.cause, l.direction, l.certainty));
        let want = Some(("mtu-black-hole", Direction::Forward, Certainty::Proved));
        assert_eq!(limit, want, "{}", explain(&verdict));
        let other = verdict.limits.iter().find(|l| l.direction == Direction::Reverse);
        assert_eq!(other.map(|l| l.cause), directions.get(1).map(|_| "path-rate"));
    }
}

#[test]
fn one_core_and_a_cap_for_each_flow_are_told_apart_on_the_same_figures() {
    let mut core = SimPath::default();
    core.far.receive.user_ps = 7_800;
    let mut cap = SimPath::default();
    cap.forward.flow_cap = Some(Rate(1_062_000_000));
    for (path, cause, place) in
        [(core, "receiver-core", Place::Far), (cap, "flow-rate-cap", Place::Path)]
    {
        let mut sim = Sim::new(path, 9);
        let (record, _) =
            run(&mut sim, plan(Knobs::default()), linerate_session::run::Label::default(), &mut ());
        let model = derive(&record);
        let dir = &model.directions[0];
        // Goodput is 1 Gb/s with one stream, and twice that with two streams.
        assert!((dir.base.goodput.mean / 1e9 - 1.0).abs() < 0.02);
        assert!((dir.sweep[0].goodput.mean / 2e9 - 1.0).abs() < 0.02);
        let verdict = judge(&model);
        let limit = first(&verdict).map(|l| (l.cause, l.side, l.certainty));
        assert_eq!(limit, Some((cause, place, Certainty::Proved)), "{}", explain(&verdict));
    }
}
