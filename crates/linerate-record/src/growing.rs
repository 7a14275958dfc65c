//! A column of readings while it grows, packed so that it uses little memory.

use super::pack::{pack, unpack};

/// Number of values in a block.
const BLOCK: usize = 128;

/// Values of a column in the order in which they were read. All blocks but the last are packed as a record packs
/// them: a long step of many streams uses little memory.
#[derive(Debug, Default)]
pub struct Growing {
    packed: Vec<Box<[u8]>>,
    last: Vec<i64>,
}

impl Growing {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.packed.len() * BLOCK + self.last.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a value.
    pub fn push(&mut self, value: i64) {
        // A full block is packed only when the next value arrives, so that its last value can still be removed.
        if self.last.len() == BLOCK {
            self.packed.push(pack(&self.last).into_boxed_slice());
            self.last.clear();
        }
        self.last.push(value);
    }

    /// Removes the value that was appended last. It may be called once after each [`Self::push`].
    pub fn retract(&mut self) {
        self.last.pop();
    }

    /// All values.
    pub fn into_values(self) -> Vec<i64> {
        let mut values = Vec::with_capacity(self.len());
        for block in &self.packed {
            // Blocks that were packed here always unpack.
            values.extend(unpack(block, BLOCK).into_iter().flatten());
        }
        values.extend(self.last);
        values
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn grown(values: &[i64]) -> Growing {
        let mut growing = Growing::default();
        for &value in values {
            growing.push(value);
        }
        growing
    }

    proptest! {
        #[test]
        fn what_was_appended_comes_back(values in prop::collection::vec(any::<i64>(), 0..3 * BLOCK + 2)) {
            let growing = grown(&values);
            prop_assert_eq!(growing.len(), values.len());
            prop_assert_eq!(growing.is_empty(), values.is_empty());
            prop_assert_eq!(growing.into_values(), values);
        }
    }

    #[test]
    fn the_last_value_can_be_taken_back_at_the_edges_of_blocks_too() {
        for rows in BLOCK - 1..=BLOCK + 1 {
            let values: Vec<i64> = (0..rows as i64).collect();
            let mut growing = grown(&values);
            growing.push(-1);
            growing.retract();
            assert_eq!(growing.len(), rows);
            growing.push(7);
            assert_eq!(growing.into_values(), [values, vec![7]].concat());
        }
    }

    #[test]
    fn a_long_column_takes_a_fraction_of_its_values() {
        let values: Vec<i64> = (0..6000).map(|n| 1_000_000 * n + n % 7).collect();
        let packed: usize = grown(&values).packed.iter().map(|b| b.len()).sum();
        assert!(packed * 4 < size_of_val(values.as_slice()), "{packed}");
    }
}
