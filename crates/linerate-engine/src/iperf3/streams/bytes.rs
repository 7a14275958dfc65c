//! Bare bytes over a connection, one way.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use linerate_sys::socket;

use super::{Lane, REST};
use crate::load::Advice;
use crate::load::application::Role;
use crate::load::pages::Pages;

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
        while !stop.load(Relaxed) {
            match self.step(lane, pages.bytes_mut()) {
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

    /// One call.
    fn step(&self, lane: &Lane, buffer: &mut [u8]) -> io::Result<usize> {
        let fd = lane.fd();
        let op = (self.advice.op() as usize).min(buffer.len());
        let got = match self.role {
            Role::Sender => return send(lane, &buffer[..op]),
            Role::Receiver if self.discard => socket::discard(fd, buffer, true)?,
            Role::Receiver => socket::receive(fd, buffer, true)?,
        };
        if got == 0 {
            return Err(io::Error::other("the other end closed it"));
        }
        Ok(got)
    }
}

/// One call of a sender, of no more than all of them may still send.
fn send(lane: &Lane, bytes: &[u8]) -> io::Result<usize> {
    let most = lane.reserve(bytes.len());
    if most == 0 {
        std::thread::sleep(REST);
        return Ok(0);
    }
    let sent = socket::send(lane.fd(), &bytes[..most], false);
    lane.unreserve(most - sent.as_ref().map_or(0, |sent| *sent));
    sent
}
