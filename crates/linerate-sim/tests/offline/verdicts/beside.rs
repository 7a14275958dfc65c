//! Tests of a second limit that is a little lower, or a little higher, than the limit of the path.

use super::*;

/// Payload that a path of 4 Gb/s carries in full segments of 1448 bytes, in bits per second.
const CARRIED: f64 = 4e9 * 1448.0 / 1538.0;

/// Sets a limit to this multiple of `CARRIED`.
type Beside = fn(&mut SimPath, &mut Knobs, f64);

/// Sets a round trip of 2 ms; returns the bytes in flight with which goodput is this multiple of `CARRIED`.
fn in_flight(path: &mut SimPath, times: f64) -> Bytes {
    path.rtt = Nanos::from_millis(2);
    Bytes((CARRIED * times / 8.0 * 0.002) as u64)
}

/// Returns the picoseconds of additional work per byte that limit goodput to this multiple of `CARRIED`.
fn work(times: f64) -> u64 {
    let cost = Cost::default();
    (8e12 / (CARRIED * times)) as u64 - cost.kernel_ps - cost.copy_ps
}

/// Returns the pause after each operation that limits goodput to this multiple of `CARRIED`.
fn pause(times: f64) -> Nanos {
    Nanos(work(times) * Cost::default().op.0 / 1000)
}

const BESIDE: &[(&str, Beside)] = &[
    ("receive-window", |p, _, times| {
        p.forward.receive_window = in_flight(p, times);
    }),
    ("send-buffer", |p, _, times| {
        p.forward.send_buffer = in_flight(p, times);
    }),
    ("receiver-core", |p, _, times| {
        p.far.receive.user_ps = work(times);
    }),
    ("sender-core", |p, _, times| {
        p.near.send.user_ps = work(times);
    }),
    ("receiver-app", |p, _, times| {
        p.far.receive.pause = pause(times);
    }),
    // The receive window has room for everything that a slow reader does not read during a step.
    ("receiver-app", |p, _, times| {
        p.forward.receive_window = Bytes(1 << 30);
        p.far.receive.pause = pause(times);
    }),
    ("sender-app", |p, _, times| {
        p.near.send.pause = pause(times);
    }),
    ("pacing", |_, k, times| {
        k.pacing = Some(Rate((CARRIED * times) as u64));
    }),
];

#[test]
fn a_limit_just_under_the_path_is_named_and_one_just_over_it_is_not() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        for (cause, put) in BESIDE {
            for (times, binds) in [(0.85, true), (1.2, false)] {
                let mut path = SimPath { congestion, ..SimPath::default() };
                path.forward.rate = gigabits(4.0);
                let mut knobs = Knobs::default();
                put(&mut path, &mut knobs, times);
                let verdict = verdict_of(&path, knobs, 11);
                let named = first(&verdict).map(|l| l.cause);
                let what = format!(
                    "{cause} at {times} of the path under {}: {}",
                    congestion.name(),
                    explain(&verdict)
                );
                assert_eq!(named == Some(*cause), binds, "{what}");
                assert!(binds || matches!(named, None | Some("path-rate")), "{what}");
            }
        }
    }
}

#[test]
fn a_path_just_under_its_ports_is_not_their_wire() {
    for (share, cause) in [(1.0, "wire-full"), (0.96, "path-rate")] {
        let mut path = SimPath::default();
        path.near.port_speed = Some(gigabits(10.0));
        path.far.port_speed = Some(gigabits(10.0));
        path.forward.rate = gigabits(10.0 * share);
        let verdict = verdict_of(&path, Knobs::default(), 5);
        let named = first(&verdict).map(|l| (l.cause, l.certainty));
        assert_eq!(named, Some((cause, Certainty::Proved)), "{share}: {}", explain(&verdict));
    }
}
