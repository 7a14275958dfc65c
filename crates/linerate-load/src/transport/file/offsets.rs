//! Where the next operation of a file begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of blocks, one for each operation.
#[derive(Clone)]
pub(super) struct Offsets {
    blocks: u64,
    order: Order,
}

#[derive(Clone)]
enum Order {
    /// All threads take one block after the other, and begin again at the end of the file.
    Sequential(Arc<AtomicU64>),
    /// Each thread draws blocks, all equally often.
    Random(u64),
}

impl Offsets {
    /// Offsets in a file of so many blocks, at least one.
    pub(super) fn new(blocks: u64, random: bool) -> Self {
        let order = if random { Order::Random(0) } else { Order::Sequential(Arc::default()) };
        Self { blocks: blocks.max(1), order }
    }

    /// The offsets of one thread of a set.
    pub(super) fn of_thread(&self, stream: u32) -> Self {
        let order = match &self.order {
            Order::Sequential(next) => Order::Sequential(Arc::clone(next)),
            // Unlike seeds are enough: splitmix64 spreads them.
            Order::Random(_) => Order::Random(u64::from(stream) << 48 | 1),
        };
        Self { blocks: self.blocks, order }
    }

    /// The offsets of one part of a thread's depth, if another thread makes its calls.
    pub(super) fn of_part(&self, part: u32) -> Self {
        let mut own = self.clone();
        if let Order::Random(state) = &mut own.order {
            *state ^= u64::from(part + 1) << 24;
        }
        own
    }

    pub(super) const fn is_random(&self) -> bool {
        matches!(self.order, Order::Random(_))
    }

    /// The number of the next block.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        match &mut self.order {
            Order::Sequential(next) => next.fetch_add(1, Ordering::Relaxed) % self.blocks,
            Order::Random(state) => {
                // The high half of a product is as even as its factor: Lemire, "Fast Random Integer Generation in an
                // Interval", ACM TOMACS 29(1), 2019.
                ((u128::from(super::data::word(state)) * u128::from(self.blocks)) >> 64) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_one_sequence_that_begins_again_at_the_end() {
        let all = Offsets::new(3, false);
        let (mut one, mut other) = (all.of_thread(0), all.of_thread(1));
        assert_eq!([one.next(), other.next(), one.next(), other.next()], [0, 1, 2, 0]);
    }

    #[test]
    fn random_blocks_are_drawn_equally_often_and_differ_by_thread() {
        let all = Offsets::new(10, true);
        let mut counts = [0_u32; 10];
        let mut one = all.of_thread(0);
        (0..100_000).for_each(|_| counts[one.next() as usize] += 1);
        assert!(counts.iter().all(|n| (9_000..11_000).contains(n)), "{counts:?}");
        let few = |stream| {
            let mut own = Offsets::new(1 << 40, true).of_thread(stream);
            [own.next(), own.next(), own.next()]
        };
        assert_ne!(few(0), few(1));
        let part = |part| Offsets::new(1 << 40, true).of_thread(1).of_part(part).next();
        assert!(part(0) != part(1) && part(0) != few(1)[0]);
    }
}
