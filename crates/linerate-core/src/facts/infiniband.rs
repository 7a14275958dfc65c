//! InfiniBand and RoCE: devices and their ports, and what their states mean.

use serde::{Deserialize, Serialize};

use super::Gap;
use super::nic::{Concern, Counter, Odd, odd};
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

impl LinkState {
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

/// Counters of a port that should stand still.
const FAULTS: [&str; 5] = [
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "local_link_integrity_errors",
];

impl Infiniband {
    /// What is odd about all ports.
    pub fn concerns(&self) -> Vec<Concern> {
        let mut concerns = Vec::new();
        for device in &self.devices {
            for port in &device.ports {
                let place = format!("{} port {}", device.name, port.number);
                let odd = [
                    port.no_link(),
                    port.not_set_up(),
                    port.narrow(),
                    self.below_its_like(device, port),
                    port.faults(),
                ];
                concerns.extend(Concern::all(&place, odd));
            }
        }
        concerns
    }

    /// A port slower than another one in use on a board of the same kind.
    fn below_its_like(&self, device: &IbDevice, port: &IbPort) -> Option<Odd> {
        let own = port.in_use()?;
        let alike = self
            .devices
            .iter()
            .filter(|d| !d.board.is_empty() && d.board == device.board);
        let ports = alike.flat_map(|d| d.ports.iter().map(move |p| (d, p)));
        let same = ports.filter(|(_, p)| p.layer == port.layer);
        let rates = same.filter_map(|(d, p)| Some((d, p.number, p.in_use()?.rate)));
        let (best, number, rate) = rates.max_by_key(|(_, _, rate)| *rate)?;
        (rate > own.rate).then(|| {
            odd(
                &format!("runs at {}, {} port {number} at {rate}", own.rate, best.name),
                "both sit on boards of one kind: cable, switch port or a setting holds this one back",
                "compare both ends of the cable: sudo iblinkinfo",
            )
        })
    }
}

impl IbPort {
    /// The rate of a port that is in use.
    fn in_use(&self) -> Option<&IbRate> {
        let active = matches!(self.state, Some(LinkState::Active | LinkState::ActiveDefer));
        self.rate.as_ref().filter(|_| active)
    }

    fn no_link(&self) -> Option<Odd> {
        let enable = match self.layer {
            Some(Layer::Ethernet) => "ip link set DEVICE up".to_owned(),
            _ => format!("sudo ibportstate -D 0 {} enable", self.number),
        };
        match self.physical? {
            PhysicalState::Polling => Some(odd(
                "Polling: the port looks for another end and finds none",
                "no cable, or the other end is dead or switched off",
                "seat the cable at both ends; see that the other host or switch is on",
            )),
            PhysicalState::Disabled => Some(odd(
                "Disabled: the port is switched off",
                "a person or a program switched it off here or at the switch",
                &enable,
            )),
            PhysicalState::Training | PhysicalState::ErrorRecovery => Some(odd(
                "the two ends cannot agree on width and speed",
                "a cable that is bad, too long or not made for this speed",
                "try another cable, then a lower speed at both ends",
            )),
            _ => None,
        }
    }

    /// A working wire that nobody has set up.
    fn not_set_up(&self) -> Option<Odd> {
        if self.physical != Some(PhysicalState::LinkUp) || self.layer != Some(Layer::InfiniBand) {
            return None;
        }
        match self.state? {
            LinkState::Initializing => Some(odd(
                "Initializing: the wire works, but the port has no address yet",
                "no subnet manager runs on this fabric, or it does not reach this port",
                "start one on one host (sudo systemctl start opensm) or in the switch; then: sminfo",
            )),
            LinkState::Armed => Some(odd(
                "Armed: the port was set up but not started",
                "the subnet manager stopped half-way, or the first packet has not come yet",
                "sudo systemctl restart opensm, where it runs",
            )),
            _ => None,
        }
    }

    /// One lane, or the slowest speed, on an InfiniBand link.
    fn narrow(&self) -> Option<Odd> {
        let rate = self.in_use()?;
        if self.layer != Some(Layer::InfiniBand) {
            return None;
        }
        if rate.width == 1 {
            return Some(odd(
                &format!(
                    "one lane in use ({} {}X {})",
                    rate.rate, rate.width, rate.speed
                ),
                "ports have four: with a lane that fails, the link falls back to one",
                "seat or change the cable; compare both ends: sudo iblinkinfo",
            ));
        }
        (rate.speed == "SDR").then(|| {
            odd(
                &format!(
                    "the slowest speed of all ({} {}X SDR)",
                    rate.rate, rate.width
                ),
                "a bad cable, an end that is limited, or a kernel that cannot name newer speeds",
                "compare both ends: sudo iblinkinfo",
            )
        })
    }

    fn faults(&self) -> Option<Odd> {
        let faults = self.counters.iter();
        let faults = faults.filter(|c| c.value > 0 && FAULTS.contains(&c.name.as_str()));
        let faults: Vec<String> = faults.map(|c| format!("{} {}", c.name, c.value)).collect();
        (!faults.is_empty()).then(|| {
            odd(
                &format!(
                    "errors since the counters were last cleared: {}",
                    faults.join(", ")
                ),
                "if they still grow, the cable or a transceiver is bad",
                "sudo perfquery -R; wait; perfquery",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(
        state: LinkState,
        physical: PhysicalState,
        width: u32,
        speed: &str,
        gbps: u64,
    ) -> IbPort {
        IbPort {
            number: 1,
            state: Some(state),
            physical: Some(physical),
            layer: Some(Layer::InfiniBand),
            rate: Some(IbRate {
                rate: Rate(gbps * 1_000_000_000),
                width,
                speed: speed.to_owned(),
            }),
            ..IbPort::default()
        }
    }

    fn device(name: &str, board: &str, port: IbPort) -> IbDevice {
        IbDevice {
            name: name.to_owned(),
            board: board.to_owned(),
            ports: vec![port],
            ..IbDevice::default()
        }
    }

    fn concerns(devices: &[IbDevice]) -> Vec<String> {
        let all = Infiniband {
            devices: devices.to_vec(),
            gaps: vec![],
        };
        let concerns = all.concerns().into_iter();
        concerns
            .map(|c| format!("{}: {}", c.place, c.what))
            .collect()
    }

    fn healthy() -> IbPort {
        port(LinkState::Active, PhysicalState::LinkUp, 4, "FDR", 56)
    }

    fn one(port: IbPort) -> Vec<String> {
        concerns(&[device("mlx5_0", "B", port)])
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
    fn a_healthy_port_is_no_concern() {
        assert_eq!(one(healthy()), [""; 0]);
        assert_eq!(one(IbPort::default()), [""; 0]);
    }

    #[test]
    fn polling_is_no_other_end_and_initializing_no_subnet_manager() {
        let polling = one(port(LinkState::Down, PhysicalState::Polling, 4, "FDR", 56));
        assert!(
            polling.len() == 1 && polling[0].contains("Polling"),
            "{polling:?}"
        );
        let lost = port(LinkState::Initializing, PhysicalState::LinkUp, 4, "FDR", 56);
        let got = one(lost.clone());
        assert!(got.len() == 1 && got[0].contains("Initializing"), "{got:?}");
        // RoCE has no subnet manager.
        let roce = IbPort {
            layer: Some(Layer::Ethernet),
            ..lost
        };
        assert_eq!(one(roce), [""; 0]);
    }

    #[test]
    fn one_lane_or_the_slowest_speed_is_odd_on_infiniband_only() {
        let active =
            |width, speed, gbps| port(LinkState::Active, PhysicalState::LinkUp, width, speed, gbps);
        assert!(one(active(1, "FDR", 14))[0].contains("one lane"));
        assert!(one(active(4, "SDR", 10))[0].contains("slowest"));
        assert_eq!(one(active(2, "HDR", 100)), [""; 0]);
        let roce = IbPort {
            layer: Some(Layer::Ethernet),
            ..active(1, "EDR", 25)
        };
        assert_eq!(one(roce), [""; 0]);
    }

    #[test]
    fn a_port_below_another_on_a_board_of_the_same_kind_is_odd() {
        let slow = port(LinkState::Active, PhysicalState::LinkUp, 4, "QDR", 40);
        let pair = |board: &str| {
            concerns(&[
                device("mlx5_0", board, healthy()),
                device("mlx5_1", "B", slow.clone()),
            ])
        };
        let got = pair("B");
        assert!(
            got.len() == 1 && got[0].starts_with("mlx5_1 port 1: runs at 40 Gb/s"),
            "{got:?}"
        );
        assert_eq!(pair("C"), [""; 0]);
    }

    #[test]
    fn errors_are_told_with_their_numbers() {
        let mut bad = healthy();
        let counter = |name: &str, value| Counter {
            name: name.to_owned(),
            value,
        };
        bad.counters = vec![counter("symbol_error", 0), counter("port_xmit_wait", 9)];
        assert_eq!(one(bad.clone()), [""; 0]);
        bad.counters.push(counter("link_downed", 1));
        assert!(one(bad)[0].ends_with("link_downed 1"));
    }
}
