//! The far end of transport `connect`: on each connection it answers the message with its own bytes, and is the first
//! to close the connection.
//!
//! So the state that waits for late packets (TIME_WAIT) stays at the far end, as at an HTTP/1.0 server, and the near
//! end does not run out of TCP ports.
//= https://www.rfc-editor.org/rfc/rfc9293#section-3.6.1

use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_facts::parse::run::Mark;
use linerate_sys::socket;

use super::asker::PATIENCE;
use super::meeting::Door;
use crate::pages::Pages;
use crate::pattern::Answerer;
use crate::transport::abort::Abort;
use crate::transport::line::{BLOCK, Line, MarkPart, unless_paused};
use crate::{LoadError, Probe};

/// Longest time without a byte on a connection that is not answered yet: the first packet may have to be retransmitted.
const SILENCE: Duration = Duration::from_secs(3);
/// Number of answers between two checks for the end mark, even if more connections wait.
const ANSWERS: u32 = 64;

/// A connection that was accepted and is being answered.
struct Visit {
    stream: TcpStream,
    since: Instant,
    /// Time at which the connection last moved a byte.
    moved: Instant,
    /// Bytes of the message that were received so far, and bytes of the answer that were sent so far.
    received: usize,
    sent: usize,
}

impl Visit {
    fn new(stream: TcpStream) -> io::Result<Self> {
        socket::set_timeouts(stream.as_fd(), BLOCK)?;
        let now = Instant::now();
        Ok(Self { stream, since: now, moved: now, received: 0, sent: 0 })
    }

    /// Receives into `message`, and sends it back once it is complete; returns true once the whole answer is sent.
    /// Blocks only briefly.
    fn go_on(&mut self, message: &mut [u8]) -> io::Result<bool> {
        let fd = self.stream.as_fd();
        let moved = if self.received < message.len() {
            let got = match socket::receive(fd, &mut message[self.received..], true) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                other => unless_paused(other)?,
            };
            self.received += got;
            got
        } else {
            0
        };
        if self.received < message.len() {
            self.note(moved);
            return Ok(false);
        }
        let sent = unless_paused(socket::send(fd, &message[self.sent..], false))?;
        self.sent += sent;
        self.note(moved + sent);
        Ok(self.sent == message.len())
    }

    fn note(&mut self, moved: usize) {
        if moved > 0 {
            self.moved = Instant::now();
        }
    }

    fn is_late(&self) -> bool {
        self.moved.elapsed() > SILENCE || self.since.elapsed() > PATIENCE
    }
}

/// Worker that answers the message of each connection.
pub(super) struct ConnectAnswerer {
    line: Line,
    door: Door,
    size: u32,
    message: Pages,
    mark: MarkPart,
    visit: Option<Visit>,
    /// Number of answers since the end mark was last looked for.
    answers: u32,
    ended: bool,
}

impl ConnectAnswerer {
    pub(super) fn new(line: Line, door: Door, size: u32) -> Self {
        Self {
            line,
            door,
            size,
            message: Pages::default(),
            mark: MarkPart::default(),
            visit: None,
            answers: 0,
            ended: false,
        }
    }

    /// Continues with the accepted connection, if there is one; returns true once its message is answered.
    fn go_on(&mut self) -> bool {
        let Some(mut visit) = self.visit.take() else {
            return false;
        };
        match visit.go_on(self.message.bytes_mut()) {
            Ok(true) => true,
            // The connection failed or is too slow and is dropped: the near end counts the missing answer.
            Err(_) => false,
            Ok(false) if visit.is_late() => false,
            Ok(false) => {
                self.visit = Some(visit);
                false
            }
        }
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

impl Answerer for ConnectAnswerer {
    fn size(&self) -> u32 {
        self.size
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        self.message.ensure(self.size as usize);
        self.visit = None;
        self.ended = false;
        Ok(())
    }

    fn answer(&mut self) -> Result<u32, LoadError> {
        if self.visit.is_none() {
            let next = self.door.accept();
            let next = next.map_err(|e| self.line.failed("accept", e))?;
            let next = next.map(Visit::new).transpose();
            self.visit = next.map_err(|e| self.line.failed("setsockopt", e))?;
        }
        let answered = self.go_on();
        self.answers += 1;
        if !answered || self.answers >= ANSWERS {
            self.answers = 0;
            self.look_for_the_end()?;
        }
        Ok(if answered { self.size } else { 0 })
    }

    fn ended(&self) -> bool {
        self.ended
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(Abort(self.line.clone()))]
    }
}
