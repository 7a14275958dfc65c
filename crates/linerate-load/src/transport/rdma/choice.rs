//! Chooses the RDMA port that an end uses, and the address of that port.

use std::net::{IpAddr, Ipv6Addr};

use linerate_facts::infiniband::{Gid, IbDevice, IbPort, Infiniband, Layer, LinkState, NodeType};
use linerate_plan::transport::rdma::Addressing;

/// An RDMA port, with the address that packets carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) device: String,
    pub(super) port: u8,
    /// Index in the port's GID table; `None` if packets carry only LIDs.
    pub(super) gid_index: Option<u8>,
    pub(super) addressing: Addressing,
    /// NUMA node of the device; `None` if it has none.
    pub(super) node: Option<u32>,
}

/// Why an end has no port for a measurement, and the command or action that would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lack {
    /// The reason, as a lowercase fragment.
    pub(super) what: String,
    pub(super) hint: &'static str,
}

impl Lack {
    pub(super) fn new(what: impl Into<String>, hint: &'static str) -> Self {
        let what = what.into();
        Self { what, hint }
    }
}

/// Hint that names the command to see the state of devices and ports.
const LOOK: &str =
    "`linerate host` shows the RDMA devices of a host, their ports, and what they lack";

/// Hint that names what can measure a device that linerate cannot measure.
const OTHERS: &str = "use --engine tcp; perftest's -R connects iWARP, and the maker's tools or libfabric's fi_pingpong others";

/// Type of a GID whose packets are routed by IP, in the words of sysfs.
const ROUTED: &str = "RoCE v2";

/// The port and GID that the user requested.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Requested<'a> {
    /// Name of a device, or `NAME:PORT`.
    pub(super) device: Option<&'a str>,
    /// Index in the port's GID table.
    pub(super) gid_index: Option<u8>,
}

/// Returns the port that the user requested or, if none is requested, the port that owns `local`, the address from
/// which this end reaches the other one. If no port owns that address, the only active port is returned.
pub(super) fn choose(
    rdma: &Infiniband,
    local: IpAddr,
    requested: Requested,
) -> Result<Choice, Lack> {
    if rdma.devices.is_empty() {
        return Err(Lack::new("this host has no RDMA device", LOOK));
    }
    let (device, port) = match requested.device {
        Some(name) => named(rdma, name, local)?,
        None => of_path(rdma, local)?,
    };
    let number = u8::try_from(port.number)
        .map_err(|_| Lack::new("a port has an impossible number", LOOK))?;
    if let Some(why) = foreign(device) {
        return Err(Lack::new(format!("{}: {why}", device.name), OTHERS));
    }
    let at = |why: &str| Lack::new(format!("port {number} of {}: {why}", device.name), LOOK);
    if let Some(why) = unusable(port) {
        return Err(at(why));
    }
    let (addressing, index) = address(port, local, requested.gid_index).map_err(|why| at(&why))?;
    Ok(Choice {
        device: device.name.clone(),
        port: number,
        gid_index: index,
        addressing,
        node: device.node,
    })
}

/// Returns why linerate cannot connect queue pairs of this device, if its protocol is neither InfiniBand nor RoCE.
fn foreign(device: &IbDevice) -> Option<&'static str> {
    match device.kind? {
        NodeType::ChannelAdapter => None,
        NodeType::Iwarp => Some(
            "it speaks iWARP, whose queue pairs only librdmacm connects, which linerate does not use",
        ),
        NodeType::Other => {
            Some("it speaks neither InfiniBand nor RoCE, but a protocol of its maker")
        }
    }
}

/// Returns why the port cannot carry packets; `None` if no reason is known.
fn unusable(port: &IbPort) -> Option<&'static str> {
    match port.state? {
        LinkState::Down => Some("it is down: it has no link, or was switched off"),
        LinkState::Initializing => {
            Some("it is Initializing: no subnet manager has configured it (`linerate fabric`)")
        }
        LinkState::Armed => Some("it is Armed: the subnet manager has not activated it yet"),
        LinkState::Active | LinkState::ActiveDefer => None,
    }
}

/// Returns the device with this name, and its port: the one with the given number; without a number, the port that owns
/// the address, or else the first active one.
fn named<'a>(
    rdma: &'a Infiniband,
    name: &str,
    local: IpAddr,
) -> Result<(&'a IbDevice, &'a IbPort), Lack> {
    let by_name = |name: &str| rdma.devices.iter().find(|device| device.name == name);
    let (name, number) = match name.rsplit_once(':') {
        Some((device, number)) if by_name(name).is_none() => (device, Some(number)),
        _ => (name, None),
    };
    let device = by_name(name).ok_or_else(|| {
        let all: Vec<_> = rdma.devices.iter().map(|d| d.name.as_str()).collect();
        let all = all.join(", ");
        Lack::new(format!("this host has no RDMA device {name}: it has {all}"), LOOK)
    })?;
    let mut ports = device.ports.iter();
    let port = match number {
        Some(number) => ports.find(|port| port.number.to_string() == number),
        None => ports
            .clone()
            .find(|port| owns(rdma, device, port, local))
            .or_else(|| ports.clone().find(|port| port.is_active()))
            .or_else(|| ports.next()),
    };
    let port = port.ok_or_else(|| {
        let number = number.map_or(String::new(), |number| format!(" {number}"));
        Lack::new(format!("{name} has no port{number}"), LOOK)
    })?;
    Ok((device, port))
}

/// Returns the port that owns the address or, if none does, the only active port.
fn of_path(rdma: &Infiniband, local: IpAddr) -> Result<(&IbDevice, &IbPort), Lack> {
    let ports = || {
        let of = |device| move |port| (device, port);
        let devices = rdma.devices.iter();
        devices.flat_map(move |device: &IbDevice| device.ports.iter().map(of(device)))
    };
    match ports().find(|(device, port)| owns(rdma, device, port, local)) {
        Some(own) => Ok(own),
        None => only(ports().filter(|(_, port)| port.is_active()), local),
    }
}

/// Returns whether a port owns an address: it is one of the port's GIDs, or an address of the port's IPoIB interface.
fn owns(rdma: &Infiniband, device: &IbDevice, port: &IbPort, local: IpAddr) -> bool {
    let by_gid = port.gids.iter().any(|gid| is(gid, local));
    let mut interfaces = rdma.interfaces.iter();
    let by_interface = interfaces.any(|interface| {
        let is_of = !interface.pci.is_empty()
            && interface.pci == device.pci
            && interface.port == Some(port.number);
        let addresses = interface.addresses.iter().flatten();
        is_of && { addresses }.any(|address| bare(address).parse() == Ok(local))
    });
    by_gid || by_interface
}

/// Returns an address without its prefix length.
fn bare(address: &str) -> &str {
    address.split('/').next().unwrap_or(address)
}

/// Returns the only active port. Fails if there are none or several.
fn only<'a>(
    mut active: impl Iterator<Item = (&'a IbDevice, &'a IbPort)>,
    local: IpAddr,
) -> Result<(&'a IbDevice, &'a IbPort), Lack> {
    match (active.next(), active.next()) {
        (None, _) => Err(Lack::new("no port of an RDMA device is active", LOOK)),
        (Some(only), None) => Ok(only),
        (Some((first, _)), Some((second, _))) => Err(Lack::new(
            format!(
                "several RDMA ports are active ({}, {} ...), and none of them has the address {local}",
                first.name, second.name
            ),
            "give the far host by the IP address of its RDMA port",
        )),
    }
}

/// Returns how a port's packets are addressed, and the index of the GID that they carry.
fn address(
    port: &IbPort,
    local: IpAddr,
    requested: Option<u8>,
) -> Result<(Addressing, Option<u8>), String> {
    if port.layer != Some(Layer::Ethernet) && requested.is_none() {
        return Ok((Addressing::Lid, None));
    }
    let gid = match requested {
        Some(index) => port.gids.iter().find(|gid| gid.index == u32::from(index)),
        None => best(&port.gids, local),
    };
    let gid = gid.ok_or_else(|| match requested {
        Some(index) => format!("its table of GIDs has nothing at {index}"),
        None => "its table of GIDs is empty".to_owned(),
    })?;
    let addressing = match (port.layer, gid.kind.as_str()) {
        (Some(Layer::InfiniBand), _) => Addressing::Lid,
        (_, ROUTED) => Addressing::RoceV2,
        _ => Addressing::RoceV1,
    };
    let index = u8::try_from(gid.index).map_err(|_| "its GID has an impossible index")?;
    Ok((addressing, Some(index)))
}

/// Returns the GID that reaches farthest. A routed GID (RoCE v2) is preferred, then the end's own address, then an IPv4
/// address, then an address that is valid beyond its link.
fn best(gids: &[Gid], local: IpAddr) -> Option<&Gid> {
    let rank = |gid: &&Gid| {
        let routed = gid.kind == ROUTED;
        let address: Option<Ipv6Addr> = gid.gid.parse().ok();
        let global = address.is_some_and(|a| !a.is_unicast_link_local());
        let mapped = address.is_some_and(|a| a.to_ipv4_mapped().is_some());
        (routed, is(gid, local), mapped, global, u32::MAX - gid.index)
    };
    gids.iter().max_by_key(rank)
}

/// Returns whether a GID is this IP address.
fn is(gid: &Gid, address: IpAddr) -> bool {
    let gid: Option<Ipv6Addr> = gid.gid.parse().ok();
    gid.is_some_and(|gid| IpAddr::V6(gid).to_canonical() == address.to_canonical())
}

#[cfg(test)]
mod tests {
    use linerate_facts::infiniband::Ipoib;

    use super::*;

    fn gid(index: u32, gid: &str, kind: &str) -> Gid {
        Gid { index, gid: gid.to_owned(), kind: kind.to_owned(), netdev: "eth0".to_owned() }
    }

    fn device(name: &str, layer: Layer, gids: Vec<Gid>) -> IbDevice {
        IbDevice {
            name: name.to_owned(),
            pci: format!("0000:{name}"),
            ports: vec![IbPort {
                number: 1,
                state: Some(LinkState::Active),
                layer: Some(layer),
                gids,
                ..IbPort::default()
            }],
            ..IbDevice::default()
        }
    }

    fn roce(name: &str, address: &str) -> IbDevice {
        let mapped = format!("0000:0000:0000:0000:0000:ffff:{address}");
        let local = "fe80:0000:0000:0000:0a00:27ff:fe00:0001";
        let gids = vec![
            gid(0, local, "IB/RoCE v1"),
            gid(1, local, "RoCE v2"),
            gid(2, &mapped, "IB/RoCE v1"),
            gid(3, &mapped, "RoCE v2"),
        ];
        device(name, Layer::Ethernet, gids)
    }

    fn host(devices: Vec<IbDevice>) -> Infiniband {
        Infiniband { devices, ..Infiniband::default() }
    }

    fn by_index(index: u8) -> Requested<'static> {
        Requested { gid_index: Some(index), ..Requested::default() }
    }

    fn at(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    #[test]
    fn the_port_that_has_the_address_is_taken_with_its_routed_gid() {
        let two = host(vec![roce("a", "0a09:0001"), roce("b", "0a09:0002")]);
        let choice = choose(&two, at("10.9.0.2"), Requested::default()).unwrap();
        assert_eq!((choice.device.as_str(), choice.gid_index), ("b", Some(3)));
        assert_eq!(choice.addressing, Addressing::RoceV2);
        let choice = choose(&two, at("::ffff:10.9.0.1"), Requested::default()).unwrap();
        assert_eq!(choice.device, "a");
        let choice = choose(&two, at("10.9.0.2"), by_index(2)).unwrap();
        assert_eq!((choice.gid_index, choice.addressing), (Some(2), Addressing::RoceV1));
        let refused = choose(&two, at("10.9.0.2"), by_index(9)).unwrap_err().what;
        assert!(refused.contains("port 1 of b") && refused.contains("at 9"), "{refused}");
    }

    #[test]
    fn without_the_address_the_only_active_port_is_taken() {
        let one = host(vec![roce("a", "0a09:0001")]);
        assert_eq!(choose(&one, at("192.0.2.1"), Requested::default()).unwrap().gid_index, Some(3));
        let mut two = host(vec![roce("a", "0a09:0001"), roce("b", "0a09:0002")]);
        let refused = choose(&two, at("192.0.2.1"), Requested::default()).unwrap_err().what;
        assert!(refused.contains("a, b") && refused.contains("192.0.2.1"), "{refused}");
        two.devices[0].ports[0].state = Some(LinkState::Down);
        assert_eq!(choose(&two, at("192.0.2.1"), Requested::default()).unwrap().device, "b");
        two.devices[1].ports[0].state = Some(LinkState::Initializing);
        let refused = choose(&two, at("192.0.2.1"), Requested::default()).unwrap_err().what;
        assert!(refused.contains("no port"), "{refused}");
        let refused =
            choose(&host(Vec::new()), at("192.0.2.1"), Requested::default()).unwrap_err().what;
        assert!(refused.contains("no RDMA device"), "{refused}");
    }

    #[test]
    fn a_port_of_infiniband_is_found_by_the_address_of_its_interface() {
        let devices = vec![
            device("a", Layer::InfiniBand, Vec::new()),
            device("b", Layer::InfiniBand, Vec::new()),
        ];
        let mut two = host(devices);
        two.interfaces = vec![Ipoib {
            name: "ib1".to_owned(),
            pci: "0000:b".to_owned(),
            port: Some(1),
            addresses: Some(vec!["10.1.0.2/24".to_owned()]),
            ..Ipoib::default()
        }];
        let choice = choose(&two, at("10.1.0.2"), Requested::default()).unwrap();
        assert_eq!((choice.device.as_str(), choice.gid_index), ("b", None));
        assert_eq!(choice.addressing, Addressing::Lid);
    }

    #[test]
    fn a_device_or_a_port_that_is_named_is_taken() {
        let mut two = host(vec![roce("a", "0a09:0001"), roce("b", "0a09:0002")]);
        let mut second = two.devices[1].ports[0].clone();
        second.number = 2;
        second.gids.clear();
        two.devices[1].ports.insert(0, second);
        let chosen = |two: &Infiniband, name, local| {
            let requested = Requested { device: Some(name), ..Requested::default() };
            let choice = choose(two, at(local), requested);
            choice.map(|choice| (choice.device, choice.port)).map_err(|lack| lack.what)
        };
        let is = |name: &str, port| Ok((name.to_owned(), port));
        assert_eq!(chosen(&two, "a", "10.9.0.2"), is("a", 1));
        assert_eq!(chosen(&two, "b", "10.9.0.2"), is("b", 1), "the port with the address");
        assert_eq!(chosen(&two, "b:1", "10.9.0.1"), is("b", 1));
        let why = chosen(&two, "b:2", "10.9.0.2").unwrap_err();
        assert_eq!(why, "port 2 of b: its table of GIDs is empty");
        let why = chosen(&two, "b:3", "10.9.0.2").unwrap_err();
        assert_eq!(why, "b has no port 3");
        let why = chosen(&two, "c", "10.9.0.2").unwrap_err();
        assert_eq!(why, "this host has no RDMA device c: it has a, b");
        two.devices[1].ports[1].state = Some(LinkState::Down);
        two.devices[1].ports[0].gids = two.devices[0].ports[0].gids.clone();
        assert_eq!(chosen(&two, "b", "192.0.2.1"), is("b", 2), "the active port");
    }

    #[test]
    fn a_device_of_another_protocol_is_refused() {
        for (kind, wanted) in [
            (None, None),
            (Some(NodeType::ChannelAdapter), None),
            (Some(NodeType::Iwarp), Some("iWARP")),
            (Some(NodeType::Other), Some("a protocol of its maker")),
        ] {
            let mut one = host(vec![roce("a", "0a09:0001")]);
            one.devices[0].kind = kind;
            let refused = choose(&one, at("10.9.0.1"), Requested::default()).err();
            let refused = refused.map(|lack| lack.what);
            assert_eq!(refused.is_some(), wanted.is_some(), "{refused:?}");
            let says = refused.zip(wanted);
            assert!(says.is_none_or(|(what, wanted)| what.contains(wanted)));
        }
    }

    #[test]
    fn a_port_that_is_not_active_is_refused_with_its_state() {
        for (state, wanted) in [
            (Some(LinkState::Down), Some("it is down")),
            (Some(LinkState::Initializing), Some("no subnet manager")),
            (Some(LinkState::Armed), Some("has not activated it")),
            (Some(LinkState::Active), None),
            (Some(LinkState::ActiveDefer), None),
            (None, None),
        ] {
            let mut one = host(vec![roce("a", "0a09:0001")]);
            one.devices[0].ports[0].state = state;
            let refused = choose(&one, at("10.9.0.1"), Requested::default());
            match (refused, wanted) {
                (Ok(choice), None) => assert_eq!(choice.port, 1),
                (Err(lack), Some(wanted)) => {
                    assert!(lack.what.contains(wanted), "{}", lack.what);
                }
                (got, _) => panic!("{state:?}: {got:?}"),
            }
        }
    }
}
