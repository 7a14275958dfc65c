//! The order of requests that finds a network: which node is asked for which attribute, and when a request is sent
//! again.
//!
//! A walk does no I/O and has no clock. Its owner sends the requests that it returns, hands it the replies, and says
//! what time it is. The part of the network that was found is there at any time.

mod answer;
mod queues;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::mad::subnet::BLOCK;
use super::mad::{Attribute, Get, Refusal, Route, To, is_busy, transaction};
use super::network::{Network, Node, PortAt, Silence, Why};
use linerate_units::Nanos;
pub use queues::PATIENCE;
use queues::{About, Asked, Queues, TRIES};

/// Most requests without a reply at one time.
pub const OUTSTANDING: usize = 64;

/// Most requests in a second, unless [`Walk::pace`] sets another number.
const PACE: u32 = 100_000;

/// Requests that may be sent without a pause after the walk was idle.
const BURST: u64 = OUTSTANDING as u64;

/// Most that a walk takes of a network, whatever the network claims.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Nodes. A subnet has 48 Ki LIDs.
    nodes: usize,
    /// Ports of all nodes together. A fat tree with as many hosts as there are LIDs has fewer.
    ports: usize,
}

const LIMITS: Limits = Limits { nodes: 49_152, ports: 327_680 };

/// A part of a walk behind the search for all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The states of the subnet managers.
    Managers,
    /// The counters of all ports that have a link.
    Counters,
    /// A time without requests, in which counters may rise.
    Pause,
}

/// The parts of a walk, in order. Each begins when all requests of the part before are decided. Managers are asked
/// twice: two masters for a moment are a handover.
pub const PARTS: [Part; 5] =
    [Part::Managers, Part::Counters, Part::Pause, Part::Managers, Part::Counters];

/// A walk through a network.
#[derive(Debug)]
pub struct Walk {
    network: Network,
    limits: Limits,
    queues: Queues,
    /// Shortest time between two requests.
    gap: Nanos,
    /// Time from which on the pace allows the next request.
    free: Nanos,
    /// Whether only the pace holds back the next request.
    is_held: bool,
    /// Number of requests sent, with those sent again.
    sent: u64,
}

impl Default for Walk {
    fn default() -> Self {
        Self::within(LIMITS)
    }
}

impl Walk {
    fn within(limits: Limits) -> Self {
        let mut walk = Self {
            network: Network::default(),
            limits,
            queues: Queues::default(),
            gap: Nanos(0),
            free: Nanos(0),
            is_held: false,
            sent: 0,
        };
        walk.pace(PACE);
        walk.ask(About::Own, To::Route(Route::default()), Attribute::NodeInfo);
        walk
    }

    /// Sends at most this many requests in a second. A short burst is allowed.
    pub fn pace(&mut self, per_second: u32) {
        self.gap = Nanos(1_000_000_000 / u64::from(per_second.max(1)));
    }

    /// The network as far as it is known.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Ends the walk and returns the network.
    pub fn into_network(mut self) -> Network {
        self.network.cut = !self.is_done();
        self.network.mark_shared_names();
        self.network
    }

    /// Returns the number of requests that were sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns whether no request is left to send or to wait for.
    pub fn is_done(&self) -> bool {
        self.queues.ready() == 0 && self.queues.waiting() == 0
    }

    /// Returns the next request and its transaction. `None` if none may be sent now. The port takes up to `window`
    /// requests without a reply.
    pub fn request(&mut self, now: Nanos, window: usize) -> Option<(u32, Get)> {
        self.is_held = false;
        if self.queues.waiting() >= OUTSTANDING.min(window) {
            return None;
        }
        if self.free > now {
            self.is_held = self.queues.ready() > 0;
            return None;
        }
        let request = self.queues.send(now)?;
        let earliest = now.0.saturating_sub(BURST * self.gap.0);
        self.free = Nanos(self.free.0.max(earliest) + self.gap.0);
        self.sent += 1;
        Some(request)
    }

    /// Returns the time at which a request is sent again, given up, or may be sent.
    pub fn deadline(&self) -> Option<Nanos> {
        let free = self.is_held.then_some(self.free);
        self.queues.deadline().into_iter().chain(free).min()
    }

    /// Takes a datagram that arrived. Returns whether it answers a request.
    pub fn receive(&mut self, now: Nanos, mad: &[u8]) -> bool {
        // The node asks for another try: the request is sent again when its time is up.
        if is_busy(mad) {
            return false;
        }
        let Some(asked) = transaction(mad).and_then(|of| self.queues.take(of)) else {
            return false;
        };
        if let About::Node(node) = asked.about {
            self.count(node, &asked, now, false);
        }
        match asked.get.reply(mad) {
            Ok(data) => self.answered(now, &asked, data),
            Err(Refusal::Status(status)) => self.unanswered(&asked, Why::Refused(status)),
            Err(Refusal::Other | Refusal::Malformed(_)) => {
                self.unanswered(&asked, Why::Unreadable);
            }
        }
        true
    }

    /// Takes the news that a request was not delivered: it is sent again, or given up.
    pub fn lost(&mut self, transaction: u32) {
        if let Some(asked) = self.queues.take_try(transaction) {
            self.again(asked);
        }
    }

    /// Takes the news that this host cannot send a request: it is given up.
    pub fn cannot_send(&mut self, transaction: u32) {
        if let Some(asked) = self.queues.take_try(transaction) {
            self.unanswered(&asked, Why::NotPossible);
        }
    }

    /// Sends requests again whose replies are late, or gives them up.
    pub fn expire(&mut self, now: Nanos) {
        while let Some(asked) = self.queues.late(now) {
            self.again(asked);
        }
    }

    /// Begins a part of the walk.
    pub fn begin(&mut self, part: Part) {
        match part {
            Part::Managers => self.ask_managers(),
            Part::Counters => self.read_counters(),
            Part::Pause => {}
        }
    }

    /// Begins to ask for the states of the subnet managers: at ports that say that one runs there, and at ports whose LID
    /// another port has for its manager. What was known of them is forgotten.
    fn ask_managers(&mut self) {
        let network = &self.network;
        let here = || network.ports().filter(|(at, _)| network.is_here(*at));
        let lids = here().filter_map(|(_, port)| Some(port.info?.manager_lid));
        let lids: BTreeSet<u16> = lids.filter(|lid| *lid != 0).collect();
        let named = lids.into_iter().filter_map(|lid| network.by_lid(lid));
        let named: BTreeSet<PortAt> = named.collect();
        let asked = here().filter_map(|(at, port)| {
            let is_switch = network.nodes[at.node].is_switch();
            let says = port.info.is_some_and(|info| info.is_manager());
            let runs = (at.port == 0 || !is_switch) && (says || named.contains(&at));
            let route = port.route.as_ref().unwrap_or(&network.nodes[at.node].route);
            runs.then(|| (at, route.clone()))
        });
        for (at, route) in asked.collect::<Vec<_>>() {
            if let Some(port) = self.network.nodes[at.node].ports.get_mut(&at.port) {
                port.manager = None;
            }
            self.ask_at(at, To::Route(route), Attribute::ManagerInfo);
        }
    }

    /// Begins to read the part of all forwarding tables that routes to a LID need: [`Network::route`].
    pub fn ask_for_route(&mut self, lid: u16) {
        let block = lid / BLOCK as u16;
        for node in 0..self.network.nodes.len() {
            let of = &self.network.nodes[node];
            if of.is_switch() && !of.forwarding.contains_key(&block) {
                let to = To::Route(of.route.clone());
                self.ask(About::Node(node), to, Attribute::Forwarding(block));
            }
        }
    }

    /// Begins to ask the subnet manager for the path between two ports: [`Network::path`]. Does nothing where no manager
    /// serves this host's port, or a GUID is unknown.
    pub fn ask_for_path(&mut self, from: PortAt, to: PortAt) {
        let network = &self.network;
        let own = network.own().and_then(|own| network.port(own));
        let own = own.filter(|port| port.is_active()).and_then(|port| port.info);
        let manager = own.map(|info| info.manager_lid).filter(|lid| *lid != 0);
        let asked = manager.and_then(|lid| {
            let (from, to) = (network.id(from)?, network.id(to)?);
            Some((network.by_lid(lid)?, lid, Attribute::Path { from, to }))
        });
        if let Some((at, lid, attribute)) = asked {
            self.ask_at(at, To::Lid(lid), attribute);
        }
    }

    /// Begins to read the counters of all ports that have a link. Does nothing if packets do not reach other nodes.
    fn read_counters(&mut self) {
        let network = &self.network;
        let own = network.own().and_then(|own| network.port(own));
        let Some(own) = own.filter(|own| own.is_active()) else {
            return;
        };
        // Requests carry the first key of the port. A limited member reaches full members alone.
        let key = own.keys.as_ref().and_then(|keys| keys.first().copied());
        let reaches = |node: &Node| match key {
            Some(key) if !key.is_full() => node.has_full_member(key),
            _ => true,
        };
        let (asked, beyond): (Vec<usize>, Vec<usize>) =
            (0..network.nodes.len()).partition(|node| reaches(&network.nodes[*node]));
        if let Some(first) = beyond.first().copied() {
            let gap = Silence {
                node: Some(first),
                from: None,
                what: Attribute::Counters(0).name(),
                why: Why::LimitedMember(beyond.len()),
            };
            // Counters are read several times.
            if !self.network.gaps.contains(&gap) {
                self.network.gaps.push(gap);
            }
        }
        for node in asked {
            self.ask_for_counters(node);
        }
    }

    /// Whether counters of a port were read.
    pub fn has_counters(&self) -> bool {
        let mut ports = self.network.ports();
        ports.any(|(_, port)| !port.counters.is_empty())
    }

    fn again(&mut self, asked: Asked) {
        if asked.tries < TRIES {
            return self.queues.put(asked);
        }
        self.unanswered(&asked, Why::NoReply(TRIES));
        let About::Node(node) = asked.about else {
            return;
        };
        self.count(node, &asked, Nanos(0), true);
        // A node that did not answer anything since then would hold up the walk with each further request.
        if self.network.nodes[node].replied <= asked.first {
            for dropped in self.queues.drop_ready(asked.about) {
                self.unanswered(&dropped, Why::NotSent);
            }
        }
    }

    /// Counts the tries of a decided request to a node.
    fn count(&mut self, node: usize, asked: &Asked, now: Nanos, is_lost: bool) {
        let of = &mut self.network.nodes[node];
        of.replied = of.replied.max(now);
        // One that another program answers says nothing about the node.
        let attribute = asked.get.attribute;
        if !matches!(attribute, Attribute::ManagerInfo | Attribute::Path { .. }) {
            of.sent = of.sent.saturating_add(asked.tries);
            let lost = asked.tries - u32::from(!is_lost);
            of.lost = of.lost.saturating_add(lost);
        }
    }

    fn ask(&mut self, about: About, to: To, attribute: Attribute) {
        self.queues.add(about, 0, Get { to, attribute });
    }

    /// Asks for an attribute of a port.
    fn ask_at(&mut self, at: PortAt, to: To, attribute: Attribute) {
        let get = Get { to, attribute };
        self.queues.add(About::Node(at.node), at.port, get);
    }

    fn unanswered(&mut self, asked: &Asked, why: Why) {
        let is_normal = match asked.get.attribute {
            // Not all devices of the vendor have it, and without it the speed is as PortInfo says.
            Attribute::ExtendedPortInfo(_) => true,
            // No manager runs there.
            Attribute::ManagerInfo => matches!(why, Why::Refused(_)),
            _ => false,
        };
        if is_normal {
            return;
        }
        // Some of the keys are not the keys.
        if let (About::Node(node), Attribute::PartitionKeys(_)) = (asked.about, asked.get.attribute)
            && let Some(port) = self.network.nodes[node].ports.get_mut(&asked.port)
        {
            port.keys = None;
        }
        let (node, from) = match asked.about {
            About::Own => (None, None),
            About::Node(node) => (Some(node), None),
            About::FarEnd(from) => (None, Some(from)),
        };
        self.network.gaps.push(Silence { node, from, what: asked.get.attribute.name(), why });
    }
}
