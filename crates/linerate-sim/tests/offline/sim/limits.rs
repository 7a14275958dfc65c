//! Tests that each limit of a simulated path determines goodput if it is the lowest one, and only then.

use super::*;

#[test]
fn the_wire_binds_with_its_framing_and_a_queue_that_shows() {
    let step = run(&wire(), &[set(0, Direction::Forward, streams(1))]);
    near(goodput_of(&step, Direction::Forward), 9.415);
    assert!(last(&step, 0, m::TCP_RTT) > 2.0 * last(&step, 0, m::TCP_MIN_RTT));
    assert!(last(&step, 0, m::TCP_RETRANS) > 0.0, "cubic fills the buffer");
    near(goodput(&wire(), streams(4)), 9.415);
}

#[test]
fn bbr_keeps_the_queue_short_at_the_same_goodput() {
    let path = SimPath { congestion: Congestion::Bbr, ..wire() };
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
    let clamped = Knobs { window_clamp: Some(Bytes(1 << 19)), ..streams(1) };
    near(goodput(&path, clamped), whole / 2.0);
    let larger = Knobs { recv_buffer: Some(Bytes(3 << 19)), ..streams(1) };
    near(goodput(&path, larger), whole * 1.5);
    near(goodput(&path, streams(2)), whole * 2.0);
}

#[test]
fn the_send_buffer_binds_in_proportion_and_counts_as_such() {
    let path = windowed();
    let knobs = Knobs { send_buffer: Some(Bytes(1 << 19)), ..streams(1) };
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
    let paced = Knobs { pacing: Some(Rate(1_000_000_000)), ..streams(2) };
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
    assert!(last(&step, 1, m::SOCKET_UNREAD) > 1e6, "data wait for the reader");
    near(goodput(&path, streams(2)), 2.0 * whole);
    let discard = Knobs { receive: Receive::Discard, ..streams(1) };
    near(goodput(&path, discard), 2.0 * whole);
    let extra = |receiver_ps_per_byte| Knobs {
        extra_work: ExtraWork { sender_ps_per_byte: 0, receiver_ps_per_byte },
        ..streams(1)
    };
    near(goodput(&path, extra(1402)), whole / 2.0);
    // The sender's CPU is not busy, so more work on it changes nothing.
    let slack = Knobs {
        extra_work: ExtraWork { sender_ps_per_byte: 300, receiver_ps_per_byte: 0 },
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
    near(goodput_of(&step, Direction::Forward), 0.262_144 * 8.0 / 1.053);
    let thread = tables(&step, 0, "thread").next().expect("a thread");
    assert!(speed(thread, m::THREAD_RUN) < 0.1e9);
    near(last(&step, 0, m::TCP_APP_LIMITED), 1.0);
    let larger = Knobs { write_size: Bytes(512 << 10), ..streams(1) };
    near(goodput(&path, larger), 0.524_288 * 8.0 / 1.105);
}

#[test]
fn a_reader_that_pauses_does_so_whether_it_copies_or_not() {
    let mut path = wire();
    path.far.receive.pause = Nanos::from_millis(1);
    let discard = Knobs { receive: Receive::Discard, ..streams(1) };
    // An operation has 262144 bytes. It takes a pause of 1 ms, and 0.2 ns of work for each byte, half of which is the
    // copy.
    near(goodput(&path, streams(1)), 0.262_144 * 8.0 / 1.053);
    near(goodput(&path, discard), 0.262_144 * 8.0 / 1.027);
}

#[test]
fn what_a_slow_reader_leaves_gathers_until_the_window_is_full_of_it() {
    let unread = |window: u64| {
        let mut path = wire();
        path.far.receive.pause = Nanos::from_millis(1);
        path.forward.receive_window = Bytes(window);
        let step = run(&path, &[set(0, Direction::Forward, streams(1))]);
        near(goodput_of(&step, Direction::Forward), 0.262_144 * 8.0 / 1.053);
        let table = tables(&step, 0, "tcp").next().expect("a socket");
        let closed = speed(table, m::TCP_RWND_LIMITED) / 1e6;
        (last(&step, 1, m::SOCKET_UNREAD), closed)
    };
    // 9.415 Gb/s arrive and 1.99 Gb/s are read, so unread data grow by 928 MB per second.
    let (gathered, closed) = unread(8 << 30);
    assert!((1.8e9..2.3e9).contains(&gathered), "{gathered}");
    assert!(closed < 0.01, "{closed}");
    let (gathered, closed) = unread(64 << 20);
    assert!(gathered < 67e6, "{gathered}");
    assert!(closed > 0.8, "{closed}");
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
fn the_two_directions_do_not_meet_but_on_a_shared_cpu() {
    let sets = [set(0, Direction::Forward, streams(1)), set(1, Direction::Reverse, streams(1))];
    let both = run(&wire(), &sets);
    near(goodput_of(&both, Direction::Forward), 9.415);
    near(goodput_of(&both, Direction::Reverse), 9.415);
    let mut path = receiver_bound();
    path.shared_host = true;
    path.near.cpus = 1;
    let alone = goodput(&path, streams(1));
    assert!(alone < 5.2, "sender and receiver share the only CPU: {alone}");
}

#[test]
fn pacing_below_the_rate_empties_the_queue_and_a_policer_has_none() {
    let paced = Knobs { pacing: Some(Rate(6_500_000_000)), ..streams(1) };
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
fn a_policed_flow_loses_what_exceeds_its_rate_and_nothing_at_half_of_it() {
    let mut path = wire();
    path.forward.flow_cap = Some(Rate(500_000_000));
    path.forward.policed = true;
    let lost = |pacing| {
        let knobs = Knobs { pacing, ..streams(1) };
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
    let small = |mss| Knobs { mss: Some(mss), ..streams(1) };
    assert!(goodput(&path, small(1348)) > 8.0);
    assert!(goodput(&path, small(1349)) < 1e-9);
}
