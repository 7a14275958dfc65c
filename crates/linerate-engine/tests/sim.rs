//! The simulated path: each limit binds where it is the least, and only there.

use linerate_core::metric::{self as m, Metric};
use linerate_core::plan::{
    Direction, ExtraWork, Knobs, Pattern, Purpose, Receive, SetPlan, StepPlan,
};
use linerate_core::record::{Step, Table};
use linerate_core::units::{Bytes, Nanos, Rate};
use linerate_engine::event::Flow;
use linerate_engine::link::{Link, LinkError};
use linerate_engine::load::sim::noise::Class;
use linerate_engine::load::sim::{Congestion, Sim, SimPath, Span};
use proptest::prelude::*;

fn set(id: u32, direction: Direction, knobs: Knobs) -> SetPlan {
    SetPlan {
        id,
        pattern: Pattern::Stream { direction },
        knobs,
    }
}

fn ping(id: u32) -> SetPlan {
    SetPlan {
        id,
        pattern: Pattern::PingPong {
            size: Bytes(64),
            interval: Nanos(0),
        },
        knobs: Knobs::default(),
    }
}

fn plan(sets: &[u32], measure: Nanos) -> StepPlan {
    StepPlan {
        index: 0,
        purpose: Purpose::Both,
        sets: sets.to_vec(),
        washout: Nanos::from_millis(300),
        measure,
        tick: Nanos::from_millis(100),
    }
}

/// A step of two seconds on the sets given.
fn run(path: &SimPath, sets: &[SetPlan]) -> Step {
    let mut sim = Sim::new(path.clone(), 1);
    for set in sets {
        sim.prepare(set).expect("the set is made");
    }
    let ids: Vec<u32> = sets.iter().map(|s| s.id).collect();
    sim.step(&plan(&ids, Nanos::from_secs(2)), &mut |_| Flow::Go)
        .expect("the step runs")
}

fn tables<'a>(step: &'a Step, end: usize, source: &'a str) -> impl Iterator<Item = &'a Table> {
    step.ends[end]
        .tables
        .iter()
        .filter(move |t| t.source == source)
}

/// Growth of a counter over the time that counts, per second.
fn speed(table: &Table, metric: Metric) -> f64 {
    let values = table.column(metric).expect("the column is there");
    let first = table
        .at
        .iter()
        .position(|&at| at >= 300_000_000)
        .expect("a row");
    let last = values.len() - 1;
    (values[last] - values[first]) as f64 * 1e9 / (table.at[last] - table.at[first]) as f64
}

/// Last value of a column of the first table of a source.
fn last(step: &Step, end: usize, metric: Metric) -> f64 {
    let table = tables(step, end, metric.source).next().expect("a table");
    *table.column(metric).and_then(<[i64]>::last).expect("a row") as f64
}

/// Goodput in Gb/s of one direction, at the receiver.
fn goodput_of(step: &Step, direction: Direction) -> f64 {
    let end = usize::from(direction == Direction::Forward);
    tables(step, end, "worker")
        .filter(|t| t.subject.contains("/rx"))
        .map(|t| speed(t, m::WORKER_BYTES) * 8e-9)
        .sum()
}

fn goodput(path: &SimPath, knobs: Knobs) -> f64 {
    let step = run(path, &[set(0, Direction::Forward, knobs)]);
    goodput_of(&step, Direction::Forward)
}

fn streams(streams: u32) -> Knobs {
    Knobs {
        streams,
        ..Knobs::default()
    }
}

/// A path of 10 Gb/s where nothing but the wire binds.
fn wire() -> SimPath {
    SimPath::default()
}

/// A longer path at 20 Gb/s, where the window of 1 MB and a millisecond leave 8.4 Gb/s.
fn windowed() -> SimPath {
    let mut path = SimPath {
        rtt: Nanos::from_millis(1),
        ..SimPath::default()
    };
    path.forward.rate = Rate(20_000_000_000);
    path.forward.receive_window = Bytes(1 << 20);
    path.forward.send_buffer = Bytes(2 << 20);
    path
}

/// A fast path whose receiving core allows 5.7 Gb/s.
fn receiver_bound() -> SimPath {
    let mut path = wire();
    path.forward.rate = Rate(40_000_000_000);
    path.far.receive.kernel_ps = 700;
    path.far.receive.copy_ps = 700;
    path
}

fn near(got: f64, want: f64) {
    assert!((got / want - 1.0).abs() < 0.03, "got {got}, want {want}");
}

#[test]
fn the_wire_binds_with_its_framing_and_a_queue_that_shows() {
    let step = run(&wire(), &[set(0, Direction::Forward, streams(1))]);
    near(goodput_of(&step, Direction::Forward), 9.415);
    assert!(last(&step, 0, m::TCP_RTT) > 2.0 * last(&step, 0, m::TCP_MIN_RTT));
    assert!(
        last(&step, 0, m::TCP_RETRANS) > 0.0,
        "cubic fills the buffer"
    );
    near(goodput(&wire(), streams(4)), 9.415);
}

#[test]
fn bbr_keeps_the_queue_short_at_the_same_goodput() {
    let path = SimPath {
        congestion: Congestion::Bbr,
        ..wire()
    };
    let step = run(&path, &[set(0, Direction::Forward, streams(1))]);
    near(goodput_of(&step, Direction::Forward), 9.415);
    assert!(last(&step, 0, m::TCP_RTT) < 1.6 * last(&step, 0, m::TCP_MIN_RTT));
}

#[test]
fn a_window_binds_in_proportion_and_counts_as_such() {
    let path = windowed();
    let step = run(&path, &[set(0, Direction::Forward, streams(1))]);
    let whole = goodput_of(&step, Direction::Forward);
    near(whole, 8.39);
    let table = tables(&step, 0, "tcp").next().expect("a socket");
    assert!(speed(table, m::TCP_RWND_LIMITED) > 0.9 * speed(table, m::TCP_BUSY));
    let in_flight = last(&step, 0, m::TCP_UNACKED) * last(&step, 0, m::TCP_SND_MSS);
    near(in_flight, last(&step, 0, m::TCP_SND_WND));
    let clamped = Knobs {
        window_clamp: Some(Bytes(1 << 19)),
        ..streams(1)
    };
    near(goodput(&path, clamped), whole / 2.0);
    let larger = Knobs {
        recv_buffer: Some(Bytes(3 << 19)),
        ..streams(1)
    };
    near(goodput(&path, larger), whole * 1.5);
    near(goodput(&path, streams(2)), whole * 2.0);
}

#[test]
fn the_send_buffer_binds_in_proportion_and_counts_as_such() {
    let path = windowed();
    let knobs = Knobs {
        send_buffer: Some(Bytes(1 << 19)),
        ..streams(1)
    };
    let step = run(&path, &[set(0, Direction::Forward, knobs)]);
    near(goodput_of(&step, Direction::Forward), 4.19);
    let table = tables(&step, 0, "tcp").next().expect("a socket");
    assert!(speed(table, m::TCP_SNDBUF_LIMITED) > 0.9 * speed(table, m::TCP_BUSY));
    assert!(speed(table, m::TCP_RWND_LIMITED) < 1.0);
}

#[test]
fn a_flow_cap_and_pacing_bind_each_stream() {
    let mut path = wire();
    path.forward.flow_cap = Some(Rate(2_000_000_000));
    near(goodput(&path, streams(1)), 1.883);
    near(goodput(&path, streams(3)), 3.0 * 1.883);
    let paced = Knobs {
        pacing: Some(Rate(1_000_000_000)),
        ..streams(2)
    };
    near(goodput(&wire(), paced), 2.0);
}

#[test]
fn a_receiving_core_binds_until_it_gets_help() {
    let path = receiver_bound();
    let step = run(&path, &[set(0, Direction::Forward, streams(1))]);
    let whole = goodput_of(&step, Direction::Forward);
    near(whole, 5.7);
    let thread = tables(&step, 1, "thread").next().expect("a thread");
    near(speed(thread, m::THREAD_RUN), 1e9);
    assert!(
        last(&step, 1, m::SOCKET_UNREAD) > 1e6,
        "data wait for the reader"
    );
    near(goodput(&path, streams(2)), 2.0 * whole);
    let discard = Knobs {
        receive: Receive::Discard,
        ..streams(1)
    };
    near(goodput(&path, discard), 2.0 * whole);
    let extra = |receiver_ps_per_byte| Knobs {
        extra_work: ExtraWork {
            sender_ps_per_byte: 0,
            receiver_ps_per_byte,
        },
        ..streams(1)
    };
    near(goodput(&path, extra(1402)), whole / 2.0);
    // The sender has slack: work there changes nothing.
    let slack = Knobs {
        extra_work: ExtraWork {
            sender_ps_per_byte: 300,
            receiver_ps_per_byte: 0,
        },
        ..streams(1)
    };
    near(goodput(&path, slack), whole);
}

#[test]
fn threads_share_a_cpu_and_wait_for_it() {
    let mut path = receiver_bound();
    path.far.cpus = 1;
    let step = run(&path, &[set(0, Direction::Forward, streams(2))]);
    near(goodput_of(&step, Direction::Forward), 5.7);
    for thread in tables(&step, 1, "thread") {
        near(speed(thread, m::THREAD_WAIT), 0.5e9);
    }
    let busy = tables(&step, 1, "cpu").next().expect("a CPU");
    assert!(speed(busy, m::CPU_IDLE) < 2.0);
}

#[test]
fn a_pause_of_the_application_binds_without_using_the_cpu() {
    let mut path = wire();
    path.near.send.pause = Nanos::from_millis(1);
    let step = run(&path, &[set(0, Direction::Forward, streams(1))]);
    near(
        goodput_of(&step, Direction::Forward),
        0.262_144 * 8.0 / 1.053,
    );
    let thread = tables(&step, 0, "thread").next().expect("a thread");
    assert!(speed(thread, m::THREAD_RUN) < 0.1e9);
    near(last(&step, 0, m::TCP_APP_LIMITED), 1.0);
    let larger = Knobs {
        write_size: Bytes(512 << 10),
        ..streams(1)
    };
    near(goodput(&path, larger), 0.524_288 * 8.0 / 1.105);
}

#[test]
fn a_reader_that_pauses_does_so_whether_it_copies_or_not() {
    let mut path = wire();
    path.far.receive.pause = Nanos::from_millis(1);
    let discard = Knobs {
        receive: Receive::Discard,
        ..streams(1)
    };
    // 262144 bytes in a pause and the work on them: 0.2 ns per byte, half of it the copy.
    near(goodput(&path, streams(1)), 0.262_144 * 8.0 / 1.053);
    near(goodput(&path, discard), 0.262_144 * 8.0 / 1.027);
}

#[test]
fn raising_a_limit_that_does_not_bind_changes_nothing() {
    let raises: [fn(&mut SimPath); 6] = [
        |p| p.forward.send_buffer = Bytes(4 << 20),
        |p| p.forward.rate = Rate(40_000_000_000),
        |p| p.forward.buffer = Bytes(8 << 20),
        |p| p.forward.flow_cap = Some(Rate(15_000_000_000)),
        |p| p.far.cpus = 16,
        |p| p.near.send.kernel_ps = 50,
    ];
    let before = goodput(&windowed(), streams(1));
    for raise in raises {
        let mut path = windowed();
        raise(&mut path);
        near(goodput(&path, streams(1)), before);
    }
    let mut path = windowed();
    path.forward.receive_window = Bytes(3 << 19);
    near(goodput(&path, streams(1)), before * 1.5);
}

#[test]
fn random_loss_binds_cubic_and_not_bbr() {
    let mut path = windowed();
    path.forward.loss = 0.001;
    let cubic = goodput(&path, streams(1));
    assert!(cubic < 1.0, "{cubic}");
    path.congestion = Congestion::Bbr;
    near(goodput(&path, streams(1)), 8.39);
}

#[test]
fn a_policed_flow_loses_what_exceeds_its_rate_and_nothing_at_half_of_it() {
    let mut path = wire();
    path.forward.flow_cap = Some(Rate(500_000_000));
    path.forward.policed = true;
    let lost = |pacing| {
        let knobs = Knobs {
            pacing,
            ..streams(1)
        };
        let step = run(&path, &[set(0, Direction::Forward, knobs)]);
        last(&step, 0, m::TCP_RETRANS)
    };
    assert!(lost(None) > 100.0);
    assert!(lost(Some(Rate(250_000_000))) < 1.0);
    near(goodput(&path, streams(2)), 2.0 * 0.471);
}

#[test]
fn packets_that_are_too_large_vanish_and_small_ones_pass() {
    let mut path = wire();
    path.forward.passes = Some(1400);
    let sets = [set(0, Direction::Forward, streams(1)), ping(1)];
    let step = run(&path, &sets);
    assert!(goodput_of(&step, Direction::Forward) < 1e-9);
    assert!(step.trouble.is_some());
    assert!(last(&step, 0, m::TCP_TOTAL_RTO) >= 3.0);
    assert!(!step.ends[0].latencies.is_empty(), "round trips go on");
    let small = |mss| Knobs {
        mss: Some(mss),
        ..streams(1)
    };
    assert!(goodput(&path, small(1348)) > 8.0);
    assert!(goodput(&path, small(1349)) < 1e-9);
}

#[test]
fn the_two_directions_do_not_meet_but_on_a_shared_cpu() {
    let sets = [
        set(0, Direction::Forward, streams(1)),
        set(1, Direction::Reverse, streams(1)),
    ];
    let both = run(&wire(), &sets);
    near(goodput_of(&both, Direction::Forward), 9.415);
    near(goodput_of(&both, Direction::Reverse), 9.415);
    let mut path = receiver_bound();
    path.shared_host = true;
    path.near.cpus = 1;
    let alone = goodput(&path, streams(1));
    assert!(
        alone < 5.2,
        "sender and receiver share the only CPU: {alone}"
    );
}

#[test]
fn load_shows_in_round_trips() {
    let idle = run(&wire(), &[ping(0)]);
    let loaded = run(&wire(), &[set(1, Direction::Forward, streams(1)), ping(0)]);
    let middle = |step: &Step| {
        let all = &step.ends[0].latencies[0];
        linerate_core::stats::percentile(all, 0.5).expect("samples enough")
    };
    assert!(
        (200_000..250_000).contains(&middle(&idle)),
        "{}",
        middle(&idle)
    );
    assert!(middle(&loaded) > 2 * middle(&idle));
    assert!(idle.ends[1].latencies.is_empty());
}

#[test]
fn payload_is_conserved_and_clocks_are_within_busy() {
    for path in [wire(), windowed(), receiver_bound()] {
        let step = run(&path, &[set(0, Direction::Forward, streams(3))]);
        for (sent, got) in step.ends[0].totals.iter().zip(&step.ends[1].totals) {
            assert_eq!(sent.sent, got.received);
            assert!(sent.sent > 0 && sent.received == 0 && got.sent == 0);
        }
        for tcp in tables(&step, 0, "tcp") {
            let column = |metric| tcp.column(metric).expect("the column is there");
            let clocks = column(m::TCP_RWND_LIMITED)
                .iter()
                .zip(column(m::TCP_SNDBUF_LIMITED));
            for (busy, (rwnd, sndbuf)) in column(m::TCP_BUSY).iter().zip(clocks) {
                assert!(rwnd + sndbuf <= *busy);
            }
        }
        for end in &step.ends {
            for table in &end.tables {
                for column in &table.columns {
                    assert_eq!(column.values.len(), table.at.len());
                    let rises = column.values.windows(2).all(|w| w[0] <= w[1]);
                    let counter = column.kind == linerate_core::metric::Kind::Counter;
                    assert!(rises || !counter, "{} {}", table.subject, column.name);
                }
            }
        }
    }
}

#[test]
fn a_seed_decides_everything() {
    let steps = |seed| {
        let mut path = wire();
        path.forward.noise = (Class::Correlated(0.9), 0.05);
        let mut sim = Sim::new(path, seed);
        sim.prepare(&set(0, Direction::Forward, streams(2)))
            .expect("the set is made");
        sim.step(&plan(&[0], Nanos::from_secs(1)), &mut |_| Flow::Go)
            .expect("the step runs")
    };
    assert_eq!(steps(3), steps(3));
    assert_ne!(steps(3), steps(4));
}

#[test]
fn an_interruption_and_another_session_leave_their_marks() {
    let span = Span {
        from: Nanos::from_millis(800),
        to: Nanos::from_millis(1300),
    };
    let mut path = wire();
    path.down = Some(span);
    let step = run(&path, &[set(0, Direction::Forward, streams(1))]);
    let changes = tables(&step, 0, "port").next().expect("a port");
    let changes = changes.column(m::PORT_CARRIER_CHANGES).expect("a column");
    assert_eq!(changes.last().expect("a row") - changes[0], 2);
    assert!(last(&step, 0, m::TCP_TOTAL_RTO) > 0.0);
    let mut path = wire();
    path.other_session = Some((span, 0.5));
    let step = run(&path, &[set(0, Direction::Forward, streams(1))]);
    assert_eq!(step.ends[0].other_sessions, 1);
    let quiet = run(&wire(), &[set(0, Direction::Forward, streams(1))]);
    assert_eq!(quiet.ends[0].other_sessions, 0);
    assert!(goodput_of(&step, Direction::Forward) < 0.95 * goodput_of(&quiet, Direction::Forward));
}

#[test]
fn a_step_stops_when_told_and_refuses_what_is_not_there() {
    let mut sim = Sim::new(wire(), 1);
    let long = plan(&[0], Nanos::from_secs(5));
    let missing = sim.step(&long, &mut |_| Flow::Go);
    assert!(matches!(missing, Err(LinkError::Refused { .. })));
    assert!(
        sim.prepare(&set(0, Direction::Forward, streams(0)))
            .is_err()
    );
    sim.prepare(&set(0, Direction::Forward, streams(1)))
        .expect("the set is made");
    let mut calls = 0;
    let step = sim
        .step(&long, &mut |live| {
            calls += 1;
            assert!(live.rate.0 > 0);
            if calls == 3 { Flow::Stop } else { Flow::Go }
        })
        .expect("the step runs");
    assert_eq!(step.trouble.expect("it was stopped").what, "stopped");
    assert!(sim.now() < Nanos::from_secs(1));
}

#[test]
fn hosts_share_a_boot_id_only_where_they_are_one() {
    let ids = |path: SimPath| {
        let hosts = Sim::new(path, 1).hosts().expect("facts");
        (
            hosts[0].facts.boot_id.clone(),
            hosts[1].facts.boot_id.clone(),
        )
    };
    let (near, far) = ids(wire());
    assert_ne!(near, far);
    let (near, far) = ids(SimPath {
        shared_host: true,
        ..wire()
    });
    assert_eq!(near, far);
}

#[test]
fn pacing_below_the_rate_empties_the_queue_and_a_policer_has_none() {
    let paced = Knobs {
        pacing: Some(Rate(6_500_000_000)),
        ..streams(1)
    };
    let step = run(&wire(), &[set(0, Direction::Forward, paced)]);
    near(goodput_of(&step, Direction::Forward), 6.5);
    near(last(&step, 0, m::TCP_RTT), 200.0);
    near(last(&step, 0, m::TCP_MAX_PACING_RATE), 6.5e9);
    let mut path = wire();
    path.forward.buffer = Bytes(0);
    let step = run(&path, &[set(0, Direction::Forward, streams(2))]);
    let got = goodput_of(&step, Direction::Forward);
    assert!((7.0..9.5).contains(&got), "{got}");
    near(last(&step, 0, m::TCP_RTT), 200.0);
    let table = tables(&step, 0, "tcp").next().expect("a socket");
    assert!(speed(table, m::TCP_RETRANS) > 1.0);
}

#[test]
fn a_new_connection_ramps_up_and_a_warm_one_goes_on() {
    let path = SimPath {
        rtt: Nanos::from_millis(40),
        ..wire()
    };
    let mut sim = Sim::new(path, 1);
    sim.prepare(&set(0, Direction::Forward, streams(1)))
        .expect("the set is made");
    let mut ticks = || {
        let step = sim
            .step(&plan(&[0], Nanos::from_secs(2)), &mut |_| Flow::Go)
            .expect("the step runs");
        let table = tables(&step, 1, "worker").next().expect("a worker");
        let bytes = table.column(m::WORKER_BYTES).expect("bytes");
        bytes
            .windows(2)
            .map(|w| (w[1] - w[0]) as f64)
            .collect::<Vec<_>>()
    };
    let cold = ticks();
    let full = cold[cold.len() - 1];
    assert!(cold[0] < 0.1 * full && cold[1] < 0.5 * full, "{cold:?}");
    assert!(
        (2..=8).contains(&linerate_core::stats::steady_state(&cold).expect("steady in the end"))
    );
    near(ticks()[0], full);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]
    #[test]
    fn no_rate_passes_its_ceiling_and_none_is_nonsense(
        seed: u64,
        count in 1_u32..6,
        rtt_us in 20_u64..50_000,
        rate_mbps in 10_u64..100_000,
        window in 2_000_u64..8_000_000,
        buffer in 0_u64..4_000_000,
        loss in prop_oneof![Just(0.0), 1e-6..0.1],
        pace in prop::option::of(1_000_000_u64..20_000_000_000),
        cpus in 1_u32..5,
        shared_host: bool,
        bbr: bool,
    ) {
        let mut path = SimPath {
            rtt: Nanos::from_micros(rtt_us),
            shared_host,
            congestion: if bbr { Congestion::Bbr } else { Congestion::Cubic },
            ..SimPath::default()
        };
        path.forward.rate = Rate(rate_mbps * 1_000_000);
        path.forward.receive_window = Bytes(window);
        path.forward.buffer = Bytes(buffer);
        path.forward.loss = loss;
        path.forward.noise.1 = 0.0;
        path.far.cpus = cpus;
        let knobs = Knobs { pacing: pace.map(Rate), ..streams(count) };
        let mut sim = Sim::new(path, seed);
        sim.prepare(&set(0, Direction::Forward, knobs)).expect("the set is made");
        let step = sim
            .step(&plan(&[0], Nanos::from_secs(1)), &mut |_| Flow::Go)
            .expect("the step runs");
        let got = goodput_of(&step, Direction::Forward) * 1e9;
        let streams = f64::from(count);
        // Receivers on a shared host run on the near one's four CPUs.
        let core = 8.0 * 1e12 / 202.0;
        let ceilings = [
            rate_mbps as f64 * 1e6 * 1448.0 / 1538.0,
            streams * window as f64 * 8e6 / rtt_us as f64,
            pace.map_or(f64::MAX, |p| streams * p as f64),
core * f64::from(if shared_host { 4 } else { cpus }.min(count)),
        ];
        for ceiling in ceilings {
            prop_assert!(got <= ceiling * 1.001 + 1e5, "{got} passes {ceiling}");
        }
        prop_assert!(got > 0.0);
        let numbers = step.ends.iter().flat_map(|e| &e.tables).flat_map(|t| &t.columns);
        for column in numbers {
            prop_assert!(column.values.iter().all(|v| *v >= 0), "{}", column.name);
        }
        for (sent, got) in step.ends[0].totals.iter().zip(&step.ends[1].totals) {
            prop_assert_eq!(sent.sent, got.received);
        }
    }
}
