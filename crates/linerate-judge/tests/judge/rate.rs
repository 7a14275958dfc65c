//! Tests of one rate for all streams, or one for each stream, if packets above the rate are dropped or marked.

use super::loss::{first_limit, held_by_loss, tried_with_loss};
use super::*;

#[test]
fn a_policer_for_all_is_filled_better_by_two_streams_and_is_still_one_rate() {
    for (gain, named) in [(0.88, false), (0.92, true), (1.4, true), (1.6, false)] {
        let mut m = held_by_loss(gain);
        tried_with_loss(&mut m, "half-pace", 0.5, (0.0, 0.2));
        tried(&mut m, "more-streams", gain);
        let proved = first_limit(&m) == Some(("path-rate", Certainty::Proved));
        assert_eq!(proved, named, "x{gain}");
    }
}

#[test]
fn loss_that_ends_at_half_the_pace_proves_the_rate_that_four_streams_share() {
    let judged = |loss| {
        // Two streams carry a little more than one, and four carry no more than two.
        let mut m = held_by_loss(1.06);
        let mut four = m.directions[0].sweep[0].clone();
        four.streams = 4;
        four.goodput = steady(7e6 * 1.03);
        m.directions[0].sweep.push(four);
        tried_with_loss(&mut m, "half-pace", 0.5, loss);
        first_limit(&m)
    };
    assert_eq!(judged((0.0, 0.2)), Some(("path-rate", Certainty::Proved)));
    assert_eq!(judged((0.5, 1.9)), Some(("path-loss", Certainty::Proved)));
    assert_eq!(judged((0.2, 1.9)), None, "it may have vanished");
}

#[test]
fn four_streams_tell_a_cap_for_each_from_one_rate_that_few_fill() {
    for (streams, gain, answer) in [
        (4, 3.1, "suspect"),
        (4, 2.9, "clear"),
        (8, 6.1, "suspect"),
        (8, 5.9, "clear"),
        // With three streams, counters and chance leave too much open.
        (3, 2.0, "suspect"),
    ] {
        let mut m = held_by_loss(2.0);
        let mut more = m.directions[0].sweep[0].clone();
        more.streams = streams;
        more.goodput = steady(7e6 * gain);
        m.directions[0].sweep.push(more);
        assert_eq!(outcome(&m, "flow-rate-cap"), answer, "x{gain}");
    }
}

#[test]
fn what_eight_streams_share_clears_no_cap_of_which_four_got_one_each() {
    for (of_four, answer) in [(3.55, "suspect"), (3.45, "clear")] {
        let mut m = held_by_loss(2.0);
        for (streams, gain) in [(4, of_four), (8, 4.5)] {
            let mut more = m.directions[0].sweep[0].clone();
            more.streams = streams;
            more.goodput = steady(7e6 * gain);
            m.directions[0].sweep.push(more);
        }
        assert_eq!(outcome(&m, "flow-rate-cap"), answer, "x{of_four}");
    }
}

#[test]
fn a_wait_for_the_senders_own_burst_is_no_queue_where_packets_are_lost() {
    // If a rate of 208 Mb/s drops packets above it, two streams carry a little more than one; if it queues them, they
    // carry the same.
    let at = |rtt, lost| {
        let mut m = held_by_loss(1.2);
        m.idle.as_mut().unwrap().percentiles = vec![(50.0, Nanos::from_micros(100))];
        m.directions[0].sweep[0].goodput = steady(2.5e8);
        let base = &mut m.directions[0].base;
        base.goodput = steady(2.08e8);
        base.tcp.retransmitted = Some(lost);
        base.tcp.rtt = Some(Nanos::from_micros(rtt));
        outcome(&m, "path-rate")
    };
    assert_eq!(at(1_050, 0.08), "suspect");
    assert_eq!(at(1_150, 0.08), "clear", "more than 1 ms beyond 100 us");
    assert_eq!(at(1_050, 0.0), "clear", "nothing is dropped");
}

#[test]
fn packets_that_wait_for_a_tick_are_no_queue_of_a_rate() {
    // As measured in a lab whose far end releases packets every 5 ms: a packet that arrives just before a tick takes
    // 115 us, most take 3.72 ms, and a message that waits for its answer takes a whole period, as without a load.
    let at = |idle: Option<Nanos>| {
        let mut base = load();
        base.tcp.min_rtt = Some(Nanos::from_micros(115));
        base.tcp.rtt = Some(Nanos::from_micros(3_720));
        let mut m = model(base);
        m.idle = idle.map(|idle| Latency {
            percentiles: vec![(50.0, idle)],
            samples: 500,
            least: Nanos::from_micros(115),
        });
        let checked = cause("path-rate").unwrap().check(&m, Direction::Forward);
        let words = checked.unwrap().evidence.join("; ");
        let waits = words.contains("a standing queue");
        (waits, words.contains("or a timer that holds packets"))
    };
    assert_eq!(at(Some(Nanos::from_micros(4_990))), (false, false));
    // Without ticks, or with shorter ones, the time is that of a queue: 3.72 ms is 1.5 times 2.48 ms.
    assert_eq!(at(Some(Nanos::from_micros(2_500))), (false, false));
    assert_eq!(at(Some(Nanos::from_micros(2_450))), (true, false));
    assert_eq!(at(None), (true, true), "only the shortest is known");
}

#[test]
fn a_thread_that_did_more_work_as_fast_leaves_the_path_in_play() {
    let at = |ratio| {
        let mut base = load();
        base.senders = vec![thread(0.93)];
        let mut m = model(base);
        tried(&mut m, "sender-work", ratio);
        outcome(&m, "path-rate")
    };
    assert_eq!((at(0.95), at(1.0)), ("clear", "enough"));
}

#[test]
fn segments_that_a_queue_marked_count_as_those_that_it_dropped() {
    let at = |marked| {
        let mut base = load();
        (base.tcp.rtt, base.tcp.marked) = (UNQUEUED, Some(marked));
        outcome(&model(base), "path-rate")
    };
    assert_eq!((at(0.0004), at(0.0006)), ("suspect", "enough"));
}

#[test]
fn more_streams_are_tried_first_where_a_look_at_them_carried_no_more() {
    let next = |gain: f64| {
        let mut m = held_by_loss(gain);
        m.directions[0].base.tcp.retransmitted = Some(0.0);
        m.hosts[0].facts.congestion_available = ["cubic", "bbr"].map(str::to_owned).to_vec();
        next_trial(&m, Direction::Forward, 0).map(|plan| plan.kind)
    };
    assert_eq!(next(1.04).as_deref(), Some("more-streams"));
    assert_eq!(next(1.06).as_deref(), Some("other-congestion"));
}
