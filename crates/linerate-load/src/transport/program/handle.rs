//! An ordinary program that this process started: sends its orders and reads its reports.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use linerate_facts::Gap;
use rustix::event::PollFlags;
use rustix::process::Pid;
use rustix::thread::{sched_getaffinity, sched_setaffinity};

use super::VERB;
use super::orders::Orders;
use super::report::{REPORT_BYTES, Report};
use crate::LoadError;
use crate::transport::line::{BLOCK, Line, seen};
use crate::transport::refused;

/// The executable of this process, even if its file was replaced in the meantime.
const OWN: &str = "/proc/self/exe";
/// Most bytes that one call reads from the pipe.
const CHUNK: usize = 64 * 1024;

/// A running program. Dropping this value kills it.
pub(super) struct Handle {
    process: Child,
    orders: ChildStdin,
    reports: ChildStdout,
    /// Bytes that were read from the pipe, and the offset of the next report in them.
    read: Vec<u8>,
    at: usize,
    line: Line,
}

impl Handle {
    /// Starts a program. With `preload`, that library replaces the program's socket calls.
    pub(super) fn start(
        orders: &Orders,
        preload: Option<&Path>,
        line: &Line,
    ) -> Result<Self, LoadError> {
        let mut command = Command::new(OWN);
        // The program gets no environment variables of this process, and Ctrl-C at a terminal does not reach it.
        command.arg0("linerate").arg(VERB).env_clear();
        command.process_group(0);
        if let Some(library) = preload {
            command.env("LD_PRELOAD", library);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |e| line.failed("starting the program", e);
        let mut process = command.stderr(Stdio::null()).spawn().map_err(failed)?;
        let pipes = (process.stdin.take(), process.stdout.take());
        let (Some(stdin), Some(stdout)) = pipes else {
            return Err(failed(ErrorKind::BrokenPipe.into()));
        };
        let mut handle = Self {
            process,
            orders: stdin,
            reports: stdout,
            read: Vec::new(),
            at: 0,
            line: line.clone(),
        };
        handle.order(format!("{orders}\n").as_bytes())?;
        Ok(handle)
    }

    /// Returns the process id.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Pins the program to the CPUs of the calling thread; returns a gap if that fails.
    pub(super) fn follow(&self) -> Option<Gap> {
        let id = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        let set = sched_getaffinity(None).and_then(|cpus| sched_setaffinity(id, &cpus));
        set.err().map(|e| refused("cpus", &e.to_string()))
    }

    /// Sends an order to the program.
    pub(super) fn order(&mut self, bytes: &[u8]) -> Result<(), LoadError> {
        let sent = self.orders.write_all(bytes);
        match sent {
            // The program has ended: its last report has the reason.
            Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
            sent => sent.map_err(|e| self.line.failed("write", e)),
        }
    }

    /// Returns the next report; `None` if none was read within `wait`.
    pub(super) fn next(&mut self, wait: Duration) -> Result<Option<Report>, LoadError> {
        if self.read.len() - self.at < REPORT_BYTES && !self.fill(wait)? {
            return Ok(None);
        }
        let Some(raw) = self.read[self.at..].first_chunk::<REPORT_BYTES>() else {
            return Ok(None);
        };
        let report = Report::decode(raw);
        self.at += REPORT_BYTES;
        match report {
            Some(Report::Failed { call: _, errno: 0 }) => Err(self.line.closed()),
            Some(Report::Failed { call, errno }) => {
                let error = std::io::Error::from_raw_os_error(errno);
                Err(self.line.failed(call, error))
            }
            Some(report) => Ok(Some(report)),
            None => Err(self.line.garbled("the program reports nonsense")),
        }
    }

    /// Returns whether a further report was read already.
    pub(super) fn has_more(&self) -> bool {
        self.read.len() - self.at >= REPORT_BYTES
    }

    /// Waits up to `wait` for output of the program, and reads it; returns whether there was any.
    fn fill(&mut self, wait: Duration) -> Result<bool, LoadError> {
        let seen = seen(self.reports.as_fd(), PollFlags::IN, wait);
        if seen.map_err(|e| self.line.failed("poll", e.into()))?.is_empty() {
            return Ok(false);
        }
        self.read.drain(..self.at);
        self.at = 0;
        let kept = self.read.len();
        self.read.resize(kept + CHUNK, 0);
        let read = self.reports.read(&mut self.read[kept..]);
        self.read.truncate(kept + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(self.line.garbled("the program ended before the step did")),
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(false),
            Err(e) => Err(self.line.failed("read", e)),
        }
    }

    /// Waits for the next report. Fails at the time `until`, or when the set is `given_up`.
    pub(super) fn within(
        &mut self,
        until: Instant,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Report, LoadError> {
        loop {
            if let Some(report) = self.next(BLOCK)? {
                return Ok(report);
            }
            if given_up() {
                return Err(self.line.garbled("it was given up before the programs met"));
            }
            if Instant::now() >= until {
                return Err(self.line.garbled("the program made no connection in time"));
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Killing fails if the process has ended already, which is no problem.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
