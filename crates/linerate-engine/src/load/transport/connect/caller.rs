//! The near end of connections: makes one after another, and times each from its first packet to the last byte
//! of the answer.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use linerate_core::parse::run::Mark;
use linerate_sys::{clock, socket};
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType, connect, ipproto, socket_with};

use super::abort::Abort;
use super::meeting::is_lost;
use crate::load::pages::Pages;
use crate::load::times::Times;
use crate::load::transport::line::{BLOCK, Line, MarkPart, is_pause, unless_paused};
use crate::load::{Advice, Done, LoadError, Op, Probe, Timed, Worker};

/// Longest life of a connection: the first packet is sent again after 1, 3 and 7 s.
//= https://www.rfc-editor.org/rfc/rfc6298#section-2
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The same once the step is over: what takes longer is given up, and tells nothing.
const ENDING: Duration = Duration::from_secs(2);
/// Rest after a connection that came to nothing.
const REST: Duration = Duration::from_millis(1);

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Connecting,
    /// So many bytes of the message are sent.
    Sending(usize),
    /// So many bytes of the answer are in.
    Waiting(usize),
    /// The answer is in, and the far end closes.
    Closing,
    Closed,
}

/// A connection under way.
struct Call {
    fd: OwnedFd,
    stage: Stage,
    began: u64,
    /// Whether its time counts.
    counts: bool,
}

impl Call {
    /// Goes on to another stage, or blocks for a moment at most.
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
                // Its end, or a reset in the place of it.
                _ => Stage::Closed,
            },
        };
        Ok(())
    }
}

/// Makes connections and times them.
pub(super) struct Caller {
    line: Line,
    to: SocketAddr,
    message: Pages,
    answer: Pages,
    size: usize,
    times: Times,
    advice: Arc<Advice>,
    mark: MarkPart,
    call: Option<Call>,
    /// Payload of this step, each way.
    total: u64,
    /// Connections of the time that counts which came to nothing.
    lost: u64,
    /// Since when the step ends.
    ending: Option<u64>,
    ended: bool,
}

impl Caller {
    pub(super) fn new(line: Line, to: SocketAddr, size: u32) -> Self {
        Self {
            line,
            to,
            message: Pages::default(),
            answer: Pages::default(),
            size: size as usize,
            times: Times::default(),
            advice: Arc::new(Advice::new(1, 1)),
            mark: MarkPart::default(),
            call: None,
            total: 0,
            lost: 0,
            ending: None,
            ended: false,
        }
    }

    /// Goes on with the connection under way; true when it has ended with an answer.
    fn go_on(&mut self) -> Result<bool, LoadError> {
        let Some(mut call) = self.call.take() else {
            return Ok(false);
        };
        let before = call.stage;
        let message = &self.message.bytes()[..self.size];
        let answer = &mut self.answer.bytes_mut()[..self.size];
        match call.go_on(&self.to, message, answer) {
            Ok(()) => {}
            Err(e) if is_lost(&e) => {
                self.lost += u64::from(call.counts);
                // A far end that is gone refuses connections, too.
                self.line.receive(&mut [0], false)?;
                std::thread::sleep(REST);
                return Ok(false);
            }
            Err(e) => return Err(self.line.failed("connect", e)),
        }
        let now = clock::now();
        if call.stage == Stage::Closing && before != Stage::Closing && call.counts {
            self.times.record(now.saturating_sub(call.began), 1);
        }
        if call.stage == Stage::Closed {
            self.total += self.size as u64;
            return Ok(true);
        }
        let since = |then: u64| Duration::from_nanos(now.saturating_sub(then));
        if since(call.began) > PATIENCE {
            self.lost += u64::from(call.counts && call.stage != Stage::Closing);
        } else if self.ending.is_none_or(|ending| since(ending) <= ENDING) {
            self.call = Some(call);
        }
        Ok(false)
    }
}

/// A socket for a connection, no call on which blocks for longer than a moment.
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

impl Worker for Caller {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        if self.message.ensure(self.size) {
            let filled = self.message.randomize();
            filled.map_err(|e| self.line.failed("getrandom", e))?;
        }
        self.answer.ensure(self.size);
        self.times.renew()?;
        (self.total, self.lost) = (0, 0);
        (self.call, self.ending, self.ended) = (None, None, false);
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        if ops.is_empty() || self.call.is_some() {
            return Ok(0);
        }
        let fd = socket_to(&self.to).map_err(|e| self.line.failed("socket", e))?;
        self.call = Some(Call {
            fd,
            stage: Stage::Connecting,
            began: clock::now(),
            counts: self.advice.counting(),
        });
        Ok(1)
    }

    fn reap(&mut self, _: usize, _: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        if self.go_on()? {
            done.push(Done {
                op: Op::Send(self.size as u32),
                bytes: self.size as u32,
            });
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        self.ending.get_or_insert_with(clock::now);
        if self.call.is_none() && !self.ended {
            let mark = Mark::End(self.total);
            self.ended = self.mark.put(&self.line, mark, false)?;
        }
        Ok(self.ended)
    }

    fn timed(&mut self) -> Timed {
        Timed {
            trips: self.times.take(),
            lost: self.lost,
            ..Timed::default()
        }
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Abort(self.line.clone()))]
    }
}
