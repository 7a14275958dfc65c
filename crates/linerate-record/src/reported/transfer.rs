//! A transfer over a network, as a program reported it.

use serde::{Deserialize, Serialize};

use super::Setup;
use linerate_plan::path::{ByRole, Direction};
use linerate_units::{Bytes, Nanos, Rate};

/// The protocol that carried the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// TCP, MPTCP included.
    Tcp,
    /// UDP.
    Udp,
    /// Sockets, of TCP or of UDP: the output does not say which.
    Sockets,
    /// SCTP.
    Sctp,
    /// RDMA verbs over InfiniBand or Ethernet.
    Rdma,
    /// A message library, such as MPI, over a transport that its output does not name.
    Messages,
}

impl Carrier {
    /// Its name in a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sockets => "sockets",
            Self::Sctp => "SCTP",
            Self::Rdma => "RDMA",
            Self::Messages => "a message library",
        }
    }
}

/// The end whose count the goodput is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counted {
    /// The receiver counted it: goodput.
    Receiver,
    /// Only the sender's count is known: bytes in its buffers are included, and lost datagrams.
    Sender,
    /// The output does not say.
    Unknown,
}

/// CPU time of a program at one end, as shares of one CPU (1 is one full CPU; several threads may use more).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// All CPU time.
    pub total: f64,
    /// CPU time in the kernel on behalf of the program; `None` if unknown.
    pub system: Option<f64>,
    /// What was counted.
    pub of: CpuOf,
}

/// Whose CPU time a program reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuOf {
    /// Its own.
    Program,
    /// That of the whole machine.
    Machine,
    /// That of the whole machine, as a share of all its CPUs together: how many there are is not known.
    AllCpus,
}

/// Datagrams of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Datagrams that were sent.
    pub of: u64,
    /// Jitter of their transit time; `None` if unknown.
    pub jitter: Option<Nanos>,
}

/// Round-trip times during a transfer, as the sender's kernel estimated them, or the program measured them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// The shortest.
    pub least: Option<Nanos>,
    /// The mean.
    pub mean: Option<Nanos>,
    /// The longest.
    pub most: Option<Nanos>,
}

/// Shares of the time in which a connection had data to send, by the clocks of its sender's kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The receiver's window was full; `None` if unknown.
    pub window: Option<f64>,
    /// The send buffer was full; `None` if unknown.
    pub buffer: Option<f64>,
}

/// Payload moved over a network in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// The protocol.
    pub carrier: Carrier,
    /// The direction: forward is from the end that started the test (the client) to the other one.
    pub direction: Direction,
    /// Whether the other direction was loaded at the same time.
    pub both: bool,
    /// Connections, or sources of datagrams; `None` if unknown.
    pub streams: Option<u32>,
    /// Payload in a second over the whole time that the program reports.
    pub goodput: Rate,
    /// The end that counted `goodput`.
    pub counted: Counted,
    /// Length of the transfer in seconds; `None` if unknown.
    pub seconds: Option<f64>,
    /// Rate of each interval of equal length, bits per second, in order, without intervals that the program
    /// itself left out; empty if not reported.
    pub ticks: Vec<f64>,
    /// Length of an interval of `ticks` in seconds; `None` without intervals.
    pub tick: Option<f64>,
    /// Rate of each stream over the whole time, bits per second; empty if not reported.
    pub each: Vec<f64>,
    /// Segments that the sender retransmitted; `None` if unknown.
    pub retransmits: Option<u64>,
    /// Largest segment in bytes; `None` if unknown.
    pub segment: Option<u32>,
    /// Largest congestion window of a stream in bytes; `None` if unknown.
    pub window: Option<Bytes>,
    /// Largest window that the receiver offered to a stream, in bytes; `None` if unknown.
    pub offered: Option<Bytes>,
    /// Size of socket buffers that the user requested, in bytes; `None` if none were requested or this is unknown.
    pub buffer: Option<Bytes>,
    /// Round-trip times.
    pub round_trip: RoundTrips,
    /// What held the sender.
    pub held: Held,
    /// Whether both ends have one address: nothing crossed a network. `None` if unknown.
    pub local: Option<bool>,
    /// CPU time of the program at the sending and the receiving end.
    pub cpu: ByRole<Option<Cpu>>,
    /// Datagrams and their loss; `None` of other protocols, and if unknown.
    pub datagrams: Option<Lost>,
    /// Messages in a second; `None` if unknown.
    pub messages: Option<f64>,
    /// Payload of each operation or datagram in bytes; `None` if unknown.
    pub size: Option<Bytes>,
    /// Rate that the user asked for, all streams together; `None` if it was not limited, or this is unknown.
    pub asked: Option<Rate>,
    /// Congestion control of the sender; `None` if unknown.
    pub congestion: Option<String>,
    /// Why the transfer ended early, in the program's words; `None` if it did not.
    pub error: Option<String>,
    /// How a test of messages was set up.
    #[serde(default)]
    pub setup: Setup,
}

impl Transfer {
    /// A transfer of which only the protocol, the direction and the rate are known.
    pub fn new(carrier: Carrier, direction: Direction, goodput: Rate, counted: Counted) -> Self {
        Self {
            carrier,
            direction,
            both: false,
            streams: None,
            goodput,
            counted,
            seconds: None,
            ticks: Vec::new(),
            tick: None,
            each: Vec::new(),
            retransmits: None,
            segment: None,
            window: None,
            offered: None,
            buffer: None,
            round_trip: RoundTrips::default(),
            held: Held::default(),
            local: None,
            cpu: ByRole::default(),
            datagrams: None,
            messages: None,
            size: None,
            asked: None,
            congestion: None,
            error: None,
            setup: Setup::default(),
        }
    }

    /// Share of the segments that were sent again; `None` if unknown. A segment of unknown size is taken for the usual
    /// one, and at least those that were sent again were sent.
    pub fn repeated(&self) -> Option<f64> {
        let repeated = self.retransmits? as f64;
        let bytes = self.goodput.0 as f64 / 8.0 * self.seconds?;
        let segments = bytes / f64::from(self.segment.unwrap_or(USUAL_SEGMENT).max(1));
        Some(repeated / (segments + repeated).max(1.0))
    }

    /// Share of the datagrams that did not arrive; `None` of other protocols, and if unknown.
    pub fn lost(&self) -> Option<f64> {
        let counts = self.datagrams.filter(|counts| counts.of > 0)?;
        Some(counts.lost as f64 / counts.of as f64)
    }
}

/// Payload of a segment over IPv4 with timestamps in packets of 1500 bytes.
const USUAL_SEGMENT: u32 = 1448;
