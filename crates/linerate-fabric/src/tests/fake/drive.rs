//! Drives a walk through the fake network, in virtual time.

use std::collections::BTreeMap;

use super::{At, Fake};
use linerate_fabric::mad::{Get, LEN, To};
use linerate_fabric::network::Network;
use linerate_fabric::walk::{OUTSTANDING, PARTS, Part, Walk};
use linerate_units::Nanos;

/// A port of the fake network, with requests that were sent, and replies that are under way.
#[derive(Debug)]
pub struct Drive {
    /// The fake network.
    pub fake: Fake,
    /// The port from which requests are sent.
    pub from: At,
    /// The virtual time.
    pub now: Nanos,
    /// Most requests without a reply at one time: first of all nodes, then of one known node.
    pub most: [usize; 2],
    /// Number of copies of each reply that are delivered.
    pub copies: usize,
    replies: BTreeMap<(Nanos, u64), Vec<u8>>,
    /// Requests without a reply, by number: when each was sent last, and its node if that is known.
    open: BTreeMap<u32, (Nanos, Option<usize>)>,
    random: u64,
    count: u64,
}

impl Fake {
    /// A drive that sends requests from a port of `host`.
    pub fn drive(&self, host: &str, port: u8) -> Drive {
        Drive {
            from: (self.node(host), port),
            now: Nanos(0),
            most: [0; 2],
            copies: 1,
            replies: BTreeMap::new(),
            open: BTreeMap::new(),
            random: self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            count: 0,
            fake: self.clone(),
        }
    }

    /// The network as port 1 of a host sees it, with its counters read twice.
    pub fn network(&self, host: &str) -> Network {
        self.network_at(host, 1)
    }

    /// The network as another port of a host sees it, with its counters read twice.
    pub fn network_at(&self, host: &str, port: u8) -> Network {
        let mut drive = self.drive(host, port);
        let mut walk = Walk::default();
        drive.all(&mut walk);
        walk.into_network()
    }
}

impl Drive {
    /// Runs a whole walk: the search for all nodes, and then all parts.
    pub fn all(&mut self, walk: &mut Walk) {
        self.run(walk);
        for part in PARTS {
            if part == Part::Pause {
                self.now = Nanos(self.now.0 + 1_000_000_000);
                self.fake.pass_time();
            }
            walk.begin(part);
            self.run(walk);
        }
    }

    /// Sends requests and delivers replies until the walk is done.
    ///
    /// # Panics
    ///
    /// If the walk is not done, but has neither a deadline nor a reply to wait for.
    pub fn run(&mut self, walk: &mut Walk) {
        while self.step(walk) {}
    }

    /// Sends all requests that may be sent, then lets time pass until a reply or a deadline. Returns whether the walk
    /// goes on.
    ///
    /// # Panics
    ///
    /// If the walk is not done, but has neither a deadline nor a reply to wait for.
    pub fn step(&mut self, walk: &mut Walk) -> bool {
        walk.expire(self.now);
        while let Some((transaction, get)) = walk.request(self.now, usize::MAX) {
            self.send(transaction, &get);
        }
        if walk.is_done() {
            return false;
        }
        let reply = self.replies.keys().next().map(|(at, _)| *at);
        let next = reply.into_iter().chain(walk.deadline()).min();
        self.now = self.now.max(next.expect("a deadline or a reply"));
        while let Some(first) = self.replies.first_entry() {
            if first.key().0 > self.now {
                break;
            }
            let mad = first.remove();
            walk.receive(self.now, &mad);
            if let Some(of) = linerate_fabric::mad::transaction(&mad) {
                self.open.remove(&(of / 8));
            }
        }
        true
    }

    fn send(&mut self, transaction: u32, get: &Get) {
        let mad = get.encode(transaction);
        let answer = self.fake.answer(self.from, get.lid(), &mad);
        let is_search = matches!(get.to, To::Route(_)) && mad[16..18] == [0, 0x11];
        let node = answer.as_ref().map(|(node, _)| *node);
        let end = self.now.0.saturating_sub(250_000_000);
        self.open.retain(|_, (sent, _)| self.now.0 < 250_000_000 || sent.0 > end);
        let to = node.filter(|_| !is_search);
        self.open.insert(transaction / 8, (self.now, to));
        let same = self.open.values().filter(|(_, of)| to.is_some() && *of == to);
        let most = same.count();
        self.most = [self.most[0].max(self.open.len()), self.most[1].max(most)];
        let Some((node, reply)) = answer else {
            return;
        };
        let loss = u64::from(self.fake.nodes[node].loss);
        for copy in 0..self.copies {
            if self.random() % 100 >= loss {
                let late = self.fake.nodes[node].delay.0 * (copy as u64 + 1);
                self.deliver(Nanos(self.now.0 + late), &reply);
            }
        }
    }

    /// Delivers a datagram to the walk at the time `at`.
    pub fn deliver(&mut self, at: Nanos, mad: &[u8; LEN]) {
        self.count += 1;
        self.replies.insert((at, self.count), mad.to_vec());
    }

    /// Whether the numbers of requests without a reply stayed within the limits of a walk.
    pub fn kept_limits(&self) -> bool {
        self.most[0] <= OUTSTANDING && self.most[1] <= 8
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 16
    }
}
