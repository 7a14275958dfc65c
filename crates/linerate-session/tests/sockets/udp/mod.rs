//! Tests of steps with datagrams over real sockets on loopback. A relay between the ends loses, duplicates and reorders
//! datagrams, and other senders send to the ends.

mod pair;
mod relay;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use linerate_facts::Gap;
use linerate_facts::metric::{
    Metric, UDP_DATAGRAMS, UDP_DROPS, UDP_DUPLICATED, UDP_ERRORS, UDP_LATE, UDP_LOST,
    UDP_REORDERED, UDP_STRAY,
};
use linerate_facts::parse::datagram::{DATAGRAM_MAX, HEADER_LEN, Header, Kind};
use linerate_load::LoadError;
use linerate_plan::Knobs;
use linerate_plan::path::{Direction, Side};
use linerate_record::EndReadings;
use linerate_session::end::Running;
use linerate_test::{ask, turn};
use linerate_units::stats::Histogram;
use linerate_units::{Bytes, Nanos, Rate};

use crate::support::{end, eventually, ping_pong, step, stream};
use pair::{FAR, Given, NEAR, Pair, given, lite, socket};
use relay::{Relay, What, payload};

/// Returns the last value of a column of the first stream.
fn last(end: &EndReadings, metric: Metric) -> i64 {
    let table = end.tables.iter().find(|t| t.source == "udp");
    let column = table.and_then(|t| t.column(metric));
    *column.unwrap_or_else(|| panic!("no {}: {:?}", metric.name, end.gaps)).last().unwrap()
}

fn ended(ends: &[EndReadings; 2]) {
    for end in ends {
        assert!(end.totals.iter().all(|t| t.complete), "{:?}", end.gaps);
        assert_eq!(end.gaps.iter().filter(|g| g.what.starts_with("worker")).count(), 0);
    }
}

fn paced(size: u64, megabits: u64) -> Knobs {
    Knobs { write_size: Bytes(size), pacing: Some(Rate(megabits * 1_000_000)), ..Knobs::default() }
}

#[test]
fn no_more_is_received_than_was_sent_at_any_size_and_the_step_ends() {
    let mut pair = Pair::new();
    let mut id = 0;
    for (size, streams) in [(HEADER_LEN, 1), (64, 2), (1472, 2), (9000, 1), (DATAGRAM_MAX, 1)] {
        for direction in Direction::ALL {
            let knobs = Knobs { streams, write_size: Bytes(size as u64), ..Knobs::default() };
            let made = pair.connect(&stream(id, direction, knobs));
            assert!(made.iter().any(|end| end.write_size == size as u64));
            // A set that has run a step can run another one.
            for _ in 0..2 {
                let ends = pair.run(&step(&[id], 10, 60, 20));
                ended(&ends);
                for (near, far) in ends[0].totals.iter().zip(&ends[1].totals) {
                    let (sent, got) = match direction {
                        Direction::Forward => (near.sent, far.received),
                        Direction::Reverse => (far.sent, near.received),
                    };
                    assert!(got > 0 && got <= sent, "{got} of {sent}");
                    assert_eq!((sent % size as u64, got % size as u64), (0, 0));
                }
            }
            pair.near.release(id);
            pair.far.release(id);
            id += 1;
        }
    }
}

#[test]
fn a_rate_that_both_ends_keep_up_with_loses_nothing() {
    let mut pair = Pair::new();
    // The rate is so low that the receive buffer holds everything
    // that arrives while the receiver waits a second for its CPU.
    pair.connect(&stream(0, Direction::Forward, paced(1000, 2)));
    let ends = pair.run(&step(&[0], 50, 400, 50));
    ended(&ends);
    assert_eq!(ends[0].totals[0].sent, ends[1].totals[0].received);
    assert!(ends[0].totals[0].sent > 0);
    let far = &ends[1];
    for metric in [UDP_LOST, UDP_REORDERED, UDP_DUPLICATED, UDP_LATE, UDP_STRAY, UDP_DROPS] {
        assert_eq!(last(far, metric), 0, "{}", metric.name);
    }
    assert!(last(far, UDP_DATAGRAMS) > 0 && last(&ends[0], UDP_DATAGRAMS) > 0);
}

#[test]
fn pacing_bites_in_proportion() {
    let mut pair = Pair::new();
    for (id, megabits) in [(0, 80), (1, 20)] {
        pair.connect(&stream(id, Direction::Forward, paced(500, megabits)));
    }
    // A sender that had to wait for its CPU catches up on one millisecond only. So it never sends more than is due, and
    // the sent payload follows the pace.
    let turn = pair.turn();
    let mut sent = |sets: [(u32, f64); 2]| {
        sets.map(|(id, rate)| {
            let began = Instant::now();
            let ends = pair.run(&step(&[id], 50, 400, 50));
            ended(&ends);
            let sent = ends[0].totals[0].sent as f64;
            let due = rate / 8.0 * began.elapsed().as_secs_f64();
            assert!(sent < due * 1.05, "{sent} of {due}");
            sent
        })
    };
    let follows = |sent: [f64; 2]| {
        let more = sent[0] > sent[1] * 1.5;
        more.then_some(()).ok_or_else(|| format!("{sent:?}"))
    };
    ask(&turn, || follows(sent([(0, 80e6), (1, 20e6)])));
    // Planted: two senders with the same pace.
    assert!(follows([1e6; 2]).is_err());
}

#[test]
fn what_a_path_loses_doubles_and_reorders_is_told_apart() {
    let relay = Relay::new(|_, n, _| match n % 10 {
        3 => What::Lose,
        5 => What::Double,
        7 => What::Hold,
        _ => What::Pass,
    });
    let mut pair = Pair::new();
    pair.relayed(&stream(0, Direction::Forward, paced(200, 1)), &relay);
    let mut lost = 0;
    for _ in 0..2 {
        let ends = pair.run(&step(&[0], 20, 400, 20));
        ended(&ends);
        let now = relay.lost.load(SeqCst);
        let (sent, got) = (ends[0].totals[0].sent, ends[1].totals[0].received);
        assert_eq!(sent - got, (now - lost) * 200, "of {sent}");
        lost = now;
        let far = &ends[1];
        let datagrams = last(far, UDP_DATAGRAMS);
        // Each is a tenth of about 250 datagrams. The last row is read a moment before the end.
        for metric in [UDP_LOST, UDP_REORDERED, UDP_DUPLICATED] {
            let share = last(far, metric) as f64 / datagrams as f64;
            assert!((0.05..0.2).contains(&share), "{} {share}", metric.name);
        }
        assert_eq!((last(far, UDP_LATE), last(far, UDP_STRAY)), (0, 0));
    }
}

#[test]
fn a_step_ends_in_order_though_most_marks_are_lost() {
    let relay = Relay::new(
        |_, n, bytes| {
            if payload(bytes) || n % 4 == 0 { What::Pass } else { What::Lose }
        },
    );
    let mut pair = Pair::new();
    pair.relayed(&stream(0, Direction::Forward, paced(100, 1)), &relay);
    for _ in 0..3 {
        let ends = pair.run(&step(&[0], 10, 50, 10));
        ended(&ends);
        assert_eq!(ends[0].totals[0].sent, ends[1].totals[0].received);
    }
}

/// Runs a far end against `near`, which sends to it from a thread of the test; returns the far readings.
fn against(near: impl FnOnce(&UdpSocket, SocketAddr) + Send + 'static) -> EndReadings {
    let _turn = turn();
    let (mine, theirs) = (socket(), socket());
    let place = theirs.local_addr().unwrap();
    mine.connect(place).unwrap();
    theirs.connect(mine.local_addr().unwrap()).unwrap();
    let mut far = end(Side::Far, "udp");
    let plan = stream(0, Direction::Forward, Knobs::default());
    let offer = far.prepare(&plan).unwrap();
    let lines = &mut Given(vec![given(theirs, Side::Far)]);
    far.connect(0, &offer, lines).unwrap();
    let mut running = far.arm(&step(&[0], 10, 200, 20)).unwrap();
    running.go();
    let player = thread::spawn(move || {
        near(&mine, place);
        mine
    });
    let readings = running.finish();
    // The sender's socket stays open until the far end has finished; otherwise the far end would get an ICMP error.
    drop(player.join().unwrap());
    readings
}

fn datagram(kind: Kind, step: u32, number: u64, size: usize) -> Vec<u8> {
    let header = Header { tag: NEAR, size: size as u16, kind, step, number };
    let mut bytes = header.encode().to_vec();
    bytes.resize(size, 9);
    bytes
}

#[test]
fn what_is_not_of_the_stream_is_dropped_and_counted() {
    let readings = against(|near, place| {
        near.send(&datagram(Kind::Payload, 0, 0, 100)).unwrap();
        let foreign = Header {
            tag: FAR,
            ..Header::decode(&datagram(Kind::Payload, 0, 1, HEADER_LEN), NEAR).unwrap()
        };
        let strays = [
            foreign.encode().to_vec(),
            Vec::new(),
            vec![0; DATAGRAM_MAX],
            datagram(Kind::Payload, 0, 1, 100)[..99].to_vec(),
            datagram(Kind::Payload, 7, 1, 100),
            datagram(Kind::Pong, 0, 1, 100),
            datagram(Kind::Payload, 0, u64::MAX, 100),
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        ];
        for stray in &strays {
            near.send(stray).unwrap();
        }
        // The kernel drops datagrams from any other address.
        socket().send_to(&datagram(Kind::Payload, 0, 1, 100), place).unwrap();
        // An attacker on the path repeats a datagram, or one with its number.
        near.send(&datagram(Kind::Payload, 0, 0, 100)).unwrap();
        near.send(&datagram(Kind::Payload, 0, 2, 50)).unwrap();
        thread::sleep(Duration::from_millis(400));
        near.send(&datagram(Kind::End, 0, 4, HEADER_LEN)).unwrap();
    });
    assert!(readings.totals[0].complete, "{:?}", readings.gaps);
    assert_eq!(readings.totals[0].received, 150);
    assert_eq!(last(&readings, UDP_STRAY), 8);
    assert_eq!(last(&readings, UDP_DUPLICATED), 1);
    assert_eq!(last(&readings, UDP_DATAGRAMS), 2);
    assert_eq!(last(&readings, UDP_LOST), 1);
}

#[test]
fn a_sender_that_falls_silent_is_given_up_with_what_came_of_it() {
    let readings = against(|near, _| {
        near.send(&datagram(Kind::Payload, 0, 0, 100)).unwrap();
    });
    assert!(!readings.totals[0].complete);
    assert_eq!(readings.totals[0].received, 100);
    let why = &readings.gaps.last().unwrap().why;
    assert!(why.contains("refused") || why.contains("3 s"), "{why}");
}

#[test]
fn an_early_stop_keeps_the_sets_and_an_abort_loses_them() {
    let mut pair = Pair::new();
    pair.connect(&stream(0, Direction::Forward, Knobs::default()));
    let plan = step(&[0], 20, 60_000, 20);
    for _ in 0..2 {
        let [near, far] = pair.start(&plan);
        eventually(|| far.live().rate.0 > 0);
        near.stop();
        far.stop();
        ended(&[near, far].map(Running::finish));
    }
    let began = Instant::now();
    let [near, far] = pair.start(&plan);
    near.abort();
    far.abort();
    let ends = [near, far].map(Running::finish);
    assert!(began.elapsed() < Duration::from_secs(20));
    for end in ends {
        assert!(!end.totals[0].complete);
    }
    assert!(matches!(pair.near.arm(&plan), Err(LoadError::NotConnected { set: 0 })));
}

#[test]
fn round_trips_are_timed_and_those_without_an_answer_counted() {
    let mut pair = Pair::new();
    pair.connect(&ping_pong(0, 64, Nanos(0)));
    let relay = Relay::new(|_, n, bytes| match n % 10 {
        4 if Header::decode(bytes, NEAR).is_ok_and(|h| h.kind == Kind::Ping) => What::Lose,
        6 => What::Double,
        _ => What::Pass,
    });
    pair.relayed(&ping_pong(1, 200, Nanos(0)), &relay);
    for (id, size, lossy) in [(0, 64, false), (1, 200, true), (0, 64, false)] {
        let ends = pair.run(&step(&[id], 50, 600, 50));
        ended(&ends);
        let [near, far] = &ends;
        let trips = near.totals[0].sent / size;
        assert!(trips > 10, "{trips}");
        let timed: u64 = near.latencies[0].counts.iter().map(|(_, n)| n).sum();
        assert!(timed > 0 && timed <= trips);
        assert!(far.latencies.is_empty());
        let lost = last(near, UDP_LOST);
        assert_eq!(lost > 0, lossy, "{lost} of {trips}");
        if !lossy {
            assert_eq!(near.totals[0].sent, far.totals[0].received);
        }
    }
}

#[test]
fn in_open_loop_what_is_lost_is_counted_and_stands_in_no_time() {
    let mut pair = Pair::new();
    let open = |id, busy_poll| {
        let mut plan = ping_pong(id, 200, Nanos::from_millis(2));
        (plan.knobs.open_loop, plan.knobs.busy_poll) = (true, busy_poll);
        plan
    };
    let relay = Relay::new(|side, n, bytes| match (side, n % 5) {
        (Side::Near, 3) if Header::decode(bytes, NEAR).is_ok_and(|h| h.kind == Kind::Ping) => {
            What::Lose
        }
        (_, 4) => What::Double,
        _ => What::Pass,
    });
    pair.connect(&open(0, true));
    pair.relayed(&open(1, false), &relay);
    let turn = pair.turn();
    for (id, lossy) in [(0, false), (1, true), (0, false)] {
        ask(&turn, || {
            let ends = pair.run(&step(&[id], 50, 600, 50));
            ended(&ends);
            let found = &ends[0].latencies[0];
            let timed: u64 = found.counts.iter().map(|(_, n)| n).sum();
            assert!(timed > found.unanswered, "{found:?}");
            let unread: u64 = found.unread.iter().map(|(_, n)| n).sum();
            assert_eq!(unread, timed - found.unanswered, "the kernel stamps each");
            if !lossy {
                return has_all(found);
            }
            // Planted: a check must not accept loss as none.
            assert!(has_all(found).is_err(), "{found:?}");
            // Every fifth message is lost.
            let share = found.lost as f64 / (found.lost + unread) as f64;
            assert!((0.1..0.3).contains(&share), "{share}");
            Ok(())
        });
    }
}

/// Checks whether no message was lost on the path. The last message of a step may be answered too late, and several may
/// be if this machine stands still at the end of the step.
fn has_all(found: &Histogram) -> Result<(), String> {
    let lost = found.lost;
    (lost <= 1).then_some(()).ok_or_else(|| format!("{lost} were lost"))
}

/// Runs a near end that sends at a pace to a socket of the test.
/// This socket is closed for the time `gone` in the middle.
fn refused_for(gone: Duration) -> EndReadings {
    let _turn = turn();
    let (mine, theirs) = (socket(), socket());
    let place = mine.local_addr().unwrap();
    let other = theirs.local_addr().unwrap();
    theirs.connect(place).unwrap();
    let mut near = end(Side::Near, "udp");
    let plan = stream(0, Direction::Forward, paced(200, 4));
    let offer = near.prepare(&plan).unwrap();
    let lines = &mut Given(vec![given(theirs, Side::Near)]);
    near.connect(0, &offer, lines).unwrap();
    let mut running = near.arm(&step(&[0], 10, 400, 20)).unwrap();
    running.go();
    let far = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        let mine = if gone.is_zero() {
            mine
        } else {
            drop(mine);
            thread::sleep(gone);
            UdpSocket::bind(place).unwrap()
        };
        mine.connect(other).unwrap();
        mine.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut room = [0; 2048];
        while let Ok(got) = mine.recv(&mut room) {
            let header = Header::decode(&room[..got], NEAR).unwrap();
            if header.kind == Kind::End {
                let ended = Header { tag: FAR, kind: Kind::Ended, ..header };
                mine.send(&ended.encode()).unwrap();
                break;
            }
        }
        mine
    });
    let readings = running.finish();
    drop(far.join().unwrap());
    readings
}

#[test]
fn a_moment_in_which_nobody_listens_is_counted_and_ends_no_step() {
    for gone in [Duration::ZERO, Duration::from_millis(100)] {
        let readings = refused_for(gone);
        assert!(readings.totals[0].complete, "{:?}", readings.gaps);
        assert!(readings.totals[0].sent > 0);
        let errors = last(&readings, UDP_ERRORS);
        assert_eq!(errors > 0, !gone.is_zero(), "{errors}");
    }
}

#[test]
fn where_the_kernel_cuts_no_messages_each_datagram_goes_on_its_own_which_is_told() {
    let mut pair = Pair::new();
    pair.connect(&stream(0, Direction::Forward, paced(1000, 4)));
    let (Some(near), Some(far)) = (lite(), lite()) else {
        return linerate_test::skip("udp-lite", "this kernel has no UDP-Lite");
    };
    pair.between(&stream(1, Direction::Forward, paced(1000, 4)), [near, far]);
    for (id, uncut) in [(0, false), (1, true), (1, true)] {
        let ends = pair.run(&step(&[id], 20, 300, 20));
        ended(&ends);
        assert!(ends[1].totals[0].received > 0, "{:?}", ends[0].gaps);
        let result_of = |gap: &Gap| gap.what == "set.segmentation";
        assert_eq!(ends[0].gaps.iter().any(result_of), uncut, "{:?}", ends[0].gaps);
    }
}

#[test]
fn what_datagrams_cannot_do_is_refused_in_words() {
    let mut near = end(Side::Near, "udp");
    let knobs = Knobs { congestion: Some("bbr".into()), ..Knobs::default() };
    let refused = near.prepare(&stream(0, Direction::Forward, knobs)).unwrap_err();
    assert!(refused.to_string().contains("congestion"), "{refused}");
    let refused = near.prepare(&ping_pong(0, 65_536, Nanos(0))).unwrap_err();
    assert!(refused.to_string().contains("65507"), "{refused}");
}
