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
    /// Name of the protocol, for a sentence.
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

/// The end whose count of the payload gives the goodput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counted {
    /// The receiver counted the payload.
    Receiver,
    /// Only the sender's count is known. It includes bytes in buffers and lost datagrams.
    Sender,
    /// The output does not say which end counted.
    Unknown,
}

/// CPU time of a program at one end, as shares of one CPU (1 is one full CPU; several threads may use more).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// CPU time in the program and in the kernel.
    pub total: f64,
    /// CPU time in the kernel on behalf of the program; `None` if unknown.
    pub system: Option<f64>,
    /// Whose CPU time was counted.
    pub of: CpuOf,
}

/// Whose CPU time a program reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuOf {
    /// CPU time of the program.
    Program,
    /// CPU use of the whole machine, as a number of busy CPUs.
    Machine,
    /// CPU time of the whole machine, as a share of all CPUs together; the number of CPUs is unknown.
    AllCpus,
}

/// Datagrams of a transfer: lost and sent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// Number of datagrams that did not arrive.
    pub lost: u64,
    /// Number of datagrams that were sent.
    pub of: u64,
    /// Jitter, the variation of the transit time; `None` if unknown.
    pub jitter: Option<Nanos>,
}

/// Round-trip times during a transfer, as estimated by the sender's kernel or measured by the program; `None` if
/// unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// The shortest round trip.
    pub least: Option<Nanos>,
    /// The mean round trip.
    pub mean: Option<Nanos>,
    /// The longest round trip.
    pub most: Option<Nanos>,
}

/// Shares of the time in which a connection had data to send but could not, as the sender's kernel counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Share of time in which the receiver's window was full; `None` if unknown.
    pub window: Option<f64>,
    /// Share of time in which the send buffer was full; `None` if unknown.
    pub buffer: Option<f64>,
}

/// A transfer of payload over a network, in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// The protocol that carried the payload.
    pub carrier: Carrier,
    /// The direction: forward is from the end that started the test (the client) to the other one.
    pub direction: Direction,
    /// Whether the other direction was loaded at the same time.
    pub both: bool,
    /// Number of connections, or of flows of datagrams; `None` if unknown.
    pub streams: Option<u32>,
    /// Payload per second, over the whole time that the program reports.
    pub goodput: Rate,
    /// The end that counted `goodput`.
    pub counted: Counted,
    /// Length of the transfer in seconds; `None` if unknown.
    pub seconds: Option<f64>,
    /// Rate of each interval in bits per second, in order. All intervals are equally long. Intervals that the program
    /// itself left out are missing; empty if not reported.
    pub ticks: Vec<f64>,
    /// Length of an interval of `ticks` in seconds; `None` if there are no intervals.
    pub tick: Option<f64>,
    /// Rate of each stream over the whole time, in bits per second; empty if not reported.
    pub each: Vec<f64>,
    /// Segments that the sender retransmitted; `None` if unknown.
    pub retransmits: Option<u64>,
    /// Payload of the largest segment in bytes; `None` if unknown.
    pub segment: Option<u32>,
    /// Largest congestion window of a stream in bytes; `None` if unknown.
    pub window: Option<Bytes>,
    /// Largest window that the receiver offered to a stream, in bytes; `None` if unknown.
    pub offered: Option<Bytes>,
    /// Size of socket buffers that the user requested, in bytes; `None` if none were requested or this is unknown.
    pub buffer: Option<Bytes>,
    /// Round-trip times during the transfer.
    pub round_trip: RoundTrips,
    /// Shares of time in which the sender had to wait.
    pub held: Held,
    /// Whether both ends have the same address, so that nothing crossed a network; `None` if unknown.
    pub local: Option<bool>,
    /// CPU time of the program at the sending and the receiving end.
    pub cpu: ByRole<Option<Cpu>>,
    /// Datagrams sent and lost; `None` for other protocols, and if unknown.
    pub datagrams: Option<Lost>,
    /// Messages per second; `None` if unknown.
    pub messages: Option<f64>,
    /// Payload of each operation or datagram in bytes; `None` if unknown.
    pub size: Option<Bytes>,
    /// Rate that the user requested for all streams together; `None` if it was not limited, or if unknown.
    pub requested: Option<Rate>,
    /// Congestion control of the sender; `None` if unknown.
    pub congestion: Option<String>,
    /// Why the transfer ended early, in the program's words; `None` if it did not.
    pub error: Option<String>,
    /// Set-up of a test that sends messages.
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
            requested: None,
            congestion: None,
            error: None,
            setup: Setup::default(),
        }
    }

    /// Share of the segments sent that were retransmitted; `None` if unknown. If the segment size is unknown, the
    /// usual size is assumed. The segments sent include those that were retransmitted.
    pub fn repeated(&self) -> Option<f64> {
        let repeated = self.retransmits? as f64;
        let bytes = self.goodput.0 as f64 / 8.0 * self.seconds?;
        let segments = bytes / f64::from(self.segment.unwrap_or(USUAL_SEGMENT).max(1));
        Some(repeated / (segments + repeated).max(1.0))
    }

    /// Share of the datagrams sent that were lost; `None` for other protocols, and if unknown.
    pub fn lost(&self) -> Option<f64> {
        let counts = self.datagrams.filter(|counts| counts.of > 0)?;
        Some(counts.lost as f64 / counts.of as f64)
    }
}

/// Payload of a segment in bytes, over IPv4 with TCP timestamps in packets of 1500 bytes.
const USUAL_SEGMENT: u32 = 1448;
