//! Reads and writes numbers at fixed offsets of a datagram.

use linerate_facts::infiniband::Guid;

/// Bytes with numbers in network byte order. A number beyond the end is read as zero: callers check the length before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl Fields<'_> {
    /// Returns `N` bytes that begin at offset `at`.
    pub(super) fn bytes<const N: usize>(self, at: usize) -> [u8; N] {
        let bytes = self.0.get(at..at + N).and_then(|b| b.try_into().ok());
        bytes.unwrap_or([0; N])
    }

    pub(super) fn u8(self, at: usize) -> u8 {
        self.bytes::<1>(at)[0]
    }

    pub(super) fn u16(self, at: usize) -> u16 {
        u16::from_be_bytes(self.bytes(at))
    }

    /// Returns the number in three bytes at offset `at`.
    pub(super) fn u24(self, at: usize) -> u32 {
        let [a, b, c] = self.bytes(at);
        u32::from_be_bytes([0, a, b, c])
    }

    pub(super) fn u32(self, at: usize) -> u32 {
        u32::from_be_bytes(self.bytes(at))
    }

    pub(super) fn u64(self, at: usize) -> u64 {
        u64::from_be_bytes(self.bytes(at))
    }

    pub(super) fn guid(self, at: usize) -> Guid {
        Guid(self.u64(at))
    }

    /// Returns the upper four bits of the byte at offset `at`.
    pub(super) fn high(self, at: usize) -> u8 {
        self.u8(at) >> 4
    }

    /// Returns the lower four bits of the byte at offset `at`.
    pub(super) fn low(self, at: usize) -> u8 {
        self.u8(at) & 0xf
    }
}

/// Writes `bytes` into `mad` at offset `at`; bytes beyond its end are left out.
pub(super) fn put(mad: &mut [u8], at: usize, bytes: &[u8]) {
    for (to, from) in mad.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
}
