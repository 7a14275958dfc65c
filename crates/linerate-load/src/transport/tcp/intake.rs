//! The ways in which a receiver gets payload from the kernel.

use linerate_facts::parse::run::Mark;
use linerate_plan::Receive;
use linerate_sys::uring::Receiver;

use crate::LoadError;
use crate::transport::line::{BLOCK, Line, MarkPart, is_pause};

/// The way in which a receiver gets payload from the kernel.
pub(super) enum Intake {
    /// Each receive copies into the program's buffer.
    Copy,
    /// Payload is dropped in the kernel.
    Discard,
    /// io_uring receives continuously into buffers that were given to the kernel before.
    Ring(Box<Receiver>),
}

impl Intake {
    pub(super) fn of(receive: Receive) -> Self {
        match receive {
            Receive::Copy => Self::Copy,
            Receive::Discard => Self::Discard,
        }
    }

    /// Reads at most `most` bytes of payload, at once or, if it may `wait`, within the block time; returns zero if
    /// there are none. Copied payload is written to `room`.
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

    /// Reads the available part of a mark; `None` until the mark is complete.
    pub(super) fn mark(
        &mut self,
        line: &Line,
        mark: &mut MarkPart,
        wait: bool,
    ) -> Result<Option<Mark>, LoadError> {
        let Self::Ring(ring) = self else {
            return mark.get(line, wait);
        };
        // A buffer may end anywhere, so a mark may be split over two buffers.
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

    /// Ends a continuous receive, because the step and its thread end.
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

/// Returns the next bytes that io_uring received, at most `most`; empty if nothing arrived in time.
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
