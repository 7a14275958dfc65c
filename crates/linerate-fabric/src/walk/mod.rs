//! The order of requests that finds a network: which attribute is requested of which node, and when a request is sent
//! again.
//!
//! A walk does no I/O and has no clock. Its owner sends the requests that the walk returns, passes the replies to it,
//! and passes the time with each call. The part of the network that was found so far is available at any time.

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
use queues::{About, Queues, Request, TRIES};

/// Most requests without a reply at one time.
pub const OUTSTANDING: usize = 64;

/// Most requests per second, unless [`Walk::pace`] sets another number.
const DEFAULT_PACE: u32 = 100_000;

/// Most requests that may be sent without a pause after the walk was idle.
const MOST_IN_BURST: u64 = OUTSTANDING as u64;

/// Limits on the size of a network that a walk accepts, whatever nodes report.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Most nodes. A subnet has 48 Ki LIDs.
    nodes: usize,
    /// Most ports of all nodes together. A fat tree with as many hosts as there are LIDs has fewer.
    ports: usize,
}

const LIMITS: Limits = Limits { nodes: 49_152, ports: 327_680 };

/// A part of a walk that follows the search for all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The states of the subnet managers are read.
    Managers,
    /// The counters of all ports that have a link are read.
    Counters,
    /// No requests are sent, while counters may rise.
    Pause,
}

/// The parts of a walk, in order. Each part begins when all requests of the part before have a reply or are given up.
/// The states of managers are read twice: two masters for a moment are only a handover.
pub const PARTS: [Part; 5] =
    [Part::Managers, Part::Counters, Part::Pause, Part::Managers, Part::Counters];

/// A walk through a network: what it found, and what it still has to request.
#[derive(Debug)]
pub struct Walk {
    network: Network,
    limits: Limits,
    queues: Queues,
    /// Shortest time between two requests.
    gap: Nanos,
    /// Time at which the pace allows the next request.
    free: Nanos,
    /// Whether only the pace keeps the next request from being sent.
    is_held: bool,
    /// Number of requests sent; each try counts.
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
        walk.pace(DEFAULT_PACE);
        walk.ask(About::Own, To::Route(Route::default()), Attribute::NodeInfo);
        walk
    }

    /// Limits the requests per second. A short burst may be faster.
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

    /// Returns the number of requests sent; each try counts.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns whether no request is left to send, and none without a reply.
    pub fn is_done(&self) -> bool {
        self.queues.ready() == 0 && self.queues.waiting() == 0
    }

    /// Returns the next request and its transaction. `None` if no request may be sent now. `window` is the most
    /// requests without a reply that the port allows.
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
        let earliest = now.0.saturating_sub(MOST_IN_BURST * self.gap.0);
        self.free = Nanos(self.free.0.max(earliest) + self.gap.0);
        self.sent += 1;
        Some(request)
    }

    /// Returns the next time at which a request is sent again, is given up, or may be sent by the pace.
    pub fn deadline(&self) -> Option<Nanos> {
        let free = self.is_held.then_some(self.free);
        self.queues.deadline().into_iter().chain(free).min()
    }

    /// Handles a datagram that arrived. Returns whether it is the reply to a request.
    pub fn receive(&mut self, now: Nanos, mad: &[u8]) -> bool {
        // The node is busy: the request is sent again when its time is up.
        if is_busy(mad) {
            return false;
        }
        let Some(request) = transaction(mad).and_then(|of| self.queues.take(of)) else {
            return false;
        };
        if let About::Node(node) = request.about {
            self.count(node, &request, now, false);
        }
        match request.get.reply(mad) {
            Ok(data) => self.answered(now, &request, data),
            Err(Refusal::Status(status)) => self.unanswered(&request, Why::Refused(status)),
            Err(Refusal::Other | Refusal::Malformed(_)) => {
                self.unanswered(&request, Why::Unreadable);
            }
        }
        true
    }

    /// Handles the news that a request was not delivered: it is sent again or given up.
    pub fn lost(&mut self, transaction: u32) {
        if let Some(request) = self.queues.take_try(transaction) {
            self.retry(request);
        }
    }

    /// Handles the news that this host cannot send a request: it is given up.
    pub fn cannot_send(&mut self, transaction: u32) {
        if let Some(request) = self.queues.take_try(transaction) {
            self.unanswered(&request, Why::NotPossible);
        }
    }

    /// Sends requests again whose replies are late, or gives them up after the last try.
    pub fn expire(&mut self, now: Nanos) {
        while let Some(request) = self.queues.late(now) {
            self.retry(request);
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

    /// Adds requests for the states of the subnet managers: to ports that report a manager, and to ports whose LID
    /// other ports have as that of their manager. States that were read before are removed.
    fn ask_managers(&mut self) {
        let network = &self.network;
        let here = || network.ports().filter(|(at, _)| network.is_here(*at));
        let lids = here().filter_map(|(_, port)| Some(port.info?.manager_lid));
        let lids: BTreeSet<u16> = lids.filter(|lid| *lid != 0).collect();
        let named = lids.into_iter().filter_map(|lid| network.by_lid(lid));
        let named: BTreeSet<PortAt> = named.collect();
        let request = here().filter_map(|(at, port)| {
            let is_switch = network.nodes[at.node].is_switch();
            let says = port.info.is_some_and(|info| info.is_manager());
            let runs = (at.port == 0 || !is_switch) && (says || named.contains(&at));
            let route = port.route.as_ref().unwrap_or(&network.nodes[at.node].route);
            runs.then(|| (at, route.clone()))
        });
        for (at, route) in request.collect::<Vec<_>>() {
            if let Some(port) = self.network.nodes[at.node].ports.get_mut(&at.port) {
                port.manager = None;
            }
            self.ask_at(at, To::Route(route), Attribute::ManagerInfo);
        }
    }

    /// Adds requests for the block of all forwarding tables that has this LID; see [`Network::route`].
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

    /// Adds a request to the subnet manager for the path between two ports; see [`Network::path`]. Does nothing if no
    /// manager serves this host's port, or a GUID is unknown.
    pub fn ask_for_path(&mut self, from: PortAt, to: PortAt) {
        let network = &self.network;
        let own = network.own().and_then(|own| network.port(own));
        let own = own.filter(|port| port.is_active()).and_then(|port| port.info);
        let manager = own.map(|info| info.manager_lid).filter(|lid| *lid != 0);
        let request = manager.and_then(|lid| {
            let (from, to) = (network.id(from)?, network.id(to)?);
            Some((network.by_lid(lid)?, lid, Attribute::Path { from, to }))
        });
        if let Some((at, lid, attribute)) = request {
            self.ask_at(at, To::Lid(lid), attribute);
        }
    }

    /// Adds requests for the counters of all ports that have a link. Does nothing if this host's port is not active:
    /// its packets would not reach other nodes.
    fn read_counters(&mut self) {
        let network = &self.network;
        let own = network.own().and_then(|own| network.port(own));
        let Some(own) = own.filter(|own| own.is_active()) else {
            return;
        };
        // Requests carry the first partition key of the port. A limited member reaches only full members.
        let key = own.keys.as_ref().and_then(|keys| keys.first().copied());
        let reaches = |node: &Node| match key {
            Some(key) if !key.is_full() => node.has_full_member(key),
            _ => true,
        };
        let (request, beyond): (Vec<usize>, Vec<usize>) =
            (0..network.nodes.len()).partition(|node| reaches(&network.nodes[*node]));
        if let Some(first) = beyond.first().copied() {
            let gap = Silence {
                node: Some(first),
                from: None,
                what: Attribute::Counters(0).name(),
                why: Why::LimitedMember(beyond.len()),
            };
            // Counters are read twice, and the gap is recorded once.
            if !self.network.gaps.contains(&gap) {
                self.network.gaps.push(gap);
            }
        }
        for node in request {
            self.ask_for_counters(node);
        }
    }

    /// Whether counters of any port were read.
    pub fn has_counters(&self) -> bool {
        let mut ports = self.network.ports();
        ports.any(|(_, port)| !port.counters.is_empty())
    }

    fn retry(&mut self, request: Request) {
        if request.tries < TRIES {
            return self.queues.put(request);
        }
        self.unanswered(&request, Why::NoReply(TRIES));
        let About::Node(node) = request.about else {
            return;
        };
        self.count(node, &request, Nanos(0), true);
        // If the node has answered nothing since the first try, further requests to it would only delay the walk.
        if self.network.nodes[node].replied <= request.first {
            for dropped in self.queues.drop_ready(request.about) {
                self.unanswered(&dropped, Why::NotSent);
            }
        }
    }

    /// Adds the tries of a request that is answered or given up to the counts of its node.
    fn count(&mut self, node: usize, request: &Request, now: Nanos, is_lost: bool) {
        let of = &mut self.network.nodes[node];
        of.replied = of.replied.max(now);
        // If another program answers the attribute, a lost request shows nothing about the node.
        let attribute = request.get.attribute;
        if !matches!(attribute, Attribute::ManagerInfo | Attribute::Path { .. }) {
            of.sent = of.sent.saturating_add(request.tries);
            let lost = request.tries - u32::from(!is_lost);
            of.lost = of.lost.saturating_add(lost);
        }
    }

    fn ask(&mut self, about: About, to: To, attribute: Attribute) {
        self.queues.add(about, 0, Get { to, attribute });
    }

    /// Adds a request for an attribute of a port.
    fn ask_at(&mut self, at: PortAt, to: To, attribute: Attribute) {
        let get = Get { to, attribute };
        self.queues.add(About::Node(at.node), at.port, get);
    }

    fn unanswered(&mut self, request: &Request, why: Why) {
        let is_normal = match request.get.attribute {
            // Not all devices of the vendor have the attribute; without it, the speed in PortInfo is right.
            Attribute::ExtendedPortInfo(_) => true,
            // The node refuses the request if no manager runs there.
            Attribute::ManagerInfo => matches!(why, Why::Refused(_)),
            _ => false,
        };
        if is_normal {
            return;
        }
        // If one block of keys is missing, the keys are unknown.
        if let (About::Node(node), Attribute::PartitionKeys(_)) =
            (request.about, request.get.attribute)
            && let Some(port) = self.network.nodes[node].ports.get_mut(&request.port)
        {
            port.keys = None;
        }
        let (node, from) = match request.about {
            About::Own => (None, None),
            About::Node(node) => (Some(node), None),
            About::FarEnd(from) => (None, Some(from)),
        };
        self.network.gaps.push(Silence { node, from, what: request.get.attribute.name(), why });
    }
}
