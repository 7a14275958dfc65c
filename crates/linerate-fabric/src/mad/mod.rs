//! Management datagrams (MADs): encodes requests, and decodes replies.
//!
//! Every request is a Get: it changes nothing at any node. All numbers are in network byte order.
//= InfiniBand Architecture Specification 1.4, volume 1, chapters 13 (format), 14 (subnet management), 15 and 16

pub mod counters;
mod fields;
pub mod node;
pub mod port;
pub mod subnet;

use std::sync::Arc;

use fields::{Fields, put};
use linerate_facts::infiniband::Guid;
use linerate_facts::parse::Malformed;

/// Length of a MAD in bytes.
pub const LEN: usize = 256;

/// Largest number of links that a directed route can have.
pub const HOPS_MAX: usize = 63;

const WHAT: &str = "management datagram";

/// Method number of every request: Get.
const GET: u8 = 0x01;
/// Method number of every reply: GetResp.
const GET_REPLY: u8 = 0x81;
/// Bit of a reply's status that says that the node is busy.
//= InfiniBand Architecture Specification 1.4, volume 1, section 13.4.7
const BUSY: u8 = 1;
/// LID at both ends of a directed route that needs no LIDs.
const PERMISSIVE: u16 = 0xffff;

/// A directed route: the ports by which a request leaves each node, beginning with this host. Many requests share one
/// route.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route(Arc<[u8]>);

impl Route {
    /// Returns the route that is one link longer and leaves the last node by `port`. `None` if this exceeds
    /// [`HOPS_MAX`].
    pub fn then(&self, port: u8) -> Option<Self> {
        let ports: Arc<[u8]> = self.0.iter().copied().chain([port]).collect();
        (ports.len() <= HOPS_MAX).then_some(Self(ports))
    }

    /// The ports by which a request leaves each node on the route.
    pub fn ports(&self) -> &[u8] {
        &self.0
    }
}

/// The node that a request is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum To {
    /// The node at the end of a route. It needs no LIDs and no subnet manager.
    Route(Route),
    /// The port with this LID.
    Lid(u16),
}

/// An attribute of a node, with the part that is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// Kind, GUIDs and number of ports of a node: [`node::NodeInfo`].
    NodeInfo,
    /// The name that somebody gave the node, by [`node::description`].
    NodeDescription,
    /// Size of a switch's forwarding table: [`subnet::SwitchInfo`].
    SwitchInfo,
    /// State, LID, widths and speeds of a port: [`port::PortInfo`].
    PortInfo(u8),
    /// [`port::ExtendedSpeed`] of a port, an attribute of NVIDIA: a port that runs at FDR10 reports QDR in PortInfo.
    ExtendedPortInfo(u8),
    /// A block of 32 partition keys of the adapter's port that receives the request, by [`port::partition_keys`].
    PartitionKeys(u16),
    /// A block of 64 entries of a switch's forwarding table, by [`subnet::forwarding`].
    Forwarding(u16),
    /// State and priority of the subnet manager at a port: [`subnet::ManagerInfo`].
    ManagerInfo,
    /// Which counters the node supports, by [`counters::Support`].
    CounterSupport,
    /// Counters of a port of up to 32 bits: [`counters::Counters`].
    Counters(u8),
    /// Counters of a port with 64 bits, for [`counters::Counters::with_wide`].
    WideCounters(u8),
    /// [`subnet::Path`] between two ports, from the subnet manager.
    Path {
        /// The port at which the path begins.
        from: PortId,
        /// The port at which the path ends.
        to: PortId,
    },
}

/// A port as a path record names it, by its GID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortId {
    /// Upper half of the GID: the prefix of the subnet.
    pub prefix: u64,
    /// Lower half of the GID: the GUID of the port.
    pub guid: Guid,
}

/// Management class of a MAD: the number of the class, and its version.
type Class = (u8, u8);

const SUBNET_LID: Class = (0x01, 1);
const SUBNET_ROUTE: Class = (0x81, 1);
const PERFORMANCE: Class = (0x04, 1);
const ADMINISTRATION: Class = (0x03, 2);

/// Byte at which the data of a MAD begin.
const DATA: usize = 64;
/// Bytes at which the data of a MAD to the subnet administrator begin, and the mask of the fields that a request gives.
const ADMINISTRATION_DATA: usize = 56;
const ADMINISTRATION_MASK: usize = 48;
/// Byte at which a directed route has the ports by which it leaves each node.
const ROUTE: usize = 128;

impl Attribute {
    /// The number of the attribute in the specification.
    fn number(self) -> u16 {
        match self {
            Self::NodeDescription => 0x10,
            Self::NodeInfo => 0x11,
            Self::SwitchInfo | Self::Counters(_) => 0x12,
            Self::PortInfo(_) => 0x15,
            Self::PartitionKeys(_) => 0x16,
            Self::Forwarding(_) => 0x19,
            Self::ManagerInfo => 0x20,
            Self::ExtendedPortInfo(_) => 0xff90,
            Self::CounterSupport => 0x01,
            Self::WideCounters(_) => 0x1d,
            Self::Path { .. } => 0x35,
        }
    }

    /// The name of the attribute in the specification.
    pub fn name(self) -> &'static str {
        match self {
            Self::NodeInfo => "NodeInfo",
            Self::NodeDescription => "NodeDescription",
            Self::SwitchInfo => "SwitchInfo",
            Self::PortInfo(_) => "PortInfo",
            Self::ExtendedPortInfo(_) => "ExtendedPortInfo",
            Self::PartitionKeys(_) => "P_KeyTable",
            Self::Forwarding(_) => "LinearForwardingTable",
            Self::ManagerInfo => "SMInfo",
            Self::CounterSupport => "ClassPortInfo",
            Self::Counters(_) => "PortCounters",
            Self::WideCounters(_) => "PortCountersExtended",
            Self::Path { .. } => "PathRecord",
        }
    }

    /// The attribute modifier: the number of the port or block that is requested.
    fn modifier(self) -> u32 {
        match self {
            Self::PortInfo(port) | Self::ExtendedPortInfo(port) => port.into(),
            Self::PartitionKeys(block) | Self::Forwarding(block) => block.into(),
            _ => 0,
        }
    }

    /// The management service of the node that answers for the attribute.
    pub fn service(self) -> Service {
        match self {
            Self::CounterSupport | Self::Counters(_) | Self::WideCounters(_) => {
                Service::Performance
            }
            Self::Path { .. } => Service::Administration,
            _ => Service::Subnet,
        }
    }

    /// Byte of a reply at which the data of this attribute begin.
    fn data(self) -> usize {
        match self.service() {
            Service::Administration => ADMINISTRATION_DATA,
            Service::Subnet | Service::Performance => DATA,
        }
    }
}

/// A management service of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Service {
    /// Subnet management, on queue pair 0. It works without a subnet manager.
    Subnet,
    /// Counters of ports, on queue pair 1.
    Performance,
    /// The subnet administrator on queue pair 1, which answers for a subnet manager.
    Administration,
}

impl Service {
    /// The queue pair at which the service answers.
    pub fn queue_pair(self) -> u8 {
        u8::from(self != Self::Subnet)
    }
}

/// A request for an attribute of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Get {
    /// The node that the request is sent to.
    pub to: To,
    /// The requested attribute.
    pub attribute: Attribute,
}

impl Get {
    /// A request that checks whether the port with a LID answers. It goes to the performance service, which every node
    /// has: no program runs at the far end, and the right to manage the subnet is not needed.
    pub fn ping(lid: u16) -> Self {
        Self { to: To::Lid(lid), attribute: Attribute::CounterSupport }
    }

    fn class(&self) -> Class {
        match (self.attribute.service(), &self.to) {
            (Service::Subnet, To::Route(_)) => SUBNET_ROUTE,
            (Service::Subnet, To::Lid(_)) => SUBNET_LID,
            (Service::Performance, _) => PERFORMANCE,
            (Service::Administration, _) => ADMINISTRATION,
        }
    }

    /// Returns the LID that the request is sent to.
    pub fn lid(&self) -> u16 {
        match &self.to {
            To::Route(_) => PERMISSIVE,
            To::Lid(lid) => *lid,
        }
    }

    /// Encodes the request. Its reply has the same `transaction`.
    pub fn encode(&self, transaction: u32) -> [u8; LEN] {
        let mut mad = [0; LEN];
        let (class, version) = self.class();
        mad[..4].copy_from_slice(&[1, class, version, GET]);
        if let To::Route(route) = &self.to {
            mad[7] = route.0.len() as u8;
            put(&mut mad, 32, &PERMISSIVE.to_be_bytes());
            put(&mut mad, 34, &PERMISSIVE.to_be_bytes());
            // Entry 0 of a route is not used.
            put(&mut mad, ROUTE + 1, &route.0);
        }
        // The kernel overwrites the upper half of the transaction, bytes 8 to 11.
        put(&mut mad, 12, &transaction.to_be_bytes());
        put(&mut mad, 16, &self.attribute.number().to_be_bytes());
        put(&mut mad, 20, &self.attribute.modifier().to_be_bytes());
        match self.attribute {
            Attribute::Counters(port) | Attribute::WideCounters(port) => mad[DATA + 1] = port,
            Attribute::Path { from, to } => subnet::ask_for_path(&mut mad, from, to),
            _ => {}
        }
        mad
    }

    /// Checks that a MAD is the reply to this request, and decodes its data.
    pub fn reply<'a>(&self, mad: &'a [u8]) -> Result<Data<'a>, Refusal> {
        let mad = mad.get(..LEN).ok_or(Malformed::Short(WHAT))?;
        let of = Fields(mad);
        if (of.u8(1), of.u8(3)) != (self.class().0, GET_REPLY)
            || of.u16(16) != self.attribute.number()
            || of.u32(20) != self.attribute.modifier()
        {
            return Err(Refusal::Other);
        }
        // On a directed route, the highest bit of the status marks a reply that is on its way back.
        let bits = match self.class() {
            SUBNET_ROUTE => 0x7fff,
            _ => 0xffff,
        };
        match of.u16(4) & bits {
            0 => Ok(Data(Fields(&mad[self.attribute.data()..]))),
            status => Err(Refusal::Status(status)),
        }
    }
}

/// Whether a MAD is a reply that tells the sender to try again later.
pub fn is_busy(mad: &[u8]) -> bool {
    let status = mad.get(4..6).is_some_and(|status| status[1] & BUSY != 0);
    status && mad.get(3) == Some(&GET_REPLY)
}

/// Returns the transaction of a MAD. `None` if it is too short.
pub fn transaction(mad: &[u8]) -> Option<u32> {
    let bytes = mad.get(12..16)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// The data of a reply, after its header.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a>(Fields<'a>);

/// Why a reply has no data that can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The node refused the request.
    #[error("the node refused the request (status {0:#06x})")]
    Status(u16),
    /// The datagram is not a reply to the request.
    #[error("the reply is for another request")]
    Other,
    /// The datagram is too short.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

#[cfg(test)]
mod tests;
