//! What pasted facts show about a path, to compare a measured rate with its hardware.

use super::Material;
use linerate_ceiling::Link;
use linerate_ceiling::fingerprint::{self as print, Facts, Known, Medium};
use linerate_ceiling::infiniband::Speed;
use linerate_facts::Inventory;
use linerate_facts::infiniband::{IbDevice, IbPort, Layer, LinkState};
use linerate_facts::nic::Nic;
use linerate_plan::path::Side;
use linerate_record::reported::Carrier;

/// The hardware facts for results that were measured over `carrier`. The list of links is not complete, because hosts
/// do not see links behind a switch; so a link that is not in the list stays possible.
pub(super) fn of(material: &Material, carrier: Option<Carrier>) -> Facts {
    let links = links_of(material);
    let cards = material
        .hosts()
        .into_iter()
        .flat_map(|(_, host)| cards(host))
        .collect::<Vec<_>>()
        .join(" ");
    Facts {
        medium: medium(&links).or(carrier.map(|_| Medium::Network)),
        links: Known { parts: links, all: false },
        carrier: match carrier {
            Some(Carrier::Rdma) => Some(print::Carrier::Verbs),
            Some(Carrier::Tcp | Carrier::Udp | Carrier::Sockets | Carrier::Sctp) => {
                Some(print::Carrier::Sockets)
            }
            Some(Carrier::Messages) | None => None,
        },
        card: Some(cards).filter(|cards| !cards.is_empty()),
        ..Facts::default()
    }
}

/// A port that is up, with its link.
pub(super) struct Port {
    /// The side of the host that has the port.
    pub side: Side,
    /// Name of the port, with its interface: `mlx4_0 port 1, ib0`.
    pub name: String,
    /// Link of the port, with its rate.
    pub link: Link,
    /// Whether programs can use the port by verbs.
    pub is_rdma: bool,
}

/// The ports that are up, of both hosts.
pub(super) fn ports_of(material: &Material) -> Vec<Port> {
    material.hosts().into_iter().flat_map(|(side, host)| ports(side, host)).collect()
}

/// The links of ports that are up, of both hosts.
pub(super) fn links_of(material: &Material) -> Vec<Link> {
    ports_of(material).into_iter().map(|port| port.link).collect()
}

fn medium(links: &[Link]) -> Option<Medium> {
    let first = links.first()?.is_infiniband();
    let is_one = links.iter().all(|link| link.is_infiniband() == first);
    is_one.then_some(if first { Medium::InfiniBand } else { Medium::Ethernet })
}

fn ports(side: Side, host: &Inventory) -> Vec<Port> {
    let named = |name: String, link: Link, is_rdma: bool| Port { side, name, link, is_rdma };
    let ethernet = |nic: &Nic| {
        let has_wire = !nic.is_virtual && nic.kind != "ipoib" && nic.down.is_empty();
        let speed = nic.link.speed.filter(|_| has_wire)?;
        Some(named(nic.name.clone(), Link::Ethernet(speed), false))
    };
    let devices = host.infiniband.devices.iter();
    let all = devices.flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    let rdma = all.filter_map(|(device, port)| {
        let mut name = format!("{} port {}", device.name, port.number);
        if let Some(interface) = interface(host, device, port) {
            name = format!("{name}, {interface}");
        }
        Some(named(name, infiniband(port)?, true))
    });
    rdma.chain(host.network.nics.iter().filter_map(ethernet)).collect()
}

/// The name of the IPoIB interface that belongs to a port. It is found by the port's GUID, or by PCI address and port
/// number.
fn interface<'a>(host: &'a Inventory, device: &IbDevice, port: &IbPort) -> Option<&'a str> {
    let guid = port.guid();
    let mut all = host.infiniband.interfaces.iter();
    let found = all.find(|interface| {
        let is_same = guid.is_some() && interface.guid == guid;
        let at = !device.pci.is_empty() && interface.pci == device.pci;
        is_same || at && interface.port == Some(port.number)
    });
    found.map(|interface| interface.name.as_str())
}

/// Rates of four lanes in Gb/s, as programs print them. Each is the rate of only one lane speed.
const FOUR_LANES: [(u64, Speed); 4] =
    [(56, Speed::Fdr), (100, Speed::Edr), (200, Speed::Hdr), (400, Speed::Ndr)];

fn infiniband(port: &IbPort) -> Option<Link> {
    let rate = port.rate.as_ref()?;
    let is_up = port.state.is_none_or(|state| state != LinkState::Down);
    if port.layer == Some(Layer::Ethernet) {
        return is_up.then_some(Link::Ethernet(rate.rate));
    }
    let named = Speed::NAMES.iter().find(|(name, _)| *name == rate.speed);
    let named = named.filter(|_| rate.width > 0);
    // Without a named lane speed, the rate is taken for four lanes, if only one lane speed gives it.
    let alone = FOUR_LANES.iter().find(|(giga, _)| rate.rate.0 == giga * 1_000_000_000);
    let (width, speed) = match (named, alone) {
        (Some((_, speed)), _) => (rate.width, *speed),
        (None, Some((_, speed))) => (4, *speed),
        (None, None) => return None,
    };
    is_up.then_some(Link::InfiniBand { width, speed })
}

fn cards(host: &Inventory) -> Vec<&str> {
    let drivers = host.network.nics.iter().map(|nic| nic.driver.as_str());
    let models = host.infiniband.devices.iter().map(|device| device.model.as_str());
    drivers.chain(models).filter(|name| !name.is_empty()).collect()
}
