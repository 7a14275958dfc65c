//! A receive that stays active (multishot). It writes to buffers that were passed to the kernel before.

#![expect(unsafe_code, reason = "memory that the kernel writes later")]

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, types};

use super::provided::{GROUP, Provided};
use super::{enter, failed, full};

/// Number of entries in the submission queue: room for a receive and its cancellation.
const ENTRIES: u32 = 4;
/// User data of the two kinds of requests; it identifies their completions.
const RECEIVE: u64 = 1;
const CANCEL: u64 = 2;
/// Number and length of the waits for the end of a receive, which normally ends at once.
const TRIES: usize = 10;
const TRY: Duration = Duration::from_millis(100);

/// Receives the bytes of one stream. It must be used by the thread
/// that made it: the kernel refuses requests of other threads.
pub struct Receiver {
    ring: IoUring,
    /// Buffers. They are freed only when no receive is in progress that could write to them.
    buffers: ManuallyDrop<Provided>,
    /// Socket of the receive in progress; `None` if there is none.
    armed: Option<RawFd>,
    /// Whether the cancellation of the receive was requested.
    ending: bool,
    part: Option<Part>,
}

/// Bytes of one completion that were not returned yet.
struct Part {
    buffer: u16,
    at: usize,
    end: usize,
}

impl Receiver {
    /// Makes `count` buffers of `size` bytes, both at least one, and passes them to the kernel. Fails as
    /// [`super::Sender::new`] does, and with `EINVAL` before Linux 6.1.
    pub fn new(size: u32, count: u16) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            // The queue has room for one completion of each buffer, for the end of a receive, and for its cancellation.
            .setup_cqsize(u32::from(count) + 8)
            .build(ENTRIES)?;
        let buffers = ManuallyDrop::new(Provided::new(&ring, size, count)?);
        Ok(Self { ring, buffers, armed: None, ending: false, part: None })
    }

    /// Returns the next bytes of the stream, at most `most`; an empty slice if the other
    /// end has closed the connection, `None` if nothing arrived. Calls the kernel only if
    /// no bytes are available and `wait` is given. All calls must use the same socket.
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

    /// Stops receiving. Fails if bytes have arrived that were not returned, because these bytes are lost.
    pub fn end(mut self) -> io::Result<()> {
        if self.has_part() || self.disarm()? {
            let what = "bytes came that nobody took";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(())
    }

    /// Returns whether the last completion has bytes that were not
    /// returned yet. Otherwise its buffer is passed to the kernel again.
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

    /// Starts a receive, unless one is in progress.
    fn arm(&mut self, fd: RawFd) -> io::Result<()> {
        match self.armed {
            Some(of) if of == fd => return Ok(()),
            Some(_) => return Err(io::ErrorKind::InvalidInput.into()),
            None => {}
        }
        let entry = opcode::RecvMulti::new(types::Fd(fd), GROUP).build();
        // SAFETY: the receive writes only to buffers of the group, which stay mapped until
        // it has ended (`drop`). The kernel takes a reference to the socket when `enter`
        // submits the receive, in a call that borrows a descriptor with this number.
        unsafe { self.ring.submission().push(&entry.user_data(RECEIVE)) }.map_err(full)?;
        self.armed = Some(fd);
        Ok(())
    }

    /// Returns the next completion, if there is one.
    fn next(&mut self) -> Option<cqueue::Entry> {
        self.ring.completion().next()
    }

    /// Handles one completion; returns whether the other end has closed.
    fn completed(&mut self, entry: &cqueue::Entry) -> io::Result<bool> {
        if entry.user_data() != RECEIVE {
            return Ok(false);
        }
        // The receive ends when no buffer, or no room for completions, is left. The next wait starts another receive.
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
                // This buffer was selected for the receive but not filled.
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

    /// Ends the receive that is in flight; returns whether it received bytes until then.
    fn disarm(&mut self) -> io::Result<bool> {
        let mut brought = false;
        if !self.ending && !self.ring.submission().is_empty() {
            // The queued entry is the receive itself. The kernel has not accepted it yet, and it will not be submitted.
            self.armed = None;
        }
        for _ in 0..TRIES {
            while let Some(entry) = self.next() {
                // The receive is being ended, so an error of it is ignored.
                let _ = self.completed(&entry);
                brought |= self.part.take().is_some();
            }
            if self.armed.is_none() {
                return Ok(brought);
            }
            // If the kernel has not accepted the cancellation yet, it is submitted again.
            if self.ring.submission().is_empty() {
                self.ending = true;
                let entry = opcode::AsyncCancel::new(RECEIVE).build().user_data(CANCEL);
                // SAFETY: the cancellation refers to no memory.
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
            // SAFETY: the buffers are dropped only here, and no receive is in flight that could write to them. The ring
            // is closed with this value, and starts no further receive.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
        // Otherwise the buffers are leaked. This is better than a write
        // of the kernel to memory that has another owner by then.
    }
}
