//! InfiniBand and RoCE: devices and their ports, and what their states mean.

use serde::{Deserialize, Serialize};

use super::Gap;
use super::nic::Counter;
use crate::units::Rate;

/// All RDMA devices of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Infiniband {
    /// In the order of their names.
    pub devices: Vec<IbDevice>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// An RDMA device. Text that is not known is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IbDevice {
    /// Name: `mlx5_0`.
    pub name: String,
    /// Model: `MT4123`.
    pub model: String,
    /// Version of the firmware.
    pub firmware: String,
    /// What the maker calls the board: two of the same can be compared.
    pub board: String,
    /// Address on the PCI bus.
    pub pci: String,
    /// NUMA node.
    pub node: Option<u32>,
    /// Its ports.
    pub ports: Vec<IbPort>,
}

/// A port of an RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IbPort {
    /// Number, from 1.
    pub number: u32,
    /// State of the link.
    pub state: Option<LinkState>,
    /// State of the wire.
    pub physical: Option<PhysicalState>,
    /// What the link runs at.
    pub rate: Option<IbRate>,
    /// What carries it.
    pub layer: Option<Layer>,
    /// Local identifier; 0 until a subnet manager gives one.
    pub lid: Option<u64>,
    /// That of the subnet manager; 0 for none.
    pub sm_lid: Option<u64>,
    /// Addresses.
    pub gids: Vec<Gid>,
    /// Counters of the port, then those of the device (`hw.`), since they were last cleared.
    pub counters: Vec<Counter>,
}

/// What a link runs at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IbRate {
    /// As the kernel prints it: up to QDR that is signalling, of which a fifth carries no data.
    pub rate: Rate,
    /// Lanes.
    pub width: u32,
    /// Speed of a lane: `SDR`, `QDR`, `FDR` ...
    pub speed: String,
}

/// What carries a port's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// InfiniBand itself.
    InfiniBand,
    /// Ethernet (RoCE, iWARP).
    Ethernet,
}

/// State of a link, by `enum ib_port_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkState {
    /// No link.
    Down,
    /// A link that no subnet manager has set up yet.
    Initializing,
    /// Set up but not started.
    Armed,
    /// In use.
    Active,
    /// In use, with a short fault.
    ActiveDefer,
}

/// State of the wire, by `enum ib_port_phys_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhysicalState {
    /// Asleep.
    Sleep,
    /// Looks for another end.
    Polling,
    /// Switched off.
    Disabled,
    /// Agrees on width and speed.
    Training,
    /// The wire works.
    LinkUp,
    /// Recovers from errors.
    ErrorRecovery,
    /// Under test.
    PhyTest,
}

/// An address of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gid {
    /// Index in the table.
    pub index: u32,
    /// The address, as sysfs writes it.
    pub gid: String,
    /// `IB/RoCE v1` or `RoCE v2`; empty when unknown.
    pub kind: String,
    /// Network port that owns it; empty when none does.
    pub netdev: String,
}

impl IbPort {
    /// The rate of a port that is in use.
    pub fn in_use(&self) -> Option<&IbRate> {
        let active = matches!(self.state, Some(LinkState::Active | LinkState::ActiveDefer));
        self.rate.as_ref().filter(|_| active)
    }
}

impl Layer {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::InfiniBand => "InfiniBand",
            Self::Ethernet => "Ethernet",
        }
    }
}

impl LinkState {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Initializing => "initializing",
            Self::Armed => "armed",
            Self::Active => "active",
            Self::ActiveDefer => "active, deferred",
        }
    }

    /// The state with this number; `None` for one that is not known.
    pub fn of(number: u32) -> Option<Self> {
        let states = [
            Self::Down,
            Self::Initializing,
            Self::Armed,
            Self::Active,
            Self::ActiveDefer,
        ];
        states.get((number as usize).checked_sub(1)?).copied()
    }
}

impl PhysicalState {
    /// In a word or two.
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

    /// The state with this number; `None` for one that is not known.
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
    fn numbers_of_states_are_the_kernels() {
        assert_eq!(LinkState::of(2), Some(LinkState::Initializing));
        assert_eq!(LinkState::of(4), Some(LinkState::Active));
        assert_eq!((LinkState::of(0), LinkState::of(6)), (None, None));
        assert_eq!(PhysicalState::of(2), Some(PhysicalState::Polling));
        assert_eq!(PhysicalState::of(5), Some(PhysicalState::LinkUp));
        assert_eq!((PhysicalState::of(0), PhysicalState::of(8)), (None, None));
    }
}
