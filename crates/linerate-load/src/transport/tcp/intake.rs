//! The ways in which a receiver gets payload from the kernel.

use linerate_facts::parse::run::Mark;
use linerate_plan::Receive;
use linerate_sys::uring::Receiver;

use crate::LoadError;
use crate::transport::line::{BLOCK, Line, MarkPart, is_pause};

/// The way in which a receiver gets payload from the kernel.
pub(super) enum Intake {
    /// Each receive copies payload into the program's buffer.
    Copy,
    /// The kernel drops the payload without copying it.
    Discard,
    /// io_uring receives continuously into buffers that it was given beforehand.
    Ring(Box<Receiver>),
}

impl Intake {
    pub(super) fn of(receive: Receive) -> Self {
        match receive {
            Receive::Copy => Self::Copy,
            Receive::Discard => Self::Discard,
        }
    }

    /// Reads at most `most` bytes of payload: at once or, with `wait`, within the block time. Returns zero if there are
    /// none. `Copy` writes the payload to `room`.
    #[inline(always)]
    pub(super) fn payload(
        &mut self,
        line: &Line,
        room: &mut [u8],
        most: u64,
        wait: bool,
    ) -> Result<usize, LoadError> {
        let within = most.min(room.len() as u64) as usize;
        match self {
            Self::Copy => line.receive(&mut room[..within], wait),
            Self::Discard => line.discard(&mut room[..within], wait),
            Self::Ring(ring) => Ok(taken(ring, line, most as usize, wait)?.len()),
        }
    }

    /// Reads the available bytes of a mark; returns `None` until the mark is complete.
    pub(super) fn mark(
        &mut self,
        line: &Line,
        mark: &mut MarkPart,
        wait: bool,
    ) -> Result<Option<Mark>, LoadError> {
        let Self::Ring(ring) = self else {
            return mark.get(line, wait);
        };
        // io_uring may end a buffer anywhere, so a mark may be split over two buffers.
        let mut wait = wait;
        loop {
            let part = taken(ring, line, mark.missing(), wait)?;
            if part.is_empty() {
                return Ok(None);
            }
            if let Some(whole) = mark.add(line, part)? {
                return Ok(Some(whole));
            }
            wait = false;
        }
    }

    /// Ends the continuous receive of io_uring, because the step and its thread end.
    pub(super) fn end(&mut self, line: &Line) -> Result<(), LoadError> {
        match std::mem::replace(self, Self::Copy) {
            Self::Ring(ring) => ring.end().map_err(|e| line.failed("recv", e)),
            other => {
                *self = other;
                Ok(())
            }
        }
    }
}

/// Returns the next bytes that io_uring received, at most `most`; empty if none arrived in time. An error if the other
/// end has closed.
fn taken<'a>(
    ring: &'a mut Receiver,
    line: &Line,
    most: usize,
    wait: bool,
) -> Result<&'a [u8], LoadError> {
    match ring.take(line.fd(), most, wait.then_some(BLOCK)) {
        Ok(Some([])) => Err(line.closed()),
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Ok(&[]),
        Err(e) if is_pause(&e) => Ok(&[]),
        Err(e) => Err(line.failed("recv", e)),
    }
}
