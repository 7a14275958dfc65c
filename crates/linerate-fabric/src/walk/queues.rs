//! Queues of requests that wait to be sent, and of those without a reply: by node, by number and by deadline.

use std::collections::{BTreeMap, VecDeque};

use super::super::mad::Get;
use super::super::network::PortAt;
use linerate_units::Nanos;

/// Most requests without a reply at one node, whose management processor is slow. Requests that only pass a node do not
/// count; nor do requests to a node that is not known yet.
pub(super) const OUTSTANDING_OF_NODE: usize = 8;

/// Most times that a request is sent. A power of two: the lower bits of a transaction are the number of the try.
pub(super) const TRIES: u32 = 8;

/// Time to wait for a reply before a request is sent again. A later reply is still accepted.
pub const PATIENCE: Nanos = Nanos::from_millis(250);

/// The node that a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum About {
    /// This host's adapter, whose description was not received yet.
    Own,
    /// The known node with this index.
    Node(usize),
    /// The unknown node at the other end of this port's link.
    FarEnd(PortAt),
}

/// A request, with the node that it is sent to.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) get: Get,
    pub(super) about: About,
    /// The port that the reply is about, if the attribute does not tell the port.
    pub(super) port: u8,
    /// Number of the request, the same for all its tries.
    number: u32,
    /// Number of times that the request was sent.
    pub(super) tries: u32,
    /// Time at which the request was sent first.
    pub(super) first: Nanos,
}

impl Request {
    /// The transaction number of the last try.
    pub(super) fn transaction(&self) -> u32 {
        self.number * TRIES + (self.tries.saturating_sub(1)) % TRIES
    }
}

/// All requests that have no reply yet and are not given up.
#[derive(Debug, Default)]
pub(super) struct Queues {
    by_node: BTreeMap<About, Queue>,
    /// Nodes that have requests to send, and room for another one without a reply. Each sends one request in turn, so
    /// that a node with many requests does not delay all others.
    turn: VecDeque<About>,
    /// Requests without a reply, by number.
    sent: BTreeMap<u32, Request>,
    /// Deadlines with their transactions, in order. Entries of requests that were answered meanwhile are skipped.
    order: VecDeque<(Nanos, u32)>,
    ready: usize,
    next: u32,
}

/// The requests to one node: those to send, and the number without a reply.
#[derive(Debug, Default)]
struct Queue {
    ready: VecDeque<Request>,
    sent: usize,
    /// Whether the node is in [`Queues::turn`].
    has_turn: bool,
}

impl Queues {
    /// Number of requests without a reply.
    pub(super) fn waiting(&self) -> usize {
        self.sent.len()
    }

    /// Number of requests that wait to be sent.
    pub(super) fn ready(&self) -> usize {
        self.ready
    }

    /// Adds a new request.
    pub(super) fn add(&mut self, about: About, port: u8, get: Get) {
        let number = self.next;
        self.next = (number + 1) % (u32::MAX / TRIES);
        self.put(Request { get, about, port, number, tries: 0, first: Nanos(0) });
    }

    /// Queues a request; one that is sent again goes to the front.
    pub(super) fn put(&mut self, request: Request) {
        let about = request.about;
        let ready = &mut self.by_node.entry(about).or_default().ready;
        if request.tries > 0 {
            ready.push_front(request);
        } else {
            ready.push_back(request);
        }
        self.ready += 1;
        self.list(about);
    }

    /// Returns the next request that may be sent, and counts it as sent.
    pub(super) fn send(&mut self, now: Nanos) -> Option<(u32, Get)> {
        loop {
            let about = self.turn.pop_front()?;
            let Some(queue) = self.by_node.get_mut(&about) else {
                continue;
            };
            queue.has_turn = false;
            let Some(mut request) = queue.ready.pop_front() else {
                self.list(about);
                continue;
            };
            queue.sent += 1;
            self.ready -= 1;
            self.list(about);
            if request.tries == 0 {
                request.first = now;
            }
            request.tries += 1;
            let (transaction, get) = (request.transaction(), request.get.clone());
            self.order.push_back((Nanos(now.0.saturating_add(PATIENCE.0)), transaction));
            self.sent.insert(request.number, request);
            return Some((transaction, get));
        }
    }

    /// Removes and returns the request of a transaction, whichever of its tries it is. `None` if it was answered or
    /// given up, or waits to be sent again.
    pub(super) fn take(&mut self, transaction: u32) -> Option<Request> {
        let request = self.sent.remove(&(transaction / TRIES))?;
        if let Some(queue) = self.by_node.get_mut(&request.about) {
            queue.sent -= 1;
            self.list(request.about);
        }
        Some(request)
    }

    /// Removes and returns the request of a transaction, but only if the transaction is that of its last try.
    pub(super) fn take_try(&mut self, transaction: u32) -> Option<Request> {
        let request = self.sent.get(&(transaction / TRIES))?;
        let is_last = request.transaction() == transaction;
        is_last.then(|| self.take(transaction)).flatten()
    }

    /// The earliest deadline.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.order.front().map(|(deadline, _)| *deadline)
    }

    /// Removes and returns a request whose deadline has passed.
    pub(super) fn late(&mut self, now: Nanos) -> Option<Request> {
        while let Some((deadline, transaction)) = self.order.front().copied() {
            if deadline > now {
                return None;
            }
            self.order.pop_front();
            if let Some(request) = self.take_try(transaction) {
                return Some(request);
            }
        }
        None
    }

    /// Removes and returns all requests to a node that wait to be sent.
    pub(super) fn drop_ready(&mut self, about: About) -> Vec<Request> {
        let queue = self.by_node.get_mut(&about);
        let dropped: Vec<Request> =
            queue.map_or_else(Vec::new, |queue| queue.ready.drain(..).collect());
        self.ready -= dropped.len();
        self.list(about);
        dropped
    }

    /// Gives a node a turn if it has a request to send, and room for it. Removes a node without requests.
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
