//! Tests of limits that look like the rate of a direction: segments that something made small, acknowledgements that
//! fill the other direction, and a credit that is used up.

use linerate_judge::model::Fell;

use super::loss::first_limit;
use super::*;

const TAKES: Option<Bytes> = Some(Bytes(1448));

/// A load whose segments carry `payload` bytes, through a path with a queue.
fn segments(payload: u64) -> Load {
    let mut base = load();
    base.goodput = steady(54e6);
    base.takes = TAKES;
    base.packets = Some(Packets {
        payload: Bytes(payload),
        packet: Some(Bytes(payload + 52)),
        path_mtu: Some(Bytes(1500)),
    });
    base
}

#[test]
fn segments_are_named_where_their_headers_cost_6_per_cent() {
    let at = |payload| {
        let m = model(segments(payload));
        (outcome(&m, "segment-size"), outcome(&m, "path-rate"))
    };
    assert_eq!(at(80), ("enough", "clear"));
    // Timestamps leave 524 bytes of 536, the segment size if no MSS is announced.
    assert_eq!(at(524), ("enough", "clear"));
    assert_eq!(at(600), ("enough", "clear"));
    assert_eq!(at(620), ("clear", "enough"));
    assert_eq!(at(1348), ("clear", "enough"), "a usual clamp");
    assert_eq!(at(1448), ("clear", "enough"));
}

#[test]
fn small_segments_are_nothing_where_an_end_or_the_path_takes_no_more() {
    let at = |change: fn(&mut Load)| {
        let mut base = segments(80);
        change(&mut base);
        outcome(&model(base), "segment-size")
    };
    assert_eq!(at(|_| ()), "enough");
    assert_eq!(at(|l| l.takes = Some(Bytes(80))), "clear");
    assert_eq!(at(|l| l.takes = None), "unknown");
    assert_eq!(at(|l| l.packets = None), "unknown");
    assert_eq!(at(|l| l.knobs.mss = Some(80)), "clear", "asked for");
    let path = |l: &mut Load| l.packets.as_mut().unwrap().path_mtu = Some(Bytes(132));
    assert_eq!(at(path), "clear");
    assert_eq!(at(|l| l.tcp.window = Some(Bytes(2895))), "clear");
    assert_eq!(at(|l| l.tcp.window = Some(Bytes(2896))), "enough");
    let busy = |l: &mut Load| l.senders = vec![thread(0.95)];
    assert_eq!(at(busy), "clear", "a thread holds it");
    let mut base = segments(80);
    busy(&mut base);
    let reported = judge(&model(base)).disturbances;
    assert_eq!(reported.len(), 1, "but it is told beside");
    assert_eq!((reported[0].cause, reported[0].share), ("segment-size", None));
    assert!(reported[0].advice[0].gain.is_none());
}

#[test]
fn four_streams_on_two_links_are_no_one_rate_though_two_shared_one() {
    let at = |of_four: f64| {
        let mut m = model(load());
        m.directions[0].base.goodput = steady(1e9);
        m.directions[0].sweep[0].goodput = steady(1e9);
        let four = Load { streams: 4, goodput: steady(of_four), ..load() };
        m.directions[0].sweep.push(four);
        tried(&mut m, "more-streams", 1.0);
        (outcome(&m, "path-rate"), first_limit(&m))
    };
    assert_eq!(at(1.9e9), ("clear", None));
    let one = Some(("path-rate", Certainty::Proved));
    assert_eq!(at(1.05e9), ("enough", one), "a short look varies");
}

#[test]
fn the_gain_of_whole_segments_is_what_headers_took() {
    let mut m = model(segments(80));
    tried(&mut m, "more-streams", 1.0);
    assert_eq!(first_limit(&m), Some(("segment-size", Certainty::Proved)));
    let verdict = judge(&m);
    let gain = verdict.limits[0].advice[0].gain.unwrap();
    assert!((gain - 1448.0 / 1514.0 * 146.0 / 80.0).abs() < 1e-9, "{gain}");
    assert!(verdict.limits[0].evidence[1].contains("about 94.3 Mb/s"));
}

/// A forward load whose receiver sends this many acknowledgements per second. The reverse direction carries 2 Mb/s and
/// has a queue.
fn ways(acknowledgements: f64) -> Model {
    let mut base = segments(1448);
    base.acknowledgements = Some(acknowledgements);
    let mut m = model(base);
    let mut back = segments(1448);
    back.goodput = steady(2e6);
    m.directions.push(DirectionModel {
        direction: Direction::Reverse,
        base: back,
        sweep: Vec::new(),
        ceilings: Vec::new(),
        fell: None,
    });
    m
}

/// The number of acknowledgements of 66 bytes per second that needs this share of the reverse direction.
fn needing(share: f64) -> f64 {
    2e6 / 1448.0 * 1514.0 / (66.0 * 8.0) * share
}

#[test]
fn acknowledgements_that_fill_the_way_back_are_the_limit_and_no_other() {
    let at = |share| {
        let m = ways(needing(share));
        (outcome(&m, "ack-way"), outcome(&m, "path-rate"))
    };
    assert_eq!(at(0.59), ("clear", "enough"));
    assert_eq!(at(0.61), ("suspect", "suspect"));
    assert_eq!(at(0.79), ("suspect", "suspect"));
    assert_eq!(at(0.81), ("enough", "clear"));
    let m = ways(needing(2.0));
    assert_eq!(first_limit(&m), Some(("ack-way", Certainty::Supported)));
    for other in ["path-loss", "flow-rate-cap", "congestion-control"] {
        assert_eq!(outcome(&m, other), "clear", "{other}");
    }
}

#[test]
fn a_way_back_that_may_be_full_leaves_the_rate_open_and_no_shaper_is_advised() {
    let at = |share| {
        let mut m = ways(needing(share));
        m.hosts[0].facts.port.get_or_insert_default().name = "eth0".to_owned();
        m.directions[0].base.latency = Some(Latency {
            percentiles: vec![(50.0, Nanos::from_millis(30))],
            samples: 500,
            least: Nanos::from_micros(80),
        });
        let queue = cause("latency-queue").expect("a cause");
        let advice = queue.advice(&m, Direction::Forward);
        let steps = advice.iter().flat_map(|advice| &advice.steps);
        let shapers = steps.filter(|step| step.command.contains("cake")).count();
        (first_limit(&m), shapers)
    };
    assert_eq!(at(0.59), (Some(("path-rate", Certainty::Supported)), 1));
    assert_eq!(at(0.61), (None, 0), "one of two");
    assert_eq!(at(0.81), (Some(("ack-way", Certainty::Supported)), 0));
}

#[test]
fn a_way_back_without_a_queue_does_not_tell_what_it_carries() {
    let at = |change: fn(&mut Model)| {
        let mut m = ways(needing(1.2));
        change(&mut m);
        outcome(&m, "ack-way")
    };
    assert_eq!(at(|m| m.directions[1].base.tcp.rtt = UNQUEUED), "unknown");
    // Acknowledgements have room if they need little of the rate that the reverse direction was seen to carry.
    let mut little = ways(needing(0.1));
    little.directions[1].base.tcp.rtt = UNQUEUED;
    assert_eq!(outcome(&little, "ack-way"), "clear");
    assert_eq!(at(|m| m.directions[0].base.tcp.rtt = UNQUEUED), "suspect");
    assert_eq!(at(|m| m.directions.truncate(1)), "unknown");
    let unread: fn(&mut Model) = |m| m.directions[0].base.acknowledgements = None;
    assert_eq!(at(unread), "unknown");
    // If more streams surely carry more in reverse, the reverse direction has a higher rate.
    let more: fn(&mut Model) = |m| {
        let mut more = m.directions[1].base.clone();
        (more.streams, more.goodput) = (2, steady(8e6));
        m.directions[1].sweep.push(more);
    };
    assert_eq!(at(more), "clear");
}

#[test]
fn what_exceeds_the_way_back_is_the_limit_before_its_queue_stands() {
    let at = |share| {
        let mut m = ways(needing(share));
        let base = &mut m.directions[0].base;
        base.tcp.rtt = UNQUEUED;
        (base.tcp.sndbuf_limited, base.tcp.network) = (Some(0.95), Some(0.05));
        (outcome(&m, "ack-way"), outcome(&m, "send-buffer"))
    };
    assert_eq!(at(1.29), ("clear", "enough"));
    assert_eq!(at(1.31), ("enough", "clear"));
}

#[test]
fn a_direction_that_collapses_beside_the_other_one_is_told() {
    let at = |both: f64, queue: bool| {
        let mut m = ways(needing(0.2));
        if !queue {
            m.directions[1].base.tcp.rtt = UNQUEUED;
        }
        m.both = vec![(Direction::Forward, steady(both))];
        collapsed(&m).len()
    };
    assert_eq!((at(10e6, true), at(11e6, true)), (1, 0));
    assert_eq!(at(10e6, false), 0, "the hosts may share a CPU");
}

#[test]
fn a_credit_that_is_used_up_stands_for_the_lasting_rate() {
    let mut m = model(load());
    m.directions[0].fell = Some(Fell {
        first: Rate(4_000_000_000),
        lasting: Rate(1_000_000_000),
        bytes: Bytes(110 << 20),
        loaded: Nanos::from_secs(3),
    });
    assert_eq!(outcome(&m, "path-rate"), "clear");
    assert_eq!(first_limit(&m), Some(("burst-credit", Certainty::Supported)));
    tried(&mut m, "more-streams", 1.0);
    assert_eq!(first_limit(&m), Some(("burst-credit", Certainty::Proved)));
    let reported = judge(&m).limits[0].evidence[0].clone();
    assert!(reported.contains("4 Gb/s until 110 MiB had arrived"), "{reported}");
    m.directions[0].base.senders = vec![thread(0.95)];
    assert_eq!(outcome(&m, "burst-credit"), "clear", "a thread holds it");
    m.directions[0].base.senders = vec![thread(0.2)];
    m.directions[0].base.contended = true;
    assert_eq!(outcome(&m, "burst-credit"), "clear", "others began to send");
    m.directions[0].base.contended = false;
    m.directions[0].fell = None;
    assert_eq!(first_limit(&m), Some(("path-rate", Certainty::Proved)));
}
