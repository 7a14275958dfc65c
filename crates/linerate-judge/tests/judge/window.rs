//! Tests of limits on the data in flight: windows and buffers, and what keeps them small.

use linerate_judge::model::SocketMemory;

use super::proof::more_streams_prove_the_path;
use super::*;

#[test]
fn a_congestion_window_that_stands_still_is_clamped_at_the_sender_and_no_cap_of_a_flow() {
    let judged = |stood: bool, congestion: &str| {
        let mut base = load();
        base.tcp.rtt = UNQUEUED;
        base.tcp.cwnd_stood = stood.then_some(Bytes(28_960));
        base.made.sender.congestion = congestion.to_owned();
        let mut m = model(base);
        m.directions[0].sweep[0].goodput.mean = 2e9;
        tried(&mut m, "more-streams", 2.0);
        judge(&m).limits.first().cloned()
    };
    let limit = judged(true, "cubic").expect("it is proved");
    assert_eq!((limit.cause, limit.side), ("congestion-control", Place::Near));
    assert_eq!(limit.certainty, Certainty::Proved);
    assert!(limit.advice[0].what.contains("cwnd lock"), "{limit:?}");
    // Rate-based congestion control may keep its window constant; and a window that moves, or is unknown, proves
    // nothing.
    for (stood, congestion) in [(true, "bbr"), (true, "vegas"), (false, "cubic")] {
        let limit = judged(stood, congestion);
        assert!(limit.is_none(), "a cap of the flow looks the same: {limit:?}");
    }
}

#[test]
fn a_window_that_somebody_on_the_way_offers_is_not_the_far_ends() {
    let judged = |micros| {
        let mut m = model(held_by_window());
        m.idle = m.idle.map(|idle| Latency { least: Nanos::from_micros(micros), ..idle });
        tried(&mut m, "more-streams", 1.9);
        let verdict = judge(&m);
        let unknown = verdict.unknown.iter().any(|u| u.why.contains("a proxy"));
        (verdict.limits.first().map(|l| l.cause), unknown)
    };
    // A round trip of an acknowledgement takes 100 us.
    assert_eq!(judged(2_099), (Some("receive-window"), false));
    assert_eq!(judged(2_101), (None, true));
}

#[test]
fn an_answer_that_does_not_fit_a_window_shows_no_relay() {
    // An answer takes twice as long as an acknowledgement.
    let at = |window| {
        let mut base = held_by_window();
        (base.tcp.min_rtt, base.tcp.rtt) =
            (Some(Nanos::from_millis(40)), Some(Nanos::from_millis(40)));
        base.tcp.window = Some(Bytes(window));
        let mut m = model(base);
        let idle = m.idle.as_mut().expect("timed");
        idle.least = Nanos::from_micros(80_300);
        idle.percentiles = vec![(50.0, idle.least)];
        outcome(&m, "receive-window")
    };
    assert_eq!(at(63), "enough");
    assert_eq!((at(64), at(1 << 16)), ("unknown", "unknown"));
    assert_eq!(at(0), "unknown", "a relay that is full");
}

/// A load with a window that is full nearly all the time, on a path of 10 ms; under load the round trip is `times` as
/// long.
fn window_beside_a_queue(times: f64) -> Model {
    let mut base = held_by_window();
    base.tcp.rtt = Some(Nanos((1e7 * times) as u64));
    base.tcp.min_rtt = Some(Nanos::from_millis(10));
    let mut m = model(base);
    m.idle.as_mut().expect("timed").percentiles = vec![(50.0, Nanos::from_millis(10))];
    m
}

#[test]
fn a_window_that_holds_more_than_the_path_needs_a_trial_that_half_of_it_is_none_of() {
    for (times, answer, proves) in [(1.15, "enough", true), (1.25, "suspect", false)] {
        let m = window_beside_a_queue(times);
        assert_eq!(outcome(&m, "receive-window"), answer, "x{times}");
        for (id, trial) in [("receive-window", "half-window"), ("send-buffer", "half-send-buffer")]
        {
            let plan = propose(kind(trial).expect("a kind"), &m, Direction::Forward, 0);
            let plan = plan.expect("it can be tried");
            let about = cause(id).expect("a cause").is_about(&m, &plan);
            assert_eq!(about, proves, "{id} x{times}");
        }
    }
}

#[test]
fn beside_a_queue_a_larger_window_that_gained_for_sure_leaves_no_doubt_that_this_one_was_small() {
    let at = |low, mid| {
        let mut m = window_beside_a_queue(1.25);
        tried(&mut m, "larger-window", mid);
        let effect = m.trials[0].effect.as_mut().expect("it was measured");
        effect.low = low;
        outcome(&m, "receive-window")
    };
    assert_eq!(at(1.01, 1.08), "enough");
    assert_eq!(at(0.99, 1.08), "suspect");
    assert_eq!(at(1.01, 1.03), "suspect");
}

#[test]
fn more_streams_that_gain_nothing_from_windows_of_their_own_show_the_rate() {
    let at = |ratio| {
        let mut m = window_beside_a_queue(1.25);
        tried(&mut m, "more-streams", ratio);
        judge(&m).limits.first().map(|l| (l.cause, l.certainty))
    };
    assert_eq!(at(1.0), Some(("path-rate", Certainty::Proved)));
    assert_eq!(at(1.9), Some(("receive-window", Certainty::Proved)));
}

#[test]
fn more_streams_that_take_more_of_a_queue_from_others_prove_no_window() {
    let at = |times| {
        let mut m = window_beside_a_queue(times);
        tried(&mut m, "more-streams", 1.11);
        judge(&m).limits.first().map(|l| (l.cause, l.certainty))
    };
    assert_eq!(at(1.9), Some(("receive-window", Certainty::Proved)));
    assert_eq!(at(2.1), None, "most of what is in flight stands in it");
}

#[test]
fn where_no_larger_buffer_is_permitted_more_streams_prove_the_window() {
    let mut m = model(held_by_window());
    m.hosts[1].facts.buffers.rmem_max = Some(512 * 1024);
    let next = next_trial(&m, Direction::Forward, 0).expect("something to try");
    assert_eq!(next.kind, "more-streams");
    tried(&mut m, "more-streams", 1.9);
    let limit = &judge(&m).limits[0];
    assert_eq!((limit.cause, limit.side), ("receive-window", Place::Far));
    assert_eq!(limit.certainty, Certainty::Proved);
}

#[test]
fn a_window_that_a_larger_buffer_leaves_as_it_was_is_clamped_elsewhere() {
    let base = held_by_window();
    let judged = |window, memory| {
        let mut m = model(base.clone());
        tried(&mut m, "larger-window", 1.0);
        let mut changed = base.clone();
        changed.tcp.window = Some(Bytes(window));
        changed.recv_memory = Some(Bytes(memory));
        (m.trials[0].effect, m.trials[0].changed) = (None, Some(changed));
        tried(&mut m, "more-streams", 2.0);
        judge(&m).limits[0].clone()
    };
    // The window of 4 MiB did not grow, although the buffer is larger than 1 MiB. A buffer that the host refused proves
    // nothing.
    for (window, memory, clamped) in
        [(4 << 20, 2 << 20, true), (5 << 20, 2 << 20, false), (4 << 20, 1 << 20, false)]
    {
        let limit = judged(window, memory);
        assert_eq!(limit.cause, "receive-window");
        assert_eq!(limit.certainty, Certainty::Proved);
        let reported = limit.advice.iter().any(|a| a.what.contains("what limits the window"));
        assert_eq!(reported, clamped, "{:?}", limit.advice);
    }
}

#[test]
fn a_window_that_is_not_scaled_is_not_mended_by_a_buffer() {
    let judged = |scaled| {
        let mut base = held_by_window();
        base.tcp.window_scaling = Some(scaled);
        let m = model(base);
        let trial = next_trial(&m, Direction::Forward, 0).expect("a trial");
        (trial.kind, judge(&m).limits[0].clone())
    };
    let (trial, limit) = judged(true);
    assert_eq!(trial, "larger-window");
    assert!(limit.advice[0].text().contains("tcp_rmem"), "{limit:?}");
    let (trial, limit) = judged(false);
    assert_ne!(trial, "larger-window");
    assert_eq!(limit.cause, "receive-window");
    assert!(limit.advice[0].text().contains("tcp_window_scaling=1"));
    assert!(limit.evidence.iter().any(|e| e.contains("none exceeds 64 KiB")));
}

#[test]
fn a_larger_buffer_that_gains_proves_the_window_and_says_what_to_set() {
    let mut m = model(held_by_window());
    assert_eq!(next_trial(&m, Direction::Forward, 0).expect("a trial").kind, "larger-window");
    tried(&mut m, "larger-window", 3.8);
    let limit = &judge(&m).limits[0];
    assert_eq!((limit.cause, limit.certainty), ("receive-window", Certainty::Proved));
    assert_eq!(limit.advice[0].gain, Some(3.8));
    assert!(limit.advice[0].text().contains("tcp_rmem=\"4096 131072 4194304\""));
    assert!(limit.advice[0].undo_text().contains("1048576"));
}

#[test]
fn a_buffer_full_of_what_stands_in_a_queue_leaves_the_path_in_play() {
    let full = |rtt: u64| {
        let mut base = load();
        base.tcp.network = Some(0.05);
        base.tcp.sndbuf_limited = Some(0.95);
        base.tcp.rtt = Some(Nanos::from_micros(rtt));
        model(base)
    };
    // The idle round trip is 100 us: the thresholds are twice that, and 200 us more.
    for (rtt, path, buffer) in [(290, "clear", "enough"), (310, "enough", "suspect")] {
        let m = full(rtt);
        assert_eq!(outcome(&m, "path-rate"), path, "{rtt} us");
        assert_eq!(outcome(&m, "send-buffer"), buffer, "{rtt} us");
    }
    more_streams_prove_the_path(full(5_000));
}

#[test]
fn a_window_a_little_larger_than_the_path_gives_way_to_the_path_once_it_was_lifted() {
    let full = || {
        let mut base = load();
        base.tcp.network = Some(0.0);
        base.tcp.rwnd_limited = Some(1.0);
        base.tcp.rtt = UNQUEUED;
        model(base)
    };
    let m = full();
    assert_eq!(outcome(&m, "path-rate"), "clear");
    assert_eq!(outcome(&m, "receive-window"), "enough");
    // Each effect has an interval of one per cent to either side. A window that limits gains at least 1.05.
    for (ratio, path) in [(1.0, "enough"), (1.03, "enough"), (1.05, "clear"), (0.8, "clear")] {
        let mut m = full();
        tried(&mut m, "larger-window", ratio);
        assert_eq!(outcome(&m, "path-rate"), path, "x{ratio}");
    }
    let mut m = full();
    tried(&mut m, "larger-window", 1.0);
    more_streams_prove_the_path(m);
}

/// A load that a window limited, and that a larger window left unchanged; `change` sets what limited the load then.
fn lifted_to(mut base: Load, change: impl FnOnce(&mut Load)) -> Model {
    let tcp = &mut base.tcp;
    (tcp.rwnd_limited, tcp.network, tcp.rtt) = (Some(0.9), Some(0.1), UNQUEUED);
    let mut changed = base.clone();
    change(&mut changed);
    let mut m = model(base);
    tried(&mut m, "larger-window", 1.0);
    m.trials[0].changed = Some(changed);
    m
}

#[test]
fn a_buffer_of_the_size_of_the_window_is_no_cap_of_the_path() {
    let held = |network: f64| {
        let m = lifted_to(load(), |load| {
            let tcp = &mut load.tcp;
            (tcp.rwnd_limited, tcp.sndbuf_limited) = (Some(0.0), Some(1.0 - network));
            tcp.network = Some(network);
        });
        outcome(&m, "flow-rate-cap")
    };
    // With the larger window, the send buffer or the network limits the sender.
    assert_eq!(held(0.1), "clear");
    assert_eq!(held(0.9), "suspect");
    // The share that the network limited before is not counted again.
    let m = lifted_to(load(), |load| load.tcp.network = Some(0.39));
    assert_eq!(outcome(&m, "path-rate"), "clear");
    let m = lifted_to(load(), |load| load.tcp.network = Some(0.6));
    assert_eq!(outcome(&m, "path-rate"), "enough");
}

#[test]
fn a_larger_window_that_fills_a_queue_leaves_the_path_in_play() {
    let queued = |times: u64| {
        let m = lifted_to(load(), |load| {
            let rtt = load.tcp.rtt.unwrap().0 * times;
            load.tcp.rtt = Some(Nanos(rtt));
        });
        outcome(&m, "path-rate")
    };
    assert_eq!(queued(1), "clear");
    assert_eq!(queued(4), "enough");
}

#[test]
fn a_reader_that_a_small_window_hides_is_seen_in_a_larger_one() {
    let read = |unread: f64| {
        let mut base = load();
        base.tcp.in_flight = Some(Bytes(1_000_000));
        (base.unread, base.behind) = (Some(100_000.0), Some(0.0));
        let m = lifted_to(base, |load| load.unread = Some(unread));
        (outcome(&m, "receiver-app"), outcome(&m, "flow-rate-cap"))
    };
    assert_eq!(read(3_000_000.0), ("enough", "clear"));
    assert_eq!(read(100_000.0), ("clear", "clear"));
}

#[test]
fn a_send_buffer_below_a_group_of_segments_takes_one_all_the_same() {
    let requested = |id: &str, memory: u64| {
        let mut base = load();
        base.tcp.send_memory = Some(Bytes(memory));
        base.tcp.in_flight = Some(Bytes(64_000));
        let plan = propose(kind(id)?, &model(base), Direction::Forward, 0);
        Some(plan?.after.send_buffer?.0)
    };
    assert_eq!(requested("larger-send-buffer", 16_384), Some(128_000));
    assert_eq!(requested("larger-send-buffer", 80_000), Some(160_000));
    // The threshold is half of four groups of 64 KiB.
    assert_eq!(requested("half-send-buffer", 262_143), None);
    assert_eq!(requested("half-send-buffer", 262_144), Some(65_536));
}

/// A limit of 1 MiB on memory for TCP, of which `used` bytes are in use, and which was reached `refused` times per
/// second.
fn limit_of(name: &str, refused: f64, used: u64) -> SocketMemory {
    SocketMemory {
        limit: name.to_owned(),
        most: Some(Bytes(1 << 20)),
        used: Bytes(used),
        ever: None,
        pressed: None,
        refused,
    }
}

const TCP_OF_GROUP: &str = "/sys/fs/cgroup/memory/a/memory.kmem.tcp.limit_in_bytes";
const ALL_OF_GROUP: &str = "/sys/fs/cgroup/a/memory.max";
const SYSTEM: &str = "net.ipv4.tcp_mem";

/// The outcomes of `socket-memory` and `receive-window` if the receiver has this limit.
fn with_limit(limit: SocketMemory) -> [&'static str; 2] {
    let mut base = held_by_window();
    base.socket_memory.receiver = Some(vec![limit]);
    let m = model(base);
    ["socket-memory", "receive-window"].map(|id| outcome(&m, id))
}

#[test]
fn a_container_does_not_see_how_much_memory_tcp_may_use() {
    let unseen = |refused| {
        let limit = SocketMemory { most: None, ..limit_of(SYSTEM, refused, 4096) };
        with_limit(limit)[0]
    };
    assert_eq!((unseen(1.0), unseen(0.0)), ("unknown", "clear"));
}

#[test]
fn memory_that_is_short_since_before_the_load_clamps_a_window() {
    let saving = |share, refused| {
        let limit = SocketMemory {
            most: None,
            pressed: Some(share),
            ..limit_of(SYSTEM, refused, 41 << 20)
        };
        with_limit(limit)
    };
    assert_eq!(saving(0.5, 0.0), ["enough", "clear"]);
    assert_eq!(saving(0.5, 1.0), ["enough", "clear"]);
    assert_eq!(saving(0.49, 0.0), ["clear", "enough"]);
    assert_eq!(saving(0.49, 1.0)[0], "unknown");
}

#[test]
fn a_window_is_clamped_where_the_memory_for_tcp_is_used_up() {
    let group = |refused, used| with_limit(limit_of(TCP_OF_GROUP, refused, used));
    assert_eq!(group(1.01, 0), ["enough", "clear"]);
    assert_eq!(group(0.99, 0), ["clear", "enough"]);
    assert_eq!(group(0.0, 997_000), ["enough", "clear"]);
    assert_eq!(group(0.0, 995_000), ["clear", "enough"]);
    // The limit was reached once before. Only queues that are pruned now show that it is reached again.
    let once = |ever, pruned| {
        let mut base = held_by_window();
        let limit = SocketMemory { ever: Some(Bytes(ever)), ..limit_of(TCP_OF_GROUP, 0.0, 4096) };
        base.socket_memory.receiver = Some(vec![limit]);
        base.netstat.receiver.pruned = pruned;
        outcome(&model(base), "socket-memory")
    };
    assert_eq!(once(768 << 10, Some(0.5)), "enough");
    assert_eq!(once((768 << 10) - 1, Some(0.5)), "clear");
    assert_eq!((once(1 << 20, Some(0.0)), once(1 << 20, None)), ("clear", "clear"));
    // The limit on all memory of a group may be reached by cached files.
    let all = |refused| with_limit(limit_of(ALL_OF_GROUP, refused, 1 << 20));
    assert_eq!((all(1.01), all(0.99)), (["suspect", "enough"], ["clear", "enough"]));
    let system = |refused, used| with_limit(limit_of(SYSTEM, refused, used));
    assert_eq!(system(0.0, 1 << 20), ["enough", "clear"]);
    assert_eq!(system(0.0, (1 << 20) - 1), ["clear", "enough"]);
    // The system is under memory pressure at times, and half of the memory is in use: another program may have used the
    // rest for a moment.
    assert_eq!(system(0.1, 512 << 10), ["enough", "clear"]);
    assert_eq!(system(0.1, (512 << 10) - 1), ["clear", "enough"]);
    // Segments that the receiver drops for lack of memory are retransmitted.
    let retransmits = |retransmitted, pruned| {
        let mut base = load();
        (base.tcp.retransmitted, base.tcp.rtt) = (Some(retransmitted), UNQUEUED);
        base.netstat.receiver.pruned = Some(pruned);
        base.socket_memory.receiver = Some(vec![limit_of(TCP_OF_GROUP, 9.0, 1 << 20)]);
        outcome(&model(base), "socket-memory")
    };
    assert_eq!(retransmits(0.001, 1.0), "enough");
    assert_eq!((retransmits(0.0004, 1.0), retransmits(0.001, 0.0)), ("clear", "clear"));
    // No window or buffer limits this load, so the memory does not matter.
    let mut base = load();
    base.socket_memory.receiver = Some(vec![limit_of(TCP_OF_GROUP, 9.0, 1 << 20)]);
    assert_eq!(outcome(&model(base), "socket-memory"), "clear");
    let unread = model(held_by_window());
    assert_eq!(outcome(&unread, "socket-memory"), "unknown");
    assert_eq!(outcome(&unread, "receive-window"), "enough");
}

#[test]
fn the_limit_of_a_group_is_named_with_its_file_and_no_buffer_is_advised() {
    let advised = |base: Load| {
        let limits = judge(&model(base)).limits;
        let steps = limits.iter().flat_map(|limit| &limit.advice);
        let steps = steps.flat_map(|advice| advice.steps.iter().chain(&advice.undo));
        let steps = steps.map(|step| (step.host, step.command.clone())).collect::<Vec<_>>();
        (limits[0].cause, limits[0].side, steps)
    };
    let set = |side, bytes: u64| (Some(side), format!("echo {bytes} | sudo tee {TCP_OF_GROUP}"));
    let limits = || Some(vec![limit_of(TCP_OF_GROUP, 400.0, 2 << 20)]);
    let mut base = held_by_window();
    base.socket_memory.receiver = limits();
    let steps = |side| vec![set(side, 64 << 20), set(side, 1 << 20)];
    let found = ("socket-memory", Place::Far, steps(Side::Far));
    assert_eq!(advised(base), found);
    // The limit is the sender's, if the send buffer limits the load.
    let mut base = held_by_window();
    std::mem::swap(&mut base.tcp.rwnd_limited, &mut base.tcp.sndbuf_limited);
    base.socket_memory = [limits(), Some(Vec::new())].into();
    assert_eq!(outcome(&model(base.clone()), "send-buffer"), "clear");
    let found = ("socket-memory", Place::Near, steps(Side::Near));
    assert_eq!(advised(base), found);
}

#[test]
fn a_larger_window_that_gains_shows_that_memory_was_left() {
    let mut base = held_by_window();
    base.socket_memory.receiver = Some(vec![limit_of(TCP_OF_GROUP, 400.0, 2 << 20)]);
    let mut m = model(base);
    tried(&mut m, "larger-window", 2.0);
    let limit = &judge(&m).limits[0];
    assert_eq!((limit.cause, limit.certainty), ("receive-window", Certainty::Proved));
}

#[test]
fn data_that_nobody_reads_is_the_reader_s_and_no_lack_of_memory() {
    let mut base = held_by_window();
    base.socket_memory.receiver = Some(vec![limit_of(TCP_OF_GROUP, 400.0, 2 << 20)]);
    base.unread = Some(1e6);
    let m = model(base);
    let reported = ["socket-memory", "receiver-app"].map(|id| outcome(&m, id));
    assert_eq!(reported, ["clear", "enough"]);
}

#[test]
fn segments_that_the_receiver_has_no_memory_for_are_not_lost_on_the_way() {
    let at = |dropped| {
        let mut m = loss::held_by_loss(2.0);
        let base = &mut m.directions[0].base;
        base.tcp.repeated = Some(6.0);
        base.netstat.receiver.queue_drops = dropped;
        base.socket_memory.receiver = Some(Vec::new());
        ["socket-memory", "path-loss"].map(|id| outcome(&m, id))
    };
    assert_eq!(at(Some(3.1)), ["enough", "clear"]);
    assert_eq!(at(Some(2.9)), ["clear", "suspect"]);
    assert_eq!(at(None), ["clear", "suspect"]);
}
