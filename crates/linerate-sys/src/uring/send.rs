//! Sends without a copy, from registered pages.

#![expect(unsafe_code, reason = "memory that the kernel reads later, and entries of its queue")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, types};

use super::{enter, failed, full};
use crate::zerocopy::{self, Memory};

/// Number of entries in the submission queue. There is only one send at a time.
const SENDS: u32 = 2;
/// Number of completions that fit into the queue between two reads; the kernel stores more until there is room.
const COMPLETIONS: u32 = 256;
/// Value of the constant `IORING_SEND_ZC_REPORT_USAGE` (Linux 6.2 or later), from linux/io_uring.h.
const REPORT_USAGE: u16 = 1 << 3;
/// Value of the constant `IORING_NOTIF_USAGE_ZC_COPIED`, from linux/io_uring.h.
const COPIED: u32 = 1 << 31;

/// User data of the two kinds of requests; it identifies their completions.
const SEND: u64 = 1;
const TRIAL: u64 = 2;
/// Longest wait for a completion that the kernel normally reports at once.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Counts of the kernel's completions of sends since the last call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SendCompletions {
    /// Number of completed sends, whose pages the kernel no longer uses.
    pub through: u64,
    /// Number of these sends whose payload the kernel copied all the same.
    pub copied: u64,
}

/// Sends the bytes of one stream, with one send in flight at a time.
pub struct Sender {
    ring: IoUring,
    memory: Memory,
    /// Socket of the send in progress; `None` if there is none.
    under_way: Option<RawFd>,
}

impl Sender {
    /// Registers `memory` with the kernel, which pins its pages from now on. Fails with `ENOMEM` if the kernel may not
    /// pin so many pages (`RLIMIT_MEMLOCK`), with `EINVAL` if the kernel does not report copies (before Linux 6.2), and
    /// with `ENOSYS` or `EPERM` if there is no io_uring or this process may not use it.
    pub fn new(memory: Memory) -> io::Result<Self> {
        let ring =
            IoUring::builder().setup_coop_taskrun().setup_cqsize(COMPLETIONS).build(SENDS)?;
        let pages =
            [libc::iovec { iov_base: memory.start().as_ptr().cast(), iov_len: memory.size() }];
        // SAFETY: `memory` is mapped with this size at this moment, when its pages are looked up. The kernel pins the
        // pages and uses them from then on, not the address, so it needs no mapping after this call.
        unsafe { ring.submitter().register_buffers(&pages)? };
        let mut made = Self { ring, memory, under_way: None };
        made.ask()?;
        Ok(made)
    }

    /// Returns the size of the memory, in bytes.
    pub fn size(&self) -> usize {
        self.memory.size()
    }

    /// Sends at most `most` bytes, or exactly `most` if `whole` is set; or continues the previous send. Waits up to
    /// `wait` for the end of the send; returns `None` if it has not ended by then. In that case none of its bytes may
    /// be counted yet, and the next call continues the same send, whatever its arguments; it must use the same socket.
    /// Fails with `EOPNOTSUPP` on a socket that does not support this.
    pub fn send(
        &mut self,
        fd: BorrowedFd<'_>,
        most: usize,
        whole: bool,
        wait: Duration,
        completions: &mut SendCompletions,
    ) -> io::Result<Option<usize>> {
        let fd = fd.as_raw_fd();
        match self.under_way {
            Some(of) if of != fd => return Err(io::ErrorKind::InvalidInput.into()),
            Some(_) => {}
            None => {
                let flags = if whole { libc::MSG_WAITALL } else { 0 };
                self.push(fd, most.min(self.memory.size()), flags, SEND)?;
                self.under_way = Some(fd);
            }
        }
        // Completions that are already queued must not end the wait for this send.
        let mut ended = self.take_in(completions);
        if ended.is_none() {
            enter(&self.ring, wait)?;
            ended = self.take_in(completions);
        }
        let Some(result) = ended else {
            return Ok(None);
        };
        self.under_way = None;
        match usize::try_from(result) {
            Ok(sent) => Ok(Some(sent)),
            Err(_) => Err(failed(result)),
        }
    }

    /// Sends at most `most` bytes of the memory with a copy. Fails if a send is in progress.
    pub fn send_copied(&self, fd: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
        if self.under_way.is_some() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        zerocopy::send_copied(fd, &self.memory, most)
    }

    /// Fails if this kernel cannot report copies. To find out, this tries a send without a socket: the kernel checks
    /// the flags first, and the missing socket only afterwards.
    fn ask(&mut self) -> io::Result<()> {
        const NO_SOCKET: RawFd = -1;
        self.push(NO_SOCKET, 1, 0, TRIAL)?;
        enter(&self.ring, AT_ONCE)?;
        let queued = self.ring.completion();
        let mut of_trial = queued.filter(|t| t.user_data() == TRIAL && !cqueue::notif(t.flags()));
        match of_trial.next().map(|t| t.result()) {
            Some(result) if result == -libc::EBADF => Ok(()),
            Some(result) if result < 0 => Err(failed(result)),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    fn push(&mut self, fd: RawFd, len: usize, flags: i32, of: u64) -> io::Result<()> {
        let start = self.memory.start().as_ptr();
        let entry = opcode::SendZc::new(types::Fd(fd), start, len as u32)
            .buf_index(Some(0))
            .flags(flags | libc::MSG_NOSIGNAL)
            .zc_flags(REPORT_USAGE)
            .build()
            .user_data(of);
        // SAFETY: `len` bytes from `start` are inside the first registered buffer. The kernel only reads them, and pins
        // their pages until the send is complete. It takes a reference to the socket when `enter` submits the send, in
        // a call that borrows a descriptor with this number.
        unsafe { self.ring.submission().push(&entry) }.map_err(full)
    }

    /// Handles the completions in the queue; returns the result of the send in progress if it has ended.
    fn take_in(&mut self, completions: &mut SendCompletions) -> Option<i32> {
        let mut ended = None;
        for one in self.ring.completion().filter(|one| one.user_data() == SEND) {
            if cqueue::notif(one.flags()) {
                completions.through += 1;
                completions.copied += u64::from(one.result() as u32 & COPIED != 0);
            } else {
                ended = Some(one.result());
            }
        }
        ended
    }
}
