//! A continuous receive, into buffers that were given to the kernel before.

#![expect(unsafe_code, reason = "memory that the kernel writes later")]

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, types};

use super::provided::{GROUP, Provided};
use super::{enter, failed, full};

/// Entries of the submission queue: a receive, and its cancellation.
const ENTRIES: u32 = 4;
/// User data of requests, which their completions carry.
const RECEIVE: u64 = 1;
const CANCEL: u64 = 2;
/// Number and length of waits for the end of a receive, which normally comes at once.
const TRIES: usize = 10;
const TRY: Duration = Duration::from_millis(100);

/// Receives the bytes of one stream. It belongs to the thread that made it: the kernel refuses requests of other
/// threads.
pub struct Receiver {
    ring: IoUring,
    /// Buffers, which are freed only when no receive is in progress that could write to them.
    buffers: ManuallyDrop<Provided>,
    /// Socket of the receive in progress; `None` if there is none.
    armed: Option<RawFd>,
    /// Whether a cancellation was requested.
    ending: bool,
    part: Option<Part>,
}

/// Bytes of one completion that are not consumed yet.
struct Part {
    buffer: u16,
    at: usize,
    end: usize,
}

impl Receiver {
    /// Makes `count` buffers of `size` bytes, both at least one, and gives them to the kernel. Fails as
    /// [`super::Sender::new`] does, with `EINVAL` before 6.1.
    pub fn new(size: u32, count: u16) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            // The queue has room for one completion per buffer, for the end of a receive, and for its cancellation.
            .setup_cqsize(u32::from(count) + 8)
            .build(ENTRIES)?;
        let buffers = ManuallyDrop::new(Provided::new(&ring, size, count)?);
        Ok(Self { ring, buffers, armed: None, ending: false, part: None })
    }

    /// Returns the next bytes of the stream, at most `most`; empty if the other end has closed, `None` if nothing
    /// arrived. It calls the kernel only if it may `wait` and nothing is available. All calls must use the same
    /// socket.
    pub fn take(
        &mut self,
        fd: BorrowedFd<'_>,
        most: usize,
        wait: Option<Duration>,
    ) -> io::Result<Option<&[u8]>> {
        let mut wait = wait;
        while !self.has_part() {
            if let Some(entry) = self.next() {
                if self.completed(&entry)? {
                    return Ok(Some(&[]));
                }
                continue;
            }
            let Some(time) = wait.take() else {
                return Ok(None);
            };
            self.arm(fd.as_raw_fd())?;
            enter(&self.ring, time)?;
        }
        Ok(self.part.as_mut().map(|part| {
            let from = part.at;
            part.at = part.end.min(from.saturating_add(most));
            self.buffers.bytes(part.buffer, from..part.at)
        }))
    }

    /// Stops receiving. Fails if bytes have arrived that were not read, because they are lost.
    pub fn end(mut self) -> io::Result<()> {
        if self.has_part() || self.disarm()? {
            let what = "bytes came that nobody took";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(())
    }

    /// Returns whether bytes of the last completion are left. A used buffer goes back to the kernel.
    fn has_part(&mut self) -> bool {
        match &self.part {
            Some(part) if part.at < part.end => true,
            Some(part) => {
                self.buffers.give(part.buffer);
                self.part = None;
                false
            }
            None => false,
        }
    }

    /// Begins to receive, unless a receive is in progress.
    fn arm(&mut self, fd: RawFd) -> io::Result<()> {
        match self.armed {
            Some(of) if of == fd => return Ok(()),
            Some(_) => return Err(io::ErrorKind::InvalidInput.into()),
            None => {}
        }
        let entry = opcode::RecvMulti::new(types::Fd(fd), GROUP).build();
        // SAFETY: it writes only to buffers of the group, which stay mapped until it has ended (`drop`). The
        // kernel takes a reference to the socket when `enter` submits this, in a call that borrows a descriptor
        // of this number.
        unsafe { self.ring.submission().push(&entry.user_data(RECEIVE)) }.map_err(full)?;
        self.armed = Some(fd);
        Ok(())
    }

    /// Returns the next completion.
    fn next(&mut self) -> Option<cqueue::Entry> {
        self.ring.completion().next()
    }

    /// Handles one completion; returns whether the other end has closed.
    fn completed(&mut self, entry: &cqueue::Entry) -> io::Result<bool> {
        if entry.user_data() != RECEIVE {
            return Ok(false);
        }
        // The receive ends when buffers, or room for completions, run out. The next wait arms another one.
        if !cqueue::more(entry.flags()) {
            self.armed = None;
        }
        let buffer = cqueue::buffer_select(entry.flags());
        match (usize::try_from(entry.result()), buffer) {
            (Ok(end @ 1..), Some(buffer)) if self.buffers.has(buffer, end) => {
                self.part = Some(Part { buffer, at: 0, end });
                Ok(false)
            }
            (Ok(1..), _) => Err(io::ErrorKind::InvalidData.into()),
            (got, buffer) => {
                // This buffer was selected but not used.
                if let Some(buffer) = buffer.filter(|b| self.buffers.has(*b, 0)) {
                    self.buffers.give(buffer);
                }
                match -entry.result() {
                    _ if got.is_ok() => Ok(true),
                    libc::ENOBUFS | libc::ECANCELED | libc::EINTR | libc::EAGAIN => Ok(false),
                    _ => Err(failed(entry.result())),
                }
            }
        }
    }

    /// Ends the receive that is in flight; returns whether it delivered bytes in the meantime.
    fn disarm(&mut self) -> io::Result<bool> {
        let mut brought = false;
        if !self.ending && !self.ring.submission().is_empty() {
            // The queued entry is the receive itself: the kernel has not accepted it, and never will.
            self.armed = None;
        }
        for _ in 0..TRIES {
            while let Some(entry) = self.next() {
                // The receive is being ended, so its result is ignored.
                let _ = self.completed(&entry);
                brought |= self.part.take().is_some();
            }
            if self.armed.is_none() {
                return Ok(brought);
            }
            // A cancellation that the kernel has not accepted yet is retried.
            if self.ring.submission().is_empty() {
                self.ending = true;
                let entry = opcode::AsyncCancel::new(RECEIVE).build().user_data(CANCEL);
                // SAFETY: it refers to no memory.
                unsafe { self.ring.submission().push(&entry) }.map_err(full)?;
            }
            enter(&self.ring, TRY)?;
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.disarm();
        if self.armed.is_none() {
            // SAFETY: it is dropped here only, and no receive is in flight that could write to it. The ring is
            // closed with this value, and starts no further receive.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
        // Otherwise the memory is leaked: a leak is better than a write to memory that has another owner by then.
    }
}
