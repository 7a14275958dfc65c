//! Positions in a ring, and copies from and to the ring. Whatever positions the other end writes, no memory outside the
//! ring is accessed.
//!
//! A position counts all bytes of one direction since the set was made. The ring's size is a power of two.

use std::ops::Range;

use linerate_sys::memfd::SharedBytes;

/// Returns how many bytes a ring holds whose producer is at `head` and whose consumer is at `tail`. `None` if that is
/// more than `size`: then one of the positions is wrong.
pub(super) const fn held(head: u64, tail: u64, size: u64) -> Option<u64> {
    let bytes = head.wrapping_sub(tail);
    if bytes <= size { Some(bytes) } else { None }
}

/// Returns the two ranges that `len` bytes from `position` occupy in a ring: one up to the ring's end, and the rest
/// from its start. `len` is limited to the size of the ring.
fn pieces(position: u64, len: usize, size: u64) -> [Range<usize>; 2] {
    let size_of = size as usize;
    let len = len.min(size_of);
    let start = (position & (size - 1)) as usize;
    let first = len.min(size_of - start);
    [start..start + first, 0..len - first]
}

/// Copies bytes into a ring at `position`, at most as many as the ring's size.
#[inline]
pub(super) fn write(ring: &mut SharedBytes, position: u64, bytes: &[u8]) {
    let [first, second] = pieces(position, bytes.len(), ring.size() as u64);
    let (one, other) = bytes.split_at(first.len());
    ring.write(first.start, one);
    ring.write(0, &other[..second.len()]);
}

/// Copies bytes out of a ring from `position`, at most as many as the ring's size.
#[inline]
pub(super) fn read(ring: &SharedBytes, position: u64, into: &mut [u8]) {
    let [first, second] = pieces(position, into.len(), ring.size() as u64);
    let (one, other) = into.split_at_mut(first.len());
    ring.read(first.start, one);
    ring.read(0, &mut other[..second.len()]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_ring_is_held_and_more_is_not() {
        assert_eq!(held(4096, 0, 4096), Some(4096));
        assert_eq!(held(4097, 0, 4096), None);
        assert_eq!(held(0, 1, 4096), None);
        assert_eq!(held(5, u64::MAX, 4096), Some(6));
    }

    #[test]
    fn bytes_go_on_at_the_start() {
        assert_eq!(pieces(4090, 10, 4096), [4090..4096, 0..4]);
        assert_eq!(pieces(4096, 10, 4096), [0..10, 0..0]);
        assert_eq!(pieces(1, 9000, 4096), [1..4096, 0..1]);
    }

    proptest! {
        #[test]
        fn no_position_means_bytes_outside(position: u64, len: usize, power in 12u32..=24) {
            let size = 1u64 << power;
            let [first, second] = pieces(position, len, size);
            prop_assert!(first.end <= size as usize && second.end <= first.start);
            prop_assert_eq!(first.len() + second.len(), len.min(size as usize));
        }

        #[test]
        fn no_positions_hold_more_than_there_is(head: u64, tail: u64, power in 12u32..=24) {
            let size = 1u64 << power;
            prop_assert!(held(head, tail, size).is_none_or(|bytes| bytes <= size));
        }
    }
}
