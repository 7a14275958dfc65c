//! The near end of transport `connect`. For each message it makes a connection, sends the message, receives the answer
//! and closes the connection.
//!
//! The round trip ends with the last byte of the answer. The next connection is made once the far end has closed the
//! current one, or after a timeout.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use linerate_facts::parse::run::Mark;
use linerate_sys::{clock, socket};
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, connect, ipproto, socket_with};

use super::meeting::is_lost;
use crate::pages::Pages;
use crate::pattern::{Answer, Asker, Wait, closed_loop};
use crate::transport::abort::Abort;
use crate::transport::line::{BLOCK, Line, MarkPart, is_pause, unless_paused};
use crate::{LoadError, Probe};

/// Longest time of a connection attempt with its answer: the first packet is retransmitted after 1, 3 and 7 s.
//= https://www.rfc-editor.org/rfc/rfc6298#section-2
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Pause after a connection that failed.
const REST: Duration = Duration::from_millis(1);

/// What is being done on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Connecting,
    /// The message is being sent; the value is the number of bytes sent so far.
    Sending(usize),
    /// The answer is waited for; the value is the number of bytes received so far.
    Waiting(usize),
    /// The answer was received, and the far end is to close the connection.
    Closing,
    Closed,
}

/// A connection and its current stage.
struct Call {
    fd: OwnedFd,
    stage: Stage,
}

impl Call {
    /// Continues with the connection's current stage. Blocks only briefly.
    fn go_on(&mut self, to: &SocketAddr, message: &[u8], answer: &mut [u8]) -> io::Result<()> {
        let fd = self.fd.as_fd();
        self.stage = match self.stage {
            Stage::Connecting => match connect(fd, to) {
                Ok(()) | Err(Errno::ISCONN) => Stage::Sending(0),
                Err(Errno::INPROGRESS | Errno::ALREADY | Errno::INTR) => Stage::Connecting,
                Err(e) => return Err(e.into()),
            },
            Stage::Sending(at) => {
                match at + unless_paused(socket::send(fd, &message[at..], false))? {
                    all if all == message.len() => Stage::Waiting(0),
                    some => Stage::Sending(some),
                }
            }
            Stage::Waiting(at) => match socket::receive(fd, &mut answer[at..], true) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                result => match at + unless_paused(result)? {
                    all if all == answer.len() => Stage::Closing,
                    some => Stage::Waiting(some),
                },
            },
            Stage::Closing | Stage::Closed => match socket::receive(fd, answer, true) {
                Err(e) if is_pause(&e) => Stage::Closing,
                // The far end has closed or reset the connection.
                _ => Stage::Closed,
            },
        };
        Ok(())
    }
}

/// Near end that makes a connection for each message, and receives the answer.
pub(super) struct ConnectAsker {
    line: Line,
    to: SocketAddr,
    message: Pages,
    answer: Pages,
    size: u32,
    mark: MarkPart,
    /// Current connection; `None` before the first one, and after a connection was closed or lost.
    call: Option<Call>,
    /// Time at which the answer on the current connection was completely received.
    answered_at: u64,
    sent: u64,
    answered: u64,
    ended: bool,
}

impl ConnectAsker {
    pub(super) fn new(line: Line, to: SocketAddr, size: u32) -> Self {
        Self {
            line,
            to,
            message: Pages::default(),
            answer: Pages::default(),
            size,
            mark: MarkPart::default(),
            call: None,
            answered_at: 0,
            sent: 0,
            answered: 0,
            ended: false,
        }
    }

    /// Returns whether the previous connection is closed, or its timeout has passed. Blocks only briefly.
    fn is_closed(&mut self) -> bool {
        let Some(call) = &mut self.call else {
            return true;
        };
        if call.stage == Stage::Closing {
            // An error also means that the connection has ended.
            let _ = call.go_on(&self.to, self.message.bytes(), self.answer.bytes_mut());
            let waited = || clock::now().saturating_sub(self.answered_at);
            if call.stage == Stage::Closing && waited() <= closed_loop::ENDING {
                return false;
            }
        }
        self.call = None;
        true
    }
}

/// Makes a socket for a connection to `to`. Its calls block only briefly.
fn socket_to(to: &SocketAddr) -> io::Result<OwnedFd> {
    let fd = socket_with(
        socket::family(to),
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        Some(ipproto::TCP),
    )?;
    socket::set_timeouts(fd.as_fd(), BLOCK)?;
    Ok(fd)
}

impl Asker for ConnectAsker {
    const PATIENCE: Option<(u64, u64)> = {
        let nanos = PATIENCE.as_secs() * 1_000_000_000;
        Some((nanos, nanos))
    };

    fn size(&self) -> u32 {
        self.size
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        let filled = self.message.fill(self.size as usize);
        filled.map_err(|e| self.line.failed("getrandom", e))?;
        self.answer.ensure(self.size as usize);
        (self.sent, self.answered) = (0, 0);
        (self.call, self.ended) = (None, false);
        Ok(())
    }

    /// Makes the socket of the next connection. The round trip begins later, with the connection's first packet.
    #[inline]
    fn announce(&mut self, _: impl FnOnce() -> u64, _: bool) -> Result<bool, LoadError> {
        if !self.is_closed() {
            return Ok(false);
        }
        let fd = socket_to(&self.to).map_err(|e| self.line.failed("socket", e))?;
        self.call = Some(Call { fd, stage: Stage::Connecting });
        Ok(true)
    }

    fn announced(&self) -> u64 {
        0
    }

    /// Only counts the message: `receive` connects and sends its bytes.
    #[inline]
    fn send(&mut self, _: bool) -> Result<bool, LoadError> {
        self.sent += 1;
        Ok(true)
    }

    #[inline]
    fn receive(&mut self, _: Wait, mut take: impl FnMut(Answer) -> bool) -> Result<(), LoadError> {
        while let Some(call) = &mut self.call {
            let before = call.stage;
            match call.go_on(&self.to, self.message.bytes(), self.answer.bytes_mut()) {
                Ok(()) => {}
                Err(e) if is_lost(&e) => {
                    self.call = None;
                    // If the far end has gone, it also refuses connections: then the data connection is closed, which
                    // is an error.
                    self.line.receive(&mut [0], false)?;
                    std::thread::sleep(REST);
                    break;
                }
                Err(e) => return Err(self.line.failed("connect", e)),
            }
            if call.stage == Stage::Closing {
                self.answered_at = clock::now();
                self.answered += 1;
                take(Answer { number: self.sent - 1, at: self.answered_at, unread: None });
                break;
            }
            if call.stage == before {
                break;
            }
        }
        Ok(())
    }

    /// Connections are made one after the other, so this is not needed: open loop, which waits for several events, is
    /// refused.
    fn ready(&mut self, wanted: bool, _: Duration) -> Result<[bool; 2], LoadError> {
        Ok([true, wanted])
    }

    fn is_lost(&self) -> bool {
        self.call.is_none()
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        if !self.ended && self.is_closed() {
            let mark = Mark::End(self.answered * u64::from(self.size));
            self.ended = self.mark.put(&self.line, mark, false)?;
        }
        Ok(self.ended)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Abort(self.line.clone()))]
    }
}
