//! The description of a lab, and the counters of its ports.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use linerate_plan::path::Side;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// How the two hosts are connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Topology {
    /// Topology near - router - far, each link a subnet of its own. Every fault can be planted.
    #[default]
    Routed,
    /// Topology near - bridge - far, one subnet; the ports `near` and `far` belong to the bridge.
    Bridged,
    /// Topology near - far, one link. Faults of a router or bridge cannot be planted.
    Direct,
}

/// A machine of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    /// The end that controls a measurement; its port is `eth0`.
    Near,
    /// The device between the hosts, a router or a bridge, with ports `near` and `far`; the ends cannot read
    /// its counters.
    Router,
    /// The end that serves; its port is `eth0`.
    Far,
}

impl From<Side> for Host {
    fn from(side: Side) -> Self {
        match side {
            Side::Near => Self::Near,
            Side::Far => Self::Far,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Near => "near",
            Self::Router => "router",
            Self::Far => "far",
        })
    }
}

/// Description of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spec {
    /// Connection between the hosts.
    pub topology: Topology,
    /// Faults that are planted from the start, in this order.
    pub faults: Vec<Fault>,
    /// Congestion control of every connection that does not choose one itself; `None` leaves the system's. It is an
    /// attribute of the hosts' routes, which may also have one that `net.ipv4.tcp_allowed_congestion_control` lacks.
    pub congestion: Option<String>,
    /// MTU of all ports.
    pub mtu: u32,
}

impl Default for Spec {
    fn default() -> Self {
        Self { topology: Topology::Routed, faults: Vec::new(), congestion: None, mtu: 1500 }
    }
}

/// Addresses of a host on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4 address of the host.
    pub v4: Ipv4Addr,
    /// IPv6 address of the host; `None` if the kernel has no IPv6.
    pub v6: Option<Ipv6Addr>,
}

/// Counters of one port of a host since the port was made.
///
/// Planting or removing a delay makes the router's port `near` anew, so its counters start again from zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStatus {
    /// Name of the port in its host.
    pub name: String,
    /// Whether the port is switched on and has a carrier.
    pub up: bool,
    /// Largest IP packet that the port accepts, in bytes.
    pub mtu: u32,
    /// Bytes received, in Ethernet frames without checksum.
    pub rx_bytes: u64,
    /// Frames received; a group that was segmented late counts once.
    pub rx_packets: u64,
    /// Frames dropped on reception.
    pub rx_dropped: u64,
    /// Bytes sent, in Ethernet frames without checksum.
    pub tx_bytes: u64,
    /// Frames sent; a group that was segmented late counts once.
    pub tx_packets: u64,
    /// Frames dropped on transmission, after the queue.
    pub tx_dropped: u64,
    /// Queueing discipline of the port, if it has one.
    pub queue: Option<Queue>,
}

/// Counters of a port's queueing discipline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Kind of the queueing discipline, for example `tbf`.
    pub kind: String,
    /// Bytes that passed the queue.
    pub bytes: u64,
    /// Packets that passed the queue; each segment counts.
    pub packets: u64,
    /// Packets that were dropped because the queue was full.
    pub drops: u64,
    /// Number of times that the queue held a packet back.
    pub overlimits: u64,
    /// Bytes that are in the queue now.
    pub backlog_bytes: u64,
}

/// The counters of the process on the wire, which forwards packets. Each has two values: forward and in reverse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forwarded {
    /// Bytes of forwarded frames.
    pub bytes: [u64; 2],
    /// Frames forwarded; a group that was segmented late counts once.
    pub frames: [u64; 2],
    /// Frames that the process lost by itself. This is an unplanned fault: a measurement during such a loss is invalid.
    pub lost: [u64; 2],
    /// The longest delay of a frame beyond its due time, in nanoseconds.
    pub latest_ns: [u64; 2],
    /// Packets that arrived; each segment counts.
    pub packets: [u64; 2],
    /// Packets that a planted fault dropped.
    pub dropped: [u64; 2],
}
