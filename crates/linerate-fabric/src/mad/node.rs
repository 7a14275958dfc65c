//! The attributes of a node: NodeInfo and NodeDescription.

use serde::{Deserialize, Serialize};

use super::Data;
use linerate_facts::infiniband::Guid;

/// Kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// The node is an adapter of a host.
    Host,
    /// The node is a switch.
    Switch,
    /// The node is a router between subnets.
    Router,
    /// A kind with a number that the specification does not define.
    Other(u8),
}

impl NodeKind {
    fn of(number: u8) -> Self {
        match number {
            1 => Self::Host,
            2 => Self::Switch,
            3 => Self::Router,
            other => Self::Other(other),
        }
    }
}

/// The attribute NodeInfo.
//= InfiniBand Architecture Specification 1.4, volume 1, section 14.2.5.3
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeInfo {
    /// Whether the node is a host's adapter, a switch or a router.
    pub kind: NodeKind,
    /// Number of ports; port 0 of a switch is not counted.
    pub ports: u8,
    /// GUID of the system, such as a host or chassis, that the node is a part of.
    pub system: Guid,
    /// GUID of the node.
    pub guid: Guid,
    /// GUID of the port that received the request.
    pub port_guid: Guid,
    /// Number of partition keys that a port holds.
    pub partitions: u16,
    /// Device id, which the maker gives.
    pub device: u16,
    /// Number of the port that received the request.
    pub local_port: u8,
    /// Id of the maker.
    pub vendor: u32,
}

impl NodeInfo {
    /// Decodes the attribute.
    pub fn decode(Data(of): Data<'_>) -> Self {
        Self {
            kind: NodeKind::of(of.u8(2)),
            ports: of.u8(3),
            system: of.guid(4),
            guid: of.guid(12),
            port_guid: of.guid(20),
            partitions: of.u16(28),
            device: of.u16(30),
            local_port: of.u8(36),
            vendor: of.u24(37),
        }
    }
}

/// Decodes the attribute NodeDescription: text of up to 64 bytes. Control characters become spaces.
pub fn description(Data(of): Data<'_>) -> String {
    let bytes: [u8; 64] = of.bytes(0);
    let end = bytes.iter().position(|byte| *byte == 0);
    let text = String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]);
    let clean = text.replace(char::is_control, " ");
    clean.trim().to_owned()
}
