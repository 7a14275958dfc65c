//! Tests of checks that find a fault and that do not, with inventories. The tests of the command use trees of files.

use super::{CHECKS, Guide, infiniband};
use crate::fake::Fake;
use crate::walk::{Part, Walk};
use linerate_facts::Inventory;
use linerate_facts::finding::Stands;
use linerate_facts::infiniband::{
    Gid, IbDevice, IbPort, IbRate, Infiniband, Ipoib, Layer, LinkState, PhysicalState,
};
use linerate_facts::nic::Nic;
use linerate_facts::pci::{Device, Link};
use linerate_units::{Rate, Transfers};

const CARD: &str = "0000:01:00.0";

fn port() -> IbPort {
    IbPort {
        number: 1,
        state: Some(LinkState::Active),
        physical: Some(PhysicalState::LinkUp),
        layer: Some(Layer::InfiniBand),
        lid: Some(3),
        sm_lid: Some(1),
        rate: Some(IbRate { rate: Rate(40_000_000_000), width: 4, speed: "QDR".to_owned() }),
        gids: vec![Gid {
            index: 0,
            gid: "fe80:0000:0000:0000:0000:0000:0010:0002".to_owned(),
            kind: String::new(),
            netdev: String::new(),
        }],
        ..IbPort::default()
    }
}

/// A host without any fault, as far as an inventory shows.
fn host() -> Inventory {
    let mut host = Inventory::default();
    let lanes = Link { speed: Some(Transfers(8_000_000_000)), width: Some(8) };
    let device = |address: &str| Device {
        address: address.parse().unwrap(),
        now: Some(lanes),
        max: Some(lanes),
        ..Device::default()
    };
    let slot = device("0000:00:01.0");
    host.pci = vec![
        slot.clone(),
        Device {
            vendor: 0x15b3,
            device: 0x1003,
            class: 0x02_0700,
            driver: "mlx4_core".to_owned(),
            parent: Some(slot.address),
            ..device(CARD)
        },
    ];
    host.infiniband = Infiniband {
        devices: vec![IbDevice {
            name: "mlx4_0".to_owned(),
            pci: CARD.to_owned(),
            ports: vec![port()],
            ..IbDevice::default()
        }],
        managed: Some(vec!["mlx4_0".to_owned()]),
        opened: Some(vec!["mlx4_0".to_owned()]),
        interfaces: vec![Ipoib {
            name: "ib0".to_owned(),
            pci: CARD.to_owned(),
            port: Some(1),
            mode: "datagram".to_owned(),
            connectable: Some(true),
            addresses: Some(vec!["10.0.0.1/24".to_owned()]),
            guid: None,
        }],
        ..Infiniband::default()
    };
    host.network.nics =
        vec![Nic { name: "ib0".to_owned(), up: true, mtu: Some(2044), ..Nic::default() }];
    host
}

/// The state of a check, its text, and its commands in one line.
fn of(guide: &Guide, id: &str) -> (&'static str, String, String) {
    let at = CHECKS.iter().position(|row| row.id == id).unwrap();
    let check = &guide.checks[at];
    let state = match check.stands {
        Stands::Good => "ok",
        Stands::Unknown => "unknown",
        Stands::NotJudged => "waits",
        _ => "wrong",
    };
    let fix = &check.fix;
    let commands = if fix.is_empty() {
        String::new()
    } else {
        format!("{} undo {}", fix.text(), fix.undo_text())
    };
    let what = [check.what.as_str(), &check.why];
    let what: Vec<&str> = what.into_iter().filter(|text| !text.is_empty()).collect();
    (state, what.join(": "), commands)
}

fn changed(id: &str, change: impl FnOnce(&mut Inventory)) -> (&'static str, String, String) {
    let mut host = host();
    change(&mut host);
    of(&infiniband(&host, None), id)
}

#[test]
fn without_a_network_only_the_ping_is_unknown() {
    let guide = infiniband(&host(), None);
    let states: Vec<&str> = guide.checks.iter().map(|check| of(&guide, check.id).0).collect();
    assert_eq!(states, ["ok", "ok", "ok", "ok", "ok", "unknown", "ok", "ok"], "{guide:#?}");
    assert!(!guide.is_well() && !guide.is_wrong());
}

#[test]
fn an_address_of_a_port_is_neither_zero_nor_multicast() {
    let lid = |lid| changed("lid", |host| host.infiniband.devices[0].ports[0].lid = lid).0;
    assert_eq!(
        [Some(0), Some(1), Some(0xbfff), Some(0xc000), None].map(lid),
        ["wrong", "ok", "ok", "wrong", "unknown"]
    );
}

#[test]
fn an_interface_is_up_and_has_an_address() {
    let own = |change: fn(&mut Ipoib, &mut Nic)| {
        changed("ipoib", |host| {
            change(&mut host.infiniband.interfaces[0], &mut host.network.nics[0]);
        })
    };
    let (state, what, better) = own(|_, _| {});
    assert_eq!((state, what.as_str()), ("ok", "ib0 has 10.0.0.1/24, datagram mode, MTU 2044"));
    assert!(
        better.contains("echo connected | sudo tee /sys/class/net/ib0/mode")
            && better.contains("mtu 65520"),
        "{better}"
    );
    let (state, what, better) = own(|ipoib, _| ipoib.connectable = Some(false));
    assert_eq!((state, better.as_str()), ("ok", ""));
    assert!(what.contains("no connected mode"), "{what}");
    assert_eq!(own(|ipoib, _| ipoib.connectable = None).2, "");
    let (_, _, better) = own(|ipoib, nic| {
        "connected".clone_into(&mut ipoib.mode);
        nic.mtu = Some(65_519);
    });
    assert!(better.contains("mtu 65520 undo sudo ip link set ib0 mtu 65519"), "{better}");
    let (_, _, better) = own(|ipoib, nic| {
        "connected".clone_into(&mut ipoib.mode);
        nic.mtu = Some(65_520);
    });
    assert_eq!(better, "");
    let (state, _, fix) = own(|ipoib, _| ipoib.addresses = Some(Vec::new()));
    assert_eq!(state, "wrong");
    assert!(fix.contains("ip address add") && fix.contains("undo sudo ip address del"), "{fix}");
    assert_eq!(own(|ipoib, _| ipoib.addresses = None).0, "unknown");
    let (state, _, fix) = own(|_, nic| nic.up = false);
    assert_eq!(state, "wrong");
    assert!(fix.contains("sudo ip link set ib0 up"), "{fix}");
    // An interface of another port does not count for this one.
    assert_eq!(own(|ipoib, _| ipoib.port = Some(2)).0, "wrong");
    assert_eq!(own(|ipoib, _| ipoib.pci.clear()).0, "wrong");
}

#[test]
fn a_slot_carries_at_least_the_data_of_the_port() {
    let width = |width, speed: &str| {
        changed("rates", |host| {
            host.pci[1].now.as_mut().unwrap().width = width;
            speed.clone_into(&mut host.infiniband.devices[0].ports[0].rate.as_mut().unwrap().speed);
        })
        .0
    };
    assert_eq!(width(Some(4), "QDR"), "wrong");
    assert_eq!(width(Some(8), "QDR"), "ok");
    assert_eq!(width(Some(8), "FDR"), "ok");
    assert_eq!(width(Some(8), "EDR"), "wrong");
    assert_eq!(width(None, "QDR"), "unknown");
    assert_eq!(width(Some(8), "new"), "unknown");
}

#[test]
fn modules_that_are_unknown_stop_nothing() {
    let guide = |change: fn(&mut Infiniband)| {
        let mut host = host();
        change(&mut host.infiniband);
        let guide = infiniband(&host, None);
        (of(&guide, "driver").0, of(&guide, "lid").0)
    };
    assert_eq!(guide(|ib| ib.managed = None), ("unknown", "ok"));
    assert_eq!(guide(|ib| ib.managed = Some(Vec::new())), ("wrong", "waits"));
    assert_eq!(guide(|ib| ib.opened = Some(vec!["mlx4_1".to_owned()])), ("wrong", "waits"));
}

/// The result of the ping check on a network of two hosts. `change` gets the network and the index of the other host.
/// Counters are read, by LID, only if `asks`.
fn pinged(asks: bool, change: impl FnOnce(&mut Fake, usize)) -> (&'static str, String, String) {
    let mut fake = Fake::star(2);
    fake.manage("H1", 1);
    let (own, other) = (fake.node("H1"), fake.node("H2"));
    fake.port((own, 1)).guid = 0x0010_0002;
    change(&mut fake, other);
    let mut drive = fake.drive("H1", 1);
    let mut walk = Walk::default();
    if asks {
        drive.all(&mut walk);
    } else {
        drive.run(&mut walk);
    }
    of(&infiniband(&host(), Some(&walk.into_network())), "ping")
}

#[test]
fn a_ping_is_judged_by_what_was_asked_and_answered() {
    let (state, what, _) = pinged(true, |_, _| ());
    assert_eq!(state, "ok", "{what}");
    let (state, what, commands) = pinged(false, |_, _| ());
    assert_eq!(state, "unknown", "{what}");
    assert!(what.contains("was not asked") && commands.contains("ibping"), "{what} {commands}");
    // A network that was walked from another port does not show whether this one works.
    let (state, what, _) = pinged(true, |fake, _| {
        let own = fake.node("H1");
        fake.port((own, 1)).guid = 7;
    });
    assert_eq!(state, "unknown", "{what}");
}

#[test]
fn a_port_that_leaves_requests_to_its_lid_without_a_reply_is_wrong() {
    let mut fake = Fake::star(2);
    fake.manage("H1", 1);
    let (own, other, switch) = (fake.node("H1"), fake.node("H2"), fake.node("SW"));
    fake.port((own, 1)).guid = 0x0010_0002;
    let mut drive = fake.drive("H1", 1);
    let mut walk = Walk::default();
    drive.run(&mut walk);
    for node in [other, switch] {
        drive.fake.nodes[node].loss = 100;
    }
    walk.begin(Part::Counters);
    drive.run(&mut walk);
    let (state, what, _) = of(&infiniband(&host(), Some(&walk.into_network())), "ping");
    assert_eq!(state, "wrong", "{what}");
    assert!(what.contains("did not answer there"), "{what}");
}

#[test]
fn a_manager_of_this_host_that_is_bound_to_another_port_is_told() {
    let waits = |manages: Option<bool>| {
        changed("manager", |host| {
            let card = &mut host.infiniband.devices[0];
            card.ports[0].number = 2;
            card.ports[0].state = Some(LinkState::Initializing);
            (card.ports[0].lid, card.ports[0].sm_lid) = (Some(0), Some(0));
            let first = IbPort {
                number: 1,
                state: Some(LinkState::Down),
                physical: Some(PhysicalState::Polling),
                layer: Some(Layer::InfiniBand),
                manages,
                ..IbPort::default()
            };
            card.ports.insert(0, first);
        })
    };
    let (state, what, commands) = waits(Some(true));
    assert_eq!(state, "wrong", "{what}");
    assert!(what.contains("bound to mlx4_0 port 1"), "{what}");
    assert!(commands.contains("opensm -B -g 0x0000000000100002"), "{commands}");
    let (_, what, _) = waits(Some(false));
    assert!(!what.contains("bound to"), "{what}");
}
