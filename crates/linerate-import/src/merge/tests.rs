use linerate_facts::finding::Finding;
use linerate_facts::odd;

use crate::facts::samples::{ids, merged, of, text, words};

#[test]
fn a_port_and_its_device_are_linked_by_the_slot() {
    let driver = "$ ethtool -i eth0\ndriver: igb\nversion: 6.1\nfirmware-version: 1.2\nbus-info: 0000:02:00.0\n";
    let settings = "Settings for eth0:\n\tSpeed: 1000Mb/s\n\tDuplex: Full\n\tAuto-negotiation: on\n\tLink detected: yes\n";
    let card =
        text("lspci/slot-wide.txt").replace("Interrupt: pin", "NUMA node: 1\n\tInterrupt: pin");
    for order in [[driver, settings, card.as_str()], [card.as_str(), settings, driver]] {
        let (all, notes) = merged(&order);
        let nic = &all.network.nics[0];
        assert_eq!(
            (nic.name.as_str(), nic.driver.as_str(), nic.up, nic.node),
            ("eth0", "igb", true, Some(1))
        );
        let device = all.pci.iter().find(|device| device.names == ["eth0"]).unwrap();
        assert_eq!(
            (device.driver.as_str(), device.max.unwrap().to_string()),
            ("", "8 GT/s x16".to_owned())
        );
        assert_eq!(words(&notes), [""; 0]);
        assert_eq!(ids(&all), [""; 0]);
    }
}

#[test]
fn a_known_value_counts_for_more_than_an_unknown_one() {
    let (all, notes) = of(&["ibstat/two-ports.txt"]);
    let status = "Infiniband device 'mlx4_0' port 2 status:\n\tdefault gid:\t fe80:0000:0000:0000:f452:1403:00aa:bbc2\n\t\
                  rate:\t\t 56 Gb/sec (4X FDR)\n\tlink_layer:\t InfiniBand\n";
    let (both, more) = merged(&[&text("ibstat/two-ports.txt"), status]);
    let (first, second) =
        (&all.infiniband.devices[0].ports[1], &both.infiniband.devices[0].ports[1]);
    assert_eq!(first.state, second.state);
    assert_eq!(second.gids[0].gid, "fe80:0000:0000:0000:f452:1403:00aa:bbc2");
    assert_eq!(first.guid(), second.guid());
    assert_eq!(notes.len(), more.len());
    // ibstat's rate, without width and speed, does not replace that of ibstatus.
    let roce = "CA 'mlx5_0'\nPort 1:\nState: Active\nRate: 100\nLink layer: InfiniBand\n";
    let status = text("ibstatus/roce.txt").replace("Ethernet", "InfiniBand");
    for order in [[roce, status.as_str()], [status.as_str(), roce]] {
        let (all, _) = merged(&order);
        assert_eq!(
            all.infiniband.devices[0].ports[0].rate.as_ref().unwrap().to_string(),
            "100 Gb/s (4X EDR)"
        );
    }
}

#[test]
fn two_different_values_are_noted_and_the_later_one_counts() {
    let before = text("ibstat/before-manager.txt");
    let after =
        before.replace("State: Initializing", "State: Active").replace("SM lid: 0", "SM lid: 1");
    let (all, notes) = merged(&[&before, &after]);
    assert!(all.infiniband.devices[0].ports[0].is_active());
    let words = words(&notes);
    assert!(
        words.contains(&"ibv_device0 port 1: state is initializing in one output and active in a later one, which counts".to_owned()),
        "{words:?}"
    );
    let up =
        "Settings for eth0:\n\tSpeed: 1000Mb/s\n\tAuto-negotiation: on\n\tLink detected: yes\n";
    let down = "Settings for eth0:\n\tAuto-negotiation: on\n\tLink detected: no\n";
    let (all, notes) = merged(&[up, down]);
    assert_eq!((all.network.nics[0].up, all.network.nics[0].link.speed), (false, None));
    assert_eq!(notes.len(), 1, "{notes:?}");
    // An output that does not show the state of a link does not change it.
    let (all, notes) = merged(&[up, &text("ethtool-features/virtio.txt")]);
    assert!(all.network.nics[0].up && notes.is_empty(), "{notes:?}");
}

#[test]
fn ports_without_an_index_get_one_of_their_own() {
    let (all, _) = of(&["ethtool/two-ports.txt", "ip/addresses.txt"]);
    let mut indices: Vec<u32> = all.network.nics.iter().map(|nic| nic.index).collect();
    indices.sort_unstable();
    indices.dedup();
    assert_eq!(indices.len(), all.network.nics.len());
    let known = all.network.nics.iter().find(|nic| nic.name == "eth0").unwrap();
    assert_eq!(known.index, 4);
    // A later output has the index.
    let (all, _) = of(&["ethtool/virtio.txt", "ip/addresses.txt"]);
    assert_eq!(all.network.nics.iter().find(|nic| nic.name == "eth0").unwrap().index, 4);
}

#[test]
fn a_pasted_session_is_one_machine() {
    let session =
        ["ethtool-driver/virtio-veth.txt", "ethtool-counters/virtio.txt", "lspci/virtual-vv.txt"];
    let session: String = session.iter().map(|name| text(name)).collect();
    let session = format!("{session}$ cat /proc/interrupts\n{}", text("interrupts/virtual.txt"));
    let (all, notes) = merged(&[&session]);
    assert_eq!(words(&notes), [""; 0]);
    let served = all.interrupts.by_port(&all.network.nics);
    let eth0 = all.network.nics.iter().find(|nic| nic.name == "eth0").unwrap();
    assert_eq!(served[&eth0.index].len(), 3);
    // Counters of zero are removed once the driver is known.
    assert!(eth0.counters.is_empty());
    assert_eq!(ids(&all), [""; 0]);
}

fn odd(names: &[&str]) -> Vec<Finding> {
    odd::find(&of(names).0)
}

#[test]
fn a_port_without_a_manager_is_explained_from_ibstat_alone() {
    let found = odd(&["ibstat/before-manager.txt"]);
    let [waits, no_cable] = &found[..] else { panic!("{found:?}") };
    assert_eq!((waits.id, waits.subject.as_str()), ("unserved-port", "ibv_device0 port 1"));
    assert_eq!(waits.what, "Initializing: the wire works, but the port has no address yet");
    assert!(waits.fix.text().contains("opensm"), "{:?}", waits.fix);
    assert_eq!((no_cable.id, no_cable.subject.as_str()), ("ib-no-link", "ibv_device0 port 2"));
    let all = format!("{found:?}");
    assert!(!all.contains("40"), "the rate of a port without a cable is shown: {all}");
}

#[test]
fn a_card_in_a_narrow_slot_is_odd_and_one_in_a_wide_slot_is_not() {
    let found = odd(&["lspci/slot-narrow.txt"]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].id, found[0].subject.as_str()), ("pcie-slot", "0000:02:00.0 Ethernet"));
    assert!(found[0].what.contains("8 GT/s x4 (31.5 Gb/s) at most"), "{}", found[0].what);
    assert_eq!(odd(&["lspci/slot-wide.txt"]), []);
}

#[test]
fn nothing_is_said_about_a_healthy_machine() {
    let driver = "$ ethtool -i eth1\ndriver: atlantic\nversion: 6.1\nfirmware-version: 1.3\nbus-info: 0000:02:00.0\n";
    let ethtool = text("ethtool/two-ports.txt");
    let ethtool = &ethtool[..ethtool.find("Settings for eth2").unwrap()];
    let features = text("ethtool-features/virtio.txt").replace("eth0", "eth1");
    let texts = [
        driver,
        ethtool,
        &features,
        &text("lspci/slot-wide.txt"),
        &text("numactl/two-nodes.txt"),
        &text("lscpu/two-sockets.txt").replace("0-15", "0-63"),
        "CA 'mlx5_0'\nPort 1:\nState: Active\nPhysical state: LinkUp\nRate: 100\nBase lid: 4\nSM lid: 1\nLink layer: InfiniBand\n",
    ];
    let (all, _) = merged(&texts);
    assert_eq!(odd::find(&all), []);
    assert!(all.network.nics[0].is_fast());
}

/// A table of interrupts in which queue `n` of eth1 is served by CPU `by(n)` of eight.
fn interrupts(by: impl Fn(usize) -> usize) -> String {
    let list = |word: &dyn Fn(usize) -> String| (0..8).map(word).collect::<Vec<_>>();
    let head = list(&|cpu| format!("CPU{cpu}")).join("  ");
    let row = |queue: usize| {
        let count = |cpu| if cpu == by(queue) { "5000" } else { "0" }.to_owned();
        let counts = list(&count).join("  ");
        format!(
            " {}: {counts}  PCI-MSIX-0000:02:00.0   {queue}-edge      eth1-TxRx-{queue}\n",
            40 + queue
        )
    };
    let rows = list(&row).concat();
    format!("{head}\n{rows}")
}

#[test]
fn queues_that_one_cpu_serves_are_odd_and_spread_ones_are_not() {
    let ethtool = text("ethtool/two-ports.txt");
    let ethtool = &ethtool[..ethtool.find("Settings for eth2").unwrap()];
    let (all, _) = merged(&[ethtool, &interrupts(|_| 3)]);
    assert_eq!(ids(&all), ["irq-crowded"]);
    let found = odd::find(&all);
    assert!(found[0].what.contains("all go to CPU 3 of 8"), "{}", found[0].what);
    assert_eq!(ids(&merged(&[ethtool, &interrupts(|queue| queue)]).0), [""; 0]);
    // Two ports whose indices are unknown are not taken for the same port.
    let both = ethtool.replace("eth1", "eth5") + ethtool;
    let found = odd::find(&merged(&[&both, &interrupts(|_| 3)]).0);
    let subjects: Vec<&str> = found.iter().map(|odd| odd.subject.as_str()).collect();
    assert_eq!(subjects, ["eth1"]);
}

#[test]
fn a_card_without_a_node_is_no_oddity_where_no_output_shows_nodes() {
    let (all, _) = of(&["lspci/virtual-nn.txt", "numactl/two-nodes.txt"]);
    assert_eq!(ids(&all), [""; 0]);
    // One device has a NUMA node, so for the other the firmware has not set one.
    let two = "01:00.0 Ethernet controller: Maker Model\n\tNUMA node: 0\n\tKernel driver in use: igb\n\
               02:00.0 Ethernet controller: Maker Model\n\tKernel driver in use: igb\n";
    let (all, _) = merged(&[two, &text("numactl/two-nodes.txt")]);
    assert_eq!(ids(&all), ["node-unknown"]);
}

#[test]
fn a_card_without_a_driver_is_odd_only_where_drivers_are_shown() {
    let card = "03:00.0 Infiniband controller [0207]: Mellanox Technologies MT27500 Family [ConnectX-3] [15b3:1003]\n";
    let other = "04:00.0 Ethernet controller [0200]: Maker Model [8086:1521]\n\tKernel driver in use: igb\n";
    assert_eq!(ids(&merged(&[card]).0), [""; 0]);
    assert_eq!(ids(&merged(&[&format!("{card}{other}")]).0), ["ib-no-driver"]);
}
