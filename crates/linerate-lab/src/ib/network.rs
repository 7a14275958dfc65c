//! The simulated network: its nodes, their cables, the lanes and speed that each port may use, and ibsim's file of it.

use std::fmt;
use std::str::FromStr;

use super::error::IbError;

/// Largest network that ibsim can simulate without options.
//= ibsim 0.10: ibsim/sim.h, MAXNETNODES, MAXNETSWITCHS and MAXNETPORTS
const NODES_MAX: usize = 2048;
const SWITCHES_MAX: usize = 256;
const PORTS_MAX: usize = 13_312;

/// Most ports of a switch: port number 255 means all ports, and port 0 is the switch itself.
const PORTS_OF_SWITCH_MAX: usize = 254;

/// Shape of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// Host SRV with two ports: a cable from port 1 to host CLA, and one from port 2 to host CLB.
    TwoPorts,
    /// One switch with this many hosts.
    Star(u8),
    /// Leaf switches, each with its own hosts, and spine switches, each with a cable to every leaf.
    FatTree {
        /// Number of leaf switches.
        leaves: u8,
        /// Number of hosts of each leaf.
        hosts: u8,
        /// Number of spine switches.
        spines: u8,
    },
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoPorts => write!(f, "two-ports"),
            Self::Star(hosts) => write!(f, "star:{hosts}"),
            Self::FatTree { leaves, hosts, spines } => {
                write!(f, "fat-tree:{leaves},{hosts},{spines}")
            }
        }
    }
}

impl FromStr for Topology {
    type Err = IbError;

    fn from_str(text: &str) -> Result<Self, IbError> {
        let wrong = || {
            let why = format!(
                "`{text}` is not two-ports, star:HOSTS or fat-tree:LEAVES,HOSTS,SPINES, with numbers from 1 to 254"
            );
            IbError::impossible(why)
        };
        let (name, numbers) = text.split_once(':').unwrap_or((text, ""));
        let numbers: Option<Vec<u8>> = match numbers {
            "" => Some(Vec::new()),
            some => some.split(',').map(|n| n.parse().ok()).collect(),
        };
        let numbers = numbers.ok_or_else(wrong)?;
        if numbers.iter().any(|n| *n < 1 || *n > 254) {
            return Err(wrong());
        }
        match (name, &numbers[..]) {
            ("two-ports", []) => Ok(Self::TwoPorts),
            ("star", []) => Ok(Self::Star(4)),
            ("star", [hosts]) => Ok(Self::Star(*hosts)),
            ("fat-tree", [leaves, hosts, spines]) => {
                Ok(Self::FatTree { leaves: *leaves, hosts: *hosts, spines: *spines })
            }
            _ => Err(wrong()),
        }
    }
}

/// The most lanes and the highest speed that a port may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    lanes: u8,
    speed: &'static str,
}

impl Link {
    /// Lanes and speeds that can be written in ibsim's file.
    const LANES: [u8; 4] = [1, 2, 4, 12];
    const SPEEDS: [&str; 7] = ["SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR"];
}

impl Default for Link {
    fn default() -> Self {
        Self { lanes: 4, speed: "EDR" }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.lanes, self.speed)
    }
}

impl FromStr for Link {
    type Err = IbError;

    fn from_str(text: &str) -> Result<Self, IbError> {
        let known = text.split_once('x').and_then(|(lanes, speed)| {
            let lanes = lanes.parse().ok().filter(|n| Self::LANES.contains(n))?;
            let speed = Self::SPEEDS.into_iter().find(|known| *known == speed)?;
            Some(Self { lanes, speed })
        });
        known.ok_or_else(|| {
            let speeds = Self::SPEEDS.join(", ");
            IbError::impossible(format!(
                "`{text}` is not lanes (1, 2, 4 or 12), x and a speed ({speeds}), such as 4xEDR"
            ))
        })
    }
}

/// A port of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortName {
    /// Name of the node.
    pub node: String,
    /// Number of the port; 0 is the switch itself.
    pub port: u8,
}

impl PortName {
    /// Makes the name of a port.
    pub fn new(node: impl Into<String>, port: u8) -> Self {
        Self { node: node.into(), port }
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.node, self.port)
    }
}

impl FromStr for PortName {
    type Err = IbError;

    fn from_str(text: &str) -> Result<Self, IbError> {
        let named = text.split_once(':').and_then(|(node, port)| {
            let port = port.parse().ok()?;
            (!node.is_empty()).then(|| Self::new(node, port))
        });
        named
            .ok_or_else(|| IbError::impossible(format!("`{text}` is not NODE:PORT, such as CLB:1")))
    }
}

/// The port of a node at one end of a cable, and its peer at the other end.
#[derive(Debug, Clone)]
struct End {
    port: u8,
    peer: PortName,
    most: Link,
}

#[derive(Debug, Clone)]
struct Node {
    name: String,
    is_switch: bool,
    ends: Vec<End>,
}

/// A network that can be simulated.
#[derive(Debug, Clone)]
pub struct Network {
    nodes: Vec<Node>,
    topology: Topology,
}

impl Network {
    /// Makes a network in which all ports may use the same lanes and speed.
    pub fn new(topology: Topology, link: Link) -> Result<Self, IbError> {
        let mut network = Self { nodes: Vec::new(), topology };
        for (near, far) in cables(topology) {
            for (own, peer) in [(&near, &far), (&far, &near)] {
                let end = End { port: own.0.port, peer: peer.0.clone(), most: link };
                network.node(&own.0.node, own.1).ends.push(end);
            }
        }
        network.fits()?;
        Ok(network)
    }

    fn node(&mut self, name: &str, is_switch: bool) -> &mut Node {
        let known = self.nodes.iter().position(|node| node.name == name);
        let at = known.unwrap_or_else(|| {
            self.nodes.push(Node { name: name.to_owned(), is_switch, ends: Vec::new() });
            self.nodes.len() - 1
        });
        &mut self.nodes[at]
    }

    fn fits(&self) -> Result<(), IbError> {
        let switches = self.nodes.iter().filter(|node| node.is_switch);
        let widest = switches.clone().map(|node| node.ends.len()).max();
        // The switch itself, port 0, counts as a port too.
        let of = |node: &Node| node.ends.len() + usize::from(node.is_switch);
        let ports: usize = self.nodes.iter().map(of).sum();
        if widest.unwrap_or(0) > PORTS_OF_SWITCH_MAX
            || self.nodes.len() > NODES_MAX
            || switches.count() > SWITCHES_MAX
            || ports > PORTS_MAX
        {
            let why = format!(
                "ibsim has room for {NODES_MAX} nodes, {SWITCHES_MAX} of them switches, with {PORTS_MAX} ports; a \
                 switch has at most {PORTS_OF_SWITCH_MAX}"
            );
            return Err(IbError::impossible(why));
        }
        Ok(())
    }

    /// Changes the lanes and speed that one port may use.
    pub fn set(&mut self, at: &PortName, most: Link) -> Result<(), IbError> {
        let node = self.nodes.iter_mut().find(|node| node.name == at.node);
        let mut ends = node.into_iter().flat_map(|node| &mut node.ends);
        let end = ends.find(|end| end.port == at.port);
        let end = end.ok_or_else(|| IbError::impossible(format!("it has no cable at {at}")))?;
        end.most = most;
        Ok(())
    }

    /// Returns the port at the other end of the cable of a port.
    fn peer(&self, at: &PortName) -> Option<&PortName> {
        let node = self.nodes.iter().find(|node| node.name == at.node)?;
        let end = node.ends.iter().find(|end| end.port == at.port)?;
        Some(&end.peer)
    }

    /// Checks that there is a node of this name; the error shows examples of names.
    pub(super) fn require(&self, name: &str) -> Result<(), IbError> {
        if self.nodes.iter().any(|node| node.name == name) {
            return Ok(());
        }
        let all = self.nodes.iter().map(|node| node.name.as_str());
        let some: Vec<&str> = all.take(8).collect();
        let more = if self.nodes.len() > some.len() { ", …" } else { "" };
        let why =
            format!("{} has no node {name} (it has {}{more})", self.topology, some.join(", "));
        Err(IbError::impossible(why))
    }

    /// Checks that a program can be attached to a port: ibsim attaches programs to port 1 of a host, and to port 0 of a
    /// switch.
    pub(super) fn require_attachable(&self, at: &PortName) -> Result<(), IbError> {
        self.require(&at.node)?;
        if self.attached(&at.node) == *at {
            return Ok(());
        }
        let peer = self.peer(at).map(|peer| self.attached(&peer.node));
        let peer = peer.filter(|peer| Some(peer) == self.peer(at));
        let other = peer.map_or_else(String::new, |peer| {
            format!("; {peer} is the other end of the same cable")
        });
        let why = format!(
            "ibsim attaches a program to port 1 of a host, or to port 0 of a switch, and to no other port: nothing can \
             run at {at}{other}"
        );
        Err(IbError::impossible(why))
    }

    /// Returns the port to which ibsim attaches a program that runs at a node.
    fn attached(&self, node: &str) -> PortName {
        let is_switch = |of: &Node| of.name == node && of.is_switch;
        PortName::new(node, u8::from(!self.nodes.iter().any(is_switch)))
    }

    /// Returns the default port of the subnet manager, and the default host for the command that uses the network.
    pub fn usual(&self) -> (PortName, String) {
        match self.topology {
            Topology::TwoPorts => (PortName::new("SRV", 1), "CLB".to_owned()),
            Topology::Star(hosts) => (PortName::new("host-1", 1), format!("host-{hosts}")),
            Topology::FatTree { leaves, hosts, .. } => {
                let last = format!("host-{leaves}-{hosts}");
                (PortName::new("host-1-1", 1), last)
            }
        }
    }
}

/// A port, and whether its node is a switch.
type Plug = (PortName, bool);

/// Returns both ends of all cables of a topology.
fn cables(topology: Topology) -> Vec<(Plug, Plug)> {
    let host = |name: String, port| (PortName::new(name, port), false);
    let switch = |name: String, port| (PortName::new(name, port), true);
    match topology {
        Topology::TwoPorts => [(1, "CLA"), (2, "CLB")]
            .map(|(port, client)| (host("SRV".into(), port), host(client.into(), 1)))
            .into(),
        Topology::Star(hosts) => (1..=hosts)
            .map(|n| (host(format!("host-{n}"), 1), switch("switch".into(), n)))
            .collect(),
        Topology::FatTree { leaves, hosts, spines } => {
            let leaf = |l: u8, port| switch(format!("leaf{l}"), port);
            let down = (1..=leaves).flat_map(|l| {
                (1..=hosts).map(move |h| (host(format!("host-{l}-{h}"), 1), leaf(l, h)))
            });
            let up = (1..=leaves).flat_map(|l| {
                (1..=spines).map(move |s| {
                    // A sum above 255 is too many ports; such a network is refused later.
                    let port = hosts.saturating_add(s);
                    (leaf(l, port), switch(format!("spine{s}"), l))
                })
            });
            down.chain(up).collect()
        }
    }
}

/// The file that ibsim reads.
//= ibsim 0.10: ibsim/sim_net.c; the comment of a port has the width and the speed that it may use
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            let kind = if node.is_switch { "Switch" } else { "Hca" };
            writeln!(f, "{kind}\t{} \"{}\"", node.ends.len(), node.name)?;
            for End { port, peer, most } in &node.ends {
                let (far, number) = (&peer.node, peer.port);
                writeln!(f, "[{port}]\t\"{far}\"[{number}]\t\t# \"{far}\" lid 0 {most}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Result<Network, IbError> {
        Network::new(text.parse()?, Link::default())
    }

    #[test]
    fn topologies_and_links_are_read_as_they_are_written() {
        for text in ["two-ports", "star:1", "star:254", "fat-tree:36,32,18"] {
            assert_eq!(text.parse::<Topology>().unwrap().to_string(), text);
        }
        assert_eq!("star".parse::<Topology>().unwrap(), Topology::Star(4));
        for text in ["", "star:0", "star:255", "star:x", "two-ports:1", "fat-tree:1,2", "ring"] {
            assert!(text.parse::<Topology>().is_err(), "{text}");
        }
        for text in ["4xEDR", "1xSDR", "12xHDR", "2xFDR10"] {
            assert_eq!(text.parse::<Link>().unwrap().to_string(), text);
        }
        for text in ["3xEDR", "4xNDR", "4x", "EDR", "4xedr"] {
            assert!(text.parse::<Link>().is_err(), "{text}");
        }
        assert!("CLB".parse::<PortName>().is_err() && ":1".parse::<PortName>().is_err());
        assert_eq!("CLB:1".parse::<PortName>().unwrap(), PortName::new("CLB", 1));
    }

    #[test]
    fn the_file_has_both_ends_of_each_cable() {
        let mut network = network("two-ports").unwrap();
        network.set(&PortName::new("SRV", 2), "1xFDR".parse().unwrap()).unwrap();
        let text = "Hca\t2 \"SRV\"\n[1]\t\"CLA\"[1]\t\t# \"CLA\" lid 0 4xEDR\n[2]\t\"CLB\"[1]\t\t# \"CLB\" lid 0 1xFDR\n\n\
                    Hca\t1 \"CLA\"\n[1]\t\"SRV\"[1]\t\t# \"SRV\" lid 0 4xEDR\n\n\
                    Hca\t1 \"CLB\"\n[1]\t\"SRV\"[2]\t\t# \"SRV\" lid 0 4xEDR\n\n";
        assert_eq!(network.to_string(), text);
        let none = network.set(&PortName::new("SRV", 3), Link::default());
        assert!(none.unwrap_err().to_string().contains("SRV:3"));
    }

    #[test]
    fn ports_that_ibsim_cannot_attach_to_are_refused_with_the_one_that_helps() {
        let two = network("two-ports").unwrap();
        let port = |node, port| PortName::new(node, port);
        assert!(two.require_attachable(&port("SRV", 1)).is_ok());
        let refused = two.require_attachable(&port("SRV", 2)).unwrap_err().to_string();
        assert!(refused.contains("CLB:1 is the other end"), "{refused}");
        let star = network("star:2").unwrap();
        assert!(star.require_attachable(&port("switch", 0)).is_ok());
        let refused = star.require_attachable(&port("switch", 2)).unwrap_err().to_string();
        assert!(refused.contains("host-2:1 is the other end"), "{refused}");
        let refused = star.require_attachable(&port("host-3", 1)).unwrap_err().to_string();
        assert!(refused.contains("host-1"), "{refused}");
    }

    #[test]
    fn networks_stay_within_the_room_that_ibsim_has() {
        for (text, fits) in [
            ("fat-tree:36,32,18", true),
            ("star:254", true),
            ("fat-tree:8,253,1", true),
            ("fat-tree:8,254,1", false),
            ("fat-tree:9,230,1", false),
            ("fat-tree:254,1,3", false),
        ] {
            assert_eq!(network(text).is_ok(), fits, "{text}");
        }
    }
}
