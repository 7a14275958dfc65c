//! The far end of round trips over a connection: answers each message with the message's own bytes.

use linerate_facts::parse::run::Mark;

use super::asker::receive;
use super::probe::SocketProbe;
use crate::pages::Pages;
use crate::pattern::{Answerer, Wait};
use crate::transport::line::{Line, MarkPart};
use crate::{LoadError, Probe};

/// Worker that answers messages.
pub(super) struct TcpAnswerer {
    line: Line,
    size: u32,
    wait: Wait,
    message: Pages,
    mark: MarkPart,
    /// Bytes of the current run that were not received yet.
    left: u64,
    total: u64,
    /// Bytes of the current message that were received so far, and bytes of its answer that were sent so far.
    received: usize,
    sent: usize,
    ended: bool,
}

impl TcpAnswerer {
    /// Makes a worker that answers messages of `size` bytes. A `busy` worker polls its socket without sleeping.
    pub(super) fn new(line: Line, size: u32, busy: bool) -> Self {
        Self {
            line,
            size,
            wait: Wait::of(busy),
            message: Pages::default(),
            mark: MarkPart::default(),
            left: 0,
            total: 0,
            received: 0,
            sent: 0,
            ended: false,
        }
    }

    /// Reads the next mark; returns true when a run begins.
    fn next_run(&mut self) -> Result<bool, LoadError> {
        if self.ended {
            return Ok(false);
        }
        let size = u64::from(self.size);
        match self.mark.get(&self.line, self.wait == Wait::Asleep)? {
            None => Ok(false),
            Some(Mark::Run(length)) if length % size == 0 => {
                self.left = length;
                Ok(true)
            }
            Some(Mark::End(total)) if total == self.total => {
                self.ended = true;
                Ok(false)
            }
            Some(mark) => {
                let what = format!("{mark:?} does not fit messages of {size} bytes");
                Err(self.line.garbled(&what))
            }
        }
    }
}

impl Answerer for TcpAnswerer {
    fn size(&self) -> u32 {
        self.size
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        self.message.ensure(self.size as usize);
        self.total = 0;
        self.ended = false;
        Ok(())
    }

    fn answer(&mut self) -> Result<u32, LoadError> {
        let size = self.size as usize;
        if self.left == 0 && !self.next_run()? {
            return Ok(0);
        }
        if self.received < size {
            let into = &mut self.message.bytes_mut()[self.received..];
            self.received += receive(&self.line, into, self.wait)?;
        }
        if self.received == size {
            self.sent += self.line.send(&self.message.bytes()[self.sent..], false)?;
        }
        if self.sent < size {
            return Ok(0);
        }
        (self.received, self.sent) = (0, 0);
        self.left -= size as u64;
        self.total += size as u64;
        Ok(self.size)
    }

    fn ended(&self) -> bool {
        self.ended
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        vec![Box::new(SocketProbe::new(self.line.clone()))]
    }
}
