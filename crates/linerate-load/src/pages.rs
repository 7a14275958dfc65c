//! Page-aligned buffers, which are allocated by the thread that uses them.

/// Bytes that begin on a page boundary.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    store: Vec<u8>,
    start: usize,
    len: usize,
}

const PAGE: usize = 4096;

impl Pages {
    /// Allocates `len` bytes, unless the buffer has that size already. The bytes are written, so that their memory is
    /// on the NUMA node of the calling thread.
    pub(crate) fn ensure(&mut self, len: usize) -> bool {
        if self.len == len && !self.store.is_empty() {
            return false;
        }
        self.store = vec![1; len + PAGE];
        self.start = self.store.as_ptr().align_offset(PAGE).min(PAGE);
        self.len = len;
        true
    }

    /// Fills the buffer with random bytes, which no link can compress.
    pub(crate) fn randomize(&mut self) -> std::io::Result<()> {
        randomize(self.bytes_mut())
    }

    /// Makes a buffer of `len` random bytes, unless it has that size already.
    pub(crate) fn fill(&mut self, len: usize) -> std::io::Result<()> {
        if self.ensure(len) { self.randomize() } else { Ok(()) }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.store[self.start..self.start + self.len]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.store[self.start..self.start + self.len]
    }
}

/// Fills a slice with random bytes, which no link can compress.
pub(crate) fn randomize(bytes: &mut [u8]) -> std::io::Result<()> {
    let mut state = getrandom::u64().map_err(std::io::Error::other)?;
    for chunk in bytes.chunks_mut(8) {
        // Algorithm splitmix64, https://prng.di.unimi.it/splitmix64.c
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let word = (z ^ (z >> 31)).to_ne_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_begins_on_a_page_and_is_made_once() {
        let mut pages = Pages::default();
        assert!(pages.ensure(1000));
        assert_eq!(pages.bytes().len(), 1000);
        assert_eq!(pages.bytes().as_ptr() as usize % PAGE, 0);
        assert!(!pages.ensure(1000));
        assert!(pages.ensure(2000));
    }

    #[test]
    fn random_bytes_are_spread_over_all_values() {
        let mut pages = Pages::default();
        pages.ensure(65_536);
        pages.randomize().unwrap();
        let mut seen = [0u32; 256];
        pages.bytes().iter().for_each(|b| seen[usize::from(*b)] += 1);
        assert!(seen.iter().all(|n| (100..500).contains(n)));
    }
}
