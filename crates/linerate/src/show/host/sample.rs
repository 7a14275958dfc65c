//! A machine made up for the tests of its views: a card in a slot that is too narrow for it.

use linerate_core::facts::pci::{Buses, Device, Link, Payload, PortKind, find_parents};
use linerate_core::facts::{Gap, Inventory, Tunable, cpu, memory::Module};
use linerate_core::units::{Bytes, Hertz, Nanos, Transfers};

/// The machine.
pub(super) fn inventory() -> Inventory {
    let mut sample = Inventory {
        pci: pci(),
        processors: processors(),
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
        cpus: vec![cpu::Load {
            cpu: 1,
            busy: 0.95,
            interrupts: 0.4,
            stolen: 0.0,
        }],
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
    let link = |width| {
        Some(Link {
            speed: Some(Transfers(8_000_000_000)),
            width: Some(width),
        })
    };
    let device = |address: &str, class, max| Device {
        address: address.parse().unwrap_or_default(),
        class,
        now: link(4),
        max,
        node: Some(1),
        ..Device::default()
    };
    let mut port = device("0000:80:02.0", 0x06_0400, link(4));
    port.buses = Some(Buses {
        secondary: 0x82,
        subordinate: 0x82,
    });
    port.kind = Some(PortKind::Root);
    let mut card = device("0000:82:00.0", 0x02_0000, link(8));
    (card.vendor, card.device) = (0x15b3, 0x1003);
    card.driver = "mlx4_core".to_owned();
    card.names = vec!["mlx4_0".to_owned(), "eth2".to_owned()];
    card.kind = Some(PortKind::Endpoint);
    card.payload = Some(Payload {
        now: 256,
        max: 512,
        read_request: 4096,
    });
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
                cpus: vec![id],
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
