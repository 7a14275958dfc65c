//! Requests that are ready, and those that were sent: by node, by transaction and by deadline.

use std::collections::{BTreeMap, VecDeque};

use super::super::mad::Get;
use super::super::network::PortAt;
use linerate_units::Nanos;

/// Most requests without a reply at one node, whose management processor is slow. Requests that only pass a node do not
/// count, nor do those that find out which node is at the end of a link.
pub(super) const OUTSTANDING_OF_NODE: usize = 8;

/// Number of times that a request is sent. A power of two: the lower bits of a transaction are the number of the try.
pub(super) const TRIES: u32 = 8;

/// Time to wait for a reply before a request is sent again. A reply that comes later is still taken.
pub const PATIENCE: Nanos = Nanos::from_millis(250);

/// The node that a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum About {
    /// This host's adapter, which is not known yet.
    Own,
    /// A known node.
    Node(usize),
    /// The unknown node at the other end of this port's link.
    FarEnd(PortAt),
}

/// A request, with the node that it concerns.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) get: Get,
    pub(super) about: About,
    /// The port that the reply is about, where the attribute does not say it.
    pub(super) port: u8,
    /// Number of the request.
    number: u32,
    /// Number of times that it was sent.
    pub(super) tries: u32,
    /// Time at which it was sent first.
    pub(super) first: Nanos,
}

impl Asked {
    /// The transaction of the last try.
    pub(super) fn transaction(&self) -> u32 {
        self.number * TRIES + (self.tries.saturating_sub(1)) % TRIES
    }
}

/// All requests that are not decided.
#[derive(Debug, Default)]
pub(super) struct Queues {
    by_node: BTreeMap<About, Queue>,
    /// Nodes that have requests ready and room for them. Each sends one request in turn, so that a node with many does
    /// not hold up all others.
    turn: VecDeque<About>,
    /// Requests without a reply, by number.
    sent: BTreeMap<u32, Asked>,
    /// Deadlines with their transactions, in order. Those that are decided are skipped.
    order: VecDeque<(Nanos, u32)>,
    ready: usize,
    next: u32,
}

/// The requests to one node.
#[derive(Debug, Default)]
struct Queue {
    ready: VecDeque<Asked>,
    sent: usize,
    /// Whether the node is in `turn`.
    has_turn: bool,
}

impl Queues {
    /// Number of requests without a reply.
    pub(super) fn waiting(&self) -> usize {
        self.sent.len()
    }

    /// Number of requests that may be sent later or now.
    pub(super) fn ready(&self) -> usize {
        self.ready
    }

    /// Adds a request.
    pub(super) fn add(&mut self, about: About, port: u8, get: Get) {
        let number = self.next;
        self.next = (number + 1) % (u32::MAX / TRIES);
        self.put(Asked { get, about, port, number, tries: 0, first: Nanos(0) });
    }

    /// Adds a request that must be sent again.
    pub(super) fn put(&mut self, asked: Asked) {
        let about = asked.about;
        let ready = &mut self.by_node.entry(about).or_default().ready;
        if asked.tries > 0 {
            ready.push_front(asked);
        } else {
            ready.push_back(asked);
        }
        self.ready += 1;
        self.list(about);
    }

    /// Takes the next request that may be sent, and counts it as sent.
    pub(super) fn send(&mut self, now: Nanos) -> Option<(u32, Get)> {
        loop {
            let about = self.turn.pop_front()?;
            let Some(queue) = self.by_node.get_mut(&about) else {
                continue;
            };
            queue.has_turn = false;
            let Some(mut asked) = queue.ready.pop_front() else {
                self.list(about);
                continue;
            };
            queue.sent += 1;
            self.ready -= 1;
            self.list(about);
            if asked.tries == 0 {
                asked.first = now;
            }
            asked.tries += 1;
            let (transaction, get) = (asked.transaction(), asked.get.clone());
            self.order.push_back((Nanos(now.0.saturating_add(PATIENCE.0)), transaction));
            self.sent.insert(asked.number, asked);
            return Some((transaction, get));
        }
    }

    /// Takes the request of a transaction, whichever of its tries it is. `None` if it is decided, or if it waits to be
    /// sent again.
    pub(super) fn take(&mut self, transaction: u32) -> Option<Asked> {
        let asked = self.sent.remove(&(transaction / TRIES))?;
        if let Some(queue) = self.by_node.get_mut(&asked.about) {
            queue.sent -= 1;
            self.list(asked.about);
        }
        Some(asked)
    }

    /// Takes the request of a transaction if that is its last try.
    pub(super) fn take_try(&mut self, transaction: u32) -> Option<Asked> {
        let asked = self.sent.get(&(transaction / TRIES))?;
        let is_last = asked.transaction() == transaction;
        is_last.then(|| self.take(transaction)).flatten()
    }

    /// The first deadline.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.order.front().map(|(deadline, _)| *deadline)
    }

    /// Takes a request whose deadline has passed.
    pub(super) fn late(&mut self, now: Nanos) -> Option<Asked> {
        while let Some((deadline, transaction)) = self.order.front().copied() {
            if deadline > now {
                return None;
            }
            self.order.pop_front();
            if let Some(asked) = self.take_try(transaction) {
                return Some(asked);
            }
        }
        None
    }

    /// Takes all requests to a node that wait to be sent.
    pub(super) fn drop_ready(&mut self, about: About) -> Vec<Asked> {
        let queue = self.by_node.get_mut(&about);
        let dropped: Vec<Asked> =
            queue.map_or_else(Vec::new, |queue| queue.ready.drain(..).collect());
        self.ready -= dropped.len();
        self.list(about);
        dropped
    }

    /// Gives a node its turn if it has a request and room for it. Forgets a node without requests.
    fn list(&mut self, about: About) {
        let Some(queue) = self.by_node.get_mut(&about) else {
            return;
        };
        if queue.ready.is_empty() {
            if queue.sent == 0 {
                self.by_node.remove(&about);
            }
        } else if !queue.has_turn && queue.sent < OUTSTANDING_OF_NODE {
            queue.has_turn = true;
            self.turn.push_back(about);
        }
    }
}
