//! The table of trial kinds: what one can change on the path, and how.
//!
//! A trial changes one factor of the connections that the tool itself owns, or, only where its user
//! allowed it, one setting of a host. Trials stand apart from causes, because one trial parts several
//! rivals.

mod host;
mod settings;
mod slice;
mod verbs;

pub use slice::{next_slice, slice_time, washout};

use std::cmp::Ordering;

use crate::factor::Factor;
use crate::model::Model;
use crate::path::Direction;
use crate::record::TrialPlan;

/// A row of the table of trial kinds.
#[derive(Debug, Clone, Copy)]
pub struct TrialKind {
    /// Stable id, as it stands in records.
    pub id: &'static str,
    /// The factor that the trial changes.
    pub factor: Factor,
    /// The tried change in words, as they follow the word "testing".
    pub words: &'static str,
    /// The change in the past tense, before "gave x1.92".
    pub change: &'static str,
}

/// Every kind of trial. If two kinds separate the same rivals, the earlier one is preferred: kinds that can
/// show a gain come before those that only show a loss.
pub const TRIALS: &[TrialKind] = &[
    TrialKind {
        id: "unpaced",
        factor: Factor::Unpaced,
        words: "whether the pace that was asked for holds it back",
        change: "lifting the pace",
    },
    TrialKind {
        id: "larger-window",
        factor: Factor::LargerWindow,
        words: "whether a larger receive buffer helps",
        change: "a larger receive buffer",
    },
    TrialKind {
        id: "larger-send-buffer",
        factor: Factor::LargerSendBuffer,
        words: "whether a larger send buffer helps",
        change: "a larger send buffer",
    },
    // Settings of a host, where it was allowed to change them.
    TrialKind {
        id: "host-window",
        factor: Factor::HostWindow,
        words: "whether a host that allows a larger receive buffer helps",
        change: "raising the receiving host's limit of receive buffers",
    },
    TrialKind {
        id: "host-send-buffer",
        factor: Factor::HostSendBuffer,
        words: "whether a host that allows a larger send buffer helps",
        change: "raising the sending host's limit of send buffers",
    },
    TrialKind {
        id: "host-offloads",
        factor: Factor::HostOffloads,
        words: "whether the port's offloads help",
        change: "switching the port's offloads on",
    },
    TrialKind {
        id: "host-room",
        factor: Factor::HostRoom,
        words: "whether more room in the host's own queue helps",
        change: "more room in the host's own queue",
    },
    TrialKind {
        id: "host-spread",
        factor: Factor::HostSpread,
        words: "whether packets gain on CPUs that have little to do",
        change: "handing the port's packets to idle CPUs",
    },
    TrialKind {
        id: "other-ports",
        factor: Factor::OtherPorts,
        words: "whether streams gain in receive queues of their own",
        change: "other source ports",
    },
    TrialKind {
        id: "more-streams",
        factor: Factor::MoreStreams,
        words: "whether twice the streams help",
        change: "twice the streams",
    },
    TrialKind {
        id: "more-depth",
        factor: Factor::MoreDepth,
        words: "whether twice the operations in flight help",
        change: "twice the operations in flight",
    },
    TrialKind {
        id: "more-reads",
        factor: Factor::MoreReads,
        words: "whether twice the reads in flight help",
        change: "twice the reads in flight",
    },
    TrialKind {
        id: "more-queue-pairs",
        factor: Factor::MoreQueuePairs,
        words: "whether the same requests gain on twice the queue pairs",
        change: "twice the queue pairs for the same requests",
    },
    TrialKind {
        id: "more-inline",
        factor: Factor::MoreInline,
        words: "whether payload inside of requests helps",
        change: "payload inside of requests",
    },
    TrialKind {
        id: "other-congestion",
        factor: Factor::OtherCongestion,
        words: "whether another congestion control does better",
        change: "another congestion control",
    },
    TrialKind {
        id: "half-pace",
        factor: Factor::Paced,
        words: "whether less is lost, or waits, at half the pace",
        change: "half the pace",
    },
    TrialKind {
        id: "crowd",
        factor: Factor::Crowd,
        words: "whether many streams lose a larger share than a few",
        change: "many streams in place of a few",
    },
    TrialKind {
        id: "receiver-work",
        factor: Factor::ReceiverWork,
        words: "whether the receiving threads have time to spare",
        change: "25 % more work on the receiving thread",
    },
    TrialKind {
        id: "sender-work",
        factor: Factor::SenderWork,
        words: "whether the sending threads have time to spare",
        change: "25 % more work on the sending thread",
    },
    TrialKind {
        id: "half-window",
        factor: Factor::HalfWindow,
        words: "whether half the receive window halves the goodput",
        change: "half the receive window",
    },
    TrialKind {
        id: "half-send-buffer",
        factor: Factor::HalfSendBuffer,
        words: "whether half the send buffer halves the goodput",
        change: "half the send buffer",
    },
    TrialKind {
        id: "smaller-reads",
        factor: Factor::SmallerReads,
        words: "whether the size of a read matters",
        change: "reads of half the size",
    },
    TrialKind {
        id: "smaller-writes",
        factor: Factor::SmallerWrites,
        words: "whether the size of a write matters",
        change: "writes of half the size",
    },
    TrialKind {
        id: "smaller-mss",
        factor: Factor::SmallerMss,
        words: "whether smaller packets get through",
        change: "segments of half the size",
    },
    TrialKind {
        id: "near-interrupts",
        factor: Factor::NearInterrupts,
        words: "whether threads gain beside the port's interrupts",
        change: "moving the threads to the node of the port's interrupts",
    },
    TrialKind {
        id: "other-cpu",
        factor: Factor::OtherCpu,
        words: "whether threads gain on a CPU that has nothing else to do",
        change: "moving the threads to an idle CPU",
    },
    // Last: how much they gain depends on what a copy weighs here, which only the trial shows.
    TrialKind {
        id: "discard",
        factor: Factor::Discard,
        words: "whether the receiving thread gains where nothing is copied to it",
        change: "dropping the payload in the kernel",
    },
    TrialKind {
        id: "zero-copy",
        factor: Factor::ZeroCopy,
        words: "whether the sending thread gains where nothing is copied from it",
        change: "handing payload over without a copy",
    },
];

/// Share of the wall time of each byte that the work trials add.
pub const WORK_SHARE: f64 = 0.25;

/// Segment that fits an IPv4 packet of 576 bytes, which every host must take (RFC 9293, section 3.7.1).
pub const SMALL_MSS: u32 = 536;

/// Most blocks of four slices in a trial.
pub const BLOCKS: u32 = 5;

/// Most blocks where slices are short: as much time as five longer ones.
const SHORT_BLOCKS: u32 = 8;

/// Most blocks where slices are long: three without a decision seldom become one with five.
const LONG_BLOCKS: u32 = 3;

/// The row of a trial kind with a given id.
pub fn kind(id: &str) -> Option<&'static TrialKind> {
    TRIALS.iter().find(|k| k.id == id)
}

impl TrialPlan {
    /// The factor that this trial changes; `None` for a kind that this version does not know.
    pub fn factor(&self) -> Option<Factor> {
        kind(&self.kind).map(|k| k.factor)
    }

    /// How many times the streams of setting A setting B has.
    pub fn stream_ratio(&self) -> f64 {
        f64::from(self.after.streams) / f64::from(self.before.streams.max(1))
    }
}

impl TrialKind {
    /// The trial of this kind on one direction; `None` where it changes nothing or cannot be made.
    pub fn propose(&self, model: &Model, direction: Direction, id: u32) -> Option<TrialPlan> {
        let load = &model.direction(direction)?.base;
        if !self.factor.scope().includes(load.transport) {
            return None;
        }
        let (before, after) = settings::settings(self.factor, model, direction, load)?;
        let slice = next_slice(model, direction, self.factor)?;
        (before != after).then(|| TrialPlan {
            id,
            kind: self.id.to_owned(),
            direction,
            before,
            after,
            max_blocks: match slice.cmp(&slice::SLICE) {
                Ordering::Less => SHORT_BLOCKS,
                Ordering::Equal => BLOCKS,
                Ordering::Greater => LONG_BLOCKS,
            },
        })
    }
}
