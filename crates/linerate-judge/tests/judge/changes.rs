//! Tests of trials that change a setting of a host: only where this is allowed, and where no other trial would decide.

use linerate_judge::model::{Local, LocalEvent};
use linerate_judge::trial::next_slice;
use linerate_plan::change::{HostChange, Setting};
use linerate_plan::factor::Factor;
use linerate_record::TrialPlan;

use super::*;

const ALL: [&str; 9] = [
    "tcp-rmem",
    "tcp-wmem",
    "rmem-max",
    "wmem-max",
    "send-offloads",
    "receive-offloads",
    "backlog",
    "queue-bytes",
    "queue-packets",
];

/// A load that the receiver's window limits, on a host that does not let a program request a larger one.
fn windowed() -> Model {
    let mut m = model(held_by_window());
    m.hosts[1].facts.buffers.rmem_max = Some(512 * 1024);
    m
}

fn allowed(mut m: Model, ids: &[&str]) -> Model {
    for host in &mut m.hosts {
        host.facts.changeable = ids.iter().map(|id| (*id).to_owned()).collect();
    }
    m
}

fn proposed(m: &Model, id: &str) -> Option<TrialPlan> {
    propose(kind(id).expect("a known kind"), m, Direction::Forward, 0)
}

#[test]
fn settings_are_tried_only_where_that_was_allowed() {
    let next = |m: &Model| next_trial(m, Direction::Forward, 0).expect("a trial").kind;
    assert_eq!(next(&windowed()), "more-streams");
    assert_eq!(next(&allowed(windowed(), &["tcp-wmem"])), "more-streams");
    assert_eq!(next(&allowed(windowed(), &["tcp-rmem"])), "host-window");
    let plan = proposed(&allowed(windowed(), &ALL), "host-window").expect("a trial");
    let change = HostChange { side: Side::Far, setting: Setting::TcpRmem, value: 4 << 20 };
    assert_eq!((plan.before.host, plan.after.host), (None, Some(change)));
    assert_eq!(plan.after.recv_buffer, None, "autotuning stays on");
    assert_eq!(change.check(), Ok(()));
}

#[test]
fn a_setting_is_left_alone_where_a_socket_may_ask_or_where_it_is_not_the_limit() {
    let with = |rmem_max, tcp_rmem| {
        let mut m = allowed(windowed(), &ALL);
        m.hosts[1].facts.buffers.rmem_max = Some(rmem_max);
        m.hosts[1].facts.buffers.tcp_rmem = Some([4096, 131_072, tcp_rmem]);
        proposed(&m, "host-window").is_some()
    };
    // With a buffer of 1 MiB, half as much again may be requested: 768 KiB, which the kernel doubles.
    assert!(with((768 << 10) - 1, 1 << 20));
    assert!(!with(768 << 10, 1 << 20));
    // The window is at three quarters of the limit, or below.
    assert!(with(512 << 10, (4 << 20) / 3));
    assert!(!with(512 << 10, (4 << 20) / 3 + 2));
}

#[test]
fn a_buffer_that_was_asked_for_needs_the_limit_of_what_may_be_asked() {
    let mut m = allowed(windowed(), &ALL);
    m.directions[0].base.knobs.recv_buffer = Some(Bytes(4 << 20));
    let plan = proposed(&m, "host-window").expect("a trial");
    let change = plan.after.host.expect("a change");
    assert_eq!((change.setting, change.value), (Setting::RmemMax, 2 << 20));
    assert_eq!(plan.after.recv_buffer, Some(Bytes(2 << 20)));
    assert_eq!(plan.before.recv_buffer, Some(Bytes(4 << 20)));
}

#[test]
fn a_raised_limit_that_gains_proves_the_window_and_says_what_to_set() {
    let mut m = allowed(windowed(), &["tcp-rmem"]);
    tried(&mut m, "host-window", 3.6);
    let verdict = judge(&m);
    let limit = &verdict.limits[0];
    assert_eq!(
        (limit.cause, limit.certainty, limit.side),
        ("receive-window", Certainty::Proved, Place::Far)
    );
    assert_eq!(limit.trial.as_ref().expect("the trial").kind, "host-window");
    assert_eq!(limit.advice[0].gain, Some(3.6));
    let action = limit.advice[0].text();
    assert!(action.contains("tcp_rmem=\"4096 131072 4194304\""), "{action}");
}

#[test]
fn a_raised_limit_that_gains_nothing_excludes_the_window() {
    // A limit that is removed gains at least 5 %.
    for (ratio, window) in [(1.0, "excluded"), (1.03, "excluded"), (1.07, "finding")] {
        let mut m = allowed(windowed(), &["tcp-rmem"]);
        tried(&mut m, "host-window", ratio);
        let verdict = judge(&m);
        let answer = verdict.answers.iter().find(|a| a.cause == "receive-window");
        assert_eq!(answer.expect("an answer").outcome, window, "x{ratio}");
    }
}

#[test]
fn a_raised_limit_proves_the_send_buffer() {
    let mut base = load();
    base.tcp.sndbuf_limited = Some(0.97);
    base.tcp.rtt = UNQUEUED;
    base.tcp.network = Some(0.03);
    let mut m = allowed(model(base), &["tcp-wmem"]);
    m.hosts[0].facts.buffers.wmem_max = Some(256 * 1024);
    let next = next_trial(&m, Direction::Forward, 0).expect("a trial");
    assert_eq!(next.kind, "host-send-buffer");
    assert_eq!(next.after.host.expect("a change").side, Side::Near);
    tried(&mut m, "host-send-buffer", 2.0);
    let limit = &judge(&m).limits[0];
    assert_eq!((limit.cause, limit.certainty), ("send-buffer", Certainty::Proved));
}

#[test]
fn offloads_are_switched_on_where_some_are_off_at_the_sender_first() {
    let switched = |ids: &[&str]| {
        let plan = proposed(&allowed(model(load()), ids), "host-offloads")?;
        plan.after.host.map(|c| (c.side, c.setting, c.value))
    };
    assert_eq!(switched(&[]), None);
    assert_eq!(switched(&ALL), Some((Side::Near, Setting::SendOffloads, 1)));
    let receiving = switched(&["receive-offloads"]);
    assert_eq!(receiving, Some((Side::Far, Setting::ReceiveOffloads, 1)));
}

/// A load that retransmits half a per cent, because a queue of a host drops as much.
fn dropping(side: Side, what: LocalEvent, subject: &str) -> Model {
    let mut base = load();
    base.packets = Some(FULL);
    base.tcp.segments = Some(80_000.0);
    base.tcp.repeated = Some(400.0);
    base.tcp.retransmitted = Some(0.005);
    base.local = vec![Local {
        side,
        what,
        subject: subject.to_owned(),
        count: 1_200.0,
        per_sec: 400.0,
        bytes: None,
        meant: None,
    }];
    let mut m = allowed(model(base), &ALL);
    for host in &mut m.hosts {
        "eth0".clone_into(&mut host.facts.port.as_mut().expect("a port").name);
    }
    m
}

#[test]
fn room_is_made_in_the_queue_that_drops_and_in_no_other() {
    use LocalEvent::{Backlog, Queue, Ring};
    let made = |side, what, subject| {
        let plan = proposed(&dropping(side, what, subject), "host-room")?;
        plan.after.host.map(|c| (c.side, c.setting, c.value))
    };
    // The queue must hold what 1 Gb/s sends in 0.1 s and in two round trips of 100 us.
    let bytes = Some((Side::Near, Setting::QueueBytes, 12_525_000));
    assert_eq!(made(Side::Near, Queue, "eth0 tbf 1:"), bytes);
    let packets = Some((Side::Near, Setting::QueuePackets, 10_000));
    assert_eq!(made(Side::Near, Queue, "eth0 pfifo 1:"), packets);
    let backlog = Some((Side::Far, Setting::Backlog, 10_000));
    assert_eq!(made(Side::Far, Backlog, "1"), backlog);
    // Another port; a queueing discipline whose setting cannot be restored; a ring of the card; the other direction.
    assert_eq!(made(Side::Near, Queue, "eth1 tbf 1:"), None);
    assert_eq!(made(Side::Near, Queue, "eth0 htb 1:"), None);
    assert_eq!(made(Side::Far, Ring, "eth0"), None);
    assert_eq!(made(Side::Far, Queue, "eth0 tbf 1:"), None);
}

#[test]
fn room_that_gains_proves_drops_of_the_host_and_room_that_does_not_excludes_them() {
    let judged = |ratio| {
        let mut m = dropping(Side::Near, LocalEvent::Queue, "eth0 tbf 1:");
        tried(&mut m, "host-room", ratio);
        judge(&m)
    };
    let gained = judged(1.2);
    let limit = &gained.limits[0];
    assert_eq!(
        (limit.cause, limit.certainty, limit.side),
        ("local-drops", Certainty::Proved, Place::Near)
    );
    assert_eq!(limit.trial.as_ref().expect("the trial").kind, "host-room");
    assert_eq!(limit.advice[0].gain, Some(1.2));
    for (ratio, drops) in [(1.0, "excluded"), (1.03, "excluded"), (1.07, "finding")] {
        let verdict = judged(ratio);
        let answer = verdict.answers.iter().find(|a| a.cause == "local-drops");
        assert_eq!(answer.expect("an answer").outcome, drops, "x{ratio}");
    }
}

#[test]
fn a_trial_that_did_not_decide_is_made_once_more_with_longer_slices() {
    let effect = |low, high| {
        let mut m = model(load());
        tried(&mut m, "more-streams", 1.0);
        let (low, mid) = (low, f64::midpoint(low, high));
        m.trials[0].effect = Some(Interval { low, mid, high });
        m
    };
    let next = |m: &Model| next_trial(m, Direction::Forward, 1).map(|plan| plan.kind);
    let slice = |m: &Model| next_slice(m, Direction::Forward, Factor::MoreStreams);
    // One rate for all streams predicts an effect up to 1.05; a cap of each stream predicts at least that.
    let mut wide = effect(0.9, 2.0);
    let others = |m: &Model| next(m).is_some_and(|kind| kind != "more-streams");
    while others(&wide) {
        let kind = next(&wide).expect("a trial");
        tried(&mut wide, &kind, 1.0);
        let silent = wide.trials.last_mut().expect("just tried");
        silent.effect = None;
    }
    assert_eq!(next(&wide).as_deref(), Some("more-streams"));
    let first = slice(&model(load())).expect("a load");
    assert_eq!(slice(&wide), Some(Nanos(first.0 * 2)));
    tried(&mut wide, "more-streams", 1.0);
    wide.trials.last_mut().expect("just tried").effect = wide.trials[0].effect;
    assert_eq!(next(&wide), None, "twice, and no more");
    assert_eq!(next(&effect(0.99, 1.01)), None, "it proved the path");
}

#[test]
fn the_direction_that_surely_carries_less_comes_first() {
    let lesser = |forward: (f64, f64), reverse: (f64, f64)| {
        let of = |(mean, half): (f64, f64)| Load {
            goodput: Estimate {
                mean,
                interval: (half > 0.0).then_some(Interval {
                    low: mean - half,
                    mid: mean,
                    high: mean + half,
                }),
                samples: 30,
            },
            ..load()
        };
        let mut m = model(of(forward));
        let mut other = model(of(reverse)).directions.remove(0);
        other.direction = Direction::Reverse;
        m.directions.push(other);
        m.lesser()
    };
    let [forward, reverse] = Direction::ALL.map(Some);
    assert_eq!(lesser((1.0e9, 1e6), (1.06e9, 1e6)), forward);
    assert_eq!(lesser((1.06e9, 1e6), (1.0e9, 1e6)), reverse);
    assert_eq!(lesser((1.0e9, 1e6), (1.04e9, 1e6)), None, "less than counts");
    assert_eq!(lesser((1.0e9, 2e8), (1.3e9, 2e8)), None, "not surely");
    assert_eq!(lesser((1.0e9, 0.0), (1.9e9, 0.0)), None, "how surely is unknown");
    assert_eq!(lesser((1.0e9, 0.0), (2.1e9, 0.0)), forward, "less than half");
}
