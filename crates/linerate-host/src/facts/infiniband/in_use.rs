//! The RDMA port that a load uses: its network port, its slot, and the host's other RDMA ports.

use linerate_facts::infiniband::{IbDevice, IbPort, Infiniband, Layer};
use linerate_facts::nic::speed_of_mbps;
use linerate_facts::parse::sysctl;
use linerate_facts::pci::{self, Device};
use linerate_facts::rdma::{Netdev, OtherPort, RdmaEnd};
use linerate_facts::route::OTHERS_MAX;

use super::Reader;
use crate::{Machine, read};

/// Reads what is known of a port before it is opened. `gid_index` selects the entry of the port's GID table that
/// packets use.
pub fn rdma_end(
    machine: &dyn Machine,
    all: &Infiniband,
    (device, port): (&IbDevice, &IbPort),
    gid_index: Option<u32>,
) -> RdmaEnd {
    let mut reader = Reader { machine, gaps: Vec::new() };
    let gid = gid_index.and_then(|index| port.gids.iter().find(|gid| gid.index == index));
    let netdev = match gid.map(|gid| gid.netdev.as_str()) {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => netdev_of(all, device, port),
    };
    RdmaEnd {
        device: device.name.clone(),
        port: port.number,
        layer: port.layer,
        gid_index,
        gid: gid.and_then(|gid| gid.gid.parse().ok()),
        software: device.software,
        rate: port.rate.clone(),
        netdev: (!netdev.is_empty()).then(|| reader.netdev(netdev)),
        node: device.node,
        slots: reader.slots(device),
        pci: device.pci.clone(),
        others: others(all, (device, port)),
        ..RdmaEnd::default()
    }
}

/// Returns the network port that belongs to an RDMA port; empty if there is none.
fn netdev_of(all: &Infiniband, device: &IbDevice, port: &IbPort) -> String {
    let mut gids = port.gids.iter().map(|gid| &gid.netdev);
    let by_gid = gids.find(|name| !name.is_empty());
    let by_card = || {
        let is_of = |pci: &str| !pci.is_empty() && pci == device.pci;
        let mut interfaces = all.interfaces.iter();
        interfaces.find(|ipoib| is_of(&ipoib.pci) && ipoib.port == Some(port.number))
    };
    let found = match port.layer {
        Some(Layer::InfiniBand) => by_card().map(|ipoib| &ipoib.name),
        _ => by_gid,
    };
    found.cloned().unwrap_or_default()
}

/// Returns the other active RDMA ports of this host.
fn others(all: &Infiniband, (device, port): (&IbDevice, &IbPort)) -> Vec<OtherPort> {
    let ports =
        all.devices.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    // Software devices and virtual functions are left out: they share a port with another device.
    let others = ports.filter(|(other, number)| {
        let is_own = !other.software && other.virtual_of.is_none();
        let is_same = (&other.name, number.number) == (&device.name, port.number);
        is_own && number.is_active() && !is_same
    });
    let others = others.map(|(device, port)| OtherPort {
        device: device.name.clone(),
        port: port.number,
        netdev: netdev_of(all, device, port),
        rate: port.rate.as_ref().map(|rate| rate.rate),
        pci: device.pci.clone(),
    });
    others.take(OTHERS_MAX).collect()
}

impl Reader<'_> {
    fn netdev(&self, name: String) -> Netdev {
        let number = |file: &str| {
            let path = format!("/sys/class/net/{name}/{file}");
            read(self.machine, &path, sysctl::number).ok()
        };
        Netdev {
            // The speed of a port without a link, or of a virtual port, reads as -1.
            speed: number("speed").and_then(speed_of_mbps),
            mtu: number("mtu").and_then(|mtu| u32::try_from(mtu).ok()),
            name,
        }
    }

    /// Returns the card of a device and the PCIe bridges above the card.
    fn slots(&mut self, device: &IbDevice) -> Vec<Device> {
        let (mut all, mut hidden) = (Vec::new(), Vec::new());
        if let Ok(card) = device.pci.parse() {
            self.chain(card, &mut all, &mut hidden);
        }
        all.sort_unstable_by_key(|device| device.address);
        pci::find_parents(&mut all);
        all
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::infiniband::{Gid, LinkState};

    use super::*;
    use crate::Live;
    use crate::testing::tree;

    fn device(name: &str, state: LinkState, netdev: &str) -> IbDevice {
        IbDevice {
            name: name.to_owned(),
            ports: vec![IbPort {
                number: 1,
                state: Some(state),
                layer: Some(Layer::Ethernet),
                gids: vec![Gid {
                    index: 3,
                    gid: "::ffff:10.9.0.1".to_owned(),
                    kind: "RoCE v2".to_owned(),
                    netdev: netdev.to_owned(),
                }],
                ..IbPort::default()
            }],
            ..IbDevice::default()
        }
    }

    #[test]
    fn a_port_has_a_network_port_and_other_active_ports_beside_it() {
        let all = Infiniband {
            devices: vec![
                device("a", LinkState::Active, "eth0"),
                device("b", LinkState::Active, "eth1"),
                device("c", LinkState::Down, "eth2"),
            ],
            ..Infiniband::default()
        };
        let root = tree(&[
            ("/sys/class/net/eth0/speed", "25000\n"),
            ("/sys/class/net/eth0/mtu", "1500\n"),
        ]);
        let machine = Live::under(root.path()).unwrap();
        let used = &all.devices[0];
        let end = rdma_end(&machine, &all, (used, &used.ports[0]), Some(3));
        let netdev = end.netdev.clone().unwrap();
        assert_eq!((netdev.name.as_str(), netdev.mtu), ("eth0", Some(1500)));
        assert_eq!(netdev.speed.unwrap().to_string(), "25 Gb/s");
        let others: Vec<_> = end.others.iter().map(|other| other.netdev.as_str()).collect();
        assert_eq!(others, ["eth1"]);
        assert_eq!((end.gid_index, end.slots.len()), (Some(3), 0));
        assert_eq!(end.gid.unwrap().to_string(), "::ffff:10.9.0.1");
    }
}
