//! Counters of sends without a copy: the sending thread counts the sends, the kernel reports which of them it copied
//! anyway.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use linerate_facts::Gap;
use linerate_facts::metric::{
    Metric, ZEROCOPY_COMPLETIONS, ZEROCOPY_COPIED, ZEROCOPY_REFUSED, ZEROCOPY_SENDS,
};
use linerate_facts::parse::zerocopy::{ROOM, completions};
use linerate_plan::Handover;
use linerate_sys::zerocopy::notice;

use crate::transport::line::Line;

/// Most notices that one reading takes from the error queue: the kernel merges adjacent ones, so there are few.
const NOTICES_MAX: usize = 64;

/// Counters of one connection since it was made. They occupy a pair of cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Completions {
    handover: Handover,
    sends: AtomicU64,
    refused: AtomicU64,
    done: AtomicU64,
    copied: AtomicU64,
}

impl Completions {
    /// Makes counters for sends with this way to pass payload to the kernel.
    pub(super) fn of(handover: Handover) -> Self {
        Self { handover, ..Self::default() }
    }

    /// Counts a send that the kernel accepted without copying.
    pub(super) fn sent(&self) {
        self.sends.fetch_add(1, Relaxed);
    }

    /// Counts a send that was copied because the kernel had no room to pin its pages.
    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// Counts `through` completed sends, of which the kernel copied `copied` anyway.
    pub(super) fn add(&self, through: u64, copied: u64) {
        self.done.fetch_add(through, Relaxed);
        self.copied.fetch_add(copied, Relaxed);
    }

    /// Reads the completions that the kernel has queued on the socket. The sampler calls this, so that the sending
    /// thread does not have to. With io_uring, the sending thread gets completions at no cost, so nothing is read here.
    pub(super) fn take_in(&self, line: &Line) {
        if self.handover != Handover::Zerocopy {
            return;
        }
        let mut control = [0; ROOM];
        for _ in 0..NOTICES_MAX {
            // An empty queue is an error too. Other errors also make the sends fail.
            let Ok(len) = notice(line.fd(), &mut control) else {
                return;
            };
            for batch in completions(&control[..len]) {
                self.add(batch.sends, if batch.copied { batch.sends } else { 0 });
            }
        }
    }

    /// Returns the values of a row of the table of these counters.
    pub(super) fn row(&self) -> [(Metric, Option<i64>); 4] {
        [
            (ZEROCOPY_SENDS, &self.sends),
            (ZEROCOPY_COMPLETIONS, &self.done),
            (ZEROCOPY_COPIED, &self.copied),
            (ZEROCOPY_REFUSED, &self.refused),
        ]
        .map(|(metric, count)| (metric, Some(count.load(Relaxed) as i64)))
    }

    /// Reports why the kernel copied sends. All connections use the same words, so that the gap is reported once.
    pub(super) fn gap(&self) -> Option<Gap> {
        let hint = match self.handover {
            Handover::IoUring => "ulimit -l unlimited",
            _ => "ulimit -l unlimited; sudo sysctl -w net.core.optmem_max=1048576",
        };
        (self.refused.load(Relaxed) > 0).then(|| Gap {
            what: "set.copy".to_owned(),
            why: "the kernel copied some sends: it had no room to pin their pages".to_owned(),
            hint: hint.to_owned(),
        })
    }
}
