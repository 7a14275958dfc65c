//! Tests with far ends that are threads of the test: they die, stop sending, or send what linerate never would.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use linerate_facts::metric::WORKER_OPS;
use linerate_facts::parse::run::Mark;
use linerate_plan::Knobs;
use linerate_plan::path::{Direction, Side};
use linerate_record::EndReadings;
use linerate_test::turn;

use super::table;
use crate::support::{Dial, HERE, end, step, stream};

/// Runs a near end against `far`, which is a thread of the test; returns the near readings.
fn against(direction: Direction, far: impl FnOnce(TcpStream) + Send + 'static) -> EndReadings {
    let _turn = turn();
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    let far = thread::spawn(move || far(listener.accept().unwrap().0));
    let mut near = end(Side::Near, "tcp");
    near.prepare(&stream(0, direction, Knobs::default())).unwrap();
    near.connect(0, &Vec::new(), &mut Dial(addr)).unwrap();
    let mut running = near.arm(&step(&[0], 50, 300, 50)).unwrap();
    running.go();
    let readings = running.finish();
    drop(near);
    far.join().unwrap();
    readings
}

#[test]
fn a_peer_that_dies_in_mid_step_is_a_gap_and_not_a_hang() {
    let readings = against(Direction::Forward, |mut far| {
        let _ = far.read(&mut [0; 4096]);
    });
    assert!(!readings.totals[0].complete);
    let why = &readings.gaps.last().unwrap().why;
    assert!(why.starts_with("send failed on stream 0"), "{why}");

    let readings = against(Direction::Reverse, |mut far| {
        far.write_all(&Mark::Run(1000).encode()).unwrap();
        far.write_all(&[7; 300]).unwrap();
    });
    assert_eq!((readings.totals[0].received, readings.totals[0].complete), (300, false));
    let why = &readings.gaps.last().unwrap().why;
    assert!(why.contains("closed stream 0"), "{why}");
}

#[test]
fn garbage_where_a_mark_must_stand_is_a_gap_with_its_bytes() {
    let readings = against(Direction::Reverse, |mut far| {
        far.write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
    });
    assert!(!readings.totals[0].complete);
    let why = &readings.gaps.last().unwrap().why;
    assert!(why.contains("a mark is missing") && why.contains("48, 54"), "{why}");
}

#[test]
fn a_total_that_does_not_fit_is_a_gap() {
    let readings = against(Direction::Reverse, |mut far| {
        far.write_all(&Mark::Run(3).encode()).unwrap();
        far.write_all(b"abc").unwrap();
        far.write_all(&Mark::End(4).encode()).unwrap();
    });
    let why = &readings.gaps.last().unwrap().why;
    assert!(why.contains("4 bytes were sent but 3 received"), "{why}");
}

#[test]
fn a_silent_peer_is_given_up_after_the_drain() {
    let (tell, reported) = std::sync::mpsc::channel();
    let far = move |far: TcpStream| {
        // The connection stays open until the near end has given up, because only then is it received and dropped.
        tell.send(far).unwrap();
    };
    let readings = against(Direction::Reverse, far);
    drop(reported);
    assert!(!readings.totals[0].complete);
    assert!(readings.gaps.last().unwrap().why.contains("3 s"));
}

#[test]
fn a_slow_path_may_deliver_what_was_sent_after_the_end() {
    let readings = against(Direction::Reverse, |mut far| {
        far.write_all(&Mark::Run(5).encode()).unwrap();
        for byte in b"abcde" {
            far.write_all(&[*byte]).unwrap();
            thread::sleep(Duration::from_millis(900));
        }
        far.write_all(&Mark::End(5).encode()).unwrap();
    });
    assert_eq!((readings.totals[0].received, readings.totals[0].complete), (5, true));
}

#[test]
fn a_receive_takes_all_that_is_there_however_short_the_runs() {
    let readings = against(Direction::Reverse, |mut far| {
        let mut runs = Vec::new();
        for _ in 0..1000 {
            runs.extend(Mark::Run(10).encode());
            runs.extend([7; 10]);
        }
        runs.extend(Mark::End(10_000).encode());
        far.write_all(&runs).unwrap();
        // The near end closes nothing by itself before its step is over, so wait until it does.
        let _ = far.read(&mut [0; 1]);
    });
    assert!(readings.totals[0].complete, "{:?}", readings.gaps);
    assert_eq!(readings.totals[0].received, 10_000);
    let worker = table(&readings, "worker", "s0/rx0");
    let ops = worker.column(WORKER_OPS).unwrap().last().copied().unwrap();
    assert!(ops < 500, "{ops}");
}
