//! Handles replies: stores their data, and adds the requests that follow from them.

use super::super::mad::counters::{Counters, Support};
use super::super::mad::node::{self, NodeInfo};
use super::super::mad::port::{self, ExtendedSpeed, PortInfo};
use super::super::mad::subnet::{self, ManagerInfo, Path, SwitchInfo};
use super::super::mad::{Attribute, Data, Route, To};
use super::super::network::{Port, PortAt, Silence, Why};
use super::{About, Request, Walk};
use linerate_ceiling::infiniband::Speed;
use linerate_units::Nanos;

/// Vendor ids whose devices may have the attribute ExtendedPortInfo: Mellanox (NVIDIA), and Bull, which sells Mellanox
/// devices.
//= libibnetdisc, is_mlnx_ext_port_info_supported
const EXTENDED: [u32; 2] = [0x2c9, 0x119f];

/// Most blocks of partition keys that are requested of a port.
const KEY_BLOCKS: u16 = 8;
/// Number of partition keys in a block.
const KEYS: u16 = 32;

impl Walk {
    pub(super) fn answered(&mut self, now: Nanos, request: &Request, data: Data<'_>) {
        let node = match request.about {
            About::Node(node) => node,
            About::Own | About::FarEnd(_) => {
                return self.found(now, request, NodeInfo::decode(data));
            }
        };
        let Some(of) = self.network.nodes.get_mut(node) else {
            return;
        };
        let at = |port| PortAt { node, port };
        match request.get.attribute {
            Attribute::NodeDescription => of.description = node::description(data),
            Attribute::SwitchInfo => of.switch = Some(SwitchInfo::decode(data)),
            Attribute::Forwarding(block) => {
                of.forwarding.insert(block, subnet::forwarding(data));
            }
            Attribute::ManagerInfo => {
                let manager = Some(ManagerInfo::decode(data));
                of.ports.entry(request.port).or_default().manager = manager;
            }
            Attribute::PortInfo(port) => self.described(at(port), PortInfo::decode(data)),
            Attribute::ExtendedPortInfo(port) => {
                let port = of.ports.entry(port).or_default();
                port.info = port.info.map(|info| info.with(ExtendedSpeed::decode(data)));
            }
            Attribute::PartitionKeys(block) => self.keyed(request, at(request.port), block, data),
            Attribute::CounterSupport => {
                of.support = Some(Support::decode(data));
                self.ask_for_counters(node);
            }
            Attribute::Counters(port) => self.counted(now, request, at(port), data),
            Attribute::WideCounters(port) => {
                let support = of.support.unwrap_or_default();
                let port = of.ports.entry(port).or_default();
                if let Some(narrow) = port.narrow.take() {
                    port.counters.push((now, narrow.with_wide(support, data)));
                }
            }
            Attribute::Path { from, to } => {
                let path = Path::decode(data);
                self.network.paths.insert((from.guid, to.guid), path);
            }
            Attribute::NodeInfo => {}
        }
    }

    /// Stores a node that answered at the end of a route.
    fn found(&mut self, now: Nanos, request: &Request, info: NodeInfo) {
        let To::Route(route) = &request.get.to else {
            return;
        };
        let is_known = self.network.by_guid(info.guid).is_some();
        if !is_known && self.network.nodes.len() >= self.limits.nodes {
            return self.unanswered(request, Why::TooMany);
        }
        let (node, is_new) = self.network.add(info, route);
        self.count(node, request, now, false);
        self.arrived(request, node, info, route);
        if is_new {
            self.ask_about(node, route);
        }
    }

    /// Stores the port of a node at which a request arrived.
    fn arrived(&mut self, request: &Request, node: usize, info: NodeInfo, route: &Route) {
        let at = PortAt { node, port: info.local_port };
        if let About::FarEnd(from) = request.about {
            if !(1..=info.ports).contains(&at.port) {
                return self.unanswered(request, Why::NoSuchPort(at.port));
            }
            self.network.join(from, at);
        }
        let of = &mut self.network.nodes[node];
        let is_switch = of.is_switch();
        let port = of.ports.entry(at.port).or_default();
        port.guid = Some(info.port_guid);
        if port.route.is_none() && !is_switch {
            port.route = Some(route.clone());
            self.ask_at(at, To::Route(route.clone()), Attribute::PartitionKeys(0));
        }
    }

    /// Adds requests for the description and the ports of a new node.
    fn ask_about(&mut self, node: usize, route: &Route) {
        let of = &self.network.nodes[node];
        let (is_switch, ports) = (of.is_switch(), of.info.ports);
        let about = About::Node(node);
        let mut ask = |attribute| self.ask(about, To::Route(route.clone()), attribute);
        ask(Attribute::NodeDescription);
        if is_switch {
            ask(Attribute::SwitchInfo);
        }
        let first = u8::from(!is_switch);
        if self.limits.ports < usize::from(ports) + 1 {
            self.network.gaps.push(Silence {
                node: Some(node),
                from: None,
                what: Attribute::PortInfo(0).name(),
                why: Why::TooMany,
            });
            return;
        }
        self.limits.ports -= usize::from(ports) + 1;
        for port in first..=ports {
            self.ask(about, To::Route(route.clone()), Attribute::PortInfo(port));
        }
    }

    /// Stores the PortInfo of a port, and adds a request for the node at the other end of its link.
    fn described(&mut self, at: PortAt, info: PortInfo) {
        let own = self.network.own();
        let of = &mut self.network.nodes[at.node];
        let (vendor, is_switch, route) = (of.info.vendor, of.is_switch(), of.route.clone());
        let port = of.ports.entry(at.port).or_default();
        if port.info.is_some() {
            return self.checked(at, info);
        }
        port.info = Some(info);
        let (has_link, peer) = (port.has_link(), port.peer);
        if !has_link {
            return;
        }
        if info.speed.active == Some(Speed::Qdr) && EXTENDED.contains(&vendor) {
            let attribute = Attribute::ExtendedPortInfo(at.port);
            self.ask_at(at, To::Route(route.clone()), attribute);
        }
        if peer.is_some() || at.port == 0 || !(is_switch || Some(at) == own) {
            return;
        }
        match route.then(at.port) {
            Some(next) => self.ask(About::FarEnd(at), To::Route(next), Attribute::NodeInfo),
            None => self.network.gaps.push(Silence {
                node: None,
                from: Some(at),
                what: Attribute::NodeInfo.name(),
                why: Why::TooFar,
            }),
        }
    }

    /// Handles the PortInfo of a port whose counters were read by LID. If a manager has changed the LID since it was
    /// read, another node may have answered.
    fn checked(&mut self, at: PortAt, info: PortInfo) {
        let of = &mut self.network.nodes[at.node];
        let is_switch = of.is_switch();
        let Some(known) = of.ports.get_mut(&at.port).and_then(|is| is.info.as_mut()) else {
            return;
        };
        let is_same = known.lid == info.lid;
        (known.lid, known.manager_lid) = (info.lid, info.manager_lid);
        known.state = info.state;
        if is_same {
            return;
        }
        let ports = of.ports.iter_mut();
        for (_, port) in ports.filter(|(port, _)| is_switch || **port == at.port) {
            port.counters.clear();
            port.narrow = None;
        }
        self.network.gaps.push(Silence {
            node: Some(at.node),
            from: None,
            what: Attribute::Counters(at.port).name(),
            why: Why::LidChanged,
        });
    }

    /// Stores a block of partition keys, and requests the next block unless this one was empty.
    fn keyed(&mut self, request: &Request, at: PortAt, block: u16, data: Data<'_>) {
        let keys = port::partition_keys(data);
        let of = &mut self.network.nodes[at.node];
        let next = block + 1;
        let is_last =
            keys.is_empty() || u32::from(next) * u32::from(KEYS) >= u32::from(of.info.partitions);
        let port = of.ports.entry(at.port).or_default();
        if !is_last && next >= KEY_BLOCKS {
            port.keys = None;
            return self.unanswered(request, Why::TooMany);
        }
        port.keys.get_or_insert_default().extend(keys);
        if !is_last {
            self.ask_at(at, request.get.to.clone(), Attribute::PartitionKeys(next));
        }
    }

    /// Stores the counters of a port, unless the LID of the request is no longer the node's.
    fn counted(&mut self, now: Nanos, request: &Request, at: PortAt, data: Data<'_>) {
        let of = &mut self.network.nodes[at.node];
        if of.lid(at.port).map(To::Lid).as_ref() != Some(&request.get.to) {
            return;
        }
        let is_wide = of.support.is_some_and(|support| support.wide);
        let port = of.ports.entry(at.port).or_default();
        let read = Counters::decode(data);
        if !is_wide {
            return port.counters.push((now, read));
        }
        port.narrow = Some(read);
        let to = request.get.to.clone();
        self.ask_at(at, to, Attribute::WideCounters(at.port));
    }

    /// Adds requests for the counters of all ports of a node that have a link. Before that, requests which counters it
    /// supports.
    pub(super) fn ask_for_counters(&mut self, node: usize) {
        let of = &self.network.nodes[node];
        let is_switch = of.is_switch();
        let lid = |(port, is): (&u8, &Port)| {
            let reaches = of.is_here(*port) && (is_switch || is.is_active());
            let lid = of.lid(*port).filter(|_| reaches && is.has_link())?;
            (*port > 0).then_some((*port, lid))
        };
        let ports: Vec<(u8, u16)> = of.ports.iter().filter_map(lid).collect();
        let (is_known, route) = (of.support.is_some(), of.route.clone());
        let Some((_, lid)) = ports.first() else {
            return;
        };
        if !is_known {
            let to = To::Lid(*lid);
            return self.ask(About::Node(node), to, Attribute::CounterSupport);
        }
        for (port, lid) in &ports {
            let attribute = Attribute::Counters(*port);
            self.ask_at(PortAt { node, port: *port }, To::Lid(*lid), attribute);
        }
        // Request PortInfo again, to see whether the LIDs are still those of the node.
        let own: Vec<u8> =
            if is_switch { vec![0] } else { ports.iter().map(|(port, _)| *port).collect() };
        for port in own {
            let attribute = Attribute::PortInfo(port);
            self.ask(About::Node(node), To::Route(route.clone()), attribute);
        }
    }
}
