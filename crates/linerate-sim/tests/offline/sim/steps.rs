//! Tests of steps on a simulated path, and of their counters.

use super::*;

#[test]
fn load_shows_in_round_trips() {
    let idle = run(&wire(), &[ping(0)]);
    let loaded = run(&wire(), &[set(1, Direction::Forward, streams(1)), ping(0)]);
    let middle = |step: &Step| {
        let all = &step.ends[0].latencies[0];
        linerate_units::stats::percentile(all, 0.5).expect("samples enough")
    };
    assert!((200_000..250_000).contains(&middle(&idle)), "{}", middle(&idle));
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
            let clocks = column(m::TCP_RWND_LIMITED).iter().zip(column(m::TCP_SNDBUF_LIMITED));
            for (busy, (rwnd, sndbuf)) in column(m::TCP_BUSY).iter().zip(clocks) {
                assert!(rwnd + sndbuf <= *busy);
            }
        }
        for end in &step.ends {
            for table in &end.tables {
                for column in &table.columns {
                    assert_eq!(column.values.len(), table.at.len());
                    let rises = column.values.windows(2).all(|w| w[0] <= w[1]);
                    let counter = column.kind == linerate_facts::metric::Kind::Counter;
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
        sim.prepare(&set(0, Direction::Forward, streams(2))).expect("the set is made");
        sim.step(&plan(&[0], Nanos::from_secs(1)), &mut |_| StepControl::Continue)
            .expect("the step runs")
    };
    assert_eq!(steps(3), steps(3));
    assert_ne!(steps(3), steps(4));
}

#[test]
fn an_interruption_and_another_session_leave_their_marks() {
    let span = Span { from: Nanos::from_millis(800), to: Nanos::from_millis(1300) };
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
    let missing = sim.step(&long, &mut |_| StepControl::Continue);
    assert!(matches!(missing, Err(LinkError::Refused { .. })));
    assert!(sim.prepare(&set(0, Direction::Forward, streams(0))).is_err());
    sim.prepare(&set(0, Direction::Forward, streams(1))).expect("the set is made");
    let mut calls = 0;
    let step = sim
        .step(&long, &mut |live| {
            calls += 1;
            assert!(live.rate.0 > 0);
            if calls == 3 { StepControl::Stop } else { StepControl::Continue }
        })
        .expect("the step runs");
    assert_eq!(step.trouble.expect("it was stopped").what, "stopped");
    assert!(sim.now() < Nanos::from_secs(1));
}

#[test]
fn a_step_that_measured_enough_ends_in_order_and_says_how_long_it_measured() {
    let mut sim = Sim::new(wire(), 1);
    sim.prepare(&set(0, Direction::Forward, streams(1))).expect("the set is made");
    let step = sim
        .step(&plan(&[0], Nanos::from_secs(5)), &mut |live| {
            if live.elapsed < Nanos::from_millis(700) {
                StepControl::Continue
            } else {
                StepControl::Enough
            }
        })
        .expect("the step runs");
    assert_eq!(step.trouble, None);
    assert_eq!(step.plan.washout.0 + step.plan.measure.0, 700_000_000);
    assert!(goodput_of(&step, Direction::Forward) > 0.0);
}

#[test]
fn hosts_share_a_boot_id_only_where_they_are_one() {
    let ids = |path: SimPath| {
        let hosts = Sim::new(path, 1).hosts().expect("facts");
        (hosts[0].facts.boot_id.clone(), hosts[1].facts.boot_id.clone())
    };
    let (near, far) = ids(wire());
    assert_ne!(near, far);
    let (near, far) = ids(SimPath { shared_host: true, ..wire() });
    assert_eq!(near, far);
}

#[test]
fn a_new_connection_ramps_up_and_a_warm_one_goes_on() {
    let path = SimPath { rtt: Nanos::from_millis(40), ..wire() };
    let mut sim = Sim::new(path, 1);
    sim.prepare(&set(0, Direction::Forward, streams(1))).expect("the set is made");
    let mut ticks = || {
        let step = sim
            .step(&plan(&[0], Nanos::from_secs(2)), &mut |_| StepControl::Continue)
            .expect("the step runs");
        let table = tables(&step, 1, "worker").next().expect("a worker");
        let bytes = table.column(m::WORKER_BYTES).expect("bytes");
        bytes.windows(2).map(|w| (w[1] - w[0]) as f64).collect::<Vec<_>>()
    };
    let cold = ticks();
    let full = cold[cold.len() - 1];
    assert!(cold[0] < 0.1 * full && cold[1] < 0.5 * full, "{cold:?}");
    assert!(
        (2..=8).contains(&linerate_units::stats::steady_state(&cold).expect("steady in the end"))
    );
    near(ticks()[0], full);
}
