//! Description of a simulated path: the truth that a run has to find.

use linerate_plan::path::{Direction, Side};
use linerate_units::{Bytes, Nanos, Rate};

use super::noise::Class;

/// A path between two simulated hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct SimPath {
    /// Direction from near to far.
    pub forward: SimDirection,
    /// Direction from far to near.
    pub reverse: SimDirection,
    /// Round-trip time of an empty path.
    pub rtt: Nanos,
    pub near: SimHost,
    pub far: SimHost,
    /// Whether both ends run on the near host and share its CPUs. `far` then describes only the cost of the far end's
    /// work.
    pub shared_host: bool,
    /// Maximum transmission unit in bytes.
    pub mtu: u32,
    /// Congestion control of streams whose plan leaves it open.
    pub congestion: Congestion,
    /// Standard deviation of the logarithm of a single round trip: 0.1 is a quiet path.
    pub latency_spread: f64,
    /// Another session: when it is active, and the share of the path's rate that it uses.
    pub other_session: Option<(Span, f64)>,
    /// Interval in which the link is down.
    pub down: Option<Span>,
}

/// An interval of the run's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Start of the interval.
    pub from: Nanos,
    /// End of the interval, exclusive.
    pub to: Nanos,
}

impl Span {
    /// Returns whether `at` is in this interval.
    pub(super) fn holds(self, at: Nanos) -> bool {
        self.from <= at && at < self.to
    }
}

/// One direction of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct SimDirection {
    /// Rate on the wire of all flows together, including framing.
    pub rate: Rate,
    /// Highest rate on the wire of one flow.
    pub flow_cap: Option<Rate>,
    /// Whether traffic above the rate of a flow is dropped, as by a policer, instead of delayed.
    pub policed: bool,
    /// Largest packet that passes, in bytes; larger packets are dropped silently.
    pub passes: Option<u32>,
    /// Size of the queue at the rate limit; with zero, packets are dropped at once, as by a policer.
    pub buffer: Bytes,
    /// Share of packets lost at random.
    pub loss: f64,
    /// Kind and size (standard deviation of the logarithm for 100 ms) of the noise on all limits of this direction.
    pub noise: (Class, f64),
    /// Most payload in flight that the receiver's autotuned window allows: half of `tcp_rmem`'s
    /// maximum.
    pub receive_window: Bytes,
    /// Most payload in flight that the sender's autotuned buffer allows: half of `tcp_wmem`'s
    /// maximum.
    pub send_buffer: Bytes,
}

/// A simulated host.
#[derive(Debug, Clone, PartialEq)]
pub struct SimHost {
    pub cpus: u32,
    /// CPU cost of sending.
    pub send: Cost,
    /// CPU cost of receiving.
    pub receive: Cost,
    /// Share of each CPU's time that the hypervisor steals.
    pub steal: f64,
    /// Largest `SO_SNDBUF` and `SO_RCVBUF` (`core.wmem_max`, `core.rmem_max`).
    pub buffer_max: Bytes,
    /// Speed of a physical port; `None` for a virtual one.
    pub port_speed: Option<Rate>,
}

/// CPU cost of an operation at one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Kernel's CPU time in picoseconds per byte, without the copy.
    pub kernel_ps: u64,
    /// CPU time of the copy between user and kernel, in picoseconds per byte; a discarding receiver saves it.
    pub copy_ps: u64,
    /// The application's CPU time in picoseconds per byte; a discarding receiver saves it.
    pub user_ps: u64,
    /// Kernel's CPU time for each operation.
    pub per_op: Nanos,
    /// Time that the application sleeps after each operation.
    pub pause: Nanos,
    /// Payload of an operation if the plan leaves it open.
    pub op: Bytes,
}

/// Simplified congestion controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// Fills the buffer, and slows down after losses.
    Cubic,
    /// Keeps a short queue, and ignores random loss.
    Bbr,
}

impl Congestion {
    /// Returns the name of the congestion control in the kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    /// Returns the congestion control with this name in the kernel.
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
    /// 10 Gb/s with a buffer of 1 MiB, 1 % of noise, and windows that do not limit at 1 ms.
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
    /// A quiet local network at 10 Gb/s, where the wire is the limit.
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

/// Bytes of an Ethernet frame that its MTU does not include: header, checksum, preamble, gap.
const FRAMING: f64 = 38.0;

/// Size of the headers of IPv4 and TCP with timestamps, in bytes.
pub(super) const HEADERS: u32 = 52;

impl SimPath {
    /// Returns one direction of the path.
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

    /// Returns the payload of a full segment.
    pub(super) fn mss(&self) -> u32 {
        self.mtu.max(HEADERS + 64) - HEADERS
    }
}

/// Returns the payload per second that a rate on the wire carries in segments of `mss`.
pub(super) fn payload_rate(wire: Rate, mss: f64) -> f64 {
    wire.0 as f64 / 8.0 * mss / (mss + f64::from(HEADERS) + FRAMING)
}
