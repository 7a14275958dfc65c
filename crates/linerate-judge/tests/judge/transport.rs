//! Tests of which causes and factors apply to which transport.

use std::fmt::Write;

use linerate_judge::causes::CAUSES;
use linerate_plan::factor::TRIALS;
use linerate_plan::transport::{Feature, RING, Setting, TRANSPORTS};

use super::*;

/// A load of an unknown transport, without any counters.
fn other() -> Load {
    Load {
        transport: &OTHER,
        tcp: TcpShares::default(),
        unread: None,
        behind: None,
        caught_up: None,
        recv_memory: None,
        ..load()
    }
}

/// All transports, and one that this version does not know.
fn all() -> impl Iterator<Item = (&'static TransportInfo, &'static str)> {
    let known = TRANSPORTS.iter().map(|info| (*info, info.name));
    known.chain([(&OTHER, "another transport")])
}

/// Why a cause does not apply to transports that lack this feature.
const fn reason(needed: Feature) -> &'static str {
    match needed {
        Feature::Port => "it is about a port, which bytes in memory do not pass",
        Feature::Card => "it is about a network port and its slot",
        Feature::Stack => "it is about packets of the kernel's network stack",
        Feature::Connections => {
            "it is about windows, retransmissions or congestion control of connections"
        }
        Feature::Datagrams => {
            "it is about datagrams, which have no congestion control and no retransmissions"
        }
        Feature::Verbs => "it is about requests to an RDMA device",
        Feature::Operations => "it is about operations in flight",
        Feature::Disk => "it is about files and disks",
        Feature::Memory | Feature::Redial => "no cause is about it alone",
    }
}

#[test]
fn golden_of_causes_by_transport() {
    let mut table = String::new();
    for cause in CAUSES {
        let others = all().filter(|(transport, _)| !transport.has_all(cause.needs));
        let out: Vec<&str> = others.map(|(_, name)| name).collect();
        let words = if out.is_empty() {
            "all".to_owned()
        } else {
            let reasons: Vec<&str> = cause.needs.iter().copied().map(reason).collect();
            format!("not {}: {}", out.join(", "), reasons.join("; "))
        };
        writeln!(table, "{:<20} {words}", cause.id).expect("a string");
    }
    insta::assert_snapshot!("causes_by_transport", table);
}

#[test]
fn each_cause_that_applies_is_heard_and_no_other() {
    for (transport, name) in all() {
        let base = Load { transport, ..load() };
        let answers = judge(&model(base)).answers;
        for cause in CAUSES {
            let heard = answers.iter().any(|answer| answer.cause == cause.id);
            let applies = transport.has_all(cause.needs);
            assert_eq!(heard, applies, "{} of {name}", cause.id);
        }
    }
}

#[test]
fn trials_change_only_what_a_transport_has() {
    let m = model(other());
    for kind in TRIALS {
        let proposed = propose(kind, &m, Direction::Forward, 0).is_some();
        let applies = OTHER.has_all(kind.factor.needs());
        assert!(!proposed || applies, "{}", kind.id);
    }
}

#[test]
fn of_an_unknown_transport_nothing_is_named_that_is_of_sockets() {
    let verdict = judge(&model(other()));
    assert!(verdict.limits.is_empty(), "{:?}", verdict.limits);
    let words = format!("{:?}", verdict.unknown);
    assert!(!words.contains("tcp"), "{words}");
}

/// A load of operations by threads that poll: `depth` are in flight, each takes `loaded`, and a single one takes 20 us.
fn operations(depth: u32, loaded: Nanos) -> Model {
    let timed =
        |time: Nanos| Latency { percentiles: vec![(50.0, time)], samples: 10_000, least: time };
    let knobs = Knobs { depth, busy_poll: true, ..Knobs::default() };
    let base = Load {
        knobs,
        goodput: steady(4e9),
        senders: vec![thread(1.0)],
        receivers: vec![thread(1.0)],
        latency: Some(timed(loaded)),
        ..other()
    };
    let mut m = model(base);
    m.idle = Some(timed(Nanos::from_micros(20)));
    m
}

#[test]
fn too_few_operations_in_flight_are_proved_by_more_of_them() {
    let mut m = operations(4, Nanos::from_micros(21));
    let limits = judge(&m).limits;
    assert_eq!(limits.len(), 1, "{limits:?}");
    assert_eq!(limits[0].cause, "queue-depth");
    let next = next_trial(&m, Direction::Forward, 0).expect("a trial");
    assert_eq!(next.kind, "more-depth");
    assert_eq!((next.before.depth, next.after.depth), (4, 8));
    tried(&mut m, "more-depth", 1.9);
    let limit = judge(&m).limits.remove(0);
    assert_eq!((limit.cause, limit.certainty), ("queue-depth", Certainty::Proved));
    let excluded = limit.trial.expect("the trial").excluded;
    assert!(excluded.contains(&"sender-core"), "{excluded:?}");
}

#[test]
fn operations_that_queue_for_something_else_are_not_too_few() {
    for (micros, expected) in [(23, "enough"), (25, "suspect"), (39, "suspect"), (41, "clear")] {
        let m = operations(4, Nanos::from_micros(micros));
        assert_eq!(outcome(&m, "queue-depth"), expected, "{micros}");
    }
    assert_eq!(outcome(&operations(0, Nanos::from_micros(20)), "queue-depth"), "clear");
    let mut m = operations(4, Nanos::from_micros(20));
    m.idle = None;
    assert_eq!(outcome(&m, "queue-depth"), "unknown");
    // Twice as many operations in flight carried no more.
    let mut m = operations(4, Nanos::from_micros(25));
    tried(&mut m, "more-depth", 1.0);
    assert!(judge(&m).limits.is_empty(), "{:?}", judge(&m).limits);
}

#[test]
fn a_thread_that_polls_is_not_out_of_time_by_that() {
    for (polls, expected) in [(true, "suspect"), (false, "enough")] {
        let mut m = operations(64, Nanos::from_micros(200));
        m.directions[0].base.knobs.busy_poll = polls;
        assert_eq!(outcome(&m, "sender-core"), expected);
        let named = judge(&m).limits.iter().any(|l| l.cause.ends_with("-core"));
        assert_eq!(named, !polls);
    }
}

/// A load through shared memory, whose threads need these shares of their CPUs.
fn shared(sender: f64, receiver: f64) -> Model {
    model(Load {
        transport: &SHM,
        goodput: steady(8e9),
        senders: vec![thread(sender)],
        receivers: vec![thread(receiver)],
        packets: None,
        ..other()
    })
}

#[test]
fn a_slow_reader_of_shared_memory_is_named_and_proved_by_more_work() {
    for (busy, expected) in [(0.97, vec!["receiver-core"]), (0.9, vec![]), (0.5, vec![])] {
        let named = judge(&shared(0.4, busy)).limits;
        let named: Vec<&str> = named.iter().map(|limit| limit.cause).collect();
        assert_eq!(named, expected, "{busy}");
    }
    let mut m = shared(0.4, 0.97);
    let next = next_trial(&m, Direction::Forward, 0).expect("a trial");
    assert_eq!(next.kind, "receiver-work");
    tried(&mut m, "receiver-work", 0.8);
    let limit = judge(&m).limits.remove(0);
    assert_eq!((limit.cause, limit.certainty), ("receiver-core", Certainty::Proved));
    // More work in the receiver changed nothing, and the sender has time left: no limit is named.
    let mut m = shared(0.4, 0.97);
    tried(&mut m, "receiver-work", 1.0);
    assert!(judge(&m).limits.is_empty(), "{:?}", judge(&m).limits);
}

#[test]
fn threads_of_shared_memory_with_time_to_spare_are_no_limit() {
    let verdict = judge(&shared(0.5, 0.5));
    assert!(verdict.limits.is_empty(), "{:?}", verdict.limits);
    assert!(!verdict.unknown.is_empty());
}

/// A load of `shared` at `gbits` Gb/s, on hosts with a last-level cache of this many KiB.
fn through_memory(gbits: f64, busy: f64, cache: Option<u64>) -> Model {
    let mut m = shared(0.4, busy);
    m.directions[0].base.goodput = steady(gbits * 1e9);
    for host in &mut m.hosts {
        host.facts.last_cache = cache.map(|kib| Bytes(kib << 10));
    }
    m
}

#[test]
fn memory_that_is_shared_needs_channels_unless_it_fits_into_the_last_cache() {
    let says = |m: &Model| outcome(m, "memory-bandwidth");
    // A ring of 4 MiB and a buffer of 1 MiB at each end must fit into the cache.
    for (kib, expected) in
        [(Some(6 * 1024), "clear"), (Some(6 * 1024 - 1), "unknown"), (None, "unknown")]
    {
        let m = through_memory(40.0, 0.97, kib);
        assert_eq!(says(&m), expected, "{kib:?}");
        let answers = judge(&m).answers;
        let answer = answers.iter().find(|a| a.cause == "memory-bandwidth");
        let why = answer.expect("an answer").why.join("; ");
        assert!(!why.contains("card"), "{why}");
    }
    // If memory may be the limit, more work of a thread proves nothing.
    let proved = |kib| {
        let mut m = through_memory(11.5, 0.97, kib);
        tried(&mut m, "receiver-work", 0.8);
        let limits = judge(&m).limits;
        limits.iter().any(|l| l.certainty == Certainty::Proved)
    };
    assert_eq!((proved(Some(6 * 1024)), proved(None)), (true, false));
    let sized = |change: fn(&mut Load)| {
        let mut m = through_memory(40.0, 0.97, Some(6 * 1024));
        change(&mut m.directions[0].base);
        says(&m)
    };
    assert_eq!(sized(|l| l.streams = 2), "unknown");
    assert_eq!(sized(|l| l.knobs.read_size = Bytes((1 << 20) + 1)), "unknown");
    assert_eq!(sized(|l| l.knobs.write_size = Bytes(u64::MAX)), "unknown");
    let mut m = through_memory(40.0, 0.97, Some(3 * 1024));
    m.directions[0].base.knobs.options.set(RING.key, Setting::Number(1 << 20));
    assert_eq!(says(&m), "clear");
    // A thread with time left does not wait for memory; and a low rate does not fill even the slowest channel.
    assert_eq!(says(&through_memory(40.0, 0.5, None)), "clear");
    assert_eq!(says(&through_memory(11.3, 0.97, None)), "clear");
    assert_eq!(says(&through_memory(11.5, 0.97, None)), "unknown");
}

#[test]
fn a_path_through_shared_memory_has_no_port() {
    let stages = linerate_judge::model::stages(&shared(0.5, 0.5));
    let drawn: Vec<_> = stages.iter().map(|stage| stage.stage.name()).collect();
    assert_eq!(drawn, ["app", "cpu", "memory", "memory", "cpu", "app"]);
    let m = shared(0.5, 0.5);
    assert!(m.directions[0].base.packets.is_none());
    let tcp = linerate_judge::model::stages(&model(load()));
    assert!(tcp.iter().any(|stage| stage.stage.name() == "port"));
}
