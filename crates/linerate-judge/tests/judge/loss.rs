//! Tests of loss: when half the pace is tried, and what the share of retransmissions proves.

use super::*;

/// The usual load, with this share of its bytes retransmitted.
fn lossy(share: f64) -> Load {
    let mut load = load();
    load.tcp.retransmitted = Some(share);
    load.tcp.reordered = Some(0.0);
    load
}

#[test]
fn half_the_pace_is_tried_only_where_enough_is_lost() {
    let half_pace = kind("half-pace").expect("a known kind");
    let proposed = |load: Load| propose(half_pace, &model(load), Direction::Forward, 0);
    assert_eq!(proposed(lossy(0.0004)), None);
    let mut uncounted = load();
    uncounted.tcp.retransmitted = None;
    assert_eq!(proposed(uncounted), None, "nobody counted");
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

#[test]
fn another_congestion_control_comes_before_half_the_pace_where_little_is_lost() {
    // 12 Mb/s is 1036 segments of 1448 bytes per second. 0.77 % of these are eight lost, and four at half the pace.
    let m = |share| {
        let mut base = lossy(share);
        (base.goodput, base.packets) = (steady(1.2e7), Some(FULL));
        base.made.sender.congestion = "cubic".into();
        let mut m = model(base);
        m.hosts[0].facts.congestion_available = vec!["cubic".into(), "bbr".into()];
        m
    };
    let half_pace = kind("half-pace").expect("a known kind");
    let comes = |m: &Model| propose(half_pace, m, Direction::Forward, 0).is_some();
    assert_eq!((comes(&m(0.0078)), comes(&m(0.0076))), (true, false));
    let mut little = m(0.0076);
    tried(&mut little, "other-congestion", 1.0);
    assert!(comes(&little), "that was tried");
    let but = |change: &dyn Fn(&mut Model)| {
        let mut m = m(0.0076);
        change(&mut m);
        comes(&m)
    };
    let sends_by_bbr = |m: &mut Model| m.directions[0].base.made.sender.congestion = "bbr".into();
    assert!(but(&sends_by_bbr), "cubic gains nothing");
    assert!(but(&|m| m.hosts[0].facts.congestion_available.truncate(1)));
}

/// Adds a trial with these effects: the ratio of goodput, and the range of the ratio of retransmissions.
pub(super) fn tried_with_loss(m: &mut Model, id: &str, goodput: f64, loss: (f64, f64)) {
    tried(m, id, goodput);
    if let Some(trial) = m.trials.last_mut() {
        trial.loss = Some(Interval { low: loss.0, mid: (loss.0 * loss.1).sqrt(), high: loss.1 });
    }
}

/// A stream that random loss limits to about the goodput of Mathis' formula, without a queue. Two streams carry `gain`
/// times as much.
pub(super) fn held_by_loss(gain: f64) -> Model {
    let mut base = lossy(0.01);
    base.goodput = steady(7e6);
    base.tcp.rtt = Some(Nanos::from_millis(20));
    base.tcp.min_rtt = Some(Nanos::from_millis(20));
    base.packets = Some(FULL);
    base.made.sender.congestion = "cubic".into();
    let mut m = model(base);
    let idle = m.idle.as_mut().expect("timed");
    idle.percentiles = vec![(50.0, Nanos::from_millis(20))];
    m.directions[0].sweep[0].goodput = steady(7e6 * gain);
    m
}

pub(super) fn first_limit(m: &Model) -> Option<(&'static str, Certainty)> {
    judge(m).limits.first().map(|l| (l.cause, l.certainty))
}

#[test]
fn loss_is_suspected_from_its_threshold_and_where_it_explains_the_goodput() {
    let at = |change: &dyn Fn(&mut Load)| {
        let mut m = held_by_loss(2.0);
        change(&mut m.directions[0].base);
        outcome(&m, "path-loss")
    };
    assert_eq!(at(&|_| {}), "suspect");
    assert_eq!(at(&|l| l.tcp.retransmitted = Some(0.0004)), "clear");
    assert_eq!(at(&|l| l.tcp.retransmitted = None), "unknown");
    // 1448 B / 20 ms x 1.2247 / sqrt(1 %) = 7.09 Mb/s: the threshold is a third of this.
    let without_timers = |goodput| {
        at(&|l| {
            l.goodput.mean = goodput;
            l.tcp.timeouts = Some(0.0);
        })
    };
    assert_eq!(without_timers(2.4e6), "suspect");
    assert_eq!(without_timers(2.3e6), "clear");
    // If retransmission timers may have expired, the formula gives 5.68 Mb/s.
    assert_eq!(at(&|l| l.goodput.mean = 1.95e6), "suspect");
    assert_eq!(at(&|l| l.goodput.mean = 1.85e6), "clear");
}

#[test]
fn segments_that_arrive_with_a_bad_checksum_are_not_lost_on_the_way() {
    let with = |damaged: Option<f64>| {
        let mut m = held_by_loss(2.0);
        let base = &mut m.directions[0].base;
        base.tcp.repeated = Some(6.0);
        base.netstat.receiver.damaged = damaged;
        m
    };
    let at = |damaged| {
        let m = with(damaged);
        ["bad-checksums", "path-loss"].map(|id| outcome(&m, id))
    };
    assert_eq!(at(Some(3.1)), ["enough", "clear"]);
    assert_eq!(at(Some(2.9)), ["clear", "suspect"]);
    assert_eq!(at(Some(0.0)), ["clear", "suspect"]);
    assert_eq!(at(None), ["unknown", "suspect"]);
    let proved = |damaged| {
        let mut m = with(damaged);
        tried_with_loss(&mut m, "half-pace", 0.5, (0.8, 1.2));
        first_limit(&m)
    };
    let certain = |id| Some((id, Certainty::Proved));
    assert_eq!(proved(Some(6.0)), certain("bad-checksums"));
    assert_eq!(proved(Some(0.0)), certain("path-loss"));
    assert_eq!(proved(None), certain("path-loss"), "an older record");
    // The segments are inside a tunnel whose datagrams arrive damaged.
    let inside = |damaged| {
        let mut m = with(Some(0.0));
        m.directions[0].base.netstat.receiver.damaged_tunnel = damaged;
        ["bad-checksums", "path-loss"].map(|id| outcome(&m, id))
    };
    assert_eq!(inside(Some(3.1)), ["enough", "clear"]);
    assert_eq!(inside(Some(2.9)), ["clear", "suspect"]);
    assert_eq!(inside(None), ["clear", "suspect"], "no tunnel");
    // If nothing is retransmitted, the damaged segments are those of another program.
    let mut m = model(load());
    m.directions[0].base.netstat.receiver.damaged = Some(100.0);
    assert_eq!(outcome(&m, "bad-checksums"), "clear");
}

#[test]
fn a_sender_that_cannot_use_selective_acknowledgements_has_another_cause_than_loss() {
    let with = |discarded: Option<f64>, retransmitted: f64| {
        let mut m = held_by_loss(2.0);
        let base = &mut m.directions[0].base;
        base.tcp.repeated = Some(retransmitted);
        base.netstat.sender.sacks_discarded = discarded;
        m
    };
    let at = |discarded, retransmitted| {
        let m = with(discarded, retransmitted);
        ["sack-discarded", "path-loss"].map(|id| outcome(&m, id))
    };
    assert_eq!(at(Some(3.1), 6.0), ["enough", "clear"]);
    assert_eq!(at(Some(2.9), 6.0), ["clear", "suspect"]);
    assert_eq!((at(Some(1.1), 1.0)[0], at(Some(0.9), 1.0)[0]), ("enough", "clear"));
    assert_eq!(at(None, 6.0), ["unknown", "suspect"]);
    let mut m = with(Some(30.0), 6.0);
    tried_with_loss(&mut m, "half-pace", 0.5, (0.8, 1.2));
    assert_eq!(first_limit(&m), Some(("sack-discarded", Certainty::Proved)));
    // The send buffer is full while the sender waits for its retransmission timers.
    let waits = |share| {
        let mut m = with(Some(30.0), 6.0);
        let tcp = &mut m.directions[0].base.tcp;
        (tcp.network, tcp.sndbuf_limited, tcp.timer_limited) = (Some(0.4), Some(0.6), share);
        outcome(&m, "sack-discarded")
    };
    assert_eq!((waits(Some(0.51)), waits(Some(0.49))), ("enough", "clear"));
    // If nothing is lost, discarded acknowledgements are those of other connections.
    let mut m = model(load());
    m.directions[0].base.netstat.sender.sacks_discarded = Some(30.0);
    assert_eq!(outcome(&m, "sack-discarded"), "clear");
}

#[test]
fn no_law_of_windows_clears_loss_that_makes_a_sender_wait_for_timers() {
    // At a loss of 15 % over 0.5 ms, windows alone allow 73 Mb/s; one segment in 37 ms is 313 kb/s.
    let at = |goodput, timeouts| {
        let mut m = held_by_loss(2.0);
        let idle = m.idle.as_mut().expect("timed");
        idle.percentiles = vec![(50.0, Nanos::from_micros(500))];
        let base = &mut m.directions[0].base;
        base.goodput = steady(goodput);
        let tcp = &mut base.tcp;
        (tcp.rtt, tcp.min_rtt) = (Some(Nanos::from_micros(500)), Some(Nanos::from_micros(500)));
        (tcp.retransmitted, tcp.timeouts) = (Some(0.15), timeouts);
        outcome(&m, "path-loss")
    };
    assert_eq!(at(3e6, Some(0.0)), "clear", "something else holds it");
    for timeouts in [None, Some(1.0)] {
        assert_eq!(at(3e6, timeouts), "suspect");
        assert_eq!((at(1.05e5, timeouts), at(1.04e5, timeouts)), ("suspect", "clear"));
    }
}

#[test]
fn bbr_is_held_by_loss_where_it_waits_for_timeouts_loses_very_much_or_more_streams_gain() {
    let at = |gain: f64, change: &dyn Fn(&mut Load)| {
        let mut m = held_by_loss(gain);
        let base = &mut m.directions[0].base;
        (base.made.sender.congestion, base.tcp.in_flight) = ("bbr".into(), None);
        change(base);
        outcome(&m, "path-loss")
    };
    let bbr = |gain, share, half| {
        at(gain, &|l| {
            l.tcp.retransmitted = Some(share);
            within(l, half);
        })
    };
    let one = |share, half| bbr(1.0, share, half);
    assert_eq!((one(0.099, 0.24), one(0.101, 0.24)), ("clear", "suspect"));
    // A sender that waits for timeouts has a goodput that varies much.
    assert_eq!((one(0.02, 0.24), one(0.02, 0.26)), ("clear", "suspect"));
    let waited = |timeouts| {
        at(1.0, &|l| {
            l.tcp.retransmitted = Some(0.02);
            l.tcp.timeouts = Some(timeouts);
            within(l, 0.26);
        })
    };
    assert_eq!((waited(0.0), waited(1.0)), ("clear", "suspect"));
    // BBR version 3 slows down at a loss of 2 % and more. More streams must gain 5 %, plus 1 % for the error of both
    // measurements.
    assert_eq!((bbr(2.0, 0.019, 0.24), bbr(2.0, 0.021, 0.24)), ("clear", "suspect"));
    assert_eq!((bbr(1.04, 0.03, 0.24), bbr(1.07, 0.03, 0.24)), ("clear", "suspect"));
}

#[test]
fn bbr_is_held_by_little_loss_where_each_round_trip_loses_a_segment_and_more_streams_gain() {
    // One of a hundred segments is lost: with 101 in flight, one in each round trip; with 99, less than one.
    let at = |gain: f64, segments: u64| {
        let mut m = held_by_loss(gain);
        let base = &mut m.directions[0].base;
        base.made.sender.congestion = "bbr".into();
        base.tcp.in_flight = Some(Bytes(segments * 1448));
        within(base, 0.24);
        m
    };
    let result_of = |gain, segments| outcome(&at(gain, segments), "path-loss");
    assert_eq!((result_of(2.0, 99), result_of(2.0, 101)), ("clear", "suspect"));
    assert_eq!((result_of(1.04, 101), result_of(1.07, 101)), ("clear", "suspect"));
    let mut m = at(2.0, 101);
    let next = next_trial(&m, Direction::Forward, 0).expect("something to try");
    assert_eq!(next.kind, "half-pace");
    let mut cap = m.clone();
    tried_with_loss(&mut m, "half-pace", 0.5, (0.7, 1.4));
    assert_eq!(first_limit(&m), Some(("path-loss", Certainty::Proved)));
    tried_with_loss(&mut cap, "half-pace", 0.5, (0.0, 0.2));
    assert_eq!(first_limit(&cap), None);
    tried(&mut cap, "more-streams", 2.0);
    let proved = Some(("flow-rate-cap", Certainty::Proved));
    assert_eq!(first_limit(&cap), proved, "no loss of a cap's at half the pace");
}

/// Sets the samples of a goodput to this share below and above the mean.
fn within(load: &mut Load, half: f64) {
    let mean = load.goodput.mean;
    let [low, high] = [mean * (1.0 - half), mean * (1.0 + half)];
    load.ticks = [low, low, high, high].repeat(8);
}

#[test]
fn loss_that_stands_alone_is_tried_too() {
    // If more streams carry far more, neither a rate for all streams nor one for each is the limit.
    let mut m = held_by_loss(1.9);
    m.directions[0].base.made.sender.congestion = "bbr".into();
    m.directions[0].base.tcp.retransmitted = Some(0.02);
    within(&mut m.directions[0].base, 0.3);
    let mut four = m.directions[0].sweep[0].clone();
    four.streams = 4;
    four.goodput = steady(7e6 * 1.9);
    m.directions[0].sweep.push(four);
    for rate in ["path-rate", "flow-rate-cap"] {
        assert_eq!(outcome(&m, rate), "clear", "{rate}");
    }
    let hint = |m: &Model| judge(m).unknown[0].hint.clone();
    assert!(hint(&m).starts_with("linerate run"));
    let next = next_trial(&m, Direction::Forward, 0).expect("something to try");
    assert_eq!(next.kind, "half-pace");
    tried_with_loss(&mut m, "half-pace", 0.5, (0.5, 1.9));
    assert_eq!(first_limit(&m), Some(("path-loss", Certainty::Proved)));
}

#[test]
fn a_short_look_at_more_streams_tells_nothing_of_a_goodput_that_leaps() {
    let at = |half| {
        let mut m = held_by_loss(1.0);
        within(&mut m.directions[0].base, half);
        outcome(&m, "path-rate")
    };
    assert_eq!((at(0.24), at(0.26)), ("enough", "suspect"));
}

#[test]
fn half_the_pace_parts_random_loss_from_a_rate_that_is_exceeded() {
    let m = held_by_loss(2.0);
    assert_eq!(first_limit(&m), None, "counters alone do not tell");
    let next = next_trial(&m, Direction::Forward, 0).expect("something to try");
    assert_eq!(next.kind, "half-pace");
    let mut stays = m.clone();
    tried_with_loss(&mut stays, "half-pace", 0.5, (0.5, 1.9));
    assert_eq!(first_limit(&stays), Some(("path-loss", Certainty::Proved)));
    let shown = judge(&stays).limits.remove(0).trial.expect("it decided");
    assert_eq!((shown.kind, shown.loss.is_some()), ("half-pace", true));
    let mut in_rows = m.clone();
    tried_with_loss(&mut in_rows, "half-pace", 0.5, (0.4, 11.0));
    assert_eq!(first_limit(&in_rows), Some(("path-loss", Certainty::Proved)));
    let mut vague = m.clone();
    tried_with_loss(&mut vague, "half-pace", 0.5, (0.2, 1.9));
    assert_eq!(first_limit(&vague), None, "it may have vanished");
    let mut vanishes = m;
    tried_with_loss(&mut vanishes, "half-pace", 0.5, (0.0, 0.2));
    assert_eq!(first_limit(&vanishes), None);
    tried(&mut vanishes, "more-streams", 2.0);
    let proved = Some(("flow-rate-cap", Certainty::Proved));
    assert_eq!(first_limit(&vanishes), proved);
}

#[test]
fn a_trial_of_the_pace_decides_by_what_is_lost() {
    let m = held_by_loss(2.0);
    let plan = propose(kind("half-pace").expect("a known kind"), &m, Direction::Forward, 0)
        .expect("it can be tried");
    let decided = |low: f64, high: f64| {
        let ratio = |low: f64, high: f64| Interval { low, mid: (low * high).sqrt(), high };
        let so_far = TrialModel {
            plan: plan.clone(),
            effect: Some(ratio(0.49, 0.51)),
            slices: 8,
            goodput: [7e6, 3.5e6],
            cost: [None; 2],
            lost: [None; 2],
            loss: Some(ratio(low, high)),
            changed: None,
            latency: None,
        };
        decides(&m, &so_far)
    };
    assert!(decided(0.5, 2.0));
    assert!(decided(0.001, 0.2));
    assert!(!decided(0.2, 1.5));
}

#[test]
fn a_buffer_is_full_for_nothing_while_the_sender_waits_for_its_timer() {
    for (waits, answer) in [(0.49, "suspect"), (0.51, "clear")] {
        let mut m = held_by_loss(1.9);
        let tcp = &mut m.directions[0].base.tcp;
        (tcp.sndbuf_limited, tcp.timer_limited) = (Some(0.34), Some(waits));
        assert_eq!(outcome(&m, "send-buffer"), answer, "{waits}");
    }
}

#[test]
fn another_congestion_control_that_gains_more_than_any_rate_leaves_proves_loss() {
    for (gain, proved) in [(3.0, false), (4.5, true)] {
        let mut m = held_by_loss(2.0);
        m.hosts[0].facts.congestion_available = vec!["cubic".into(), "bbr".into()];
        tried(&mut m, "other-congestion", gain);
        let named = first_limit(&m) == Some(("path-loss", Certainty::Proved));
        assert_eq!(named, proved, "x{gain}");
    }
}

#[test]
fn one_segment_of_ten_thousand_matters_where_it_is_lost_all_the_time_and_the_path_is_long() {
    let at = |change: &dyn Fn(&mut Load)| {
        let mut m = held_by_loss(2.0);
        let base = &mut m.directions[0].base;
        base.tcp.retransmitted = Some(0.0001);
        base.tcp.reordered = Some(0.0);
        base.keeps_losing = true;
        // 1448 B / 20 ms x 1.2247 / sqrt(0.01 %) = 70.9 Mb/s.
        base.goodput = steady(7.1e7);
        change(base);
        ["path-loss", "congestion-control"].map(|id| outcome(&m, id))
    };
    assert_eq!(at(&|_| {}), ["suspect", "clear"]);
    // The threshold is a third of 70.9 Mb/s.
    assert_eq!(at(&|l| l.goodput = steady(2.4e7)), ["suspect", "clear"]);
    assert_eq!(at(&|l| l.goodput = steady(2.3e7)), ["clear", "suspect"]);
    assert_eq!(at(&|l| l.keeps_losing = false), ["clear", "suspect"]);
    let late = |l: &mut Load| (l.tcp.repeated, l.tcp.needless) = (Some(10.0), Some(9.9));
    let mut m = held_by_loss(2.0);
    let base = &mut m.directions[0].base;
    (base.goodput, base.keeps_losing) = (steady(7.1e7), true);
    base.tcp.retransmitted = Some(0.0001);
    late(base);
    assert_eq!(outcome(&m, "path-reordering"), "suspect");
    assert_eq!(outcome(&m, "congestion-control"), "clear");
    assert_eq!(at(&late), ["clear", "clear"]);
    let rtt = |l: &mut Load, micros| l.tcp.min_rtt = Some(Nanos::from_micros(micros));
    assert_eq!(at(&|l| rtt(l, 1_000)), ["suspect", "clear"]);
    assert_eq!(at(&|l| rtt(l, 999)), ["clear", "suspect"]);
}

#[test]
fn what_overruns_a_queue_that_stands_is_not_what_holds_the_sender() {
    // A loss of 1 % with a round trip of 72 ms allows 1.97 Mb/s.
    let at = |goodput, empty, loaded| {
        let mut m = held_by_loss(2.0);
        let idle = m.idle.as_mut().expect("timed");
        idle.percentiles = vec![(50.0, Nanos::from_micros(empty))];
        let base = &mut m.directions[0].base;
        base.goodput = steady(goodput);
        base.tcp.min_rtt = Some(Nanos::from_micros(empty));
        base.tcp.rtt = Some(Nanos::from_micros(loaded));
        outcome(&m, "path-loss")
    };
    assert_eq!(at(5.95e6, 10_000, 72_000), "clear");
    assert_eq!(at(5.85e6, 10_000, 72_000), "suspect");
    // Busy hosts add to a short round trip: with 6.9 ms, the formula allows 20.6 Mb/s.
    assert_eq!(at(6.3e7, 2_000, 7_010), "clear");
    assert_eq!(at(6.3e7, 2_000, 6_990), "suspect");
    assert_eq!(at(6e6, 40_000, 72_000), "suspect", "not even twice as long");
}

#[test]
fn what_a_host_drops_seldom_is_not_the_paths_where_so_little_matters() {
    // Drops of a host, beside 1.2 segments retransmitted per second, of 12,000 sent.
    let at = |per_sec: f64| {
        let mut m = held_by_loss(2.0);
        let base = &mut m.directions[0].base;
        (base.goodput, base.keeps_losing) = (steady(7.1e7), true);
        base.tcp.retransmitted = Some(0.0001);
        (base.tcp.segments, base.tcp.repeated) = (Some(12_000.0), Some(1.2));
        base.local = vec![linerate_judge::model::Local {
            side: Side::Far,
            what: linerate_judge::model::LocalEvent::Ring,
            subject: "eth0".into(),
            count: per_sec * 3.0,
            per_sec,
            bytes: None,
            meant: None,
        }];
        ["local-drops", "path-loss"].map(|id| outcome(&m, id))
    };
    assert_eq!(at(0.61), ["enough", "clear"]);
    assert_eq!(at(0.59), ["suspect", "suspect"], "it may be groups of them");
    assert_eq!(at(0.0), ["clear", "suspect"]);
}

#[test]
fn so_much_loss_that_next_to_nothing_arrives_is_told_from_packets_that_are_too_large() {
    let at = |share, arrived: usize| {
        let mut m = held_by_loss(1.0);
        let base = &mut m.directions[0].base;
        base.tcp.retransmitted = Some(share);
        base.ticks = vec![0.0; 30];
        base.ticks[..arrived].fill(1e5);
        base.goodput.mean = 1e5 * arrived as f64 / 30.0;
        m
    };
    let result_of = |share, arrived| {
        let m = at(share, arrived);
        ["path-loss", "mtu-black-hole"].map(|id| outcome(&m, id))
    };
    assert_eq!(result_of(0.45, 0), ["clear", "enough"], "that is no chance");
    assert_eq!(result_of(0.45, 1), ["enough", "suspect"]);
    assert_eq!(result_of(0.45, 3), ["enough", "suspect"]);
    assert_eq!(result_of(0.21, 3), ["enough", "suspect"]);
    assert_eq!(result_of(0.19, 3), ["suspect", "suspect"]);
    assert_eq!(result_of(0.0004, 3), ["clear", "suspect"]);
    assert_eq!(result_of(0.45, 4)[1], "clear");
    let named = Some(("path-loss", Certainty::Supported));
    assert_eq!(first_limit(&at(0.45, 3)), named);
    // Smaller segments may pass by chance, too; only if they carry ten times as much, their size was the reason.
    for (gain, answer) in [(10.0, "suspect"), (10.2, "enough")] {
        let mut m = at(0.45, 3);
        tried(&mut m, "smaller-mss", gain);
        assert_eq!(outcome(&m, "mtu-black-hole"), answer, "x{gain}");
    }
    let mut m = at(0.45, 3);
    tried(&mut m, "smaller-mss", 1.0);
    assert_eq!(first_limit(&m), named);
    let mut m = at(0.45, 3);
    m.directions[0].base.tcp.retransmitted = None;
    assert_eq!(outcome(&m, "path-loss"), "unknown");
}

#[test]
fn what_is_lost_too_seldom_for_any_trial_is_named_where_nothing_else_is_left() {
    let at = |share, by: &str, change: &dyn Fn(&mut Model)| {
        let mut m = held_by_loss(1.9);
        let base = &mut m.directions[0].base;
        (base.goodput, base.keeps_losing) = (steady(7.1e7), true);
        base.tcp.retransmitted = Some(share);
        base.made.sender.congestion = by.into();
        let look = &mut m.directions[0].sweep[0];
        look.goodput = steady(7.1e7 * 1.9);
        // Four streams carry as much as two: so there is neither a rate for all streams, nor one for each.
        let mut four = look.clone();
        four.streams = 4;
        m.directions[0].sweep.push(four);
        change(&mut m);
        first_limit(&m)
    };
    let named = Some(("path-loss", Certainty::Supported));
    assert_eq!(at(0.0004, "cubic", &|_| {}), named);
    assert_eq!(at(0.0006, "cubic", &|_| {}), None, "half the pace tells");
    assert_eq!(at(0.0004, "bbr", &|_| {}), None);
    let once = |m: &mut Model| m.directions[0].base.keeps_losing = false;
    assert_eq!(at(0.0004, "cubic", &once), None);
    let reader = |m: &mut Model| m.directions[0].base.receivers = vec![thread(0.85)];
    assert_eq!(at(0.0004, "cubic", &reader), None, "the reader may be it");
}
