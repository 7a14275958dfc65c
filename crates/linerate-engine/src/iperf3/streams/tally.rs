//! What a stream counts of its datagrams: written by its thread alone, read by others meanwhile.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use linerate_core::iperf3::Intake;

/// What was counted at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::iperf3) struct Tally {
    /// Those that were sent, or of a receiver: that must have been, up to the last that came.
    pub(in crate::iperf3) packets: u64,
    /// Those of them that a receiver lacks.
    pub(in crate::iperf3) lost: u64,
    /// Those that came after one that was sent later.
    pub(in crate::iperf3) reordered: u64,
    /// Those that came again, or so late that it cannot be told.
    pub(in crate::iperf3) duplicated: u64,
    /// Those that the sender's host did not take at once: they were sent later.
    pub(in crate::iperf3) refused: u64,
    /// How unevenly they came, in nanoseconds.
    pub(in crate::iperf3) jitter: u64,
}

/// The counters.
#[derive(Debug, Default)]
pub(super) struct Counts {
    packets: AtomicU64,
    lost: AtomicU64,
    reordered: AtomicU64,
    duplicated: AtomicU64,
    refused: AtomicU64,
    jitter: AtomicU64,
}

impl Counts {
    /// So many were sent, in all.
    pub(super) fn sent(&self, packets: u64) {
        self.packets.store(packets, Relaxed);
    }

    /// So many more were refused.
    pub(super) fn refused(&self, packets: u64) {
        self.refused.fetch_add(packets, Relaxed);
    }

    /// What has come, in all.
    pub(super) fn arrived(&self, intake: &Intake) {
        let arrivals = intake.arrivals();
        let lost = arrivals.missing();
        self.packets.store(arrivals.taken() + lost, Relaxed);
        self.lost.store(lost, Relaxed);
        self.reordered.store(arrivals.reordered(), Relaxed);
        let again = arrivals.duplicated() + arrivals.late();
        self.duplicated.store(again, Relaxed);
        self.jitter.store(intake.jitter(), Relaxed);
    }

    pub(super) fn read(&self) -> Tally {
        Tally {
            packets: self.packets.load(Relaxed),
            lost: self.lost.load(Relaxed),
            reordered: self.reordered.load(Relaxed),
            duplicated: self.duplicated.load(Relaxed),
            refused: self.refused.load(Relaxed),
            jitter: self.jitter.load(Relaxed),
        }
    }
}

impl Tally {
    /// What was counted since `before`. Jitter forgets what was before by itself.
    pub(in crate::iperf3) fn since(&self, before: &Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(before.packets),
            // One that was missing before may have come since.
            lost: self.lost.saturating_sub(before.lost),
            reordered: self.reordered.saturating_sub(before.reordered),
            duplicated: self.duplicated.saturating_sub(before.duplicated),
            refused: self.refused.saturating_sub(before.refused),
            jitter: self.jitter,
        }
    }
}
