//! Ports, addresses, routes and queues of one network namespace, by synchronous netlink.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::spec::{Port, Queue};

/// A veth port to be made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Veth<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: [u8; 6],
    pub(crate) mtu: u32,
}

/// A route to be made, or replaced.
#[derive(Debug, Clone)]
pub(crate) struct Route<'a> {
    pub(crate) to: IpAddr,
    pub(crate) prefix: u8,
    pub(crate) via: Option<IpAddr>,
    pub(crate) congestion: Option<&'a str>,
}

/// A socket in the namespace that the thread was in when it was opened.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut packet = NetlinkMessage::from(message);
        packet.header.flags = NLM_F_REQUEST | flags;
        packet.header.sequence_number = self.sequence;
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        Ok(())
    }

    /// Reads replies to the last request until its end, and hands each to `take`.
    fn replies(&self, mut take: impl FnMut(RouteNetlinkMessage)) -> io::Result<()> {
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(io::Error::other)?;
                let length = (message.header.length as usize).next_multiple_of(4);
                rest = rest.get(length.max(16)..).unwrap_or_default();
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                match message.payload {
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(e) if e.code.is_none() => return Ok(()),
                    NetlinkPayload::Error(e) => return Err(e.to_io()),
                    NetlinkPayload::InnerMessage(inner) => take(inner),
                    _ => {}
                }
            }
        }
    }

    /// Sends a request and waits until the kernel has done it.
    fn change(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, NLM_F_ACK | flags)?;
        self.replies(|_| ())
    }

    fn dump(&mut self, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.send(message, NLM_F_DUMP)?;
        let mut all = Vec::new();
        self.replies(|reply| all.push(reply))?;
        Ok(all)
    }

    fn links(&mut self) -> io::Result<Vec<LinkMessage>> {
        let all = self.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
        Ok(all
            .into_iter()
            .filter_map(|message| match message {
                RouteNetlinkMessage::NewLink(link) => Some(link),
                _ => None,
            })
            .collect())
    }

    /// The number of a port in this namespace.
    pub(crate) fn index(&mut self, name: &str) -> io::Result<u32> {
        let named = |link: &LinkMessage| {
            let own = |a: &LinkAttribute| matches!(a, LinkAttribute::IfName(n) if n == name);
            link.attributes.iter().any(own)
        };
        let link = self.links()?.into_iter().find(named);
        link.map(|l| l.header.index)
            .ok_or_else(|| rustix::io::Errno::NODEV.into())
    }

    /// Makes a pair of veth ports, the second one in another namespace.
    pub(crate) fn add_veth(
        &mut self,
        own: Veth<'_>,
        peer: Veth<'_>,
        peer_space: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let describe = |port: Veth<'_>| {
            let mut link = LinkMessage::default();
            link.attributes = vec![
                LinkAttribute::IfName(port.name.to_owned()),
                LinkAttribute::Address(port.mac.to_vec()),
                LinkAttribute::Mtu(port.mtu),
            ];
            link
        };
        let mut other = describe(peer);
        let space = LinkAttribute::NetNsFd(peer_space.as_raw_fd());
        other.attributes.push(space);
        let mut link = describe(own);
        link.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
        ]));
        self.change(
            RouteNetlinkMessage::NewLink(link),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Makes a bridge, which forwards by hardware address at once, without spanning tree.
    pub(crate) fn add_bridge(&mut self, name: &str, mtu: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::Mtu(mtu),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]),
        ];
        self.change(
            RouteNetlinkMessage::NewLink(link),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Makes a port one of a bridge's.
    pub(crate) fn add_to_bridge(&mut self, name: &str, bridge: &str) -> io::Result<()> {
        let bridge = LinkAttribute::Controller(self.index(bridge)?);
        self.set(name, |link| link.attributes.push(bridge))
    }

    fn set(&mut self, name: &str, change: impl FnOnce(&mut LinkMessage)) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = self.index(name)?;
        change(&mut link);
        self.change(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Switches a port on or off.
    pub(crate) fn set_up(&mut self, name: &str, up: bool) -> io::Result<()> {
        self.set(name, |link| {
            link.header.change_mask = LinkFlags::Up;
            link.header.flags = if up {
                LinkFlags::Up
            } else {
                LinkFlags::empty()
            };
        })
    }

    /// Changes the MTU of a port.
    pub(crate) fn set_mtu(&mut self, name: &str, mtu: u32) -> io::Result<()> {
        self.set(name, |link| link.attributes.push(LinkAttribute::Mtu(mtu)))
    }

    /// Changes the hardware address of a port.
    pub(crate) fn set_mac(&mut self, name: &str, mac: [u8; 6]) -> io::Result<()> {
        let address = LinkAttribute::Address(mac.to_vec());
        self.set(name, |link| link.attributes.push(address))
    }

    /// Moves a port into another namespace. Its addresses, routes and queues are lost.
    pub(crate) fn move_to(&mut self, name: &str, space: BorrowedFd<'_>) -> io::Result<()> {
        let space = LinkAttribute::NetNsFd(space.as_raw_fd());
        self.set(name, |link| link.attributes.push(space))
    }

    /// Removes a port, and its peer with it.
    pub(crate) fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = self.index(name)?;
        self.change(RouteNetlinkMessage::DelLink(link), 0)
    }

    /// Adds an address, usable at once, or leaves the one that is there.
    pub(crate) fn add_address(&mut self, name: &str, to: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(to);
        message.header.prefix_len = prefix;
        message.header.index = self.index(name)?;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes = vec![
            AddressAttribute::Local(to),
            AddressAttribute::Address(to),
            AddressAttribute::Flags(AddressFlags::Nodad),
        ];
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.change(RouteNetlinkMessage::NewAddress(message), flags)
    }

    /// Adds a route through a port, or replaces the one that is there.
    pub(crate) fn add_route(&mut self, name: &str, route: &Route<'_>) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(route.to);
        message.header.destination_prefix_length = route.prefix;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        // The kernel's own route of the subnet is replaced only by one that says it is the same.
        message.header.protocol = RouteProtocol::Kernel;
        message.header.kind = RouteType::Unicast;
        message.header.scope = match route.via {
            None if route.to.is_ipv4() => RouteScope::Link,
            _ => RouteScope::Universe,
        };
        if route.prefix > 0 {
            let to = RouteAttribute::Destination(address(route.to));
            message.attributes.push(to);
        }
        if let Some(via) = route.via {
            let via = RouteAttribute::Gateway(address(via));
            message.attributes.push(via);
        }
        let port = RouteAttribute::Oif(self.index(name)?);
        message.attributes.push(port);
        if let Some(congestion) = route.congestion {
            let metric = RouteMetric::CcAlgo(congestion.to_owned());
            message
                .attributes
                .push(RouteAttribute::Metrics(vec![metric]));
        }
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.change(RouteNetlinkMessage::NewRoute(message), flags)
    }

    /// Puts a token bucket in front of a port: `rate` in bytes per second, `burst` and `limit`
    /// (queued behind the bucket) in bytes of Ethernet frame.
    pub(crate) fn add_token_bucket(
        &mut self,
        name: &str,
        rate: u64,
        burst: u32,
        limit: u32,
    ) -> io::Result<()> {
        let mut message = TcMessage::default();
        message.header.index = self.index(name)? as i32;
        message.header.parent = TcHandle::ROOT;
        message.attributes = vec![
            TcAttribute::Kind("tbf".to_owned()),
            TcAttribute::Options(token_bucket_options(rate, burst, limit)),
        ];
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewQueueDiscipline(message), flags)
    }

    /// Takes away the queue in front of a port.
    pub(crate) fn remove_queue(&mut self, name: &str) -> io::Result<()> {
        let mut message = TcMessage::default();
        message.header.index = self.index(name)? as i32;
        message.header.parent = TcHandle::ROOT;
        self.change(RouteNetlinkMessage::DelQueueDiscipline(message), 0)
    }

    /// All ports but the loopback, with what they counted.
    pub(crate) fn ports(&mut self) -> io::Result<Vec<Port>> {
        let links = self.links()?;
        let queues = self.dump(RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default()))?;
        let queue_of = |index: u32| {
            queues.iter().find_map(|message| match message {
                RouteNetlinkMessage::NewQueueDiscipline(q) if q.header.index as u32 == index => {
                    queue(q)
                }
                _ => None,
            })
        };
        Ok(links
            .iter()
            .filter(|link| !link.header.flags.contains(LinkFlags::Loopback))
            .map(|link| Port {
                queue: queue_of(link.header.index),
                ..port(link)
            })
            .collect())
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(v4) => RouteAddress::Inet(v4),
        IpAddr::V6(v6) => RouteAddress::Inet6(v6),
    }
}

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
/// `TC_LINKLAYER_ETHERNET`: frames cost their length, and no rate table is needed.
const LINK_LAYER_ETHERNET: u8 = 1;

/// The options of `tbf`, as in `linux/pkt_sched.h`.
fn token_bucket_options(rate: u64, burst: u32, limit: u32) -> Vec<TcOption> {
    // struct tc_ratespec rate: cell_log, linklayer, overhead, cell_align, mpu, rate.
    let mut parameters = vec![0, LINK_LAYER_ETHERNET, 0, 0, 0, 0, 0, 0];
    let low = u32::try_from(rate).unwrap_or(u32::MAX);
    parameters.extend(low.to_ne_bytes());
    // struct tc_ratespec peakrate: none.
    parameters.extend([0; 12]);
    parameters.extend(limit.to_ne_bytes());
    // buffer and mtu, in ticks: TCA_TBF_BURST and the lack of a peak rate overrule them.
    parameters.extend([0; 8]);
    let option = |kind, value| TcOption::Other(DefaultNla::new(kind, value));
    let mut options = vec![
        option(TCA_TBF_PARMS, parameters),
        option(TCA_TBF_BURST, burst.to_ne_bytes().to_vec()),
    ];
    if rate > u64::from(u32::MAX) {
        options.push(option(TCA_TBF_RATE64, rate.to_ne_bytes().to_vec()));
    }
    options
}

fn port(link: &LinkMessage) -> Port {
    let running = LinkFlags::Up | LinkFlags::LowerUp;
    let mut port = Port {
        name: String::new(),
        up: link.header.flags.contains(running),
        mtu: 0,
        rx_bytes: 0,
        rx_packets: 0,
        rx_dropped: 0,
        tx_bytes: 0,
        tx_packets: 0,
        tx_dropped: 0,
        queue: None,
    };
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => port.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => port.mtu = *mtu,
            LinkAttribute::Stats64(stats) => {
                port.rx_bytes = stats.rx_bytes;
                port.rx_packets = stats.rx_packets;
                port.rx_dropped = stats.rx_dropped;
                port.tx_bytes = stats.tx_bytes;
                port.tx_packets = stats.tx_packets;
                port.tx_dropped = stats.tx_dropped;
            }
            _ => {}
        }
    }
    port
}

fn queue(message: &TcMessage) -> Option<Queue> {
    let mut queue = Queue {
        kind: String::new(),
        bytes: 0,
        packets: 0,
        drops: 0,
        overlimits: 0,
        backlog_bytes: 0,
    };
    for attribute in &message.attributes {
        match attribute {
            TcAttribute::Kind(kind) => queue.kind.clone_from(kind),
            TcAttribute::Stats2(all) => {
                for stats in all {
                    match stats {
                        TcStats2::Basic(basic) => {
                            queue.bytes = basic.bytes;
                            queue.packets = u64::from(basic.packets);
                        }
                        TcStats2::Queue(q) => {
                            queue.drops = u64::from(q.drops);
                            queue.overlimits = u64::from(q.overlimits);
                            queue.backlog_bytes = u64::from(q.backlog);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    // A port without a queue reports `noqueue`.
    (queue.kind != "noqueue").then_some(queue)
}
