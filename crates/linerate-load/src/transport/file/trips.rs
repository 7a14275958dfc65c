//! Single operations, each with its time.

use std::time::Duration;

use super::Shape;
use super::disk::Disk;
use crate::pattern::{Answer, Asker, Wait};
use crate::transport::line::BLOCK;
use crate::{LoadError, Probe};

/// Looks for the end of an operation that a busy thread takes before it returns: some milliseconds.
const LOOKS: u32 = 10_000;

/// Starts operations, and notices their ends. One is in flight, unless an open loop has more due.
pub(super) struct Trips {
    disk: Disk,
    answered: u64,
    /// Operations that have ended and were not looked at, and the time at which that was noticed.
    arrived: u32,
    at: u64,
}

impl Trips {
    pub(super) fn new(shape: Shape, stream: u32) -> Self {
        Self { disk: Disk::new(shape, stream), answered: 0, arrived: 0, at: 0 }
    }

    /// Waits for an end for at most `most`, if none is known yet.
    #[inline]
    fn wait(&mut self, most: Duration) -> Result<(), LoadError> {
        let Self { disk, arrived, at, .. } = self;
        if *arrived > 0 || !disk.is_busy() {
            return Ok(());
        }
        disk.complete(most, |one| {
            *at = one.at;
            *arrived += 1;
        })
    }
}

impl Asker for Trips {
    const PATIENCE: Option<(u64, u64)> = None;

    fn size(&self) -> u32 {
        self.disk.shape.block
    }

    fn begin(&mut self) -> Result<(), LoadError> {
        (self.answered, self.arrived) = (0, 0);
        self.disk.begin().map(drop)
    }

    fn announce(&mut self, _: impl FnOnce() -> u64, _: bool) -> Result<bool, LoadError> {
        Ok(true)
    }

    fn announced(&self) -> u64 {
        0
    }

    #[inline]
    fn send(&mut self, _: bool) -> Result<bool, LoadError> {
        self.disk.start()
    }

    #[inline]
    fn receive(
        &mut self,
        wait: Wait,
        mut take: impl FnMut(Answer) -> bool,
    ) -> Result<(), LoadError> {
        match wait {
            Wait::No => self.wait(Duration::ZERO)?,
            Wait::Asleep => self.wait(BLOCK)?,
            Wait::Busy => {
                let mut looks = 0;
                while self.arrived == 0 && self.disk.is_busy() && looks < LOOKS {
                    self.wait(Duration::ZERO)?;
                    looks += 1;
                }
            }
        }
        for _ in 0..std::mem::take(&mut self.arrived) {
            let answer = Answer { number: self.answered, at: self.at, unread: None };
            self.answered += u64::from(take(answer));
        }
        Ok(())
    }

    fn ready(&mut self, wanted: bool, most: Duration) -> Result<[bool; 2], LoadError> {
        let has_room = wanted && self.disk.has_room();
        self.wait(if has_room { Duration::ZERO } else { most.min(BLOCK) })?;
        Ok([self.arrived > 0, has_room])
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        Ok(true)
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        Vec::new()
    }
}
