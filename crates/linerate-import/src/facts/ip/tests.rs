use linerate_facts::Inventory;
use linerate_facts::nic::Nic;

use super::super::samples::{merged, of, text, words};

fn port<'a>(all: &'a Inventory, name: &str) -> &'a Nic {
    all.network.nics.iter().find(|nic| nic.name == name).unwrap()
}

#[test]
fn text_and_json_say_the_same() {
    let (text, _) = of(&["ip/stacked.txt"]);
    let (json, _) = of(&["ip-json/stacked.json"]);
    assert_eq!(text.network.nics.len(), 6);
    for nic in &text.network.nics {
        let other = port(&json, &nic.name);
        let facts = |nic: &Nic| {
            (
                nic.index,
                nic.kind.clone(),
                nic.driver.clone(),
                nic.up,
                nic.mtu,
                nic.qdisc.clone(),
                nic.stack.clone(),
            )
        };
        assert_eq!(facts(nic), facts(other), "{}", nic.name);
    }
    let (pair, bridge) = (port(&text, "veth0"), port(&text, "br0"));
    assert_eq!((pair.kind.as_str(), pair.stack.above), ("veth", Some(bridge.index)));
    assert_eq!(bridge.stack.below, [pair.index]);
    assert!(pair.stack.below.is_empty(), "the other end of a pair is not below");
    assert_eq!(port(&text, "macv0").stack.below, [port(&text, "veth1").index]);
    assert_eq!((port(&text, "vx0").up, port(&text, "vx0").mtu), (false, Some(1450)));
    assert!(port(&text, "lo").is_virtual);
}

#[test]
fn a_tunnel_and_its_mode_are_read_of_text_and_of_json() {
    let text = "5: vx0: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UNKNOWN mode DEFAULT group default\n    \
                link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff promiscuity 0\n    \
                vxlan WHAT srcport 0 0 dstport 4789\n2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP\n    \
                link/ether 00:00:5e:00:53:02 brd ff:ff:ff:ff:ff:ff\n";
    let json = r#"[{"ifindex":5,"ifname":"vx0","flags":["UP","LOWER_UP"],"mtu":1500,"linkinfo":{"info_kind":"vxlan",
                "info_data":{WHAT}}},{"ifindex":2,"ifname":"eth0","flags":["UP","LOWER_UP"],"mtu":1500}]"#;
    let read = |sample: &str, what: &str| {
        let (all, _) = merged(&[&sample.replace("WHAT", what)]);
        let stack = port(&all, "vx0").stack.clone();
        let tunnel = stack.tunnel.unwrap();
        let odd = linerate_facts::odd::find(&all).len();
        (stack.below, tunnel.version, tunnel.external, odd)
    };
    let plain = (vec![2], Some(4), false, 1);
    assert_eq!(read(text, "id 12 local 10.20.0.7 dev eth0"), plain);
    let keys = r#""id":12,"local":"10.20.0.7","link":"eth0""#;
    assert_eq!(read(json, keys), plain);
    let led = (vec![], None, true, 0);
    assert_eq!(read(text, "external id 0"), led);
    assert_eq!(read(json, r#""external":true,"id":0"#), led);
}

#[test]
fn a_bond_and_its_members_have_aggregators() {
    let text = "9: bond0: <BROADCAST,MASTER,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default\n    \
                link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff promiscuity 0\n    \
                bond mode 802.3ad miimon 100 xmit_hash_policy layer3+4 ad_aggregator 1 ad_num_ports 1 \
                ad_partner_mac 00:00:5e:00:53:07\n\
                2: eth0: <BROADCAST,SLAVE,UP,LOWER_UP> mtu 1500 qdisc mq master bond0 state UP\n    \
                link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff\n    \
                bond_slave state ACTIVE mii_status UP ad_aggregator_id 2 ad_actor_oper_port_state 61\n";
    let json = r#"[{"ifindex":9,"ifname":"bond0","linkinfo":{"info_kind":"bond","info_data":{"mode":"802.3ad",
                "ad_info":{"aggregator":1,"partner_mac":"00:00:5e:00:53:07"}}}},{"ifindex":2,"ifname":"eth0",
                "master":"bond0","linkinfo":{"info_slave_kind":"bond","info_slave_data":{"ad_aggregator_id":2}}}]"#;
    for sample in [text, json] {
        let (all, _) = merged(&[sample]);
        let bond = port(&all, "bond0").stack.bond.clone().unwrap();
        assert_eq!((bond.aggregator, bond.partner.as_str()), (Some(1), "00:00:5e:00:53:07"));
        assert_eq!(port(&all, "eth0").stack.aggregator, Some(2));
    }
}

#[test]
fn counters_are_found_by_their_names() {
    let (all, notes) = of(&["ip/counters.txt"]);
    let errors = port(&all, "eth0").errors;
    assert_eq!(
        (errors.rx_errors, errors.rx_missed, errors.collisions),
        (Some(0), Some(0), Some(0))
    );
    assert_eq!(errors.carrier_changes, Some(2));
    assert_eq!(words(&notes), [""; 0]);
    let old = "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default\n    \
               link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff\n    \
               RX: bytes  packets  errors  dropped overrun mcast   \n    \
               100        10       1       2       3       0       \n    \
               RX errors: length   crc     frame   fifo    missed\n               \
               0        4       0       5       6       \n    \
               TX: bytes  packets  errors  dropped carrier collsns \n    \
               4.7M       10       7       8       0       9       \n";
    let (all, _) = merged(&[old]);
    let errors = port(&all, "eth0").errors;
    assert_eq!(
        (errors.rx_errors, errors.rx_dropped, errors.rx_missed),
        (Some(1), Some(2), Some(6))
    );
    assert_eq!((errors.rx_crc, errors.rx_fifo), (Some(4), Some(5)));
    assert_eq!(
        (errors.tx_errors, errors.tx_dropped, errors.collisions),
        (Some(7), Some(8), Some(9))
    );
    let (_, notes) = merged(&[&old.replace(" 7       8", " 7.1K    8")]);
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn kinds_of_ports_and_their_modes() {
    let shown = "3: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP group default\n    \
                 link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 65535\n    \
                 bond mode active-backup active_slave eth0 miimon 100 xmit_hash_policy layer2 numtxqueues 16\n\
                 4: eth0: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 9000 qdisc mq master bond0 state UP group default\n    \
                 link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff parentbus pci parentdev 0000:01:00.0\n    \
                 bond_slave state ACTIVE mii_status UP\n\
                 5: bond0.7@bond0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP group default\n    \
                 link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff\n    \
                 vlan protocol 802.1Q id 7 <REORDER_HDR>\n\
                 6: ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 2044 qdisc mq state UP group default qlen 256\n    \
                 link/infiniband 80:00:02:08:fe:80 brd 00:ff:ff:ff\n    \
                 ipoib pkey 0xffff mode datagram umcast 0000\n    \
                 inet 192.0.2.7/24 brd 192.0.2.255 scope global ib0\n\
                 7: eth9@if3: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN group default\n    \
                 link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff link-netnsid 0\n    \
                 macvlan mode bridge\n";
    let (all, notes) = merged(&[shown]);
    let bond = port(&all, "bond0").stack.bond.clone().unwrap();
    assert_eq!(
        (bond.mode.as_str(), bond.hash.as_str(), bond.active),
        ("active-backup", "layer2", Some(4))
    );
    let card = port(&all, "eth0");
    assert_eq!(
        (card.pci.as_str(), card.kind.as_str(), card.is_virtual),
        ("0000:01:00.0", "", false)
    );
    let tagged = port(&all, "bond0.7");
    assert_eq!((tagged.stack.vlan, &tagged.stack.below[..]), (Some(7), &[3][..]));
    let interface = &all.infiniband.interfaces[0];
    assert_eq!((interface.name.as_str(), interface.mode.as_str()), ("ib0", "datagram"));
    assert_eq!(interface.addresses.as_deref(), Some(&["192.0.2.7".to_owned()][..]));
    assert!(!port(&all, "ib0").is_virtual && port(&all, "eth9").stack.below_hidden);
    assert_eq!(words(&notes), [""; 0]);
}

#[test]
fn json_ends_where_its_document_ends() {
    let both = format!("{}\n{}", text("ip-json/counters.json"), text("numactl/two-nodes.txt"));
    let (all, notes) = merged(&[&both]);
    assert_eq!(all.processors.nodes.len(), 2);
    assert_eq!(port(&all, "eth0").device, "virtio2");
    assert_eq!(words(&notes), [""; 0]);
    assert!(crate::read(b"[{\"ifindex\":1,\"ifname\":\"lo\"").is_err());
}

#[test]
fn ifconfig_of_linux_and_macos() {
    for (name, mtu) in [("ifconfig/linux.txt", 1500), ("ifconfig/old.txt", 9000)] {
        let (all, notes) = of(&[name]);
        let nic = &all.network.nics[0];
        assert_eq!((nic.name.as_str(), nic.up, nic.mtu), ("eth0", true, Some(mtu)), "{name}");
        assert_eq!(nic.errors.rx_packets, Some(73_012), "{name}");
        assert_eq!(
            (nic.errors.rx_errors, nic.errors.rx_dropped, nic.errors.rx_crc),
            (Some(4), Some(12), Some(3)),
            "{name}"
        );
        assert!(all.network.nics.last().unwrap().is_virtual, "{name}");
        assert_eq!(words(&notes), [""; 0], "{name}");
    }
    let (all, _) = of(&["ifconfig/linux.txt"]);
    assert_eq!(all.infiniband.interfaces[0].name, "ib0");
    let (all, _) = of(&["ifconfig/macos.txt"]);
    let up: Vec<bool> = all.network.nics.iter().map(|nic| nic.up).collect();
    assert_eq!(up, [true, false]);
}

#[test]
fn an_interface_is_that_of_the_port_with_its_guid() {
    let link = "4: ib0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 2044 qdisc mq state UP mode DEFAULT group default qlen 256\n    \
                link/infiniband 80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:aa:bb:c1 brd 00:ff:ff:ff\n";
    let stat = text("ibstat/before-manager.txt");
    let (all, _) = merged(&[link, &stat]);
    assert_eq!(all.infiniband.interfaces[0].port, Some(1));
    let other = link.replace("bb:c1", "bb:c9");
    let (all, _) = merged(&[&other, &stat]);
    assert_eq!(all.infiniband.interfaces[0].port, None);
}
