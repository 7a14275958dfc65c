//! Bare bytes over a connection, one way.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use linerate_sys::socket;

use super::Lane;
use crate::load::Advice;
use crate::load::application::Role;
use crate::load::pages::Pages;

/// Rest of a sender that has sent all it was to send, which lasts until the stop.
const DONE: Duration = Duration::from_millis(5);

/// How they are moved.
pub(super) struct Bytes {
    role: Role,
    discard: bool,
    advice: Advice,
}

impl Bytes {
    /// In calls of `size` bytes; where that is zero, of a size that follows the rate up to `cap`.
    pub(super) fn new(role: Role, discard: bool, size: u64, cap: u32) -> Self {
        Self {
            role,
            discard,
            advice: Advice::new(size, cap),
        }
    }

    /// Fits the size of the calls to a rate in bytes per second.
    pub(super) fn follow(&self, rate: u64) {
        self.advice.follow(rate);
    }

    /// Moves them until the stop; else why nothing more can be moved.
    pub(super) fn run(&self, lane: &Lane, stop: &AtomicBool) -> Result<(), String> {
        let mut pages = Pages::default();
        pages.ensure(self.advice.most() as usize);
        if self.role == Role::Sender {
            let filled = pages.randomize();
            filled.map_err(|error| format!("no random bytes: {error}"))?;
        }
        let mut owed = 0;
        while !stop.load(Relaxed) {
            match self.step(lane, &mut owed, pages.bytes_mut()) {
                Ok(bytes) => {
                    lane.add(bytes as u64);
                    if self.role == Role::Sender {
                        lane.give_way();
                    }
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        Ok(())
    }

    /// One call. A sender owes the rest of a block that it took.
    fn step(&self, lane: &Lane, owed: &mut usize, buffer: &mut [u8]) -> io::Result<usize> {
        let fd = lane.fd();
        let op = (self.advice.op() as usize).min(buffer.len());
        let got = match self.role {
            Role::Sender => return send(lane, owed, &buffer[..op]),
            Role::Receiver if self.discard => socket::discard(fd, buffer, true)?,
            Role::Receiver => socket::receive(fd, buffer, true)?,
        };
        if got == 0 {
            return Err(io::Error::other("the other end closed it"));
        }
        Ok(got)
    }
}

/// One call of a sender. Where all of them together may send only so much, each takes a block after the other and
/// sends the whole of it: a client may wait until a block is full.
fn send(lane: &Lane, owed: &mut usize, bytes: &[u8]) -> io::Result<usize> {
    if *owed == 0 {
        *owed = lane.take(bytes.len());
    }
    if *owed == 0 {
        std::thread::sleep(DONE);
        return Ok(0);
    }
    let sent = socket::send(lane.fd(), &bytes[..bytes.len().min(*owed)], false)?;
    *owed -= sent;
    Ok(sent)
}
