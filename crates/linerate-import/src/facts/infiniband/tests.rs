use linerate_facts::infiniband::{Guid, IbPort, Layer, LinkState, PhysicalState};
use linerate_units::Rate;

use super::super::samples::{merged, of, text, words};
use super::rate_of;

fn ports(name: &str) -> Vec<IbPort> {
    let (all, _) = of(&[name]);
    all.infiniband.devices.into_iter().flat_map(|device| device.ports).collect()
}

const GIGA: u64 = 1_000_000_000;

#[test]
fn a_port_that_is_shown_twice_is_one() {
    let text = text("ibstat/two-ports.txt");
    let body = text.split_once("Port 1:").unwrap().1;
    let (all, _) = merged(&[&format!("{text}\tPort 1:{body}")]);
    let (once, _) = merged(&[&text]);
    let numbers = |all: &[IbPort]| all.iter().map(|port| port.number).collect::<Vec<_>>();
    let ports = &all.infiniband.devices[0].ports;
    assert_eq!(numbers(ports), [1, 2]);
    assert_eq!(ports, &once.infiniband.devices[0].ports);
}

#[test]
fn ibstat_of_a_port_without_a_manager() {
    let (all, notes) = of(&["ibstat/before-manager.txt"]);
    let device = &all.infiniband.devices[0];
    assert_eq!((device.name.as_str(), device.firmware.as_str()), ("ibv_device0", "2.42.5000"));
    assert_eq!(device.model, "");
    assert_eq!(device.node_guid, Some(Guid(0x0002_c903_00aa_bbc0)));
    let [one, two] = &device.ports[..] else { panic!() };
    assert_eq!((one.number, one.state), (1, Some(LinkState::Initializing)));
    assert_eq!(one.physical, Some(PhysicalState::LinkUp));
    let rate = one.rate.as_ref().unwrap();
    assert_eq!((rate.rate, rate.to_string().as_str()), (Rate(56 * GIGA), "56 Gb/s (4X FDR)"));
    assert_eq!((one.lid, one.sm_lid, one.layer), (Some(0), Some(0), Some(Layer::InfiniBand)));
    assert_eq!(one.guid(), Some(Guid(0x0002_c903_00aa_bbc1)));
    assert_eq!((two.state, two.physical), (Some(LinkState::Down), Some(PhysicalState::Polling)));
    assert_eq!(two.rate, None);
    assert_eq!(
        words(&notes),
        ["ibv_device0 port 2 is down: its rate of 40 is no rate of a link, and is left out"]
    );
    assert_eq!(notes[0].line, Some(23));
}

#[test]
fn ibstat_of_linux_with_and_without_indents() {
    let two = ports("ibstat/two-ports.txt");
    assert_eq!(two[0].rate, None);
    assert_eq!(two[0].physical, Some(PhysicalState::Disabled));
    assert_eq!((two[1].lid, two[1].sm_lid), (Some(39), Some(13)));
    let bare = &ports("ibstat/without-indents.txt")[0];
    // The rate may be that of QDR or FDR10.
    let rate = bare.rate.as_ref().unwrap();
    assert_eq!((rate.rate, rate.width, rate.speed.as_str()), (Rate(40 * GIGA), 0, ""));
    assert_eq!(rate.to_string(), "40 Gb/s");
    assert!(bare.is_active());
}

#[test]
fn a_rate_that_no_link_has_is_unknown() {
    let (all, notes) = of(&["ibstat/ibsim-edr.txt"]);
    let port = &all.infiniband.devices[0].ports[0];
    assert_eq!((port.rate.as_ref(), port.lid), (None, Some(3)));
    assert!(words(&notes)[0].starts_with("no link has a rate of 104 Gb/s"), "{notes:?}");
    let known = |gigabits| rate_of(gigabits).map(|rate| rate.to_string());
    for (gigabits, words) in [
        (2, Some("2.5 Gb/s (1X SDR)")),
        (14, Some("14 Gb/s (1X FDR)")),
        (56, Some("56 Gb/s (4X FDR)")),
        (10, Some("10 Gb/s")),
        (40, Some("40 Gb/s")),
        (100, Some("100 Gb/s")),
        (55, None),
        (57, None),
        (104, None),
        (u64::MAX, None),
    ] {
        assert_eq!(known(gigabits).as_deref(), words, "{gigabits}");
    }
}

#[test]
fn ibstatus_has_the_rate_with_its_width() {
    let two = ports("ibstatus/roce.txt");
    assert_eq!(two[0].layer, Some(Layer::Ethernet));
    // For Ethernet, the kernel invents width and speed.
    assert_eq!(two[0].rate.as_ref().unwrap().to_string(), "100 Gb/s");
    assert_eq!((two[1].state, two[1].rate.as_ref()), (Some(LinkState::Down), None));
    let infiniband = text("ibstatus/roce.txt").replace("Ethernet", "InfiniBand");
    let (all, _) = merged(&[&infiniband]);
    let port = &all.infiniband.devices[0].ports[0];
    assert_eq!(port.rate.as_ref().unwrap().to_string(), "100 Gb/s (4X EDR)");
    assert_eq!(port.guid(), Some(Guid(0x8ae9_a4ff_fe00_0001)));
}

#[test]
fn ibv_devinfo_plain_and_verbose() {
    let (all, _) = of(&["ibv-devinfo/plain.txt"]);
    let devices = &all.infiniband.devices;
    let board = &devices[1];
    assert_eq!((board.name.as_str(), board.board.as_str()), ("mlx5_13", "MT_0000000838"));
    assert_eq!(board.ports[0].physical, None);
    assert_eq!(board.ports[0].layer, Some(Layer::Ethernet));
    let two = ports("ibv-devinfo/verbose.txt");
    assert_eq!(two[0].rate.as_ref().unwrap().to_string(), "200 Gb/s (4X HDR)");
    assert_eq!((two[0].lid, two[0].sm_lid), (Some(4), Some(1)));
    assert_eq!(two[0].gids[0].gid, "fe80:0000:0000:0000:88e9:a4ff:ff00:0001");
    assert_eq!((two[1].physical, two[1].rate.as_ref()), (Some(PhysicalState::Polling), None));
}

#[test]
fn a_cut_output_keeps_what_is_whole() {
    let whole = text("ibstat/two-ports.txt");
    let cut = &whole[..whole.find("SM lid: 13").unwrap()];
    let (all, _) = merged(&[cut]);
    let port = &all.infiniband.devices[0].ports[0];
    assert_eq!((port.lid, port.sm_lid), (Some(38), None));
    let none = crate::read(b"CA 'mlx4_0'\n").unwrap_err();
    assert!(none.to_string().contains("it ends before anything about a port"), "{none}");
    let near = crate::read(b"CA: 'mlx4_0'\n\tState: Active\n");
    assert!(near.is_err(), "{near:?}");
}

#[test]
fn perfquery_counts_by_lid_and_two_readings_stay_apart() {
    let first = text("perfquery/plain.txt");
    let later = first
        .replace("PortRcvErrors:...................120", "PortRcvErrors:...................170");
    let (all, notes) = merged(&[&format!("# perfquery\n{first}# sleep 60; perfquery\n{later}")]);
    let device = &all.infiniband.devices[0];
    assert_eq!((device.called().as_str(), device.ports.len()), ("LID 3", 1));
    let port = &device.ports[0];
    let of = |counters: &[linerate_facts::nic::Counter], name: &str| {
        counters.iter().find(|counter| counter.name == name).map(|counter| counter.value)
    };
    assert_eq!((port.number, port.lid), (1, Some(3)));
    assert_eq!(
        (of(&port.before, "port_rcv_errors"), of(&port.counters, "port_rcv_errors")),
        (Some(120), Some(170))
    );
    assert_eq!(of(&port.counters, "port_rcv_packets"), Some(9));
    assert_eq!(of(&port.counters, "symbol_error"), Some(4242));
    assert_eq!(words(&notes), [""; 0]);
    // A single reading has no earlier counts.
    let (all, _) = merged(&[&first]);
    assert!(all.infiniband.devices[0].ports[0].before.is_empty());
    // The counters belong to the host's port with this LID; the command may name the device.
    let stat = text("ibstat/two-ports.txt");
    let (all, _) = merged(&[&stat, &first.replace("Lid 3 ", "Lid 39 ")]);
    assert_eq!(all.infiniband.devices.len(), 1);
    assert_eq!(of(&all.infiniband.devices[0].ports[1].counters, "symbol_error"), Some(4242));
    let (all, _) = merged(&[&format!("$ perfquery -C mlx5_1 -P 1\n{first}")]);
    assert_eq!(all.infiniband.devices[0].name, "mlx5_1");
}

#[test]
fn ibqueryerrors_names_ports_of_nodes() {
    let (all, notes) = of(&["ibqueryerrors/star.txt"]);
    let devices = &all.infiniband.devices;
    let found: Vec<_> =
        devices.iter().map(|device| (device.called(), device.ports[0].number)).collect();
    let switch = ("GUID 0x0000000000200000".to_owned(), 2);
    assert_eq!(found, [switch, ("GUID 0x0000000000100003".to_owned(), 1)]);
    let counters = |at: usize| {
        let all = devices[at].ports[0].counters.iter();
        all.map(|c| (c.name.as_str(), c.value)).collect::<Vec<_>>()
    };
    assert_eq!(counters(0), [("symbol_error", 77)]);
    assert_eq!(counters(1), [("symbol_error", 4242), ("port_rcv_errors", 120)]);
    assert_eq!(words(&notes), [""; 0]);
    // After a large count, the same count is printed in brackets, in units of 1024.
    let large = "Errors for \"a\"\n   GUID 0x5 port 1: [PortXmitWait == 14681376621 (13.673G)]\n";
    let (all, _) = merged(&[large]);
    assert_eq!(all.infiniband.devices[0].ports[0].counters[0].value, 14_681_376_621);
}

#[test]
fn mlxlink_shows_the_link_and_what_is_wrong_with_it() {
    let port = |name: &str| {
        let (all, notes) = merged(&[&format!("# mlxlink -d mlx5_3 -c\n{}", text(name))]);
        let device = all.infiniband.devices.into_iter().next().unwrap();
        assert_eq!(device.name, "mlx5_3");
        (device.ports.into_iter().next().unwrap(), words(&notes))
    };
    let (port_of_ib, notes) = port("mlxlink/infiniband.txt");
    assert_eq!(port_of_ib.rate.as_ref().unwrap().to_string(), "200 Gb/s (4X HDR)");
    assert_eq!(
        (port_of_ib.state, port_of_ib.physical),
        (Some(LinkState::Active), Some(PhysicalState::LinkUp))
    );
    let counters: Vec<_> = port_of_ib.counters.iter().map(|c| (c.name.as_str(), c.value)).collect();
    assert_eq!(counters, [("symbol_error", 3), ("link_downed", 2), ("link_error_recovery", 1)]);
    assert_eq!(notes, [""; 0]);
    let (ethernet, _) = port("mlxlink/ethernet.txt");
    assert_eq!(
        (ethernet.layer, ethernet.rate.unwrap().rate),
        (Some(Layer::Ethernet), Rate(200 * GIGA))
    );
    let (unplugged, notes) = port("mlxlink/unplugged.txt");
    assert_eq!((unplugged.state, unplugged.rate), (Some(LinkState::Down), None));
    assert_eq!(notes, ["the card says of this link: Cable is unplugged."]);
}

#[test]
fn masks_and_packets_of_ports_are_kept() {
    let (all, _) = of(&["ibstat/before-manager.txt"]);
    assert_eq!(all.infiniband.devices[0].ports[0].manages, Some(false));
    let managing = text("ibstat/before-manager.txt").replacen("0x90580000", "0x9058000a", 1);
    let (all, _) = merged(&[&managing]);
    let managed: Vec<_> = all.infiniband.devices[0].ports.iter().map(|port| port.manages).collect();
    assert_eq!(managed, [Some(true), Some(false)]);
    let (all, _) = of(&["ibv-devinfo/plain.txt"]);
    let port = &all.infiniband.devices[0].ports[0];
    assert_eq!((port.mtu, port.mtu_max), (Some(1024), Some(4096)));
}
