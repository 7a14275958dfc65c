//! An InfiniBand network as far as its nodes answered: nodes, their ports, and the links between them.

mod route;

use std::collections::BTreeMap;
use std::fmt;

use super::mad::counters::{Counters, Support};
use super::mad::node::{NodeInfo, NodeKind};
use super::mad::port::{PartitionKey, PortInfo};
use super::mad::subnet::{BLOCK, ManagerInfo, Path, SwitchInfo};
use super::mad::{Attribute, PortId, Route};
use linerate_ceiling::infiniband::Speed;
use linerate_facts::infiniband::{Guid, LinkState, PhysicalState};
use linerate_units::{Nanos, Rate};

pub use route::{End, Routed};

/// A port of a node in the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortAt {
    /// Index of the node in [`Network::nodes`].
    pub node: usize,
    /// Number of the port.
    pub port: u8,
}

/// All nodes that answered, with what they replied.
#[derive(Debug, Default)]
pub struct Network {
    /// The nodes; the first is this host's adapter.
    pub nodes: Vec<Node>,
    by_guid: BTreeMap<Guid, usize>,
    /// Paths that the subnet manager returned, by the GUIDs of the ports at both ends.
    pub(super) paths: BTreeMap<(Guid, Guid), Path>,
    /// Requests that no node answered, or that a node refused.
    pub gaps: Vec<Silence>,
    /// Whether the walk ended before all requests were sent and answered.
    pub cut: bool,
}

/// A node: an adapter, a switch or a router.
#[derive(Debug)]
pub struct Node {
    /// The attribute NodeInfo of the node.
    pub info: NodeInfo,
    /// Description that the node reports; empty if unknown.
    pub description: String,
    /// Whether another node has the same description, as switches without a management processor may have.
    pub(super) is_shared: bool,
    /// The first route by which the node was found.
    pub route: Route,
    /// Ports of the node, by number. Port 0 of a switch is the switch itself.
    pub ports: BTreeMap<u8, Port>,
    /// Size of a switch's forwarding table; `None` if unknown, and for an adapter.
    pub switch: Option<SwitchInfo>,
    /// Which counters the node supports; `None` if unknown.
    pub support: Option<Support>,
    /// Blocks of a switch's forwarding table that were read, by number.
    pub forwarding: BTreeMap<u16, [u8; BLOCK]>,
    /// Number of requests sent to the node that have a reply or are given up; each try counts.
    pub sent: u32,
    /// Number of these tries that had no reply.
    pub lost: u32,
    /// Time of the node's last reply.
    pub(super) replied: Nanos,
}

/// A port of a node.
#[derive(Debug, Default)]
pub struct Port {
    /// The attribute PortInfo of the port; `None` if the node did not answer.
    pub info: Option<PortInfo>,
    /// GUID of the port; `None` if unknown.
    pub guid: Option<Guid>,
    /// The port at the other end of the link; `None` without a link, or if the other end did not answer.
    pub peer: Option<PortAt>,
    /// A second port whose link seems to lead to this one. A port has only one cable: so one of the two ports leads to
    /// another node with the same GUID, or a node reports false data.
    pub second: Option<PortAt>,
    /// The first route that ends at this port, if it is an adapter's.
    pub route: Option<Route>,
    /// Partition keys of an adapter's port; `None` if unknown.
    pub keys: Option<Vec<PartitionKey>>,
    /// The subnet manager that runs at the port; `None` if there is none, or if unknown.
    pub manager: Option<ManagerInfo>,
    /// Readings of the counters, each with the time at which the reply arrived.
    pub counters: Vec<(Nanos, Counters)>,
    /// Counters of a reading whose 64-bit values have not arrived yet.
    pub(super) narrow: Option<Counters>,
}

/// A request without a useful reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    /// The node that did not answer; `None` if it is unknown: the node at the far end of the link of `from`.
    pub node: Option<usize>,
    /// The port that leads to an unknown node.
    pub from: Option<PortAt>,
    /// Name of the requested attribute.
    pub what: &'static str,
    /// Why there is no useful reply.
    pub why: Why,
}

/// Why a request has no useful reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The request was sent this number of times, and no reply arrived.
    NoReply(u32),
    /// The request was not sent, because the node no longer replied.
    NotSent,
    /// The node refused the request, with this status.
    Refused(u16),
    /// The reply does not fit the request.
    Unreadable,
    /// Nodes report more nodes or ports than a walk accepts.
    TooMany,
    /// The directed route would have more than [`HOPS_MAX`](super::mad::HOPS_MAX) links.
    TooFar,
    /// The node reports that the request arrived at a port that the node does not have.
    NoSuchPort(u8),
    /// This host cannot send the request, because no port has this host's LID; or the request is not in the capture.
    NotPossible,
    /// This host is a limited member of its partition. This number of nodes are not known to be full members: they
    /// would drop its requests.
    LimitedMember(usize),
    /// The LID of the node changed while its counters were read.
    LidChanged,
}

impl Why {
    /// Whether a part of the network stays unknown although nodes replied.
    pub fn is_odd(self) -> bool {
        matches!(
            self,
            Self::Unreadable
                | Self::TooMany
                | Self::TooFar
                | Self::NoSuchPort(_)
                | Self::NotPossible
                | Self::LidChanged
        )
    }

    /// Whether the request or the reply was lost, at the node or on the way.
    pub fn is_silent(self) -> bool {
        matches!(self, Self::NoReply(_) | Self::NotSent)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoReply(1) => write!(f, "no reply to 1 request"),
            Self::NoReply(tries) => write!(f, "no reply to {tries} requests"),
            Self::NotSent => write!(f, "not sent, because the node no longer replied"),
            Self::Refused(status) => write!(f, "refused (status {status:#06x})"),
            Self::Unreadable => write!(f, "the reply does not fit the request"),
            Self::TooMany => write!(f, "the network claims more nodes or ports than a walk takes"),
            Self::TooFar => write!(f, "a directed route has at most 63 links"),
            Self::NoSuchPort(port) => {
                write!(f, "the request arrived at port {port}, which the node does not have")
            }
            Self::NotPossible => write!(f, "it could not be asked for from here"),
            Self::LimitedMember(1) => {
                write!(f, "not asked: this host is a limited member of its partition")
            }
            Self::LimitedMember(nodes) => write!(
                f,
                "not asked, nor {} more nodes: this host is a limited member of its partition",
                nodes - 1
            ),
            Self::LidChanged => write!(f, "its LID changed while its counters were read"),
        }
    }
}

/// Number of lanes of a link, and the speed of each lane.
#[derive(Debug, Clone, Copy)]
pub struct Lanes {
    /// Number of lanes in the link.
    pub width: u32,
    /// Speed of each lane.
    pub speed: Speed,
}

impl Lanes {
    /// Returns the data rate in bits per second.
    pub fn rate(self) -> Rate {
        Rate((f64::from(self.width) * self.speed.lane()) as u64)
    }

    /// Whether there are fewer lanes than in `other`, or the lanes are slower.
    pub fn is_below(self, other: Self) -> bool {
        self.width < other.width || self.speed.lane() < other.speed.lane()
    }
}

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x {} ({})", self.width, self.speed.name(), self.rate())
    }
}

impl Port {
    /// Returns the lanes in use; `None` without a link, or if they are unknown.
    pub fn lanes(&self) -> Option<Lanes> {
        let info = self.info.filter(|_| self.has_link())?;
        Some(Lanes { width: info.width.active?, speed: info.speed.active? })
    }

    /// Whether the port has a link.
    pub fn has_link(&self) -> bool {
        self.info.is_some_and(|info| match info.physical {
            Some(physical) => physical == PhysicalState::LinkUp,
            None => info.state.is_some_and(|state| state != LinkState::Down),
        })
    }

    /// Whether the port is active: packets may pass.
    pub fn is_active(&self) -> bool {
        let state = self.info.and_then(|info| info.state);
        matches!(state, Some(LinkState::Active | LinkState::ActiveDefer))
    }

    /// Whether a LID is one of the port's: a port has 2 to the power of its mask.
    fn has_lid(&self, lid: u16) -> bool {
        self.info.is_some_and(|info| {
            let low = lid & !((1 << info.lid_mask) - 1);
            info.lid != 0 && lid != 0 && (info.lid == lid || info.lid == low)
        })
    }
}

impl Node {
    /// Whether the node is a switch.
    pub fn is_switch(&self) -> bool {
        self.info.kind == NodeKind::Switch
    }

    /// Whether a port is on this network. Other ports of an adapter are on other networks, unless a link shows that
    /// they are here.
    pub fn is_here(&self, port: u8) -> bool {
        let has_peer = |port: &Port| port.peer.is_some();
        self.is_switch()
            || port == self.info.local_port
            || self.ports.get(&port).is_some_and(has_peer)
    }

    /// Returns the name for people: the node's description, with the GUID if other nodes have the same description; or
    /// only the GUID, if the node has no description.
    pub fn name(&self) -> String {
        let guid = self.info.guid;
        match self.description.as_str() {
            "" => guid.to_string(),
            shared if self.is_shared => format!("{shared} ({guid})"),
            own => own.to_owned(),
        }
    }

    /// Returns the LID by which a port of the node is reached. A switch has one LID for all of its ports. `None` if no
    /// subnet manager has given one.
    pub fn lid(&self, port: u8) -> Option<u16> {
        let port = if self.is_switch() { 0 } else { port };
        let info = self.ports.get(&port)?.info?;
        (info.lid != 0).then_some(info.lid)
    }
}

impl Node {
    /// Whether any port of an adapter is a full member of the partition of `key`. Keys of switches are not read.
    pub(super) fn has_full_member(&self, key: PartitionKey) -> bool {
        let mut keys = self.ports.values().filter_map(|port| port.keys.as_ref());
        let is_member = |own: &PartitionKey| own.is_full() && own.partition() == key.partition();
        keys.any(|keys| keys.iter().any(is_member))
    }
}

impl Network {
    /// Whether a part of the network may be unseen. If so, a missing node cannot be told from one that did not answer.
    pub fn is_partly_unseen(&self) -> bool {
        // Nodes and links are found by replies with these two attributes.
        let shows = [Attribute::NodeInfo, Attribute::PortInfo(0)].map(Attribute::name);
        let unseen = |gap: &Silence| shows.contains(&gap.what);
        self.cut || self.gaps.iter().any(unseen)
    }

    /// Whether a node is an adapter of a host. The aggregation adapter inside a switch is not.
    //= NVIDIA, tables of devices of its tools: 53001 (0xcf09) is the aggregation node of Quantum
    pub fn is_host(&self, node: usize) -> bool {
        const AGGREGATION: (u32, u16) = (0x2c9, 0xcf09);
        let Some(of) = self.nodes.get(node) else {
            return false;
        };
        let is_adapter = of.info.kind == NodeKind::Host;
        is_adapter && (of.info.vendor, of.info.device) != AGGREGATION
    }

    /// Returns the index of the node with a GUID.
    pub fn by_guid(&self, guid: Guid) -> Option<usize> {
        self.by_guid.get(&guid).copied()
    }

    /// Returns the port with this node and number.
    pub fn port(&self, at: PortAt) -> Option<&Port> {
        self.nodes.get(at.node)?.ports.get(&at.port)
    }

    /// Returns the port of this host from which the network was walked. `None` before anything answered.
    pub fn own(&self) -> Option<PortAt> {
        let port = self.nodes.first()?.info.local_port;
        Some(PortAt { node: 0, port })
    }

    /// Whether a port is on this network.
    pub fn is_here(&self, at: PortAt) -> bool {
        self.nodes.get(at.node).is_some_and(|node| node.is_here(at.port))
    }

    /// Returns the name of a port in words: `SRV port 2`.
    pub fn name(&self, at: PortAt) -> String {
        let node = self.nodes.get(at.node).map_or_else(String::new, Node::name);
        match at.port {
            // Port 0 is the switch itself.
            0 => node,
            port => format!("{node} port {port}"),
        }
    }

    /// Returns all ports, each with its node and number.
    pub fn ports(&self) -> impl Iterator<Item = (PortAt, &Port)> {
        let numbered = self.nodes.iter().enumerate();
        numbered.flat_map(|(node, of)| {
            let ports = of.ports.iter();
            ports.map(move |(port, is)| (PortAt { node, port: *port }, is))
        })
    }

    /// Returns all links, each once: the end that sorts first, then the other end.
    pub fn links(&self) -> impl Iterator<Item = (PortAt, PortAt)> {
        let peers = self.ports().filter_map(|(at, port)| Some((at, port.peer?)));
        peers.filter(|(at, peer)| at < peer)
    }

    /// Returns the port that has a LID; of several ports, the first one.
    pub fn by_lid(&self, lid: u16) -> Option<PortAt> {
        self.all_by_lid(lid).next()
    }

    /// Returns all ports that have a LID: more than one port is a fault of the network.
    pub fn all_by_lid(&self, lid: u16) -> impl Iterator<Item = PortAt> {
        let has = move |(at, port): &(PortAt, &Port)| {
            let is_end = at.port == 0 || !self.nodes[at.node].is_switch();
            is_end && port.has_lid(lid)
        };
        self.ports().filter(has).map(|(at, _)| at)
    }

    /// Returns the identity of a port for a path record. `None` if its GUID is unknown.
    pub(super) fn id(&self, at: PortAt) -> Option<PortId> {
        /// Subnet prefix that is used if no manager has set one.
        const DEFAULT: u64 = 0xfe80 << 48;
        let node = self.nodes.get(at.node)?;
        let port = node.ports.get(&at.port)?;
        let guid = if node.is_switch() { Some(node.info.port_guid) } else { port.guid };
        let prefix = port.info.map_or(0, |info| info.prefix);
        Some(PortId {
            prefix: if prefix == 0 { DEFAULT } else { prefix },
            guid: guid.filter(|guid| *guid != Guid::NONE)?,
        })
    }

    /// Returns the path between two ports that the subnet manager returned; see [`super::walk::Walk::ask_for_path`].
    pub fn path(&self, from: PortAt, to: PortAt) -> Option<&Path> {
        self.paths.get(&(self.id(from)?.guid, self.id(to)?.guid))
    }

    /// Returns the subnet managers, each with the index of the node at which it runs.
    pub fn managers(&self) -> impl Iterator<Item = (usize, &ManagerInfo)> {
        self.ports().filter_map(|(at, port)| Some((at.node, port.manager.as_ref()?)))
    }

    /// Returns the nodes whose description is `name`. If there are none, returns those whose description begins with
    /// this word: a host's description is its host name and the name of the adapter.
    pub fn by_name(&self, name: &str) -> Vec<usize> {
        let those = |is: &dyn Fn(&str) -> bool| -> Vec<usize> {
            let numbered = self.nodes.iter().enumerate();
            let found = numbered.filter(|(_, of)| is(&of.description));
            found.map(|(node, _)| node).collect()
        };
        let whole = those(&|description| description == name);
        if !whole.is_empty() {
            return whole;
        }
        those(&|description| description.split(' ').next() == Some(name))
    }

    /// Marks nodes that have the same description as another node, so that their names get the GUID.
    pub(super) fn mark_shared_names(&mut self) {
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        for node in &self.nodes {
            *count.entry(node.description.as_str()).or_default() += 1;
        }
        let shared: Vec<bool> = self
            .nodes
            .iter()
            .map(|node| count.get(node.description.as_str()).is_some_and(|n| *n > 1))
            .collect();
        for (node, is_shared) in self.nodes.iter_mut().zip(shared) {
            node.is_shared = is_shared;
        }
    }

    /// Adds a node, unless its GUID is known. Returns its index, and whether it is new.
    pub(super) fn add(&mut self, info: NodeInfo, route: &Route) -> (usize, bool) {
        if let Some(known) = self.by_guid(info.guid) {
            return (known, false);
        }
        let node = self.nodes.len();
        self.by_guid.insert(info.guid, node);
        self.nodes.push(Node {
            info,
            description: String::new(),
            is_shared: false,
            route: route.clone(),
            ports: BTreeMap::new(),
            switch: None,
            support: None,
            forwarding: BTreeMap::new(),
            sent: 0,
            lost: 0,
            replied: Nanos(0),
        });
        (node, true)
    }

    /// Records the link between two ports at both of them.
    pub(super) fn join(&mut self, a: PortAt, b: PortAt) {
        for (at, peer) in [(a, b), (b, a)] {
            let Some(node) = self.nodes.get_mut(at.node) else {
                continue;
            };
            let port = node.ports.entry(at.port).or_default();
            match port.peer {
                Some(other) if other != peer => port.second = Some(peer),
                _ => port.peer = Some(peer),
            }
        }
    }
}
