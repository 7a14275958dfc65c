//! A chain of addresses in memory: each address is known only once the previous one was read.
#![expect(
    unsafe_code,
    reason = "a check of bounds at each link would take longer than the nearest cache"
)]

use super::array::Array;

/// Bytes from one link to the next: a cache line, which a processor reads from memory as a whole.
pub const LINE: usize = 64;

/// Number of lines that are written between two calls of `goes_on`: 64 MiB of memory.
const STEP: usize = 1 << 20;

/// Links in an array, one in each line. They lead through all lines in random order and back to the first one.
#[derive(Debug)]
pub struct Chain {
    links: Array,
    /// Address of the link that is read next.
    at: *const usize,
}

// SAFETY: the array that `at` points into belongs to this value.
unsafe impl Send for Chain {}

impl Chain {
    /// Makes a chain through a whole array. Returns `None` if the array has no room for a link, or once `goes_on`
    /// returns false. Different seeds give different chains.
    pub fn new(mut links: Array, seed: u64, goes_on: &dyn Fn() -> bool) -> Option<Self> {
        let count = links.len() / LINE;
        if count == 0 {
            return None;
        }
        let stopped = |line: usize| line.is_multiple_of(STEP) && !goes_on();
        for line in 0..count {
            if stopped(line) {
                return None;
            }
            put(&mut links, line, line);
        }
        // Sattolo's algorithm: all permutations that are a single cycle are equally likely.
        //= Sattolo, "An algorithm to generate a random cyclic permutation", Information Processing Letters 22(6), 1986
        let mut state = seed;
        for line in (1..count).rev() {
            if stopped(line) {
                return None;
            }
            let other = below(&mut state, line);
            let (mine, theirs) = (get(&links, line), get(&links, other));
            put(&mut links, line, theirs);
            put(&mut links, other, mine);
        }
        // The pointer is not derived from a borrow of the bytes, because later borrows would invalidate it.
        let first = links.start();
        let start = first as usize;
        for line in 0..count {
            if stopped(line) {
                return None;
            }
            let next = start + get(&links, line) * LINE;
            put(&mut links, line, next);
        }
        Some(Self { at: first.cast(), links })
    }

    /// Reads `links` addresses of the chain, one after the other.
    pub fn follow(&mut self, links: usize) {
        let mut at = self.at;
        for _ in 0..links {
            // SAFETY: every line of the array begins with the address of another line, as `new` wrote it, and
            // nothing else writes there; lines are aligned to an address, since mappings begin on a page. The
            // read is volatile so that the compiler keeps it although only the next read needs it.
            at = unsafe { at.read_volatile() } as *const usize;
        }
        self.at = at;
    }

    /// Returns the array that contains the chain.
    pub fn array(&self) -> &Array {
        &self.links
    }
}

/// Returns the first word of a line.
fn get(links: &[u8], line: usize) -> usize {
    let word = links[line * LINE..].first_chunk();
    word.map_or(0, |word| usize::from_ne_bytes(*word))
}

fn put(links: &mut [u8], line: usize, word: usize) {
    links[line * LINE..][..size_of::<usize>()].copy_from_slice(&word.to_ne_bytes());
}

/// Returns a random number below `most`, which must not be zero.
fn below(state: &mut u64, most: usize) -> usize {
    // splitmix64, https://prng.di.unimi.it/splitmix64.c
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    ((u128::from(z) * most as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;

    use super::*;

    fn chain(len: usize, seed: u64) -> Option<Chain> {
        Chain::new(Array::new(len).unwrap(), seed, &|| true)
    }

    #[test]
    fn a_chain_leads_through_every_line_and_back() {
        for lines in [1, 2, 3, 64, 1000] {
            let mut chain = chain(lines * LINE + 9, 7).unwrap();
            let start = chain.at;
            let mut seen = BTreeSet::new();
            for _ in 0..lines {
                assert!(seen.insert(chain.at), "{lines}");
                chain.follow(1);
            }
            assert_eq!(chain.at, start, "{lines}");
            chain.follow(3 * lines);
            assert_eq!(chain.at, start, "{lines}");
        }
    }

    #[test]
    fn an_array_without_room_for_a_link_has_no_chain() {
        assert!(chain(LINE - 1, 7).is_none());
        assert!(chain(LINE, 7).is_some());
    }

    #[test]
    fn a_chain_is_given_up_at_every_question() {
        // `goes_on` is called once at the start, and once in each of the three loops after `STEP` lines.
        let requested = Cell::new(0);
        let until = |most| {
            requested.set(0);
            let goes_on = || requested.replace(requested.get() + 1) < most;
            let links = Array::new((STEP + 2) * LINE).unwrap();
            Chain::new(links, 7, &goes_on).is_some()
        };
        assert!(until(usize::MAX));
        let all = requested.get();
        assert_eq!(all, 5);
        for most in 0..all {
            assert!(!until(most), "{most}");
            assert_eq!(requested.get(), most + 1);
        }
    }

    #[test]
    fn other_seeds_make_other_chains_and_few_links_lead_to_the_next_line() {
        const LINES: usize = 4096;
        let steps = |seed| {
            let mut chain = chain(LINES * LINE, seed).unwrap();
            let step = |_| {
                let before = chain.at as usize;
                chain.follow(1);
                (chain.at as usize).wrapping_sub(before)
            };
            (0..LINES).map(step).collect::<Vec<_>>()
        };
        let (one, other) = (steps(1), steps(2));
        assert_ne!(one, other);
        let next = one.iter().filter(|step| **step == LINE).count();
        assert!(next < 20, "{next}");
    }
}
