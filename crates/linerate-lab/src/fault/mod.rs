//! The faults that can be planted, in words and as typed text.

mod bounds;
mod parts;
mod rows;
mod share;
#[cfg(test)]
mod tests;
mod words;

pub use linerate_plan::application::{Burden, Role};
use linerate_plan::path::{Direction, Side};
use linerate_units::{Bytes, Nanos, Rate};
use serde::{Deserialize, Serialize};
pub use share::{Share, ShareError};

/// Size of the queue of a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    /// A queue of 5 ms at the rate, like that of a policer or a switch with little memory.
    Shallow,
    /// A queue of 100 ms at the rate, like that of a home router.
    Deep,
}

/// Directions in which a fault acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultDirection {
    /// Direction from near to far.
    Forward,
    /// Direction from far to near.
    Reverse,
    /// Both directions, each independent of the other.
    Both,
}

impl FaultDirection {
    /// Returns the directions that are affected.
    pub const fn each(self) -> &'static [Direction] {
        match self {
            Self::Forward => &[Direction::Forward],
            Self::Reverse => &[Direction::Reverse],
            Self::Both => &Direction::ALL,
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

/// What the network does with packets that a flow sends above its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Manner {
    /// Packets wait, up to 100 ms at the rate; more are dropped.
    Shaped,
    /// Packets are dropped beyond a burst of 50 ms at the rate.
    Policed,
}

/// Place where background traffic begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A host behind the router: the port of one end carries the traffic.
    Elsewhere,
    /// The other end: the ports of both ends carry the traffic.
    Ends,
}

/// Time or period of stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rhythm {
    /// One stall, at this time after planting.
    Once(Nanos),
    /// Repeated stalls, with this time between their beginnings.
    Every(Nanos),
}

/// A fault that a lab can plant.
///
/// [`Display`](std::fmt::Display) describes it in words; [`Fault::code`] returns the text that
/// [`FromStr`](std::str::FromStr) parses to the same fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "fault")]
pub enum Fault {
    /// The router forwards at most `rate`, counted in Ethernet frames without preamble and gap.
    /// `path-rate:100Mb/s,shallow,forward`; both directions if none is named.
    PathRate {
        /// Highest rate at which the router forwards.
        rate: Rate,
        /// Size of the queue in front of the limit.
        depth: Depth,
        directions: FaultDirection,
    },
    /// The maximum of `net.ipv4.tcp_rmem` of one host is `bytes`; the window offered is about half of it.
    /// `receive-window:far,256KiB`.
    ReceiveWindow {
        /// Host whose setting is changed.
        side: Side,
        /// Largest receive buffer of a connection, in bytes.
        bytes: Bytes,
    },
    /// The maximum of `net.ipv4.tcp_wmem` of one host is `bytes`. `send-buffer:near,64KiB`.
    SendBuffer {
        /// Host whose setting is changed.
        side: Side,
        /// Largest send buffer of a connection, in bytes.
        bytes: Bytes,
    },
    /// Every port of the path has this MTU. `mtu:1280`.
    Mtu {
        /// MTU in bytes of IP packet.
        bytes: u32,
    },
    /// Packets are delayed, in order and without loss. `delay:20ms` (round trip, half in each direction),
    /// `delay:20ms,forward`, `delay:5ms,reverse`.
    Delay {
        /// Delay from near to far.
        forward: Nanos,
        /// Delay from far to near.
        reverse: Nanos,
    },
    /// The link of one host is down for some time. `link-down:far,2s,500ms`.
    LinkDown {
        /// Host whose link goes down.
        side: Side,
        /// Time from planting until the link goes down.
        after: Nanos,
        /// Time until the link comes up again.
        lasting: Nanos,
    },
    /// The tool's own threads on one host are slow, in programs started after planting.
    /// `application:far,work=800ps/B`, `application:near,sender,pause=200us/op`.
    Application {
        /// Host of the threads.
        side: Side,
        /// Threads that the fault affects; senders and receivers if none is named.
        role: Option<Role>,
        /// Work or pauses of the threads.
        burden: Burden,
    },
    /// Programs that are started on one host after planting find this variable in their environment, like a setting
    /// that was forgotten there. `environment:near,LINERATE_PACING=500Mb/s`.
    Environment {
        /// Host of the programs.
        side: Side,
        /// Name of the variable.
        name: String,
        value: String,
    },
    /// The network drops traffic above `rate`, beyond a burst of 50 ms at this rate, and queues nothing. All flows
    /// count together, in Ethernet frames. `police:500Mb/s,forward`.
    Police {
        /// Rate above which packets are dropped.
        rate: Rate,
        directions: FaultDirection,
    },
    /// The network limits each flow to `rate`, however many flows there are. `flow-rate:500Mb/s,shaped,forward`.
    FlowRate {
        /// Highest rate of each flow.
        rate: Rate,
        /// Treatment of packets above the rate.
        manner: Manner,
        directions: FaultDirection,
    },
    /// The network loses packets. `loss:1%,forward` (each by itself), `loss:1%,bursts=20,forward`
    /// (20 in a row).
    Loss {
        /// Share of all packets that is lost, in the long run.
        share: Share,
        /// Number of packets that are lost in a row.
        burst: u32,
        directions: FaultDirection,
    },
    /// The network delays some packets of TCP and UDP, so that later packets overtake them:
    /// `reorder:1ms,every=100,forward`.
    Reorder {
        /// Delay of such a packet.
        by: Nanos,
        /// Number of packets per delayed packet.
        every: u32,
        directions: FaultDirection,
    },
    /// Packets are delayed by a time that varies slowly between zero and `most`; their order stays.
    /// `jitter:2ms,forward`.
    Jitter {
        /// Longest delay of a packet.
        most: Nanos,
        directions: FaultDirection,
    },
    /// Packets that arrive at one host wait for the next tick of a free-running timer, and all that wait are released
    /// at once, as by a card that holds its interrupts back. The ticks are the multiples of the period in the
    /// machine's monotonic time. `hold:far,200us`.
    Hold {
        /// Host at which the packets arrive.
        side: Side,
        /// Time between two ticks.
        period: Nanos,
    },
    /// The network drops packets larger than `bytes` silently: it sends no "fragmentation needed".
    /// `black-hole:1400,forward`.
    BlackHole {
        /// The largest IP packet that passes, in bytes.
        bytes: u32,
        directions: FaultDirection,
    },
    /// A token bucket on the host's own port, which queues 100 ms. `shape:near,500Mb/s`.
    Shape {
        /// Host whose port is limited.
        side: Side,
        /// The highest rate of the port.
        rate: Rate,
    },
    /// A token bucket on the host's own port with a queue of few bytes: packets that exceed it are dropped in the
    /// host. `queue:near,2Gb/s,30KiB`.
    Queue {
        /// Host whose port is limited.
        side: Side,
        /// The highest rate of the port.
        rate: Rate,
        /// Size of the queue, in bytes of Ethernet frames.
        bytes: Bytes,
    },
    /// Other TCP traffic crosses the path, at most at this rate. `traffic:500Mb/s,forward` (from another host through
    /// the router to the receiver), `traffic:500Mb/s,forward,ends` (between the hosts).
    Traffic {
        /// Highest rate of the traffic's payload.
        rate: Rate,
        /// The direction of the traffic.
        direction: Direction,
        /// Place of the traffic's other end.
        origin: Origin,
    },
    /// Threads that spin on one CPU at normal priority. The hosts of a lab share all CPUs of the
    /// machine. `hog:cpu=0,threads=3`.
    Hog {
        cpu: u32,
        /// Number of busy threads.
        threads: u32,
    },
    /// Programs that are started on one host after planting run only on this CPU. `cpus:near,0`.
    Cpus {
        /// Host of the programs.
        side: Side,
        cpu: u32,
    },
    /// Programs that are started on one host after planting share a limited part of one CPU's time, by a control
    /// group. `quota:near,50%`.
    Quota {
        /// Host of the programs.
        side: Side,
        /// Share of one CPU's time.
        share: Share,
    },
    /// Segmentation (TSO, GSO) and GRO of the host's port are off. `offloads:near,off`.
    Offloads {
        /// Host whose offloads are off.
        side: Side,
    },
    /// The programs that run on one host are stopped for some time. `stall:far,2s,500ms` (after 2 s, once),
    /// `stall:far,200ms,every=1s`.
    Stall {
        /// Host whose programs are stopped.
        side: Side,
        /// Length of each stall.
        lasting: Nanos,
        /// Times of the stalls.
        rhythm: Rhythm,
    },
}

/// Why a text is not a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No fault has this name.
    #[error("`{0}` is not a fault (expected one of {names})", names = Fault::KINDS.join(", "))]
    Unknown(String),
    /// A part of the text is missing, wrong or superfluous.
    #[error("`{text}` is not a fault (expected for example `{example}`)")]
    Form {
        /// The text that the user typed.
        text: String,
        /// Correct text of such a fault.
        example: &'static str,
    },
    /// A value in the text is invalid.
    #[error("in `{text}`: {error}")]
    Value {
        /// The text that the user typed.
        text: String,
        /// Why the value is invalid, in words.
        error: String,
    },
}
