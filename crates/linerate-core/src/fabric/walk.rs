//! The order of requests that finds a network: which node is asked for what, and when a request is sent again.
//!
//! A walk does no I/O and has no clock. Its owner sends the requests that it returns, gives it the replies, and tells
//! it the time. What it has found so far is a [`Network`] at any time.

mod answer;
mod waiting;

use std::collections::VecDeque;

use super::mad::{Attribute, Get, Route, To, transaction};
use super::network::{Network, Port, PortAt, Silence};
use crate::units::Nanos;
use waiting::Waiting;

/// Most requests without a reply at one time.
pub const OUTSTANDING: usize = 64;

/// Most requests without a reply at one node, whose management processor is slow.
const OUTSTANDING_OF_NODE: usize = 8;

/// Time to wait for a reply.
pub const PATIENCE: Nanos = Nanos::from_millis(250);

/// Number of times that a request is sent.
const TRIES: u32 = 4;

/// Most nodes of a network: a subnet has 48 Ki LIDs. More are counted as unknown.
const NODES_MAX: usize = 49_152;

/// A request, with the node that it concerns.
#[derive(Debug, Clone)]
struct Asked {
    get: Get,
    /// The known node that is asked, or the port that leads to an unknown node. Neither for this host's own node.
    about: About,
    tries: u32,
}

/// The node that a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    /// This host's adapter, which is not known yet.
    Own,
    /// A known node.
    Node(usize),
    /// The unknown node at the other end of this port's link.
    Beyond(PortAt),
}

/// A walk through a network.
#[derive(Debug)]
pub struct Walk {
    network: Network,
    /// Most requests without a reply at one time, if the port allows as many.
    most: usize,
    ready: VecDeque<Asked>,
    waiting: Waiting,
    next: u32,
    /// Number of requests sent, with those sent again.
    sent: u64,
}

impl Default for Walk {
    fn default() -> Self {
        let mut walk = Self {
            network: Network::default(),
            most: OUTSTANDING,
            ready: VecDeque::new(),
            waiting: Waiting::default(),
            next: 1,
            sent: 0,
        };
        let to = To::Route(Route::default());
        walk.ask(About::Own, to, Attribute::NodeInfo);
        walk
    }
}

impl Walk {
    /// The network as far as it is known.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Ends the walk and returns the network.
    pub fn into_network(self) -> Network {
        self.network
    }

    /// Returns the number of requests that were sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns whether nothing is left to ask or to wait for.
    pub fn is_done(&self) -> bool {
        self.ready.is_empty() && self.waiting.is_empty()
    }

    /// Returns the next request and its transaction. `None` if none may be sent now. The port takes up to `window`
    /// requests without a reply.
    pub fn request(&mut self, now: Nanos, window: usize) -> Option<(u32, Get)> {
        if self.waiting.len() >= self.most.min(window) {
            return None;
        }
        let room = |asked: &Asked| self.waiting.at(asked.about) < OUTSTANDING_OF_NODE;
        // A few nodes with many requests must not hold up all others, but looking further must stay cheap.
        let found = self.ready.iter().take(OUTSTANDING).position(room)?;
        let mut asked = self.ready.remove(found)?;
        asked.tries += 1;
        self.sent += 1;
        let transaction = self.next;
        self.next = self.next.wrapping_add(1);
        let get = asked.get.clone();
        self.waiting
            .add(transaction, asked, Nanos(now.0 + PATIENCE.0));
        Some((transaction, get))
    }

    /// Returns the time at which the first request without a reply is given up or sent again.
    pub fn deadline(&self) -> Option<Nanos> {
        self.waiting.deadline()
    }

    /// Takes a datagram that arrived. Returns whether it answers a request.
    pub fn receive(&mut self, now: Nanos, mad: &[u8]) -> bool {
        let Some(asked) = transaction(mad).and_then(|of| self.waiting.take(of)) else {
            return false;
        };
        match asked.get.reply(mad) {
            Ok(data) => self.answered(now, &asked, data),
            Err(why) => self.unanswered(&asked, why.to_string()),
        }
        true
    }

    /// Takes the news that a request was not delivered: it is sent again, or given up.
    pub fn lost(&mut self, transaction: u32) {
        if let Some(asked) = self.waiting.take(transaction) {
            self.again(asked);
        }
    }

    /// Sends requests again whose replies are late, or gives them up.
    pub fn expire(&mut self, now: Nanos) {
        while let Some(asked) = self.waiting.late(now) {
            self.again(asked);
        }
    }

    /// Begins to ask the subnet managers that were found for their states. They are asked one after the other: of
    /// requests that another program answers, ibsim (0.10) delivers only the reply to the last one.
    pub fn ask_managers(&mut self) {
        self.most = 1;
        let is_manager = |(at, port): (PortAt, &Port)| {
            let is_here = self.network.is_here(at);
            (is_here && port.info.is_some_and(|info| info.is_manager())).then_some(at.node)
        };
        let nodes: Vec<usize> = self.network.ports().filter_map(is_manager).collect();
        for node in nodes {
            let to = To::Route(self.network.nodes[node].route.clone());
            self.ask(About::Node(node), to, Attribute::ManagerInfo);
        }
    }

    /// Begins to read the counters of all ports that have a link. Does nothing if packets do not reach other nodes.
    pub fn read_counters(&mut self) {
        self.most = OUTSTANDING;
        let own = self.network.own();
        let reaches = own
            .and_then(|at| self.network.port(at))
            .is_some_and(Port::is_active);
        if !reaches {
            return;
        }
        for node in 0..self.network.nodes.len() {
            self.ask_for_counters(node);
        }
    }

    /// Whether counters of a port were read.
    pub fn has_counters(&self) -> bool {
        self.network
            .ports()
            .any(|(_, port)| !port.counters.is_empty())
    }

    fn again(&mut self, asked: Asked) {
        if asked.tries < TRIES {
            self.ready.push_front(asked);
        } else {
            let why = format!("no reply to {TRIES} requests");
            self.unanswered(&asked, why);
        }
    }

    fn ask(&mut self, about: About, to: To, attribute: Attribute) {
        let get = Get { to, attribute };
        self.ready.push_back(Asked {
            get,
            about,
            tries: 0,
        });
    }

    fn unanswered(&mut self, asked: &Asked, why: String) {
        let (node, from) = match asked.about {
            About::Own => (None, None),
            About::Node(node) => (Some(node), None),
            About::Beyond(from) => (None, Some(from)),
        };
        self.network.gaps.push(Silence {
            node,
            from,
            what: asked.get.attribute.name(),
            why,
        });
    }
}
