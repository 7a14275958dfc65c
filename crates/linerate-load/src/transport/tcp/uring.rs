//! io_uring at either end of a TCP stream: whether this process may use it, and how a sender does.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use linerate_facts::Gap;
use linerate_plan::path::Side;
use linerate_plan::{Handover, Pattern, Receive, SetPlan};
use linerate_sys::uring::{self, SendCompletions, Sender};
use linerate_sys::zerocopy::Memory;
use rustix::io::Errno;

use super::completions::Completions;
use crate::LoadError;
use crate::pages::{Pages, randomize};
use crate::transport::line::{BLOCK, Line};

/// Number of block times in a second: a send that lasts longer than a block time may end partially.
const BLOCKS_PER_SEC: u64 = 10;
/// Size of a receiver's buffers in bytes if the plan leaves it open. It is so small that several buffers fit into the
/// memory of one operation, which is chosen by the CPU's cache.
const PIECE: u32 = 64 * 1024;
/// Memory of all buffers of a receiver in bytes, if the plan fixes a small size.
const ROOM: u32 = 512 * 1024;
const PIECES: [u32; 2] = [2, 64];
/// Number of attempts to register memory with the kernel, and the pause between them: the kernel releases the memory of
/// a closed ring only after some time.
const TRIES: u32 = 5;
const TRY_PAUSE: Duration = Duration::from_millis(40);

/// Returns how an end of a set passes payload: as planned or, if it may not use io_uring, by copies, with the reason.
pub(super) fn handover(side: Side, plan: &SetPlan) -> (Handover, Option<Gap>) {
    let knobs = &plan.knobs;
    let Pattern::Stream { direction } = plan.pattern else {
        return (knobs.copy, None);
    };
    let sends = direction.sender() == side;
    let tried = match (knobs.copy, knobs.receive) {
        (Handover::IoUring, _) if sends => uring::may_send(),
        (Handover::IoUring, Receive::Copy) => uring::may_receive(),
        _ => return (knobs.copy, None),
    };
    match tried {
        Ok(()) => (knobs.copy, None),
        Err(error) => (Handover::Copy, Some(refused(&error, sends))),
    }
}

/// Makes the gap that an end copies payload, with the reason why it must.
fn refused(error: &io::Error, sends: bool) -> Gap {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    let (why, hint) = match errno {
        Some(Errno::NOSYS) => (
            "this kernel has no io_uring".to_owned(),
            "uname -r; a container may hide it: allow io_uring_setup, io_uring_enter and io_uring_register",
        ),
        Some(Errno::PERM | Errno::ACCESS) => (
            "io_uring is forbidden here, by kernel.io_uring_disabled or a filter of system calls"
                .to_owned(),
            "sudo sysctl -w kernel.io_uring_disabled=0; in a container allow io_uring_setup, io_uring_enter and \
             io_uring_register",
        ),
        Some(Errno::NOMEM) => ("io_uring may not pin pages here".to_owned(), "ulimit -l unlimited"),
        Some(Errno::INVAL | Errno::OPNOTSUPP) => {
            ("this kernel's io_uring is too old: it needs Linux 6.2".to_owned(), "")
        }
        _ => (format!("io_uring: {error}"), ""),
    };
    let what = if sends { "sent" } else { "received" };
    Gap {
        what: "set.copy".to_owned(),
        why: format!("payload is {what} with copies: {why}"),
        hint: hint.to_owned(),
    }
}

/// Returns the size in bytes and the number of a receiver's buffers. If the plan requests no size, all buffers together
/// have `most` bytes; otherwise each buffer has.
pub(super) fn pieces(requested: u64, most: u32) -> (u32, u16) {
    let size = if requested == 0 { PIECE.min(most) } else { most }.max(1);
    let room = if requested == 0 { most } else { ROOM };
    let count = (room / size).clamp(PIECES[0], PIECES[1]);
    (size, count as u16)
}

fn sender(len: usize) -> io::Result<Sender> {
    let mut memory = Memory::new(len)?;
    randomize(memory.bytes_mut())?;
    Sender::new(memory)
}

/// Payload that io_uring sends from registered pages.
pub(super) struct Outward {
    sender: Option<Sender>,
    /// Payload that is copied instead, if the kernel cannot pin pages.
    copied_payload: Pages,
    pub(super) counts: Arc<Completions>,
}

impl Outward {
    pub(super) fn new() -> Self {
        Self {
            sender: None,
            copied_payload: Pages::default(),
            counts: Arc::new(Completions::of(Handover::IoUring)),
        }
    }

    /// Allocates `len` bytes of payload, unless payload of that size exists already.
    pub(super) fn fill(&mut self, len: usize) -> io::Result<()> {
        if self.sender.as_ref().is_some_and(|s| s.size() == len) {
            return Ok(());
        }
        // The old sender is dropped first. The kernel releases its memory soon, but not at once; the same applies to
        // the memory of earlier sets.
        self.sender = None;
        for _ in 0..TRIES {
            match sender(len) {
                Ok(sender) => {
                    self.sender = Some(sender);
                    return Ok(());
                }
                Err(e) if no_room(&e) => std::thread::sleep(TRY_PAUSE),
                Err(e) => return Err(e),
            }
        }
        self.copied_payload.fill(len)?;
        Ok(())
    }

    /// Sends at most `most` bytes, or continues the previous send; returns zero while the send has not ended. The send
    /// is not split if, at `rate` bytes per second, it lasts no longer than the block time.
    pub(super) fn send(
        &mut self,
        line: &Line,
        most: usize,
        rate: u64,
        wait: bool,
    ) -> Result<usize, LoadError> {
        let Some(sender) = &mut self.sender else {
            self.counts.refused();
            let bytes = self.copied_payload.bytes();
            return line.send(&bytes[..most.min(bytes.len())], false);
        };
        let whole = most as u64 <= rate / BLOCKS_PER_SEC;
        let time = if wait { BLOCK } else { Duration::ZERO };
        let mut completed = SendCompletions::default();
        let sent = sender.send(line.fd(), most, whole, time, &mut completed);
        self.counts.add(completed.through, completed.copied);
        match sent {
            Ok(Some(bytes)) => {
                self.counts.sent();
                Ok(bytes)
            }
            Ok(None) => Ok(0),
            Err(e) if no_room(&e) => {
                self.counts.refused();
                line.moved("send", sender.send_copied(line.fd(), most))
            }
            Err(e) => line.moved("send", Err(e)),
        }
    }
}

/// Returns whether the kernel could not pin pages.
fn no_room(error: &io::Error) -> bool {
    let known = [Errno::NOMEM, Errno::NOBUFS].map(|e| Some(e.raw_os_error()));
    known.contains(&error.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_refuses_is_told_with_what_helps() {
        for (errno, why, hint) in [
            (Errno::NOSYS, "has no io_uring", "uname -r"),
            (Errno::PERM, "forbidden", "kernel.io_uring_disabled=0"),
            (Errno::ACCESS, "filter of system calls", "io_uring_setup"),
            (Errno::NOMEM, "not pin pages", "ulimit -l unlimited"),
            (Errno::INVAL, "Linux 6.2", ""),
            (Errno::MFILE, "os error 24", ""),
        ] {
            let gap = refused(&errno.into(), true);
            assert_eq!(gap.what, "set.copy");
            assert!(gap.why.starts_with("payload is sent with copies"), "{gap:?}");
            assert!(gap.why.contains(why) && gap.hint.contains(hint), "{gap:?}");
        }
        assert!(refused(&Errno::NOSYS.into(), false).why.contains("received"));
    }

    #[test]
    fn buffers_are_of_the_size_asked_for_and_their_memory_is_bounded() {
        assert_eq!(pieces(0, 768 * 1024), (PIECE, 12));
        assert_eq!(pieces(0, 1000), (1000, 2));
        assert_eq!(pieces(1, 1), (1, 64));
        assert_eq!(pieces(128 * 1024, 128 * 1024), (128 * 1024, 4));
        assert_eq!(pieces(16 << 20, 16 << 20), (16 << 20, 2));
    }
}
