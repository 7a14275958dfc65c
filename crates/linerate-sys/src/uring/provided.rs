//! Buffers that are passed to the kernel, which fills them when bytes arrive.

#![expect(unsafe_code, reason = "memory that the kernel writes, and its queue")]

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering::Release};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

use crate::zerocopy::Memory;

/// Number of the buffer group. A ring has only one.
pub(super) const GROUP: u16 = 0;

/// Buffers of the same size. The kernel owns a buffer from the time when
/// it is passed to the kernel until a completion contains its number.
pub(super) struct Provided {
    /// Queue of the buffers that the kernel owns. Its first entry also contains the tail of the queue.
    queue: Memory,
    bytes: Memory,
    size: usize,
    count: u16,
    mask: u16,
    tail: u16,
}

impl Provided {
    /// Makes `count` buffers of `size` bytes, and passes them to the kernel.
    pub(super) fn new(ring: &IoUring, size: u32, count: u16) -> io::Result<Self> {
        let (size, slots) = (size as usize, count.next_power_of_two());
        let queue = Memory::new(usize::from(slots) * size_of::<BufRingEntry>())?;
        let at = queue.start().as_ptr() as u64;
        // SAFETY: a mapping begins on a page, and this one has room for `slots` entries,
        // all zero. The kernel pins its pages here and uses the pages, not the addresses.
        // `give` needs them mapped, which they are as long as this value exists.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(at, slots, GROUP, 0)?;
        };
        let bytes = Memory::new(size * usize::from(count))?;
        let mut made = Self { queue, bytes, size, count, mask: slots - 1, tail: 0 };
        (0..count).for_each(|buffer| made.give(buffer));
        Ok(made)
    }

    /// Passes a buffer to the kernel. No borrow of the buffer exists, since it would also borrow this value.
    pub(super) fn give(&mut self, buffer: u16) {
        assert!(buffer < self.count, "there is such a buffer");
        let first: *mut BufRingEntry = self.queue.start().as_ptr().cast();
        let at = usize::from(buffer) * self.size;
        // SAFETY: the buffer is inside `bytes`, as was just checked.
        let start = unsafe { self.bytes.start().as_ptr().add(at) };
        // SAFETY: the slot's index is below the number of slots in the queue, which is page-aligned and initialised
        // (zero at first). The kernel only reads entries, and reads this one only after the tail was advanced.
        let entry = unsafe { &mut *first.add(usize::from(self.tail & self.mask)) };
        entry.set_addr(start as u64);
        entry.set_len(self.size as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: `first` is the address of the queue's first entry, which contains the tail. The kernel reads the tail
        // with an acquiring load, and nothing else writes it.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(first).cast_mut()) };
        tail.store(self.tail, Release);
    }

    /// Returns whether `bytes` bytes fit into the buffer `buffer`, so that the kernel can have filled them.
    pub(super) fn has(&self, buffer: u16, bytes: usize) -> bool {
        buffer < self.count && bytes <= self.size
    }

    /// Returns bytes of a buffer whose number a completion
    /// contained, and that was not passed to the kernel again since.
    pub(super) fn bytes(&self, buffer: u16, part: Range<usize>) -> &[u8] {
        assert!(self.has(buffer, part.end) && part.start <= part.end);
        let at = usize::from(buffer) * self.size + part.start;
        // SAFETY: the range is inside one buffer, as was just checked, and so inside `bytes`,
        // which is initialised (zero at first). The kernel does not write to a buffer that it
        // does not own, and passing one back needs a unique borrow of this value.
        unsafe { std::slice::from_raw_parts(self.bytes.start().as_ptr().add(at), part.len()) }
    }
}
