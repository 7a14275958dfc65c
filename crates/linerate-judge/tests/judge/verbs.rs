//! Tests of causes that the counters of RDMA ports show.

use linerate_facts::advice::Advice;
use linerate_facts::infiniband::Layer;
use linerate_facts::infiniband::counted::Meaning;
use linerate_facts::nic::Nic;
use linerate_facts::rdma::{Netdev, RdmaEnd};
use linerate_facts::route::Route;
use linerate_judge::model::{Verbs, VerbsCount};
use linerate_plan::transport::Setting;

use super::*;

/// A port that counted these events in ten seconds, evenly over that time.
fn verbs(device: &str, counts: &[(&str, f64)]) -> Verbs {
    let count = |(name, count): &(&str, f64)| VerbsCount {
        name: (*name).to_owned(),
        meaning: Meaning::of(name).expect("a meaning"),
        count: *count,
        per_sec: *count / 10.0,
        quarters: 4,
    };
    Verbs {
        port: RdmaEnd {
            device: device.to_owned(),
            port: 1,
            layer: Some(Layer::Ethernet),
            software: device == "rxe0",
            ..RdmaEnd::default()
        },
        counts: counts.iter().map(count).collect(),
        downs: Some(0.0),
        active: Some(true),
    }
}

/// An RDMA load of ten seconds, with round trips of 100 us on the idle path and 200 us under load.
fn carried(op: &str, near: Verbs, far: Verbs) -> Model {
    let timed = |micros| Latency {
        percentiles: vec![(50.0, Nanos::from_micros(micros))],
        samples: 1000,
        least: Nanos::from_micros(micros),
    };
    let mut base = Load {
        transport: &RDMA,
        tcp: TcpShares::default(),
        ticks: vec![1e9; 100],
        latency: Some(timed(200)),
        verbs: [Some(near), Some(far)].into(),
        ..load()
    };
    let op = Setting::Word(op.to_owned());
    base.knobs.options.set("op", op);
    let mut m = model(base);
    m.idle = Some(timed(100));
    m
}

/// A load of writes between two cards; the sender's card counted these events.
fn lossy(counts: &[(&str, f64)]) -> Model {
    let far = verbs("mlx5_1", &[("out_of_sequence", 1e6)]);
    carried("write", verbs("mlx5_0", counts), far)
}

fn sender(model: &mut Model) -> &mut Verbs {
    let verbs = model.directions[0].base.verbs.sender.as_mut();
    verbs.expect("a port")
}

const HEALTHY: &[(&str, f64)] = &[
    ("packet_seq_err", 0.0),
    ("local_ack_timeout_err", 0.0),
    ("rnr_nak_retry_err", 0.0),
    ("port_xmit_discards", 0.0),
];

const CAUSES: [&str; 3] = ["rdma-loss", "rdma-receiver-not-ready", "rdma-link-down"];

#[test]
fn a_healthy_path_has_no_rdma_cause() {
    for op in ["write", "send", "read"] {
        let m = carried(op, verbs("mlx5_0", HEALTHY), verbs("mlx5_1", HEALTHY));
        assert_eq!(CAUSES.map(|id| outcome(&m, id)), ["clear"; 3], "{op}");
    }
}

#[test]
fn what_was_not_read_is_unknown() {
    let mut m = carried("send", verbs("mlx5_0", &[]), verbs("mlx5_1", &[]));
    assert_eq!(CAUSES.map(|id| outcome(&m, id)), ["unknown", "unknown", "clear"]);
    sender(&mut m).active = None;
    assert_eq!(outcome(&m, "rdma-link-down"), "unknown");
    m.directions[0].base.verbs.receiver = None;
    assert_eq!(CAUSES.map(|id| outcome(&m, id)), ["unknown"; 3]);
    let mut m = lossy(&[("packet_seq_err", 1e5)]);
    (m.idle, m.directions[0].base.latency) = (None, None);
    assert_eq!(outcome(&m, "rdma-loss"), "unknown", "no round trip");
}

#[test]
fn losses_count_by_the_time_that_they_cost() {
    for (counted, count, answer) in [
        // 5 % of ten seconds is 2,500 round trips under load, or 5,000 on the idle path.
        ("packet_seq_err", 2_400.0, "clear"),
        ("packet_seq_err", 2_600.0, "suspect"),
        ("implied_nak_seq_err", 4_900.0, "suspect"),
        ("implied_nak_seq_err", 5_100.0, "enough"),
        // Each timeout takes 67 ms. Acknowledgements may also be late for other reasons.
        ("local_ack_timeout_err", 7.0, "clear"),
        ("local_ack_timeout_err", 8.0, "suspect"),
        // A device that adapts its timer may have lost hardly any time in these events.
        ("local_ack_timeout_err", 500.0, "suspect"),
        ("local_ack_timeout_err", 5_100.0, "suspect"),
    ] {
        let m = lossy(&[(counted, count)]);
        assert_eq!(outcome(&m, "rdma-loss"), answer, "{counted} {count}");
    }
}

#[test]
fn a_few_losses_or_losses_at_times_are_not_enough() {
    let long = |count| {
        let mut m = lossy(&[("packet_seq_err", count)]);
        m.idle.as_mut().expect("a time").percentiles[0].1 = Nanos::from_secs(1);
        outcome(&m, "rdma-loss")
    };
    assert_eq!([long(4.0), long(5.0)], ["clear", "enough"]);
    let at_times = |quarters| {
        let mut m = lossy(&[("packet_seq_err", 1e5)]);
        sender(&mut m).counts[0].quarters = quarters;
        outcome(&m, "rdma-loss")
    };
    assert_eq!([at_times(2), at_times(3)], ["suspect", "enough"]);
}

#[test]
fn few_timers_matter_by_the_time_that_they_take() {
    let in_a_second = |count: f64| {
        let mut m = lossy(&[("local_ack_timeout_err", count)]);
        sender(&mut m).counts[0].per_sec = count;
        outcome(&m, "rdma-loss")
    };
    assert_eq!([in_a_second(0.0), in_a_second(1.0)], ["clear", "suspect"]);
}

#[test]
fn timers_that_may_have_been_short_are_no_proof() {
    let with = |timed_out| {
        let counts = [("packet_seq_err", 10.0), ("local_ack_timeout_err", timed_out)];
        outcome(&lossy(&counts), "rdma-loss")
    };
    assert_eq!([with(0.0), with(20.0)], ["clear", "suspect"]);
}

#[test]
fn a_few_losses_of_a_load_that_stalls_are_suspected() {
    let stalled = |silent: usize, count| {
        let mut m = lossy(&[("packet_seq_err", count)]);
        m.directions[0].base.ticks[..silent].fill(0.0);
        outcome(&m, "rdma-loss")
    };
    assert_eq!([stalled(49, 2.0), stalled(50, 2.0)], ["clear", "suspect"]);
    assert_eq!(stalled(90, 0.0), "clear", "nothing is missing");
}

#[test]
fn a_software_device_is_judged_by_gaps_and_not_by_its_timers() {
    let at = |op, near: &[(&str, f64)], seen| {
        let far = verbs("rxe0", &[("out_of_seq_request", seen), ("rcvd_seq_err", 0.0)]);
        let near = [near, &[("out_of_seq_request", 0.0)]].concat();
        outcome(&carried(op, verbs("rxe0", &near), far), "rdma-loss")
    };
    let result_of =
        |reported, retried| [("rcvd_seq_err", reported), ("completer_retry_err", retried)];
    assert_eq!(at("write", &result_of(0.0, 1e5), 0.0), "clear");
    assert_eq!(at("write", &result_of(6_000.0, 1e5), 0.0), "enough");
    // The sender does not count each report of a gap, but the receiver counts each gap.
    assert_eq!(at("write", &result_of(0.0, 1e5), 6_000.0), "enough");
    // An end that reads counts lost responses only by its timers.
    let reads = |retried| {
        let near = verbs("rxe0", &[("out_of_seq_request", 0.0), ("rcvd_seq_err", 0.0)]);
        let far = result_of(0.0, retried);
        outcome(&carried("read", near, verbs("rxe0", &far)), "rdma-loss")
    };
    assert_eq!([reads(7.0), reads(8.0)], ["clear", "unknown"]);
    // The end that sends atomic operations counts lost responses by its timers, too; that is the sender.
    let atomic = |retried| {
        let far = verbs("rxe0", &[("out_of_seq_request", 0.0), ("rcvd_seq_err", 0.0)]);
        let near = verbs("rxe0", &result_of(0.0, retried));
        outcome(&carried("atomic", near, far), "rdma-loss")
    };
    assert_eq!([atomic(7.0), atomic(8.0)], ["clear", "unknown"]);
}

#[test]
fn gaps_behind_refused_sends_are_no_losses() {
    let at = |refused, gaps| {
        let near = verbs("rxe0", &[("out_of_seq_request", 0.0), ("rcvd_seq_err", 0.0)]);
        let far = [("out_of_seq_request", gaps), ("send_rnr_err", refused)];
        let mut m = carried("send", near, verbs("rxe0", &far));
        // The receiver stands still again and again.
        m.directions[0].base.ticks[..60].fill(0.0);
        outcome(&m, "rdma-loss")
    };
    assert_eq!(at(6_000.0, 6_000.0), "clear");
    assert_eq!(at(6_000.0, 12_000.0), "enough");
    assert_eq!(at(0.0, 6_000.0), "enough");
}

#[test]
fn loss_is_where_a_port_damages_or_discards_packets() {
    let place = |damaged, layer| {
        let mut m = lossy(&[("packet_seq_err", 6_000.0), ("symbol_error", damaged)]);
        sender(&mut m).port.layer = Some(layer);
        let limits = judge(&m).limits;
        let limit = limits.iter().find(|limit| limit.cause == "rdma-loss");
        let limit = limit.expect("a limit").clone();
        (limit.side, limit.stage, limit.evidence.join("; "))
    };
    let (side, stage, words) = place(2_900.0, Layer::Ethernet);
    assert_eq!((side, stage), (Place::Path, Stage::Net));
    assert!(words.contains("DSCP 0") && words.contains("PFC"), "{words}");
    let (side, stage, words) = place(3_100.0, Layer::InfiniBand);
    assert_eq!((side, stage), (Place::Near, Stage::Port));
    assert!(words.contains("symbol_error 3100"), "{words}");
    assert!(!words.contains("PFC"), "{words}");
}

#[test]
fn counters_are_read_at_the_physical_ports() {
    let advice = |ports: &[(&str, &str)]| {
        let mut m = lossy(&[("packet_seq_err", 6_000.0)]);
        sender(&mut m).port.netdev =
            Some(Netdev { name: "bond0.7".to_owned(), ..Netdev::default() });
        let nic = |(name, kind): &(&str, &str)| Nic {
            name: (*name).to_owned(),
            kind: (*kind).to_owned(),
            ..Nic::default()
        };
        for host in &mut m.hosts {
            host.facts.route =
                Some(Route { ports: ports.iter().map(nic).collect(), ..Route::default() });
        }
        let cause = cause("rdma-loss").expect("a cause");
        let all = cause.advice(&m, Direction::Forward);
        let texts: Vec<String> = all.iter().map(Advice::text).collect();
        texts.join("; ")
    };
    let stack = [("bond0.7", "vlan"), ("bond0", "bond"), ("eth1", ""), ("eth2", "")];
    let text = advice(&stack);
    assert!(text.contains("ethtool -S eth1") && text.contains("ethtool -S eth2"), "{text}");
    assert!(text.contains("dcb pfc show dev eth2") && !text.contains("bond0"), "{text}");
    // The port below is unknown.
    let text = advice(&[("eth9", "")]);
    assert!(text.contains("ethtool -S bond0.7"), "{text}");
}

#[test]
fn refused_sends_count_by_the_time_that_they_wait() {
    let at = |op, name, count| {
        let far = verbs("mlx5_1", &[("out_of_buffer", 1e6)]);
        carried(op, verbs("mlx5_0", &[(name, count)]), far)
    };
    let answer = |m: &Model| outcome(m, "rdma-receiver-not-ready");
    // Each wait takes 0.64 ms: 5 % of ten seconds is 781 waits.
    assert_eq!(answer(&at("send", "rnr_nak_retry_err", 780.0)), "clear");
    let mut m = at("send", "rnr_nak_retry_err", 790.0);
    assert_eq!(answer(&m), "enough");
    // All events were at the beginning of the run.
    sender(&mut m).counts[0].quarters = 1;
    assert_eq!(answer(&m), "suspect");
    assert_eq!(answer(&at("write", "rnr_nak_retry_err", 1e5)), "clear");
    // Few events, but the load stands still: the timer of the device may be longer.
    let stalled = |silent: usize, count| {
        let mut m = at("send", "rnr_nak_retry_err", count);
        m.directions[0].base.ticks[..silent].fill(0.0);
        answer(&m)
    };
    assert_eq!([stalled(49, 300.0), stalled(50, 300.0)], ["clear", "suspect"]);
    assert_eq!(stalled(90, 0.0), "clear");
    // Only the receiver counted refused sends.
    assert_eq!(answer(&at("send", "packet_seq_err", 0.0)), "enough");
    let limits = judge(&at("send", "rnr_nak_retry_err", 5_000.0)).limits;
    assert_eq!((limits[0].cause, limits[0].side), ("rdma-receiver-not-ready", Place::Far));
}

#[test]
fn the_timer_of_a_software_device_takes_ticks_of_its_kernel() {
    let at = |count| {
        let far = verbs("rxe0", &[("send_rnr_err", count)]);
        let near = verbs("rxe0", &[("rcvd_rnr_err", count)]);
        outcome(&carried("send", near, far), "rdma-receiver-not-ready")
    };
    // 5 % of ten seconds is 25 waits of 20 ms, or 500 waits of 1 ms.
    assert_eq!([at(24.0), at(25.0)], ["clear", "suspect"]);
    assert_eq!([at(499.0), at(500.0)], ["suspect", "enough"]);
}

#[test]
fn queue_pairs_share_the_waits_and_unreliable_services_have_none() {
    let with = |key: &str, setting| {
        let mut m = lossy(&[("packet_seq_err", 6_000.0)]);
        m.directions[0].base.knobs.options.set(key, setting);
        outcome(&m, "rdma-loss")
    };
    assert_eq!(with("qps", Setting::Number(1)), "enough");
    assert_eq!(with("qps", Setting::Number(2)), "suspect");
    assert_eq!(with("qps", Setting::Number(4)), "clear");
    assert_eq!(with("service", Setting::Word("uc".to_owned())), "clear");
}

#[test]
fn a_link_that_goes_down_is_a_cause_if_payload_stops() {
    let mut m = carried("write", verbs("mlx5_0", HEALTHY), verbs("mlx5_1", HEALTHY));
    let answer = |m: &Model| outcome(m, "rdma-link-down");
    sender(&mut m).downs = Some(1.0);
    assert_eq!(answer(&m), "clear", "payload went on");
    m.directions[0].base.ticks[50..54].fill(0.0);
    assert_eq!(answer(&m), "clear", "4 of 100 samples");
    m.directions[0].base.ticks[54] = 0.0;
    assert_eq!(answer(&m), "enough");
    // A request of 12 MiB takes longer than one sample.
    let mut large = m.clone();
    large.directions[0].base.made.sender.write_size = 12 << 20;
    assert_eq!(answer(&large), "unknown");
    sender(&mut m).downs = Some(0.0);
    assert_eq!(answer(&m), "clear", "another interruption");
    let receiver = m.directions[0].base.verbs.receiver.as_mut();
    receiver.expect("a port").active = Some(false);
    let limits = judge(&m).limits;
    let limit = limits.iter().find(|limit| limit.cause == "rdma-link-down");
    assert_eq!(limit.map(|limit| limit.side), Some(Place::Far));
}
