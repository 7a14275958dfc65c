use super::super::samples::{merged, of, words};

#[test]
fn bandwidth_of_new_and_old_kernels() {
    let (all, notes) = of(&["dmesg/bandwidth.txt"]);
    let device = |address: &str| {
        let found = all.pci.iter().find(|device| device.address.to_string() == address).unwrap();
        let words = |link: Option<linerate_facts::pci::Link>| link.map(|link| link.to_string());
        (words(found.now), words(found.max))
    };
    let known = |text: &str| Some(text.to_owned());
    assert_eq!(device("0000:b3:00.1"), (None, known("16 GT/s x16")));
    assert_eq!(device("0000:b2:00.0"), (known("8 GT/s x8"), None));
    assert_eq!(device("0004:01:00.0"), (known("8 GT/s x8"), known("8 GT/s x8")));
    assert_eq!(words(&notes), [""; 0]);
    let odd = linerate_facts::odd::find(&all);
    assert_eq!((odd.len(), odd[0].id), (1, "pcie-slot"));
    assert_eq!(
        odd[0].what,
        "the card could use 16 GT/s x16 (252 Gb/s), and the link at 0000:b2:00.0 leaves it 8 GT/s x8 (63 Gb/s)"
    );
}

#[test]
fn the_last_line_about_a_card_counts() {
    let slow = "[    9.0] ixgbe 0000:01:00.0: 4.000 Gb/s available PCIe bandwidth, limited by 5.0 GT/s PCIe x1 link at 0000:00:00.0 (capable of 32.000 Gb/s with 5.0 GT/s PCIe x8 link)\n";
    let fast = "[   10.0] ixgbe 0000:01:00.0: 32.000 Gb/s available PCIe bandwidth (5.0 GT/s PCIe x8 link)\n";
    let odd = |text: String| super::super::samples::ids(&merged(&[&text]).0);
    assert_eq!(odd(format!("{fast}{slow}")), ["pcie-slot"]);
    assert_eq!(odd(format!("{slow}{fast}")), [""; 0]);
}

#[test]
fn links_of_many_drivers() {
    let (all, notes) = of(&["dmesg/links.txt"]);
    let port = |name: &str| {
        let nic = all.network.nics.iter().find(|nic| nic.name == name).unwrap();
        let device = all.pci.iter().find(|device| device.address.to_string() == nic.pci).unwrap();
        (device.driver.as_str(), nic.up, nic.link.speed.map(|speed| speed.0 / 1_000_000))
    };
    // The last line about `eth4` says that its link is down.
    assert_eq!(port("eth4"), ("ixgbe", false, None));
    assert_eq!(port("eth0"), ("igb", true, Some(1_000)));
    assert_eq!(port("eth1"), ("tg3", true, Some(1_000)));
    assert_eq!(port("enp4s0"), ("r8169", true, Some(2_500)));
    assert_eq!(port("eth2"), ("bnxt_en", true, Some(25_000)));
    assert_eq!(port("eth3"), ("atlantic", true, Some(10_000)));
    assert_eq!(port("ens1f0"), ("mlx5_core", true, None));
    assert_eq!(all.network.nics.len(), 7, "a slot is no port");
    assert_eq!(words(&notes), [""; 0]);
}

#[test]
fn a_link_that_fell_back_is_a_cable_until_it_is_up_at_another_speed() {
    let line = |text: &str| format!("Jun 14 14:09:14 box kernel: {text}\n");
    let phy = line(
        "Realtek Internal NBASE-T PHY r8169-0-a00:00: Downshift occurred from negotiated speed 1Gbps to actual speed 100Mbps, \
         check cabling!",
    );
    let up = |how: &str| {
        line(&format!("r8169 0000:0a:00.0 eno1: Link is Up - {how} - flow control off"))
    };
    let slow = up("100Mbps/Full (downshifted)");
    let odd = |text: &[&str]| super::super::samples::ids(&merged(text).0);
    assert_eq!(odd(&[&format!("{phy}{slow}")]), ["port-speed"]);
    assert_eq!(odd(&[&up("100Mbps/Full")]), [""; 0]);
    assert_eq!(odd(&[&format!("{slow}{}", up("1Gbps/Full"))]), [""; 0]);
    let down = line("r8169 0000:0a:00.0 eno1: Link is Down");
    assert_eq!(odd(&[&format!("{slow}{down}")]), [""; 0]);
    // Another output shows the present speed.
    let shown =
        |speed: u32| format!("Settings for eno1:\n\tSpeed: {speed}Mb/s\n\tLink detected: yes\n");
    assert_eq!(odd(&[&slow, &shown(100)]), ["port-speed"]);
    assert_eq!(odd(&[&slow, &shown(1000)]), [""; 0]);
}

#[test]
fn lines_with_other_stamps_are_read_and_other_lines_are_not() {
    let line = "Nov 17 13:44:29 host kernel: [12966.683279] ixgbe 0000:06:00.1 eth4: NIC Link is Up 10 Gbps";
    let (all, _) = merged(&[line]);
    assert_eq!(all.network.nics[0].name, "eth4");
    for other in [
        "[    1.0] ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
        "[    1.0] IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
        "[    1.0] pci 0000:00:1c.0: PCI bridge to [bus 01]",
        "mlx5_core 0000:01:00.0: 63.008 Gb/s available PCIe bandwidth (fast link)",
    ] {
        assert!(crate::read(other.as_bytes()).is_err(), "{other}");
    }
}
