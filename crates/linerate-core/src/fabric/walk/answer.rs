//! What a walk does with a reply: it stores the data, and asks for what they lead to.

use super::super::mad::counters::{Counters, Support};
use super::super::mad::node::{self, NodeInfo};
use super::super::mad::port::{self, ExtendedSpeed, PortInfo};
use super::super::mad::subnet::{ManagerInfo, SwitchInfo};
use super::super::mad::{Attribute, Data, Route, To};
use super::super::network::{Node, Port, PortAt};
use super::{About, Asked, NODES_MAX, Walk};
use crate::units::Nanos;

impl Walk {
    pub(super) fn answered(&mut self, now: Nanos, asked: &Asked, data: Data<'_>) {
        let node = match asked.about {
            About::Node(node) => node,
            About::Own | About::Beyond(_) => return self.found(asked, NodeInfo::decode(data)),
        };
        let Some(of) = self.network.nodes.get_mut(node) else {
            return;
        };
        match asked.get.attribute {
            Attribute::NodeDescription => of.description = node::description(data),
            Attribute::SwitchInfo => of.switch = Some(SwitchInfo::decode(data)),
            Attribute::ManagerInfo => of.manager = Some(ManagerInfo::decode(data)),
            Attribute::PortInfo(port) => {
                self.described(PortAt { node, port }, PortInfo::decode(data))
            }
            Attribute::ExtendedPortInfo(port) => {
                let port = of.ports.entry(port).or_default();
                port.info = port.info.map(|info| info.with(ExtendedSpeed::decode(data)));
            }
            Attribute::PartitionKeys { port, .. } => {
                of.ports.entry(port).or_default().keys = Some(port::partition_keys(data));
            }
            Attribute::CounterSupport => {
                of.support = Some(Support::decode(data));
                self.ask_for_counters(node);
            }
            Attribute::Counters(port) => {
                let read = (now, Counters::decode(data));
                of.ports.entry(port).or_default().counters.push(read);
                if of.support.is_some_and(|support| support.wide) {
                    let to = asked.get.to.clone();
                    self.ask(asked.about, to, Attribute::WideCounters(port));
                }
            }
            Attribute::WideCounters(port) => {
                let port = of.ports.entry(port).or_default();
                if let Some((_, read)) = port.counters.last_mut() {
                    *read = read.with_wide(data);
                }
            }
            Attribute::NodeInfo | Attribute::Forwarding(_) | Attribute::Path { .. } => {}
        }
    }

    /// Takes a node that answered at the end of a route.
    fn found(&mut self, asked: &Asked, info: NodeInfo) {
        let To::Route(route) = &asked.get.to else {
            return;
        };
        if self.network.nodes.len() >= NODES_MAX && self.network.by_guid(info.guid).is_none() {
            return self.unanswered(asked, format!("more than {NODES_MAX} nodes"));
        }
        let (node, is_new) = self.network.add(info, route);
        let at = PortAt {
            node,
            port: info.local_port,
        };
        self.network.named(at, info.port_guid);
        if let About::Beyond(from) = asked.about {
            self.network.join(from, at);
        }
        if is_new {
            self.ask_about(node, route);
        }
    }

    /// Asks a new node for its description and its ports.
    fn ask_about(&mut self, node: usize, route: &Route) {
        let of = &self.network.nodes[node];
        let (is_switch, ports) = (of.is_switch(), of.info.ports);
        let first = u8::from(!is_switch);
        let mut attributes = vec![Attribute::NodeDescription];
        if is_switch {
            attributes.push(Attribute::SwitchInfo);
        }
        attributes.extend((first..=ports).map(Attribute::PortInfo));
        for attribute in attributes {
            self.ask(About::Node(node), To::Route(route.clone()), attribute);
        }
    }

    /// Takes what a port is, and asks for the node at the other end of its link.
    fn described(&mut self, at: PortAt, info: PortInfo) {
        let own = self.network.own();
        let of = &mut self.network.nodes[at.node];
        let port = of.ports.entry(at.port).or_default();
        port.info = Some(info);
        let has_link = port.has_link();
        let (route, peer) = (of.route.clone(), port.peer);
        let about = About::Node(at.node);
        if has_link && of.is_here(at.port) && !of.is_switch() {
            let keys = Attribute::PartitionKeys {
                port: at.port,
                block: 0,
            };
            self.ask(about, To::Route(route.clone()), keys);
        }
        let leads_on = self.network.nodes[at.node].is_switch() || Some(at) == own;
        if !has_link || peer.is_some() || at.port == 0 || !leads_on {
            return;
        }
        if let Some(next) = route.then(at.port) {
            self.ask(About::Beyond(at), To::Route(next), Attribute::NodeInfo);
        }
    }

    /// Asks a node for the counters of all ports that have a link, or first for what its counters can do.
    pub(super) fn ask_for_counters(&mut self, node: usize) {
        let of = &self.network.nodes[node];
        let (Some(lid), about) = (reached_by(of), About::Node(node)) else {
            return;
        };
        if of.support.is_none() {
            return self.ask(about, To::Lid(lid), Attribute::CounterSupport);
        }
        let is_read = |port| port > 0 && of.is_here(port);
        let linked = of
            .ports
            .iter()
            .filter(|(port, is)| is_read(**port) && is.has_link());
        let ports: Vec<u8> = linked.map(|(port, _)| *port).collect();
        for port in ports {
            self.ask(about, To::Lid(lid), Attribute::Counters(port));
        }
    }
}

/// The LID by which a node is reached on this network, if packets reach it.
fn reached_by(of: &Node) -> Option<u16> {
    let port = if of.is_switch() {
        0
    } else {
        of.info.local_port
    };
    let is_active = of.is_switch() || of.ports.get(&port).is_some_and(Port::is_active);
    of.lid(port).filter(|_| is_active)
}
