//! What a port is: PortInfo, its extension, and partition keys.

use super::Data;
use crate::ceiling::infiniband::Speed;
use crate::facts::infiniband::{LinkState, PhysicalState};

/// The attribute PortInfo.
//= InfiniBand Architecture Specification 1.4, volume 1, section 14.2.5.6
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortInfo {
    /// Upper half of the port's GIDs.
    pub prefix: u64,
    /// Local identifier; 0 until a subnet manager gives one.
    pub lid: u16,
    /// LID of the subnet manager; 0 if there is none.
    pub manager_lid: u16,
    /// What the port can do, as bits.
    capabilities: u32,
    /// Number of the port that received the request.
    pub local_port: u8,
    /// Widths of the link.
    pub width: Widths,
    /// Speeds of the link.
    pub speed: Speeds,
    /// State of the link; `None` for an unknown number.
    pub state: Option<LinkState>,
    /// State of the wire; `None` for an unknown number.
    pub physical: Option<PhysicalState>,
    /// Binary logarithm of the number of LIDs of the port.
    pub lid_mask: u8,
    /// Largest payload of a packet in bytes that both ends agreed on; `None` for an unknown code.
    pub mtu: Option<u32>,
    /// Largest payload of a packet in bytes that the port allows; `None` for an unknown code.
    pub mtu_most: Option<u32>,
    /// Packets that were refused because of their partition key.
    pub partition_violations: u16,
}

/// Bits of the capability mask.
const IS_MANAGER: u32 = 1 << 1;
const EXTENDED_SPEEDS: u32 = 1 << 14;

impl PortInfo {
    /// Decodes the attribute.
    pub fn decode(Data(of): Data<'_>) -> Self {
        let capabilities = of.u32(20);
        let extended = capabilities & EXTENDED_SPEEDS != 0;
        let wide = |code| if extended { code } else { 0 };
        let speeds = |low, high| SpeedSet {
            low,
            high: wide(high),
            fdr10: false,
        };
        Self {
            prefix: of.u64(8),
            lid: of.u16(16),
            manager_lid: of.u16(18),
            capabilities,
            local_port: of.u8(28),
            width: Widths {
                enabled: WidthSet(of.u8(29)),
                supported: WidthSet(of.u8(30)),
                active: WidthSet(of.u8(31)).widest(),
            },
            speed: Speeds {
                supported: speeds(of.high(32), of.low(62)),
                enabled: speeds(of.low(35), of.u8(63) & 0x1f),
                active: speeds(of.high(35), of.high(62)).fastest(),
            },
            state: LinkState::of(of.low(32).into()),
            physical: PhysicalState::of(of.high(33).into()),
            lid_mask: of.u8(34) & 0x7,
            mtu: mtu(of.high(36)),
            mtu_most: mtu(of.low(41)),
            partition_violations: of.u16(46),
        }
    }

    /// Whether a subnet manager runs at the port.
    pub fn is_manager(&self) -> bool {
        self.capabilities & IS_MANAGER != 0
    }

    /// Adds the attribute that has the speed FDR10.
    #[must_use]
    pub fn with(mut self, extended: ExtendedSpeed) -> Self {
        self.speed.supported.fdr10 = extended.supported;
        self.speed.enabled.fdr10 = extended.enabled;
        if extended.active {
            self.speed.active = Some(Speed::Fdr10);
        }
        self
    }
}

/// Widths of a port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widths {
    /// Widths that may be used.
    pub enabled: WidthSet,
    /// Widths that the port has.
    pub supported: WidthSet,
    /// Lanes in use; `None` for an unknown code.
    pub active: Option<u32>,
}

/// Numbers of lanes, as bits: 1, 4, 8, 12, 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WidthSet(u8);

impl WidthSet {
    const LANES: [u32; 5] = [1, 4, 8, 12, 2];

    /// Returns the widths that both sets have.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the largest number of lanes; `None` if the set is empty.
    pub fn widest(self) -> Option<u32> {
        let lanes = Self::LANES.iter().enumerate();
        let has = lanes.filter(|(bit, _)| self.0 >> bit & 1 == 1);
        has.map(|(_, lanes)| *lanes).max()
    }
}

/// Speeds of a port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speeds {
    /// Speeds that may be used.
    pub enabled: SpeedSet,
    /// Speeds that the port has.
    pub supported: SpeedSet,
    /// Speed in use; `None` for an unknown code.
    pub active: Option<Speed>,
}

/// Speeds of a lane, as bits in two fields of PortInfo and one of its extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpeedSet {
    low: u8,
    high: u8,
    fdr10: bool,
}

impl SpeedSet {
    const LOW: [Speed; 3] = [Speed::Sdr, Speed::Ddr, Speed::Qdr];
    const HIGH: [Speed; 4] = [Speed::Fdr, Speed::Edr, Speed::Hdr, Speed::Ndr];

    /// Returns the speeds that both sets have.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            low: self.low & other.low,
            high: self.high & other.high,
            fdr10: self.fdr10 && other.fdr10,
        }
    }

    /// Returns the highest speed; `None` if the set is empty.
    pub fn fastest(self) -> Option<Speed> {
        let last = |bits: u8, speeds: &[Speed]| {
            let numbered = speeds.iter().enumerate().rev();
            let mut has = numbered.filter(|(bit, _)| bits >> bit & 1 == 1);
            has.next().map(|(_, speed)| *speed)
        };
        let fdr10 = self.fdr10.then_some(Speed::Fdr10);
        last(self.high, &Self::HIGH)
            .or(fdr10)
            .or_else(|| last(self.low, &Self::LOW))
    }
}

/// The size in bytes of an MTU's code.
fn mtu(code: u8) -> Option<u32> {
    (1..=5).contains(&code).then(|| 128 << code)
}

/// NVIDIA's extension of PortInfo: whether a port has, may use and uses FDR10.
//= infiniband-diags, libibmad: IB_MLNX_EXT_PORT_LINK_SPEED
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtendedSpeed {
    supported: bool,
    enabled: bool,
    active: bool,
}

impl ExtendedSpeed {
    /// Decodes the attribute.
    pub fn decode(Data(of): Data<'_>) -> Self {
        let has = |at| of.u8(at) & 1 == 1;
        Self {
            supported: has(7),
            enabled: has(11),
            active: has(15),
        }
    }
}

/// A partition key. The highest bit says whether the port is a full member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey(pub u16);

impl PartitionKey {
    /// The number of the partition.
    pub fn partition(self) -> u16 {
        self.0 & 0x7fff
    }

    /// Whether the port may talk to all members; a limited member may talk to full members alone.
    pub fn is_full(self) -> bool {
        self.0 & 0x8000 != 0
    }
}

/// Decodes a block of partition keys, without its empty entries.
pub fn partition_keys(Data(of): Data<'_>) -> Vec<PartitionKey> {
    let keys = (0..32).map(|n| PartitionKey(of.u16(n * 2)));
    keys.filter(|key| key.partition() != 0).collect()
}
