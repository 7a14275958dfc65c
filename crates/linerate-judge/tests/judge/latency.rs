//! Tests of latency: when a load makes round trips long, where they wait, and what its trial proves.

use super::*;
use linerate_facts::cpu::IdleState;
use linerate_facts::nic::Coalesce;
use linerate_judge::model::{Queue, Shaping};
use linerate_judge::trial::slice_time;
use linerate_judge::verdict::Limit;
use linerate_plan::factor::Factor;

fn p50(value: Nanos) -> Latency {
    Latency { percentiles: vec![(50.0, value)], samples: 500, least: Nanos(value.0 / 2) }
}

/// A path of 1 ms with a load that congestion control limits. Under load, a round trip takes 40 ms, and so does one of
/// the load's own segments.
fn queued() -> Model {
    let mut base = load();
    base.latency = Some(p50(Nanos::from_millis(40)));
    base.tcp.rtt = Some(Nanos::from_millis(40));
    base.tcp.min_rtt = Some(Nanos::from_millis(1));
    base.packets = Some(FULL);
    base.probe_waited = [Some(0.01), Some(0.02)].into();
    base.made.sender.congestion = "cubic".into();
    let mut m = model(base);
    m.idle = Some(p50(Nanos::from_millis(1)));
    m
}

fn base(m: &mut Model) -> &mut Load {
    &mut m.directions[0].base
}

fn of_latency(m: &Model) -> Vec<Limit> {
    let limits = judge(m).limits.into_iter();
    limits.filter(|l| l.metric == Measure::Latency).collect()
}

fn named(m: &Model) -> Vec<(&'static str, Place, Certainty)> {
    let limits = of_latency(m).into_iter();
    limits.map(|l| (l.cause, l.side, l.certainty)).collect()
}

/// The most informative trial for long round trips.
fn next_latency_trial(model: &Model, direction: Direction, id: u32) -> Option<TrialPlan> {
    next_trials(model, &[direction], Slowness::Latency, id).pop()
}

const SUPPORTED: (&str, Place, Certainty) = ("latency-queue", Place::Path, Certainty::Supported);

/// Adds a trial at half the pace with these effects on goodput and on the round trip.
fn paced(m: &mut Model, goodput: f64, latency: Option<f64>) {
    tried(m, "half-pace", goodput);
    let trial = m.trials.last_mut().expect("just added");
    trial.latency = latency.map(|mid| Interval { low: mid * 0.9, mid, high: mid * 1.1 });
}

#[test]
fn a_queue_is_suspected_from_twice_the_round_trip_and_five_milliseconds() {
    let at = |idle: u64, loaded: u64| {
        let mut m = queued();
        m.idle = Some(p50(Nanos::from_micros(idle)));
        base(&mut m).latency = Some(p50(Nanos::from_micros(loaded)));
        base(&mut m).tcp.rtt = Some(Nanos::from_micros(loaded));
        (outcome(&m, "latency-queue"), judge(&m).unknown.len())
    };
    assert_eq!(at(100, 5_099), ("clear", 0), "a busy CPU may take as long");
    assert_eq!(at(100, 5_100).0, "enough");
    assert_eq!(at(20_000, 39_900), ("clear", 0), "what keeps a path full");
    assert_eq!(at(20_000, 40_000).0, "enough");
}

#[test]
fn a_path_whose_few_idle_round_trips_were_long_is_not_made_long_by_a_load() {
    // The kernel measured at least 1 ms. The shortest of six round trips is surely no longer than the usual one; of
    // five it may be.
    let at = |samples, least: u64| {
        let mut m = queued();
        m.idle =
            Some(Latency { percentiles: Vec::new(), samples, least: Nanos::from_millis(least) });
        outcome(&m, "latency-queue")
    };
    assert_eq!((at(6, 21), at(5, 21)), ("clear", "enough"));
    assert_eq!((at(6, 20), at(6, 0)), ("enough", "enough"));
}

#[test]
fn latency_comes_after_goodput_and_is_no_rival_of_it() {
    let mut m = queued();
    tried(&mut m, "more-streams", 1.0);
    let limits = judge(&m).limits;
    let reported: Vec<_> = limits.iter().map(|l| (l.cause, l.metric)).collect();
    let expected = [("path-rate", Measure::Goodput), ("latency-queue", Measure::Latency)];
    assert_eq!(reported, expected);
    assert_eq!(limits[0].certainty, Certainty::Proved);
    assert_eq!(next_trial(&m, Direction::Forward, 1), None);
    let next = next_latency_trial(&m, Direction::Forward, 1).expect("something to try");
    assert_eq!(next.kind, "half-pace");
}

#[test]
fn round_trips_that_stay_short_need_no_trial_and_no_word() {
    let mut m = queued();
    base(&mut m).latency = Some(p50(Nanos::from_millis(5)));
    tried(&mut m, "more-streams", 1.0);
    assert_eq!(next_latency_trial(&m, Direction::Forward, 1), None);
    let verdict = judge(&m);
    assert_eq!((of_latency(&m), verdict.unknown), (vec![], vec![]));
}

#[test]
fn half_the_pace_proves_a_queue_where_it_takes_most_of_what_the_load_added() {
    assert_eq!(named(&queued()), [SUPPORTED]);
    let after = |goodput, latency| {
        let mut m = queued();
        paced(&mut m, goodput, latency);
        named(&m)
    };
    let proved = [("latency-queue", Place::Path, Certainty::Proved)];
    assert_eq!(after(0.5, Some(0.03)), proved);
    // The load added 39 of 40 ms: at half the pace at most half of this may be left.
    assert_eq!(after(0.5, Some(0.46)), proved);
    assert_eq!(after(0.5, Some(0.48)), [SUPPORTED], "cut by what it predicts");
    assert_eq!(after(0.5, Some(0.7)), [], "it stays");
    assert_eq!(after(0.2, Some(0.03)), [], "goodput did not follow");
    assert_eq!(after(0.5, None), [SUPPORTED], "nothing was timed");
}

#[test]
fn the_trial_that_proves_a_queue_is_told_with_what_it_excludes() {
    let mut m = queued();
    paced(&mut m, 0.5, Some(0.03));
    let limit = of_latency(&m).remove(0);
    let trial = limit.trial.expect("it decided");
    assert_eq!(trial.latency.map(|l| l.mid), Some(0.03));
    assert_eq!(trial.excluded, ["latency-wakeup"]);
    assert_eq!(next_latency_trial(&m, Direction::Forward, 1), None);
}

#[test]
fn a_trial_of_both_goes_on_until_it_tells_of_the_round_trip_too() {
    let m = queued();
    let plan = next_latency_trial(&m, Direction::Forward, 0).expect("something to try");
    let decided = |low, high| {
        let ratio = |low, high| Interval { low, mid: f64::midpoint(low, high), high };
        let so_far = TrialModel {
            plan: plan.clone(),
            effect: Some(ratio(0.49, 0.51)),
            slices: 8,
            goodput: [1e9, 0.5e9],
            cost: [None; 2],
            lost: [None; 2],
            changed: None,
            loss: None,
            latency: Some(ratio(low, high)),
        };
        decides(&m, &so_far)
    };
    assert!(decided(0.01, 0.05));
    assert!(!decided(0.01, 0.9));
    assert!(decided(0.97, 1.01));
}

#[test]
fn what_waits_for_a_cpu_is_told_from_what_waits_in_a_queue() {
    let waiting = |near, far| {
        let mut m = queued();
        base(&mut m).probe_waited = [near, far].into();
        m
    };
    let at = |near, far| outcome(&waiting(near, far), "latency-wakeup");
    assert_eq!(at(Some(0.05), Some(0.04)), "clear");
    assert_eq!(at(Some(0.05), Some(0.06)), "suspect");
    assert_eq!(at(Some(0.05), Some(0.44)), "suspect");
    assert_eq!(at(Some(0.05), Some(0.46)), "enough");
    assert_eq!(at(Some(0.05), None), "unknown");
    let wakeup = ("latency-wakeup", Place::Far, Certainty::Supported);
    // The kernel acknowledges the streams' own segments, without waiting for a thread.
    let mut m = waiting(Some(0.1), Some(0.6));
    base(&mut m).tcp.rtt = Some(Nanos::from_millis(2));
    assert_eq!(named(&m), [wakeup]);
    // Half the pace cannot remove more time than was spent waiting in the queue.
    let mut both = waiting(Some(0.0), Some(0.3));
    paced(&mut both, 0.5, Some(0.03));
    assert_eq!(named(&both), [("latency-queue", Place::Path, Certainty::Proved)]);
    let mut open = waiting(Some(0.0), None);
    paced(&mut open, 0.5, Some(0.03));
    assert_eq!(named(&open), [SUPPORTED], "nobody counted");
}

#[test]
fn a_queue_is_where_the_streams_own_segments_wait_too() {
    let own = |millis| {
        let mut m = queued();
        base(&mut m).tcp.rtt = Some(Nanos::from_millis(millis));
        outcome(&m, "latency-queue")
    };
    // The load added 39 ms to the round trip of the latency probe.
    assert_eq!((own(20), own(21)), ("clear", "enough"));
    let mut m = queued();
    base(&mut m).tcp.rtt = None;
    assert_eq!(outcome(&m, "latency-queue"), "unknown");
}

#[test]
fn where_a_cpu_has_no_time_left_a_queue_cannot_be_told_from_it() {
    let busy = |share| {
        let mut m = queued();
        base(&mut m).receivers = vec![thread(share)];
        m
    };
    assert_eq!(named(&busy(0.89)), [SUPPORTED]);
    let m = busy(0.91);
    assert_eq!(named(&m), []);
    let unknown = judge(&m).unknown;
    assert!(unknown.iter().any(|u| u.why.contains("was busy 91 %")), "{unknown:?}");
}

/// The load of `queued`, where packets wait `wait` microseconds in the near port.
fn with_own(wait: u64) -> Model {
    let mut m = queued();
    base(&mut m).queues = Some(vec![
        Queue { subject: "eth0 htb 1:10".into(), wait: Nanos::from_micros(wait) },
        Queue { subject: "eth0 pfifo 2:".into(), wait: Nanos(0) },
    ]);
    m
}

#[test]
fn a_queue_in_our_own_port_is_told_by_its_backlog_and_kept_short_there() {
    let place = |wait| of_latency(&with_own(wait)).remove(0);
    // The threshold is half of the 39 ms that the load added.
    assert_eq!(place(19_400).side, Place::Path);
    let own = place(19_600);
    assert_eq!((own.side, own.stage), (Place::Near, Stage::Port));
    let action = own.advice[0].text();
    assert!(action.contains("tc qdisc replace dev eth0 root fq_codel"), "{action}");
    let mut m = with_own(30_000);
    base(&mut m).shapers = Some(vec![Shaping {
        subject: "eth0 htb 1:10".into(),
        rate: Some(Rate(50_000_000)),
        flow_rate: None,
        frame: 14.0,
        waiting: None,
        held: None,
    }]);
    let action = of_latency(&m).remove(0).advice.remove(0).text();
    assert!(action.contains("root cake bandwidth 50000000bit"), "the rate stays: {action}");
}

#[test]
fn a_queue_on_the_way_is_kept_short_by_a_shaper_below_its_rate_or_by_bbr() {
    let mut m = queued();
    m.hosts[0].facts.port = Some(Port { name: "ens3".into(), ..Port::default() });
    m.hosts[0].facts.congestion_available = vec!["bbr".into(), "cubic".into()];
    let limit = of_latency(&m).remove(0);
    assert_eq!((limit.side, limit.stage), (Place::Path, Stage::Net));
    let actions: Vec<String> =
        limit.advice.iter().map(linerate_facts::advice::Advice::text).collect();
    // 1 Gb/s of payload x 1500/1448 for the headers x 0.95 is 984 Mb/s.
    assert!(actions[0].contains("dev ens3 root cake bandwidth 984116kbit"), "{actions:?}");
    assert!(actions[1].ends_with("tcp_congestion_control=bbr"));
    assert!(limit.advice[1].undo_text().ends_with("tcp_congestion_control=cubic"));
    assert!(limit.advice.iter().all(|a| !a.undo_text().is_empty()));
    assert_eq!(limit.advice[0].needs(), ["kernel module sch_cake"]);
    assert_eq!(limit.advice[1].needs(), ["kernel module tcp_bbr"]);
    // If others use a part of the path, the goodput of this load is not the path's rate.
    for (share, advised) in [(0.19, 2), (0.21, 1)] {
        let side = Side::Far;
        base(&mut m).foreign = Some(Foreign { side, share });
        assert_eq!(of_latency(&m).remove(0).advice.len(), advised, "{share}");
    }
}

#[test]
fn few_long_round_trips_say_at_least_how_long_they_are() {
    let few = |samples, least| {
        let mut m = queued();
        base(&mut m).latency = Some(Latency { percentiles: Vec::new(), samples, least });
        (outcome(&m, "latency-queue"), judge(&m))
    };
    let (reported, verdict) = few(6, Nanos::from_millis(30));
    assert_eq!(reported, "enough");
    let limit = verdict.limits.iter().find(|l| l.cause == "latency-queue");
    let words = &limit.unwrap().evidence[0];
    assert!(words.contains("at least 30 ms under load"), "{words}");
    // Five round trips may all be longer than usual; and one short one shows nothing about the others.
    assert_eq!(few(5, Nanos::from_millis(30)).0, "unknown");
    assert_eq!(few(6, Nanos::from_millis(5)).0, "unknown");
}

#[test]
fn too_few_round_trips_are_a_gap_only_where_the_streams_own_are_long() {
    let few = |own: Nanos| {
        let mut m = queued();
        base(&mut m).latency =
            Some(Latency { percentiles: Vec::new(), samples: 5, least: Nanos::from_millis(1) });
        base(&mut m).tcp.rtt = Some(own);
        tried(&mut m, "more-streams", 1.0);
        let unknown = judge(&m).unknown;
        (outcome(&m, "latency-queue"), unknown)
    };
    assert_eq!(few(Nanos::from_millis(5)), ("clear", vec![]));
    let (reported, unknown) = few(Nanos::from_millis(40));
    assert_eq!(reported, "unknown");
    assert!(unknown[0].why.starts_with("5 were timed"), "{unknown:?}");
    let mut untimed = queued();
    base(&mut untimed).latency = None;
    tried(&mut untimed, "more-streams", 1.0);
    assert_eq!(outcome(&untimed, "latency-queue"), "unknown");
    assert_eq!(judge(&untimed).unknown, [], "nobody asked for it");
}

#[test]
fn a_slice_holds_some_round_trips_beside_its_load() {
    let slice = |millis| {
        let mut m = queued();
        base(&mut m).latency = Some(p50(Nanos::from_millis(millis)));
        slice_time(base(&mut m), Some(Factor::Paced))
    };
    assert_eq!(slice(20), Nanos::from_millis(400), "as of all trials");
    assert_eq!(slice(100), Nanos::from_millis(800));
    assert_eq!(slice(500), Nanos::from_secs(1));
}

#[test]
fn a_slice_is_short_only_where_the_rate_varies_little_and_nothing_is_lost() {
    let slice = |samples: usize, deviation: f64, retransmitted| {
        let mut m = queued();
        let load = base(&mut m);
        // The ramp at the start is ignored.
        load.ticks = vec![1e8; samples / 3];
        let around = (samples / 3..samples).map(|k| 1.0 + deviation * (-1_f64).powi(k as i32));
        load.ticks.extend(around.map(|rate| 1e9 * rate));
        load.tcp.retransmitted = retransmitted;
        slice_time(load, Some(Factor::MoreStreams)).0 / 1_000_000
    };
    assert_eq!(slice(12, 0.0, Some(0.0)), 200);
    assert_eq!(slice(12, 0.099, Some(0.0)), 200);
    assert_eq!(slice(12, 0.101, Some(0.0)), 400);
    assert_eq!(slice(11, 0.0, Some(0.0)), 200, "eight samples");
    assert_eq!(slice(10, 0.0, Some(0.0)), 400, "seven");
    assert_eq!(slice(12, 0.0, Some(0.001)), 400);
    assert_eq!(slice(12, 0.0, None), 400);
    let mut marked = queued();
    let load = base(&mut marked);
    (load.ticks, load.tcp.retransmitted) = (vec![1e9; 12], Some(0.0));
    for (share, millis) in [(0.0, 200), (0.001, 400)] {
        load.tcp.marked = Some(share);
        let slice = slice_time(load, Some(Factor::MoreStreams));
        assert_eq!(slice, Nanos::from_millis(millis), "{share} marked");
    }
}

/// A path with a round trip of `idle` microseconds without load, and 100 under load. The far host's CPUs have an idle
/// state that takes `leave` microseconds to wake from.
fn rested(idle: u64, leave: u64) -> Model {
    let mut m = queued();
    m.idle = Some(p50(Nanos::from_micros(idle)));
    let beside = Nanos::from_micros(100);
    (base(&mut m).latency, base(&mut m).tcp.rtt) = (Some(p50(beside)), Some(beside));
    m.hosts[0].facts.idle_states = Some(Vec::new());
    let state = |name: &str, latency, disabled| IdleState {
        name: name.into(),
        latency: Nanos::from_micros(latency),
        disabled,
    };
    let states = [state("C1", 2, false), state("C6", leave, false), state("C8", 900, true)];
    m.hosts[1].facts.idle_states = Some(states.to_vec());
    m
}

#[test]
fn an_idle_path_that_is_slower_than_a_loaded_one_waits_for_cpus_that_rest() {
    for (idle, leave, answer) in [
        (125, 200, "clear"),
        (135, 200, "enough"),
        // The threshold is half of the time that the idle path takes more.
        (200, 49, "clear"),
        (200, 51, "enough"),
    ] {
        let m = rested(idle, leave);
        assert_eq!(outcome(&m, "latency-idle-states"), answer, "{idle} {leave}");
    }
    let mut m = rested(200, 133);
    let verdict = judge(&m);
    let limit = verdict.limits.iter().find(|l| l.cause == "latency-idle-states");
    let limit = limit.expect("named");
    assert_eq!((limit.side, limit.metric), (Place::Far, Measure::Latency));
    assert!(limit.evidence[1].contains("C6"), "the deepest that is not off");
    let [advice] = &limit.advice[..] else {
        panic!("near has none to switch off: {limit:?}");
    };
    assert_eq!(advice.text(), "on far: sudo cpupower idle-set -D 20");
    assert!(
        advice.undo_text().ends_with("; sudo cpupower idle-set -d 2"),
        "{}",
        advice.undo_text()
    );
    m.hosts[1].facts.idle_states = None;
    assert_eq!(outcome(&m, "latency-idle-states"), "unknown");
}

/// An idle path of 100 us, whose far card delays interrupts by this many microseconds.
fn held_back(micros: u32, adapts: bool) -> Model {
    let mut m = queued();
    m.idle = Some(p50(Nanos::from_micros(100)));
    let beside = Nanos::from_micros(100);
    (base(&mut m).latency, base(&mut m).tcp.rtt) = (Some(p50(beside)), Some(beside));
    for (host, micros) in m.hosts.iter_mut().zip([0, micros]) {
        let mut route = path::route(10);
        route.ports[0].coalesce = Some(Coalesce {
            rx_usecs: Some(micros),
            adaptive_rx: Some(adapts),
            ..Coalesce::default()
        });
        host.facts.route = Some(route);
    }
    m
}

#[test]
fn interrupts_that_are_held_back_make_up_a_share_of_a_short_round_trip() {
    for (micros, adapts, answer) in
        [(29, false, "clear"), (31, false, "suspect"), (51, false, "enough"), (51, true, "clear")]
    {
        let m = held_back(micros, adapts);
        assert_eq!(outcome(&m, "latency-interrupts"), answer, "{micros}");
    }
    let mut m = held_back(60, false);
    let verdict = judge(&m);
    let limit = verdict.limits.iter().find(|l| l.cause == "latency-interrupts");
    let limit = limit.expect("named");
    assert_eq!((limit.side, limit.stage), (Place::Far, Stage::Port));
    assert_eq!(limit.advice.len(), 1, "the near one holds nothing back");
    let undo = &limit.advice[0].undo_text();
    assert!(undo.ends_with("rx-usecs 60"), "{undo}");
    m.hosts[1].facts.route = Some(path::route(10));
    assert_eq!(outcome(&m, "latency-interrupts"), "unknown");
}
