//! Machines that together have every oddity, for the tests of its commands. Names in them contain characters that a
//! shell would interpret.

use linerate_facts::block::{BlockDevice, Path};
use linerate_facts::cpu::{Busy, Clock, Cpu, CpuLoad, Node, Process};
use linerate_facts::infiniband::{
    Claim, Guid, IbDevice, IbPort, IbRate, Ipoib, Layer, LinkState, PhysicalState, VirtualOf,
};
use linerate_facts::irq::Irq;
use linerate_facts::memory::Module;
use linerate_facts::nic::{Bond, Channels, Counter, Duplex, Nic, Offloads, Setting, TunnelKind};
use linerate_facts::pci::{self, Buses, Device, Link, Payload, PortKind};
use linerate_facts::{Conntrack, Inventory, Tunable, usb};
use linerate_units::{Bytes, Hertz, Rate, Transfers};

/// A name that somebody else chose; a shell would run a part of it if it were not quoted.
pub(crate) const NAME: &str = "e$(reboot);'x";
pub(crate) const CARD: &str = "0000:01:00.0";
const GIGA: u64 = 1_000_000_000;

pub(crate) fn port(index: u32, gbps: u64) -> Nic {
    let mut port =
        Nic { name: format!("{NAME}{index}"), index, up: true, mtu: Some(1500), ..Nic::default() };
    port.link.speed = Some(Rate(gbps * GIGA));
    port.link.duplex = Some(Duplex::Full);
    port
}

/// A machine whose ports have faults of their own.
fn ports() -> Inventory {
    let mut half = port(2, 1);
    half.link.speed = Some(Rate(100_000_000));
    half.link.duplex = Some(Duplex::Half);
    half.link.autoneg = Some(false);
    let mut slow = port(3, 1);
    slow.link.advertised = vec!["10000baseT/Full".to_owned()];
    slow.link.peer.clone_from(&slow.link.advertised);
    let mut plain = port(4, 10);
    plain.offloads = Some(Offloads {
        off: vec!["rx-gro".to_owned(), "tx-tcp-segmentation".to_owned()],
        ..Offloads::default()
    });
    plain.errors.rx_crc = Some(1);
    let mut cloud = port(5, 1);
    "ena".clone_into(&mut cloud.driver);
    cloud.counters = vec![Counter { name: "bw_in_allowance_exceeded".to_owned(), value: 1 }];
    let mut dark = port(6, 1);
    "no cable".clone_into(&mut dark.down);
    let mut bond = port(7, 1);
    (bond.mtu, bond.stack.below) = (Some(9000), vec![2]);
    let mut tunnel = port(8, 1);
    "vxlan".clone_into(&mut tunnel.kind);
    tunnel.stack.below = vec![2];
    let kind = TunnelKind::named("vxlan").expect("a kind");
    tunnel.stack.tunnel = Some(kind.tunnel(Some(4), kind.frames, Some(0)));
    let mut adapter = port(9, 1);
    adapter.usb = Some(Rate(480_000_000));
    adapter.usb_hubs = Vec::<usb::Hub>::new();
    let mut machine = Inventory::default();
    machine.network.nics = vec![half, slow, plain, cloud, dark, bond, tunnel, adapter];
    machine
}

/// A machine with a link that offers too little, one that was set by hand, a bond of two halves, and offloads turned
/// off below a tunnel.
fn links() -> Inventory {
    let modes = |all: &[&str]| all.iter().map(|&mode| mode.to_owned()).collect::<Vec<_>>();
    let mut shy = port(2, 1);
    shy.link.supported = modes(&["1000baseT/Full", "10000baseT/Full"]);
    shy.link.advertised = modes(&["1000baseT/Full"]);
    shy.link.peer.clone_from(&shy.link.supported);
    let mut forced = port(8, 1);
    forced.link.supported = modes(&["1000baseT/Full", "10000baseT/Full"]);
    forced.link.autoneg = Some(false);
    let member = |index: u32, aggregator: u16| {
        let mut member = port(index, 25);
        member.stack.aggregator = Some(aggregator);
        member
    };
    let mut bond = port(5, 25);
    (bond.kind, bond.is_virtual) = ("bond".to_owned(), true);
    bond.stack.below = vec![3, 4];
    bond.stack.bond = Some(Bond {
        mode: "802.3ad".to_owned(),
        aggregator: Some(1),
        partner: "00:00:5e:00:53:07".to_owned(),
        ..Bond::default()
    });
    let mut hashed = port(11, 25);
    (hashed.kind, hashed.is_virtual) = ("bond".to_owned(), true);
    hashed.stack.below = vec![9, 10];
    hashed.stack.bond =
        Some(Bond { mode: "balance-xor".to_owned(), hash: "layer2".to_owned(), ..Bond::default() });
    let sent = |index, bytes| {
        let mut member = port(index, 25);
        member.errors.tx_bytes = Some(bytes);
        member
    };
    let mut plain = port(6, 25);
    plain.offloads =
        Some(Offloads { off: vec!["tx-checksum-ipv4".to_owned()], ..Offloads::default() });
    let mut tunnel = port(7, 25);
    "vxlan".clone_into(&mut tunnel.kind);
    (tunnel.mtu, tunnel.stack.below) = (Some(1400), vec![6]);
    let mut machine = Inventory::default();
    machine.network.nics = vec![shy, member(3, 1), member(4, 2), bond, plain, tunnel, forced];
    let more = [sent(9, 1 << 40), sent(10, 1), hashed];
    machine.network.nics.extend(more);
    machine
}

/// A machine with ports that a single CPU serves, that lose packets or their link, or that are no physical port.
fn receivers() -> Inventory {
    let single = |index: u32, most: Option<u32>| {
        let mut single = port(index, 10);
        let combined = Setting { now: Some(1), most };
        single.channels = Some(Channels { combined, ..Channels::default() });
        single
    };
    let mut losing = port(4, 1);
    losing.errors.rx_packets = Some(1_000_000);
    losing.errors.rx_missed = Some(5_000);
    losing.errors.carrier_changes = Some(5_000);
    let mut air = port(5, 1);
    air.is_wifi = true;
    let mut copied = port(6, 1);
    (copied.driver, copied.is_virtual) = ("hv_netvsc".to_owned(), true);
    let mut machine = processors();
    machine.machine.platform.cloud = "Azure";
    machine.network.default_ports = Some(vec![air.name.clone()]);
    machine.network.nics = vec![single(2, Some(8)), single(3, Some(1)), losing, air, copied];
    machine
}

/// A machine whose kernel settings and tables limit connections, and whose IOMMU translates addresses.
fn kernel() -> Inventory {
    let mut machine = bus((8, 8), (8, 8), (8, 8));
    machine.pci[1].iommu = Some(pci::Iommu::Strict);
    let settings =
        [("tcp_sack", "0"), ("tcp_window_scaling", "0"), ("tcp_rmem", "4096 131072 262144")];
    let tunable = |(name, value): (&str, &str)| Tunable {
        name: format!("net.ipv4.{name}"),
        value: value.to_owned(),
    };
    machine.tunables = settings.map(tunable).to_vec();
    machine.conntrack =
        Some(Conntrack { entries: 1000, most: 1000, evicted: Some(7), dropped: Some(7) });
    machine
}

/// A machine with a RoCE port that loses packets.
fn lossy() -> Inventory {
    let mut device = rdma(LinkState::Active, PhysicalState::LinkUp, Layer::Ethernet, (4, 56));
    let counter = |name: &str, value| Counter { name: name.to_owned(), value };
    device.ports[0].counters =
        vec![counter("hw.out_of_sequence", 5_000), counter("hw.np_ecn_marked_roce_packets", 0)];
    fabric(&[device], "mlx5_core")
}

/// A machine whose ports send interrupts to few CPUs, or to distant ones. The first port's former CPUs are known.
fn interrupts() -> Inventory {
    let mut machine = processors();
    let ports = [port(2, 10), port(3, 10)].map(|port| Nic { node: Some(1), ..port });
    machine.network.nics = ports.to_vec();
    let irq = |number: u32| Irq {
        number,
        name: format!("{NAME}{}-TxRx-{}", 2 + number / 40, number % 8),
        effective: vec![0],
        allowed: if number < 40 { vec![0] } else { Vec::new() },
        ..Irq::default()
    };
    machine.interrupts.irqs = (24..32).chain(40..48).map(irq).collect();
    machine
}

fn processors() -> Inventory {
    let mut machine = Inventory::default();
    let cpu = |id: u32| Cpu {
        id,
        clock: Clock {
            governor: if id < 4 { "powersave" } else { "schedutil" }.to_owned(),
            driver: "acpi-cpufreq".to_owned(),
            limit: Some(Hertz(2 * GIGA)),
            max: Some(Hertz(3 * GIGA)),
            ..Clock::default()
        },
        ..Cpu::default()
    };
    let all = &mut machine.processors;
    all.cpus = (0..16).map(cpu).collect();
    let node = |id: u32, total: u64| Node {
        id,
        cpus: Some((id * 8..id * 8 + 8).collect()),
        distances: vec![10 + 11 * id, 21 - 11 * id],
        total: Some(Bytes(total)),
        ..Node::default()
    };
    all.nodes = vec![node(0, 1), node(1, 0)];
    (all.turbo, all.offline) = (Some(false), vec![16, 20, 21, 22, 23]);
    "hpet".clone_into(&mut machine.machine.clock_source);
    machine.machine.cpu_quota = Some(1.0);
    machine.busy = Some(Busy {
        cpus: vec![CpuLoad { cpu: 3, busy: 0.95, interrupts: 0.0, stolen: 0.5 }],
        processes: vec![Process { pid: 712, name: NAME.to_owned(), cpus: 0.9, last_cpu: 3 }],
    });
    let module = |bank: &str, is_there: bool| Module {
        bank: bank.to_owned(),
        size: is_there.then_some(Bytes(1)),
        rated: Some(Transfers(3_200_000_000)),
        now: Some(Transfers(2_400_000_000)),
        ..Module::default()
    };
    machine.memory.modules = Some(vec![module("CHANNEL A", true), module("CHANNEL B", false)]);
    machine
}

/// A card under a port of the processor, with their links: speed in GT/s and lanes, `now` and at best.
fn bus(now: (u64, u8), card: (u64, u8), slot: (u64, u8)) -> Inventory {
    let link = |(giga, width): (u64, u8)| {
        Some(Link { speed: Some(Transfers(giga * GIGA)), width: Some(width) })
    };
    let payload = Some(Payload { now: 128, max: 256, read_request: 512 });
    let device = |address: &str, class: u32, max| Device {
        address: address.parse().expect("an address"),
        class,
        now: link(now),
        max: link(max),
        payload,
        ..Device::default()
    };
    let mut above = device("0000:00:01.0", 0x06_0400, slot);
    above.buses = Some(Buses { secondary: 1, subordinate: 1 });
    above.kind = Some(PortKind::Root);
    let mut own = device(CARD, 0x02_0000, card);
    own.kind = Some(PortKind::Endpoint);
    let mut machine = processors();
    machine.pci = vec![above, own];
    pci::find_parents(&mut machine.pci);
    let mut port = port(2, 200);
    CARD.clone_into(&mut port.pci);
    machine.network.nics = vec![port];
    machine
}

fn disks() -> Inventory {
    let disk = |name: &str, state: &str| BlockDevice {
        name: name.to_owned(),
        policy: "numa".to_owned(),
        paths: ["live", "live", state]
            .map(|state| Path { state: state.to_owned(), ..Path::default() })
            .to_vec(),
        ..BlockDevice::default()
    };
    let mut machine = Inventory::default();
    machine.storage.devices = vec![disk("nvme0n1", "live"), disk("nvme1n1", "connecting")];
    machine
}

/// An RDMA device with one port: its state, physical state, layer, lanes and rate in Gb/s.
fn rdma(state: LinkState, wire: PhysicalState, layer: Layer, rate: (u32, u64)) -> IbDevice {
    IbDevice {
        name: NAME.to_owned(),
        board: "B".to_owned(),
        pci: CARD.to_owned(),
        ports: vec![IbPort {
            number: 1,
            state: Some(state),
            physical: Some(wire),
            layer: Some(layer),
            rate: Some(IbRate {
                rate: Rate(rate.1 * GIGA),
                width: rate.0,
                speed: "FDR".to_owned(),
            }),
            counters: vec![Counter { name: "symbol_error".to_owned(), value: 1 }],
            ..IbPort::default()
        }],
        ..IbDevice::default()
    }
}

/// A machine with these RDMA devices, all on one PCI function with this driver.
fn fabric(devices: &[IbDevice], driver: &str) -> Inventory {
    let mut machine = Inventory::default();
    machine.infiniband.devices = devices.to_vec();
    machine.pci = vec![Device {
        address: CARD.parse().expect("an address"),
        driver: driver.to_owned(),
        ..Device::default()
    }];
    machine
}

fn fabrics() -> Vec<Inventory> {
    use Layer::{Ethernet, InfiniBand};
    use LinkState::{Active, Armed, Down, Initializing};
    use PhysicalState::{Disabled, LinkUp, Polling, Training};

    let mut all = Vec::new();
    let ports = [
        rdma(Active, LinkUp, InfiniBand, (1, 14)),
        rdma(Active, LinkUp, InfiniBand, (4, 56)),
        rdma(Active, LinkUp, Ethernet, (4, 25)),
        rdma(Active, LinkUp, Ethernet, (4, 56)),
        rdma(Down, LinkUp, InfiniBand, (4, 56)),
        rdma(Down, LinkUp, Ethernet, (4, 56)),
        rdma(Down, Disabled, InfiniBand, (4, 56)),
        rdma(Down, Polling, InfiniBand, (4, 56)),
        rdma(Down, Training, InfiniBand, (4, 56)),
        rdma(Armed, LinkUp, InfiniBand, (4, 56)),
    ];
    for driver in ["mlx5_core", "hfi1"] {
        all.push(fabric(&ports, driver));
    }
    let fresh = rdma(Initializing, LinkUp, InfiniBand, (4, 56));
    let mut served = rdma(Active, LinkUp, InfiniBand, (4, 56));
    "0000:02:00.0".clone_into(&mut served.pci);
    served.name = format!("{NAME}2");
    for driver in ["mlx5_core", "mlx4_core", "hfi1"] {
        all.push(fabric(std::slice::from_ref(&fresh), driver));
        all.push(fabric(&[fresh.clone(), served.clone()], driver));
        for (pci, number) in [(CARD, Some(3)), (CARD, None), ("", None)] {
            for state in [Initializing, Down] {
                let mut lent = rdma(state, LinkUp, InfiniBand, (4, 56));
                lent.node_guid = (state == Initializing).then_some(Guid::NONE);
                lent.virtual_of = Some(VirtualOf { pci: pci.to_owned(), number });
                let machine = fabric(&[lent], driver);
                all.push(machine.clone());
                let mut port = port(2, 10);
                CARD.clone_into(&mut port.pci);
                all.push(Inventory {
                    network: linerate_facts::nic::Network { nics: vec![port], ..machine.network },
                    ..machine
                });
            }
        }
    }
    all
}

/// Machines with InfiniBand cards without a driver, one for each list of kernel modules that claim the card.
fn idle_cards() -> Vec<Inventory> {
    let claims: [Option<&[&str]>; 4] =
        [None, Some(&[]), Some(&["mlx5_core"]), Some(&["mlx5_core", "mlx4_core"])];
    let machine = |modules: Option<&[&str]>| {
        let mut machine = fabric(&[], "");
        machine.pci[0].class = 0x02_0700;
        machine.infiniband.claims = vec![Claim {
            pci: CARD.to_owned(),
            modules: modules.map(|all| all.iter().map(|&name| name.to_owned()).collect()),
        }];
        machine
    };
    claims.into_iter().map(machine).collect()
}

/// A machine with an IPoIB interface that uses small packets.
fn small_packets(mode: &str) -> Inventory {
    let nic = Nic { mtu: Some(2044), ..port(2, 40) };
    let mut machine = Inventory::default();
    machine.infiniband.interfaces = vec![Ipoib {
        name: nic.name.clone(),
        mode: mode.to_owned(),
        connectable: Some(true),
        ..Ipoib::default()
    }];
    machine.network.nics = vec![nic];
    machine
}

pub(crate) fn machines() -> Vec<Inventory> {
    let mut all = vec![
        ports(),
        links(),
        receivers(),
        kernel(),
        lossy(),
        interrupts(),
        processors(),
        bus((8, 4), (8, 8), (8, 4)),
        bus((8, 2), (8, 4), (8, 4)),
        bus((8, 4), (8, 4), (8, 4)),
        disks(),
    ];
    all.extend(fabrics());
    all.extend(idle_cards());
    all.extend(["datagram", "connected"].map(small_packets));
    all
}
