//! The attributes of a port: PortInfo, its extension by NVIDIA, and partition keys.

use super::Data;
use linerate_ceiling::infiniband::Speed;
use linerate_facts::infiniband::{LinkState, PhysicalState};

/// The attribute PortInfo.
//= InfiniBand Architecture Specification 1.4, volume 1, section 14.2.5.6
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortInfo {
    /// Upper half of the port's GIDs: the prefix of its subnet.
    pub prefix: u64,
    /// Local identifier; 0 until a subnet manager gives one.
    pub lid: u16,
    /// LID of the subnet manager; 0 if there is none.
    pub manager_lid: u16,
    /// Capability mask of the port.
    capabilities: u32,
    /// Number of the port that received the request.
    pub local_port: u8,
    /// Widths of the link: enabled, supported and in use.
    pub width: Widths,
    /// Speeds of the link: enabled, supported and in use.
    pub speed: Speeds,
    /// State of the link; `None` if its number is unknown.
    pub state: Option<LinkState>,
    /// Physical state of the link; `None` if its number is unknown.
    pub physical: Option<PhysicalState>,
    /// Binary logarithm of the number of LIDs of the port.
    pub lid_mask: u8,
    /// Largest payload of a packet in bytes that both ends agreed on; `None` for an unknown code.
    pub mtu: Option<u32>,
}

/// Bit of the capability mask: a subnet manager runs at the port.
const IS_MANAGER: u32 = 1 << 1;

/// Code in the enabled extended speeds that means none.
//= libibmad, mad_dump_linkspeedexten
const NO_EXTENDED: u8 = 30;

impl PortInfo {
    /// Decodes the attribute.
    ///
    /// A switch has its capabilities at port 0 only, so they do not show whether the extended speeds of another port
    /// are valid. Devices without extended speeds send zeros in these fields.
    //= libibmad, fields.c; libibnetdisc, ibnd_get_agg_linkspeedext
    pub fn decode(Data(of): Data<'_>) -> Self {
        let widths = WidthSet(of.u8(30));
        let enabled = match of.u8(63) & 0x1f {
            NO_EXTENDED => 0,
            speeds => speeds,
        };
        let speeds = SpeedSet::new(of.high(32), of.low(62), of.u8(56) >> 3 & 0x3);
        let active = [of.high(35), of.high(62), of.u8(56) >> 5 & 0x3];
        Self {
            prefix: of.u64(8),
            lid: unicast(of.u16(16)),
            manager_lid: unicast(of.u16(18)),
            capabilities: of.u32(20),
            local_port: of.u8(28),
            // Some codes of enabled widths or speeds mean "all that are supported": all of their bits are set.
            width: Widths {
                enabled: WidthSet(of.u8(29)).and(widths),
                supported: widths,
                active: WidthSet(of.u8(31)).only(),
            },
            speed: Speeds {
                supported: speeds,
                enabled: SpeedSet::new(of.low(35), enabled, of.u8(56) & 0x7).and(speeds),
                active: in_use(active),
            },
            state: LinkState::of(of.low(32).into()),
            physical: PhysicalState::of(of.high(33).into()),
            lid_mask: of.u8(34) & 0x7,
            mtu: mtu(of.high(36)),
        }
    }

    /// Whether a subnet manager runs at the port.
    pub fn is_manager(&self) -> bool {
        self.capabilities & IS_MANAGER != 0
    }

    /// Adds the speed FDR10, which only NVIDIA's attribute has.
    #[must_use]
    pub fn with(mut self, extended: ExtendedSpeed) -> Self {
        self.speed.supported.fdr10 = extended.supported;
        self.speed.enabled.fdr10 = extended.enabled && extended.supported;
        if extended.active && self.speed.active == Some(Speed::Qdr) {
            self.speed.active = Some(Speed::Fdr10);
        }
        self
    }
}

/// Widths of a port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widths {
    /// Widths that the port is allowed to use.
    pub enabled: WidthSet,
    /// Widths that the port supports.
    pub supported: WidthSet,
    /// Number of lanes in use; `None` for an unknown code.
    pub active: Option<u32>,
}

/// A set of widths, as bits; the bits mean 1, 4, 8, 12 and 2 lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WidthSet(u8);

impl WidthSet {
    const LANES: [u32; 5] = [1, 4, 8, 12, 2];

    /// Returns the widths that are in both sets.
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

    /// Returns the number of lanes if the set has exactly one width; `None` for any other set.
    fn only(self) -> Option<u32> {
        self.0.is_power_of_two().then(|| self.widest()).flatten()
    }
}

/// Speeds of a port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speeds {
    /// Speeds that the port is allowed to use.
    pub enabled: SpeedSet,
    /// Speeds that the port supports.
    pub supported: SpeedSet,
    /// Speed in use; `None` for an unknown code.
    pub active: Option<Speed>,
}

/// A set of lane speeds, as bits in three fields of PortInfo and one of its extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpeedSet {
    /// The bits of each field, whose meaning [`FIELDS`] has.
    fields: [u8; 3],
    fdr10: bool,
}

/// The speeds that the bits of three fields mean: speed, extended speed, extended speed 2.
const FIELDS: [&[Speed]; 3] = [
    &[Speed::Sdr, Speed::Ddr, Speed::Qdr],
    &[Speed::Fdr, Speed::Edr, Speed::Hdr, Speed::Ndr],
    &[Speed::Xdr],
];

impl SpeedSet {
    fn new(speed: u8, extended: u8, extended2: u8) -> Self {
        Self { fields: [speed, extended, extended2], fdr10: false }
    }

    /// Returns the speeds that are in both sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut fields = self.fields;
        for (of, others) in fields.iter_mut().zip(other.fields) {
            *of &= others;
        }
        Self { fields, fdr10: self.fdr10 && other.fdr10 }
    }

    /// Returns the highest speed; `None` if the set is empty.
    pub fn fastest(self) -> Option<Speed> {
        let fields = FIELDS.iter().zip(self.fields);
        let has = fields.flat_map(|(speeds, bits)| {
            let numbered = speeds.iter().enumerate();
            numbered.filter_map(move |(bit, speed)| (bits >> bit & 1 == 1).then_some(*speed))
        });
        let fdr10 = self.fdr10.then_some(Speed::Fdr10);
        has.chain(fdr10).max_by(|a, b| a.lane().total_cmp(&b.lane()))
    }
}

/// Returns the speed in use from the codes of three fields: a later field that is not zero replaces earlier ones.
/// `None` for an unknown code.
fn in_use(codes: [u8; 3]) -> Option<Speed> {
    let (speeds, code) = FIELDS.iter().zip(codes).rev().find(|(_, code)| *code != 0)?;
    let bit = code.trailing_zeros() as usize;
    let is_one = code.is_power_of_two();
    is_one.then(|| speeds.get(bit).copied()).flatten()
}

/// The LID if it is that of one port, else zero: some adapters have 0xffff until a manager gives them one.
fn unicast(lid: u16) -> u16 {
    if lid > 0xbfff { 0 } else { lid }
}

/// The MTU in bytes that a code means; `None` for an unknown code.
pub(super) fn mtu(code: u8) -> Option<u32> {
    (1..=5).contains(&code).then(|| 128 << code)
}

/// NVIDIA's extension of PortInfo: whether a port supports, enables and uses FDR10.
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
        Self { supported: has(7), enabled: has(11), active: has(15) }
    }
}

/// A partition key. Its highest bit is set if the port is a full member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey(pub u16);

impl PartitionKey {
    /// The number of the partition.
    pub fn partition(self) -> u16 {
        self.0 & 0x7fff
    }

    /// Whether the port is a full member, which may communicate with all members. Limited members may only with full
    /// ones.
    pub fn is_full(self) -> bool {
        self.0 & 0x8000 != 0
    }
}

/// Decodes a block of partition keys, without its empty entries.
pub fn partition_keys(Data(of): Data<'_>) -> Vec<PartitionKey> {
    let keys = (0..32).map(|n| PartitionKey(of.u16(n * 2)));
    keys.filter(|key| key.partition() != 0).collect()
}
