//! Tests of sessions in which nothing goes wrong.

use std::sync::atomic::{AtomicBool, Ordering};

use linerate_facts::HostFacts;
use linerate_plan::path::{Direction, Side};
use linerate_plan::{Knobs, Pattern, Purpose, SetPlan, StepPlan};
use linerate_record::{EndReadings, Step};
use linerate_units::{Bytes, Nanos};

use super::*;
use crate::link::{Link, LinkError, Live, StepControl};
use linerate_load::transport::transport;

pub(super) fn stream(id: u32, direction: Direction, streams: u32) -> SetPlan {
    SetPlan {
        id,
        pattern: Pattern::Stream { direction },
        knobs: Knobs { streams, ..Knobs::default() },
    }
}

pub(super) fn step(sets: &[u32], millis: u64) -> StepPlan {
    StepPlan {
        index: 0,
        purpose: Purpose::Both,
        sets: sets.to_vec(),
        washout: Nanos(0),
        measure: Nanos::from_millis(millis),
        tick: Nanos::from_millis(20),
    }
}

pub(super) fn go_on(_: Live) -> StepControl {
    StepControl::Continue
}

fn sums(end: &EndReadings, set: u32) -> (u64, u64) {
    let totals = end.totals.iter().filter(|t| t.set == set);
    totals.fold((0, 0), |(s, r), t| (s + t.sent, r + t.received))
}

/// Asserts that every byte that one end sent was received by the other end.
fn balanced(step: &Step, set: u32, direction: Direction) {
    assert_eq!(step.trouble, None);
    let [near, far] = &step.ends[..] else {
        panic!("{} ends", step.ends.len());
    };
    assert!(near.totals.iter().chain(&far.totals).all(|t| t.complete));
    let (sender, receiver) = match direction {
        Direction::Forward => (near, far),
        Direction::Reverse => (far, near),
    };
    let payload = sums(sender, set).0;
    assert!(payload > 0);
    assert_eq!(sums(receiver, set), (0, payload));
}

#[test]
fn payload_flows_each_way_and_both_at_once() {
    let server = Harness::keyed();
    let mut client = server.connect_with(server.key.as_ref()).unwrap();
    for (id, direction, streams) in [(0, Direction::Forward, 1), (1, Direction::Reverse, 3)] {
        let set = client.prepare(&stream(id, direction, streams)).unwrap();
        assert_eq!(set.ends.len(), 2);
        let step = client.step(&step(&[id], 200), &mut go_on).unwrap();
        balanced(&step, id, direction);
        assert!(step.clock.is_some());
    }
    let both = client.step(&step(&[0, 1], 200), &mut go_on).unwrap();
    balanced(&both, 0, Direction::Forward);
    balanced(&both, 1, Direction::Reverse);
    assert_eq!(both.ends[1].other_sessions, 0);
    client.release(0).unwrap();
    let refused = client.step(&step(&[0, 1], 100), &mut go_on);
    assert!(matches!(refused, Err(LinkError::Refused { .. })));
    // The refused step does no harm: set 1 can still be used.
    let step = client.step(&step(&[1], 100), &mut go_on).unwrap();
    balanced(&step, 1, Direction::Reverse);
    drop(client);
    assert!(eventually(|| server.server.sessions() == 0));
    server.logged("the client left");
}

#[test]
fn round_trips_are_timed() {
    let server = Harness::start(None, Limits::default());
    let mut client = server.connect_with(None).unwrap();
    assert_eq!(client.access(), linerate_record::wire::preamble::Access::Open);
    let pattern = Pattern::PingPong { size: Bytes(64), interval: Nanos(0) };
    let plan = SetPlan { pattern, ..stream(0, Direction::Forward, 1) };
    client.prepare(&plan).unwrap();
    let step = client.step(&step(&[0], 200), &mut go_on).unwrap();
    let [near, far] = &step.ends[..] else {
        panic!("{} ends", step.ends.len());
    };
    assert_eq!(near.latencies.len(), 1);
    assert!(far.latencies.is_empty());
}

#[test]
fn a_machine_measures_itself() {
    let mut client = Client::local("tcp", Arc::new(Blank("same")), None).unwrap();
    assert!(client.address().ip().is_loopback());
    client.prepare(&stream(0, Direction::Forward, 2)).unwrap();
    let step = client.step(&step(&[0], 100), &mut go_on).unwrap();
    balanced(&step, 0, Direction::Forward);
}

#[test]
fn an_interrupt_ends_the_step_in_order() {
    let server = Harness::keyed();
    let mut client = server.connect_with(server.key.as_ref()).unwrap();
    for (id, direction) in [(0, Direction::Forward), (1, Direction::Reverse)] {
        client.prepare(&stream(id, direction, 1)).unwrap();
        let began = Instant::now();
        let mut looks = 0;
        let step = client.step(&step(&[id], 60_000), &mut |live| {
            looks += 1;
            assert!(live.elapsed.0 > 0);
            if looks < 3 { StepControl::Continue } else { StepControl::Stop }
        });
        let step = step.unwrap();
        assert!(began.elapsed() < LONG, "it ran to its planned end");
        let trouble = step.trouble.clone().unwrap();
        assert_eq!((trouble.side, trouble.what.as_str()), (Side::Near, "stopped"));
        let untroubled = Step { trouble: None, ..step };
        balanced(&untroubled, id, direction);
    }
}

#[test]
fn a_step_that_measured_enough_ends_in_order_at_both_ends() {
    let server = Harness::keyed();
    let mut client = server.connect_with(server.key.as_ref()).unwrap();
    for (id, direction) in [(0, Direction::Forward), (1, Direction::Reverse)] {
        client.prepare(&stream(id, direction, 1)).unwrap();
        let mut enough = None;
        let step = client.step(&step(&[id], 60_000), &mut |live| {
            assert!(enough.is_none() || live.elapsed >= enough.unwrap());
            if live.elapsed < Nanos::from_millis(300) {
                return StepControl::Continue;
            }
            assert!(live.moved.0 > 0);
            enough.get_or_insert(live.elapsed);
            StepControl::Enough
        });
        let step = step.unwrap();
        balanced(&step, id, direction);
        // The measured time consists of whole ticks of 20 ms.
        let (measured, enough) = (step.plan.measure.0, enough.unwrap().0);
        assert_eq!(measured, enough / 20_000_000 * 20_000_000);
        for end in &step.ends {
            let workers = end.tables.iter().filter(|t| t.source == "worker");
            let last = workers.filter_map(|t| t.at.last()).max().unwrap();
            assert!(*last + 40_000_000 > measured, "{last} of {measured}");
        }
    }
}

#[test]
fn an_interrupt_ends_the_dialling_and_the_session() {
    let server = Harness::keyed();
    let mut client = server.connect_with(server.key.as_ref()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    client.heed(&stop);
    client.prepare(&stream(0, Direction::Forward, 20)).unwrap();
    stop.store(true, Ordering::Relaxed);
    let made = client.prepare(&stream(1, Direction::Forward, 20));
    assert!(matches!(made, Err(LinkError::Interrupted)), "{made:?}");
    drop(client);
    assert!(eventually(|| server.server.sessions() == 0));
}

#[test]
fn plans_beyond_the_limits_are_refused_and_the_session_goes_on() {
    let mut limits = Limits::default();
    // So few streams that any machine has enough file descriptors for them.
    limits.plan.streams = 100;
    let server = Harness::start(Some(Key::generate()), limits);
    let mut client = server.connect_with(server.key.as_ref()).unwrap();
    let refused = client.prepare(&stream(0, Direction::Forward, 101));
    let Err(LinkError::Refused { what, hint }) = refused else {
        panic!("{refused:?}");
    };
    assert!(what.contains("more than 100 streams"), "{what}");
    assert_eq!(hint, "");
    server.logged("refused more than 100 streams at a time");
    client.prepare(&stream(0, Direction::Forward, 1)).unwrap();
    let refused = client.step(&step(&[0], 3_661_000), &mut go_on);
    assert!(matches!(refused, Err(LinkError::Refused { .. })));
    let step = client.step(&step(&[0], 50), &mut go_on).unwrap();
    balanced(&step, 0, Direction::Forward);
}

#[test]
fn three_hundred_streams_run_each_way() {
    let server = Harness::keyed();
    let mut client = server.connect_with(server.key.as_ref()).unwrap();
    for (id, direction) in [(0, Direction::Forward), (1, Direction::Reverse)] {
        client.prepare(&stream(id, direction, 300)).unwrap();
        let step = client.step(&step(&[id], 300), &mut go_on).unwrap();
        assert_eq!(step.ends[0].totals.len(), 300);
        balanced(&step, id, direction);
    }
}

#[test]
fn of_very_many_streams_all_are_counted_and_some_are_read() {
    let server = Harness::keyed();
    let mut client = server.connect_with(server.key.as_ref()).unwrap();
    let plan = stream(0, Direction::Forward, 1100);
    let set = client.prepare(&plan).unwrap();
    // With a gap, no trial with this many streams would count.
    assert!(set.ends.iter().all(|end| end.gaps.is_empty()));
    let tcp = transport("tcp").unwrap();
    let reported = tcp.check(Side::Near, &HostFacts::default(), &plan);
    let why = reported.iter().find(|n| n.gap.what == "set.sockets");
    let why = &why.expect("it is told").gap.why;
    assert!(why.contains("550 of 1100 connections"), "{why}");
    let step = client.step(&step(&[0], 300), &mut go_on).unwrap();
    for end in &step.ends {
        assert_eq!(end.totals.len(), 1100);
    }
    balanced(&step, 0, Direction::Forward);
}

#[test]
fn an_engine_that_is_not_there_is_refused_in_words() {
    let server = Harness::keyed();
    let options = ClientOptions { engine: "warp".into(), ..server.options(server.key.as_ref()) };
    let error = Client::connect(&options).err().expect("no session");
    let PeerError::Refused { hint, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(error.to_string().contains("it has no engine `warp`"), "{error}");
    assert_eq!(hint, "update linerate on the far host");
    // An older server still serves clients that request a transport that it has.
    let options = server.options(server.key.as_ref());
    Client::connect(&options).expect("a session");
}

#[test]
fn an_engine_without_a_far_end_is_refused_in_words() {
    let server = Harness::keyed();
    let options = ClientOptions { engine: "memory".into(), ..server.options(server.key.as_ref()) };
    let error = Client::connect(&options).err().expect("no session");
    assert!(matches!(error, PeerError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("has no far end"), "{error}");
    server.still_serves();
}

#[test]
fn steps_that_overlap_are_marked_by_both_sessions() {
    let server = Harness::keyed();
    let run = |millis: u64, start: Arc<std::sync::Barrier>| {
        let mut client = server.connect_with(server.key.as_ref()).unwrap();
        move || {
            client.prepare(&stream(0, Direction::Forward, 1)).unwrap();
            let alone = client.step(&step(&[0], 50), &mut go_on);
            start.wait();
            let beside = client.step(&step(&[0], millis), &mut go_on);
            (alone.unwrap(), beside.unwrap())
        }
    };
    let start = Arc::new(std::sync::Barrier::new(2));
    let mut first = run(1_500, Arc::clone(&start));
    let second = run(1_500, Arc::clone(&start));
    let (first, second) = thread::scope(|scope| {
        let other = scope.spawn(second);
        (first().1, other.join().unwrap().1)
    });
    for step in [first, second] {
        assert_eq!(step.ends[1].other_sessions, 1);
    }
    let mut third = server.connect_with(server.key.as_ref()).unwrap();
    third.prepare(&stream(0, Direction::Forward, 1)).unwrap();
    let alone = third.step(&step(&[0], 50), &mut go_on).unwrap();
    assert_eq!(alone.ends[1].other_sessions, 0);
}

#[test]
fn an_idle_client_is_told_to_leave() {
    let limits = Limits { idle: Duration::from_millis(200), ..Limits::default() };
    let server = Harness::start(Some(Key::generate()), limits);
    let mut client = server.connect_with(server.key.as_ref()).unwrap();
    assert!(eventually(|| server.server.sessions() == 0));
    let Err(LinkError::Lost { what, .. }) = client.release(0) else {
        panic!("a session without end");
    };
    assert!(what.contains("lost the far end 127.0.0.1"), "{what}");
}

#[test]
fn the_wildcard_serves_both_families() {
    let server = Harness::listen(Vec::new(), None, Limits::default(), None);
    let port = server.address.port();
    let mut hosts = vec!["127.0.0.1"];
    if std::net::TcpListener::bind("[::1]:0").is_ok() {
        hosts.push("::1");
    }
    for host in hosts {
        let options =
            ClientOptions { target: Target { host: host.into(), port }, ..server.options(None) };
        let mut client = Client::connect(&options).unwrap();
        client.prepare(&stream(0, Direction::Forward, 1)).unwrap();
        let step = client.step(&step(&[0], 50), &mut go_on).unwrap();
        balanced(&step, 0, Direction::Forward);
        // The log shows an IPv4 client with its IPv4 address, although its socket is an IPv6 socket.
        server.logged(&format!("{host}: session "));
    }
}

#[test]
fn what_all_sessions_take_is_bounded_and_what_one_gives_back_others_may_take() {
    let mut limits = Limits::default();
    limits.plan.streams = 4;
    let server = Harness::start(None, limits);
    let [mut first, mut second] = [(); 2].map(|()| server.connect_with(None).unwrap());
    let set = |id, streams| stream(id, Direction::Forward, streams);
    first.prepare(&set(0, 2)).unwrap();
    first.prepare(&set(1, 2)).unwrap();
    second.prepare(&set(0, 2)).unwrap();
    // All sessions of one address together may use one and a half times as much as one session.
    let refused = second.prepare(&set(1, 1));
    let Err(LinkError::Refused { what, hint, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(what.contains("6 streams at a time in all sessions from one address"), "{what}");
    assert!(hint.contains("others are measuring there"), "{hint}");
    first.release(1).unwrap();
    second.prepare(&set(1, 2)).unwrap();
    drop(first);
    assert!(eventually(|| server.server.sessions() == 1));
    let step = second.step(&step(&[0, 1], 100), &mut go_on).unwrap();
    assert_eq!(step.trouble, None);
}
