//! The near end of round trips over a connection: sends messages and receives the answers.
//!
//! Messages are sent in runs, each announced by a mark, like the payload of a stream. So the far end learns from an end
//! mark when a step is over.

use std::time::Duration;

use linerate_facts::parse::run::{Mark, RUN_MAX};
use linerate_plan::Knobs;

use super::probe::SocketProbe;
use crate::pages::Pages;
use crate::pattern::answers::Answers;
use crate::pattern::{Answer, Asker, Wait};
use crate::transport::line::{Line, MarkPart};
use crate::{LoadError, Probe};

/// Most messages in one run.
const RUN_MESSAGES: u64 = 256;
/// Number of reads of an empty socket after which a busy worker checks whether it must stop.
const SPINS: u32 = 1024;

/// Near end that sends messages and receives their answers.
pub(super) struct TcpAsker {
    line: Line,
    size: u32,
    message: Pages,
    answers: Answers,
    mark: MarkPart,
    /// Number of messages in the run whose mark is being sent.
    announced: u64,
    /// Number of messages of the current run that were not sent yet.
    left: u64,
    /// Bytes of the current message that were sent so far.
    at: usize,
    /// Bytes of a message's first write, if each message is sent in two writes; otherwise zero.
    first: usize,
    ended: bool,
}

impl TcpAsker {
    /// Makes the near end for messages of `size` bytes, with the settings `knobs`.
    pub(super) fn new(line: Line, size: u32, knobs: &Knobs) -> Self {
        Self {
            line,
            size,
            message: Pages::default(),
            answers: Answers::new(size, knobs.open_loop),
            mark: MarkPart::default(),
            announced: 0,
            left: 0,
            at: 0,
            first: if knobs.two_writes { size as usize / 2 } else { 0 },
            ended: false,
        }
    }
}

/// Receives the available bytes; zero if there are none. With `Wait::Busy`, polls the socket up to `SPINS` times for
/// them.
#[inline(always)]
pub(super) fn receive(line: &Line, into: &mut [u8], wait: Wait) -> Result<usize, LoadError> {
    if wait != Wait::Busy {
        return line.receive(into, wait == Wait::Asleep);
    }
    for _ in 0..SPINS {
        let got = line.receive(into, false)?;
        if got > 0 {
            return Ok(got);
        }
        std::hint::spin_loop();
    }
    Ok(0)
}

impl TcpAsker {
    /// Sends the current message up to its byte `end`, or as many of these bytes as the kernel accepts.
    #[inline(always)]
    fn write(&mut self, end: usize, wait: bool) -> Result<(), LoadError> {
        let rest = &self.message.bytes()[self.at..end];
        self.at +=
            if wait { self.line.send(rest, false)? } else { self.line.offer(rest, false)? };
        Ok(())
    }
}

impl Asker for TcpAsker {
    const PATIENCE: Option<(u64, u64)> = None;

    fn size(&self) -> u32 {
        self.size
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        let filled = self.message.fill(self.size as usize);
        filled.map_err(|e| self.line.failed("getrandom", e))?;
        self.answers.begin();
        self.ended = false;
        Ok(())
    }

    #[inline]
    fn announce(&mut self, most: impl FnOnce() -> u64, wait: bool) -> Result<bool, LoadError> {
        if self.left > 0 {
            return Ok(true);
        }
        if self.announced == 0 {
            let fits = RUN_MAX / u64::from(self.size);
            self.announced = most().min(RUN_MESSAGES).min(fits).max(1);
        }
        let mark = Mark::Run(self.announced * u64::from(self.size));
        let put = if wait {
            self.mark.put(&self.line, mark, true)?
        } else {
            self.mark.offer(&self.line, mark, true)?
        };
        if put {
            self.left = std::mem::take(&mut self.announced);
        }
        Ok(put)
    }

    fn announced(&self) -> u64 {
        self.left + self.announced
    }

    #[inline(always)]
    fn send(&mut self, wait: bool) -> Result<bool, LoadError> {
        if self.at < self.first {
            self.write(self.first, wait)?;
            if self.at < self.first {
                return Ok(false);
            }
        }
        self.write(self.size as usize, wait)?;
        let all = self.at == self.size as usize;
        if all {
            self.at = 0;
            self.left -= 1;
            self.answers.note_sent();
        }
        Ok(all)
    }

    #[inline(always)]
    fn receive(&mut self, wait: Wait, take: impl FnMut(Answer) -> bool) -> Result<(), LoadError> {
        let bytes = receive(&self.line, self.answers.room(), wait)?;
        if !self.answers.add(bytes, take) {
            return Err(self.line.garbled("answers to messages that were not sent"));
        }
        Ok(())
    }

    fn ready(&mut self, wanted: bool, most: Duration) -> Result<[bool; 2], LoadError> {
        self.line.ready(wanted, most)
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        if !self.ended {
            let total = self.answers.sent() * u64::from(self.size);
            self.ended = self.mark.put(&self.line, Mark::End(total), false)?;
        }
        Ok(self.ended)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(SocketProbe::new(self.line.clone()))]
    }
}
