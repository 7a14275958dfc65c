//! Facts of the port by which packets to the other end leave this host.

use std::collections::BTreeSet;
use std::io;

use linerate_facts::Port;
use linerate_facts::irq::{Irq, Served};
use linerate_facts::nic::{Nic, VIRTUAL_BUSES, VIRTUAL_DRIVERS, speed_of_mbps};
use linerate_facts::parse::link::{ETHERNET, LOOPBACK, Link};
use linerate_facts::parse::{sysctl, sysfs};
use linerate_facts::route::Route;

use super::{Reader, SYS};
use crate::route::{no_route, route_toward};
use crate::{Query, Toward, gap, port, read};

pub(super) const HIDDEN: &str = "the mounted /sys belongs to another network namespace";

impl Reader<'_> {
    /// Reads the route to the other end, and the port of this route.
    pub(super) fn port(&mut self, toward: Toward) -> (Option<Port>, Option<Route>) {
        let route = match route_toward(self.machine, toward) {
            Ok(route) => route,
            Err(error) => {
                self.gaps.push(no_route("facts.port", toward, &error));
                return (None, None);
            }
        };
        let mut port = self.described(route.port);
        let route = self.route(toward, &route);
        if let Some(port) = port.as_mut().filter(|port| port.is_virtual) {
            self.stand(port, &route);
        }
        (port, Some(route))
    }

    /// Sets the node and the CPUs of a port that consists of other ports: the node of the cards that carry its packets,
    /// if all are on one node, and the CPUs that serve the cards' interrupts.
    fn stand(&mut self, port: &mut Port, route: &Route) {
        let Some(wires) = route.wires() else {
            return;
        };
        let mut nodes = wires.iter().map(|wire| wire.node);
        let first = nodes.next().flatten();
        port.node = first.filter(|_| nodes.all(|node| node == first));
        let irqs: Vec<Irq> = wires.iter().flat_map(|wire| self.interrupts_of(wire)).collect();
        port.served_by = cpus_of(&irqs);
    }

    fn described(&mut self, index: u32) -> Option<Port> {
        let what = format!("the link with index {index}");
        let reply = self.machine.query(&Query::Link(index));
        let reply = reply.map_err(|error| self.miss("port", &what, &error, "ip link")).ok()?;
        match port::find(&reply, index) {
            Ok(link) => Some(self.describe(&link)),
            Err(why) => {
                self.gaps.push(gap("facts.port", &why, "ip link"));
                None
            }
        }
    }

    fn describe(&mut self, link: &Link<'_>) -> Port {
        let port = Port {
            name: link.name.to_string(),
            driver: link.kind.to_string(),
            mtu: link.mtu,
            is_ethernet: link.hardware == ETHERNET,
            is_virtual: true,
            ..Port::default()
        };
        if link.hardware == LOOPBACK {
            return Port { driver: "loopback".to_owned(), ..port };
        }
        let class = self.class_folder(link);
        let Some(device) = self.device_folder(link, class.as_deref()) else {
            let is_virtual = self.is_software(link, class.as_deref());
            return Port {
                speed_mbps: self.speed(link, class.as_deref(), is_virtual),
                is_virtual,
                ..port
            };
        };
        let driver = self.driver(link, &device);
        let is_virtual =
            VIRTUAL_BUSES.contains(&&*link.bus) || VIRTUAL_DRIVERS.contains(&driver.as_str());
        Port {
            node: self.node(&device).filter(|_| !is_virtual),
            served_by: self.served_by(link, &device),
            speed_mbps: self.speed(link, class.as_deref(), is_virtual),
            driver,
            is_virtual,
            ..port
        }
    }

    /// Returns the port's folder below /sys/class/net. `None` if the mounted /sys shows a port of the same name in
    /// another network namespace.
    pub(super) fn class_folder(&mut self, link: &Link<'_>) -> Option<String> {
        let folder = format!("/sys/class/net/{}", link.name);
        let index = read(self.machine, &format!("{folder}/ifindex"), sysctl::number).ok()?;
        let address = self.machine.file(&format!("{folder}/address")).ok()?;
        let own = sysfs::hardware_address(link.address);
        let same = index == u64::from(link.index) && sysctl::line(&address) == own;
        same.then_some(folder)
    }

    /// Returns the folder of the device that the port belongs to; `None` if software made the port.
    pub(super) fn device_folder(&mut self, link: &Link<'_>, class: Option<&str>) -> Option<String> {
        if !link.device.is_empty() && !link.bus.is_empty() {
            // The path by bus and device is the same in every network namespace.
            return Some(format!("/sys/bus/{}/devices/{}", link.bus, link.device));
        }
        let folder = format!("{}/device", class?);
        self.machine.list(&folder).is_ok().then_some(folder)
    }

    /// Returns whether a port without a device was made by software. Before Linux 5.14 netlink does not name the
    /// device: if the port then has no kind and /sys does not show it, that is unknown.
    fn is_software(&mut self, link: &Link<'_>, class: Option<&str>) -> bool {
        if class.is_none() && link.kind.is_empty() {
            self.gaps.push(gap("facts.port.driver", HIDDEN, SYS));
            return false;
        }
        true
    }

    /// Returns the name of the driver, or the kind of the port if no driver is known.
    fn driver(&mut self, link: &Link<'_>, device: &str) -> String {
        let path = format!("{device}/uevent");
        let driver =
            self.get("port.driver", &path, SYS, |text| Ok(sysctl::value_text(text, "DRIVER")));
        driver.flatten().unwrap_or_else(|| link.kind.to_string())
    }

    /// Returns the NUMA node of a device. "-1", or a kernel without nodes, means that it has none, which is not a gap.
    fn node(&mut self, device: &str) -> Option<u32> {
        let node = read(self.machine, &format!("{device}/numa_node"), sysctl::number);
        node.ok().and_then(|node| u32::try_from(node).ok())
    }

    /// Returns the CPUs that handle the interrupts of the port's receive queues.
    fn served_by(&mut self, link: &Link<'_>, device: &str) -> Vec<u32> {
        let nic = Nic {
            name: link.name.to_string(),
            device: link.device.to_string(),
            pci: match &*link.bus {
                "pci" => link.device.to_string(),
                _ => self.pci_above(device),
            },
            ..Nic::default()
        };
        cpus_of(&self.interrupts_of(&nic))
    }

    /// Returns the nominal speed in Mb/s. If it cannot be read, there is a gap only for a port that is not virtual.
    fn speed(&mut self, link: &Link<'_>, class: Option<&str>, is_virtual: bool) -> Option<u64> {
        let speed = match class {
            Some(class) => read(self.machine, &format!("{class}/speed"), sysctl::number),
            None => Err(io::Error::new(io::ErrorKind::NotFound, HIDDEN)),
        };
        match speed {
            Ok(speed) => speed_of_mbps(speed).map(|_| speed),
            Err(error) => {
                if !is_virtual {
                    let (what, hint) =
                        (format!("the speed of {}", link.name), format!("ethtool {}", link.name));
                    self.miss("port.speed_mbps", &what, &error, &hint);
                }
                None
            }
        }
    }
}

/// Returns the CPUs that handle those of these interrupts that serve receive queues. If no interrupt's name identifies
/// a queue, all interrupts count.
fn cpus_of(irqs: &[Irq]) -> Vec<u32> {
    let receives = |irq: &&Irq| irq.queue().is_some_and(Served::receives);
    let reported = irqs.iter().any(|irq| irq.queue().is_some());
    let queues = irqs.iter().filter(|irq| !reported || receives(irq));
    let cpus: BTreeSet<u32> = queues.flat_map(|irq| &irq.effective).copied().collect();
    cpus.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use linerate_facts::Port;

    use crate::testing::{Fake, LOOPBACK, attr, link, route};
    use crate::{Query, Replay, facts};

    const ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 7];

    /// Makes a machine whose port has these link attributes.
    fn machine(attributes: &[Vec<u8>]) -> Fake {
        let attributes =
            [attributes, &[attr(1, &ADDRESS), attr(4, &9000u32.to_ne_bytes())]].concat();
        Fake::default()
            .reply(Query::Route(LOOPBACK.into()), &[&route(7)])
            .reply(Query::Link(7), &[&link(7, "eth0", &attributes)])
    }

    /// Adds a /sys that shows the port with this index and speed.
    fn class(fake: Fake, index: &str, speed: &str) -> Fake {
        fake.file("/sys/class/net/eth0/ifindex", &[index])
            .file("/sys/class/net/eth0/address", &["02:00:00:00:00:07\n"])
            .file("/sys/class/net/eth0/speed", &[speed])
    }

    fn device(fake: Fake, folder: &str, driver: &str) -> Fake {
        fake.list(folder, &["uevent"])
            .file(&format!("{folder}/uevent"), &[&format!("DRIVER={driver}\nMODALIAS=x\n")])
            .file(&format!("{folder}/numa_node"), &["1\n"])
    }

    /// Returns the facts of the port, and the names of its gaps.
    fn port(fake: Fake) -> (Port, Vec<String>) {
        let facts = facts(&Replay::new(fake.0), LOOPBACK);
        let whats = facts.gaps.into_iter().map(|g| g.what);
        (facts.port.unwrap(), whats.filter(|w| w.starts_with("facts.port")).collect())
    }

    fn on_bus(bus: &str, name: &str) -> Vec<Vec<u8>> {
        vec![attr(57, bus.as_bytes()), attr(56, name.as_bytes())]
    }

    const PCI: &str = "/sys/bus/pci/devices/0000:03:00.0";

    #[test]
    fn a_card_has_driver_node_and_speed() {
        let fake = class(machine(&on_bus("pci", "0000:03:00.0")), "7\n", "100000\n");
        let (port, gaps) = port(device(fake, PCI, "mlx5_core"));
        let want = Port {
            name: "eth0".to_owned(),
            driver: "mlx5_core".to_owned(),
            speed_mbps: Some(100_000),
            mtu: Some(9000),
            is_ethernet: true,
            is_virtual: false,
            node: Some(1),
            served_by: Vec::new(),
        };
        assert_eq!((port, gaps), (want, vec![]));
    }

    #[test]
    fn the_interrupts_of_a_card_are_those_of_its_own_folder_and_its_queues_count() {
        let irq = |fake: Fake, number: u32, name: &str, cpus: &str| {
            let folder = format!("/proc/irq/{number}");
            fake.list(&folder, &["smp_affinity", name])
                .file(&format!("{folder}/effective_affinity_list"), &[cpus])
        };
        let with = |names: [&str; 3]| {
            let fake = class(machine(&on_bus("pci", "0000:03:00.0")), "7\n", "100000\n");
            let fake = device(fake, PCI, "mlx5_core")
                .list(&format!("{PCI}/msi_irqs"), &["129", "130", "131"])
                // On a host with thousands of interrupts, this file must not be read.
                .file("/proc/interrupts", &["not a table"]);
            let fake = irq(fake, 129, names[0], "4\n");
            irq(irq(fake, 130, names[1], "6-7\n"), 131, names[2], "5\n")
        };
        let mlx5 = ["mlx5_async0@pci:0000:03:00.0", "mlx5_comp0@pci", "mlx5_comp1@pci"];
        assert_eq!(port(with(mlx5)).0.served_by, [5, 6, 7]);
        assert_eq!(port(with(["a", "b", "c"])).0.served_by, [4, 5, 6, 7]);
        let virtio = ["virtio0-config", "virtio0-input.0", "virtio0-output.0"];
        assert_eq!(port(with(virtio)).0.served_by, [6, 7]);
    }

    #[test]
    fn without_a_folder_of_interrupts_names_tell_whose_they_are() {
        let table = "  CPU0 CPU1\n 38: 0 3 Level eth0-rx-0\n 39: 1 0 Level eth1-rx-0\n";
        let fake = class(machine(&on_bus("platform", "fd580000.eth")), "7\n", "1000\n");
        let fake = device(fake, "/sys/bus/platform/devices/fd580000.eth", "bcmgenet")
            .file("/proc/interrupts", &[table])
            .file("/proc/irq/38/effective_affinity_list", &["1\n"]);
        assert_eq!(port(fake).0.served_by, [1]);
    }

    #[test]
    fn before_netlink_named_the_device_the_class_folder_leads_to_it() {
        let fake = class(machine(&[]), "7\n", "10000\n");
        let (port, gaps) = port(device(fake, "/sys/class/net/eth0/device", "ixgbe"));
        assert_eq!((port.driver.as_str(), port.is_virtual, port.node), ("ixgbe", false, Some(1)));
        assert_eq!(gaps, [""; 0]);
    }

    #[test]
    fn a_sys_of_another_namespace_is_not_believed() {
        let fake = class(machine(&on_bus("pci", "0000:03:00.0")), "3\n", "1000\n");
        let (first, gaps) = port(device(fake, PCI, "mlx5_core"));
        assert_eq!((first.speed_mbps, first.driver.as_str()), (None, "mlx5_core"));
        assert_eq!(gaps, ["facts.port.speed_mbps"]);

        let fake = class(machine(&[]), "3\n", "1000\n");
        let (second, gaps) = port(device(fake, "/sys/class/net/eth0/device", "ixgbe"));
        assert_eq!((second.speed_mbps, second.driver.as_str()), (None, ""));
        assert_eq!(gaps, ["facts.port.driver", "facts.port.speed_mbps"]);
    }

    #[test]
    fn ports_without_a_wire_are_virtual_and_need_no_speed() {
        for kind in ["veth", "tun", "bridge", "dummy", "wireguard"] {
            let (port, gaps) = port(machine(&[attr(18, &attr(1, kind.as_bytes()))]));
            assert_eq!((port.driver.as_str(), port.is_virtual), (kind, true));
            assert_eq!(gaps, [""; 0], "{kind}");
        }
        let fake = class(machine(&on_bus("virtio", "virtio0")), "7\n", "-1\n");
        let (virtio, gaps) = port(device(fake, "/sys/bus/virtio/devices/virtio0", "virtio_net"));
        assert_eq!((virtio.is_virtual, virtio.speed_mbps, virtio.node), (true, None, None));
        assert_eq!(gaps, [""; 0]);
        let cloud = device(machine(&on_bus("pci", "0000:03:00.0")), PCI, "ena");
        assert!(port(cloud).0.is_virtual);
    }

    #[test]
    fn ip_over_infiniband_has_a_kind_and_a_wire() {
        let kind = attr(18, &attr(1, b"ipoib"));
        let attributes = [vec![kind], on_bus("pci", "0000:03:00.0")].concat();
        let fake = class(machine(&attributes), "7\n", "56000\n");
        let (port, _) = port(device(fake, PCI, "mlx4_core"));
        assert_eq!((port.driver.as_str(), port.is_virtual), ("mlx4_core", false));
        assert_eq!(port.speed_mbps, Some(56_000));
    }

    #[test]
    fn a_speed_that_the_driver_does_not_know_is_none() {
        for (speed, gap) in [("0\n", 0), ("65535\n", 0), ("4294967295\n", 0), ("-1\n", 1)] {
            let fake = class(machine(&on_bus("pci", "0000:03:00.0")), "7\n", speed);
            let (port, gaps) = port(device(fake, PCI, "mlx5_core"));
            assert_eq!((port.speed_mbps, gaps.len()), (None, gap), "{speed:?}");
        }
    }
}
