//! Tests of a host's own port: loss on purpose, drops of groups of segments, filters in both directions, and shapers
//! that do not count delayed packets.

use linerate_facts::nic::Nic;
use linerate_facts::route::{Route, Sibling};
use linerate_judge::model::{Arrival, Local, LocalEvent, Queue, Shaping};

use super::loss::{held_by_loss, tried_with_loss};
use super::*;

fn count(side: Side, what: LocalEvent, subject: &str, per_sec: f64) -> Local {
    Local {
        side,
        what,
        subject: subject.to_owned(),
        count: per_sec * 3.0,
        per_sec,
        bytes: None,
        meant: None,
    }
}

/// A load with a round trip of 20 ms that loses 1 % of 1000 segments per second. A netem of `side`, which is set to
/// lose the share `meant`, dropped `per_sec` of them.
fn own_loss(side: Side, per_sec: f64, meant: f64) -> Model {
    let mut m = held_by_loss(2.0);
    let base = &mut m.directions[0].base;
    (base.tcp.segments, base.tcp.repeated) = (Some(1_000.0), Some(10.0));
    base.local = vec![Local {
        meant: Some(meant),
        ..count(side, LocalEvent::Meant, "eth0 netem 8001:", per_sec)
    }];
    m
}

#[test]
fn what_a_hosts_own_port_loses_on_purpose_is_loss_and_no_want_of_room() {
    for (per_sec, meant, own) in [
        // The netem dropped half of the lost segments, one by one.
        (5.1, 0.001, true),
        (4.9, 0.001, false),
        // The netem is set to lose half of the share that was lost, and each drop may be a group of 45 segments.
        (0.5, 0.0051, true),
        (0.5, 0.0049, false),
        (0.1, 0.0051, false),
    ] {
        let m = own_loss(Side::Near, per_sec, meant);
        let answers = ["path-loss", "local-drops"].map(|id| outcome(&m, id));
        let loss = if own { "enough" } else { "suspect" };
        assert_eq!(answers, [loss, "clear"], "{per_sec} {meant}");
    }
    let far = own_loss(Side::Far, 10.0, 0.01);
    assert_eq!(outcome(&far, "path-loss"), "suspect", "acknowledgements");
    let mut groups = own_loss(Side::Near, 0.5, 0.001);
    groups.directions[0].base.packets = Some(FULL);
    groups.directions[0].base.local[0].bytes = Some(14_900.0);
    assert_eq!(outcome(&groups, "path-loss"), "suspect");
    groups.directions[0].base.local[0].bytes = Some(15_100.0);
    assert_eq!(outcome(&groups, "path-loss"), "enough", "ten in each");
}

#[test]
fn loss_on_purpose_is_named_at_the_host_with_what_it_is_set_to_and_the_command() {
    let mut m = own_loss(Side::Near, 10.0, 0.01);
    let limit = |m: &Model| judge(m).limits.remove(0);
    let found = limit(&m);
    assert_eq!(
        (found.cause, found.side, found.stage, found.certainty),
        ("path-loss", Place::Near, Stage::Port, Certainty::Supported)
    );
    let reported = "30 packets lost on purpose by near eth0 netem 8001:, 10 in a second: it is set to lose 1 %";
    assert!(found.evidence.iter().any(|e| e == reported), "{found:?}");
    let action = found.advice[0].text();
    assert!(action.ends_with("on near: sudo tc qdisc del dev eth0 root"), "{action}");
    assert!(found.advice[0].undo_text().contains("qdisc-before.txt"));
    // At half the pace the lost share stays the same.
    tried_with_loss(&mut m, "half-pace", 0.5, (0.6, 1.6));
    assert_eq!(limit(&m).certainty, Certainty::Proved);
    let path = limit(&{
        let mut m = held_by_loss(2.0);
        tried_with_loss(&mut m, "half-pace", 0.5, (0.6, 1.6));
        m
    });
    assert_eq!((path.side, path.stage), (Place::Path, Stage::Net));
}

/// A load of 100,000 segments per second, of which `repeated` were retransmitted, with these drops of the hosts.
fn dropping(local: Vec<Local>, repeated: f64) -> Model {
    let mut load = load();
    load.packets = Some(FULL);
    load.tcp.segments = Some(100_000.0);
    load.tcp.repeated = Some(repeated);
    load.tcp.retransmitted = Some(repeated / 100_000.0);
    load.local = local;
    model(load)
}

#[test]
fn a_drop_counts_for_as_many_segments_as_a_packet_held_there() {
    let at = |per_sec, bytes| {
        let dropped = count(Side::Far, LocalEvent::Backlog, "1", per_sec);
        let m = dropping(vec![Local { bytes, ..dropped }], 2_000.0);
        ["local-drops", "path-rate"].map(|id| outcome(&m, id))
    };
    // Half of the 2000 retransmitted segments must be explained: single drops do from 1000 on, groups of 45 from 22.1
    // on.
    assert_eq!(at(100.0, None), ["suspect", "enough"]);
    assert_eq!(at(100.0, Some(14_900.0)), ["suspect", "enough"]);
    assert_eq!(at(100.0, Some(15_100.0)), ["enough", "clear"]);
    assert_eq!(at(1_001.0, Some(60.0)), ["enough", "clear"], "one at least");
    assert_eq!(at(22.0, Some(1e9)), ["clear", "enough"], "45 at most");
    assert_eq!(at(22.2, Some(1e9)), ["enough", "clear"]);
}

#[test]
fn a_filter_may_drop_the_largest_groups_alone() {
    let at = |per_sec, repeated| {
        let dropped = count(Side::Far, LocalEvent::Queue, "eth0 ingress ffff:", per_sec);
        let bytes = Some(1_514.0);
        let m = dropping(vec![Local { bytes, ..dropped }], repeated);
        ["local-drops", "path-rate"].map(|id| outcome(&m, id))
    };
    // Each drop may be a group of 45 segments.
    assert_eq!(at(22.0, 2_000.0), ["clear", "enough"]);
    assert_eq!(at(22.2, 2_000.0), ["enough", "clear"]);
}

#[test]
fn groups_are_told_with_the_drops() {
    let at = |subject, bytes| {
        let what = if subject == "1" { LocalEvent::Backlog } else { LocalEvent::Queue };
        let dropped = count(Side::Far, what, subject, 1_001.0);
        let bytes = Some(bytes);
        let limit = judge(&dropping(vec![Local { bytes, ..dropped }], 2_000.0)).limits;
        limit[0].evidence.last().expect("some").clone()
    };
    assert_eq!(at("1", 2_200.0), "that is 1.5 % of the segments sent");
    let ten = "that is 10 % of the segments sent, about 10 in each of them";
    assert_eq!(at("1", 15_000.0), ten);
    let filtered = "that is 1.0 % of the segments sent at least: a filter drops up to 45 as one";
    assert_eq!(at("eth0 ingress ffff:", 2_200.0), filtered);
}

/// A load in which the `clsact` of an end drops 200 packets per second, and `others` per second while the other
/// direction is loaded. `repeated` segments are retransmitted per second. There is no standing queue.
fn filtered(side: Side, others: Option<f64>, repeated: f64) -> Model {
    let clsact = |per_sec| vec![count(side, LocalEvent::Queue, "eth0 clsact ffff:", per_sec)];
    let mut m = dropping(clsact(200.0), repeated);
    m.directions[0].base.tcp.rtt = UNQUEUED;
    if let Some(per_sec) = others {
        let mut reverse = m.directions[0].clone();
        reverse.direction = Direction::Reverse;
        reverse.base.local = clsact(per_sec);
        m.directions.push(reverse);
    }
    m
}

#[test]
fn a_filter_of_both_ways_counts_where_its_drops_come_of_the_load() {
    let at = |side, others, repeated| outcome(&filtered(side, others, repeated), "local-drops");
    assert_eq!(at(Side::Far, None, 200.0), "enough");
    assert_eq!(at(Side::Near, None, 200.0), "enough");
    assert_eq!(at(Side::Near, Some(99.0), 200.0), "enough");
    assert_eq!(at(Side::Near, Some(101.0), 200.0), "clear", "acknowledgements");
    // Nothing else slows the sender down. Packets that the sender's own filter refuses are not retransmitted.
    assert_eq!(at(Side::Near, Some(101.0), 50.0), "enough");
    let mut queued = filtered(Side::Near, Some(101.0), 50.0);
    queued.directions[0].base.tcp.rtt = Some(Nanos::from_millis(2));
    assert_eq!(outcome(&queued, "local-drops"), "clear");
    assert_eq!(at(Side::Far, Some(201.0), 200.0), "enough", "what comes in");
}

#[test]
fn a_filter_is_looked_for_on_the_way_that_the_payload_takes() {
    let result_of = |side| {
        let limit = judge(&filtered(side, None, 200.0)).limits.remove(0);
        (limit.side, limit.advice[0].text())
    };
    let (near, action) = result_of(Side::Near);
    assert!(near == Place::Near && action.ends_with("tc -s filter show dev eth0 egress"));
    let (far, action) = result_of(Side::Far);
    assert!(far == Place::Far && action.ends_with("tc -s filter show dev eth0 ingress"));
    // Filters at both ends, or a filter and a queue, drop different packets: each drop is 1 to 45 segments, of 1200
    // retransmitted.
    let both = |side, subject, per_sec| {
        let filter = "eth0 clsact ffff:";
        let first = count(Side::Near, LocalEvent::Queue, filter, per_sec);
        let second = count(side, LocalEvent::Queue, subject, per_sec);
        let retransmitted = 120.0 * per_sec;
        outcome(&dropping(vec![first, second], retransmitted), "local-drops")
    };
    assert_eq!(both(Side::Far, "eth0 clsact ffff:", 10.0), "enough");
    assert_eq!(both(Side::Near, "eth0 pfifo 1:", 10.0), "suspect");
    assert_eq!(both(Side::Far, "eth0 pfifo 1:", 10.0), "clear");
    // So few drops are most of the loss only if each is as large a group as possible.
    assert_eq!(both(Side::Far, "eth0 clsact ffff:", 9.9), "suspect");
}

/// Payload of a port of 1 Gb/s with packets of 1500 bytes, in bits per second.
const CEILING: f64 = 1e9 * 1448.0 / 1514.0;

#[test]
fn a_shaper_that_counts_nothing_holds_where_packets_always_wait_in_it() {
    let at = |kind: &str, share: f64, waiting| {
        let mut load = load();
        load.packets = Some(FULL);
        load.goodput.mean = CEILING * share;
        load.shapers = Some(vec![Shaping {
            subject: format!("eth0 {kind} 1:"),
            rate: Some(Rate(1_000_000_000)),
            flow_rate: None,
            frame: 14.0,
            waiting,
            held: Some(0.0),
        }]);
        let m = model(load);
        ["host-shaping", "path-rate"].map(|id| outcome(&m, id))
    };
    for kind in ["netem", "hfsc"] {
        assert_eq!(at(kind, 0.95, Some(0.91)), ["enough", "clear"]);
        assert_eq!(at(kind, 0.95, Some(0.89)), ["suspect", "enough"]);
        assert_eq!(at(kind, 0.95, None), ["suspect", "enough"], "not read");
        assert_eq!(at(kind, 0.89, Some(1.0)), ["clear", "enough"]);
    }
    assert_eq!(at("tbf", 0.95, Some(1.0)), ["suspect", "enough"], "it counts");
}

#[test]
fn a_delay_of_the_own_port_is_no_queue_of_it() {
    // The rest of the wait after the delay on purpose: packets wait 21 ms in a netem that delays by 20 ms, and the load
    // added 39 ms.
    let mut m = model(load());
    m.idle = Some(Latency {
        percentiles: vec![(50.0, Nanos::from_millis(21))],
        samples: 500,
        least: Nanos::from_millis(20),
    });
    let base = &mut m.directions[0].base;
    base.tcp.rtt = Some(Nanos::from_millis(60));
    base.latency = Some(Latency {
        percentiles: vec![(50.0, Nanos::from_millis(60))],
        samples: 500,
        least: Nanos::from_millis(20),
    });
    let mut found = |wait| {
        m.directions[0].base.queues =
            Some(vec![Queue { subject: "eth0 netem 1:".into(), wait: Nanos::from_millis(wait) }]);
        let limits = judge(&m).limits.into_iter();
        let mut limits = limits.filter(|l| l.cause == "latency-queue");
        limits.next().expect("a queue")
    };
    assert_eq!(found(20).side, Place::Near);
    let words = |limit: &linerate_judge::verdict::Limit| limit.evidence[2].clone();
    let some = found(19);
    assert_eq!(some.side, Place::Path);
    assert!(words(&some).starts_with("only 19 ms of it in the queue"));
    let none = found(0);
    assert_eq!(none.side, Place::Path);
    assert!(words(&none).starts_with("none of it in the queue"));
}

/// A standing queue at a rate that two streams share. The receiver has two ports in one network, by which these shares
/// of the payload arrive; the first port owns the address.
fn two_ports(shares: [f64; 2]) -> Model {
    let mut base = load();
    base.goodput = steady(1e9);
    let names = ["f0", "w0"];
    base.arrivals = names
        .into_iter()
        .zip(shares)
        .map(|(port, share)| Arrival { port: port.to_owned(), per_sec: 1.25e8 * share })
        .collect();
    let mut m = model(base);
    let sibling = |(index, name): (u32, &str)| Sibling {
        index,
        name: name.to_owned(),
        owns: index == 0,
        is_bare: false,
    };
    m.hosts[1].facts.route = Some(Route {
        own: "10.75.0.21".parse().ok(),
        ports: vec![Nic { name: "f0".to_owned(), is_virtual: true, ..Nic::default() }],
        siblings: (0..).zip(names).map(sibling).collect(),
        ..Route::default()
    });
    m
}

#[test]
fn payload_that_arrives_by_another_port_than_the_owner_s_is_no_rate_of_the_path() {
    let at = |shares| {
        let m = two_ports(shares);
        ["arp-flux", "path-rate"].map(|id| outcome(&m, id))
    };
    assert_eq!(at([0.0, 1.04]), ["enough", "clear"]);
    assert_eq!(at([0.49, 0.51]), ["enough", "clear"]);
    assert_eq!(at([0.51, 0.51]), ["clear", "enough"], "other traffic");
    assert_eq!(at([0.49, 0.49]), ["clear", "enough"], "by neither of them");
    assert_eq!(at([1.04, 0.0]), ["clear", "enough"]);
    let mut m = two_ports([0.0, 1.04]);
    tried(&mut m, "more-streams", 1.0);
    let limit = judge(&m).limits.remove(0);
    assert_eq!((limit.cause, limit.side), ("arp-flux", Place::Far));
    assert_eq!(limit.certainty, Certainty::Proved);
    assert!(limit.evidence[0].contains("f0, which owns 10.75.0.21, 0 %"));
    // Arrivals that were not read show nothing, and do not weaken another proof.
    m.directions[0].base.arrivals.clear();
    assert_eq!(outcome(&m, "arp-flux"), "unknown");
    assert_eq!(judge(&m).limits[0].cause, "path-rate");
}

#[test]
fn a_port_without_an_address_is_suspected_of_answering_until_a_trial_decides() {
    let bare = |shares| {
        let mut m = two_ports(shares);
        let route = m.hosts[1].facts.route.as_mut().expect("a route");
        route.siblings[1].is_bare = true;
        m
    };
    let at = |shares| {
        let m = bare(shares);
        ["arp-flux", "path-rate"].map(|id| outcome(&m, id))
    };
    assert_eq!(at([0.49, 0.51]), ["suspect", "clear"]);
    assert_eq!(at([0.51, 0.51]), ["clear", "enough"]);
    let mut m = bare([0.0, 1.04]);
    assert!(judge(&m).limits.iter().all(|limit| limit.cause != "arp-flux"));
    tried(&mut m, "more-streams", 1.0);
    let limit = judge(&m).limits.remove(0);
    assert_eq!((limit.cause, limit.certainty), ("arp-flux", Certainty::Proved));
    assert!(limit.evidence[0].starts_with("w0, which has no address, took in 100 %"));
}

#[test]
fn no_shaper_is_advised_in_front_of_a_port_that_is_not_meant() {
    let shaped = |shares| {
        let mut m = two_ports(shares);
        let base = &mut m.directions[0].base;
        base.latency = Some(Latency {
            percentiles: vec![(50.0, Nanos::from_millis(30))],
            samples: 500,
            least: Nanos::from_micros(80),
        });
        base.packets = Some(FULL);
        let advice = cause("latency-queue").expect("a cause").advice(&m, Direction::Forward);
        let steps = advice.iter().flat_map(|advice| &advice.steps);
        steps.filter(|step| step.command.contains("cake")).count()
    };
    assert_eq!((shaped([0.0, 1.0]), shaped([1.0, 0.0])), (0, 1));
}
