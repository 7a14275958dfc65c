//! Transports: the mechanisms that move the bytes of a load, and the causes that apply to each.

mod info;
mod knob;
mod options;
pub mod rdma;
mod varied;

use std::fmt;

pub use info::{
    CONNECT, FarEnd, MEMORY, NULL, PROGRAM, PatternKind, RDMA, SHM, TCP, TRANSPORTS, TransportInfo,
    UDP, named, options_of, with_option,
};
pub use knob::Knob;
pub use options::{
    ACCESS, BIND, DSCP, Kind, MEMORY_NODE, OptionInfo, Options, PRELOAD, RING, RING_DEFAULT,
    Setting,
};
pub use varied::Swept;

/// The mechanism that moves the bytes of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Connections of TCP.
    Tcp,
    /// Datagrams of UDP.
    Udp,
    /// Memory that two processes of one host share.
    Shm,
    /// Requests to an RDMA device, without the kernel in between.
    Rdma,
    /// The memory of the host, without a kernel or a far end in between.
    Memory,
    /// A transport of which only bytes, operations and their times are known.
    Other,
}

impl Transport {
    /// All classes of transports.
    pub const ALL: [Self; 6] =
        [Self::Tcp, Self::Udp, Self::Shm, Self::Rdma, Self::Memory, Self::Other];

    /// The transport of an engine, by its name in records. The simulated path moves bytes as TCP does.
    pub fn of(engine: &str) -> Self {
        match engine {
            "sim" => Self::Tcp,
            name => named(name).map_or(Self::Other, |info| info.class),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Shm => "shared memory",
            Self::Rdma => "RDMA",
            Self::Memory => "memory",
            Self::Other => "another transport",
        })
    }
}

/// The transports to which a cause, or a factor, applies. Elsewhere it is neither a limit nor a rival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All transports: the cause is about hosts, threads or the measurement.
    Any,
    /// Transports whose bytes pass a port.
    Ports,
    /// Transports whose packets pass the kernel's network stack.
    Sockets,
    /// Connections alone: windows, retransmissions, congestion control.
    Tcp,
    /// Datagrams alone: without congestion control and retransmissions.
    Udp,
    /// Transports whose payload passes a network port and its slot.
    Cards,
    /// Requests to RDMA devices alone.
    Rdma,
    /// Transports that keep a number of operations in flight.
    Other,
}

impl Scope {
    /// Whether it applies to a transport.
    pub const fn includes(self, transport: Transport) -> bool {
        match self {
            Self::Any => true,
            Self::Ports => !matches!(transport, Transport::Shm | Transport::Memory),
            Self::Sockets => matches!(transport, Transport::Tcp | Transport::Udp),
            Self::Tcp => matches!(transport, Transport::Tcp),
            Self::Udp => matches!(transport, Transport::Udp),
            Self::Cards => matches!(transport, Transport::Tcp | Transport::Udp | Transport::Rdma),
            Self::Rdma => matches!(transport, Transport::Rdma),
            Self::Other => matches!(transport, Transport::Other),
        }
    }

    /// Why the cause or factor does not apply to other transports.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Any => "it applies to all",
            Self::Ports => "it is about a port, which bytes in memory do not pass",
            Self::Sockets => "it is about packets of the kernel's network stack",
            Self::Tcp => {
                "it is about windows, retransmissions or congestion control of connections"
            }
            Self::Udp => {
                "it is about datagrams, which have no congestion control and no retransmissions"
            }
            Self::Cards => "it is about a network port and its slot",
            Self::Rdma => "it is about requests to an RDMA device",
            Self::Other => "it is about operations in flight",
        }
    }
}
