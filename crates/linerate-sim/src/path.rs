//! The description of a simulated path: the true limits that a run has to find.

use linerate_plan::path::{Direction, Side};
use linerate_units::{Bytes, Nanos, Rate};

use super::noise::Class;

/// A path between two simulated hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct SimPath {
    /// Limits of the direction from near to far.
    pub forward: SimDirection,
    /// Limits of the direction from far to near.
    pub reverse: SimDirection,
    /// Round-trip time of the path without a load.
    pub rtt: Nanos,
    pub near: SimHost,
    pub far: SimHost,
    /// Whether both ends run on the near host and share its CPUs. Then `far` describes only the cost of the far end's
    /// work.
    pub shared_host: bool,
    /// Maximum transmission unit in bytes.
    pub mtu: u32,
    /// Congestion control of streams whose plan leaves it open.
    pub congestion: Congestion,
    /// Standard deviation of the logarithm of single round-trip times: 0.1 is that of a quiet path.
    pub latency_spread: f64,
    /// Another session on the path: when it is active, and which share of the path's rate it uses.
    pub other_session: Option<(Span, f64)>,
    /// Interval in which the link is down.
    pub down: Option<Span>,
}

/// An interval in the virtual time of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Start of the interval.
    pub from: Nanos,
    /// End of the interval, not included.
    pub to: Nanos,
}

impl Span {
    /// Returns whether `at` is in this interval.
    pub(super) fn holds(self, at: Nanos) -> bool {
        self.from <= at && at < self.to
    }
}

/// Limits of one direction of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct SimDirection {
    /// Rate on the wire for all flows together, including framing.
    pub rate: Rate,
    /// Highest rate on the wire of a single flow; `None` if it is not limited.
    pub flow_cap: Option<Rate>,
    /// Whether traffic above `flow_cap` is dropped, as by a policer, instead of delayed.
    pub policed: bool,
    /// Largest packet that passes, in bytes; larger packets are dropped without a notice.
    pub passes: Option<u32>,
    /// Size of the queue before the rate limit. With zero, excess packets are dropped at once, as by a policer.
    pub buffer: Bytes,
    /// Share of packets that are lost at random.
    pub loss: f64,
    /// Class and size of the noise on all limits of this direction. The size is the standard deviation of the logarithm
    /// over 100 ms.
    pub noise: (Class, f64),
    /// Most payload in flight that the receiver's autotuned window permits: half of `tcp_rmem`'s maximum.
    pub receive_window: Bytes,
    /// Most payload in flight that the sender's autotuned buffer permits: half of `tcp_wmem`'s maximum.
    pub send_buffer: Bytes,
}

/// A simulated host.
#[derive(Debug, Clone, PartialEq)]
pub struct SimHost {
    pub cpus: u32,
    /// CPU costs of sending.
    pub send: Cost,
    /// CPU costs of receiving.
    pub receive: Cost,
    /// Share of each CPU's time that the hypervisor steals.
    pub steal: f64,
    /// Largest `SO_SNDBUF` and `SO_RCVBUF` that the host grants (`core.wmem_max`, `core.rmem_max`).
    pub buffer_max: Bytes,
    /// Speed of a physical port; `None` for a virtual port.
    pub port_speed: Option<Rate>,
}

/// Costs of the operations at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// CPU time of the kernel in picoseconds per byte, without the copy.
    pub kernel_ps: u64,
    /// CPU time of the copy between user and kernel, in picoseconds per byte; a receiver that discards payload saves
    /// it.
    pub copy_ps: u64,
    /// CPU time of the application in picoseconds per byte; a receiver that discards payload saves it.
    pub user_ps: u64,
    /// CPU time of the kernel for each operation.
    pub per_op: Nanos,
    /// Time that the application sleeps after each operation.
    pub pause: Nanos,
    /// Payload of an operation if the plan leaves it open.
    pub op: Bytes,
}

/// Simplified models of congestion controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// Fills the path's buffer, and slows down after losses.
    Cubic,
    /// Keeps the queue short, and ignores random loss.
    Bbr,
}

impl Congestion {
    /// Returns the name that the kernel has for this congestion control.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    /// Returns the congestion control for which the kernel has this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Cubic, Self::Bbr].into_iter().find(|c| c.name() == name)
    }
}

impl Default for Cost {
    fn default() -> Self {
        Self {
            kernel_ps: 100,
            copy_ps: 100,
            user_ps: 0,
            per_op: Nanos(500),
            pause: Nanos(0),
            op: Bytes(256 << 10),
        }
    }
}

impl Default for SimHost {
    fn default() -> Self {
        Self {
            cpus: 4,
            send: Cost::default(),
            receive: Cost::default(),
            steal: 0.0,
            buffer_max: Bytes(4 << 20),
            port_speed: None,
        }
    }
}

impl Default for SimDirection {
    /// A direction of 10 Gb/s with a buffer of 1 MiB, 1 % of noise, and windows that do not limit goodput at a round
    /// trip of 1 ms.
    fn default() -> Self {
        Self {
            rate: Rate(10_000_000_000),
            flow_cap: None,
            policed: false,
            passes: None,
            buffer: Bytes(1 << 20),
            loss: 0.0,
            noise: (Class::White, 0.01),
            receive_window: Bytes(3 << 20),
            send_buffer: Bytes(2 << 20),
        }
    }
}

impl Default for SimPath {
    /// A quiet local network of 10 Gb/s, in which the wire is the limit.
    fn default() -> Self {
        Self {
            forward: SimDirection::default(),
            reverse: SimDirection::default(),
            rtt: Nanos::from_micros(200),
            near: SimHost::default(),
            far: SimHost::default(),
            shared_host: false,
            mtu: 1500,
            congestion: Congestion::Cubic,
            latency_spread: 0.1,
            other_session: None,
            down: None,
        }
    }
}

/// Bytes of an Ethernet frame that the MTU does not include: header, checksum, preamble, gap between frames.
const FRAMING: f64 = 38.0;

/// Size of the headers of IPv4 and TCP with timestamps, in bytes.
pub(super) const HEADERS: u32 = 52;

impl SimPath {
    /// Returns the limits of one direction of the path.
    pub fn direction(&self, direction: Direction) -> &SimDirection {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Reverse => &self.reverse,
        }
    }

    pub fn host(&self, side: Side) -> &SimHost {
        match side {
            Side::Near => &self.near,
            Side::Far => &self.far,
        }
    }

    /// Returns the payload of a full segment in bytes.
    pub(super) fn mss(&self) -> u32 {
        self.mtu.max(HEADERS + 64) - HEADERS
    }
}

/// Returns the payload rate, in bytes per second, of a rate on the wire with segments of `mss` bytes.
pub(super) fn payload_rate(wire: Rate, mss: f64) -> f64 {
    wire.0 as f64 / 8.0 * mss / (mss + f64::from(HEADERS) + FRAMING)
}
