//! The contents of what is written: no block repeats, and none can be compressed.

use std::io;

/// Bytes between two stamps, the smallest unit in which disks compare blocks.
const UNIT: usize = 512;

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

/// The contents of what a thread writes.
pub(super) struct Contents {
    state: u64,
    /// Which slots have random contents.
    filled: Vec<bool>,
}

impl Contents {
    /// Contents of so many slots.
    pub(super) fn new(slots: u32) -> io::Result<Self> {
        let state = getrandom::u64().map_err(io::Error::other)?;
        Ok(Self { state, filled: vec![false; slots as usize] })
    }

    /// Makes the block of a slot differ from all that was written.
    #[inline]
    pub(super) fn renew(&mut self, slot: u32, block: &mut [u8]) {
        if let Some(filled) = self.filled.get_mut(slot as usize).filter(|filled| !**filled) {
            *filled = true;
            for eight in block.chunks_exact_mut(8) {
                eight.copy_from_slice(&word(&mut self.state).to_ne_bytes());
            }
        }
        stamp(block, &mut self.state);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

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
