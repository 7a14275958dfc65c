//! The faults that can be planted, in words and as typed text.

mod read;
mod share;
mod text;
mod words;

pub use linerate_core::application::{Burden, Role};
use linerate_core::path::{Direction, Side};
use linerate_core::units::{Bytes, Nanos, Rate, UnitError};
use serde::{Deserialize, Serialize};
pub use share::{Share, ShareError};

/// How much a rate limit queues before it drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    /// 5 ms at the rate, as a policer or a switch with little memory.
    Shallow,
    /// 100 ms at the rate, as a home router.
    Deep,
}

/// Which way a fault acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultDirection {
    /// Near to far.
    Forward,
    /// Far to near.
    Reverse,
    /// Both directions, each independent of the other.
    Both,
}

impl FaultDirection {
    /// The directions that are affected.
    pub const fn each(self) -> &'static [Direction] {
        match self {
            Self::Forward => &[Direction::Forward],
            Self::Reverse => &[Direction::Reverse],
            Self::Both => &Direction::ALL,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
            Self::Both => "both",
        }
    }
}

impl From<Direction> for FaultDirection {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Forward => Self::Forward,
            Direction::Reverse => Self::Reverse,
        }
    }
}

/// The fate of packets that a flow sends above its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Manner {
    /// They wait, up to 100 ms at the rate; more are dropped.
    Shaped,
    /// They are dropped beyond a burst of 50 ms at the rate.
    Policed,
}

/// The place where background traffic begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// At a host behind the router: the port of one end carries it.
    Elsewhere,
    /// At the other end: the ports of both ends carry it.
    Ends,
}

/// When something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rhythm {
    /// Once, so long after planting.
    Once(Nanos),
    /// Again and again, so long from one beginning to the next.
    Every(Nanos),
}

/// A fault that a lab can plant.
///
/// [`Display`](std::fmt::Display) says it in words; [`Fault::code`] gives the text that
/// [`FromStr`](std::str::FromStr) reads back as the same fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "fault")]
pub enum Fault {
    /// The router forwards at most `rate`, counted in Ethernet frames without preamble and gap.
    /// `path-rate:100Mb/s,shallow,forward`; both ways when none is named.
    PathRate {
        /// The limit.
        rate: Rate,
        /// How much is queued in front of it.
        depth: Depth,
        directions: FaultDirection,
    },
    /// `net.ipv4.tcp_rmem` of one host ends at `bytes`; the window offered is about half of it.
    /// `receive-window:far,256KiB`.
    ReceiveWindow {
        /// The host.
        side: Side,
        /// The largest receive buffer of a connection.
        bytes: Bytes,
    },
    /// `net.ipv4.tcp_wmem` of one host ends at `bytes`. `send-buffer:near,64KiB`.
    SendBuffer {
        /// The host.
        side: Side,
        /// The largest send buffer of a connection.
        bytes: Bytes,
    },
    /// Every port of the path has this MTU. `mtu:1280`.
    Mtu {
        /// Bytes of IP packet.
        bytes: u32,
    },
    /// Packets take longer, in order and without loss. `delay:20ms` (round trip, half in each direction),
    /// `delay:20ms,forward`, `delay:5ms,reverse`.
    Delay {
        /// Added from near to far.
        forward: Nanos,
        /// Added from far to near.
        reverse: Nanos,
    },
    /// The link of one host goes down for a time. `link-down:far,2s,500ms`.
    LinkDown {
        /// The host.
        side: Side,
        /// Time from planting until the link goes down.
        after: Nanos,
        /// Time until the link comes up again.
        lasting: Nanos,
    },
    /// The tool's own threads on one host are slow, in programs started after planting.
    /// `application:far,work=800ps/B`, `application:near,sender,pause=200us/op`.
    Application {
        /// The host.
        side: Side,
        /// Which of its threads; both kinds if none is named.
        role: Option<Role>,
        /// Their other properties.
        burden: Burden,
    },
    /// Programs started on one host after planting find this in their environment, as a setting
    /// that was forgotten there. `environment:near,LINERATE_PACING=500Mb/s`.
    Environment {
        /// The host.
        side: Side,
        /// The variable.
        name: String,
        value: String,
    },
    /// The network drops what exceeds `rate`, beyond a burst of 50 ms at it, and queues nothing:
    /// all flows together, counted in Ethernet frames. `police:500Mb/s,forward`.
    Police {
        /// The limit.
        rate: Rate,
        directions: FaultDirection,
    },
    /// The network gives each flow at most `rate`, however many there are.
    /// `flow-rate:500Mb/s,shaped,forward`.
    FlowRate {
        /// The limit of each flow.
        rate: Rate,
        /// The fate of the rest.
        manner: Manner,
        directions: FaultDirection,
    },
    /// The network loses packets. `loss:1%,forward` (each by itself), `loss:1%,bursts=20,forward`
    /// (20 in a row).
    Loss {
        /// Lost packets of all, in the long run.
        share: Share,
        /// Packets that are lost in a row.
        burst: u32,
        directions: FaultDirection,
    },
    /// Packets of TCP and UDP overtake one that the network delayed: `reorder:1ms,every=100,forward`.
    Reorder {
        /// The delay of that packet.
        by: Nanos,
        /// Number of packets per delayed packet.
        every: u32,
        directions: FaultDirection,
    },
    /// Packets take longer, by a time that wanders between zero and `most`; their order stays.
    /// `jitter:2ms,forward`.
    Jitter {
        /// The longest time.
        most: Nanos,
        directions: FaultDirection,
    },
    /// The network drops larger packets silently: it sends no "fragmentation needed".
    /// `black-hole:1400,forward`.
    BlackHole {
        /// The largest IP packet that passes, in bytes.
        bytes: u32,
        directions: FaultDirection,
    },
    /// A token bucket on the host's own port, which queues 100 ms. `shape:near,500Mb/s`.
    Shape {
        /// The host.
        side: Side,
        /// The highest rate of the port.
        rate: Rate,
    },
    /// A token bucket on the host's own port with a queue of few bytes: packets that exceed it are dropped in the
    /// host. `queue:near,2Gb/s,30KiB`.
    Queue {
        /// The host.
        side: Side,
        /// The highest rate of the port.
        rate: Rate,
        /// Bytes of Ethernet frame that it queues.
        bytes: Bytes,
    },
    /// Other TCP traffic crosses the path, of a rate at most. `traffic:500Mb/s,forward` (from another host
    /// through the router to the receiver), `traffic:500Mb/s,forward,ends` (between the hosts).
    Traffic {
        /// Payload.
        rate: Rate,
        /// The direction of the traffic.
        direction: Direction,
        /// The place of its other end.
        origin: Origin,
    },
    /// Threads that spin on one CPU at normal priority. The hosts of a lab share all CPUs of the
    /// machine. `hog:cpu=0,threads=3`.
    Hog {
        cpu: u32,
        /// The number of threads.
        threads: u32,
    },
    /// Programs started on one host after planting run on this CPU alone. `cpus:near,0`.
    Cpus {
        /// The host.
        side: Side,
        cpu: u32,
    },
    /// Programs started on one host after planting together get this share of one CPU's time, by
    /// a control group. `quota:near,50%`.
    Quota {
        /// The host.
        side: Side,
        /// The share of one CPU.
        share: Share,
    },
    /// Segmentation (TSO, GSO) and GRO of the host's port are off. `offloads:near,off`.
    Offloads {
        /// The host.
        side: Side,
    },
    /// The programs that run on one host stop for a time. `stall:far,2s,500ms` (after 2 s, once),
    /// `stall:far,200ms,every=1s`.
    Stall {
        /// The host.
        side: Side,
        /// The length of the pause.
        lasting: Nanos,
        /// When.
        rhythm: Rhythm,
    },
}

/// Why a text is not a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No fault has this name.
    #[error("`{0}` is not a fault (expected one of {names})", names = Fault::KINDS.join(", "))]
    Unknown(String),
    /// A part is missing, wrong or one too many.
    #[error("`{text}` is not a fault (expected for example `{example}`)")]
    Form {
        /// The text that the user typed.
        text: String,
        /// A correct one.
        example: &'static str,
    },
    /// A quantity in it cannot be read.
    #[error("in `{text}`: {error}")]
    Quantity {
        /// The text that the user typed.
        text: String,
        /// The problem.
        error: UnitError,
    },
    /// A share in it cannot be read.
    #[error("in `{text}`: {error}")]
    Share {
        /// The text that the user typed.
        text: String,
        /// The problem.
        error: ShareError,
    },
}
