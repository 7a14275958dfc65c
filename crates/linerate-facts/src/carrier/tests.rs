use super::*;
use crate::finding::Finding;
use crate::infiniband::{IbDevice, IbRate, LinkState};
use crate::nic::{Bond, LinkModes, Stack};
use crate::odd::find;
use crate::pci::{Buses, Link, Payload, PortKind};
use crate::usb::Hub;
use linerate_units::Transfers;

fn lanes(giga: u64, width: u8) -> Link {
    Link { speed: Some(Transfers(giga * 1_000_000_000)), width: Some(width) }
}

fn bridge(address: &str, buses: (u8, u8), kind: PortKind, link: Link) -> Device {
    Device {
        class: 0x06_0400,
        buses: Some(Buses { secondary: buses.0, subordinate: buses.1 }),
        ..device(address, kind, link)
    }
}

fn device(address: &str, kind: PortKind, link: Link) -> Device {
    Device {
        address: address.parse().unwrap(),
        class: 0x02_0000,
        kind: Some(kind),
        now: Some(link),
        max: Some(link),
        payload: Some(Payload { now: 256, max: 256, read_request: 512 }),
        ..Device::default()
    }
}

fn port(name: &str, pci: &str, mbps: u64) -> Nic {
    Nic {
        name: name.to_owned(),
        pci: pci.to_owned(),
        up: true,
        link: LinkModes {
            speed: (mbps > 0).then_some(Rate(mbps * 1_000_000)),
            ..LinkModes::default()
        },
        ..Nic::default()
    }
}

fn machine(mut pci: Vec<Device>, nics: Vec<Nic>) -> Inventory {
    pci.sort_by_key(|device| device.address);
    pci::find_parents(&mut pci);
    let mut machine = Inventory { pci, ..Inventory::default() };
    machine.network.nics = nics;
    machine
}

/// A card with two functions, in a slot with this link.
fn card(link: Link) -> Vec<Device> {
    vec![
        bridge("0000:00:01.0", (1, 1), PortKind::Root, link),
        device("0000:01:00.0", PortKind::Endpoint, link),
        device("0000:01:00.1", PortKind::Endpoint, link),
    ]
}

const FIRST: &str = "0000:01:00.0";
const SECOND: &str = "0000:01:00.1";

fn result_of(machine: &Inventory) -> Vec<Finding> {
    let found = find(machine).into_iter();
    found.filter(|odd| odd.id == "port-carrier").collect()
}

#[test]
fn a_port_that_is_faster_than_its_link_is_told_from_two_that_are_so_together() {
    let with = |first: u64, second: u64| {
        let nics = vec![port("a", FIRST, first), port("b", SECOND, second)];
        let found = result_of(&machine(card(lanes(5, 4)), nics));
        assert!(found.len() <= 1, "{found:?}");
        found.first().map(|odd| odd.what.clone()).unwrap_or_default()
    };
    // The link runs at 16 Gb/s, of which 14.8 Gb/s are left for frames.
    let alone = with(16_000, 10_000);
    assert!(alone.contains("runs at 5 GT/s x4 (16 Gb/s)"), "{alone}");
    assert!(alone.ends_with("a (16 Gb/s) alone is faster"), "{alone}");
    let together = with(10_000, 10_000);
    assert!(
        together
            .ends_with("a (10 Gb/s) and b (10 Gb/s) are faster together, though not each alone"),
        "{together}"
    );
    assert_eq!(with(10_000, 2_500), "");
    assert_eq!(with(10_000, 0), "");
    // A full frame is 1514 of 1538 bytes on the wire: a wire of 15.07 Gb/s gives 14.84 Gb/s of frames.
    assert_eq!(with(15_060, 0), "");
    assert_ne!(with(15_090, 0), "");
}

#[test]
fn a_port_that_is_down_counts_by_itself_where_its_fastest_mode_is_known() {
    let mut down = port("b", SECOND, 0);
    down.up = false;
    let with = |modes: &[&str], first: u64| {
        let mut down = down.clone();
        down.link.supported = modes.iter().map(|&m| m.to_owned()).collect();
        let found = result_of(&machine(card(lanes(5, 4)), vec![port("a", FIRST, first), down]));
        found.first().map(|odd| odd.what.clone()).unwrap_or_default()
    };
    assert_eq!(with(&[], 10_000), "");
    assert_eq!(with(&["10000baseT/Full"], 10_000), "", "nothing is sent by it");
    let what = with(&["10000baseT/Full", "25000baseCR/Full"], 10_000);
    assert!(what.ends_with("b (25 Gb/s once it is up) alone is faster"), "{what}");
}

#[test]
fn virtual_functions_and_ports_on_others_add_nothing() {
    let mut pci = card(lanes(5, 4));
    pci[2].is_virtual = true;
    let nics = || vec![port("a", FIRST, 10_000), port("b", SECOND, 10_000)];
    assert_eq!(result_of(&machine(pci, nics())), []);
    for change in [
        (|nic| nic.kind = "dsa".to_owned()) as fn(&mut Nic),
        |nic| nic.device = "mlx5_core.sf.4".to_owned(),
        |nic| nic.is_virtual = true,
        |nic| {
            nic.stack = Stack { below: vec![7], ..Stack::default() };
        },
    ] {
        let mut nics = nics();
        change(&mut nics[1]);
        assert_eq!(result_of(&machine(card(lanes(5, 4)), nics)), []);
    }
}

#[test]
fn a_member_of_a_bond_that_stands_by_adds_nothing() {
    let with = |mode: &str, active: Option<u32>| {
        let mut nics = vec![port("a", FIRST, 10_000), port("b", SECOND, 10_000)];
        for (nic, index) in nics.iter_mut().zip([1, 2]) {
            (nic.index, nic.stack.above) = (index, Some(9));
        }
        nics.push(Nic {
            name: "bond0".to_owned(),
            index: 9,
            kind: "bond".to_owned(),
            is_virtual: true,
            stack: Stack {
                below: vec![1, 2],
                bond: Some(Bond { mode: mode.to_owned(), active, ..Bond::default() }),
                ..Stack::default()
            },
            ..Nic::default()
        });
        result_of(&machine(card(lanes(5, 4)), nics)).len()
    };
    assert_eq!((with("active-backup", Some(2)), with("active-backup", None)), (0, 0));
    assert_eq!(with("802.3ad", None), 1);
}

#[test]
fn members_of_a_team_add_nothing_together_and_count_alone() {
    let with = |mbps: u64, kind: &str| {
        let mut nics = vec![port("a", FIRST, mbps), port("b", SECOND, mbps)];
        for (nic, index) in nics.iter_mut().zip([1, 2]) {
            (nic.index, nic.stack.above) = (index, Some(9));
        }
        nics.push(Nic { index: 9, kind: kind.to_owned(), is_virtual: true, ..Nic::default() });
        result_of(&machine(card(lanes(5, 4)), nics)).len()
    };
    assert_eq!((with(10_000, "team"), with(10_000, "bridge")), (0, 1));
    assert_eq!(with(25_000, "team"), 1);
}

/// Two cards behind a switch. `upper` is the link of the switch, `lower` the link of each card.
fn switch(upper: Link, lower: Link) -> Vec<Device> {
    vec![
        bridge("0000:00:01.0", (1, 4), PortKind::Root, upper),
        bridge("0000:01:00.0", (2, 4), PortKind::Upstream, upper),
        bridge("0000:02:01.0", (3, 3), PortKind::Downstream, lower),
        bridge("0000:02:02.0", (4, 4), PortKind::Downstream, lower),
        device("0000:03:00.0", PortKind::Endpoint, lower),
        device("0000:04:00.0", PortKind::Endpoint, lower),
    ]
}

fn behind(upper: Link, lower: Link, mbps: [u64; 2]) -> Vec<String> {
    let nics = vec![port("a", "0000:03:00.0", mbps[0]), port("b", "0000:04:00.0", mbps[1])];
    let found = result_of(&machine(switch(upper, lower), nics)).into_iter();
    found.map(|odd| odd.subject).collect()
}

#[test]
fn cards_behind_a_switch_share_its_link_and_each_is_told_where_it_is_narrowest() {
    let (four, two) = (lanes(8, 4), lanes(8, 2));
    // The links run at 31.5 Gb/s, of which 29.2 Gb/s are left for frames.
    assert_eq!(behind(four, four, [10_000, 10_000]), [""; 0]);
    assert_eq!(behind(four, four, [25_000, 10_000]), ["0000:01:00.0 a b"]);
    // What the two links of the cards let through cannot fill the link above the switch.
    assert_eq!(behind(four, two, [25_000, 10_000]), ["0000:03:00.0 a"]);
    assert_eq!(behind(four, two, [25_000, 25_000]), ["0000:03:00.0 a", "0000:04:00.0 b"]);
    // One card alone fills its own link and the link above. The carrier of both ports is the upper link.
    assert_eq!(behind(four, four, [40_000, 10_000]), ["0000:03:00.0 a", "0000:01:00.0 a b"]);
    assert_eq!(behind(four, four, [40_000, 0]), ["0000:03:00.0 a"]);
    assert_eq!(behind(two, four, [25_000, 0]), ["0000:01:00.0 a"]);
}

#[test]
fn a_tunnel_above_is_no_ceiling_and_the_link_of_the_card_still_is() {
    let slow = Link { speed: Some(Transfers(2_500_000_000)), width: Some(1) };
    let with = |mbps: u64, tunneled: bool| {
        let mut pci = switch(slow, lanes(8, 4));
        pci[1].tunneled = tunneled;
        let found = result_of(&machine(pci, vec![port("a", "0000:03:00.0", mbps)]));
        found.into_iter().map(|odd| odd.subject).collect::<Vec<_>>()
    };
    assert_eq!(with(10_000, true), [""; 0]);
    assert_eq!(with(40_000, true), ["0000:03:00.0 a"]);
    assert_eq!(with(10_000, false), ["0000:01:00.0 a"]);
}

#[test]
fn an_integrated_port_has_no_link() {
    let slow = Link { speed: Some(Transfers(2_500_000_000)), width: Some(1) };
    let with = |mbps: u64| result_of(&machine(card(slow), vec![port("a", FIRST, mbps)])).len();
    assert_eq!((with(10_000), with(2_500)), (0, 1));
}

#[test]
fn several_ports_behind_the_default_figures_of_the_processor_are_not_odd() {
    let with = |tenths: u64, width: u8, mbps: [u64; 2]| {
        let link = Link { speed: Some(Transfers(tenths * 100_000_000)), width: Some(width) };
        let nics = vec![port("a", FIRST, mbps[0]), port("b", SECOND, mbps[1])];
        let found = result_of(&machine(card(link), nics)).into_iter();
        found.map(|odd| odd.subject).collect::<Vec<_>>()
    };
    // The link runs at 2 Gb/s, of which 1.85 Gb/s are left for frames.
    assert_eq!(with(25, 1, [1_000, 1_000]), [""; 0]);
    // Ports of 10 Gb/s on such a link show that its figures are placeholders.
    assert_eq!(with(25, 1, [10_000, 1_000]), [""; 0]);
    assert_eq!(with(25, 1, [2_500, 1_000]), ["0000:01:00.0 a"], "alone");
    assert_eq!(with(50, 1, [2_500, 2_500]), ["0000:01:00.0 a b"]);
    assert_eq!(with(25, 2, [2_500, 2_500]), ["0000:01:00.0 a b"]);
}

#[test]
fn cards_behind_a_switch_with_one_slow_lane_share_it() {
    let slow = Link { speed: Some(Transfers(2_500_000_000)), width: Some(1) };
    assert_eq!(behind(slow, lanes(8, 4), [1_000, 1_000]), ["0000:01:00.0 a b"]);
}

#[test]
fn a_port_that_may_have_several_pci_functions_is_left_out() {
    // Two cards of the same model, each in its own slot.
    let with = |driver: &str, second: Option<Nic>, rdma: Option<Layer>, device: u16| {
        let link = lanes(8, 4);
        let pci = vec![
            bridge("0000:00:01.0", (1, 1), PortKind::Root, link),
            bridge("0000:00:02.0", (2, 2), PortKind::Root, link),
            device_of("0000:01:00.0", driver, 0x1021, link),
            device_of("0000:02:00.0", driver, device, link),
        ];
        let mut nics = vec![port("a", FIRST, 100_000)];
        nics.extend(second);
        let mut machine = machine(pci, nics);
        machine.infiniband.devices = rdma
            .map(|layer| IbDevice {
                pci: "0000:02:00.0".to_owned(),
                ports: vec![IbPort { layer: Some(layer), ..IbPort::default() }],
                ..IbDevice::default()
            })
            .into_iter()
            .collect();
        result_of(&machine).len()
    };
    let mlx5 = "mlx5_core";
    assert_eq!(with(mlx5, None, None, 0x1021), 0);
    assert_eq!(with(mlx5, None, Some(Layer::Ethernet), 0x1021), 0);
    let own = port("b", "0000:02:00.0", 10_000);
    assert_eq!(with(mlx5, Some(own), None, 0x1021), 1, "a card of its own");
    assert_eq!(with(mlx5, None, Some(Layer::InfiniBand), 0x1021), 1);
    assert_eq!(with(mlx5, None, None, 0x1023), 1, "another model");
    assert_eq!(with("ice", None, None, 0x1021), 1, "another driver");
}

fn device_of(address: &str, driver: &str, id: u16, link: Link) -> Device {
    Device {
        driver: driver.to_owned(),
        vendor: 0x15b3,
        device: id,
        ..device(address, PortKind::Endpoint, link)
    }
}

fn adapter(name: &str, usb: u64, hub: Option<(&str, u64)>, mbps: u64) -> Nic {
    let mut nic = port(name, "", mbps);
    nic.usb = Some(Rate(usb * 1_000_000));
    let hub = hub
        .map(|(name, speed)| Hub { name: name.to_owned(), speed: Some(Rate(speed * 1_000_000)) });
    nic.usb_hubs = hub.into_iter().collect();
    nic
}

#[test]
fn usb_caps_an_adapter_at_its_own_wire_or_at_that_of_a_hub() {
    let with = |nics: Vec<Nic>| {
        let found = result_of(&machine(Vec::new(), nics)).into_iter();
        found.map(|odd| (odd.subject, odd.what)).collect::<Vec<_>>()
    };
    let one = |usb, hub, mbps| with(vec![adapter("a", usb, hub, mbps)]);
    let slow = one(480, Some(("5-1", 480)), 5_000);
    assert_eq!(slow.len(), 1);
    assert_eq!(
        slow[0].1,
        "the USB hub 5-1 that it hangs on signals 480 Mb/s, which leaves 426 Mb/s at most; a (5 Gb/s) alone is faster"
    );
    assert_eq!(one(480, None, 100), []);
    assert_eq!(one(480, None, 1_000).len(), 1);
    assert_eq!(one(5_000, None, 2_500), []);
    assert_eq!(one(5_000, None, 4_060), [], "less than 4 Gb/s of frames");
    assert_eq!(one(5_000, None, 4_070).len(), 1);
    assert_eq!(one(10_000, Some(("6-1", 10_000)), 5_000), []);
    let hub = one(10_000, Some(("6-1", 5_000)), 10_000);
    assert!(
        hub[0].1.contains("hub 6-1 that it hangs on signals 5 Gb/s, which leaves 4 Gb/s"),
        "{hub:?}"
    );
    let shared = |second: &str| {
        with(vec![
            adapter("a", 5_000, Some(("6-1", 5_000)), 2_500),
            adapter("b", 5_000, Some((second, 5_000)), 2_500),
        ])
    };
    assert_eq!(shared("6-1")[0].0, "a b");
    assert_eq!(shared("6-2"), []);
}

#[test]
fn a_port_of_infiniband_counts_by_its_data_rate_while_it_is_active() {
    let with = |link: Link, speed: &str, state: LinkState| {
        let mut machine = machine(card(link), Vec::new());
        let rate = IbRate { rate: Rate(200_000_000_000), width: 4, speed: speed.to_owned() };
        machine.infiniband.devices = vec![IbDevice {
            name: "mlx5_0".to_owned(),
            pci: FIRST.to_owned(),
            ports: vec![IbPort {
                number: 1,
                state: Some(state),
                rate: Some(rate),
                layer: Some(Layer::InfiniBand),
                ..IbPort::default()
            }],
            ..IbDevice::default()
        }];
        result_of(&machine).into_iter().map(|odd| odd.subject).collect::<Vec<_>>()
    };
    let active = LinkState::Active;
    assert_eq!(with(lanes(16, 8), "HDR", active), ["0000:01:00.0 mlx5_0"]);
    assert_eq!(with(lanes(16, 16), "HDR", active), [""; 0]);
    assert_eq!(with(lanes(16, 8), "EDR", active), [""; 0]);
    assert_eq!(with(lanes(16, 8), "HDR", LinkState::Down), [""; 0]);
    // A signalling rate of 40 Gb/s is 32 Gb/s of data. PCI Express at 5 GT/s x8 has the same rates, but larger headers.
    assert_eq!(with(lanes(5, 8), "QDR", active), ["0000:01:00.0 mlx5_0"]);
    assert_eq!(with(lanes(5, 8), "FDR10", LinkState::Armed), [""; 0]);
}
