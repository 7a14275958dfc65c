//! Management datagrams (MADs): requests are encoded, and replies are decoded.
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

/// Bytes of a MAD.
pub const LEN: usize = 256;

/// Largest number of links that a directed route can have.
pub const HOPS_MAX: usize = 63;

const WHAT: &str = "management datagram";

/// Method of every request.
const GET: u8 = 0x01;
/// Method of every reply.
const GET_REPLY: u8 = 0x81;
/// Bit of the status of a reply: the node is busy.
//= InfiniBand Architecture Specification 1.4, volume 1, section 13.4.7
const BUSY: u8 = 1;
/// LID that a directed route has at both ends, if it begins and ends with directed hops.
const PERMISSIVE: u16 = 0xffff;

/// A directed route: the ports by which a request leaves each node, from the port of this host on. Many requests share
/// a route.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route(Arc<[u8]>);

impl Route {
    /// Returns the route that leads over one more link, out of `port` of the last node. `None` if a route cannot be as
    /// long.
    pub fn then(&self, port: u8) -> Option<Self> {
        let ports: Arc<[u8]> = self.0.iter().copied().chain([port]).collect();
        (ports.len() <= HOPS_MAX).then_some(Self(ports))
    }

    /// The ports by which a request leaves each node.
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

/// An attribute of a node, with the part of it that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// [`node::NodeInfo`].
    NodeInfo,
    /// Description of the node, by [`node::description`].
    NodeDescription,
    /// [`subnet::SwitchInfo`].
    SwitchInfo,
    /// [`port::PortInfo`] of a port.
    PortInfo(u8),
    /// [`port::ExtendedSpeed`] of a port, an attribute of NVIDIA: a port that runs at FDR10 calls it QDR in PortInfo.
    ExtendedPortInfo(u8),
    /// A block of 32 partition keys of the adapter's port that receives the request, by [`port::partition_keys`].
    PartitionKeys(u16),
    /// A block of 64 entries of a switch's forwarding table, by [`subnet::forwarding`].
    Forwarding(u16),
    /// [`subnet::ManagerInfo`].
    ManagerInfo,
    /// What a node's counters can do, by [`counters::Support`].
    CounterSupport,
    /// [`counters::Counters`] of a port.
    Counters(u8),
    /// Counters of 64 bits, for [`counters::Counters::with_wide`].
    WideCounters(u8),
    /// [`subnet::Path`] between two ports, from the subnet manager.
    Path {
        /// Where the path begins.
        from: PortId,
        /// Where the path ends.
        to: PortId,
    },
}

/// A port in the words of a path record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortId {
    /// Upper half of the GID: the subnet.
    pub prefix: u64,
    /// Lower half of the GID.
    pub guid: Guid,
}

/// Class of a MAD: its number, and the version of the class.
type Class = (u8, u8);

const SUBNET_LID: Class = (0x01, 1);
const SUBNET_ROUTE: Class = (0x81, 1);
const PERFORMANCE: Class = (0x04, 1);
const ADMINISTRATION: Class = (0x03, 2);

/// Where the data of a MAD begin.
const DATA: usize = 64;
/// Where the data of a MAD to the subnet administrator begin, and where the mask of given fields is.
const ADMINISTRATION_DATA: usize = 56;
const ADMINISTRATION_MASK: usize = 48;
/// Where a directed route has the ports by which it leaves.
const ROUTE: usize = 128;

impl Attribute {
    /// The number of the attribute.
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

    /// The part of the attribute.
    fn modifier(self) -> u32 {
        match self {
            Self::PortInfo(port) | Self::ExtendedPortInfo(port) => port.into(),
            Self::PartitionKeys(block) | Self::Forwarding(block) => block.into(),
            _ => 0,
        }
    }

    /// The service of the node that has the attribute.
    pub fn service(self) -> Service {
        match self {
            Self::CounterSupport | Self::Counters(_) | Self::WideCounters(_) => {
                Service::Performance
            }
            Self::Path { .. } => Service::Administration,
            _ => Service::Subnet,
        }
    }

    /// Where the data of this attribute begin.
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
    /// Counters, on queue pair 1.
    Performance,
    /// The subnet administrator: answers for a subnet manager, on queue pair 1.
    Administration,
}

impl Service {
    /// The queue pair that answers.
    pub fn queue_pair(self) -> u8 {
        u8::from(self != Self::Subnet)
    }
}

/// A request for an attribute of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Get {
    /// The node.
    pub to: To,
    /// The attribute.
    pub attribute: Attribute,
}

impl Get {
    /// Asks the port with a LID whether it is there. The request goes to the performance service, which every node has:
    /// no program runs at the far end, and no right to manage the subnet is needed.
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
            // Entry 0 is not used.
            put(&mut mad, ROUTE + 1, &route.0);
        }
        // The kernel keeps the upper half of the transaction for itself.
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

    /// Decodes the data of the reply to this request.
    pub fn reply<'a>(&self, mad: &'a [u8]) -> Result<Data<'a>, Refusal> {
        let mad = mad.get(..LEN).ok_or(Malformed::Short(WHAT))?;
        let of = Fields(mad);
        if (of.u8(1), of.u8(3)) != (self.class().0, GET_REPLY)
            || of.u16(16) != self.attribute.number()
            || of.u32(20) != self.attribute.modifier()
        {
            return Err(Refusal::Other);
        }
        // On a directed route the highest bit says that the reply is on its way back.
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

/// Whether a MAD is a reply that asks for another try later.
pub fn is_busy(mad: &[u8]) -> bool {
    let status = mad.get(4..6).is_some_and(|status| status[1] & BUSY != 0);
    status && mad.get(3) == Some(&GET_REPLY)
}

/// Returns the transaction of a MAD. `None` if it is too short.
pub fn transaction(mad: &[u8]) -> Option<u32> {
    let bytes = mad.get(12..16)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// The data of a reply.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a>(Fields<'a>);

/// Why a reply has no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The node refused the request.
    #[error("the node refused the request (status {0:#06x})")]
    Status(u16),
    /// The datagram does not answer the request.
    #[error("the reply is for another request")]
    Other,
    /// The datagram is cut short.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

#[cfg(test)]
mod tests;
