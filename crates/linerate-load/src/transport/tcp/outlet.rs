//! How a sender's payload is passed to the kernel: it is copied, or the kernel sends the program's pages themselves.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use linerate_plan::Handover;
use linerate_sys::zerocopy::{self, Memory};
use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use rustix::io::Errno;

use super::completions::Completions;
use super::uring::Outward;
use crate::LoadError;
use crate::pages::{Pages, randomize};
use crate::transport::line::Line;

/// Payload of a sender, and how it is passed to the kernel.
pub(super) enum Outlet {
    /// The kernel copies the payload of each send.
    Copy(Pages),
    /// The kernel sends from the program's memory, and reports when it no longer needs that memory.
    Zerocopy(Option<Memory>, Arc<Completions>),
    /// The kernel sends the pages of a memory file. `sendfile` needs one call for that, while `splice` needs two and a
    /// pipe.
    Sendfile(Option<File>),
    /// io_uring sends from memory that was registered once, and reports when it no longer needs that memory.
    Ring(Box<Outward>),
}

/// A file in memory.
pub(super) struct File {
    fd: OwnedFd,
    len: usize,
}

impl Outlet {
    pub(super) fn new(handover: Handover) -> Self {
        match handover {
            Handover::Copy => Self::Copy(Pages::default()),
            Handover::Zerocopy => Self::Zerocopy(None, Arc::new(Completions::of(handover))),
            Handover::Sendfile => Self::Sendfile(None),
            Handover::IoUring => Self::Ring(Box::new(Outward::new())),
        }
    }

    /// Allocates `len` bytes of payload, unless payload of that size exists already.
    pub(super) fn fill(&mut self, len: usize) -> io::Result<()> {
        match self {
            Self::Copy(pages) => {
                pages.fill(len)?;
            }
            Self::Zerocopy(Some(memory), _) if memory.size() == len => {}
            Self::Zerocopy(memory, _) => {
                let mut made = Memory::new(len)?;
                randomize(made.bytes_mut())?;
                *memory = Some(made);
            }
            Self::Sendfile(Some(file)) if file.len == len => {}
            Self::Sendfile(file) => *file = Some(File::new(len)?),
            Self::Ring(ring) => ring.fill(len)?,
        }
        Ok(())
    }

    /// Sends at most `most` bytes. A copy is sent at once or, with `wait`, within the block time; other kinds are sent
    /// within the block time. Returns zero if the kernel accepts nothing. `rate` is the stream's rate in bytes per
    /// second.
    pub(super) fn send(
        &mut self,
        line: &Line,
        most: usize,
        rate: u64,
        wait: bool,
    ) -> Result<usize, LoadError> {
        match self {
            Self::Copy(pages) => {
                let bytes = pages.bytes();
                let bytes = &bytes[..most.min(bytes.len())];
                if wait { line.send(bytes, false) } else { line.offer(bytes, false) }
            }
            Self::Zerocopy(None, _) | Self::Sendfile(None) => Ok(0),
            Self::Zerocopy(Some(memory), counts) => {
                let sent = zerocopy::send(line.fd(), memory, most);
                if sent.as_ref().is_err_and(no_room) {
                    // Reading the completions from the error queue frees memory for the next send.
                    counts.take_in(line);
                    counts.refused();
                    return line.moved("send", zerocopy::send_copied(line.fd(), memory, most));
                }
                if sent.is_ok() {
                    counts.sent();
                }
                line.moved("send", sent)
            }
            Self::Sendfile(Some(file)) => {
                let most = most.min(file.len);
                let sent = sendfile(line.fd(), &file.fd, Some(&mut 0), most);
                line.moved("sendfile", sent.map_err(io::Error::from))
            }
            Self::Ring(ring) => ring.send(line, most, rate, wait),
        }
    }

    /// Returns the counters of sends without a copy; `None` if payload is passed in another way.
    pub(super) fn completions(&self) -> Option<Arc<Completions>> {
        match self {
            Self::Zerocopy(_, counts) => Some(Arc::clone(counts)),
            Self::Ring(ring) => Some(Arc::clone(&ring.counts)),
            Self::Copy(_) | Self::Sendfile(_) => None,
        }
    }
}

/// Returns whether the kernel could not pin pages: locked memory or memory for socket options is exhausted.
fn no_room(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error())
}

impl File {
    fn new(len: usize) -> io::Result<Self> {
        let mut payload = Pages::default();
        payload.fill(len)?;
        let fd = memfd_create("linerate-payload", MemfdFlags::CLOEXEC)?;
        let mut at = 0;
        while at < len {
            at += rustix::io::write(&fd, &payload.bytes()[at..])?;
        }
        Ok(Self { fd, len })
    }
}
