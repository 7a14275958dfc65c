//! Attributes that a subnet manager sets: of switches, forwarding tables, managers and paths.

use serde::{Deserialize, Serialize};

use super::fields::put;
use super::port::{PartitionKey, mtu};
use super::{ADMINISTRATION_DATA, ADMINISTRATION_MASK, Data, LEN, PortId};
use linerate_facts::infiniband::Guid;
use linerate_units::Rate;

/// The attribute SwitchInfo.
//= InfiniBand Architecture Specification 1.4, volume 1, section 14.2.5.4
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchInfo {
    /// Number of entries that the forwarding table has room for.
    pub room: u16,
    /// Highest LID in the forwarding table.
    pub top: u16,
}

impl SwitchInfo {
    /// Decodes the attribute.
    pub fn decode(Data(of): Data<'_>) -> Self {
        Self { room: of.u16(0), top: of.u16(6) }
    }
}

/// Number of LIDs in a block of a forwarding table.
pub const BLOCK: usize = 64;

/// Port in a forwarding table that means that the LID leads nowhere.
pub const NOWHERE: u8 = 0xff;

/// Decodes a block of a forwarding table: the port by which packets to each LID leave.
pub fn forwarding(Data(of): Data<'_>) -> [u8; BLOCK] {
    of.bytes(0)
}

/// State of a subnet manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ManagerState {
    /// The manager does not take part.
    NotActive,
    /// The manager searches the network for ports.
    Discovering,
    /// The manager waits for the master to fail.
    Standby,
    /// The manager manages the subnet.
    Master,
    /// A state with a number that the specification does not define.
    Other(u8),
}

impl ManagerState {
    /// The state of a manager in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotActive => "not active",
            Self::Discovering => "discovering",
            Self::Standby => "standby",
            Self::Master => "master",
            Self::Other(_) => "in an unknown state",
        }
    }
}

/// The attribute SMInfo.
//= InfiniBand Architecture Specification 1.4, volume 1, section 14.2.5.13
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManagerInfo {
    /// GUID of the port at which the manager runs.
    pub guid: Guid,
    /// Activity counter, which rises while the manager works.
    pub activity: u32,
    /// Priority: of several managers, that with the highest one becomes the master.
    pub priority: u8,
    /// State of the manager.
    pub state: ManagerState,
}

impl ManagerInfo {
    /// Decodes the attribute.
    pub fn decode(Data(of): Data<'_>) -> Self {
        let state = match of.low(20) {
            0 => ManagerState::NotActive,
            1 => ManagerState::Discovering,
            2 => ManagerState::Standby,
            3 => ManagerState::Master,
            other => ManagerState::Other(other),
        };
        Self { guid: of.guid(0), activity: of.u32(16), priority: of.high(20), state }
    }
}

/// The attribute PathRecord: how packets between two ports are sent.
//= InfiniBand Architecture Specification 1.4, volume 1, section 15.2.5.16
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// LID of the far port.
    pub to: u16,
    /// LID of the near port.
    pub from: u16,
    /// Partition key of the packets.
    pub key: PartitionKey,
    /// Service level of the packets, 0 to 15.
    pub level: u8,
    /// Largest payload of a packet in bytes; `None` for an unknown code.
    pub mtu: Option<u32>,
    /// Signalling rate in bits per second; `None` for an unknown code.
    pub rate: Option<Rate>,
}

/// The fields that a request for a path gives, as bits: far GID, near GID, and the number of paths.
const GIVEN: u64 = 1 << 2 | 1 << 3 | 1 << 12;

/// Status with which the subnet administrator refuses: it has no such record.
//= InfiniBand Architecture Specification 1.4, volume 1, section 15.4.3
pub const NO_RECORD: u16 = 0x0300;

/// Signalling rates in Mb/s, each with its code.
//= rdma-core, libibverbs: enum ibv_rate, ibv_rate_to_mbps
const RATES: [(u8, u64); 23] = [
    (2, 2_500),
    (3, 10_000),
    (4, 30_000),
    (5, 5_000),
    (6, 20_000),
    (7, 40_000),
    (8, 60_000),
    (9, 80_000),
    (10, 120_000),
    (11, 14_062),
    (12, 56_250),
    (13, 112_500),
    (14, 168_750),
    (15, 25_781),
    (16, 103_125),
    (17, 206_250),
    (18, 309_375),
    (19, 28_125),
    (20, 53_125),
    (21, 425_000),
    (22, 637_500),
    (23, 850_000),
    (24, 1_275_000),
];

impl Path {
    /// Decodes the attribute.
    pub fn decode(Data(of): Data<'_>) -> Self {
        let code = of.u8(55) & 0x3f;
        let rate = RATES.iter().find(|(known, _)| *known == code);
        Self {
            to: of.u16(40),
            from: of.u16(42),
            key: PartitionKey(of.u16(50)),
            level: of.low(53),
            mtu: mtu(of.u8(54) & 0x3f),
            rate: rate.map(|(_, mbps)| Rate(mbps * 1_000_000)),
        }
    }
}

/// Writes a request for one path between two ports into a MAD.
pub(super) fn ask_for_path(mad: &mut [u8; LEN], from: PortId, to: PortId) {
    let gid =
        |port: PortId| (u128::from(port.prefix) << 64 | u128::from(port.guid.0)).to_be_bytes();
    put(mad, ADMINISTRATION_MASK, &GIVEN.to_be_bytes());
    put(mad, ADMINISTRATION_DATA + 8, &gid(to));
    put(mad, ADMINISTRATION_DATA + 24, &gid(from));
    mad[ADMINISTRATION_DATA + 49] = 1;
}
