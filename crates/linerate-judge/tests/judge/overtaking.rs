//! Tests of reordered packets: told apart from lost ones, and cleared if they cost nothing.

use super::loss::{first_limit, held_by_loss};
use super::*;

#[test]
fn packets_that_overtake_are_told_from_packets_that_are_lost() {
    // Of 100 segments retransmitted per second, `overtook` were only late.
    let at = |overtook: f64, by: &str| {
        let mut m = held_by_loss(1.9);
        let base = &mut m.directions[0].base;
        base.tcp.timeouts = Some(0.0);
        base.tcp.repeated = Some(100.0);
        base.tcp.reordered = Some(overtook);
        base.made.sender.congestion = by.into();
        ["path-reordering", "path-loss"].map(|id| outcome(&m, id))
    };
    assert_eq!(at(19.0, "cubic"), ["clear", "suspect"]);
    assert_eq!(at(21.0, "cubic"), ["suspect", "suspect"]);
    assert_eq!(at(51.0, "cubic"), ["suspect", "suspect"]);
    // The share of 1 % that was really lost allows 20 Mb/s, or 21.4: three times the goodput is the threshold.
    assert_eq!(at(88.0, "cubic"), ["suspect", "suspect"]);
    assert_eq!(at(89.0, "cubic"), ["suspect", "clear"]);
    assert_eq!(at(51.0, "bbr")[0], "clear", "it does not mind");
    // The receiver reports which retransmitted segments had arrived before. Then the sender's count of reordering is
    // ignored.
    let result_of = |twice: f64, overtook: f64| {
        let mut m = held_by_loss(1.9);
        let tcp = &mut m.directions[0].base.tcp;
        tcp.timeouts = Some(0.0);
        tcp.repeated = Some(100.0);
        (tcp.needless, tcp.reordered) = (Some(twice), Some(overtook));
        ["path-reordering", "path-loss"].map(|id| outcome(&m, id))
    };
    assert_eq!(result_of(0.0, 133.0), ["clear", "suspect"]);
    assert_eq!(result_of(19.0, 133.0), ["clear", "suspect"]);
    assert_eq!(result_of(49.0, 0.0), ["clear", "suspect"], "more was lost");
    assert_eq!(result_of(51.0, 0.0), ["suspect", "suspect"]);
    assert_eq!(result_of(88.0, 0.0), ["suspect", "suspect"]);
    assert_eq!(result_of(89.0, 0.0), ["suspect", "clear"]);
    // Duplicates prove nothing if the network copies packets.
    assert_eq!(result_of(149.0, 0.0), ["suspect", "clear"]);
    assert_eq!(result_of(151.0, 0.0), ["clear", "suspect"]);
    let mut m = held_by_loss(1.9);
    m.directions[0].base.tcp.reordered = None;
    assert_eq!(outcome(&m, "path-reordering"), "unknown");
    let base = &mut m.directions[0].base;
    (base.tcp.repeated, base.tcp.reordered) = (Some(100.0), Some(98.0));
    m.hosts[0].facts.congestion_available = ["cubic", "bbr"].map(str::to_owned).to_vec();
    tried(&mut m, "other-congestion", 4.5);
    let proved = Some(("path-reordering", Certainty::Proved));
    assert_eq!(first_limit(&m), proved);
}

#[test]
fn packets_that_overtake_cost_nothing_where_most_of_what_is_in_flight_stands_in_a_queue() {
    let at = |idle: Nanos, loaded: Nanos| {
        let mut m = held_by_loss(1.05);
        m.idle.as_mut().expect("timed").percentiles = vec![(50.0, idle)];
        let tcp = &mut m.directions[0].base.tcp;
        (tcp.min_rtt, tcp.rtt) = (Some(idle), Some(loaded));
        (tcp.repeated, tcp.needless) = (Some(100.0), Some(100.0));
        outcome(&m, "path-reordering")
    };
    let millis = Nanos::from_millis;
    assert_eq!(at(millis(20), millis(40)), "suspect");
    assert_eq!(at(millis(20), millis(41)), "clear");
    let micros = Nanos::from_micros;
    assert_eq!(at(millis(2), micros(6_900)), "suspect");
    assert_eq!(at(millis(2), micros(7_100)), "clear");
}

/// A path that a quarter of the packets cross in 0.2 ms and the others in 10 ms, as netem's manual page does. Nearly
/// all segments that are retransmitted had arrived, and two streams carry 1.9 times as much.
fn spread_out(by: &str) -> Model {
    let mut m = held_by_loss(1.9);
    m.idle.as_mut().expect("timed").percentiles = vec![(50.0, Nanos::from_millis(10))];
    let base = &mut m.directions[0].base;
    base.made.sender.congestion = by.into();
    base.keeps_losing = true;
    let tcp = &mut base.tcp;
    (tcp.min_rtt, tcp.rtt) = (Some(Nanos::from_micros(200)), Some(Nanos::from_millis(7)));
    (tcp.repeated, tcp.needless) = (Some(100.0), Some(98.0));
    m.hosts[0].facts.congestion_available = ["cubic", "bbr"].map(str::to_owned).to_vec();
    m
}

#[test]
fn bbr_is_slowed_where_its_window_is_empty_before_packets_arrive() {
    // The threshold is 3.6 ms: twice the shortest round trip, three bursts of 1 ms each, and the time of scheduling.
    let at = |usual, some, goodput| {
        let mut m = spread_out("bbr");
        let [usual, some] = [usual, some].map(Nanos::from_micros);
        m.idle.as_mut().expect("timed").percentiles = vec![(50.0, usual), (90.0, some)];
        m.directions[0].base.goodput = steady(goodput);
        m.directions[0].sweep[0].goodput = steady(goodput * 1.9);
        m.directions[0].base.tcp.rtt = Some(usual);
        (outcome(&m, "path-reordering"), first_limit(&m))
    };
    let named = Some(("path-reordering", Certainty::Supported));
    assert_eq!(at(3_600, 3_600, 7e6).0, "clear");
    assert_eq!(at(3_601, 3_601, 7e6), ("suspect", named));
    // If only some round trips take so long, the cause is possible, but not named.
    assert_eq!(at(300, 3_601, 7e6), ("suspect", None));
    assert_eq!(at(300, 3_600, 7e6).0, "clear");
    // At 5.2 Gb/s, a burst of 64 KiB takes 0.1 ms.
    assert_eq!(at(900, 900, 5.242_88e9).0, "clear");
    assert_eq!(at(902, 902, 5.242_88e9), ("suspect", named));
}

#[test]
fn another_congestion_control_tells_of_packets_that_overtake_only_where_its_window_is_large_enough()
{
    let at = |idle: Nanos, bbrs: Option<(u64, u64)>, gain: f64| {
        let mut m = spread_out("cubic");
        m.idle.as_mut().expect("timed").percentiles = vec![(50.0, idle)];
        m.directions[0].base.tcp.rtt = Some(idle);
        tried(&mut m, "other-congestion", gain);
        let mut load = m.directions[0].base.clone();
        load.made.sender.congestion = "bbr".into();
        m.trials[0].changed = bbrs.map(|(least, usual)| {
            (load.tcp.min_rtt, load.tcp.rtt) = (Some(Nanos(least)), Some(Nanos(usual)));
            load
        });
        first_limit(&m)
    };
    let near = Nanos::from_micros(300);
    let proved = Some(("path-reordering", Certainty::Proved));
    let last = Some(("path-reordering", Certainty::Supported));
    assert_eq!(at(near, None, 4.5), proved);
    assert_eq!(at(near, Some((200_000, 3_600_000)), 4.5), proved);
    assert_eq!(at(near, Some((200_000, 3_600_000)), 0.3), None);
    // Reordering slowed the other congestion control too, so that it proves nothing. If it carried more, its late
    // segments are due to its own queue.
    assert_eq!(at(near, Some((200_000, 3_601_000)), 0.3), last);
    assert_eq!(at(near, Some((200_000, 3_601_000)), 1.04), last);
    assert_eq!(at(near, Some((200_000, 3_601_000)), 4.5), proved);
    assert_eq!(at(Nanos::from_millis(10), None, 0.3), last);
    assert_eq!(at(Nanos::from_millis(10), None, 4.5), last);
}

/// The outcome of a rate cap of each stream, on a path with reordering that `change` modifies.
fn cap(by: &str, change: &dyn Fn(&mut Model)) -> &'static str {
    let mut m = spread_out(by);
    change(&mut m);
    outcome(&m, "flow-rate-cap")
}

#[test]
fn a_rate_reorders_nothing() {
    for by in ["bbr", "cubic"] {
        let named = Some(("path-reordering", Certainty::Supported));
        assert_eq!(first_limit(&spread_out(by)), named, "{by}");
        // More streams do not prove a cap: a stream that is slow by itself would gain as much.
        let mut m = spread_out(by);
        tried(&mut m, "more-streams", 2.0);
        assert_eq!(first_limit(&m), named, "{by}");
        let twice = |n| move |m: &mut Model| m.directions[0].base.tcp.needless = Some(n);
        let reported = (cap(by, &twice(49.0)), cap(by, &twice(98.0)));
        assert_eq!(reported, ("suspect", "clear"), "{by}");
        let once = |m: &mut Model| m.directions[0].base.keeps_losing = false;
        assert_eq!(cap(by, &once), "suspect", "{by}");
        // Nor is one rate for all streams proved, if the measurement with more streams was too short, unless they
        // carried the same.
        let shared = |gain: f64, change: &dyn Fn(&mut Model)| {
            let mut m = spread_out(by);
            let look = &mut m.directions[0].sweep[0];
            look.goodput = Estimate { interval: None, ..steady(7e6 * gain) };
            look.ticks.truncate(3);
            change(&mut m);
            outcome(&m, "path-rate")
        };
        let reported = (shared(1.9, &|_| {}), shared(1.9, &once));
        assert_eq!(reported, ("clear", "suspect"), "{by}");
        let reported = (shared(1.06, &|_| {}), shared(1.04, &|_| {}));
        assert_eq!(reported, ("clear", "suspect"), "{by}");
    }
}

#[test]
fn a_rate_shows_by_what_it_queues_drops_or_marks_and_by_what_gains_nothing() {
    for by in ["bbr", "cubic"] {
        let marked = |share| move |m: &mut Model| m.directions[0].base.tcp.marked = Some(share);
        let reported = (cap(by, &marked(0.0004)), cap(by, &marked(0.0006)));
        assert_eq!(reported, ("clear", "suspect"), "{by}");
        // The threshold is 1.5 times the round trip of the idle path.
        let queued = |millis| {
            move |m: &mut Model| m.directions[0].base.tcp.rtt = Some(Nanos::from_millis(millis))
        };
        let reported = (cap(by, &queued(15)), cap(by, &queued(16)));
        assert_eq!(reported, ("clear", "suspect"), "{by}");
    }
    // A part of the 1 % was really lost: for cubic a loss of 0.33 % allows 35 Mb/s, and 0.49 % allows 29; the goodput
    // was a third of the latter.
    let lost = |reported: f64| {
        move |m: &mut Model| {
            m.directions[0].base.tcp.needless = Some(reported);
            m.directions[0].base.tcp.timeouts = Some(0.0);
            m.directions[0].base.goodput = steady(1.1e7);
        }
    };
    let reported = (cap("cubic", &lost(67.0)), cap("cubic", &lost(51.0)));
    assert_eq!(reported, ("clear", "suspect"));
    assert_eq!(cap("bbr", &lost(51.0)), "clear", "its window fills no rate");
    // Another congestion control, which ignores reordering, carried no more: so the limit is a rate.
    let excluded = |m: &mut Model| {
        m.idle.as_mut().expect("timed").percentiles = vec![(50.0, Nanos::from_micros(300))];
        m.directions[0].base.tcp.rtt = Some(Nanos::from_micros(300));
        tried(m, "other-congestion", 1.0);
    };
    assert_eq!(cap("cubic", &excluded), "suspect");
    let mut m = spread_out("cubic");
    excluded(&mut m);
    tried(&mut m, "more-streams", 2.0);
    assert_eq!(first_limit(&m), Some(("flow-rate-cap", Certainty::Proved)));
}

#[test]
fn packets_that_overtake_are_named_where_no_trial_can_tell_and_nothing_else_is_left() {
    let at = |change: &dyn Fn(&mut Model)| {
        let mut m = spread_out("cubic");
        m.hosts[0].facts.congestion_available = vec!["cubic".into()];
        m.idle.as_mut().expect("timed").percentiles = vec![(50.0, Nanos::from_micros(300))];
        m.directions[0].base.tcp.rtt = Some(Nanos::from_micros(300));
        change(&mut m);
        first_limit(&m)
    };
    let last = Some(("path-reordering", Certainty::Supported));
    assert_eq!(at(&|_| {}), last);
    assert_eq!(at(&|m| m.directions[0].base.tcp.needless = Some(51.0)), last);
    assert_eq!(at(&|m| m.directions[0].base.tcp.needless = Some(49.0)), None);
    assert_eq!(at(&|m| m.directions[0].base.keeps_losing = false), None);
    // If all of the 1 % were lost, the formula would allow 473 Mb/s with 0.3 ms.
    let carries = |goodput| {
        at(&|m| {
            m.directions[0].base.goodput = steady(goodput);
            m.directions[0].sweep[0].goodput = steady(goodput * 1.9);
        })
    };
    assert_eq!((carries(4.6e9), carries(4.8e9)), (last, None));
    let nobody_tells = |m: &mut Model| {
        let tcp = &mut m.directions[0].base.tcp;
        (tcp.needless, tcp.reordered) = (None, Some(98.0));
    };
    assert_eq!(at(&nobody_tells), None);
    let reader = |m: &mut Model| m.directions[0].base.receivers = vec![thread(0.85)];
    assert_eq!(at(&reader), None, "the reader may be it");
}

#[test]
fn the_shortest_of_some_idle_round_trips_is_no_longer_than_their_median() {
    let at = |samples| {
        let mut m = spread_out("cubic");
        let idle = m.idle.as_mut().expect("timed");
        idle.percentiles.clear();
        (idle.samples, idle.least) = (samples, Nanos::from_millis(10));
        outcome(&m, "path-reordering")
    };
    // The kernel's shortest round trip was 0.2 ms: without enough samples, a usual one of 7 ms would look like a queue.
    assert_eq!((at(5), at(6)), ("clear", "suspect"));
}
