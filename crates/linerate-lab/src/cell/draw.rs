//! Random choices for a cell.

use linerate_plan::path::{Direction, Side};

use crate::random::Random;

/// A generator of random choices from a seed.
pub(super) struct Draw {
    seed: u64,
    random: Random,
}

impl Draw {
    pub(super) const fn of(seed: u64, state: u64) -> Self {
        Self { seed, random: Random::of(state) }
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Returns the item at the seed's position, so that consecutive seeds use each item equally often.
    pub(super) fn turn<T: Copy>(&self, of: &[T]) -> T {
        of[(self.seed % of.len() as u64) as usize]
    }

    pub(super) fn direction(&mut self) -> Direction {
        self.one(&Direction::ALL)
    }

    pub(super) fn side(&mut self) -> Side {
        self.one(&[Side::Near, Side::Far])
    }
}
