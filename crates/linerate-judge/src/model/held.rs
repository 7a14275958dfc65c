//! What limited the sender: shares of time, from the kernel's clocks and from the state of its connections.
//!
//! Neither source is enough alone. The clocks (`tcpi_rwnd_limited`, `tcpi_sndbuf_limited`) run only when the kernel is
//! sure: a sender in slow start counts as limited by its congestion window when that is twice the data in flight, and a
//! paced sender counts as busy between two bursts. The state is known only at each sample, but it shows what the sender
//! would need to send more.

use super::readings::{Window, mean, per_second};
use super::room::{Room, Writer};
use linerate_facts::metric as m;
use linerate_record::Table;
use linerate_units::Nanos;

/// Minimum share of the offered window in flight, at which the window is full: the rest is less than what the sender
/// waits for.
const FULL_WINDOW: f64 = 0.9;

/// An acknowledgement is late if its round trip is at least `LATE` times the shortest one, and exceeds that by
/// `LATE_BY`. A receiver delays an acknowledgement by 40 ms or more, and acknowledges the next segment at once: the
/// mean is half of the delay.
//= Linux, include/net/tcp.h, TCP_DELACK_MIN: 40 ms; RFC 9293, section 3.8.6.3: less than 500 ms
const LATE: f64 = 2.0;
const LATE_BY: Nanos = Nanos::from_millis(10);

/// Shares of the time in which each of these limited the sender; `None` if a counter is missing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    pub(super) rwnd_limited: Option<f64>,
    pub(super) sndbuf_limited: Option<f64>,
    pub(super) starved: Option<f64>,
    pub(super) corked: Option<f64>,
    pub(super) nagle: Option<f64>,
    pub network: Option<f64>,
}

/// What limited a connection at one sample.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The offered window is full.
    Window,
    /// All written data are sent, and the send buffer has no room for more: it limits the sender.
    Buffer,
    /// All written data are sent, and the send buffer has room for more: the program limits the sender.
    Starved,
    /// Less than a segment waits although nothing is unacknowledged.
    Corked,
    /// Less than a segment waits for the late acknowledgement of a small one.
    Nagle,
    /// Data wait to be sent: congestion control limits the sender.
    Network,
    /// All written data are sent, and it is unknown whether the send buffer has room.
    Unknown,
}

impl Held {
    /// The shares of time of a set, from the tables of its sockets at the sending end.
    pub(super) fn of(tcp: &[&Table], sockets: &[&Table], window: Window, writer: Writer) -> Self {
        let states: Vec<State> = tcp
            .iter()
            .flat_map(|t| {
                let socket = sockets.iter().find(|s| s.subject == t.subject);
                states(t, socket.copied(), window, writer)
            })
            .collect();
        let seen = |all: &[State]| {
            let n = states.iter().filter(|s| all.contains(s)).count();
            (!states.is_empty()).then(|| n as f64 / states.len() as f64)
        };
        // The clocks of `TCP_INFO` count microseconds.
        let clock = |metric| {
            mean(tcp.iter().filter_map(|t| per_second(t, metric, window)))
                .map(|us_per_s| (us_per_s / 1e6).clamp(0.0, 1.0))
        };
        let reported = !states.contains(&State::Unknown);
        let full = seen(&[State::Buffer]).filter(|_| reported);
        let rwnd_limited =
            clock(m::TCP_RWND_LIMITED).map(|ran| ran.max(seen(&[State::Window]).unwrap_or(0.0)));
        let sndbuf_limited = match clock(m::TCP_SNDBUF_LIMITED) {
            Some(ran) => Some(ran.max(full.unwrap_or(0.0))),
            // Linux before 4.10 does not measure this time: the states at the samples are used instead.
            None => full,
        };
        let starved = seen(&[State::Starved, State::Corked]).filter(|_| reported);
        let nagle = seen(&[State::Nagle]).filter(|_| writer.may_wait());
        let rest =
            |r: f64| Some((1.0 - r - sndbuf_limited? - starved? - nagle.unwrap_or(0.0)).max(0.0));
        Self {
            rwnd_limited,
            sndbuf_limited,
            starved,
            corked: seen(&[State::Corked]).filter(|_| writer.may_wait()),
            nagle,
            network: rwnd_limited.and_then(rest),
        }
    }
}

/// What limited a connection at each row of the window; empty if a column is missing.
fn states(tcp: &Table, socket: Option<&Table>, window: Window, writer: Writer) -> Vec<State> {
    let sender = Sender::of(tcp);
    let mut room = socket.map(|socket| Room::of(socket, tcp, window, writer));
    let state = |row: usize| {
        let full = room.as_mut().and_then(|room| room.is_full(tcp.at[row]));
        if writer.may_wait() { sender.state(row, full) } else { sender.state_of_own(row, full) }
    };
    window.within(tcp).filter_map(state).collect()
}

/// The columns of a connection, looked up once for all rows.
struct Sender<'a> {
    mss: Option<&'a [i64]>,
    unacked: Option<&'a [i64]>,
    window: Option<&'a [i64]>,
    cwnd: Option<&'a [i64]>,
    app_limited: Option<&'a [i64]>,
    not_sent: Option<&'a [i64]>,
    rtt: Option<&'a [i64]>,
    min_rtt: Option<&'a [i64]>,
    sent: Option<&'a [i64]>,
    retransmitted: Option<&'a [i64]>,
    acked: Option<&'a [i64]>,
    clock: Option<&'a [i64]>,
}

impl<'a> Sender<'a> {
    fn of(tcp: &'a Table) -> Self {
        Self {
            mss: tcp.column(m::TCP_SND_MSS),
            unacked: tcp.column(m::TCP_UNACKED),
            window: tcp.column(m::TCP_SND_WND),
            cwnd: tcp.column(m::TCP_CWND),
            app_limited: tcp.column(m::TCP_APP_LIMITED),
            not_sent: tcp.column(m::TCP_NOTSENT),
            rtt: tcp.column(m::TCP_RTT),
            min_rtt: tcp.column(m::TCP_MIN_RTT),
            sent: tcp.column(m::TCP_BYTES_SENT),
            retransmitted: tcp.column(m::TCP_BYTES_RETRANS),
            acked: tcp.column(m::TCP_BYTES_ACKED),
            clock: tcp.column(m::TCP_SNDBUF_LIMITED),
        }
    }

    /// Payload in flight, if all segments are full.
    fn flight(&self, row: usize) -> Option<f64> {
        Some(value(self.unacked, row)? * value(self.mss, row)?)
    }

    /// Payload in flight, from the kernel's count of bytes sent (since Linux 4.19), at most that of full segments.
    fn small_flight(&self, row: usize) -> Option<f64> {
        let at = |column| value(column, row);
        let counted = || Some(at(self.sent)? - at(self.retransmitted)? - at(self.acked)?);
        let most = self.flight(row)?;
        // If data are unacknowledged, there is at least one byte.
        let counted = counted().filter(|bytes| *bytes >= 1.0);
        Some(counted.map_or(most, |bytes| bytes.min(most)))
    }

    /// Whether `flight` bytes in flight fill the offered window. Kernels before 5.4 do not report the window.
    fn fills_window(&self, row: usize, flight: f64) -> bool {
        value(self.window, row).is_some_and(|window| flight >= window * FULL_WINDOW)
    }

    /// Whether no data wait to be sent, or too few to matter.
    fn nothing_waits(&self, row: usize) -> Option<bool> {
        let few = value(self.not_sent, row)? < 2.0 * value(self.mss, row)?;
        Some(value(self.app_limited, row)? > 0.0 || few)
    }

    /// What limits a sender that writes whenever there is room, at a row.
    fn state_of_own(&self, row: usize, full: Option<bool>) -> Option<State> {
        let full_window = self.fills_window(row, self.flight(row)?);
        Some(match (full_window, self.nothing_waits(row)?, full) {
            (true, ..) => State::Window,
            (_, false, _) => State::Network,
            (_, true, Some(true)) => State::Buffer,
            (_, true, _) => State::Starved,
        })
    }

    /// What limits a program that may wait although there is room, at a row.
    fn state(&self, row: usize, full: Option<bool>) -> Option<State> {
        let full_window = self.fills_window(row, self.small_flight(row)?);
        // If the memory in use was not read, only the kernel's clock shows time without room.
        let full = full.or(self.clock.map(|_| false));
        let small = self.is_small(row);
        Some(match (full_window, self.nothing_waits(row)?, full) {
            (true, ..) => State::Window,
            (_, false, _) => State::Network,
            _ if small && value(self.unacked, row)? < 1.0 => State::Corked,
            _ if small && self.waits_for_acknowledgement(row) => State::Nagle,
            (_, true, Some(true)) => State::Buffer,
            (_, true, Some(false)) => State::Starved,
            (_, true, None) => State::Unknown,
        })
    }

    /// Whether the unsent data are less than a segment.
    fn is_small(&self, row: usize) -> bool {
        let waits = value(self.not_sent, row).zip(value(self.mss, row));
        waits.is_some_and(|(waits, mss)| waits > 0.0 && waits < mss)
    }

    /// Whether unsent data wait only for the late acknowledgement of one segment.
    //= Linux, net/ipv4/tcp_output.c, tcp_nagle_check(): a small segment waits while another one is unacknowledged
    fn waits_for_acknowledgement(&self, row: usize) -> bool {
        let at = |column| value(column, row);
        let late = || {
            let (rtt, least) = at(self.rtt).zip(at(self.min_rtt))?;
            let by = LATE_BY.0 as f64 / 1e3;
            Some(rtt >= least * LATE && rtt >= least + by)
        };
        let alone = at(self.unacked).is_some_and(|n| (n - 1.0).abs() < 0.5);
        let may_send = at(self.cwnd).is_none_or(|cwnd| cwnd > 1.0);
        let fits = || {
            let needs = self.small_flight(row)? + at(self.not_sent)?;
            Some(at(self.window).is_none_or(|window| window >= needs))
        };
        alone && may_send && fits() == Some(true) && late() == Some(true)
    }
}

pub(super) fn value(column: Option<&[i64]>, row: usize) -> Option<f64> {
    Some(*column?.get(row)? as f64)
}
