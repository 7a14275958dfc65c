//! Tests of steps over real TCP sockets on loopback.

mod played;

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_facts::metric::{
    self, SOCKET_CPU, SOCKET_RCVBUF, SOCKET_UNREAD, TCP_BYTES_ACKED, TCP_CWND, TCP_MAX_PACING_RATE,
    TCP_RTT, TCP_SND_WND, WORKER_BYTES, WORKER_OPS,
};
use linerate_host::{Capture, Captured, Live, Machine, Replay};
use linerate_load::transport::NoLines;
use linerate_load::{BATCH, LoadError};
use linerate_plan::path::{Direction, Side};
use linerate_plan::subject::Subject;
use linerate_plan::{ExtraWork, Knobs, Receive};
use linerate_record::{Column, EndReadings, Table};
use linerate_session::end::Running;
use linerate_test::{ask, turn};
use linerate_units::{Bytes, Nanos, Rate};

use crate::support::{Pair, assert_exact, end, eventually, ping_pong, step, stream};

fn table<'a>(end: &'a EndReadings, source: &str, subject: &str) -> &'a Table {
    let found = end.tables.iter().find(|t| t.source == source && t.subject == subject);
    found.unwrap_or_else(|| panic!("no table {source} {subject}"))
}

/// Returns the bytes per second between the first row after the washout and the last row.
fn rate(end: &EndReadings, subject: &str) -> f64 {
    let table = table(end, "worker", subject);
    let bytes = table.column(WORKER_BYTES).unwrap();
    let last = bytes.len() - 1;
    (bytes[last] - bytes[1]) as f64 * 1e9 / (table.at[last] - table.at[1]) as f64
}

/// A write that has begun is completed. At a slow pace, a large write would otherwise last many seconds.
#[test]
fn a_slow_pace_ends_in_order_however_large_the_writes() {
    let mut pair = Pair::new();
    for (id, direction) in [(0, Direction::Forward), (1, Direction::Reverse)] {
        let knobs =
            Knobs { pacing: Some(Rate(1_000_000)), write_size: Bytes(4 << 20), ..Knobs::default() };
        pair.connect(&stream(id, direction, knobs));
        pair.moves(&step(&[id], 10, 200, 50));
    }
}

#[test]
fn what_is_sent_is_received_to_the_byte() {
    let sizes = [1, 1000, 65_536, 1 << 20];
    let mut pair = Pair::new();
    let mut id = 0;
    for receive in [Receive::Copy, Receive::Discard] {
        for (write, streams) in sizes.into_iter().zip([1, 2, 3, 8]) {
            for (direction, read) in [(Direction::Forward, 0), (Direction::Reverse, write)] {
                let knobs = Knobs {
                    streams,
                    write_size: Bytes(write),
                    read_size: Bytes(read),
                    receive,
                    ..Knobs::default()
                };
                pair.connect(&stream(id, direction, knobs));
                let Some(ends) = pair.moves(&step(&[id], 10, 40, 10)) else {
                    return;
                };
                assert_eq!(ends[0].totals.len(), streams as usize);
                pair.near.release(id);
                pair.far.release(id);
                id += 1;
            }
        }
    }
}

#[test]
fn many_streams_share_threads_and_each_is_exact_and_has_its_turn() {
    for (direction, receive) in
        [(Direction::Forward, Receive::Copy), (Direction::Reverse, Receive::Discard)]
    {
        let mut pair = Pair::new();
        let knobs = Knobs { streams: 65, receive, ..Knobs::default() };
        pair.connect(&stream(0, direction, knobs));
        for _ in 0..2 {
            let Some(ends) = pair.moves(&step(&[0], 50, 300, 50)) else {
                return;
            };
            for end in &ends {
                let moved = end.totals.iter().filter(|t| t.sent + t.received > 0);
                assert_eq!((end.totals.len(), moved.count()), (65, 65));
                let of = |source| end.tables.iter().filter(move |t| t.source == source);
                assert_eq!(of("tcp").count(), 65);
                let cpus = std::thread::available_parallelism().unwrap().get();
                assert_eq!(of("worker").count(), cpus.min(64));
            }
        }
    }
}

#[test]
fn slices_alternate_over_warm_sets_and_each_is_exact() {
    let mut pair = Pair::new();
    let small = Knobs { write_size: Bytes(4000), streams: 2, ..Knobs::default() };
    pair.connect(&stream(0, Direction::Forward, Knobs::default()));
    pair.connect(&stream(1, Direction::Reverse, small));
    pair.connect(&ping_pong(2, 64, Nanos(0)));
    for sets in [[0].as_slice(), &[1], &[1], &[0], &[0, 1, 2], &[2], &[0, 1]] {
        let Some(ends) = pair.moves(&step(sets, 5, 25, 10)) else {
            return;
        };
        let streams: usize = sets.iter().map(|s| if *s == 1 { 2 } else { 1 }).sum();
        assert_eq!(ends[1].totals.len(), streams);
    }
}

#[test]
fn rows_stand_where_the_step_says_and_carry_the_time_of_reading() {
    let mut pair = Pair::new();
    pair.connect(&stream(3, Direction::Forward, Knobs::default()));
    let ends = pair.run(&step(&[3], 50, 200, 50));
    for (end, subject) in ends.iter().zip(["s3/tx0", "s3/rx0"]) {
        let worker = table(end, "worker", subject);
        assert_eq!(worker.at[0], 0);
        let planned = [50, 100, 150, 200, 250].map(|ms| ms * 1_000_000);
        // A row that is still due when the next one is due is skipped, as happens on a busy machine.
        assert!((3..=1 + planned.len()).contains(&worker.at.len()));
        assert!(worker.at[1..].iter().zip(planned).all(|(at, p)| *at >= p));
        assert_eq!(worker.column(WORKER_BYTES).unwrap()[0], 0);
        let ops = worker.column(WORKER_OPS).unwrap();
        assert!(ops.windows(2).all(|w| w[0] <= w[1]) && ops.last() > Some(&0));

        let tcp = table(end, "tcp", "s3/0");
        assert!(tcp.column(TCP_RTT).is_some() && tcp.column(TCP_CWND).is_some());
        assert_eq!(tcp.column(TCP_MAX_PACING_RATE), None);
        let socket = table(end, "socket", "s3/0");
        assert!(socket.column(SOCKET_RCVBUF).unwrap().iter().all(|b| *b > 0));
        assert_eq!(socket.column(SOCKET_UNREAD).unwrap().len(), socket.at.len());
        assert!(socket.column(SOCKET_CPU).unwrap().iter().all(|cpu| *cpu >= 0));
        for table in &end.tables {
            assert!(table.columns.iter().all(|c| c.values.len() == table.at.len()));
            assert!(table.at.windows(2).all(|w| w[0] <= w[1]));
        }
        assert!(!table(end, "thread", subject).at.is_empty());
    }
    let acked = table(&ends[0], "tcp", "s3/0").column(TCP_BYTES_ACKED).unwrap();
    assert!(acked.last() > acked.get(1));
}

#[test]
fn every_column_stands_in_the_table_of_metrics() {
    let mut pair = Pair::new();
    pair.connect(&stream(0, Direction::Reverse, Knobs::default()));
    for end in pair.run(&step(&[0], 10, 20, 10)) {
        for table in &end.tables {
            for column in &table.columns {
                let known = metric::ALL.iter().any(|m| {
                    (m.source, m.name, m.unit, m.kind)
                        == (&table.source, &column.name, column.unit, column.kind)
                });
                assert!(known, "{} {}", table.source, column.name);
            }
        }
    }
}

#[test]
fn an_early_stop_keeps_totals_exact_and_the_sets_warm() {
    let mut pair = Pair::new();
    pair.connect(&stream(0, Direction::Forward, Knobs::default()));
    for _ in 0..2 {
        let began = Instant::now();
        let [near, far] = pair.start(&step(&[0], 20, 60_000, 20));
        eventually(|| near.live().rate.0 > 0);
        near.stop();
        far.stop();
        let ends = [near, far].map(Running::finish);
        assert!(began.elapsed() < Duration::from_secs(20));
        assert!(assert_exact(&ends) > 0);
        assert!(table(&ends[0], "worker", "s0/tx0").at.len() >= 2);
    }
}

#[test]
fn an_abort_returns_promptly_and_its_sets_are_lost() {
    let mut pair = Pair::new();
    pair.connect(&stream(0, Direction::Forward, Knobs::default()));
    let began = Instant::now();
    let plan = step(&[0], 20, 60_000, 20);
    let [near, far] = pair.start(&plan);
    near.abort();
    let near = near.finish();
    drop(far);
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(!near.totals[0].complete);
    assert_eq!(near.gaps.last().unwrap().why, "the step was aborted");
    assert!(matches!(pair.near.arm(&plan), Err(LoadError::NotConnected { set: 0 })));
    assert!(matches!(pair.far.arm(&plan), Err(LoadError::NotConnected { set: 0 })));
}

#[test]
fn a_set_that_ended_in_order_is_lost_by_an_abort_after_it() {
    let mut pair = Pair::new();
    pair.connect(&stream(0, Direction::Forward, Knobs::default()));
    let plan = step(&[0], 20, 60, 20);
    let [mut near, mut far] = pair.start(&plan);
    eventually(|| near.done(Duration::from_millis(5)) && far.done(Duration::from_millis(5)));
    near.abort();
    far.abort();
    for end in [near, far].map(Running::finish) {
        assert!(!end.totals[0].complete);
    }
    for end in [&mut pair.near, &mut pair.far] {
        assert!(matches!(end.arm(&plan), Err(LoadError::NotConnected { set: 0 })));
    }
}

#[test]
fn a_step_that_was_never_let_go_moves_nothing() {
    let mut pair = Pair::new();
    pair.connect(&stream(0, Direction::Forward, Knobs::default()));
    let running = pair.near.arm(&step(&[0], 20, 60_000, 20)).unwrap();
    let readings = running.finish();
    assert_eq!((readings.totals[0].sent, readings.totals[0].complete), (0, false));
}

/// Returns the best rates of sets 0 and 1, measured in turn, because other programs use this machine too.
fn best_rates(pair: &mut Pair) -> [f64; 2] {
    let mut best = [0.0; 2];
    for slice in 0..6 {
        let id = slice % 2;
        let ends = pair.run(&step(&[id], 100, 200, 50));
        assert_exact(&ends);
        let seen = rate(&ends[1], &format!("s{id}/rx0"));
        best[id as usize] = seen.max(best[id as usize]);
    }
    best
}

/// Checks whether the ratio of the first rate to the second is within `factor`.
fn differ_by(rates: [f64; 2], factor: &Range<f64>) -> Result<(), String> {
    let is_so = factor.contains(&(rates[0] / rates[1]));
    is_so.then_some(()).ok_or_else(|| format!("{rates:?}"))
}

/// Checks whether the ratio of the rate of set 0 to that of set 1 is within `factor`.
fn rates_differ_by(pair: &mut Pair, factor: &Range<f64>) {
    ask(&pair.turn(), || differ_by(best_rates(pair), factor));
    // Planted: the rates of two sets that do not differ.
    assert!(differ_by([1e9; 2], factor).is_err());
}

#[test]
fn pacing_bites_in_proportion() {
    let mut pair = Pair::new();
    for (id, mb) in [(0, 400), (1, 100)] {
        let knobs = Knobs { pacing: Some(Rate(mb * 1_000_000)), ..Knobs::default() };
        pair.connect(&stream(id, Direction::Forward, knobs));
    }
    rates_differ_by(&mut pair, &(3.0..5.0));
    let ends = pair.run(&step(&[0], 10, 10, 10));
    let tcp = table(&ends[0], "tcp", "s0/0");
    assert!(tcp.column(TCP_MAX_PACING_RATE).is_some());
}

#[test]
fn a_window_clamp_holds_while_payload_flows() {
    let mut pair = Pair::new();
    let clamp = 100_000;
    let clamped = Knobs { window_clamp: Some(Bytes(clamp)), ..Knobs::default() };
    for (id, knobs) in [(0, clamped), (1, Knobs::default())] {
        pair.connect(&stream(id, Direction::Forward, knobs));
    }
    // If this machine stood still, rows may be missing, so the step is repeated.
    let mut largest = |id| loop {
        let ends = pair.run(&step(&[id], 100, 200, 20));
        let tcp = table(&ends[0], "tcp", &format!("s{id}/0"));
        let windows = tcp.column(TCP_SND_WND).unwrap();
        if let Some(largest) = windows.iter().skip(2).max() {
            break *largest;
        }
    };
    let windows = [0, 1].map(&mut largest);
    assert!(windows[0] <= clamp as i64 * 5 / 4, "{windows:?}");
    assert!(windows[1] > clamp as i64 * 5 / 4, "{windows:?}");
}

#[test]
fn extra_work_on_the_thread_that_binds_costs_goodput() {
    let mut pair = Pair::new();
    let work = |ps| Knobs {
        extra_work: ExtraWork { sender_ps_per_byte: 0, receiver_ps_per_byte: ps },
        ..Knobs::default()
    };
    // Work of 8 ns per byte permits 1 Gb/s at most; 16 ns permit half of it.
    for (id, ps) in [(0, 8_000), (1, 16_000)] {
        pair.connect(&stream(id, Direction::Forward, work(ps)));
    }
    rates_differ_by(&mut pair, &(1.5..2.7));
}

#[test]
fn round_trips_are_counted_and_timed() {
    let mut pair = Pair::new();
    pair.connect(&ping_pong(0, 100, Nanos(0)));
    let ends = pair.run(&step(&[0], 50, 200, 50));
    let bytes = assert_exact(&ends);
    assert_eq!(bytes % 100, 0);
    let [near, far] = &ends;
    assert_eq!((near.totals[0].sent, near.totals[0].received), (bytes, bytes));
    assert!(far.latencies.is_empty());
    let counts = &near.latencies[0].counts;
    assert!(counts.windows(2).all(|w| w[0].0 < w[1].0));
    let timed: u64 = counts.iter().map(|(_, n)| n).sum();
    // Operations in the washout are not timed.
    assert!(timed > 0 && timed < bytes / 100, "{timed} of {}", bytes / 100);
}

#[test]
fn paced_round_trips_keep_to_their_schedule() {
    let mut pair = Pair::new();
    pair.connect(&ping_pong(0, 64, Nanos::from_millis(5)));
    // In 600 ms, 120 round trips are due; a machine that stands still loses some of them.
    let enough = |trips: u64| (trips >= 60).then_some(()).ok_or_else(|| trips.to_string());
    ask(&pair.turn(), || {
        let began = Instant::now();
        let ends = pair.run(&step(&[0], 100, 500, 50));
        let trips = assert_exact(&ends) / 64;
        // A round trip that is not due is never sent. The two steps around it add at most two.
        let due = began.elapsed().as_millis() as u64 / 5;
        assert!(trips <= due + 2, "{trips} of {due}");
        enough(trips)
    });
    // Planted: a schedule that is four times slower.
    assert!(enough(30).is_err());
}

#[test]
fn refused_options_are_gaps_of_the_set() {
    let mut pair = Pair::new();
    let knobs = Knobs {
        congestion: Some("nosuch".to_owned()),
        send_buffer: Some(Bytes(50_000)),
        ..Knobs::default()
    };
    for end in pair.connect(&stream(0, Direction::Forward, knobs)) {
        assert_eq!(end.gaps.len(), 1, "{:?}", end.gaps);
        assert_eq!(end.send_buffer, Some(100_000));
        assert!(end.write_size > 0 && end.read_size > 0);
    }
}

#[test]
fn the_null_engine_runs_alone() {
    let _turn = turn();
    let mut near = end(Side::Near, "null");
    for direction in Direction::ALL {
        let id = direction as u32;
        near.prepare(&stream(id, direction, Knobs::default())).unwrap();
        near.connect(id, &Vec::new(), &mut NoLines(&Subject::Host)).unwrap();
        let mut running = near.arm(&step(&[id], 10, 40, 10)).unwrap();
        running.go();
        let readings = running.finish();
        let total = &readings.totals[0];
        let moved = if direction.sender() == Side::Near { total.sent } else { total.received };
        assert!(total.complete && moved > 0, "{total:?}");
    }
}

#[test]
fn all_that_ends_of_a_batch_counts() {
    let _turn = turn();
    for (id, batch) in [1, 5, BATCH].into_iter().enumerate() {
        let mut near = end(Side::Near, "null");
        let knobs = Knobs { write_size: Bytes(1000), ..Knobs::default() };
        near.offer(batch);
        let plan = stream(id as u32, Direction::Forward, knobs);
        near.prepare(&plan).unwrap();
        near.connect(plan.id, &Vec::new(), &mut NoLines(&Subject::Host)).unwrap();
        let mut running = near.arm(&step(&[plan.id], 0, 40, 40)).unwrap();
        running.go();
        let readings = running.finish();
        let sent = readings.totals[0].sent;
        assert!(sent > 0 && sent.is_multiple_of(1000 * batch as u64), "{sent}");
        let subject = format!("s{id}/tx0");
        let ops = table(&readings, "worker", &subject).column(WORKER_OPS);
        let whole = |n: &i64| (*n as usize).is_multiple_of(batch);
        assert!(ops.unwrap().iter().all(whole));
    }
}

#[test]
fn what_is_not_there_is_refused() {
    let mut near = end(Side::Near, "tcp");
    let plan = stream(0, Direction::Forward, Knobs::default());
    assert!(near.connect(0, &Vec::new(), &mut NoLines(&Subject::Host)).is_err());
    assert!(near.arm(&step(&[0], 10, 10, 10)).is_err());
    near.prepare(&plan).unwrap();
    assert!(near.prepare(&plan).is_err());
    assert!(near.arm(&step(&[0], 10, 10, 10)).is_err());
    assert!(near.connect(0, &Vec::new(), &mut NoLines(&Subject::Host)).is_err());
    near.release(0);
    assert!(end(Side::Near, "nosuch").prepare(&plan).is_err());
}

/// The columns of each table at both ends, with the table's source and subject.
type Tables = [Vec<(String, String, Vec<Column>)>; 2];

/// Checks whether a replay gives the same tables at both ends as the measurement.
fn is_replayed(replayed: &Tables, live: &Tables) -> Result<(), String> {
    let same = replayed == live;
    same.then_some(()).ok_or_else(|| format!("{replayed:?}\n{live:?}"))
}

#[test]
fn what_a_capture_holds_of_the_sockets_replays_to_the_same_tables() {
    let made = [(); 2].map(|()| Arc::new(Capture::new(Live::default())));
    let turn = Rc::new(turn());
    let measured = |machines: [Arc<dyn Machine>; 2]| {
        let mut pair = Pair::on(&turn, machines);
        let knobs = Knobs { streams: 2, ..Knobs::default() };
        pair.connect(&stream(0, Direction::Forward, knobs));
        pair.run(&step(&[0], 0, 300, 100)).map(|end| {
            let tables = end.tables.into_iter();
            // Times of rows are left out, because the clock continues in the replay.
            tables
                .filter(|t| t.source == "tcp" || t.source == "socket")
                .map(|t| (t.source, t.subject, t.columns))
                .collect::<Vec<_>>()
        })
    };
    let live: Tables = measured(made.each_ref().map(|m| Arc::clone(m) as Arc<dyn Machine>));
    let captured = made.map(|machine| machine.captured());
    let moved =
        |columns: &[Column]| columns.iter().any(|c| c.values.windows(2).any(|w| w[0] != w[1]));
    for (tables, captured) in live.iter().zip(&captured) {
        assert_eq!(tables.len(), 4);
        assert!(tables.iter().any(|(_, _, columns)| moved(columns)));
        assert_eq!(captured.sockets.len(), 8, "four questions about each stream");
    }
    // If this machine stands still, rows are missing in the replay, so it is repeated.
    ask(&turn, || {
        let replay = |c: &Captured| Arc::new(Replay::new(c.clone())) as Arc<dyn Machine>;
        is_replayed(&measured(captured.each_ref().map(replay)), &live)
    });
    // Planted: a table whose last row is missing.
    let mut short = live.clone();
    for column in &mut short[1][0].2 {
        column.values.pop();
    }
    assert!(is_replayed(&short, &live).is_err());
}
