//! Reads and writes of a file, many in flight, from memory that is registered once.

#![expect(
    unsafe_code,
    reason = "memory that the kernel reads and writes later, and entries of its queue"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use io_uring::{IoUring, opcode, types};

use super::{enter, full};
use crate::zerocopy::Memory;

/// What an operation does with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads.
    Read,
    /// It writes.
    Write {
        /// Whether the data are on the disk before the write ends (`RWF_DSYNC`).
        sync: bool,
    },
}

/// A completed operation.
#[derive(Debug)]
pub struct Completion<'a> {
    /// The block of memory that it used.
    pub slot: u32,
    /// Bytes that were moved, or the kernel's error.
    pub moved: io::Result<u32>,
    /// The block, which is free again.
    pub block: &'a [u8],
}

/// A ring of one thread, for one file. Its memory is cut into blocks of one size; each operation in flight has one.
pub struct FileRing {
    ring: IoUring,
    memory: Memory,
    block: u32,
    /// Blocks that no operation in flight uses.
    free: Vec<u32>,
    /// Number of all blocks.
    depth: u32,
}

impl FileRing {
    /// Makes a ring that keeps up to `depth` operations of `block` bytes in flight, and registers its memory and the
    /// file with the kernel. Must be called on the thread that uses the ring. Fails with `ENOMEM` if this process may not
    /// lock so much memory (`RLIMIT_MEMLOCK`), and with `ENOSYS` or `EPERM` if there is no io_uring or this process may
    /// not use it.
    pub fn new(file: BorrowedFd<'_>, depth: u32, block: u32) -> io::Result<Self> {
        Self::made(file, depth, block, false)
    }

    /// Makes a ring as [`FileRing::new`] does, whose waits poll the device: it sends no interrupt. The file must be open
    /// with O_DIRECT. Operations fail with `EOPNOTSUPP` if the file or the device cannot be polled.
    pub fn polled(file: BorrowedFd<'_>, depth: u32, block: u32) -> io::Result<Self> {
        Self::made(file, depth, block, true)
    }

    fn made(file: BorrowedFd<'_>, depth: u32, block: u32, polled: bool) -> io::Result<Self> {
        let size = u64::from(depth) * u64::from(block);
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let memory = Memory::new(size.max(1))?;
        let ring = Self::ring(depth, polled)?;
        let pages =
            [libc::iovec { iov_base: memory.start().as_ptr().cast(), iov_len: memory.size() }];
        // SAFETY: `memory` is mapped with this size now, when its pages are looked up. The kernel pins the pages and uses
        // them from then on, not the address: it needs no mapping after this call.
        unsafe { ring.submitter().register_buffers(&pages)? };
        ring.submitter().register_files(&[file.as_raw_fd()])?;
        Ok(Self { ring, memory, block, free: (0..depth).rev().collect(), depth })
    }

    /// The kernel completes operations when this thread enters it, from Linux 6.1 on; older ones interrupt the thread.
    fn ring(depth: u32, polled: bool) -> io::Result<IoUring> {
        let entries = depth.max(1).next_power_of_two();
        let mut usual = IoUring::builder();
        if polled {
            usual.setup_iopoll();
        }
        let mut new = usual.clone();
        match new.setup_single_issuer().setup_defer_taskrun().build(entries) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => usual.build(entries),
            made => made,
        }
    }

    /// Number of operations in flight.
    pub fn in_flight(&self) -> u32 {
        self.depth - self.free.len() as u32
    }

    /// Whether one more operation may be started.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Queues an operation at `offset`, and returns the number of its block; `None` if all blocks are in use. `prepare` gets
    /// the number and the block before a write. The kernel learns of the operation in [`FileRing::complete`].
    #[inline]
    pub fn start(
        &mut self,
        access: Access,
        offset: u64,
        prepare: impl FnOnce(u32, &mut [u8]),
    ) -> io::Result<Option<u32>> {
        let Some(slot) = self.free.pop() else {
            return Ok(None);
        };
        let (start, len) = (self.start_of(slot), self.block);
        let file = types::Fixed(0);
        let entry = match access {
            Access::Read => opcode::ReadFixed::new(file, start, len, 0).offset(offset).build(),
            Access::Write { sync } => {
                // SAFETY: the block is within the mapping, and no operation in flight uses it: it was free.
                prepare(slot, unsafe { std::slice::from_raw_parts_mut(start, len as usize) });
                let flags = if sync { libc::RWF_DSYNC } else { 0 };
                let write = opcode::WriteFixed::new(file, start.cast_const(), len, 0);
                write.offset(offset).rw_flags(flags).build()
            }
        };
        let entry = entry.user_data(u64::from(slot));
        // SAFETY: `len` bytes from `start` are within the buffer that was registered as the first one, whose pages stay
        // pinned until the operation is complete. Nothing else accesses them until then: the block is not free.
        unsafe { self.ring.submission().push(&entry) }.map_err(full)?;
        Ok(Some(slot))
    }

    /// Submits what was queued, waits up to `wait` for one completion, and passes all completions to `ended`.
    #[inline]
    pub fn complete(
        &mut self,
        wait: Duration,
        mut ended: impl FnMut(Completion<'_>),
    ) -> io::Result<()> {
        enter(&self.ring, wait)?;
        let (start, block) = (self.memory.start(), self.block);
        for one in self.ring.completion() {
            let slot = one.user_data() as u32;
            let result = one.result();
            let moved = u32::try_from(result).map_err(|_| super::failed(result));
            // SAFETY: the block is within the mapping, and its operation has ended.
            let bytes = unsafe {
                let start = start.as_ptr().add(slot as usize * block as usize);
                std::slice::from_raw_parts(start, block as usize)
            };
            ended(Completion { slot, moved, block: bytes });
            self.free.push(slot);
        }
        Ok(())
    }

    fn start_of(&self, slot: u32) -> *mut u8 {
        // SAFETY: a slot is less than the depth, so that its block is within the mapping.
        unsafe { self.memory.start().as_ptr().add(slot as usize * self.block as usize) }
    }
}

impl Drop for FileRing {
    /// Waits for the operations in flight, so that none writes to a file that its owner believes idle.
    fn drop(&mut self) {
        for _ in 0..WAITS {
            if self.in_flight() == 0 || self.complete(WAIT, |_| ()).is_err() {
                return;
            }
        }
    }
}

/// Longest wait for a completion while a ring is dropped, and number of waits: a disk that does not answer holds a program
/// for no longer than a second.
const WAIT: Duration = Duration::from_millis(100);
const WAITS: u32 = 10;
