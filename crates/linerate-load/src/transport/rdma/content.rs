//! Known payload: both ends compute the same bytes, so that the receiving end can check what it received.

/// Bytes that differ between positions, and between streams.
pub(super) struct Content(Box<[u8]>);

/// Odd constant whose one bits are spread over all 64 bits.
//= https://prng.di.unimi.it/splitmix64.c
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Content {
    /// Computes the payload of a stream: `size` bytes that depend on set and stream.
    pub(super) fn new(set: u32, stream: u32, size: u32) -> Self {
        let seed = u64::from(set) << 32 | u64::from(stream);
        let words = (1..).map(|n: u64| mixed(seed.wrapping_add(n.wrapping_mul(STEP))));
        let bytes = words.flat_map(u64::to_le_bytes);
        Self(bytes.take(size as usize).collect())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Mixes the bits of a word, so that each bit affects all bits of the result.
//= https://prng.di.unimi.it/splitmix64.c
const fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_compute_the_same_and_streams_differ() {
        let of = |set, stream, size| Content::new(set, stream, size).bytes().to_vec();
        assert_eq!(of(1, 2, 1001), of(1, 2, 1001));
        assert_eq!(of(1, 2, 1001)[..9], of(1, 2, 9));
        assert_ne!(of(1, 2, 64), of(2, 1, 64));
        assert_ne!(of(1, 2, 64), of(1, 3, 64));
        assert_ne!(of(1, 2, 16)[..8], of(1, 2, 16)[8..]);
        // A test with a virtual machine searches a process's memory for these bytes.
        assert_eq!(of(0, 0, 4), [0xaf, 0xcd, 0x1d, 0x7b]);
        assert!(of(1, 2, 0).is_empty());
    }
}
