//! Ports, addresses, routes and queues of one network namespace, by netlink requests that wait for their reply.
//!
//! Numbers and layouts are from linux/netlink.h, linux/rtnetlink.h, linux/if_link.h, linux/if_addr.h and
//! linux/pkt_sched.h.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use linerate_facts::parse::link::{self, LOOPBACK, Link};
use linerate_facts::parse::netlink::part;
use linerate_facts::parse::netlink::write::{ACK, DUMP, REQUEST, attribute, message, nested, text};
use linerate_facts::parse::qdisc::{self, Qdisc, ROOT};
use linerate_sys::netlink::Socket;
use rustix::io::Errno;
use rustix::net::AddressFamily;

use crate::spec::{PortStatus, Queue};

/// Flags of requests that create an object: replace an existing one, fail if one exists, create a missing one.
const REPLACE: u16 = 0x100;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;

/// `RTM_*` numbers: each is an action and the kind of its object.
const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const SET_LINK: u16 = 19;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const NEW_QDISC: u16 = 36;
const DELETE_QDISC: u16 = 37;
const GET_QDISC: u16 = 38;

/// `IFLA_*` numbers: attributes of ports, and of virtual ports.
const LINK_ADDRESS: u16 = 1;
const LINK_NAME: u16 = 3;
const LINK_MTU: u16 = 4;
const LINK_MASTER: u16 = 10;
const LINK_INFO: u16 = 18;
const LINK_NAMESPACE: u16 = 28;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_PEER: u16 = 1;

/// Number of attempts at a dump that changes interrupt.
const DUMPS: usize = 10;

/// Flag of a port that is switched on, `IFF_UP`.
const UP: u32 = 1;

/// Properties of a veth port that is created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Veth<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: [u8; 6],
    pub(crate) mtu: u32,
}

impl Veth<'_> {
    fn attributes(&self) -> Vec<u8> {
        [text(LINK_NAME, self.name), attribute(LINK_ADDRESS, &self.mac), number(LINK_MTU, self.mtu)]
            .concat()
    }
}

/// Properties of a route that is added or replaced.
#[derive(Debug, Clone)]
pub(crate) struct Route<'a> {
    pub(crate) to: IpAddr,
    pub(crate) prefix: u8,
    pub(crate) via: Option<IpAddr>,
    pub(crate) congestion: Option<&'a str>,
}

/// A netlink socket in the network namespace that the thread was in when the socket was opened.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        // The socket has no deadline, because other namespaces may hold the kernel's lock for seconds.
        let socket = Socket::open(None, None)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends a request and returns the whole reply. A dump is requested again if something changed during it.
    fn exchange(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<u8>> {
        for _ in 0..DUMPS {
            if let Some(reply) = self.attempt(kind, flags, body)? {
                return Ok(reply);
            }
        }
        Err(io::Error::other("the ports of this namespace changed each time they were read"))
    }

    /// Sends a request once and returns the whole reply; `None` if something changed during the dump.
    fn attempt(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.sequence += 1;
        let request = message(kind, REQUEST | flags, self.sequence, body);
        self.socket.send(&request)?;
        let (mut reply, mut whole) = (Vec::new(), true);
        loop {
            let bytes = self.socket.receive()?;
            let part = part(bytes, self.sequence)?;
            reply.extend_from_slice(bytes);
            whole &= !part.interrupted;
            if part.last {
                return Ok(whole.then_some(reply));
            }
        }
    }

    /// Sends a request and waits until the kernel has carried it out.
    fn change(&mut self, kind: u16, flags: u16, body: &[Vec<u8>]) -> io::Result<()> {
        self.exchange(kind, ACK | flags, &body.concat()).map(drop)
    }

    fn links(&mut self) -> io::Result<Vec<u8>> {
        self.exchange(GET_LINK, DUMP, &link_head(0, 0, 0))
    }

    /// Returns the index of a port in this namespace.
    pub(crate) fn index(&mut self, name: &str) -> io::Result<u32> {
        for link in link::parse(&self.links()?) {
            let link = link.map_err(io::Error::other)?;
            if link.name == name {
                return Ok(link.index);
            }
        }
        Err(Errno::NODEV.into())
    }

    /// Makes a pair of veth ports, the second one in another namespace.
    pub(crate) fn add_veth(
        &mut self,
        own: Veth<'_>,
        peer: Veth<'_>,
        peer_space: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let peer = [link_head(0, 0, 0), peer.attributes(), namespace(peer_space)];
        let kind = text(INFO_KIND, "veth");
        let data = nested(INFO_DATA, &[nested(VETH_PEER, &peer)]);
        self.add_link(own.attributes(), &[kind, data])
    }

    /// Makes a bridge without spanning tree, so that it forwards from the start.
    pub(crate) fn add_bridge(&mut self, name: &str, mtu: u32) -> io::Result<()> {
        let attributes = [text(LINK_NAME, name), number(LINK_MTU, mtu)].concat();
        self.add_link(attributes, &[text(INFO_KIND, "bridge")])
    }

    fn add_link(&mut self, attributes: Vec<u8>, info: &[Vec<u8>]) -> io::Result<()> {
        let body = [link_head(0, 0, 0), attributes, nested(LINK_INFO, info)];
        self.change(NEW_LINK, CREATE | EXCLUSIVE, &body)
    }

    /// Adds a port to a bridge.
    pub(crate) fn add_to_bridge(&mut self, name: &str, bridge: &str) -> io::Result<()> {
        let bridge = self.index(bridge)?;
        self.set(name, number(LINK_MASTER, bridge))
    }

    fn set(&mut self, name: &str, attribute: Vec<u8>) -> io::Result<()> {
        let head = link_head(self.index(name)?, 0, 0);
        self.change(SET_LINK, 0, &[head, attribute])
    }

    /// Switches a port on or off.
    pub(crate) fn set_up(&mut self, name: &str, up: bool) -> io::Result<()> {
        let flags = if up { UP } else { 0 };
        let head = link_head(self.index(name)?, flags, UP);
        self.change(SET_LINK, 0, &[head])
    }

    /// Changes the MTU of a port.
    pub(crate) fn set_mtu(&mut self, name: &str, mtu: u32) -> io::Result<()> {
        self.set(name, number(LINK_MTU, mtu))
    }

    /// Changes the hardware address of a port.
    pub(crate) fn set_mac(&mut self, name: &str, mac: [u8; 6]) -> io::Result<()> {
        self.set(name, attribute(LINK_ADDRESS, &mac))
    }

    /// Moves a port into another namespace. Its addresses, routes and queues are lost.
    pub(crate) fn move_to(&mut self, name: &str, space: BorrowedFd<'_>) -> io::Result<()> {
        self.set(name, namespace(space))
    }

    /// Removes a port, and its peer with it.
    pub(crate) fn remove(&mut self, name: &str) -> io::Result<()> {
        let head = link_head(self.index(name)?, 0, 0);
        self.change(DELETE_LINK, 0, &[head])
    }

    /// Adds an address that is usable at once; an existing one is kept.
    pub(crate) fn add_address(&mut self, name: &str, to: IpAddr, prefix: u8) -> io::Result<()> {
        const ADDRESS: u16 = 1;
        const LOCAL: u16 = 2;
        // IFA_F_NODAD: the address is usable at once, because it is not first probed for duplicates.
        const NO_PROBE: u8 = 2;
        // The header is struct ifaddrmsg.
        let mut head = vec![family(to), prefix, NO_PROBE, 0];
        head.extend(self.index(name)?.to_ne_bytes());
        let to = octets(to);
        let body = [head, attribute(LOCAL, &to), attribute(ADDRESS, &to)];
        self.change(NEW_ADDRESS, CREATE | REPLACE, &body)
    }

    /// Adds a route through a port, or replaces an existing one.
    pub(crate) fn add_route(&mut self, name: &str, route: &Route<'_>) -> io::Result<()> {
        const DESTINATION: u16 = 1;
        const PORT: u16 = 4;
        const GATEWAY: u16 = 5;
        const METRICS: u16 = 8;
        const CONGESTION: u16 = 16;
        let mut body = vec![route_head(route), number(PORT, self.index(name)?)];
        if route.prefix > 0 {
            body.push(attribute(DESTINATION, &octets(route.to)));
        }
        if let Some(via) = route.via {
            body.push(attribute(GATEWAY, &octets(via)));
        }
        if let Some(congestion) = route.congestion {
            body.push(nested(METRICS, &[text(CONGESTION, congestion)]));
        }
        self.change(NEW_ROUTE, CREATE | REPLACE, &body)
    }

    /// Puts a token bucket in front of a port: `rate` in bytes per second, `burst` and `limit` (the queue behind the
    /// bucket) in bytes of Ethernet frame.
    pub(crate) fn add_token_bucket(
        &mut self,
        name: &str,
        rate: u64,
        burst: u32,
        limit: u32,
    ) -> io::Result<()> {
        const KIND: u16 = 1;
        const OPTIONS: u16 = 2;
        let options = token_bucket_options(rate, burst, limit);
        let head = qdisc_head(self.index(name)?);
        let body = [head, text(KIND, "tbf"), nested(OPTIONS, &options)];
        self.change(NEW_QDISC, CREATE | EXCLUSIVE, &body)
    }

    /// Removes the queue in front of a port.
    pub(crate) fn remove_queue(&mut self, name: &str) -> io::Result<()> {
        let head = qdisc_head(self.index(name)?);
        self.change(DELETE_QDISC, 0, &[head])
    }

    /// Returns all ports except the loopback, with their counters.
    pub(crate) fn ports(&mut self) -> io::Result<Vec<PortStatus>> {
        let links = self.links()?;
        let qdiscs = self.exchange(GET_QDISC, DUMP, &[0; 20])?;
        let qdiscs: Result<Vec<_>, _> = qdisc::parse(&qdiscs).collect();
        let qdiscs = qdiscs.map_err(io::Error::other)?;
        let mut ports = Vec::new();
        for link in link::parse(&links) {
            let link = link.map_err(io::Error::other)?;
            if link.hardware != LOOPBACK {
                let at_root = |q: &&Qdisc<'_>| q.port == link.index && q.parent == ROOT;
                let root = qdiscs.iter().find(at_root);
                ports.push(port(&link, root.and_then(queue)));
            }
        }
        Ok(ports)
    }
}

/// Encodes `struct ifinfomsg`: the index of the port, and `flags` for those of its flags that are in `which`.
fn link_head(index: u32, flags: u32, which: u32) -> Vec<u8> {
    [0, index, flags, which].map(u32::to_ne_bytes).concat()
}

/// Encodes `struct tcmsg` for the root of the port with this index.
fn qdisc_head(index: u32) -> Vec<u8> {
    [0, index, 0, ROOT, 0].map(u32::to_ne_bytes).concat()
}

/// Encodes `struct rtmsg` for a unicast route of the main table.
fn route_head(route: &Route<'_>) -> Vec<u8> {
    const MAIN: u8 = 254;
    // The kernel's own route to the subnet is replaced only by a route with equal attributes.
    const KERNEL: u8 = 2;
    const UNICAST: u8 = 1;
    const LINK: u8 = 253;
    const UNIVERSE: u8 = 0;
    let scope = match route.via {
        None if route.to.is_ipv4() => LINK,
        _ => UNIVERSE,
    };
    let mut head = vec![family(route.to), route.prefix, 0, 0];
    head.extend([MAIN, KERNEL, scope, UNICAST]);
    // The route has no flags.
    head.extend([0; 4]);
    head
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_ne_bytes())
}

/// Encodes the attribute of a network namespace, by its descriptor.
fn namespace(space: BorrowedFd<'_>) -> Vec<u8> {
    number(LINK_NAMESPACE, space.as_raw_fd() as u32)
}

fn family(address: IpAddr) -> u8 {
    let family = match address {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    family.as_raw() as u8
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// Encodes the options of `tbf`.
fn token_bucket_options(rate: u64, burst: u32, limit: u32) -> Vec<Vec<u8>> {
    const PARAMETERS: u16 = 1;
    const RATE64: u16 = 4;
    const BURST: u16 = 6;
    // With TC_LINKLAYER_ETHERNET a frame counts with its length, and no rate table is needed.
    const ETHERNET: u8 = 1;
    // The rate is struct tc_ratespec: cell_log, linklayer, overhead, cell_align, mpu, rate.
    let mut parameters = vec![0, ETHERNET, 0, 0, 0, 0, 0, 0];
    let low = u32::try_from(rate).unwrap_or(u32::MAX);
    parameters.extend(low.to_ne_bytes());
    // The peak rate is an empty struct tc_ratespec.
    parameters.extend([0; 12]);
    parameters.extend(limit.to_ne_bytes());
    // The fields buffer and mtu, in ticks, are unused: the kernel uses BURST instead, and there is no peak rate.
    parameters.extend([0; 8]);
    let mut options = vec![attribute(PARAMETERS, &parameters), number(BURST, burst)];
    if rate > u64::from(u32::MAX) {
        options.push(attribute(RATE64, &rate.to_ne_bytes()));
    }
    options
}

fn port(link: &Link<'_>, queue: Option<Queue>) -> PortStatus {
    let stats = link.stats.unwrap_or_default();
    PortStatus {
        name: link.name.to_string(),
        up: link.up,
        mtu: link.mtu.unwrap_or_default(),
        rx_bytes: stats.rx_bytes,
        rx_packets: stats.rx_packets,
        rx_dropped: stats.rx_dropped,
        tx_bytes: stats.tx_bytes,
        tx_packets: stats.tx_packets,
        tx_dropped: stats.tx_dropped,
        queue,
    }
}

/// The queue of a port; `None` if the kernel reports `noqueue`.
fn queue(qdisc: &Qdisc<'_>) -> Option<Queue> {
    let stats = qdisc.stats.unwrap_or_default();
    (qdisc.kind != "noqueue").then(|| Queue {
        kind: qdisc.kind.to_string(),
        bytes: stats.bytes,
        packets: stats.packets,
        drops: stats.drops,
        overlimits: stats.overlimits,
        backlog_bytes: stats.backlog,
    })
}
