//! Routes by LID: the way of packets through the forwarding tables of the switches.

use std::collections::BTreeSet;

use super::super::mad::subnet::{BLOCK, NOWHERE};
use super::{Network, Node, PortAt};

/// The route of packets to a LID, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routed {
    /// The ports through which packets leave each node, in order. The route begins at the first one.
    pub hops: Vec<PortAt>,
    /// How the route ends.
    pub end: End,
}

/// How a route ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The packets arrive at the port that has the LID.
    Arrives(PortAt),
    /// The packets arrive at a switch for the second time.
    Loop(usize),
    /// The packets arrive at a switch whose table has no entry for the LID.
    NoEntry(usize),
    /// The packets should leave through a port that has no link or is not active.
    LinkDown(PortAt),
    /// The packets arrive at an adapter's port that does not have the LID.
    Elsewhere(PortAt),
    /// The packets arrive at a switch whose table was not read, or leave by a port whose other end did not answer.
    Unknown(PortAt),
}

impl Network {
    /// Returns the route of packets to `lid` that begins at a port. The tables must have been read: see
    /// [`super::super::walk::Walk::ask_for_route`].
    pub fn route(&self, from: PortAt, lid: u16) -> Routed {
        let mut hops = Vec::new();
        let mut passed = BTreeSet::new();
        let mut at = from;
        let end = loop {
            if self.ends_at(at, lid) {
                break End::Arrives(at);
            }
            let node = self.nodes.get(at.node);
            let is_switch = node.is_some_and(Node::is_switch);
            let port = match node {
                Some(node) if is_switch => match node.entry(lid) {
                    None => break End::Unknown(at),
                    Some(0 | NOWHERE) => break End::NoEntry(at.node),
                    Some(port) => port,
                },
                _ if at == from => at.port,
                _ => break End::Elsewhere(at),
            };
            if !passed.insert(at.node) {
                break End::Loop(at.node);
            }
            let out = PortAt { node: at.node, port };
            match self.across(out) {
                Ok(peer) => {
                    hops.push(out);
                    at = peer;
                }
                Err(end) => break end,
            }
        };
        Routed { hops, end }
    }

    /// Whether packets to `lid` that are at this port are at their destination.
    fn ends_at(&self, at: PortAt, lid: u16) -> bool {
        let is_switch = self.nodes.get(at.node).is_some_and(Node::is_switch);
        let port = if is_switch { 0 } else { at.port };
        self.port(PortAt { port, ..at }).is_some_and(|port| port.has_lid(lid))
    }

    /// The port at the other end of the link of `out`; an error if packets cannot pass the link.
    fn across(&self, out: PortAt) -> Result<PortAt, End> {
        let port = self.port(out).ok_or(End::LinkDown(out))?;
        if port.info.is_some() && !(port.has_link() && port.is_active()) {
            return Err(End::LinkDown(out));
        }
        port.peer.ok_or(End::Unknown(out))
    }
}

impl Node {
    /// The port by which a switch forwards packets to a LID. `None` if that block of its table was not read.
    fn entry(&self, lid: u16) -> Option<u8> {
        if self.switch.is_some_and(|switch| lid > switch.top) {
            return Some(NOWHERE);
        }
        let lid = usize::from(lid);
        let block = self.forwarding.get(&((lid / BLOCK) as u16))?;
        Some(block[lid % BLOCK])
    }
}

#[cfg(test)]
mod tests;
