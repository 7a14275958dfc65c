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
    let sender = Sender::of(tcp);
    let mut buffer = socket.map(Buffer::of);
    let state = |row: usize| {
        let used = buffer.as_mut().and_then(|buffer| buffer.used(tcp.at[row]));
        sender.state(row, used)
    };
    window.within(tcp).filter_map(state).collect()
}

/// Columns of a socket, found once for all rows.
struct Buffer<'a> {
    at: &'a [u64],
    size: Option<&'a [i64]>,
    queued: Option<&'a [i64]>,
    /// The first row that is not before the time asked for last.
    next: usize,
}

impl<'a> Buffer<'a> {
    fn of(socket: &'a Table) -> Self {
        Self {
            at: &socket.at,
            size: socket.column(m::SOCKET_SNDBUF),
            queued: socket.column(m::SOCKET_WMEM_QUEUED),
            next: 0,
        }
    }

    /// Share of the send buffer that is in use at the row nearest to `at`, which ascends from call to call.
    fn used(&mut self, at: u64) -> Option<f64> {
        let before = |row: &usize| self.at.get(*row).is_some_and(|time| *time < at);
        while before(&self.next) {
            self.next += 1;
        }
        let near = |row: &usize| Some(self.at.get(*row)?.abs_diff(at));
        let beside = self.next.checked_sub(1).into_iter().chain([self.next]);
        let row = beside.min_by_key(|row| near(row).unwrap_or(u64::MAX))?;
        let size = value(self.size, row)?;
        (size > 0.0).then_some(value(self.queued, row)? / size)
    }
}

/// Columns of a connection, found once for all rows.
struct Sender<'a> {
    mss: Option<&'a [i64]>,
    unacked: Option<&'a [i64]>,
    window: Option<&'a [i64]>,
    app_limited: Option<&'a [i64]>,
    not_sent: Option<&'a [i64]>,
}

impl<'a> Sender<'a> {
    fn of(tcp: &'a Table) -> Self {
        Self {
            mss: tcp.column(m::TCP_SND_MSS),
            unacked: tcp.column(m::TCP_UNACKED),
            window: tcp.column(m::TCP_SND_WND),
            app_limited: tcp.column(m::TCP_APP_LIMITED),
            not_sent: tcp.column(m::TCP_NOTSENT),
        }
    }

    /// The state at a row at which such a share of the send buffer is in use.
    fn state(&self, row: usize, buffer: Option<f64>) -> Option<State> {
        let mss = value(self.mss, row)?;
        let flight = value(self.unacked, row)? * mss;
        // Kernels before 5.4 do not tell the window.
        let full_window = value(self.window, row).is_some_and(|w| flight >= w * FULL_WINDOW);
        let nothing_waits =
            value(self.app_limited, row)? > 0.0 || value(self.not_sent, row)? < 2.0 * mss;
        Some(match (full_window, nothing_waits, buffer) {
            (true, ..) => State::Window,
            (_, false, _) => State::Network,
            (_, true, Some(used)) if used >= FULL_BUFFER => State::Buffer,
            (_, true, _) => State::Starved,
        })
    }
}

fn value(column: Option<&[i64]>, row: usize) -> Option<f64> {
    Some(*column?.get(row)? as f64)
}
