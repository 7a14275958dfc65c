use crate::infiniband::{Gid, Guid, IbDevice, IbPort, Layer, LinkState, PhysicalState, VirtualOf};
use crate::nic::Nic;
use crate::odd::{Finding, find};
use crate::{Inventory, pci};

const CARD: &str = "0000:01:00.0";
const FUNCTION: &str = "0000:01:00.4";

/// A port whose wire works, with its own GUID. `manager` is the LID of its subnet manager.
fn port(number: u32, state: LinkState, manager: u64) -> IbPort {
    IbPort {
        number,
        state: Some(state),
        physical: Some(PhysicalState::LinkUp),
        layer: Some(Layer::InfiniBand),
        sm_lid: Some(manager),
        gids: vec![gid(&format!("fe80:0000:0000:0000:0002:c903:004c:5e3{number}"))],
        ..IbPort::default()
    }
}

fn gid(gid: &str) -> Gid {
    Gid { index: 0, gid: gid.to_owned(), kind: "IB/RoCE v1".to_owned(), netdev: String::new() }
}

fn card(name: &str, pci: &str, ports: &[IbPort]) -> IbDevice {
    IbDevice {
        name: name.to_owned(),
        pci: pci.to_owned(),
        node_guid: Some(Guid(0x0002_c903_004c_5e30)),
        ports: ports.to_vec(),
        ..IbDevice::default()
    }
}

fn function(number: Option<u32>, node_guid: Guid, port: IbPort) -> IbDevice {
    IbDevice {
        node_guid: Some(node_guid),
        virtual_of: Some(VirtualOf { pci: CARD.to_owned(), number }),
        ..card("mlx5_4", FUNCTION, &[port])
    }
}

fn machine(devices: &[IbDevice], driver: &str) -> Inventory {
    let mut machine = Inventory::default();
    machine.infiniband.devices = devices.to_vec();
    let on_bus = |device: &IbDevice| pci::Device {
        address: device.pci.parse().unwrap(),
        driver: driver.to_owned(),
        ..pci::Device::default()
    };
    machine.pci = devices.iter().map(on_bus).collect();
    machine
}

fn odd(machine: &Inventory) -> Vec<Finding> {
    let mut found = find(machine);
    found.retain(|odd| odd.id == "unserved-port");
    found
}

/// The only finding of a machine with these devices.
fn one(devices: &[IbDevice], driver: &str) -> Finding {
    let mut found = odd(&machine(devices, driver));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn starts_a_manager(odd: &Finding) -> bool {
    odd.to_do().contains("start opensm")
        || odd.to_do().contains("opensm -B")
        || odd.to_do().contains("opafm")
}

use LinkState::{Active, Armed, Initializing};

#[test]
fn where_nothing_shows_a_manager_one_is_started() {
    let alone = one(&[card("mlx4_0", CARD, &[port(1, Initializing, 0)])], "mlx4_core");
    assert!(alone.why.contains("no subnet manager runs"), "{alone:?}");
    assert_eq!(
        alone.to_do(),
        "start a subnet manager on one host, if the fabric has none: see whether one answers already: sudo sminfo -C \
         mlx4_0 -P 1; only if none answers; then look again: sudo systemctl start opensm (undo: sudo systemctl stop opensm)"
    );
    // A port without a cable does not count as another port of the host.
    let mut unplugged = port(2, LinkState::Down, 0);
    unplugged.physical = Some(PhysicalState::Polling);
    let beside = card("mlx4_0", CARD, &[port(1, Initializing, 0), unplugged]);
    assert_eq!(odd(&machine(&[beside], "mlx4_core"))[0].fix, alone.fix);
    // Omni-Path has its own manager.
    let path = one(&[card("hfi1_0", CARD, &[port(1, Initializing, 0)])], "hfi1");
    assert!(path.to_do().contains("opafm") && !path.to_do().contains("opensm"), "{path:?}");
}

#[test]
fn two_networks_without_a_manager_need_two() {
    for devices in [
        vec![card("mlx4_0", CARD, &[port(1, Initializing, 0), port(2, Initializing, 0)])],
        vec![
            card("mlx5_0", CARD, &[port(1, Initializing, 0)]),
            card("mlx5_1", "0000:02:00.0", &[port(1, Initializing, 0)]),
        ],
    ] {
        let found = odd(&machine(&devices, "mlx5_core"));
        assert_eq!(found.len(), 2);
        for (odd, number) in
            found.iter().zip(devices.iter().flat_map(|d| &d.ports).map(|p| p.number))
        {
            let bound = format!("sudo opensm -B -g 0x0002c903004c5e3{number}");
            assert!(odd.to_do().contains(&bound), "{odd:?}");
        }
    }
}

#[test]
fn a_manager_that_is_known_is_not_joined_by_another() {
    for (manager, served) in
        [(0, false), (1, true), (0xbfff, true), (0xffff, false), (0xffff_ffff, false)]
    {
        let odd = one(&[card("mlx5_0", CARD, &[port(1, Initializing, manager)])], "mlx5_core");
        assert_eq!(starts_a_manager(&odd), !served, "{manager}: {odd:?}");
        assert_eq!(odd.what.contains("LID"), served, "{manager}: {odd:?}");
    }
}

#[test]
fn a_function_is_served_by_the_manager_of_its_card() {
    let guid = Guid(0x0200_0000_0000_0001);
    let other = |port: IbPort| IbDevice {
        pci: "0000:01:00.5".to_owned(),
        name: "mlx5_5".to_owned(),
        ..function(Some(1), guid, port)
    };
    let own = || function(Some(0), guid, port(1, Initializing, 0));
    for sibling in [card("mlx5_0", CARD, &[port(1, Active, 4)]), other(port(1, Active, 4))] {
        let name = sibling.name.clone();
        let odd = one(&[own(), sibling], "mlx5_core");
        assert!(!starts_a_manager(&odd), "{odd:?}");
        assert!(odd.what.contains(&format!("{name} port 1 on the same wire")), "{odd:?}");
        assert!(odd.to_do().contains(&format!("sudo sminfo -C {name} -P 1")), "{odd:?}");
        assert!(odd.to_do().contains("virt_enabled 2"), "{odd:?}");
    }
    // The card's port is not active itself, but knows the LID of the manager.
    let found =
        odd(&machine(&[own(), card("mlx5_0", CARD, &[port(1, Initializing, 4)])], "mlx5_core"));
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|odd| !starts_a_manager(odd)), "{found:?}");
    // No port knows a manager: a new manager binds to the port of the card.
    let lone = [own(), card("mlx5_0", CARD, &[port(1, Initializing, 0)])];
    let found = odd(&machine(&lone, "mlx5_core"));
    assert!(found.iter().all(starts_a_manager), "{found:?}");
}

#[test]
fn a_manager_of_another_port_does_not_serve_this_one() {
    let two = |state| card("mlx4_0", CARD, &[port(1, state, 3), port(2, Initializing, 0)]);
    let odd = one(&[two(Active)], "mlx4_core");
    assert_eq!(odd.subject, "mlx4_0 port 2");
    assert!(odd.what.contains("serves the network of mlx4_0 port 1"), "{odd:?}");
    assert!(odd.why.contains("bound to the other port"), "{odd:?}");
    // The command has the GUID of the port, not the GUID of the device.
    assert!(odd.to_do().contains("sudo opensm -B -g 0x0002c903004c5e32 (undo"), "{odd:?}");
    // First another card; then a card whose port has no known GUID.
    let mut unknown = port(1, Initializing, 0);
    unknown.gids.clear();
    let odd = one(
        &[card("mlx5_0", CARD, &[port(1, Active, 3)]), card("mlx5_1", "0000:02:00.0", &[unknown])],
        "mlx5_core",
    );
    let read = "guid=$(ibstat mlx5_1 1 | awk '/Port GUID/ {print $3}'); [ -n \"$guid\" ] && sudo ";
    let [start, end] = [&odd.fix.steps[1], &odd.fix.undo[0]].map(|step| step.command.as_str());
    assert_eq!(start, format!("{read}opensm -B -g $guid"));
    assert_eq!(end, format!("{read}pkill -f \"[o]pensm -B -g $guid\""));
    let path = one(
        &[
            card("hfi1_0", CARD, &[port(1, Active, 3)]),
            card("hfi1_1", "0000:02:00.0", &[port(1, Initializing, 0)]),
        ],
        "hfi1",
    );
    assert!(path.to_do().contains("opafm.xml") && !path.to_do().contains("opensm"), "{path:?}");
}

#[test]
fn a_manager_that_is_bound_to_a_port_without_a_cable_does_not_serve_the_cabled_one() {
    let first = |manages| IbPort {
        physical: Some(PhysicalState::Polling),
        manages,
        ..port(1, LinkState::Down, 0)
    };
    let beside = |first: IbPort| {
        odd(&machine(&[card("mlx4_0", CARD, &[first, port(2, Initializing, 0)])], "mlx4_core"))
    };
    let bound = "sudo opensm -B -g 0x0002c903004c5e32";
    let found = beside(first(Some(true)));
    assert!(found[0].what.contains("bound to mlx4_0 port 1"), "{found:?}");
    assert!(found[0].to_do().contains(bound), "{found:?}");
    assert!(!found[0].to_do().contains("systemctl start"), "{found:?}");
    // There is no sign of a manager. One that is started without a GUID would serve the first port, which has no cable.
    for manages in [Some(false), None] {
        let found = beside(first(manages));
        assert!(!found[0].what.contains("bound to"), "{found:?}");
        assert!(found[0].to_do().contains(bound), "{found:?}");
    }
    // The manager is bound to the port itself: it has just started.
    let own = IbPort { manages: Some(true), ..port(1, Initializing, 0) };
    let alone = one(&[card("mlx4_0", CARD, &[own])], "mlx4_core");
    assert!(!alone.what.contains("bound to"), "{alone:?}");
    // Windows has none of the Linux commands.
    let windows = card("ibv_device0", "", &[first(Some(true)), port(2, Initializing, 0)]);
    let mut machine = Inventory::default();
    machine.infiniband.devices = vec![windows];
    let found = odd(&machine);
    assert!(found[0].to_do().contains("opensm -g 0x0002c903004c5e32"), "{found:?}");
    assert!(!found[0].to_do().contains("sudo"), "{found:?}");
}

#[test]
fn a_port_of_ethernet_serves_nobody() {
    let roce = IbPort { layer: Some(Layer::Ethernet), ..port(1, Active, 0) };
    let devices = [
        card("mlx5_0", CARD, &[roce]),
        card("mlx5_1", "0000:02:00.0", &[port(1, Initializing, 0)]),
    ];
    assert!(one(&devices, "mlx5_core").to_do().contains("start opensm"));
    // A port whose cable was pulled out is no sign of a manager, even if it still knows a LID.
    let pulled = IbPort { physical: Some(PhysicalState::Polling), ..port(1, LinkState::Down, 3) };
    let devices = [
        card("mlx5_0", CARD, &[pulled]),
        card("mlx5_1", "0000:02:00.0", &[port(1, Initializing, 0)]),
    ];
    assert!(one(&devices, "mlx5_core").to_do().contains("start opensm"));
}

#[test]
fn a_function_without_a_guid_needs_one_before_all_else() {
    let none = || {
        let mut port = port(1, Initializing, 4);
        port.gids = vec![gid("fe80:0000:0000:0000:0000:0000:0000:0000")];
        port
    };
    let mut host = machine(&[function(Some(3), Guid::NONE, none())], "mlx5_core");
    host.network.nics = vec![Nic {
        name: "ib0".to_owned(),
        pci: CARD.to_owned(),
        kind: "ipoib".to_owned(),
        ..Nic::default()
    }];
    let found = odd(&host);
    assert!(found[0].what.contains("no GUID") && found[0].what.contains("LID 4"), "{found:?}");
    let command = "sudo ip link set dev ib0 vf 3 node_guid $guid port_guid $guid";
    assert!(found[0].to_do().contains(command), "{found:?}");
    assert!(!starts_a_manager(&found[0]), "{found:?}");
    // The number of the function is unknown, so that no command can set its GUID.
    let odd = one(&[function(None, Guid::NONE, port(1, Initializing, 0))], "mlx5_core");
    assert!(
        odd.to_do().contains("the functions of the IPoIB port of 0000:01:00.0: ip link show")
            && !odd.to_do().contains("ip link set"),
        "{odd:?}"
    );
    assert!(!starts_a_manager(&odd), "{odd:?}");
    // A device of an older generation that has a GUID, while its port has none.
    let odd = one(
        &[function(Some(3), Guid(7), none()), card("mlx4_0", CARD, &[port(1, Active, 4)])],
        "mlx4_core",
    );
    let file = "/sys/class/infiniband/mlx4_0/iov/ports/1/admin_guids/4";
    assert!(odd.what.contains("no GUID") && odd.to_do().contains(file), "{odd:?}");
    // A card itself, not a virtual function.
    let blank = IbDevice { node_guid: Some(Guid::NONE), ..card("mlx5_0", CARD, &[none()]) };
    assert!(one(&[blank], "mlx5_core").to_do().contains("mstflint -d 0000:01:00.0 query"));
}

#[test]
fn a_guest_sees_a_function_by_its_device_alone() {
    let seen = |id: u16, node_guid: Guid| {
        let own = IbDevice {
            node_guid: Some(node_guid),
            ..card("mlx5_0", CARD, &[port(1, Initializing, 0)])
        };
        let mut guest = machine(&[own], "mlx5_core");
        (guest.pci[0].vendor, guest.pci[0].device) = (0x15b3, id);
        odd(&guest).remove(0)
    };
    let (virtual_one, card) = (0x101c, 0x101b);
    assert!(
        seen(virtual_one, Guid::NONE)
            .to_do()
            .contains("on the host of this guest, its functions: ip link show")
    );
    assert!(seen(virtual_one, Guid(1)).to_do().contains("on the host of this guest: ibstat"));
    assert!(seen(card, Guid(1)).to_do().contains("start opensm"));
}

#[test]
fn ports_that_are_set_up_or_need_no_manager_are_not_odd() {
    let silent =
        |port: IbPort| odd(&machine(&[card("mlx5_0", CARD, &[port])], "mlx5_core")).is_empty();
    assert!(silent(port(1, Active, 1)));
    assert!(!silent(port(1, Armed, 1)));
    for layer in [Some(Layer::Ethernet), None] {
        assert!(silent(IbPort { layer, ..port(1, Initializing, 0) }));
    }
    let polling = Some(PhysicalState::Polling);
    assert!(silent(IbPort { physical: polling, ..port(1, Initializing, 0) }));
    assert!(silent(IbPort { state: None, ..port(1, Initializing, 0) }));
}

#[test]
fn a_link_that_is_down_on_a_wire_that_works_is_held_down() {
    let down = |device: &dyn Fn(IbPort) -> IbDevice, layer, driver: &str| {
        let port = IbPort { layer: Some(layer), ..port(1, LinkState::Down, 0) };
        let mut found = find(&machine(&[device(port)], driver));
        assert_eq!((found.len(), found[0].id), (1, "ib-held-down"), "{found:?}");
        found.remove(0).to_do()
    };
    let own = |port| card("mlx5_0", CARD, &[port]);
    let fix = down(&own, Layer::InfiniBand, "mlx5_core");
    assert!(fix.contains("sudo ibportstate -C mlx5_0 -P 1 -D 0 1 enable"), "{fix}");
    let lent = |port| function(Some(2), Guid(7), port);
    let fix = down(&lent, Layer::InfiniBand, "mlx5_core");
    assert!(fix.contains("; do sudo ip link set dev $port vf 2 state auto; done"), "{fix}");
    let path = |port| card("hfi1_0", CARD, &[port]);
    assert_eq!(
        down(&path, Layer::InfiniBand, "hfi1"),
        "switch the port off and on again: sudo opaportconfig bounce"
    );
    let fix = down(&own, Layer::Ethernet, "mlx5_core");
    let each = "for port in $(ls /sys/class/infiniband/mlx5_0/device/net); do sudo ip link set $port up; done";
    assert!(fix.contains(each), "{fix}");
    for (state, physical) in [
        (Active, PhysicalState::LinkUp),
        (LinkState::Down, PhysicalState::Polling),
        (LinkState::Down, PhysicalState::Sleep),
    ] {
        let port = IbPort { physical: Some(physical), ..port(1, state, 1) };
        let found = find(&machine(&[own(port)], "mlx5_core"));
        assert!(found.iter().all(|odd| odd.id != "ib-held-down"), "{found:?}");
    }
}
