//! Requests without a reply, by transaction and by deadline.

use std::collections::{BTreeMap, VecDeque};

use super::{About, Asked};
use crate::units::Nanos;

/// Requests that were sent and not answered. Each has the same time to be answered, so that the order in which they
/// were sent is that of their deadlines.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    by_transaction: BTreeMap<u32, Asked>,
    /// Transactions with their deadlines; those that were answered are skipped later.
    order: VecDeque<(Nanos, u32)>,
    by_node: BTreeMap<About, usize>,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.by_transaction.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_transaction.is_empty()
    }

    /// Returns the number of requests without a reply at a node.
    pub(super) fn at(&self, node: About) -> usize {
        self.by_node.get(&node).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, transaction: u32, asked: Asked, deadline: Nanos) {
        *self.by_node.entry(asked.about).or_default() += 1;
        self.by_transaction.insert(transaction, asked);
        self.order.push_back((deadline, transaction));
    }

    pub(super) fn take(&mut self, transaction: u32) -> Option<Asked> {
        let asked = self.by_transaction.remove(&transaction)?;
        if let Some(count) = self.by_node.get_mut(&asked.about) {
            *count -= 1;
            if *count == 0 {
                self.by_node.remove(&asked.about);
            }
        }
        while self
            .order
            .front()
            .is_some_and(|(_, of)| !self.by_transaction.contains_key(of))
        {
            self.order.pop_front();
        }
        Some(asked)
    }

    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.order.front().map(|(deadline, _)| *deadline)
    }

    /// Takes a request whose deadline has passed.
    pub(super) fn late(&mut self, now: Nanos) -> Option<Asked> {
        let (deadline, transaction) = *self.order.front()?;
        if deadline > now {
            return None;
        }
        self.take(transaction)
    }
}
