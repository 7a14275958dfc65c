//! A network in memory that answers management datagrams, for tests. It has adapters, switches, links, a manager,
//! counters and faults.
//!
//! ```
//! use linerate_sim::fabric::Fake;
//!
//! let mut fake = Fake::star(4);
//! fake.manage("H1", 1);
//! let network = fake.network("H2");
//! assert_eq!(network.nodes.len(), 5);
//! ```

mod answer;
mod drive;

use std::collections::{BTreeMap, VecDeque};

use linerate_ceiling::infiniband::Speed;
use linerate_fabric::mad::counters::COUNT;
use linerate_fabric::mad::node::NodeKind;
use linerate_units::Nanos;

pub use drive::Drive;

/// A port: index of its node, and its number.
pub type At = (usize, u8);

/// Width of a link in lanes, with its code.
const WIDTHS: [(u32, u8); 5] = [(1, 1), (4, 2), (8, 4), (12, 8), (2, 16)];

/// A fake network.
#[derive(Debug, Clone, Default)]
pub struct Fake {
    /// The nodes of the network, by index.
    pub nodes: Vec<FakeNode>,
    /// Seed of the random numbers that decide which datagrams are lost.
    pub seed: u64,
}

/// A node of the fake network.
#[derive(Debug, Clone)]
pub struct FakeNode {
    /// Description that the node reports.
    pub name: String,
    /// Kind of the node.
    pub kind: NodeKind,
    /// GUID of the node. A switch has it at all of its ports.
    pub guid: u64,
    /// Id of the vendor.
    pub vendor: u32,
    /// Device id of the vendor.
    pub device: u16,
    /// False claims of the node, if it makes any: its number of ports, and the port at which requests arrive.
    pub claims: [Option<u8>; 2],
    /// Number of partition keys that each port has room for.
    pub partitions: u16,
    /// Ports of the node, by number; port 0 is a switch itself.
    pub ports: BTreeMap<u8, FakePort>,
    /// The forwarding table of a switch.
    pub forwarding: Vec<u8>,
    /// Share of datagrams that the node loses, in percent.
    pub loss: u32,
    /// Time from a request to the node's reply.
    pub delay: Nanos,
    /// Capability masks of the node's counters: first and second.
    pub counting: [u32; 2],
    /// Numbers of attributes that the node refuses.
    pub refused: Vec<u16>,
    /// Numbers of attributes to which the node does not reply.
    pub mute: Vec<u16>,
}

/// A port of the fake network.
#[derive(Debug, Clone)]
pub struct FakePort {
    /// GUID of the port.
    pub guid: u64,
    /// The port at the other end of the cable.
    pub peer: Option<At>,
    /// Codes of the link state and the physical state.
    pub states: [u8; 2],
    /// The LID of the port.
    pub lid: u16,
    /// Binary logarithm of the number of LIDs of the port.
    pub lid_mask: u8,
    /// LID of the subnet manager.
    pub manager_lid: u16,
    /// Capability mask of the port, as PortInfo reports it.
    pub capabilities: u32,
    /// Bits of supported, enabled and active widths.
    pub width: [u8; 3],
    /// Codes of supported, enabled and active speeds, in each of three fields: speed, extended speed, extended speed 2.
    pub speed: [[u8; 3]; 3],
    /// NVIDIA's speed FDR10: supported, enabled and active.
    pub own_speed: [u8; 3],
    /// Partition keys of the port.
    pub keys: Vec<u16>,
    /// Number of packets that the port refused because of their partition.
    pub violations: u16,
    /// State and priority of the manager that runs at the port.
    pub manager: Option<(u8, u8)>,
    /// Values of the counters, in the order of their table.
    pub counters: [u64; COUNT],
    /// Growth of each counter when time passes.
    pub rise: [u64; COUNT],
}

impl Fake {
    /// Adds a node of a kind, without cables.
    pub fn add(&mut self, name: &str, kind: NodeKind, ports: u8) -> usize {
        let node = self.nodes.len();
        let guid = 0x0002_c903_0000_0000 + (node as u64) * 0x100;
        let first = u8::from(kind != NodeKind::Switch);
        let port = |number: u8| {
            let own = if first == 0 { 0 } else { number };
            (number, FakePort::new(guid + u64::from(own)))
        };
        self.nodes.push(FakeNode {
            name: name.to_owned(),
            kind,
            guid,
            vendor: 0x2c9,
            device: 0x1017,
            claims: [None; 2],
            partitions: 128,
            ports: (first..=ports).map(port).collect(),
            forwarding: vec![0xff; 0x4000],
            loss: 0,
            delay: Nanos(20_000),
            counting: [0x1200, 0],
            refused: Vec::new(),
            mute: Vec::new(),
        });
        node
    }

    /// Adds an adapter of a host.
    pub fn host(&mut self, name: &str, ports: u8) -> usize {
        self.add(name, NodeKind::Host, ports)
    }

    /// Adds a switch.
    pub fn switch(&mut self, name: &str, ports: u8) -> usize {
        self.add(name, NodeKind::Switch, ports)
    }

    /// Joins two ports with a cable. Their link comes up and waits for a manager.
    pub fn link(&mut self, a: At, b: At) {
        for (at, peer) in [(a, b), (b, a)] {
            let port = self.port(at);
            port.peer = Some(peer);
            port.states = [2, 5];
        }
    }

    /// Removes a cable at both ends.
    pub fn unlink(&mut self, a: At) {
        let peer = self.port(a).peer;
        for at in [Some(a), peer].into_iter().flatten() {
            let port = self.port(at);
            port.peer = None;
            port.states = [1, 2];
        }
    }

    /// Returns the port with this node and number.
    ///
    /// # Panics
    ///
    /// If there is no such port.
    pub fn port(&mut self, (node, port): At) -> &mut FakePort {
        let found = self.nodes[node].ports.get_mut(&port);
        found.expect("a port of the fake network")
    }

    /// Returns the index of the node with this name.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    pub fn node(&self, name: &str) -> usize {
        let found = self.nodes.iter().position(|node| node.name == name);
        found.expect("a node of the fake network")
    }

    /// Sets the lanes and speed of the link at a port. Both ends then support and enable these, and all lower ones.
    pub fn rate(&mut self, at: At, lanes: u32, speed: Speed) {
        let peer = self.port(at).peer;
        for at in [Some(at), peer].into_iter().flatten() {
            self.port(at).rate(lanes, speed);
        }
    }

    /// A switch `SW` with hosts `H1`, `H2` and so on.
    pub fn star(hosts: u8) -> Self {
        let mut fake = Self::default();
        let all: Vec<usize> = (1..=hosts).map(|n| fake.host(&format!("H{n}"), 1)).collect();
        let switch = fake.switch("SW", hosts + 2);
        for (n, host) in all.into_iter().enumerate() {
            fake.link((host, 1), (switch, n as u8 + 1));
        }
        fake
    }

    /// A tree with leaf switches `leaf1`, `leaf2` and so on. Each has hosts, such as `host-1-1`, and is joined to all
    /// spines: `spine1` and so on.
    pub fn fat_tree(leaves: u8, hosts: u8, spines: u8) -> Self {
        let mut fake = Self::default();
        let mut names = Vec::new();
        for leaf in 1..=leaves {
            names.extend((1..=hosts).map(|host| (leaf, host)));
        }
        for (leaf, host) in &names {
            fake.host(&format!("host-{leaf}-{host}"), 1);
        }
        let first = fake.nodes.len();
        for leaf in 1..=leaves {
            fake.switch(&format!("leaf{leaf}"), hosts + spines);
        }
        for (node, (leaf, host)) in names.into_iter().enumerate() {
            fake.link((node, 1), (first + usize::from(leaf) - 1, host));
        }
        for spine in 1..=spines {
            let node = fake.switch(&format!("spine{spine}"), leaves);
            for leaf in 1..=leaves {
                fake.link((node, leaf), (first + usize::from(leaf) - 1, hosts + spine));
            }
        }
        fake
    }

    /// A host `SRV` with two ports; host `CLA` is joined to port 1, and `CLB` to port 2.
    pub fn two_ports() -> Self {
        let mut fake = Self::default();
        let [server, a, b] =
            [("SRV", 2), ("CLA", 1), ("CLB", 1)].map(|(name, n)| fake.host(name, n));
        fake.link((server, 1), (a, 1));
        fake.link((server, 2), (b, 1));
        fake
    }

    /// Starts a subnet manager at a port: it gives LIDs, fills the forwarding tables and activates all ports that it
    /// reaches.
    pub fn manage(&mut self, name: &str, port: u8) {
        let start = (self.node(name), port);
        let manager = self.port(start);
        manager.manager = Some((3, 0));
        manager.capabilities |= 1 << 1;
        let mut ends = Vec::new();
        for at in self.reached(start) {
            let is_end = self.nodes[at.0].kind != NodeKind::Switch || at.1 == 0;
            let lid = ends.len() as u16 + 1;
            let port = self.port(at);
            port.manager_lid = 1;
            if at.1 != 0 {
                port.states = [4, 5];
            }
            if is_end {
                port.lid = lid;
                ends.push(at);
            }
        }
        for end in ends {
            self.forward(end);
        }
    }

    /// All linked ports that the manager at `start` reaches, the nearest first, with port 0 of switches.
    fn reached(&mut self, start: At) -> Vec<At> {
        let mut found = vec![start];
        let mut next = 0;
        while let Some(at) = found.get(next).copied() {
            next += 1;
            let mut add: Vec<At> = self.port(at).peer.into_iter().collect();
            let node = &self.nodes[at.0];
            if node.kind == NodeKind::Switch {
                let linked = node.ports.iter().filter(|(n, is)| **n == 0 || is.peer.is_some());
                add.extend(linked.map(|(n, _)| (at.0, *n)));
            }
            add.retain(|at| !found.contains(at));
            add.dedup();
            found.extend(add);
        }
        found
    }

    /// Writes the shortest ways to the port `end` into all forwarding tables.
    fn forward(&mut self, end: At) {
        let lid = usize::from(self.port(end).lid);
        let mut seen = vec![end.0];
        let mut next = VecDeque::new();
        if end.1 == 0 {
            self.nodes[end.0].forwarding[lid] = 0;
            next.push_back(end.0);
        } else if let Some((node, port)) = self.port(end).peer {
            if self.nodes[node].kind == NodeKind::Switch {
                self.nodes[node].forwarding[lid] = port;
                next.push_back(node);
            }
            seen.push(node);
        }
        while let Some(node) = next.pop_front() {
            let peers: Vec<At> = self.nodes[node].ports.values().filter_map(|p| p.peer).collect();
            for (peer, port) in peers {
                if !seen.contains(&peer) && self.nodes[peer].kind == NodeKind::Switch {
                    self.nodes[peer].forwarding[lid] = port;
                    next.push_back(peer);
                    seen.push(peer);
                }
            }
        }
    }

    /// Adds its growth to each counter.
    pub fn pass_time(&mut self) {
        for port in self.nodes.iter_mut().flat_map(|node| node.ports.values_mut()) {
            for (value, rise) in port.counters.iter_mut().zip(port.rise) {
                *value = value.wrapping_add(rise);
            }
        }
    }
}

impl FakePort {
    fn new(guid: u64) -> Self {
        let mut port = Self {
            guid,
            peer: None,
            states: [1, 2],
            lid: 0,
            lid_mask: 0,
            manager_lid: 0,
            capabilities: 1 << 14,
            width: [0; 3],
            speed: [[0; 3]; 3],
            own_speed: [0; 3],
            keys: vec![0xffff],
            violations: 0,
            manager: None,
            counters: [0; COUNT],
            rise: [0; COUNT],
        };
        port.rate(4, Speed::Fdr);
        port
    }

    /// Sets the lanes and speed in use; the port then supports and enables these and all lower ones.
    pub fn rate(&mut self, lanes: u32, speed: Speed) {
        self.most(lanes, speed);
        self.runs(lanes, speed);
    }

    /// Sets the most lanes and the highest speed; the port then supports and enables these and all lower ones.
    pub fn most(&mut self, lanes: u32, speed: Speed) {
        let upto = WIDTHS.iter().filter(|(n, _)| *n <= lanes);
        let width = upto.map(|(_, code)| code).sum();
        let [speed, extended, extended2] = codes(speed);
        // A port that supports a speed supports all slower ones, too.
        let below = |code: u8| if code == 0 { 0 } else { code * 2 - 1 };
        let low = if extended | extended2 == 0 { below(speed) } else { 7 };
        let middle = if extended2 == 0 { below(extended) } else { 15 };
        (self.width[0], self.width[1]) = (width, width);
        for (of, code) in self.speed.iter_mut().zip([low, middle, extended2]) {
            (of[0], of[1]) = (code, code);
        }
    }

    /// Sets the lanes and speed in use.
    pub fn runs(&mut self, lanes: u32, speed: Speed) {
        let width = WIDTHS.iter().find(|(n, _)| *n == lanes);
        self.width[2] = width.map_or(0, |(_, code)| *code);
        for (of, code) in self.speed.iter_mut().zip(codes(speed)) {
            of[2] = code;
        }
    }
}

/// Codes of a speed in the three fields of PortInfo: speed, extended speed, extended speed 2.
fn codes(speed: Speed) -> [u8; 3] {
    match speed {
        Speed::Sdr => [1, 0, 0],
        Speed::Ddr => [2, 0, 0],
        Speed::Qdr | Speed::Fdr10 => [4, 0, 0],
        Speed::Fdr => [4, 1, 0],
        Speed::Edr => [4, 2, 0],
        Speed::Hdr => [4, 4, 0],
        Speed::Ndr => [4, 8, 0],
        Speed::Xdr => [4, 0, 1],
    }
}
