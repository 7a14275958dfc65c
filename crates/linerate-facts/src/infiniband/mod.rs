//! InfiniBand and RoCE: RDMA devices, their ports, and what the states of ports mean.

pub mod counted;

use std::fmt;
use std::net::Ipv6Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Gap;
use super::nic::Counter;
use linerate_units::Rate;

/// All RDMA devices of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Infiniband {
    /// The RDMA devices, in alphabetical order.
    pub devices: Vec<IbDevice>,
    /// Devices to which programs can send management packets (module `ib_umad`); `None` if unknown.
    pub managed: Option<Vec<String>>,
    /// Devices that programs can open to transfer data (module `ib_uverbs`); `None` if unknown.
    pub opened: Option<Vec<String>>,
    /// Interfaces of IP over InfiniBand (IPoIB), in alphabetical order.
    pub interfaces: Vec<Ipoib>,
    /// For each card without an RDMA device, the kernel modules that have a driver for it.
    pub claims: Vec<Claim>,
    /// The readings of RDMA devices that failed.
    pub gaps: Vec<Gap>,
}

/// The kernel modules that have a driver for a PCI function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claim {
    /// PCI address of the function.
    pub pci: String,
    /// Names of the modules; `None` if unknown.
    pub modules: Option<Vec<String>>,
}

/// An interface of IP over InfiniBand (IPoIB).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ipoib {
    /// Name of the interface.
    pub name: String,
    /// PCI address of the interface's card; empty if unknown.
    pub pci: String,
    /// Number of the card's port, from 1; `None` if unknown.
    pub port: Option<u32>,
    /// Mode of the interface: `datagram` or `connected`; empty if unknown.
    pub mode: String,
    /// Whether the interface can be set to connected mode; `None` if unknown.
    pub connectable: Option<bool>,
    /// IP addresses of the interface that are valid beyond its link; `None` if unknown.
    pub addresses: Option<Vec<String>>,
    /// GUID of the interface's port, from the end of its hardware address; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guid: Option<Guid>,
}

/// An RDMA device. Text that is unknown is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IbDevice {
    /// Name of the device: `mlx5_0`.
    pub name: String,
    /// Model of the device: `MT4123`.
    pub model: String,
    /// Version of the device's firmware.
    pub firmware: String,
    /// Id that the maker gives the board. Devices with the same id can be compared.
    pub board: String,
    /// The protocol that the device speaks; `None` if unknown.
    pub kind: Option<NodeType>,
    /// PCI address of the device.
    pub pci: String,
    /// NUMA node of the device.
    pub node: Option<u32>,
    /// GUID of the device. Each port has another GUID.
    pub node_guid: Option<Guid>,
    /// The card that this device is a virtual function of; `None` for a card itself, and in a guest, which cannot see
    /// the card.
    pub virtual_of: Option<VirtualOf>,
    /// Whether software makes the device on top of a network port (rxe, siw), so that its rate is nominal.
    pub software: bool,
    /// The ports of the device.
    pub ports: Vec<IbPort>,
}

/// The kind of an RDMA device, by the protocol of its queue pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeType {
    /// The device speaks InfiniBand or RoCE.
    ChannelAdapter,
    /// The device speaks iWARP.
    Iwarp,
    /// The device speaks a protocol of its maker.
    Other,
}

/// The physical function that a virtual function belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VirtualOf {
    /// PCI address of the physical function.
    pub pci: String,
    /// Number that the card gives the virtual function, from 0. Null if unknown.
    pub number: Option<u32>,
}

/// A globally unique identifier (GUID) of a port or a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Guid(pub u64);

impl IbDevice {
    /// The name of the device; if no output shows a name, the LID of its port or its GUID.
    pub fn called(&self) -> String {
        let lid = self.ports.first().and_then(|port| port.lid);
        match (self.name.is_empty(), lid, self.node_guid) {
            (false, ..) => self.name.clone(),
            (true, Some(lid), _) => format!("LID {lid}"),
            (true, None, Some(guid)) => format!("GUID {guid}"),
            (true, None, None) => "the device".to_owned(),
        }
    }
}

impl Guid {
    /// The GUID zero: the device or port has no GUID.
    pub const NONE: Self = Self(0);

    /// The GUID in the lower half of a GID, which is written like an IPv6 address.
    pub fn of_gid(gid: &str) -> Option<Self> {
        let gid: Ipv6Addr = gid.parse().ok()?;
        Some(Self(gid.to_bits() as u64))
    }
}

impl Guid {
    /// The GUID as `ip link` writes it: `00:02:c9:03:00:10:0a:1b`.
    pub fn bytes(self) -> String {
        self.0.to_be_bytes().map(|byte| format!("{byte:02x}")).join(":")
    }
}

/// Returns the command that starts a subnet manager for the port with this GUID, and the command that ends it. A
/// manager serves only the network of one port.
pub fn commands_of_manager(guid: &str) -> [String; 2] {
    // The brackets keep the pattern from matching the command itself.
    let end = format!("sudo pkill -f \"[o]pensm -B -g {guid}\"");
    [format!("sudo opensm -B -g {guid}"), end]
}

impl fmt::Display for Guid {
    /// Writes the GUID as `ibstat` prints it and `opensm -g` accepts it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.0)
    }
}

/// A port of an RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IbPort {
    /// Number of the port, from 1.
    pub number: u32,
    /// Logical state of the link.
    pub state: Option<LinkState>,
    /// Physical state of the wire.
    pub physical: Option<PhysicalState>,
    /// Rate, width and speed at which the link runs.
    pub rate: Option<IbRate>,
    /// The link layer: InfiniBand or Ethernet.
    pub layer: Option<Layer>,
    /// Local identifier (LID) of the port; 0 until a subnet manager sets one.
    pub lid: Option<u64>,
    /// LID of the network's subnet manager; 0 if there is none.
    pub sm_lid: Option<u64>,
    /// Addresses of the port (GIDs).
    pub gids: Vec<Gid>,
    /// Counters since they were last cleared: first those of the port, then those of the device (prefix `hw.`).
    pub counters: Vec<Counter>,
    /// The counters at an earlier time, where an output has two readings; empty if there is one reading.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Counter>,
    /// Largest payload of a packet in bytes, as it is configured; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Largest payload of a packet in bytes that the port supports; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu_max: Option<u32>,
    /// Whether a subnet manager of this host is bound to the port; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manages: Option<bool>,
}

/// Whether a port's capability mask shows that a subnet manager is bound to the port.
//= InfiniBand Architecture Specification 1.4, volume 1, section 14.2.5.6: PortInfo.CapabilityMask, bit 1 is IsSM
pub const fn is_manager(mask: u64) -> bool {
    mask & 0b10 != 0
}

/// The rate at which a link runs, with its width and speed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IbRate {
    /// The rate as the kernel prints it. Up to QDR it is the signalling rate, of which a fifth carries no data.
    pub rate: Rate,
    /// Number of lanes; 0 if unknown, as where a program shows only the rate.
    pub width: u32,
    /// Speed of a lane: `SDR`, `QDR`, `FDR` ...; empty if unknown.
    pub speed: String,
}

impl fmt::Display for IbRate {
    /// Writes `56 Gb/s (4X FDR)`, or the rate alone if width and speed are unknown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.width, self.speed.as_str()) {
            (0, _) | (_, "") => write!(f, "{}", self.rate),
            (width, speed) => write!(f, "{} ({width}X {speed})", self.rate),
        }
    }
}

/// The link layer that carries a port's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RdmaLayer")]
pub enum Layer {
    /// Packets have InfiniBand headers.
    InfiniBand,
    /// Packets are Ethernet frames: RoCE or iWARP.
    Ethernet,
}

/// Logical state of a link, as in `enum ib_port_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkState {
    /// There is no link.
    Down,
    /// There is a link, but no subnet manager has set it up yet.
    Initializing,
    /// The link is set up but not started.
    Armed,
    /// The link is in use.
    Active,
    /// The link is in use, after a short fault.
    #[serde(rename = "active, deferred")]
    ActiveDefer,
}

/// Physical state of the wire, as in `enum ib_port_phys_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PhysicalState {
    /// The port sleeps to save energy.
    Sleep,
    /// The port looks for the other end.
    Polling,
    /// The port is switched off.
    Disabled,
    /// Both ends negotiate width and speed.
    Training,
    /// The wire works.
    #[serde(rename = "link up")]
    LinkUp,
    /// The port recovers from errors on the wire.
    #[serde(rename = "error recovery")]
    ErrorRecovery,
    /// The wire is under test.
    #[serde(rename = "test")]
    PhyTest,
}

/// An address of a port (GID).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gid {
    /// Index of the address in the port's table.
    pub index: u32,
    /// The address, as sysfs writes it.
    pub gid: String,
    /// Kind of the address: `IB/RoCE v1` or `RoCE v2`; empty when unknown.
    pub kind: String,
    /// Network port that owns the address; empty when there is none.
    pub netdev: String,
}

/// LIDs that no port has: 0 is a port that no manager has served; the other two are the permissive LIDs of InfiniBand
/// and Omni-Path.
const NO_LIDS: [u64; 3] = [0, 0xffff, 0xffff_ffff];

impl IbPort {
    /// Whether the link of the port is in use.
    pub fn is_active(&self) -> bool {
        self.state.is_some_and(LinkState::is_active)
    }

    /// The rate of the port; `None` if its link is not in use.
    pub fn in_use(&self) -> Option<&IbRate> {
        self.rate.as_ref().filter(|_| self.is_active())
    }

    /// Whether there is a link to another end; `None` when unknown.
    pub fn has_link(&self) -> Option<bool> {
        match (self.physical, self.state) {
            (Some(physical), _) => Some(physical == PhysicalState::LinkUp),
            (None, state) => state.map(|state| state != LinkState::Down),
        }
    }

    /// The negotiated rate; `None` without a link. sysfs shows a rate for a port without a link too.
    pub fn agreed(&self) -> Option<&IbRate> {
        self.rate.as_ref().filter(|_| self.has_link() == Some(true))
    }

    /// GUID of an InfiniBand port: the lower half of its first GID. The upper half identifies the subnet.
    pub fn guid(&self) -> Option<Guid> {
        let own = self.gids.iter().find(|gid| gid.index == 0);
        let own = own.filter(|_| self.layer == Some(Layer::InfiniBand))?;
        Guid::of_gid(&own.gid)
    }

    /// LID of the subnet manager that has set up this port, or is about to; `None` if there is none.
    pub fn manager(&self) -> Option<u64> {
        self.sm_lid.filter(|lid| !NO_LIDS.contains(lid))
    }
}

impl Layer {
    /// Name of the link layer.
    pub fn name(self) -> &'static str {
        match self {
            Self::InfiniBand => "InfiniBand",
            Self::Ethernet => "Ethernet",
        }
    }
}

impl LinkState {
    /// Whether the link is in use in this state.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Active | Self::ActiveDefer)
    }

    /// Name of the state in a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Initializing => "initializing",
            Self::Armed => "armed",
            Self::Active => "active",
            Self::ActiveDefer => "active, deferred",
        }
    }

    /// The state with this number in the kernel; `None` for an unknown number.
    pub fn of(number: u32) -> Option<Self> {
        let states = [Self::Down, Self::Initializing, Self::Armed, Self::Active, Self::ActiveDefer];
        states.get((number as usize).checked_sub(1)?).copied()
    }
}

impl PhysicalState {
    /// Name of the state in a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Polling => "polling",
            Self::Disabled => "disabled",
            Self::Training => "training",
            Self::LinkUp => "link up",
            Self::ErrorRecovery => "error recovery",
            Self::PhyTest => "test",
        }
    }

    /// The state with this number in the kernel; `None` for an unknown number.
    pub fn of(number: u32) -> Option<Self> {
        let states = [
            Self::Sleep,
            Self::Polling,
            Self::Disabled,
            Self::Training,
            Self::LinkUp,
            Self::ErrorRecovery,
            Self::PhyTest,
        ];
        states.get((number as usize).checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_width_and_speed_if_both_are_known() {
        let rate = |width, speed: &str| {
            let rate = Rate(56_000_000_000);
            let speed = speed.to_owned();
            IbRate { rate, width, speed }.to_string()
        };
        assert_eq!(rate(4, "FDR"), "56 Gb/s (4X FDR)");
        assert_eq!(rate(0, ""), "56 Gb/s");
        assert_eq!(rate(4, ""), "56 Gb/s");
    }

    #[test]
    fn the_lower_half_of_a_gid_is_a_guid() {
        let of = |gid| Guid::of_gid(gid).map(|guid| guid.to_string());
        let own = of("fe80:0000:0000:0000:0002:c903:004c:5e32");
        assert_eq!(own.as_deref(), Some("0x0002c903004c5e32"));
        assert_eq!((of("0002:c903:004c:5e32"), of("masked")), (None, None));
    }

    #[test]
    fn numbers_of_states_are_the_kernels() {
        assert_eq!(LinkState::of(2), Some(LinkState::Initializing));
        assert_eq!(LinkState::of(4), Some(LinkState::Active));
        assert_eq!((LinkState::of(0), LinkState::of(6)), (None, None));
        assert_eq!(PhysicalState::of(2), Some(PhysicalState::Polling));
        assert_eq!(PhysicalState::of(5), Some(PhysicalState::LinkUp));
        assert_eq!((PhysicalState::of(0), PhysicalState::of(8)), (None, None));
    }

    #[test]
    fn states_have_one_name_in_text_and_in_json() {
        let states = (1..=5).filter_map(LinkState::of);
        for state in states {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        let states = (1..=7).filter_map(PhysicalState::of);
        for state in states {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
        for layer in [Layer::InfiniBand, Layer::Ethernet] {
            assert_eq!(serde_json::to_value(layer).unwrap(), layer.name());
        }
    }

    #[test]
    fn only_a_link_has_a_rate() {
        let rate = IbRate { rate: Rate(40_000_000_000), width: 4, speed: "QDR".to_owned() };
        let port = |physical, state| IbPort {
            physical,
            state,
            rate: Some(rate.clone()),
            ..IbPort::default()
        };
        for (physical, state, link) in [
            (Some(PhysicalState::LinkUp), Some(LinkState::Active), Some(true)),
            (Some(PhysicalState::LinkUp), Some(LinkState::Down), Some(true)),
            (Some(PhysicalState::LinkUp), None, Some(true)),
            (Some(PhysicalState::Polling), Some(LinkState::Down), Some(false)),
            (Some(PhysicalState::Polling), None, Some(false)),
            (Some(PhysicalState::ErrorRecovery), Some(LinkState::Active), Some(false)),
            (None, Some(LinkState::Down), Some(false)),
            (None, Some(LinkState::Initializing), Some(true)),
            (None, None, None),
        ] {
            let port = port(physical, state);
            assert_eq!(port.has_link(), link, "{physical:?} {state:?}");
            assert_eq!(port.agreed().is_some(), link == Some(true), "{physical:?} {state:?}");
        }
    }

    #[test]
    fn the_guid_of_a_port_is_half_of_its_first_gid() {
        let gid = |index, gid: &str| Gid {
            index,
            gid: gid.to_owned(),
            kind: String::new(),
            netdev: String::new(),
        };
        let port = |layer, gids: &[Gid]| IbPort {
            layer: Some(layer),
            gids: gids.to_vec(),
            ..IbPort::default()
        };
        let first = gid(0, "fec0:0000:0000:0007:0002:c903:004c:5e32");
        let other = gid(1, "fe80:0000:0000:0000:0002:c903:004c:5e99");
        let own = port(Layer::InfiniBand, &[other.clone(), first.clone()]).guid();
        assert_eq!(own.unwrap().to_string(), "0x0002c903004c5e32");
        assert_eq!(port(Layer::InfiniBand, &[other]).guid(), None);
        assert_eq!(port(Layer::Ethernet, &[first]).guid(), None);
        let none = gid(0, "fe80:0000:0000:0000:0000:0000:0000:0000");
        assert_eq!(port(Layer::InfiniBand, &[none]).guid(), Some(Guid::NONE));
    }

    #[test]
    fn a_manager_has_a_lid_that_somebody_can_have() {
        for (lid, manager) in
            [(0, None), (1, Some(1)), (0xbfff, Some(0xbfff)), (0xffff, None), (0xffff_ffff, None)]
        {
            let port = IbPort { sm_lid: Some(lid), ..IbPort::default() };
            assert_eq!(port.manager(), manager, "{lid}");
        }
        assert_eq!(IbPort::default().manager(), None);
    }
}
