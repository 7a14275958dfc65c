//! The operations of one thread, in whichever way they reach the kernel.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use linerate_facts::Gap;
use linerate_sys::clock;
use linerate_sys::uring::{Access, FileRing};

use super::caller::Caller;
use super::data::{Contents, damaged};
use super::pool::Pool;
use super::way::Way;
use super::{Shape, refused};
use crate::LoadError;

/// What makes the operations of a step.
enum Engine {
    /// io_uring: the operations of a depth are in flight.
    Ring(Box<FileRing>, Contents),
    /// One call after the other. The flag says whether a call is due.
    Calls(Caller, bool),
    /// Threads, each of which makes one call after the other.
    Pool(Pool),
}

/// The operations of one thread.
pub(super) struct Disk {
    pub(super) shape: Shape,
    stream: u32,
    engine: Option<Engine>,
    started: Vec<Started>,
    /// The time of the last look for completions, which is that of the starts that follow as well.
    now: u64,
}

/// The operation of a slot: when it was started, and where in the file.
#[derive(Debug, Clone, Copy, Default)]
struct Started {
    began: u64,
    offset: u64,
}

/// An operation that has ended, with its times on this host's clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) bytes: u32,
    pub(super) began: u64,
    pub(super) at: u64,
}

impl Disk {
    pub(super) fn new(shape: Shape, stream: u32) -> Self {
        let started = vec![Started::default(); shape.depth as usize];
        Self { shape, stream, engine: None, started, now: 0 }
    }

    /// Makes what the thread of a step needs, on the thread itself: a ring belongs to one thread. Returns what it lacks.
    pub(super) fn begin(&mut self) -> Result<Option<Gap>, LoadError> {
        // Threads of an earlier step end first.
        self.engine = None;
        let (way, mut lacks) = (self.shape.way, None);
        if way.is_ring() {
            match self.ring() {
                Ok(engine) => self.engine = Some(engine),
                Err(error) if self.shape.depth == 1 || self.shape.may_thread => {
                    let why = format!(
                        "io_uring cannot be used in this step ({error}): threads make the calls"
                    );
                    lacks = (self.shape.depth > 1).then(|| refused("depth", &why));
                }
                Err(error) => return Err(self.call("io_uring", error)),
            }
        }
        if self.engine.is_none() {
            self.engine = Some(if self.shape.depth > 1 {
                Engine::Pool(self.pool()?)
            } else {
                let caller = Caller::new(self.shape.clone());
                Engine::Calls(caller.map_err(|e| self.call("getrandom", e))?, false)
            });
        }
        self.now = clock::now();
        Ok(lacks)
    }

    fn ring(&self) -> io::Result<Engine> {
        let Shape { target, block, depth, way, verify, .. } = &self.shape;
        let make = if *way == Way::Polled { FileRing::polled } else { FileRing::new };
        let ring = make(target.file.as_fd(), *depth, *block)?;
        Ok(Engine::Ring(Box::new(ring), Contents::new(*depth, *verify)?))
    }

    fn pool(&self) -> Result<Pool, LoadError> {
        Pool::new(&self.shape).map_err(|error| LoadError::Failed {
            what: format!("cannot start {} threads: {error}", self.shape.depth),
            hint: "use a smaller --depth, or raise the limit of threads (`ulimit -u` shows it)",
        })
    }

    /// Starts an operation; returns false if no more may be in flight, or if threads start operations themselves.
    #[inline]
    pub(super) fn start(&mut self) -> Result<bool, LoadError> {
        let Self { shape, engine, started, now, .. } = self;
        match engine {
            Some(Engine::Ring(ring, contents)) if ring.has_room() => {
                let offset = shape.offsets.next() * u64::from(shape.block);
                let slot = ring.start(shape.access, offset, |slot, block| {
                    contents.renew(slot, block, offset);
                });
                match slot {
                    Ok(Some(slot)) => started[slot as usize] = Started { began: *now, offset },
                    Ok(None) => return Ok(false),
                    Err(error) => return Err(self.call("io_uring", error)),
                }
                Ok(true)
            }
            Some(Engine::Calls(_, due)) => Ok(!std::mem::replace(due, true)),
            Some(Engine::Pool(pool)) => {
                pool.go();
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// Waits up to `wait` for one operation, and passes all that have ended to `ended`.
    #[inline]
    pub(super) fn complete(
        &mut self,
        wait: Duration,
        mut ended: impl FnMut(Ended),
    ) -> Result<(), LoadError> {
        let Self { shape, engine, started, now, .. } = self;
        let mut wrong = None;
        let mut take = |moved, began, at| match moved {
            Ok(0) => wrong = Some(shorter()),
            Ok(bytes) => ended(Ended { bytes, began, at }),
            Err(error) => wrong = Some(error),
        };
        let mut at = 0;
        let done = match engine {
            Some(Engine::Ring(ring, _)) => ring.complete(wait, |one| {
                // One reading of the clock for all that have ended together.
                if at == 0 {
                    at = clock::now();
                }
                let Started { began, offset } = started[one.slot as usize];
                let moved = one.moved.and_then(|len| {
                    checked(shape, &one.block[..len as usize], offset).map(|()| len)
                });
                take(moved, began, at);
            }),
            Some(Engine::Calls(caller, due)) => {
                if std::mem::take(due) {
                    let moved = caller.call();
                    at = clock::now();
                    take(moved, *now, at);
                }
                Ok(())
            }
            Some(Engine::Pool(pool)) => {
                pool.complete(wait, |one| take(one.moved, one.began, one.at));
                Ok(())
            }
            None => Ok(()),
        };
        *now = if at == 0 { clock::now() } else { at };
        let name = if shape.access == Access::Read { "read" } else { "write" };
        done.err().or(wrong).map_or(Ok(()), |error| Err(self.call(name, error)))
    }

    /// Whether one more operation may be started.
    pub(super) fn has_room(&self) -> bool {
        match &self.engine {
            Some(Engine::Ring(ring, _)) => ring.has_room(),
            Some(Engine::Calls(_, due)) => !*due,
            Some(Engine::Pool(_)) | None => false,
        }
    }

    /// Whether operations are in flight, or may be.
    pub(super) fn is_busy(&self) -> bool {
        match &self.engine {
            Some(Engine::Ring(ring, _)) => ring.in_flight() > 0,
            Some(Engine::Calls(_, due)) => *due,
            Some(Engine::Pool(pool)) => pool.is_busy(),
            None => false,
        }
    }

    /// Starts nothing more. What is in flight ends as usual.
    pub(super) fn stop(&self) {
        if let Some(Engine::Pool(pool)) = &self.engine {
            pool.stop();
        }
    }

    /// The threads that make the calls of this one, by the kernel's ids.
    pub(super) fn helpers(&self) -> Vec<i32> {
        match &self.engine {
            Some(Engine::Pool(pool)) => pool.ids.clone(),
            _ => Vec::new(),
        }
    }

    fn call(&self, call: &'static str, source: io::Error) -> LoadError {
        LoadError::Call { call, stream: self.stream, source }
    }
}

/// Checks what was read at `at`, if the set reads what this program wrote and the user asked for it.
#[inline]
pub(super) fn checked(shape: &Shape, read: &[u8], at: u64) -> io::Result<()> {
    if !shape.verify || !shape.target.is_known || shape.access != Access::Read {
        return Ok(());
    }
    damaged(read, at).map_or(Ok(()), |at| {
        let what = format!("the data at byte {at} are not those that were written");
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    })
}

/// The error of an operation that moved nothing: it was behind the end of the file.
fn shorter() -> io::Error {
    let what = "the file has become shorter since it was opened";
    io::Error::new(io::ErrorKind::UnexpectedEof, what)
}
