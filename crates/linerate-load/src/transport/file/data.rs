//! The contents of what is written: no block repeats, and none can be compressed.

use std::io;

/// Bytes between two stamps, the smallest unit in which disks compare and store blocks.
pub(super) const UNIT: usize = 512;

/// The next word of splitmix64.
//= https://prng.di.unimi.it/splitmix64.c
#[inline]
pub(super) fn word(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Makes a block differ from all others: each unit of 512 bytes begins with a word of its own. The rest of the block is
/// random, and stays from one write to the next.
#[inline]
pub(super) fn stamp(block: &mut [u8], state: &mut u64) {
    for unit in block.chunks_mut(UNIT) {
        let own = word(state).to_ne_bytes();
        let len = own.len().min(unit.len());
        unit[..len].copy_from_slice(&own[..len]);
    }
}

/// Makes each unit of a block, which is at `at` in the file, tell whether it is damaged: the second word is a sum of the
/// others and of the unit's offset.
#[inline]
pub(super) fn seal(block: &mut [u8], at: u64) {
    for (unit, at) in block.chunks_exact_mut(UNIT).zip((at..).step_by(UNIT)) {
        let sum = sum(unit, at).to_ne_bytes();
        unit[8..16].copy_from_slice(&sum);
    }
}

/// The offset of the first unit of a block at `at` that is not as it was sealed.
#[inline]
pub(super) fn damaged(block: &[u8], at: u64) -> Option<u64> {
    let mut units = block.chunks_exact(UNIT).zip((at..).step_by(UNIT));
    units.find(|(unit, at)| unit[8..16] != sum(unit, *at).to_ne_bytes()).map(|(_, at)| at)
}

/// A sum of a unit at `at`, except for the place of the sum. Each step is reversible, so that a change of one word always
/// changes the sum.
fn sum(unit: &[u8], at: u64) -> u64 {
    let mut sum = at ^ 0x9e37_79b9_7f4a_7c15;
    for (number, eight) in unit.chunks_exact(8).enumerate() {
        if number != 1 {
            let word = eight.try_into().map_or(0, u64::from_ne_bytes);
            sum = (sum ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(29);
        }
    }
    sum
}

/// The contents of what a thread writes.
pub(super) struct Contents {
    state: u64,
    sealed: bool,
    /// Which slots have random contents.
    filled: Vec<bool>,
}

impl Contents {
    /// Contents of so many slots, which are `sealed` where reads check them.
    pub(super) fn new(slots: u32, sealed: bool) -> io::Result<Self> {
        let state = getrandom::u64().map_err(io::Error::other)?;
        Ok(Self { state, sealed, filled: vec![false; slots as usize] })
    }

    /// Makes the block of a slot, which is written at `at`, differ from all that was written.
    #[inline]
    pub(super) fn renew(&mut self, slot: u32, block: &mut [u8], at: u64) {
        if let Some(filled) = self.filled.get_mut(slot as usize).filter(|filled| !**filled) {
            *filled = true;
            for eight in block.chunks_exact_mut(8) {
                eight.copy_from_slice(&word(&mut self.state).to_ne_bytes());
            }
        }
        stamp(block, &mut self.state);
        if self.sealed {
            seal(block, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_change_of_any_byte_and_a_block_at_another_place_are_found() {
        let mut block = vec![0; 4 * UNIT];
        Contents::new(1, true).unwrap().renew(0, &mut block, 4096);
        assert_eq!(damaged(&block, 4096), None);
        for place in 0..block.len() {
            block[place] ^= 0x10;
            assert_eq!(damaged(&block, 4096), Some(4096 + (place / UNIT * UNIT) as u64));
            block[place] ^= 0x10;
        }
        assert_eq!(damaged(&block, 8192), Some(8192));
        assert_eq!(damaged(&vec![0; UNIT], 0), Some(0), "a block that was never written");
    }

    #[test]
    fn no_unit_of_any_block_repeats() {
        let (mut block, mut state) = (vec![0; 8 * UNIT + 3], 7);
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            stamp(&mut block, &mut state);
            for unit in block.chunks_exact(UNIT) {
                assert!(seen.insert(unit.to_vec()));
            }
        }
    }
}
