//! Loads: as many operations in flight as the plan says, each with its time.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

use linerate_facts::Gap;
use linerate_sys::clock;
use linerate_sys::uring::{Access, FileRing};

use super::data::{stamp, word};
use super::{Shape, refused};
use crate::pages::Pages;
use crate::times::Times;
use crate::{Advice, Done, LoadError, Op, Probe, Timed, Worker};

/// How a thread reaches the kernel.
enum Way {
    /// io_uring: the operations of a depth are in flight.
    Ring(Box<FileRing>),
    /// One call after the other, from one block of memory. The flag says whether a call is due.
    Calls(Pages, bool),
}

/// The operations of one thread.
pub(super) struct Disk {
    pub(super) shape: Shape,
    stream: u32,
    way: Option<Way>,
    contents: Contents,
}

/// The contents of what a thread writes.
#[derive(Default)]
struct Contents {
    state: u64,
    /// Which slots have random contents.
    filled: Vec<bool>,
}

impl Contents {
    /// Makes the block of a slot differ from all that was written.
    #[inline]
    fn renew(&mut self, slot: u32, block: &mut [u8]) {
        if let Some(filled) = self.filled.get_mut(slot as usize).filter(|filled| !**filled) {
            *filled = true;
            for eight in block.chunks_exact_mut(8) {
                eight.copy_from_slice(&word(&mut self.state).to_ne_bytes());
            }
        }
        stamp(block, &mut self.state);
    }
}

/// An operation that has ended.
pub(super) struct Ended {
    pub(super) slot: u32,
    pub(super) bytes: u32,
}

impl Disk {
    pub(super) fn new(shape: Shape, stream: u32) -> Self {
        Self { shape, stream, way: None, contents: Contents::default() }
    }

    /// Makes what the thread of a step needs, on the thread itself: a ring belongs to one thread. Returns what it lacks.
    pub(super) fn begin(&mut self) -> Result<Vec<Gap>, LoadError> {
        let Shape { target, block, depth, .. } = &self.shape;
        let state = getrandom::u64().map_err(|e| self.call("getrandom", io::Error::other(e)))?;
        self.contents = Contents { state, filled: vec![false; *depth as usize] };
        match FileRing::new(target.file.as_fd(), *depth, *block) {
            Ok(ring) => {
                self.way = Some(Way::Ring(Box::new(ring)));
                Ok(Vec::new())
            }
            Err(error) => {
                let why = format!(
                    "io_uring cannot be used ({error}): each thread has one operation in flight"
                );
                let lacks = (*depth > 1).then(|| refused("depth", &why));
                let mut pages = Pages::default();
                pages.ensure(*block as usize);
                self.way = Some(Way::Calls(pages, false));
                Ok(lacks.into_iter().collect())
            }
        }
    }

    /// Starts an operation, and returns its slot; `None` if no more may be in flight.
    #[inline]
    pub(super) fn start(&mut self) -> Result<Option<u32>, LoadError> {
        let Self { shape, way, contents, .. } = self;
        let started = match way {
            Some(Way::Ring(ring)) if ring.has_room() => {
                let offset = shape.offsets.next() * u64::from(shape.block);
                ring.start(shape.access, offset, |slot, block| contents.renew(slot, block))
            }
            Some(Way::Calls(_, due)) if !*due => {
                *due = true;
                Ok(Some(0))
            }
            _ => Ok(None),
        };
        started.map_err(|e| self.call("io_uring", e))
    }

    /// Waits up to `wait` for one operation, and passes all that have ended to `ended`.
    #[inline]
    pub(super) fn complete(
        &mut self,
        wait: Duration,
        mut ended: impl FnMut(Ended),
    ) -> Result<(), LoadError> {
        let Self { shape, way, contents, .. } = self;
        let mut wrong = None;
        let mut take = |slot, moved| match moved {
            // Nothing moves at the end of a file, which has become shorter.
            Ok(0) => wrong = Some(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => ended(Ended { slot, bytes }),
            Err(error) => wrong = Some(error),
        };
        let done = match way {
            Some(Way::Ring(ring)) => ring.complete(wait, |one| take(one.slot, one.moved)),
            Some(Way::Calls(pages, due)) => {
                if std::mem::take(due) {
                    take(0, called(shape, pages.bytes_mut(), contents));
                }
                Ok(())
            }
            None => Ok(()),
        };
        match done.err().or(wrong) {
            Some(error) => Err(self.call(self.name(), error)),
            None => Ok(()),
        }
    }

    /// Whether one more operation may be started.
    pub(super) fn has_room(&self) -> bool {
        match &self.way {
            Some(Way::Ring(ring)) => ring.has_room(),
            Some(Way::Calls(_, due)) => !*due,
            None => false,
        }
    }

    /// Whether operations are in flight.
    pub(super) fn is_busy(&self) -> bool {
        match &self.way {
            Some(Way::Ring(ring)) => ring.in_flight() > 0,
            Some(Way::Calls(_, due)) => *due,
            None => false,
        }
    }

    const fn name(&self) -> &'static str {
        match self.shape.access {
            Access::Read => "read",
            Access::Write { .. } => "write",
        }
    }

    fn call(&self, call: &'static str, source: io::Error) -> LoadError {
        LoadError::Call { call, stream: self.stream, source }
    }
}

/// Makes one operation by a call; returns the bytes that moved.
fn called(shape: &mut Shape, block: &mut [u8], contents: &mut Contents) -> io::Result<u32> {
    let at = shape.offsets.next() * u64::from(shape.block);
    let file = &shape.target.file;
    let moved = match shape.access {
        Access::Read => file.read_at(block, at)?,
        Access::Write { sync } => {
            contents.renew(0, block);
            let moved = file.write_at(block, at)?;
            if sync {
                file.sync_data()?;
            }
            moved
        }
    };
    Ok(moved as u32)
}

/// Worker that keeps its operations in flight.
pub(super) struct Loads {
    disk: Disk,
    /// Time at which the operation of each slot was started.
    started: Vec<u64>,
    /// The time of the last look for completions.
    now: u64,
    times: Times,
    advice: Arc<Advice>,
    lacks: Vec<Gap>,
    op: Op,
}

impl Loads {
    pub(super) fn new(shape: Shape, stream: u32) -> Self {
        let started = vec![0; shape.depth as usize];
        Self {
            disk: Disk::new(shape, stream),
            started,
            now: 0,
            times: Times::default(),
            advice: Arc::new(Advice::new(1, 1)),
            lacks: Vec::new(),
            op: Op::Send(0),
        }
    }
}

impl Worker for Loads {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        self.times.renew()?;
        self.lacks = self.disk.begin()?;
        self.now = clock::now();
        Ok(())
    }

    #[inline]
    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        // The loop submits right after it has looked for completions, whose time is that of these starts as well.
        for (taken, op) in ops.iter().enumerate() {
            let Some(slot) = self.disk.start()? else {
                return Ok(taken);
            };
            self.started[slot as usize] = self.now;
            self.op = *op;
        }
        Ok(ops.len())
    }

    #[inline]
    fn reap(&mut self, _: usize, wait: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        if !self.disk.is_busy() {
            return Ok(());
        }
        let Self { disk, started, now, times, advice, op, .. } = self;
        let mut read = false;
        disk.complete(wait, |one| {
            // One reading of the clock for all that have ended together.
            if !std::mem::replace(&mut read, true) {
                *now = clock::now();
            }
            let began = started[one.slot as usize];
            if advice.counts(began) {
                times.record(now.saturating_sub(began), 1);
            }
            done.push(Done { op: *op, bytes: one.bytes });
        })?;
        if !read {
            *now = clock::now();
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        Ok(!self.disk.is_busy())
    }

    fn lacks(&mut self) -> Vec<Gap> {
        std::mem::take(&mut self.lacks)
    }

    fn timed(&mut self) -> Timed {
        Timed { trips: self.times.take(), exact: self.times.exact(), ..Timed::default() }
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        Vec::new()
    }
}
