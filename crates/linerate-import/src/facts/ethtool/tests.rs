use linerate_facts::Inventory;
use linerate_facts::nic::{Coalesce, Counter, Duplex, Nic, Setting};
use linerate_units::Rate;

use super::super::samples::{ids, merged, of, text, words};

fn port<'a>(all: &'a Inventory, name: &str) -> &'a Nic {
    all.network.nics.iter().find(|nic| nic.name == name).unwrap()
}

#[test]
fn two_ports_with_their_modes() {
    let (all, notes) = of(&["ethtool/two-ports.txt"]);
    let up = port(&all, "eth1");
    assert!(up.up);
    assert_eq!(up.link.speed, Some(Rate(10_000_000_000)));
    assert_eq!((up.link.duplex, up.link.autoneg), (Some(Duplex::Full), Some(true)));
    assert_eq!(up.link.supported.len(), 6);
    assert_eq!(up.link.peer.len(), 7);
    assert_eq!(up.link.fastest_common(), Some(Rate(10_000_000_000)));
    let down = port(&all, "eth2");
    // The speed of a port without a link would be that of an earlier link.
    assert_eq!((down.up, down.link.speed, down.link.duplex), (false, None, None));
    assert_eq!(down.down, "no cable");
    assert_eq!(words(&notes), [""; 0]);
}

#[test]
fn what_is_unknown_stays_unknown() {
    let (all, _) = of(&["ethtool/virtio.txt"]);
    let nic = port(&all, "eth0");
    assert_eq!((nic.up, nic.link.speed, nic.link.duplex), (true, None, None));
    assert_eq!(nic.link.autoneg, Some(false));
    assert!(nic.link.supported.is_empty());
    let strange = text("ethtool/veth.txt").replace("10000Mb/s", "10Gb/s");
    let (all, notes) = merged(&[&strange]);
    assert_eq!(port(&all, "veth0").link.speed, None);
    assert_eq!(words(&notes), ["not understood: `Speed: 10Gb/s`"]);
}

#[test]
fn what_only_root_may_read_is_passed_over() {
    let denied = text("ethtool/veth.txt")
        .replace("\tLink detected", "netlink error: Operation not permitted\n\tLink detected");
    let (all, notes) = merged(&[&denied]);
    assert!(port(&all, "veth0").up && notes.is_empty(), "{notes:?}");
}

#[test]
fn a_cut_output_says_that_its_end_is_missing() {
    let whole = text("ethtool/two-ports.txt");
    let cut = |at: &str| merged(&[&whole[..whole.find(at).unwrap()]]);
    let (all, notes) = cut("\tLink detected: yes");
    assert_eq!(port(&all, "eth1").link.speed, Some(Rate(10_000_000_000)));
    assert!(port(&all, "eth1").up && notes.is_empty(), "a speed says it");
    let (_, notes) = cut("\tSpeed: 10000Mb/s");
    assert_eq!(words(&notes), ["the end about eth1 is missing: whether it has a link is unknown"]);
}

#[test]
fn half_duplex_is_odd_only_with_a_link() {
    let half = text("ethtool/veth.txt").replace("10000Mb/s", "100Mb/s").replace("Full", "Half");
    assert_eq!(ids(&merged(&[&half]).0), ["duplex"]);
    let down = half.replace("Link detected: yes", "Link detected: no");
    assert_eq!(ids(&merged(&[&down]).0), [""; 0]);
}

#[test]
fn features_have_the_names_of_the_kernel() {
    let (all, _) = of(&["ethtool-features/virtio.txt"]);
    let offloads = port(&all, "eth0").offloads.as_ref().unwrap();
    let has = |list: &[String], name: &str| list.iter().any(|feature| feature == name);
    for on in [
        "rx-checksum",
        "tx-checksum-ip-generic",
        "tx-tcp-segmentation",
        "tx-generic-segmentation",
        "rx-gro",
    ] {
        assert!(has(&offloads.on, on), "{on}");
    }
    // A feature that is off and fixed is one that the port does not have.
    assert!(!has(&offloads.off, "rx-lro") && !has(&offloads.on, "rx-lro"));
    assert!(has(&offloads.off, "tx-tcp-mangleid-segmentation"));
    assert!(!has(&offloads.on, "scatter-gather"));
    assert_eq!(offloads.lacking(), [""; 0]);
    let off = text("ethtool-features/virtio.txt")
        .replace("generic-receive-offload: on", "generic-receive-offload: off");
    let (all, _) = merged(&[&off]);
    assert_eq!(port(&all, "eth0").offloads.as_ref().unwrap().lacking(), ["GRO"]);
}

#[test]
fn rings_channels_and_coalescing() {
    let (all, _) = of(&["ethtool-parameters/virtio.txt"]);
    let nic = port(&all, "eth0");
    let setting = |now, most| Setting { now, most };
    assert_eq!(nic.rings.unwrap().rx, setting(Some(256), Some(256)));
    let channels = nic.channels.unwrap();
    assert_eq!(channels.combined, setting(Some(1), Some(1)));
    assert_eq!(channels.rx, setting(None, None));
    let coalesce = nic.coalesce.unwrap();
    assert_eq!((coalesce.adaptive_rx, coalesce.adaptive_tx), (Some(false), None));
    assert_eq!((coalesce.rx_usecs, coalesce.rx_frames), (Some(0), Some(1)));
    let (all, _) = of(&["ethtool-parameters/pause.txt"]);
    let pause = port(&all, "eth1").pause.unwrap();
    assert_eq!((pause.autoneg, pause.rx, pause.tx), (Some(true), Some(true), Some(false)));
}

#[test]
fn old_versions_write_0_for_unknown() {
    let old = text("ethtool-parameters/virtio.txt").replace("n/a", "0");
    let (all, _) = merged(&[&old]);
    let channels = port(&all, "eth0").channels.unwrap();
    assert_eq!(channels.rx, Setting::default());
    assert_eq!(channels.combined.now, Some(1));
}

#[test]
fn counters_belong_to_the_port_of_the_command() {
    let sample = text("ethtool-counters/virtio.txt").replace("rx0_drops: 0", "rx0_drops: 7");
    let (all, _) = merged(&[&sample]);
    let counters = &port(&all, "eth0").counters;
    let drops = counters.iter().find(|counter| counter.name == "rx*_drops").unwrap();
    assert_eq!(drops.value, 7);
    let without = sample.lines().skip(1).collect::<Vec<_>>().join("\n");
    let refused = crate::read(without.as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("the name of the port is missing"), "{refused}");
}

#[test]
fn the_driver_links_a_port_to_its_slot() {
    let (all, notes) = of(&["ethtool-driver/virtio-veth.txt"]);
    let (nic, pair) = (port(&all, "eth0"), port(&all, "veth0"));
    assert_eq!((nic.driver.as_str(), nic.pci.as_str()), ("virtio_net", "0000:00:03.0"));
    assert!(nic.is_virtual && pair.is_virtual);
    assert!(pair.is_software() && !nic.is_software());
    assert_eq!(all.pci[0].names, ["eth0"]);
    assert_eq!(words(&notes), [""; 0]);
    let bare = text("ethtool-driver/virtio-veth.txt");
    let bare: Vec<&str> = bare.lines().filter(|line| !line.starts_with('[')).collect();
    let refused = crate::read(bare.join("\n").as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("the name of the port is missing"), "{refused}");
}

#[test]
fn drops_are_a_share_of_the_packets_that_the_driver_counts() {
    let odd = |unicast: u64, dropped: u64, kernel: Option<&str>| {
        let port = "$ ethtool eth0\nSettings for eth0:\n\tSpeed: 1000Mb/s\n\tLink detected: yes\n";
        let driver = "$ ethtool -i eth0\ndriver: lan78xx\nversion: 4.19.42-v7+\nbus-info: usb-3f980000.usb-1.1.1\n";
        let counters = format!(
            "$ ethtool -S eth0\nNIC statistics:\n     RX Dropped Frames: {dropped}\n     RX Unicast Frames: {unicast}\n     \
             RX Broadcast Frames: 133\n     RX Multicast Frames: 20\n"
        );
        let all = [port, driver, &counters].into_iter().chain(kernel);
        ids(&merged(&all.collect::<Vec<_>>()).0)
    };
    assert_eq!(odd(36_542, 2_291, None), ["local-drops"]);
    assert_eq!(odd(36_542, 3, None), [""; 0]);
    assert_eq!(odd(2_291_000, 2_291, None), [""; 0], "a thousandth of them");
    let kernel = "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000\n    \
        link/ether b8:27:eb:00:00:01 brd ff:ff:ff:ff:ff:ff\n    \
        RX: bytes  packets  errors  dropped overrun mcast\n    55213310 9900000 0 0 0 0\n    \
        TX: bytes  packets  errors  dropped carrier collsns\n    1512204 19231 0 0 0 0\n";
    assert_eq!(odd(36_542, 2_291, Some(kernel)), [""; 0], "the kernel counts more");
}

#[test]
fn the_first_of_two_readings_shows_what_has_changed() {
    let crc = |count: u32| format!("$ ethtool -S eth0 | grep crc\n     rx_crc_errors: {count}\n");
    let delay = |micros: u32| {
        format!("Coalesce parameters for eth0:\nAdaptive RX: off  TX: off\nrx-usecs: {micros}\n")
    };
    let of = |text: &str| merged(&[text]).0.network.nics.remove(0);
    let value = |counters: &[Counter]| counters.first().map(|counter| counter.value);
    for text in [format!("{}{}", crc(5), crc(9)), format!("{}words\n{}{}", crc(5), crc(7), crc(9))]
    {
        let nic = of(&text);
        assert_eq!((value(&nic.before.counters), value(&nic.counters)), (Some(5), Some(9)));
    }
    assert_eq!(value(&of(&crc(5)).before.counters), None);
    let nic = of(&format!("{}words\n{}", delay(50), delay(0)));
    let micros = |coalesce: Option<Coalesce>| coalesce.and_then(|coalesce| coalesce.rx_usecs);
    assert_eq!((micros(nic.before.coalesce), micros(nic.coalesce)), (Some(50), Some(0)));
    assert_eq!(of(&delay(50)).before.coalesce, None);
}

#[test]
fn parts_that_grep_left_are_of_the_port_of_the_command() {
    let of = |text: &str| {
        let (all, _) = merged(&[text]);
        let nics = all.network.nics.into_iter();
        nics.map(|nic| (nic.name, nic.link.speed, nic.up)).collect::<Vec<_>>()
    };
    let speed = Some(Rate(1_000_000_000));
    let whole = "$ ethtool eth7 | grep Speed\n\tSpeed: 1000Mb/s\n$ ethtool eth7\nSettings for eth7:\n\tSpeed: 1000Mb/s\n";
    assert_eq!(of(whole), [("eth7".to_owned(), speed, true)]);
    assert_eq!(of("\tSpeed: 1000Mb/s\n\tDuplex: Full\n"), [("port".to_owned(), speed, true)]);
    assert!(crate::read(b"Speed: 1000\n").is_err());
    let two = of("\tSpeed: 1000Mb/s\n\tSpeed: 10000Mb/s\n");
    assert_eq!(two, [("port".to_owned(), None, true)], "of two ports");
}
