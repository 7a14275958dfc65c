//! What is lost: when half the pace is tried, and what the share sent again tells.

use super::*;

/// The load, with this share of its bytes sent again.
fn lossy(share: f64) -> Load {
    let mut load = load();
    load.tcp.retransmitted = Some(share);
    load
}

#[test]
fn half_the_pace_is_tried_only_where_enough_is_lost() {
    let half_pace = kind("half-pace").expect("a known kind");
    let proposed = |load: Load| half_pace.propose(&model(load), Direction::Forward, 0);
    assert_eq!(proposed(lossy(0.0004)), None);
    assert_eq!(proposed(load()), None, "nobody counted");
    let plan = proposed(lossy(0.0006)).expect("it can be tried");
    assert_eq!(plan.before.pacing, None);
    assert_eq!(plan.after.pacing, Some(Rate(500_000_000)));
    let mut two = lossy(0.0006);
    two.streams = 2;
    two.knobs.pacing = Some(Rate(600_000_000));
    let plan = proposed(two).expect("it can be tried");
    assert_eq!(plan.after.pacing, Some(Rate(250_000_000)), "of each stream");
    let mut dead = lossy(0.5);
    dead.goodput.mean = 0.0;
    assert_eq!(proposed(dead), None, "there is no half of nothing");
}
