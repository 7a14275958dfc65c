//! One simulated connection: its limits, its window and its counters.

use linerate_plan::path::Direction;
use linerate_plan::{Knobs, Receive};

use super::path::{Congestion, Cost, HEADERS, SimPath, payload_rate};

/// Picoseconds per second: costs are given in picoseconds.
const PS_PER_SEC: f64 = 1e12;

/// What limits the rate of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Bound {
    /// The receiver's window.
    #[default]
    ReceiveWindow,
    SendBuffer,
    /// The congestion window.
    Congestion,
    /// A rate: of the path, of a single flow or of pacing.
    Rate,
    /// The sender's CPU or application.
    Sender,
    /// The receiver's CPU or application.
    Receiver,
}

/// CPU time that one end of a flow needs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    /// CPU of the end's thread, as an index into the CPUs of all hosts.
    pub cpu: usize,
    /// Kernel CPU time per byte, in seconds.
    pub kernel: f64,
    /// User CPU time per byte, in seconds.
    pub user: f64,
    /// Payload of an operation, in bytes.
    pub op: f64,
    /// Sleep after each operation, in seconds.
    pub pause: f64,
}

impl Work {
    fn new(cost: Cost, op: u64, extra_ps: u64, discard: bool, cpu: usize) -> Self {
        let op = if op == 0 { cost.op.0 } else { op }.max(1) as f64;
        let kept = |v: u64| if discard { 0.0 } else { v as f64 };
        Self {
            cpu,
            kernel: (cost.kernel_ps as f64 + kept(cost.copy_ps)) / PS_PER_SEC
                + cost.per_op.0 as f64 / 1e9 / op,
            user: (kept(cost.user_ps) + extra_ps as f64) / PS_PER_SEC,
            op,
            pause: cost.pause.0 as f64 / 1e9,
        }
    }

    /// Returns the CPU time per byte, in seconds.
    pub(super) fn per_byte(&self) -> f64 {
        self.kernel + self.user
    }

    /// Returns the highest rate of a thread that has a CPU to itself, in bytes per second.
    fn alone(&self) -> f64 {
        self.op / (self.pause + self.op * self.per_byte()).max(1e-15)
    }
}

/// CPU times and payload of one thread since its set was made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ThreadCounts {
    /// Payload that the thread moved, in bytes.
    pub bytes: f64,
    /// Number of operations of the thread.
    pub ops: f64,
    /// CPU time of the thread in the kernel, in seconds.
    pub kernel: f64,
    /// CPU time of the thread in user code, in seconds.
    pub user: f64,
    /// Time that the thread was runnable but had no CPU, in seconds.
    pub wait: f64,
}

/// TCP's counters of one connection since it was made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TcpCounts {
    pub busy: f64,
    pub rwnd_limited: f64,
    pub sndbuf_limited: f64,
    pub acked: f64,
    /// Payload that was sent, in bytes, without retransmissions.
    pub sent: f64,
    pub retrans: f64,
    pub timeouts: f64,
    pub min_rtt: f64,
}

/// One simulated connection of a stream.
#[derive(Debug, Clone)]
pub(super) struct SimStream {
    pub direction: Direction,
    pub mss: f64,
    pub congestion: Congestion,
    pub tx: Work,
    pub rx: Work,
    /// Requested pacing rate, in bytes per second.
    pub pacing: Option<f64>,
    /// Highest rate of a single flow on the path, in bytes per second.
    pub path_cap: f64,
    /// Whether traffic above the rate limit of a single flow is dropped.
    policed: bool,
    /// Whether packets of the flow are too large for the path, so that none arrives.
    pub blocked: bool,
    /// Seconds since the flow began, if nothing has arrived.
    silent: f64,
    pub receive_window: f64,
    pub send_buffer: f64,
    /// Largest congestion window in bytes that random loss permits.
    loss_window: f64,
    loss: f64,
    /// Congestion window in bytes, and the window at which its growth slows down.
    pub cwnd: f64,
    pub ssthresh: f64,
    // State in the last tick.
    pub rate: f64,
    pub rtt: f64,
    pub bound: Bound,
    pub unread: f64,
    /// Whether unread payload has filled the receive window since the step began.
    full: bool,
    pub notsent: f64,
    pub sent: ThreadCounts,
    pub received: ThreadCounts,
    pub tcp: TcpCounts,
}

impl SimStream {
    /// Makes a new connection, whose sending and receiving threads run on these CPUs.
    pub(super) fn new(
        path: &SimPath,
        direction: Direction,
        knobs: &Knobs,
        [tx_cpu, rx_cpu]: [usize; 2],
    ) -> Self {
        let limits = path.direction(direction);
        let [from, to] = [direction.sender(), direction.receiver()].map(|side| path.host(side));
        let largest = path.mss();
        let mss = f64::from(knobs.mss.unwrap_or(largest).clamp(64, largest));
        let requested = |knob: Option<linerate_units::Bytes>, max: u64, auto: u64| {
            knob.map_or(auto, |b| b.0.min(max)).max(mss as u64) as f64
        };
        let window = requested(knobs.recv_buffer, to.buffer_max.0, limits.receive_window.0);
        let clamp = knobs.window_clamp.map_or(f64::MAX, |b| b.0 as f64);
        let blocked = limits.passes.is_some_and(|most| mss + f64::from(HEADERS) > f64::from(most));
        let cap = limits.flow_cap.map_or(f64::MAX, |r| payload_rate(r, mss));
        let discard = knobs.receive == Receive::Discard;
        let extra = knobs.extra_work;
        let named = knobs.congestion.as_deref().and_then(Congestion::named);
        Self {
            direction,
            mss,
            congestion: named.unwrap_or(path.congestion),
            tx: Work::new(from.send, knobs.write_size.0, extra.sender_ps_per_byte, false, tx_cpu),
            rx: Work::new(
                to.receive,
                knobs.read_size.0,
                extra.receiver_ps_per_byte,
                discard,
                rx_cpu,
            ),
            pacing: knobs.pacing.map(|r| r.0 as f64 / 8.0),
            path_cap: if blocked { 0.0 } else { cap },
            policed: limits.policed,
            blocked,
            silent: 0.0,
            receive_window: window.min(clamp.max(mss)),
            send_buffer: requested(knobs.send_buffer, from.buffer_max.0, limits.send_buffer.0),
            loss_window: loss_window(limits.loss, mss),
            loss: limits.loss.clamp(0.0, 0.9),
            cwnd: 10.0 * mss,
            ssthresh: f64::MAX,
            rate: 0.0,
            rtt: 0.0,
            bound: Bound::default(),
            unread: 0.0,
            full: false,
            notsent: 0.0,
            sent: ThreadCounts::default(),
            received: ThreadCounts::default(),
            tcp: TcpCounts { min_rtt: path.rtt.secs(), ..TcpCounts::default() },
        }
    }

    /// Returns the most payload that may be in flight, in bytes, and the window that limits it.
    pub(super) fn window(&self) -> (f64, Bound) {
        let congestion = match self.congestion {
            Congestion::Cubic => self.cwnd.min(self.loss_window),
            Congestion::Bbr => self.cwnd,
        };
        let mut least = (self.receive_window, Bound::ReceiveWindow);
        for other in [(self.send_buffer, Bound::SendBuffer), (congestion, Bound::Congestion)] {
            if other.0 < least.0 {
                least = other;
            }
        }
        least
    }

    /// Returns whether the receive window still has room for unread payload, although the reader pauses after
    /// operations. Then the reader does not slow the sender down yet.
    fn gathers(&self) -> bool {
        self.rx.pause > 0.0 && !self.full
    }

    /// Returns the highest rate of this flow if its windows did not limit it, and what limits that rate. `noise` is a
    /// factor on all limits except pacing, which a clock determines.
    pub(super) fn cap(&self, noise: f64) -> (f64, Bound) {
        let reader = if self.gathers() { f64::MAX } else { self.rx.alone() * noise };
        let all = [
            (self.tx.alone() * noise, Bound::Sender),
            (reader, Bound::Receiver),
            (self.path_cap * noise, Bound::Rate),
            (self.pacing.unwrap_or(f64::MAX), Bound::Rate),
        ];
        let mut least = all[0];
        for other in all {
            if other.0 < least.0 {
                least = other;
            }
        }
        least
    }

    /// Lets the congestion window grow for `dt` seconds, if it limits the flow.
    pub(super) fn grow(&mut self, dt: f64) {
        let in_flight = self.rate * self.rtt;
        let round_trips = (dt / self.rtt.max(1e-6)).min(10.0);
        if self.cwnd < self.ssthresh {
            // In slow start the window doubles in each round trip, but never far beyond what is in flight.
            let used = (2.0 * in_flight).max(10.0 * self.mss);
            let doubled = self.cwnd * 2.0_f64.powf(round_trips);
            let reach = used * 2.0_f64.powf(round_trips - 1.0).max(1.0);
            self.cwnd = doubled.min(reach.max(self.cwnd)).min(self.ssthresh);
        } else if in_flight > 0.7 * self.cwnd {
            // The window returns to its size before the loss in the time that CUBIC needs, but at most in half a
            // second.
            let before = self.ssthresh / BACK_OFF;
            let period = (before / self.mss * (1.0 - BACK_OFF) / 0.4).cbrt().clamp(0.05, 0.5);
            self.cwnd += (before * (1.0 - BACK_OFF) * dt / period).max(self.mss * dt / period);
        }
        let sense = 2.0 * self.receive_window.min(self.send_buffer);
        self.cwnd = self.cwnd.min(sense).max(2.0 * self.mss);
    }

    /// Reacts to a rate above the limit of the path: reduces the window, and retransmits the share `lost` of what is in
    /// flight.
    pub(super) fn give_way(&mut self, lost: f64) {
        let in_flight = self.rate * self.rtt;
        self.cwnd = (BACK_OFF * in_flight).max(2.0 * self.mss);
        self.ssthresh = self.cwnd;
        self.tcp.retrans += (in_flight / self.mss * lost).max(1.0);
    }

    /// Reacts to a retransmission timeout: the window starts again from its first size.
    pub(super) fn stall(&mut self) {
        self.ssthresh = (self.cwnd / 2.0).max(10.0 * self.mss);
        self.cwnd = 10.0 * self.mss;
        self.rate = 0.0;
        self.tcp.timeouts += 1.0;
        self.tcp.retrans += 1.0;
    }

    /// Moves payload for `dt` seconds at the current rate, and updates all counters.
    pub(super) fn advance(&mut self, dt: f64, noise: f64) {
        let moved = self.rate * dt;
        let in_flight = self.rate * self.rtt;
        let room = 0.9 * (self.receive_window - in_flight).max(0.0);
        let (read, unread) = match self.bound {
            _ if self.gathers() => {
                let there = self.unread + moved;
                let read = (self.rx.alone() * noise * dt).min(there);
                (read, there - read)
            }
            Bound::Receiver => (moved, room),
            _ => (moved, (self.rate * 20e-6).min(self.rx.op)),
        };
        self.received.add(read, &self.rx, noise);
        self.unread = unread;
        self.full |= unread >= room;
        self.notsent = match self.bound {
            Bound::Sender => 0.0,
            Bound::SendBuffer => 0.02 * self.send_buffer,
            _ => (self.send_buffer - in_flight).max(0.0).min(2.0 * self.send_buffer / 3.0),
        };
        self.tcp.acked = self.tcp.acked.max(self.received.bytes + self.unread);
        self.tcp.sent = self.tcp.sent.max(self.tcp.acked + in_flight);
        let ahead = self.tcp.sent + self.notsent;
        self.sent.add((ahead - self.sent.bytes).max(0.0), &self.tx, noise);
        let exceeds = self.policed && self.rate >= 0.99 * self.path_cap * noise;
        let lost = self.loss + if exceeds { POLICED } else { 0.0 };
        self.tcp.retrans += moved * lost / self.mss;
        if self.blocked {
            self.time_out(dt);
        }
        self.clocks(dt);
    }

    /// Simulates retransmission timeouts of a blocked flow: the first after 200 ms, each further one after twice the
    /// time.
    fn time_out(&mut self, dt: f64) {
        self.silent += dt;
        let times = (self.silent / 0.2 + 1.0).log2().floor();
        self.tcp.sent = self.tcp.sent.max(10.0 * self.mss);
        self.tcp.retrans += times - self.tcp.timeouts;
        self.tcp.timeouts = times;
    }

    /// Updates the sender's times: busy, limited by the receive window, and limited by the send buffer. The last two
    /// never exceed the first.
    fn clocks(&mut self, dt: f64) {
        let busy = match self.bound {
            // A sender that pauses between operations has nothing unacknowledged during a part of its pauses.
            Bound::Sender if self.tx.pause > 0.0 => {
                let cycle = self.tx.op / self.rate.max(1.0);
                ((self.rtt + cycle - self.tx.pause) / cycle).clamp(0.0, 1.0)
            }
            _ => 1.0,
        };
        let (rwnd, sndbuf) = match self.bound {
            Bound::ReceiveWindow => (0.97, 0.0),
            Bound::Receiver => (0.9, 0.0),
            Bound::SendBuffer => (0.0, 0.95),
            _ => (0.0, 0.0),
        };
        self.tcp.busy += dt * busy;
        self.tcp.rwnd_limited += dt * rwnd;
        self.tcp.sndbuf_limited += dt * sndbuf;
    }

    /// Ends the step: all payload that was sent arrives.
    pub(super) fn drain(&mut self, noise: f64) {
        if self.blocked {
            return;
        }
        let rest = self.sent.bytes - self.received.bytes;
        self.received.add(rest, &self.rx, noise);
        // This removes rounding errors of the sum: both ends have exactly the same count.
        self.received.bytes = self.sent.bytes;
        self.tcp.acked = self.sent.bytes;
        self.tcp.sent = self.sent.bytes;
        self.unread = 0.0;
        self.full = false;
        self.notsent = 0.0;
        self.rate = 0.0;
    }

    /// Returns the payload in flight, in bytes.
    pub(super) fn in_flight(&self) -> f64 {
        self.rate * self.rtt
    }

    /// Returns the window that the receiver advertises, in bytes.
    pub(super) fn offered(&self) -> f64 {
        (self.receive_window - self.unread).max(self.mss)
    }
}

/// Share of packets that a policer drops from a flow at its rate limit.
pub(super) const POLICED: f64 = 0.05;

/// Share of its congestion window that CUBIC keeps after a loss.
const BACK_OFF: f64 = 0.7;

/// Returns the largest window of a loss-based congestion control at this probability of random loss (Mathis, Semke and
/// Mahdavi, CCR 27(3), 1997).
fn loss_window(loss: f64, mss: f64) -> f64 {
    if loss <= 0.0 {
        return f64::MAX;
    }
    (1.22 / loss.sqrt()).max(2.0) * mss
}

impl ThreadCounts {
    fn add(&mut self, bytes: f64, work: &Work, noise: f64) {
        self.bytes += bytes;
        self.ops += bytes / work.op;
        self.kernel += bytes * work.kernel / noise;
        self.user += bytes * work.user / noise;
    }
}
