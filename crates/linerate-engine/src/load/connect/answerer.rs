//! The far end of connections: answers each with its own bytes, and closes it first.
//!
//! The state that waits for late packets (TIME_WAIT) then stays here, as with an HTTP/1.0 server, and the near
//! end does not run out of its ports.
//= https://www.rfc-editor.org/rfc/rfc9293#section-3.6.1

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_core::parse::run::Mark;
use linerate_sys::socket;
use rustix::io::Errno;

use super::super::tcp::line::{BLOCK, Line, MarkPart, is_pause};
use super::meeting::Door;
use crate::load::pages::Pages;
use crate::load::tcp::probe::Abort;
use crate::load::{Advice, Done, LoadError, Op, Probe, Worker};

/// Time for a message to come in, from the connection on.
const PATIENCE: Duration = Duration::from_secs(1);

/// A connection that was let in.
struct Caller {
    stream: TcpStream,
    since: Instant,
    /// Bytes of its message that are in.
    received: usize,
}

/// Answers connections.
pub(super) struct Answerer {
    line: Line,
    door: Door,
    size: u32,
    buffer: Pages,
    mark: MarkPart,
    caller: Option<Caller>,
    ended: bool,
    done: Option<Done>,
}

impl Answerer {
    pub(super) fn new(line: Line, door: Door, size: u32) -> Self {
        Self {
            line,
            door,
            size,
            buffer: Pages::default(),
            mark: MarkPart::default(),
            caller: None,
            ended: false,
            done: None,
        }
    }

    /// Goes on with a connection; the size of its message once that is answered, else zero.
    fn go_on(&mut self) -> Result<u32, LoadError> {
        if self.caller.is_none() {
            self.caller = self.accept()?;
        }
        let Some(mut caller) = self.caller.take() else {
            self.look_for_the_end()?;
            return Ok(0);
        };
        match caller.answer(&mut self.buffer.bytes_mut()[..self.size as usize]) {
            Ok(true) => return Ok(self.size),
            Ok(false) if caller.since.elapsed() < PATIENCE => self.caller = Some(caller),
            // Gone, or too slow: the near end counts what it did not get.
            Ok(false) | Err(_) => {}
        }
        Ok(0)
    }

    /// The next connection of this stream, if one comes in time.
    fn accept(&self) -> Result<Option<Caller>, LoadError> {
        let failed = |call| move |e: io::Error| self.line.failed(call, e);
        let (stream, from) = match self.door.listener.accept() {
            Ok(found) => found,
            Err(e) if is_pause(&e) || is_of_the_caller(&e) => return Ok(None),
            Err(e) => return Err(failed("accept")(e)),
        };
        if from.ip() != self.door.from {
            return Ok(None);
        }
        socket::set_timeouts(stream.as_fd(), BLOCK).map_err(failed("setsockopt"))?;
        Ok(Some(Caller {
            stream,
            since: Instant::now(),
            received: 0,
        }))
    }

    fn look_for_the_end(&mut self) -> Result<(), LoadError> {
        if self.ended {
            return Ok(());
        }
        match self.mark.get(&self.line, false)? {
            None => {}
            Some(Mark::End(_)) => self.ended = true,
            Some(mark) => {
                let what = format!("{mark:?} among connections");
                return Err(self.line.garbled(&what));
            }
        }
        Ok(())
    }
}

/// Errors of one connection that came to nothing, and not of the listener.
//= https://man7.org/linux/man-pages/man2/accept.2.html, error handling
fn is_of_the_caller(error: &io::Error) -> bool {
    let of_it = [
        Errno::CONNABORTED,
        Errno::NETDOWN,
        Errno::PROTO,
        Errno::NOPROTOOPT,
        Errno::HOSTDOWN,
        Errno::NONET,
        Errno::HOSTUNREACH,
        Errno::OPNOTSUPP,
        Errno::NETUNREACH,
    ];
    Errno::from_io_error(error).is_some_and(|e| of_it.contains(&e))
}

impl Caller {
    /// Receives into `message` and answers it once all of it is in: true then. Blocks for a moment at most.
    fn answer(&mut self, message: &mut [u8]) -> io::Result<bool> {
        let fd = self.stream.as_fd();
        match socket::receive(fd, &mut message[self.received..], true) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => self.received += n,
            Err(e) if is_pause(&e) => return Ok(false),
            Err(e) => return Err(e),
        }
        if self.received < message.len() {
            return Ok(false);
        }
        // It fits the buffer of a socket that has sent nothing yet.
        let sent = socket::send(fd, message, false)?;
        Ok(sent == message.len())
    }
}

impl Worker for Answerer {
    fn begin(&mut self, _: &Arc<Advice>) -> Result<(), LoadError> {
        self.buffer.ensure(self.size as usize);
        self.caller = None;
        self.ended = false;
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        if ops.is_empty() || self.done.is_some() {
            return Ok(0);
        }
        let bytes = self.go_on()?;
        let op = Op::Receive(self.size);
        self.done = Some(Done { op, bytes });
        Ok(1)
    }

    fn reap(&mut self, _: usize, _: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        done.extend(self.done.take());
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        Ok(self.ended)
    }

    fn probe(&self) -> Option<Box<dyn Probe>> {
        Some(Box::new(Abort(self.line.clone())))
    }
}
