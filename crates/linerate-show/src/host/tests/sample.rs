//! An invented machine for the tests of text and JSON: it has a card in a slot that is too narrow for it.

use linerate_facts::block::{self, BlockDevice, FileSystem, QueueLimits, Storage};
use linerate_facts::infiniband::{
    IbDevice, IbPort, IbRate, Infiniband, Layer, LinkState, PhysicalState,
};
use linerate_facts::irq::{Interrupts, Irq};
use linerate_facts::nic::{
    Bond, Channels, Coalesce, Counter, Duplex, Fec, LinkModes, Network, Nic, Offloads, Pause,
    PortAddresses, Queue, QueueDirection, Rings, Rss, Setting, Stack,
};
use linerate_facts::pci::{Buses, Device, Link, Payload, PortKind, find_parents};
use linerate_facts::shaping::{Shaper, Shaping};
use linerate_facts::{Gap, Inventory, Tunable, cpu, memory::Module};
use linerate_units::{Bytes, Hertz, Nanos, Rate, Transfers};

/// A port in half duplex: it sends and receives in turn.
pub(super) fn half_duplex(index: u32) -> Nic {
    Nic {
        name: format!("eth{index}"),
        index,
        up: true,
        link: LinkModes {
            speed: Some(Rate(1_000_000_000)),
            duplex: Some(Duplex::Half),
            autoneg: Some(true),
            ..LinkModes::default()
        },
        ..Nic::default()
    }
}

/// The invented machine.
pub(super) fn inventory() -> Inventory {
    let mut sample = Inventory {
        pci: pci(),
        processors: processors(),
        network: network(),
        interrupts: interrupts(),
        infiniband: infiniband(),
        storage: storage(),
        tunables: vec![Tunable {
            name: "net.core.rmem_max".to_owned(),
            value: "212992".to_owned(),
        }],
        gaps: vec![Gap {
            what: "facts.pci.payload".to_owned(),
            why: "root's part".to_owned(),
            hint: "sudo linerate host".to_owned(),
        }],
        ..Inventory::default()
    };
    let machine = &mut sample.machine;
    machine.name = "brook".to_owned();
    machine.kernel = "6.1.0".to_owned();
    machine.vendor = "Dell Inc.".to_owned();
    machine.product = "PowerEdge R720".to_owned();
    machine.platform.guest = Some(false);
    machine.clock_source = "tsc".to_owned();
    machine.cpus_allowed = vec![1];
    sample.memory.total = Some(Bytes(32 << 30));
    sample.memory.modules = Some(vec![
        Module {
            locator: "DIMM_A1".to_owned(),
            size: Some(Bytes(32 << 30)),
            kind: "DDR3",
            rated: Some(Transfers(1_600_000_000)),
            now: Some(Transfers(1_333_000_000)),
            width_bits: Some(64),
            ecc: Some(true),
            ranks: Some(2),
            ..Module::default()
        },
        Module::default(),
    ]);
    sample.busy = Some(cpu::Busy {
        cpus: vec![cpu::CpuLoad { cpu: 1, busy: 0.95, interrupts: 0.4, stolen: 0.0 }],
        processes: vec![cpu::Process {
            pid: 712,
            name: "backup".to_owned(),
            cpus: 0.55,
            last_cpu: 1,
        }],
    });
    sample
}

fn pci() -> Vec<Device> {
    let link = |width| Some(Link { speed: Some(Transfers(8_000_000_000)), width: Some(width) });
    let device = |address: &str, class, max| Device {
        address: address.parse().unwrap_or_default(),
        class,
        now: link(4),
        max,
        node: Some(1),
        ..Device::default()
    };
    let mut port = device("0000:80:02.0", 0x06_0400, link(4));
    port.buses = Some(Buses { secondary: 0x82, subordinate: 0x82 });
    port.kind = Some(PortKind::Root);
    let mut card = device("0000:82:00.0", 0x02_0000, link(8));
    (card.vendor, card.device) = (0x15b3, 0x1003);
    card.driver = "mlx4_core".to_owned();
    card.names = vec!["mlx4_0".to_owned(), "eth2".to_owned()];
    card.kind = Some(PortKind::Endpoint);
    card.payload = Some(Payload { now: 256, max: 512, read_request: 4096 });
    card.iommu_group = Some(41);
    let other = Device {
        address: "0000:00:1f.3".parse().unwrap_or_default(),
        class: 0x0c_0500,
        ..Device::default()
    };
    let mut all = vec![other, port, card];
    find_parents(&mut all);
    all
}

fn processors() -> cpu::Processors {
    cpu::Processors {
        model: "Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz".to_owned(),
        turbo: Some(true),
        cpus: (0..2)
            .map(|id| cpu::Cpu {
                id,
                package: Some(id),
                siblings: vec![id],
                capacity: None,
                clock: cpu::Clock {
                    now: Some(Hertz(1_200_000_000 + u64::from(id) * 1_500_000_000)),
                    nominal: Some(Hertz(2_700_000_000)),
                    max: Some(Hertz(3_500_000_000)),
                    limit: Some(Hertz(3_500_000_000)),
                    driver: "acpi-cpufreq".to_owned(),
                    governor: "powersave".to_owned(),
                    preference: String::new(),
                },
            })
            .collect(),
        nodes: (0..2)
            .map(|id| cpu::Node {
                id,
                cpus: Some(vec![id]),
                total: Some(Bytes(16 << 30)),
                free: Some(Bytes(15 << 30)),
                distances: if id == 0 { vec![10, 21] } else { vec![21, 10] },
            })
            .collect(),
        caches: vec![cpu::Cache {
            level: 3,
            kind: "Unified".to_owned(),
            size: Bytes(20 << 20),
            shared_by: 1,
            count: 2,
        }],
        idle: vec![cpu::IdleState {
            name: "C6".to_owned(),
            latency: Nanos(104_000),
            disabled: true,
        }],
        ..cpu::Processors::default()
    }
}

/// Two network cards, one of them without a cable.
fn cards() -> [Nic; 2] {
    let queue = |direction, number| Queue {
        direction,
        number,
        napi: None,
        irq: None,
        cpus: None,
        flows: None,
    };
    let card = |name: &str, index, driver: &str, pci: &str| Nic {
        name: name.to_owned(),
        index,
        driver: driver.to_owned(),
        pci: pci.to_owned(),
        mtu: Some(9000),
        stack: Stack { above: Some(9), ..Stack::default() },
        ..Nic::default()
    };
    let mut used = card("eth2", 2, "mlx4_en", "0000:82:00.0");
    used.node = Some(1);
    used.up = true;
    used.link.speed = Some(Rate(40_000_000_000));
    used.queues = vec![
        queue(QueueDirection::Rx, 0),
        queue(QueueDirection::Rx, 1),
        queue(QueueDirection::Tx, 0),
    ];
    let setting = |now, most| Setting { now: Some(now), most: Some(most) };
    used.rings = Some(Rings { rx: setting(1024, 8192), tx: setting(1024, 1024) });
    used.offloads = Some(Offloads {
        on: vec!["rx-gro".to_owned()],
        off: vec!["tx-tcp-segmentation".to_owned()],
    });
    used.channels = Some(Channels::default());
    used.coalesce = Some(Coalesce::default());
    used.pause = Some(Pause::default());
    used.fec = Some(Fec { active: "RS".to_owned(), ..Fec::default() });
    used.rss = Some(Rss { function: "toeplitz".to_owned(), table: vec![0, 1, 0, 1] });
    used.errors.rx_missed = Some(12);
    used.counters = vec![Counter { name: "rx_out_of_buffer".to_owned(), value: 12 }];
    let mut spare = card("eth3", 3, "tg3", "0000:01:00.0");
    spare.down = "no cable".to_owned();
    [used, spare]
}

/// A VLAN on a bond of the two cards, and six ports with equal properties.
fn network() -> Network {
    let software = |name: &str, index, kind: &str| Nic {
        name: name.to_owned(),
        index,
        kind: kind.to_owned(),
        driver: kind.to_owned(),
        is_virtual: true,
        up: true,
        mtu: Some(9000),
        ..Nic::default()
    };
    let mut bond = software("bond0", 9, "bond");
    bond.stack.below = vec![2, 3];
    bond.stack.bond = Some(Bond {
        mode: "802.3ad".to_owned(),
        hash: "layer3+4".to_owned(),
        active: None,
        ..Bond::default()
    });
    let mut vlan = software("bond0.7", 10, "vlan");
    vlan.stack.below = vec![9];
    vlan.stack.vlan = Some(7);
    vlan.qdisc = "tbf".to_owned();
    vlan.shapers = vec![Shaper {
        kind: "tbf".to_owned(),
        id: "1:".to_owned(),
        set: Shaping {
            rate: Some(Rate(500_000_000)),
            burst: Some(Bytes(65_536)),
            ..Shaping::default()
        },
    }];
    let pairs = (20..26).map(|index| software(&format!("veth{index}"), index, "veth"));
    let nics = cards().into_iter().chain([bond, vlan]).chain(pairs);
    Network {
        nics: nics.collect(),
        addresses: vec![PortAddresses {
            port: 2,
            hardware: "00:00:5e:00:53:02".to_owned(),
            ip: vec!["192.0.2.7/24".to_owned()],
        }],
        ..Network::default()
    }
}

/// Interrupts of the card's two queues; one of them is served by a CPU of the wrong node.
fn interrupts() -> Interrupts {
    let irq = |number, cpu| Irq {
        number,
        name: format!("eth2-rx-{}", number - 64),
        effective: vec![cpu],
        ..Irq::default()
    };
    Interrupts { irqs: vec![irq(64, 1), irq(65, 0)], gaps: Vec::new() }
}

fn infiniband() -> Infiniband {
    let port = IbPort {
        number: 1,
        state: Some(LinkState::Initializing),
        physical: Some(PhysicalState::LinkUp),
        rate: Some(IbRate { rate: Rate(40_000_000_000), width: 4, speed: "QDR".to_owned() }),
        layer: Some(Layer::InfiniBand),
        lid: Some(0),
        sm_lid: Some(0),
        ..IbPort::default()
    };
    let other = IbPort {
        number: 2,
        state: Some(LinkState::Active),
        layer: Some(Layer::Ethernet),
        ..port.clone()
    };
    Infiniband {
        devices: vec![IbDevice {
            name: "mlx4_0".to_owned(),
            model: "MT26428".to_owned(),
            pci: "0000:82:00.0".to_owned(),
            node: Some(1),
            ports: vec![port, other],
            ..IbDevice::default()
        }],
        ..Infiniband::default()
    }
}

/// Eight disks on one adapter, and a partition, which does not count as a disk.
fn storage() -> Storage {
    let disk = |name: String| BlockDevice {
        name,
        size: Some(Bytes(4 << 40)),
        transport: "sas".to_owned(),
        pci: "0000:03:00.0".to_owned(),
        node: Some(0),
        queue: QueueLimits {
            scheduler: "mq-deadline".to_owned(),
            rotational: Some(true),
            requests: Some(256),
            depth: Some(32),
            largest: Some(Bytes(1280 << 10)),
            ..QueueLimits::default()
        },
        ..BlockDevice::default()
    };
    let mut devices: Vec<BlockDevice> = ('a'..='h').map(|c| disk(format!("sd{c}"))).collect();
    devices.push(BlockDevice {
        name: "sda1".to_owned(),
        layer: block::Layer::Partition,
        below: vec!["sda".to_owned()],
        ..BlockDevice::default()
    });
    let mounted = |point: &str, kind: &str, device: &str| FileSystem {
        point: point.to_owned(),
        kind: kind.to_owned(),
        device: device.to_owned(),
        options: Vec::new(),
    };
    let mut remote = mounted("/home", "nfs4", "");
    remote.options = vec!["proto=tcp".to_owned(), "nconnect=4".to_owned()];
    Storage {
        devices,
        filesystems: vec![mounted("/", "ext4", "sda1"), mounted("/data", "xfs", "sdb"), remote],
        ..Storage::default()
    }
}
