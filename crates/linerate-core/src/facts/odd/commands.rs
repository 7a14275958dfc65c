//! The commands of all oddities: each is whole, and can be typed as it stands.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::{Oddity, find};
use crate::advice::{Advice, Effect};
use crate::facts::block::{BlockDevice, Path};
use crate::facts::cpu::{Busy, Clock, Cpu, Load, Node, Process};
use crate::facts::infiniband::{
    Guid, IbDevice, IbPort, IbRate, Layer, LinkState, PhysicalState, VirtualOf,
};
use crate::facts::irq::Irq;
use crate::facts::memory::Module;
use crate::facts::nic::tests::nic;
use crate::facts::nic::{Counter, Duplex, Nic, Offloads, TunnelKind};
use crate::facts::pci::{self, Buses, Device, Link, Payload, PortKind};
use crate::facts::{Inventory, usb};
use crate::units::{Bytes, Hertz, Rate, Transfers};

/// A name that others chose.
const NAME: &str = "eth$(reboot);'x";
const CARD: &str = "0000:01:00.0";
const GIGA: u64 = 1_000_000_000;

fn port(index: u32, gbps: u64) -> Nic {
    let mut port = nic(index, &[]);
    port.name = format!("{NAME}{index}");
    (port.up, port.mtu) = (true, Some(1500));
    port.link.speed = Some(Rate(gbps * GIGA));
    port.link.duplex = Some(Duplex::Full);
    port
}

/// Ports with troubles of their own.
fn ports() -> Inventory {
    let mut half = port(2, 1);
    half.link.duplex = Some(Duplex::Half);
    half.link.autoneg = Some(false);
    let mut slow = port(3, 1);
    slow.link.advertised = vec!["10000baseT/Full".to_owned()];
    slow.link.peer = slow.link.advertised.clone();
    let mut plain = port(4, 10);
    plain.offloads = Some(Offloads {
        off: vec!["rx-gro".to_owned(), "tx-tcp-segmentation".to_owned()],
        ..Offloads::default()
    });
    plain.errors.rx_crc = Some(1);
    let mut cloud = port(5, 1);
    cloud.driver = "ena".to_owned();
    cloud.counters = vec![Counter {
        name: "bw_in_allowance_exceeded".to_owned(),
        value: 1,
    }];
    let mut dark = port(6, 1);
    dark.down = "no cable".to_owned();
    let mut bond = port(7, 1);
    (bond.mtu, bond.stack.below) = (Some(9000), vec![2]);
    let mut tunnel = port(8, 1);
    tunnel.kind = "vxlan".to_owned();
    tunnel.stack.below = vec![2];
    let kind = TunnelKind::named("vxlan").unwrap();
    tunnel.stack.tunnel = Some(kind.tunnel(Some(4), kind.frames, Some(0)));
    let mut adapter = port(9, 1);
    adapter.usb = Some(Rate(480_000_000));
    adapter.usb_hubs = Vec::<usb::Hub>::new();
    let mut machine = Inventory::default();
    machine.network.nics = vec![half, slow, plain, cloud, dark, bond, tunnel, adapter];
    machine
}

/// Ports whose interrupts go to few CPUs, or to distant ones; the old ones are known of the first port.
fn interrupts() -> Inventory {
    let mut machine = processors();
    let ports = [port(2, 10), port(3, 10)].map(|port| Nic {
        node: Some(1),
        ..port
    });
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
    machine.machine.clock_source = "hpet".to_owned();
    machine.machine.cpu_quota = Some(1.0);
    machine.busy = Some(Busy {
        cpus: vec![Load {
            cpu: 3,
            busy: 0.95,
            interrupts: 0.0,
            stolen: 0.5,
        }],
        processes: vec![Process {
            pid: 712,
            name: NAME.to_owned(),
            cpus: 0.9,
            last_cpu: 3,
        }],
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

/// A card under a port of the processor, with their links, now and at best.
fn bus(now: (u64, u8), card: (u64, u8), slot: (u64, u8)) -> Inventory {
    let link = |(giga, width): (u64, u8)| {
        Some(Link {
            speed: Some(Transfers(giga * GIGA)),
            width: Some(width),
        })
    };
    let payload = Some(Payload {
        now: 128,
        max: 256,
        read_request: 512,
    });
    let device = |address: &str, class: u32, max| Device {
        address: address.parse().unwrap(),
        class,
        now: link(now),
        max: link(max),
        payload,
        ..Device::default()
    };
    let mut above = device("0000:00:01.0", 0x06_0400, slot);
    above.buses = Some(Buses {
        secondary: 1,
        subordinate: 1,
    });
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
            .map(|state| Path {
                state: state.to_owned(),
                ..Path::default()
            })
            .to_vec(),
        ..BlockDevice::default()
    };
    let mut machine = Inventory::default();
    machine.storage.devices = vec![disk("nvme0n1", "live"), disk("nvme1n1", "connecting")];
    machine
}

/// An RDMA port: state, wire, layer, lanes and speed in Gb/s.
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
            counters: vec![Counter {
                name: "symbol_error".to_owned(),
                value: 1,
            }],
            ..IbPort::default()
        }],
        ..IbDevice::default()
    }
}

/// A machine with these devices, all on one PCI function with this driver.
fn fabric(devices: &[IbDevice], driver: &str) -> Inventory {
    let mut machine = Inventory::default();
    machine.infiniband.devices = devices.to_vec();
    machine.pci = vec![Device {
        address: CARD.parse().unwrap(),
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
    served.pci = "0000:02:00.0".to_owned();
    for driver in ["mlx5_core", "mlx4_core", "hfi1"] {
        all.push(fabric(std::slice::from_ref(&fresh), driver));
        all.push(fabric(&[fresh.clone(), served.clone()], driver));
        for (pci, number) in [(CARD, Some(3)), (CARD, None), ("", None)] {
            for state in [Initializing, Down] {
                let mut lent = rdma(state, LinkUp, InfiniBand, (4, 56));
                lent.node_guid = (state == Initializing).then_some(Guid::NONE);
                lent.virtual_of = Some(VirtualOf {
                    pci: pci.to_owned(),
                    number,
                });
                let machine = fabric(&[lent], driver);
                all.push(machine.clone());
                let mut port = port(2, 10);
                CARD.clone_into(&mut port.pci);
                all.push(Inventory {
                    network: crate::facts::nic::Network {
                        nics: vec![port],
                        ..machine.network
                    },
                    ..machine
                });
            }
        }
    }
    all
}

fn machines() -> Vec<Inventory> {
    let mut all = vec![
        ports(),
        interrupts(),
        processors(),
        bus((8, 4), (8, 8), (8, 4)),
        bus((8, 2), (8, 4), (8, 4)),
        bus((8, 4), (8, 4), (8, 4)),
        disks(),
    ];
    all.extend(fabrics());
    all
}

/// The ids that the page of `linerate host` explains.
fn documented() -> BTreeSet<&'static str> {
    let page = include_str!("../../../../../docs/host.md");
    let (_, rest) = page.split_once("## Oddities").unwrap();
    let (table, _) = rest.split_once("An unknown fact is never odd.").unwrap();
    let ids = table.lines().filter_map(|row| row.strip_prefix("| `"));
    ids.filter_map(|row| Some(row.split_once('`')?.0)).collect()
}

/// Whether a word stands for a name or number that the reader is to fill in.
fn is_placeholder(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase())
}

/// Whether a command changes nothing: it needs no right of root, or is one of those that only show something.
fn only_looks(command: &str) -> bool {
    const LOOKS: [&str; 11] = [
        "sudo dmesg ",
        "sudo ethtool -m ",
        "sudo ibnetdiscover ",
        "sudo iblinkinfo ",
        "sudo lspci ",
        "sudo mstflint -d 0000:01:00.0 query",
        "sudo multipath -ll",
        "sudo nvme list-subsys",
        "sudo perfquery ",
        "sudo sminfo ",
        "sudo sminfo",
    ];
    let shows = LOOKS.iter().any(|look| command.starts_with(look));
    !command.contains("sudo ") || shows && !command.ends_with(" -R")
}

/// The files that a command names, which hold an old state.
fn files(command: &str) -> impl Iterator<Item = &str> {
    let words = command.split([' ', ';', ')', '"']);
    words.filter(|word| word.contains("-before."))
}

#[test]
fn what_changes_a_host_can_be_undone() {
    let mut changing = BTreeSet::new();
    for Oddity { id, fix, .. } in machines().iter().flat_map(find) {
        for step in fix.steps.iter().filter(|step| !step.command.is_empty()) {
            let looks = step.effect == Effect::Look;
            assert_eq!(only_looks(&step.command), looks, "{id}: {step:?}");
        }
        if fix.is_lost_at_boot() {
            assert!(!fix.undo.is_empty(), "{id}: {fix:?}");
            changing.insert(id);
        }
        for file in fix.undo.iter().flat_map(|step| files(&step.command)) {
            let saved = format!("| tee {file}");
            let mut steps = fix.steps.iter();
            assert!(steps.any(|step| step.command.ends_with(&saved)), "{fix:?}");
        }
    }
    for id in [
        "port-speed",
        "port-half-duplex",
        "irq-remote",
        "ib-not-set-up",
    ] {
        assert!(changing.contains(id), "{id}: {changing:?}");
    }
}

/// What is advised for a port that is slow because it does not negotiate.
fn negotiating(change: impl Fn(&mut Nic)) -> Advice {
    let mut slow = port(3, 1);
    slow.name = "eth3".to_owned();
    slow.link.advertised = vec!["10000baseT/Full".to_owned()];
    slow.link.peer = slow.link.advertised.clone();
    slow.link.autoneg = Some(false);
    change(&mut slow);
    let mut machine = Inventory::default();
    machine.network.nics = vec![slow];
    find(&machine).remove(0).fix
}

#[test]
fn an_old_link_is_restored_from_a_file_where_a_part_of_it_is_unknown() {
    let known = negotiating(|_| ());
    assert_eq!(known.steps.len(), 1, "{known:?}");
    assert_eq!(
        known.undo[0].command,
        "sudo ethtool -s eth3 autoneg off speed 1000 duplex full"
    );
    let unknown: [fn(&mut Nic); 2] = [|nic| nic.link.autoneg = None, |nic| nic.link.duplex = None];
    for change in unknown {
        let advice = negotiating(change);
        assert_eq!(
            advice.steps[0].command,
            "ethtool eth3 | tee link-before.txt"
        );
        let restored = |shown: &str| {
            let undo = advice.undo[0].command.replace("link-before.txt", "-");
            shell(
                &["-c", &format!("sudo() {{ echo \"$@\"; }}; {undo}")],
                shown,
            )
        };
        let shown =
            "Settings for eth3:\n\tSpeed: 1000Mb/s\n\tDuplex: Full\n\tAuto-negotiation: off\n";
        let old = "ethtool -s eth3 autoneg off speed 1000 duplex full\n";
        assert_eq!(restored(shown), old);
        let on = shown.replace("off", "on");
        assert_eq!(restored(&on), "ethtool -s eth3 autoneg on\n");
        let dark = "\tSpeed: Unknown!\n\tDuplex: Unknown! (255)\n\tAuto-negotiation: off\n";
        assert_eq!(restored(dark), "ethtool -s eth3 autoneg off\n");
    }
}

/// What a shell prints that reads `input`.
fn shell(args: &[&str], input: &str) -> String {
    let mut shell = Command::new("sh");
    let pipes = [Stdio::piped(), Stdio::piped(), Stdio::piped()];
    let [stdin, stdout, stderr] = pipes;
    let shell = shell.args(args).stdin(stdin).stdout(stdout).stderr(stderr);
    let mut shell = shell.spawn().unwrap();
    let mut pipe = shell.stdin.take().unwrap();
    pipe.write_all(input.as_bytes()).unwrap();
    drop(pipe);
    let output = shell.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{input}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_command_is_whole_and_parses() {
    let mut ids = BTreeSet::new();
    let mut script = String::new();
    for odd in machines().iter().flat_map(find) {
        ids.insert(odd.id);
        assert!(
            !odd.fix.what.is_empty() && !odd.fix.what.ends_with('.'),
            "{odd:?}"
        );
        for step in odd.fix.steps.iter().chain(&odd.fix.undo) {
            let command = &step.command;
            assert!(!command.contains('\n') && command.len() < 4096, "{command}");
            // What `ibstat` prints, and a word of awk.
            let words = command.replace("/Port GUID/", "").replace("END {", "");
            let words = words.replace('/', " ");
            let words = words.split([' ', '<', '>']);
            let mut values = words.filter_map(|word| word.rsplit('=').next());
            assert!(!values.any(is_placeholder), "{command}");
            // Quoted names hold nothing that a shell would run.
            let quoted = command.replace("'eth$(reboot);'\\''x", "");
            assert!(!quoted.contains("reboot"), "{command}");
            script.push_str(command);
            script.push('\n');
        }
        assert_eq!(odd.fix.undo.is_empty(), !odd.to_do().contains("(undo: "));
    }
    assert_eq!(ids, documented());
    shell(&["-n"], &script);
}
