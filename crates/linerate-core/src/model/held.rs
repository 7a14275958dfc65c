//! What held the sender back: shares of time, from the kernel's clocks and from its state.
//!
//! Neither is enough alone. The clocks (`tcpi_rwnd_limited`, `tcpi_sndbuf_limited`) run only where the
//! kernel is sure: a sender in slow start counts as limited by its congestion window when that is
//! twice what is in flight, and one that is paced counts as busy between two bursts. The state at
//! each sample is a snapshot, but says what the sender would need to send more.

use super::readings::{Window, mean, per_second};
use crate::metric as m;
use crate::record::Table;

/// In flight, of the window offered, from which the window is full: the rest is less than the
/// sender waits for.
const FULL_WINDOW: f64 = 0.9;

/// Memory in use, of the send buffer, from which the program waits for room: the kernel wakes it
/// when a third is free.
const FULL_BUFFER: f64 = 0.6;

/// Shares of time; `None` where a counter is missing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    pub(super) rwnd_limited: Option<f64>,
    pub(super) sndbuf_limited: Option<f64>,
    pub(super) starved: Option<f64>,
    pub(super) network: Option<f64>,
}

/// What one sample says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Window,
    Buffer,
    Starved,
    Network,
}

impl Held {
    /// From the tables of a set's sockets on the sending end.
    pub(super) fn of(tcp: &[&Table], sockets: &[&Table], window: Window) -> Self {
        let states: Vec<State> = tcp
            .iter()
            .flat_map(|t| {
                let socket = sockets.iter().find(|s| s.subject == t.subject);
                states(t, socket.copied(), window)
            })
            .collect();
        let seen = |state| {
            let n = states.iter().filter(|s| **s == state).count();
            (!states.is_empty()).then(|| n as f64 / states.len() as f64)
        };
        // Clocks of TCP_INFO count microseconds.
        let clock = |metric| {
            mean(tcp.iter().filter_map(|t| per_second(t, metric, window)))
                .map(|us_per_s| (us_per_s / 1e6).clamp(0.0, 1.0))
        };
        let larger = |metric, state| Some(clock(metric)?.max(seen(state).unwrap_or(0.0)));
        let rwnd_limited = larger(m::TCP_RWND_LIMITED, State::Window);
        let sndbuf_limited = larger(m::TCP_SNDBUF_LIMITED, State::Buffer);
        let starved = seen(State::Starved);
        let rest = |r: f64| Some((1.0 - r - sndbuf_limited? - starved?).max(0.0));
        Self {
            rwnd_limited,
            sndbuf_limited,
            starved,
            network: rwnd_limited.and_then(rest),
        }
    }
}

/// The state at each row of the window; nothing where a column is missing.
fn states(tcp: &Table, socket: Option<&Table>, window: Window) -> Vec<State> {
    let rows = || {
        tcp.at
            .iter()
            .enumerate()
            .filter(|(_, at)| window.holds(**at))
    };
    rows()
        .filter_map(|(row, at)| state(tcp, row, socket.and_then(|s| buffer(s, *at))))
        .collect()
}

/// Share of the send buffer that is in use at the row nearest to `at`.
fn buffer(socket: &Table, at: u64) -> Option<f64> {
    let next = socket.at.partition_point(|t| *t < at);
    let near = |row: &usize| Some(socket.at.get(*row)?.abs_diff(at));
    let beside = next.checked_sub(1).into_iter().chain([next]);
    let row = beside.min_by_key(|row| near(row).unwrap_or(u64::MAX))?;
    let value = |metric| Some(*socket.column(metric)?.get(row)? as f64);
    let size = value(m::SOCKET_SNDBUF)?;
    (size > 0.0).then_some(value(m::SOCKET_WMEM_QUEUED)? / size)
}

fn state(tcp: &Table, row: usize, buffer: Option<f64>) -> Option<State> {
    let value = |metric| Some(*tcp.column(metric)?.get(row)? as f64);
    let mss = value(m::TCP_SND_MSS)?;
    let flight = value(m::TCP_UNACKED)? * mss;
    // Kernels before 5.4 do not tell the window.
    let full_window = value(m::TCP_SND_WND).is_some_and(|w| flight >= w * FULL_WINDOW);
    let nothing_waits = value(m::TCP_APP_LIMITED)? > 0.0 || value(m::TCP_NOTSENT)? < 2.0 * mss;
    Some(match (full_window, nothing_waits, buffer) {
        (true, ..) => State::Window,
        (_, false, _) => State::Network,
        (_, true, Some(used)) if used >= FULL_BUFFER => State::Buffer,
        (_, true, _) => State::Starved,
    })
}
