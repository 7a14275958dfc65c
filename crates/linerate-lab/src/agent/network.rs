//! The hosts' namespaces, and the ports, addresses and routes in them.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use linerate_sys::namespace::{self, Space};
use linerate_sys::packet::PacketPort;

use super::place::{Place, make_place, private_mounts};
use crate::error::LabError;
use crate::netlink::{Netlink, Route, Veth};
use crate::spec::{Host, Spec, Topology};

/// A network namespace of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spot {
    Near,
    /// The host of the process on the wire between near and the router, while a fault needs one: no addresses, and
    /// two ports, `near` and `router`.
    Wire,
    Router,
    Far,
    /// A host for background traffic, behind the router if there is one. It is not the router itself: the kernel lets
    /// a socket keep only little data in the queues of its own host, so such traffic would yield to packets that
    /// arrive by wire.
    Elsewhere,
}

impl Spot {
    const ALL: [Self; 5] = [Self::Near, Self::Wire, Self::Router, Self::Far, Self::Elsewhere];

    pub(super) const fn of(host: Host) -> Self {
        match host {
            Host::Near => Self::Near,
            Host::Router => Self::Router,
            Host::Far => Self::Far,
        }
    }
}

/// The network of the lab.
pub(super) struct Network {
    places: Vec<Place>,
    topology: Topology,
    congestion: Option<String>,
    /// MTU with which all ports are made.
    usual_mtu: u32,
    /// Current MTU of all ports; a fault may change it.
    mtu: u32,
    /// Whether the process on the wire is between near and the router.
    wired: bool,
    v6: bool,
}

/// One link of the lab, by the number of its subnet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link(u8);

impl Link {
    pub(crate) const NEAR: Self = Self(1);
    pub(crate) const FAR: Self = Self(2);
    const ELSEWHERE: Self = Self(3);

    /// Returns the IPv4 address of a station on this link.
    pub(crate) const fn v4(self, station: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.0, station)
    }

    /// Returns the IPv6 address of a station on this link.
    pub(crate) const fn v6(self, station: u8) -> Ipv6Addr {
        Ipv6Addr::new(0xfd4c, 0x4e52, 0, self.0 as u16, 0, 0, 0, station as u16)
    }

    const fn mac(self, station: u8) -> [u8; 6] {
        [0x02, 0x4c, 0x4e, 0x52, self.0, station]
    }
}

/// Station number of the router on each link; it is the last part of its addresses.
const ROUTER: u8 = 1;
/// Station number of near, and of every host in a routed lab.
const END: u8 = 2;
/// Station numbers of the two ports of `Spot::Wire`; their hardware addresses are made from them.
const WIRE: [u8; 2] = [11, 12];
/// Name of the bridge in a bridged lab.
const BRIDGE: &str = "bridge";
/// Name of the router's port towards the host for background traffic.
const OTHERS: &str = "others";
/// Station number of the host for background traffic, on the only subnet of a bridged lab.
const STRANGER: u8 = 4;
/// Station number of far, on the only subnet of a direct or bridged lab.
pub(crate) const OTHER_END: u8 = 3;

/// Returns the link of an end (near or far) and its station number on it.
pub(crate) const fn station(topology: Topology, host: Host) -> (Link, u8) {
    match (host, topology) {
        (Host::Far, Topology::Routed) => (Link::FAR, END),
        (Host::Far, Topology::Direct | Topology::Bridged) => (Link::NEAR, OTHER_END),
        (Host::Router, _) => (Link::NEAR, ROUTER),
        (Host::Near, _) => (Link::NEAR, END),
    }
}

impl Network {
    pub(super) fn build(spec: &Spec) -> Result<Self, LabError> {
        let base = private_mounts()?;
        let places = Spot::ALL.iter().map(|_| make_place(&base)).collect::<Result<_, _>>()?;
        let mut network = Self {
            places,
            topology: spec.topology,
            congestion: spec.congestion.clone(),
            usual_mtu: spec.mtu,
            mtu: spec.mtu,
            wired: false,
            v6: Path::new("/proc/sys/net/ipv6").exists(),
        };
        network.prepare()?;
        network.connect()?;
        Ok(network)
    }

    pub(super) const fn has_v6(&self) -> bool {
        self.v6
    }

    pub(super) const fn topology(&self) -> Topology {
        self.topology
    }

    pub(super) fn place(&mut self, spot: Spot) -> &mut Place {
        &mut self.places[spot as usize]
    }

    pub(super) fn spaces(&self, spot: Spot) -> (&OwnedFd, &OwnedFd) {
        let place = &self.places[spot as usize];
        (&place.net, &place.mount)
    }

    /// Reads a setting under /proc/sys in a namespace of the lab.
    pub(super) fn setting(&self, spot: Spot, name: &str) -> Result<String, LabError> {
        self.enter(spot)?;
        fs::read_to_string(setting_path(name))
            .map_err(|e| LabError::step(format!("cannot read {name}"), &e))
    }

    /// Writes a setting under /proc/sys in a namespace of the lab.
    pub(super) fn set(&self, spot: Spot, name: &str, value: &str) -> Result<(), LabError> {
        self.enter(spot)?;
        fs::write(setting_path(name), value)
            .map_err(|e| LabError::step(format!("cannot set {name} to {value}"), &e))
    }

    /// Moves this process into the network namespace of `spot`.
    pub(super) fn enter(&self, spot: Spot) -> Result<(), LabError> {
        namespace::enter(Space::Net, &self.places[spot as usize].net)
            .map_err(|e| LabError::step("cannot enter a network namespace", &e))
    }

    /// Prepares the settings and the loopback port of each namespace, before other ports exist.
    fn prepare(&mut self) -> Result<(), LabError> {
        for spot in Spot::ALL {
            let lo = self.place(spot).netlink.set_up("lo", true);
            lo.map_err(|e| LabError::step("cannot switch on a loopback", &e))?;
            if self.v6 {
                self.set(spot, "net.ipv6.conf.all.disable_ipv6", "0")?;
                self.set(spot, "net.ipv6.conf.default.disable_ipv6", "0")?;
                self.set(spot, "net.ipv6.conf.default.accept_dad", "0")?;
            }
        }
        self.set(Spot::Router, "net.ipv4.ip_forward", "1")?;
        if self.v6 {
            self.set(Spot::Wire, "net.ipv6.conf.all.disable_ipv6", "1")?;
            self.set(Spot::Wire, "net.ipv6.conf.default.disable_ipv6", "1")?;
            self.set(Spot::Router, "net.ipv6.conf.all.forwarding", "1")?;
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<(), LabError> {
        match self.topology {
            Topology::Routed | Topology::Bridged => {
                self.add_bridge()?;
                self.add_pair(Spot::Near, Spot::Router, "near", Link::NEAR)?;
                self.add_pair(Spot::Far, Spot::Router, "far", Link::FAR)?;
                self.add_pair(Spot::Elsewhere, Spot::Router, OTHERS, Link::ELSEWHERE)?;
                self.settle(Spot::Router)?;
            }
            Topology::Direct => self.add_pair(Spot::Near, Spot::Far, "eth0", Link::NEAR)?,
        }
        self.settle(Spot::Near)?;
        self.settle(Spot::Elsewhere)?;
        self.settle(Spot::Far)
    }

    fn add_bridge(&mut self) -> Result<(), LabError> {
        if self.topology != Topology::Bridged {
            return Ok(());
        }
        let mtu = self.mtu;
        let added = self.place(Spot::Router).netlink.add_bridge(BRIDGE, mtu);
        added.map_err(|e| LabError::step("cannot make a bridge", &e))
    }

    /// Connects the `eth0` of `end` to the port `name` of `other`.
    fn add_pair(&mut self, end: Spot, other: Spot, name: &str, link: Link) -> Result<(), LabError> {
        let mtu = self.mtu;
        let own = Veth { name: "eth0", mac: link.mac(END), mtu };
        let number = if other == Spot::Router { ROUTER } else { OTHER_END };
        let peer = Veth { name, mac: link.mac(number), mtu };
        let [end, other] = self
            .places
            .get_disjoint_mut([end as usize, other as usize])
            .map_err(|e| LabError::gone(format!("a port cannot be joined to itself: {e}")))?;
        end.netlink
            .add_veth(own, peer, other.net.as_fd())
            .map_err(|e| LabError::step(format!("cannot make the ports eth0 and {name}"), &e))
    }

    /// Switches on the ports of a namespace, and adds addresses and routes that are missing.
    pub(super) fn settle(&mut self, spot: Spot) -> Result<(), LabError> {
        let routed = self.topology == Topology::Routed;
        match spot {
            Spot::Near => self.settle_port(spot, "eth0", Link::NEAR, END, routed),
            Spot::Far if routed => self.settle_port(spot, "eth0", Link::FAR, END, true),
            Spot::Far => self.settle_port(spot, "eth0", Link::NEAR, OTHER_END, false),
            Spot::Elsewhere if self.topology == Topology::Direct => Ok(()),
            Spot::Elsewhere if routed => self.settle_port(spot, "eth0", Link::ELSEWHERE, END, true),
            Spot::Elsewhere => self.settle_port(spot, "eth0", Link::NEAR, STRANGER, false),
            Spot::Wire => {
                let netlink = &mut self.place(spot).netlink;
                let mut settle = || -> io::Result<()> {
                    for port in netlink.ports()? {
                        netlink.set_up(&port.name, true)?;
                    }
                    Ok(())
                };
                settle().map_err(|e| LabError::step("cannot switch on the ports of a wire", &e))
            }
            Spot::Router if self.topology == Topology::Bridged => {
                let netlink = &mut self.place(spot).netlink;
                let mut settle = || -> io::Result<()> {
                    for port in ["near", "far", OTHERS] {
                        netlink.add_to_bridge(port, BRIDGE)?;
                        netlink.set_up(port, true)?;
                    }
                    Ok(())
                };
                settle().map_err(|e| LabError::step("cannot set up a bridge", &e))?;
                self.settle_port(spot, BRIDGE, Link::NEAR, ROUTER, false)
            }
            Spot::Router => {
                self.settle_port(spot, "near", Link::NEAR, ROUTER, false)?;
                self.settle_port(spot, "far", Link::FAR, ROUTER, false)?;
                self.settle_port(spot, OTHERS, Link::ELSEWHERE, ROUTER, false)
            }
        }
    }

    fn settle_port(
        &mut self,
        spot: Spot,
        name: &str,
        link: Link,
        number: u8,
        through_router: bool,
    ) -> Result<(), LabError> {
        let congestion = self.congestion.clone();
        // The kernel removes IPv6 from a port with a smaller MTU.
        let v6 = self.v6 && self.mtu >= 1280;
        let netlink = &mut self.place(spot).netlink;
        let mut settle = || -> io::Result<()> {
            netlink.set_up(name, true)?;
            let v4 = (IpAddr::V4(link.v4(number)), IpAddr::V4(link.v4(0)), 24);
            let v6 = v6.then(|| (IpAddr::V6(link.v6(number)), IpAddr::V6(link.v6(0)), 64));
            for (own, subnet, prefix) in std::iter::once(v4).chain(v6) {
                netlink.add_address(name, own, prefix)?;
                let mut route =
                    Route { to: subnet, prefix, via: None, congestion: congestion.as_deref() };
                netlink.add_route(name, &route)?;
                if through_router {
                    route.via = Some(match own {
                        IpAddr::V4(_) => IpAddr::V4(link.v4(ROUTER)),
                        IpAddr::V6(_) => IpAddr::V6(link.v6(ROUTER)),
                    });
                    route.to = match own {
                        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
                    };
                    route.prefix = 0;
                    netlink.add_route(name, &route)?;
                }
            }
            Ok(())
        };
        settle().map_err(|e| {
            let choice = self.congestion.as_deref();
            let with = choice.map_or(String::new(), |c| format!(" with congestion control {c}"));
            LabError::step(format!("cannot set up port {name}{with}"), &e)
        })
    }

    /// Inserts the wire between near and the router: the router's port that faces near moves to the wire, and a new
    /// pair of ports connects the wire and the router. The queues in front of the router's port `near` are lost.
    pub(super) fn insert_wire(&mut self) -> Result<(), LabError> {
        let mtu = self.mtu;
        let own = |name, number| Veth { name, mac: Link::NEAR.mac(number), mtu };
        let (router, wire) = self.router_and_wire()?;
        let mut insert = || -> io::Result<()> {
            router.netlink.move_to("near", wire.net.as_fd())?;
            wire.netlink.set_mac("near", Link::NEAR.mac(WIRE[0]))?;
            let (here, there) = (own("near", ROUTER), own("router", WIRE[1]));
            router.netlink.add_veth(here, there, wire.net.as_fd())
        };
        insert().map_err(|e| LabError::step("cannot put a wire into near's link", &e))?;
        self.wired = true;
        self.settle(Spot::Wire)?;
        self.settle(Spot::Router)
    }

    /// Removes the wire. The queues in front of the router's port `near` are lost.
    pub(super) fn remove_wire(&mut self) -> Result<(), LabError> {
        let (router, wire) = self.router_and_wire()?;
        let mut remove = || -> io::Result<()> {
            router.netlink.remove("near")?;
            wire.netlink.move_to("near", router.net.as_fd())?;
            router.netlink.set_mac("near", Link::NEAR.mac(ROUTER))
        };
        remove().map_err(|e| LabError::step("cannot take the wire out of near's link", &e))?;
        self.wired = false;
        self.settle(Spot::Router)
    }

    fn router_and_wire(&mut self) -> Result<(&mut Place, &mut Place), LabError> {
        let both = [Spot::Router as usize, Spot::Wire as usize];
        let [router, wire] =
            self.places.get_disjoint_mut(both).map_err(|e| LabError::gone(e.to_string()))?;
        Ok((router, wire))
    }

    /// Opens both ports of the wire; the one towards near is first.
    pub(super) fn open_wire(&mut self) -> Result<[PacketPort; 2], LabError> {
        self.enter(Spot::Wire)?;
        let mut open = |name| {
            let index = self.place(Spot::Wire).netlink.index(name)?;
            PacketPort::open(index)
        };
        let mut both = || -> io::Result<_> { Ok([open("near")?, open("router")?]) };
        both().map_err(|e| LabError::step("cannot open the ports of a wire", &e))
    }

    /// Sets the MTU of all ports of the path; `None` restores the MTU with which they were made.
    pub(super) fn set_mtu(&mut self, mtu: Option<u32>) -> Result<(), LabError> {
        let mtu = mtu.unwrap_or(self.usual_mtu);
        self.mtu = mtu;
        for spot in Spot::ALL {
            let netlink = &mut self.place(spot).netlink;
            let set = |netlink: &mut Netlink| -> io::Result<()> {
                for port in netlink.ports()? {
                    netlink.set_mtu(&port.name, mtu)?;
                }
                Ok(())
            };
            set(netlink).map_err(|e| LabError::step(format!("cannot set the MTU to {mtu}"), &e))?;
            // A port with an MTU below 1280 loses its IPv6 addresses, and does not get them back by itself.
            self.settle_connected(spot)?;
        }
        Ok(())
    }

    fn settle_connected(&mut self, spot: Spot) -> Result<(), LabError> {
        if spot == Spot::Router && self.topology == Topology::Direct {
            return Ok(());
        }
        self.settle(spot)
    }

    /// Switches the carrier of a host's link off or on, by switching the port that faces the host.
    pub(super) fn switch_link(&mut self, host: Host, up: bool) -> Result<(), LabError> {
        let (spot, names): (Spot, &[&str]) = match (host, self.topology) {
            (Host::Near, Topology::Direct) => (Spot::Far, &["eth0"]),
            (Host::Far, Topology::Direct) => (Spot::Near, &["eth0"]),
            (Host::Near, _) if self.wired => (Spot::Wire, &["near"]),
            (Host::Near, _) => (Spot::Router, &["near"]),
            (Host::Far, _) => (Spot::Router, &["far"]),
            (Host::Router, _) => (Spot::Router, &["near", "far"]),
        };
        for name in names {
            let switched = self.place(spot).netlink.set_up(name, up);
            let state = if up { "up" } else { "down" };
            switched.map_err(|e| LabError::step(format!("cannot set port {name} {state}"), &e))?;
        }
        // A port loses its addresses and routes when it goes down.
        if up { self.settle(spot) } else { Ok(()) }
    }
}

fn setting_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}
