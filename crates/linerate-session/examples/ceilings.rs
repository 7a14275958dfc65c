//! Prints all ceilings of records and case files with every digit, so that `benches/truth/ceilings.sh` can compare the
//! output of two builds:
//! `cargo run -p linerate-session --example ceilings -- FILE ...`
//!
//! The stored records were measured over virtual ports, which have no wire. So the ceilings of each record are printed
//! again for each hardware of [`DRESSES`].

use std::fmt::Debug;
use std::path::Path;

use linerate_explain::case::{Case, answer, measured};
use linerate_facts::nic::{Bond, Nic, Stack};
use linerate_facts::pci::{Buses, Device, Link, Payload, PortKind, find_parents};
use linerate_facts::route::Route;
use linerate_facts::usb::Hub;
use linerate_judge::model::derive;
use linerate_record::{Record, frame};
use linerate_units::{Rate, Transfers};

/// Name of a hardware configuration, and a function that makes the route through its ports.
type Dress = (&'static str, fn() -> Route);

/// Hardware configurations that replace the route of both ends of a record, one after the other.
const DRESSES: [Dress; 5] = [
    ("one card", || routed(vec![card(3, 10_000)], vec![])),
    ("a tagged card", || routed(vec![card(3, 10_000)], vec![vlan()])),
    ("a bond", || {
        let members = vec![card(3, 10_000), card(4, 25_000)];
        routed(members, vec![bond("layer3+4")])
    }),
    ("a bond that sends by one member", || {
        let members = vec![card(3, 10_000), card(3, 25_000)];
        routed(members, vec![bond("layer2+3")])
    }),
    ("USB", || {
        let mut adapter = card(3, 2_500);
        (adapter.device, adapter.pci) = (String::new(), String::new());
        adapter.usb = Some(Rate(10_000_000_000));
        adapter.usb_hubs = vec![Hub { name: "6-1".to_owned(), speed: Some(Rate(5_000_000_000)) }];
        routed(vec![adapter], vec![])
    }),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for name in std::env::args().skip(1) {
        let bytes = std::fs::read(&name)?;
        let name = Path::new(&name).file_name().unwrap_or_default();
        println!("== {}", name.display());
        if bytes.starts_with(&frame::MAGIC) {
            of_record(frame::decode(&bytes)?.0);
        } else {
            of_case(&String::from_utf8(bytes)?);
        }
    }
    Ok(())
}

fn of_record(mut record: Record) {
    ceilings("as it is", &record);
    for (name, route) in DRESSES {
        for host in &mut record.hosts {
            let peer = host.facts.route.as_ref().and_then(|route| route.peer);
            let route = route();
            if let Some(port) = &mut host.facts.port {
                port.name.clone_from(&route.ports[0].name);
                port.is_ethernet = true;
            }
            host.facts.route = Some(Route { peer, ..route });
        }
        ceilings(name, &record);
    }
}

fn ceilings(what: &str, record: &Record) {
    println!("-- {what}");
    for way in derive(record).directions {
        lines(way.direction.name(), &way.ceilings);
        let loads = std::iter::once(&way.base).chain(&way.sweep);
        for load in loads {
            println!("shaped: {:?}", load.shaped());
        }
    }
    match measured(record) {
        Ok(text) => of_case(&text),
        Err(error) => println!("{error}"),
    }
}

/// Prints the ceilings of a case file, then those with each change for which the file has published figures.
fn of_case(text: &str) {
    let published = match Case::read(text, &[""; 0]) {
        Ok(case) => case.published,
        Err(error) => return println!("{error}"),
    };
    let changes = published.into_iter().map(|one| one.set);
    for sets in std::iter::once(Vec::new()).chain(changes) {
        println!("-- {sets:?}");
        match Case::read(text, &sets).and_then(|case| answer(&case)) {
            Ok(answer) => {
                lines("resource", &answer.path.resources);
                lines("group", &answer.path.groups);
                for way in linerate_plan::path::Direction::ALL {
                    lines(way.name(), &answer.ceilings(way));
                }
                println!("{:?}", (&answer.forward, &answer.reverse, &answer.both, &answer.floor));
            }
            Err(error) => println!("{error}"),
        }
    }
}

fn lines(what: &str, all: &[impl Debug]) {
    for one in all {
        println!("{what}: {one:?}");
    }
}

/// Makes a port of `mbps` Mb/s whose card is on the PCI bus `bus`.
fn card(bus: u8, mbps: u64) -> Nic {
    let address = format!("0000:{bus:02x}:00.0");
    let mut nic = Nic {
        name: format!("eth{mbps}"),
        index: mbps as u32,
        device: address.clone(),
        pci: address,
        up: true,
        ..Nic::default()
    };
    nic.link.speed = Some(Rate(mbps * 1_000_000));
    nic
}

fn vlan() -> Nic {
    Nic {
        name: "eth.100".to_owned(),
        index: 7,
        kind: "vlan".to_owned(),
        is_virtual: true,
        stack: Stack { below: vec![10_000], vlan: Some(100), ..Stack::default() },
        ..Nic::default()
    }
}

fn bond(hash: &str) -> Nic {
    Nic {
        name: "bond0".to_owned(),
        index: 9,
        kind: "bond".to_owned(),
        is_virtual: true,
        stack: Stack {
            below: vec![10_000, 25_000],
            bond: Some(Bond {
                mode: "802.3ad".to_owned(),
                hash: hash.to_owned(),
                ..Bond::default()
            }),
            ..Stack::default()
        },
        ..Nic::default()
    }
}

/// Makes a route over these cards in PCIe slots of the third generation, with the ports `above` on top of them. The
/// first card is behind a PCIe switch.
fn routed(cards: Vec<Nic>, above: Vec<Nic>) -> Route {
    let link = |width: u8| Some(Link { speed: Some(Transfers(8_000_000_000)), width: Some(width) });
    let device = |address: &str, kind, buses: Option<(u8, u8)>, width| Device {
        address: address.parse().unwrap_or_else(|_| unreachable!("{address} is an address")),
        kind: Some(kind),
        buses: buses.map(|(secondary, subordinate)| Buses { secondary, subordinate }),
        now: link(width),
        max: link(16),
        ..Device::default()
    };
    let payload = Some(Payload { now: 256, max: 512, read_request: 512 });
    let endpoint =
        |address: &str, payload| Device { payload, ..device(address, PortKind::Endpoint, None, 4) };
    let mut pci = vec![
        device("0000:00:01.0", PortKind::Root, Some((1, 3)), 2),
        device("0000:00:02.0", PortKind::Root, Some((4, 4)), 4),
        device("0000:01:00.0", PortKind::Upstream, Some((2, 3)), 2),
        device("0000:02:00.0", PortKind::Downstream, Some((3, 3)), 4),
        endpoint("0000:03:00.0", payload),
        endpoint("0000:04:00.0", None),
    ];
    pci.sort_by_key(|device| device.address);
    find_parents(&mut pci);
    Route { ports: above.into_iter().chain(cards).collect(), pci, ..Route::default() }
}
