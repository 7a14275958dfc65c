//! PCI devices: their kind, the bridges above them, and the links between them.

use std::collections::BTreeMap;

use linerate_facts::Gap;
use linerate_facts::crossing::Crossing;
use linerate_facts::odd::few;
use linerate_facts::parse::pci_config::{self, Config, Express};
use linerate_facts::parse::sysctl;
use linerate_facts::pci::{self, Address, Device, Link};

use super::{Reader, SYS, numbered};
use crate::{gap, invalid};

pub(super) const DEVICES: &str = "/sys/bus/pci/devices";
const GROUPS: &str = "/sys/kernel/iommu_groups";
const THUNDERBOLT: &str = "/sys/bus/thunderbolt/devices";
/// Names of folders in a device's folder that contain the names by which users know the device.
const NAMES: [&str; 4] = ["net", "infiniband", "nvme", "block"];

impl Reader<'_> {
    pub(super) fn pci(&mut self) -> Vec<Device> {
        let names = match self.machine.list(DEVICES) {
            Ok(names) => names,
            Err(error) => {
                self.miss("pci", DEVICES, &error, SYS);
                return Vec::new();
            }
        };
        let mut addresses: Vec<Address> = names.iter().filter_map(|n| n.parse().ok()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let groups = self.iommu_groups();
        let mut hidden = Vec::new();
        let mut all: Vec<Device> = Vec::with_capacity(addresses.len());
        for address in addresses {
            let mut device = self.pci_device(address, &mut hidden);
            device.iommu_group = groups.get(&address).copied();
            all.push(device);
        }
        self.lacks_of_links(&all, &hidden);
        pci::find_parents(&mut all);
        self.gaps.extend(cables(&all));
        all
    }

    /// Adds gaps for the parts of PCI configuration spaces that only root can read. If the kernel shows links in
    /// separate files, it shows them for all devices with a link.
    fn lacks_of_links(&mut self, all: &[Device], hidden: &[Address]) {
        let files = all.iter().any(|d| d.max.is_some());
        let has_link = |a: &&Address| pci::at(all, **a).is_some_and(|d| d.now.is_some());
        let (linked, others): (Vec<_>, Vec<_>) = hidden.iter().partition(has_link);
        let mut lack = |fact: &str, devices: &[&Address]| {
            if let Some(first) = devices.first() {
                let why = match devices.len() - 1 {
                    0 => format!("only root can read this of {first}"),
                    1 => format!("only root can read this of {first} and another device"),
                    more => format!("only root can read this of {first} and {more} other devices"),
                };
                self.lack(gap(fact, &why, "sudo linerate host"));
            }
        };
        lack("facts.pci.payload", &linked);
        if !files {
            lack("facts.pci.links", &others);
        }
    }

    pub(super) fn pci_device(&mut self, address: Address, hidden: &mut Vec<Address>) -> Device {
        let folder = format!("{DEVICES}/{address}");
        let config = self.config(&format!("{folder}/config"));
        let express = config.map(|c| c.express);
        if express == Some(Express::Hidden) {
            hidden.push(address);
        }
        let here = match express {
            Some(Express::Here(capability)) => Some(capability),
            _ => None,
        };
        let driver = self.look("pci.driver", &format!("{folder}/uevent"), |text| {
            Ok(sysctl::value_text(text, "DRIVER").unwrap_or_default())
        });
        let node = self.look("pci.node", &format!("{folder}/numa_node"), sysctl::id);
        let mut device = Device {
            address,
            vendor: config.map_or(0, |c| c.vendor),
            device: config.map_or(0, |c| c.device),
            class: config.map_or(0, |c| c.class),
            buses: config.and_then(|c| c.buses),
            driver: driver.unwrap_or_default(),
            kind: here.map(|c| c.kind),
            now: self.pci_link(&folder, "current").or(here.and_then(|c| c.now)),
            max: self.pci_link(&folder, "max").or(here.and_then(|c| c.max)),
            payload: here.map(|c| c.payload),
            node: node.flatten(),
            tunneled: self.is_tunneled(&folder),
            ..Device::default()
        };
        if device.carries_data() {
            self.pci_names(&folder, &mut device);
        }
        device
    }

    /// Returns whether a device is attached by a Thunderbolt or USB4 cable: it is removable, and such a cable has a
    /// device. Slots for other cards may be removable too, but then no device is on the Thunderbolt bus.
    //= Linux, Documentation/ABI/testing/sysfs-devices-removable and sysfs-bus-thunderbolt
    fn is_tunneled(&self, folder: &str) -> bool {
        self.optional_line(&format!("{folder}/removable")) == "removable"
            && self
                .machine
                .list(THUNDERBOLT)
                .is_ok_and(|names| names.iter().any(|name| is_attached(name)))
    }

    fn config(&mut self, path: &str) -> Option<Config> {
        let space = self.machine.config(path);
        space
            .and_then(|space| pci_config::parse(&space).map_err(invalid))
            .map_err(|error| self.miss("pci.config", path, &error, SYS))
            .ok()
    }

    /// Reads the speed and width of a device's link from sysfs; `which` is `current` or `max`.
    fn pci_link(&mut self, folder: &str, which: &str) -> Option<Link> {
        let speed = format!("{folder}/{which}_link_speed");
        let width = format!("{folder}/{which}_link_width");
        let link = Link {
            speed: self.look("pci.link_speed", &speed, pci_config::speed).flatten(),
            width: self.look("pci.link_width", &width, pci_config::width).flatten(),
        };
        (link != Link::default()).then_some(link)
    }

    /// Reads the names by which users know a device, and whether it is a virtual function of another device.
    fn pci_names(&mut self, folder: &str, device: &mut Device) {
        let parts = self.look_in("pci.names", folder);
        device.is_virtual = parts.iter().any(|p| p == "physfn");
        for part in &parts {
            let path = format!("{folder}/{part}");
            if NAMES.contains(&part.as_str()) {
                device.names.append(&mut self.look_in("pci.names", &path));
            } else if part.starts_with("virtio") {
                for below in ["net", "block"] {
                    let path = format!("{path}/{below}");
                    device.names.append(&mut self.look_in("pci.names", &path));
                }
            }
        }
    }

    /// Returns the IOMMU group of each device that belongs to one.
    fn iommu_groups(&mut self) -> BTreeMap<Address, u32> {
        let mut found = BTreeMap::new();
        let groups = self.look_in("pci.iommu_group", GROUPS);
        for group in numbered(&groups, "") {
            let folder = format!("{GROUPS}/{group}/devices");
            let names = self.look_in("pci.iommu_group", &folder);
            let addresses = names.iter().filter_map(|n| n.parse::<Address>().ok());
            found.extend(addresses.map(|address| (address, group)));
        }
        found
    }
}

/// Returns whether a name on the Thunderbolt bus is that of a device on a cable, such as `0-1` or `1-301`. The host's
/// own controller is `0-0`; a name with further parts (`0-0:1.1`, `0-1.0`) is not a PCI Express device.
fn is_attached(name: &str) -> bool {
    let route = name.split_once('-').filter(|(domain, _)| domain.parse::<u32>().is_ok());
    let is_hex = |route: &str| !route.is_empty() && route.bytes().all(|b| b.is_ascii_hexdigit());
    route.is_some_and(|(_, route)| is_hex(route) && route.bytes().any(|b| b != b'0'))
}

/// Returns the gap for cables that tunnel PCI Express: their capacity is unknown.
pub(super) fn cables(all: &[Device]) -> Option<Gap> {
    let tunnels = all.iter().filter_map(|device| Crossing::above(all, device));
    let ends: Vec<String> =
        tunnels.filter(|link| link.is_tunnel).map(|link| link.device.address.to_string()).collect();
    (!ends.is_empty()).then(|| {
        let why = format!(
            "the capacity of the Thunderbolt or USB4 cable to {} is unknown: its ends report placeholder link figures",
            few(&ends)
        );
        gap(
            "facts.pci.cable",
            &why,
            "cat /sys/bus/thunderbolt/devices/*/rx_speed",
        )
    })
}

#[cfg(test)]
pub(super) mod tests {
    use linerate_facts::{Inventory, odd};

    use super::{DEVICES, GROUPS};
    use crate::testing::Fake;
    use crate::{Answer, Replay, inventory};

    const PORT: &str = "10000:00:01.0";
    const CARD: &str = "10000:01:00.0";

    /// Returns the first 64 bytes of the configuration space of a port that leads to bus 1, or of a network card. Both
    /// announce a list of capabilities after these bytes.
    pub(in crate::facts) fn header(is_port: bool) -> Vec<u8> {
        let mut header = vec![0; 64];
        header[..2].copy_from_slice(&[0xb3, 0x15]);
        (header[6], header[0x34]) = (0x10, 0x40);
        if is_port {
            header[9..12].copy_from_slice(&[0, 4, 6]);
            (header[0x0e], header[0x19], header[0x1a]) = (1, 1, 1);
        } else {
            header[9..12].copy_from_slice(&[0, 0, 2]);
        }
        header
    }

    /// A machine with a port and a card below it. The card's folder also has these names.
    fn machine(parts: &[&str]) -> Fake {
        let mut fake = Fake::default().list(DEVICES, &[CARD, PORT, "not-a-device"]);
        for (address, is_port) in [(PORT, true), (CARD, false)] {
            let answer = Answer::Reply(header(is_port));
            fake.0.files.insert(format!("{DEVICES}/{address}/config"), vec![answer]);
        }
        fake.list(&format!("{DEVICES}/{CARD}"), parts)
    }

    fn link(fake: Fake, address: &str, now: [&str; 2], max: [&str; 2]) -> Fake {
        let path = |name: &str| format!("{DEVICES}/{address}/{name}");
        fake.file(&path("current_link_speed"), &[now[0]])
            .file(&path("current_link_width"), &[now[1]])
            .file(&path("max_link_speed"), &[max[0]])
            .file(&path("max_link_width"), &[max[1]])
    }

    fn read(fake: Fake) -> Inventory {
        inventory(&Replay::new(fake.0), &|_| {})
    }

    fn gaps(inventory: &Inventory) -> Vec<&str> {
        let whats = inventory.gaps.iter().map(|g| g.what.as_str());
        whats.filter(|w| ["facts.pci.links", "facts.pci.payload"].contains(w)).collect()
    }

    #[test]
    fn a_wide_card_in_a_narrow_slot_is_found_without_root() {
        let eight = ["8.0 GT/s PCIe\n", "8\n"];
        let four = ["8.0 GT/s PCIe\n", "4\n"];
        let fake = link(machine(&["net"]), PORT, four, four);
        let fake = link(fake, CARD, four, eight)
            .list(&format!("{DEVICES}/{CARD}/net"), &["eth0"])
            .file(&format!("{DEVICES}/{CARD}/numa_node"), &["1\n"])
            .file(&format!("{DEVICES}/{CARD}/uevent"), &["DRIVER=mlx5_core\n"])
            .list(GROUPS, &["7"])
            .list(&format!("{GROUPS}/7/devices"), &[CARD]);
        let got = read(fake);
        let [port, card] = got.pci.as_slice() else {
            panic!("two devices, in order: {:?}", got.pci);
        };
        assert_eq!((port.address.to_string(), card.parent), (PORT.to_owned(), Some(port.address)));
        assert_eq!(
            (card.driver.as_str(), card.names.as_slice()),
            ("mlx5_core", &["eth0".to_owned()][..])
        );
        assert_eq!((card.node, card.iommu_group), (Some(1), Some(7)));
        let ids: Vec<_> = odd::find(&got).into_iter().map(|o| o.id).collect();
        assert_eq!(ids, ["pcie-slot"]);
        assert_eq!(gaps(&got), ["facts.pci.payload"]);
    }

    #[test]
    fn a_kernel_without_files_of_links_hides_them_from_all_but_root() {
        assert_eq!(gaps(&read(machine(&[]))), ["facts.pci.links"]);
        // If other devices have the files of links, a device without them has no link.
        let eight = ["8.0 GT/s PCIe\n", "8\n"];
        let got = read(link(machine(&[]), PORT, eight, eight));
        assert_eq!(gaps(&got), ["facts.pci.payload"]);
        assert_eq!(got.pci[1].max, None);
    }

    #[test]
    fn parts_of_cards_and_cards_of_hypervisors() {
        assert!(read(machine(&["physfn"])).pci[1].is_virtual);
        let virtio =
            machine(&["virtio3"]).list(&format!("{DEVICES}/{CARD}/virtio3/net"), &["ens3"]);
        let got = read(virtio);
        assert_eq!(
            (got.pci[1].names.as_slice(), got.pci[1].is_virtual),
            (&["ens3".to_owned()][..], false)
        );
    }

    #[test]
    fn devices_on_a_cable_have_routes_other_than_the_host_itself() {
        for name in ["0-1", "1-3", "0-301", "12-a01"] {
            assert!(super::is_attached(name), "{name}");
        }
        for name in ["0-0", "1-0", "domain0", "0-0:1.1", "0-1.0", "usb4_port1", "-1", "0-", ""] {
            assert!(!super::is_attached(name), "{name}");
        }
    }

    #[test]
    fn what_can_be_pulled_out_is_on_a_cable_where_one_has_a_device() {
        let tunneled = |word: &str, names: &[&str]| {
            let fake = machine(&[])
                .file(&format!("{DEVICES}/{CARD}/removable"), &[word])
                .list("/sys/bus/thunderbolt/devices", names);
            read(fake).pci[1].tunneled
        };
        assert!(tunneled("removable\n", &["0-0", "0-1"]));
        assert!(!tunneled("removable\n", &["0-0"]));
        assert!(!tunneled("fixed\n", &["0-0", "0-1"]));
        assert!(!read(machine(&[])).pci[1].tunneled);
    }

    #[test]
    fn a_link_that_makes_no_sense_is_a_gap() {
        let got = read(link(machine(&[]), CARD, ["-1\n", "3\n"], ["Unknown\n", "255\n"]));
        assert_eq!((got.pci[1].now, got.pci[1].max), (None, None));
        for what in ["facts.pci.link_speed", "facts.pci.link_width"] {
            assert!(got.gaps.iter().any(|g| g.what == what), "{what}");
        }
    }
}
