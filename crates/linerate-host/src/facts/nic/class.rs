//! Facts of ports read from /sys alone, for a directory tree, which cannot be queried by netlink.

use linerate_facts::nic::{
    Bond, Duplex, LinkModes, Nic, PortErrors, VIRTUAL_BUSES, VIRTUAL_DRIVERS, speed_of_mbps,
};
use linerate_facts::parse::link::{INFINIBAND, LOOPBACK};
use linerate_facts::parse::{sysctl, sysfs};

use super::super::few;
use super::{IPOIB, PortReader, Reader, USB};
use crate::{gap, read};

const CLASS: &str = "/sys/class/net";

impl Reader<'_> {
    /// Reads the ports that /sys lists. A gap for the failed kernel query was already added.
    pub(super) fn listed_nics(&mut self) -> Vec<Nic> {
        let names = self.machine.list(CLASS).unwrap_or_default();
        let (mut nics, mut missing) = (Vec::new(), Vec::new());
        for name in names {
            match self.listed_nic(&name) {
                Some(nic) => nics.push(nic),
                None => missing.push(name),
            }
        }
        if !missing.is_empty() {
            let why = format!("{CLASS} lists them without their files: {}", few(&missing));
            self.gaps.push(gap("facts.nic", &why, "ip link"));
        }
        nics.sort_by_key(|nic| nic.index);
        self.leads(&nics);
        nics
    }

    /// Reports tunnels for which a program may choose each packet's destination (`external`): no file shows whether it
    /// does.
    fn leads(&mut self, nics: &[Nic]) {
        let unknown = nics.iter().filter(|nic| nic.is_led().is_none());
        let names: Vec<&str> = unknown.map(|nic| nic.name.as_str()).collect();
        if !names.is_empty() {
            let why = format!(
                "no file shows whether a program sends their packets on (`external`), so that their MTU is not judged: {}",
                few(&names)
            );
            self.gaps.push(gap("facts.nic.tunnel", &why, "ip -d link"));
        }
    }

    fn listed_nic(&mut self, name: &str) -> Option<Nic> {
        let folder = format!("{CLASS}/{name}");
        let index = u32::try_from(self.whole(&format!("{folder}/ifindex"))?).ok()?;
        let mut nic = Nic {
            name: name.to_owned(),
            index,
            is_virtual: true,
            up: self.listed_up(&folder),
            mtu: self.whole(&format!("{folder}/mtu")).and_then(|mtu| u32::try_from(mtu).ok()),
            kind: self.of_uevent(&folder, "DEVTYPE"),
            errors: self.listed_errors(&folder),
            is_wifi: self.is_wifi(&folder),
            ..Nic::default()
        };
        let hardware = self.whole(&format!("{folder}/type"));
        if hardware == Some(u64::from(LOOPBACK)) {
            "loopback".clone_into(&mut nic.driver);
            return Some(nic);
        }
        if hardware == Some(u64::from(INFINIBAND)) {
            IPOIB.clone_into(&mut nic.kind);
        }
        self.listed_device(&mut nic, &folder);
        self.listed_stack(&mut nic, &folder);
        nic.link = self.listed_link(&folder);
        let mut port = PortReader { name: name.to_owned(), index, went: false, reader: self };
        port.queues(&mut nic, Some(&folder));
        Some(nic)
    }

    /// Returns whether the port is up and has a carrier. The file `carrier` decides; it can be read only for a port
    /// that is switched on, and some trees lack it. Then `operstate` decides, although ports whose drivers do not
    /// report it (loopback, tunnels) show `unknown`.
    fn listed_up(&self, folder: &str) -> bool {
        self.whole(&format!("{folder}/carrier")).map_or_else(
            || self.optional_line(&format!("{folder}/operstate")) == "up",
            |carrier| carrier == 1,
        )
    }

    fn listed_device(&self, nic: &mut Nic, folder: &str) {
        let device = format!("{folder}/device");
        if self.machine.list(&device).is_err() {
            nic.driver.clone_from(&nic.kind);
            return;
        }
        nic.driver = self.of_uevent(&device, "DRIVER");
        let above = self.pci_above(&device);
        nic.node = self.node_of(&above);
        // In `virtio:d00000001v00001AF4`, the part before the colon is the bus.
        let alias = self.of_uevent(&device, "MODALIAS");
        let bus = alias.split(':').next().unwrap_or_default();
        if bus == USB {
            nic.usb = self.usb_speed(&device);
            let target = self.machine.target(&device).unwrap_or_default();
            let interface = target.rsplit('/').next().unwrap_or_default();
            nic.usb_hubs = self.usb_hubs(interface);
        } else {
            nic.pci = above;
        }
        nic.is_virtual =
            VIRTUAL_BUSES.contains(&bus) || VIRTUAL_DRIVERS.contains(&nic.driver.as_str());
    }

    /// Reads the stack of ports: links named `lower_NAME` lead to the ports below, `master` leads to the port above.
    fn listed_stack(&self, nic: &mut Nic, folder: &str) {
        let index = |path: String| u32::try_from(self.whole(&path)?).ok();
        nic.stack.above = index(format!("{folder}/master/ifindex"));
        let names = self.machine.list(folder).unwrap_or_default();
        let lower = names.iter().filter(|name| name.starts_with("lower_"));
        let below = lower.filter_map(|name| index(format!("{folder}/{name}/ifindex")));
        nic.stack.below = below.collect();
        nic.stack.below.sort_unstable();
        // The file contains a name and its number, such as `802.3ad 4`.
        let word = |file: &str| {
            let line = self.optional_line(&format!("{folder}/bonding/{file}"));
            line.split(' ').next().unwrap_or_default().to_owned()
        };
        let number = |file: &str| u16::try_from(self.whole(&format!("{folder}/{file}"))?).ok();
        let mode = word("mode");
        nic.stack.bond = (!mode.is_empty()).then(|| Bond {
            mode,
            hash: word("xmit_hash_policy"),
            active: None,
            aggregator: number("bonding/ad_aggregator"),
            partner: word("ad_partner_mac"),
        });
        nic.stack.aggregator = number("bonding_slave/ad_aggregator_id");
    }

    /// Reads the link of a port. A port that is down has neither speed nor duplex, and no gap for them.
    fn listed_link(&self, folder: &str) -> LinkModes {
        let speed = read(self.machine, &format!("{folder}/speed"), sysfs::number_or_none);
        LinkModes {
            speed: speed.ok().flatten().and_then(speed_of_mbps),
            duplex: match self.optional_line(&format!("{folder}/duplex")).as_str() {
                "full" => Some(Duplex::Full),
                "half" => Some(Duplex::Half),
                _ => None,
            },
            ..LinkModes::default()
        }
    }

    /// Returns whether the port in `folder` is a Wi-Fi port.
    //= Linux net/wireless/core.c: SET_NETDEV_DEVTYPE(dev, &wiphy_type), which is named wlan
    pub(super) fn is_wifi(&self, folder: &str) -> bool {
        self.of_uevent(folder, "DEVTYPE") == "wlan"
    }

    fn listed_errors(&self, folder: &str) -> PortErrors {
        let count = |name: &str| self.whole(&format!("{folder}/statistics/{name}"));
        let changes = self.whole(&format!("{folder}/carrier_changes"));
        PortErrors {
            rx_packets: count("rx_packets"),
            tx_bytes: count("tx_bytes"),
            rx_errors: count("rx_errors"),
            tx_errors: count("tx_errors"),
            rx_dropped: count("rx_dropped"),
            tx_dropped: count("tx_dropped"),
            rx_missed: count("rx_missed_errors"),
            rx_fifo: count("rx_fifo_errors"),
            rx_crc: count("rx_crc_errors"),
            collisions: count("collisions"),
            carrier_changes: changes.and_then(|n| u32::try_from(n).ok()),
        }
    }

    fn whole(&self, path: &str) -> Option<u64> {
        read(self.machine, path, sysctl::number).ok()
    }

    fn of_uevent(&self, folder: &str, key: &str) -> String {
        let value = read(self.machine, &format!("{folder}/uevent"), |text| {
            Ok(sysctl::value_text(text, key))
        });
        value.ok().flatten().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::nic::Network;

    use crate::testing::tree;
    use crate::{Capture, Live, Replay, network};

    /// The network of a tree in which each port has its own files.
    fn of(ports: &[(&str, &[(&str, &str)])]) -> Network {
        let files = ports.iter().enumerate().flat_map(|(at, (port, own))| {
            let folder = format!("/sys/class/net/{port}");
            let index = (format!("{folder}/ifindex"), format!("{}\n", at + 1));
            let own = own.iter();
            let own = own.map(move |(file, text)| (format!("{folder}/{file}"), (*text).to_owned()));
            std::iter::once(index).chain(own).collect::<Vec<_>>()
        });
        let files: Vec<_> = files.collect();
        let files: Vec<_> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
        let root = tree(&files);
        let machine = Capture::new(Live::under(root.path()).unwrap());
        let live = network(&machine);
        assert_eq!(network(&Replay::new(machine.captured())), live, "a replay");
        live
    }

    #[test]
    fn a_bus_that_a_hypervisor_made_up_is_told_from_one_with_wires() {
        for (alias, driver, want) in [
            ("virtio:d00000001v00001AF4", "virtio_net", true),
            ("vmbus:635161f83edfc546", "hv_netvsc", true),
            ("pci:v00001D0Fd0000EC20", "ena", true),
            ("pci:v00008086d00001572", "i40e", false),
            ("usb:v0B95p1790d0100", "ax88179_178a", false),
            ("of:NethernetT(null)Cst,stm32-dwmac", "dwmac4", false),
        ] {
            let uevent = format!("DRIVER={driver}\nMODALIAS={alias}\n");
            let network = of(&[("eth0", &[("device/uevent", uevent.as_str())])]);
            assert_eq!(network.nics[0].is_virtual, want, "{alias}");
            assert_eq!(network.nics[0].driver, driver);
        }
    }

    #[test]
    fn a_bond_is_made_of_its_members() {
        let network = of(&[
            (
                "bond0",
                &[
                    ("bonding/mode", "802.3ad 4\n"),
                    ("bonding/xmit_hash_policy", "layer3+4 1\n"),
                    ("bonding/ad_aggregator", "1\n"),
                    ("bonding/ad_partner_mac", "02:00:00:00:00:07\n"),
                    ("lower_a", "->../a"),
                    ("lower_b", "->../b"),
                ],
            ),
            ("a", &[("master", "->../bond0"), ("speed", "65535\n")]),
            (
                "b",
                &[
                    ("master", "->../bond0"),
                    ("speed", "-1\n"),
                    ("bonding_slave/ad_aggregator_id", "2\n"),
                ],
            ),
        ]);
        let stack = &network.nics[0].stack;
        assert_eq!((stack.below.as_slice(), stack.above), (&[2, 3][..], None));
        let bond = stack.bond.as_ref().unwrap();
        assert_eq!((bond.mode.as_str(), bond.hash.as_str()), ("802.3ad", "layer3+4"));
        assert_eq!((bond.aggregator, bond.partner.as_str()), (Some(1), "02:00:00:00:00:07"));
        let aggregators = [1, 2].map(|at| network.nics[at].stack.aggregator);
        assert_eq!(aggregators, [None, Some(2)]);
        for member in &network.nics[1..] {
            assert_eq!((member.stack.above, member.link.speed), (Some(1), None));
        }
        assert_eq!(network.leaves(1), [2, 3]);
    }

    #[test]
    fn who_leads_a_tunnel_of_a_tree_is_a_gap() {
        let gap = |name: &str, kind: &str| {
            let uevent = format!("DEVTYPE={kind}\n");
            let network = of(&[(name, &[("uevent", uevent.as_str())])]);
            let mut gaps = network.gaps.into_iter();
            gaps.find(|gap| gap.what == "facts.nic.tunnel").map(|gap| gap.why)
        };
        assert!(gap("vx0", "vxlan").unwrap().ends_with("not judged: vx0"));
        assert_eq!(gap("genev_sys_6081", "geneve"), None);
        assert_eq!(gap("wg0", "wireguard"), None);
    }

    #[test]
    fn each_port_of_a_tree_costs_the_same_whatever_others_there_are() {
        let requested = |ports: u32| {
            let files: Vec<(String, String)> = (1..=ports)
                .map(|n| {
                    let path = format!("/sys/class/net/veth{n}/ifindex");
                    (path, format!("{n}\n"))
                })
                .collect();
            let files = files.iter().map(|(p, t)| (p.as_str(), t.as_str()));
            let root = tree(&files.collect::<Vec<_>>());
            let machine = Capture::new(Live::under(root.path()).unwrap());
            assert_eq!(network(&machine).nics.len(), ports as usize);
            let captured = machine.captured();
            let files = captured.files.values().map(Vec::len);
            files.sum::<usize>() + captured.lists.values().map(Vec::len).sum::<usize>()
        };
        let (ten, twenty, hundred) = (requested(10), requested(20), requested(100));
        assert_eq!(hundred - twenty, 8 * (twenty - ten));
    }

    #[test]
    fn a_port_is_up_by_its_carrier_and_by_its_state_where_a_tree_kept_no_carrier() {
        for (state, carrier, want) in [
            ("unknown", Some("1"), true),
            ("up", Some("1"), true),
            ("up", Some("0"), false),
            ("unknown", Some("0"), false),
            ("up", None, true),
            ("unknown", None, false),
            ("down", None, false),
        ] {
            let mut files = vec![("operstate", state)];
            files.extend(carrier.map(|carrier| ("carrier", carrier)));
            let files: Vec<_> = files.iter().map(|(f, t)| (*f, format!("{t}\n"))).collect();
            let files: Vec<_> = files.iter().map(|(f, t)| (*f, t.as_str())).collect();
            let up = of(&[("wg0", &files)]).nics[0].up;
            assert_eq!(up, want, "{state} {carrier:?}");
        }
    }

    #[test]
    fn a_port_on_usb_has_no_slot_though_its_controller_has_one() {
        let place = "/sys/devices/pci0000:00/0000:00:14.0";
        for (below, alias, want, usb) in [
            (
                "/usb2/2-1/2-1:1.0",
                "usb:v0BDAp8156d3104",
                "",
                Some(linerate_units::Rate(480_000_000)),
            ),
            ("/usb2/2-1/net-function", "pci:v00008086d00001572", "0000:00:14.0", None),
        ] {
            let (uevent, link) = (
                format!("{place}{below}/uevent"),
                format!("->../../..{}{below}", place.trim_start_matches("/sys")),
            );
            let root = tree(&[
                (&format!("{place}/uevent"), "PCI_SLOT_NAME=0000:00:14.0\n"),
                (&uevent, &format!("DRIVER=r8152\nMODALIAS={alias}\n")),
                (&format!("{place}/usb2/2-1/speed"), "480\n"),
                ("/sys/class/net/eth0/threaded", "1\n"),
                ("/sys/class/net/eth0/ifindex", "2\n"),
                ("/sys/class/net/eth0/device", &link),
            ]);
            let nics = network(&Live::under(root.path()).unwrap()).nics;
            assert_eq!((nics[0].pci.as_str(), nics[0].usb), (want, usb), "{alias}");
            assert!(!nics[0].is_virtual, "{alias}");
            assert_eq!((&nics[0].usb_hubs[..], nics[0].threaded), (&[][..], Some(true)));
        }
    }

    #[test]
    fn links_that_lead_nowhere_or_in_circles_share_a_gap() {
        let root = tree(&[
            ("/sys/class/net/eth0", "->../../gone"),
            ("/sys/class/net/eth1", "->eth1"),
            ("/sys/class/net/eth2/ifindex", "77"),
        ]);
        let network = network(&Live::under(root.path()).unwrap());
        assert_eq!(network.nics, []);
        let why: Vec<_> = network.gaps.iter().filter(|g| g.what == "facts.nic").collect();
        assert!(why.len() == 1 && why[0].why.ends_with("eth0, eth1, eth2"), "{why:?}");
    }
}
