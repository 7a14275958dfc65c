//! Tests of many streams compared with a few, and of what stays unknown for a path that dropped packets once.

use super::loss::{first_limit, held_by_loss, tried_with_loss};
use super::*;

/// A model with 121 segments in flight, in which half the pace had too few losses to decide. Four streams carry `gain`
/// times as much.
fn seldom_lost(gain: f64) -> Model {
    let mut m = held_by_loss(1.2);
    m.directions[0].base.goodput = steady(7e7);
    m.directions[0].sweep[0].goodput = steady(8.4e7);
    let mut four = m.directions[0].sweep[0].clone();
    four.streams = 4;
    four.goodput = steady(7e7 * gain);
    m.directions[0].sweep.push(four);
    tried_with_loss(&mut m, "half-pace", 0.5, (0.05, 4.0));
    m.trials[0].lost = [Some(0.01), Some(0.0)];
    m
}

#[test]
fn many_streams_are_set_beside_a_few_where_those_hardly_carry_more() {
    let crowd = kind("crowd").expect("a known kind");
    let proposed = |m: &Model| propose(crowd, m, Direction::Forward, 0);
    let plan = proposed(&seldom_lost(1.49)).expect("it can be tried");
    assert_eq!((plan.before.streams, plan.after.streams), (4, 16));
    assert_eq!(proposed(&seldom_lost(1.51)), None, "they share no rate");
    let but = |change: &dyn Fn(&mut Load)| {
        let mut m = seldom_lost(1.2);
        change(&mut m.directions[0].base);
        proposed(&m)
    };
    assert_eq!(but(&|l| l.made.sender.congestion = "bbr".into()), None);
    assert_eq!(but(&|l| l.tcp.retransmitted = Some(0.0)), None);
    // Sixteen streams still have windows that are large enough with 101 segments in flight, and not with 98.
    assert!(but(&|l| l.goodput = steady(5.85e7)).is_some());
    assert_eq!(but(&|l| l.goodput = steady(5.7e7)), None);
    // A loss of 1 % allows 7.09 Mb/s: ten times this is carried only if many segments are lost together.
    assert!(but(&|l| l.goodput = steady(7.05e7)).is_some());
    assert_eq!(but(&|l| l.goodput = steady(7.15e7)), None);
    // 1448 B / 20 ms x 1.2247 / sqrt(11 of a million) = 214 Mb/s, three times the goodput; with 12 of a million it is
    // 205 Mb/s.
    let at_half = |lost| {
        let mut m = seldom_lost(1.2);
        m.trials[0].lost[1] = lost;
        proposed(&m).is_some()
    };
    assert_eq!([at_half(Some(11e-6)), at_half(Some(12e-6)), at_half(None)], [true, false, false]);
    let untried = |share, keeps_losing| {
        let mut m = seldom_lost(1.2);
        m.trials.clear();
        let base = &mut m.directions[0].base;
        base.tcp.repeated_ever = Some(1);
        (base.tcp.retransmitted, base.keeps_losing) = (Some(share), keeps_losing);
        proposed(&m).is_some()
    };
    assert!(!untried(0.0006, false), "half the pace comes first");
    assert!(untried(0.0004, false), "and would show nothing here");
    assert!(!untried(0.0004, true));
}

#[test]
fn many_streams_that_lose_a_larger_share_than_a_few_prove_one_rate() {
    let judged = |loss| {
        let mut m = seldom_lost(1.2);
        assert_eq!(first_limit(&m), None, "half the pace told nothing");
        tried_with_loss(&mut m, "crowd", 1.1, loss);
        first_limit(&m)
    };
    let proved = Some(("path-rate", Certainty::Proved));
    assert_eq!((judged((2.6, 9.0)), judged((2.4, 9.0))), (proved, None));
    assert_eq!(judged((0.5, 1.9)), None, "it is lost at any rate");
}

#[test]
fn a_rate_that_dropped_something_once_is_filled_better_by_more_streams_and_is_still_one_rate() {
    let judged = |ever, gain| {
        let mut m = held_by_loss(1.2);
        let base = &mut m.directions[0].base;
        base.tcp.retransmitted = Some(0.0);
        base.tcp.repeated_ever = Some(ever);
        tried(&mut m, "more-streams", gain);
        let reported = judge(&m).answers.into_iter();
        let mut reported = reported.filter(|a| a.cause == "path-rate");
        reported.any(|a| a.why.join(" ").contains("excluded it"))
    };
    assert_eq!((judged(1, 1.4), judged(1, 1.6)), (false, true));
    assert!(judged(0, 1.4), "it drops nothing");
}

#[test]
fn one_loss_is_a_reason_to_hold_back_for_long_on_a_long_path() {
    let at = |change: &dyn Fn(&mut Load)| {
        let mut m = held_by_loss(2.0);
        let base = &mut m.directions[0].base;
        base.tcp.retransmitted = Some(0.0);
        base.tcp.repeated_ever = Some(1);
        change(base);
        outcome(&m, "congestion-control")
    };
    assert_eq!(at(&|_| {}), "unknown");
    assert_eq!(at(&|l| l.tcp.repeated_ever = Some(0)), "suspect");
    assert_eq!(at(&|l| l.made.sender.congestion = "bbr".into()), "suspect");
    let rtt = |micros| at(&|l| l.tcp.min_rtt = Some(Nanos::from_micros(micros)));
    assert_eq!((rtt(1_000), rtt(999)), ("unknown", "suspect"));
}
