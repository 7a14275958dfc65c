//! Factors: what a trial can change, and the kinds of trials that change them.
//!
//! A cause predicts the effect of a change of a factor; a trial makes the change. Factors and kinds of trials are rows
//! of tables in this module. `causes/predict.rs::bystander` has the predictions of a cause for factors that have
//! nothing to do with it.

use crate::transport::Feature;

/// The class of a factor, by what its change does. Most factors of a class have the same predicted effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// More streams at the same time.
    Parallel,
    /// Larger buffers and windows, of connections or of a host.
    LargerBuffer,
    /// Buffers and windows of half the size.
    HalfBuffer,
    /// Another setting of how a host handles packets.
    Packets,
    /// More CPU work for each byte.
    Work,
    /// Smaller reads or writes.
    Calls,
    /// Another pace of the sender, or none.
    Pace,
    /// Another congestion control of the connections.
    Congestion,
    /// Another size of the segments.
    Segment,
    /// Payload is handed over or received without a copy.
    Copy,
    /// Other operations on a file.
    Storage,
    /// Other CPUs or another NUMA node for the threads of an end.
    Placement,
    /// Connections from other TCP ports, with the same settings.
    Redial,
}

macro_rules! factors {
    ($($factor:ident $class:ident [$($feature:ident)?] $doc:literal;)*) => {
        /// The factor that a trial changes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Factor {
            $(#[doc = $doc] $factor,)*
        }

        impl Factor {
            /// The class of changes that the factor belongs to.
            pub const fn class(self) -> Class {
                match self {
                    $(Self::$factor => Class::$class,)*
                }
            }

            /// The features that a transport needs for a trial of this factor. Datagrams have no window and no
            /// congestion control, and each write is one datagram.
            pub const fn needs(self) -> &'static [Feature] {
                match self {
                    $(Self::$factor => &[$(Feature::$feature)?],)*
                }
            }
        }
    };
}

factors! {
    MoreStreams Parallel [] "Twice the streams.";
    Crowd Parallel [Connections] "Sixteen times the streams, compared with four times as many: what counts is how much larger a share they lose.";
    MoreDepth Parallel [] "Twice the operations in flight.";
    MoreQueuePairs Parallel [Verbs] "Twice the queue pairs, with the same number of requests in flight.";
    MoreReads Parallel [Verbs] "Twice the reads that the devices keep in flight.";
    MoreInline Calls [Verbs] "Payload inside of requests.";
    LargerWindow LargerBuffer [Stack] "A larger receive buffer, as far as the host allows.";
    LargerSendBuffer LargerBuffer [Connections] "A larger send buffer, as far as the host allows.";
    HostWindow LargerBuffer [Connections] "A host that allows a larger receive buffer.";
    HostSendBuffer LargerBuffer [Connections] "A host that allows a larger send buffer.";
    HalfWindow HalfBuffer [Connections] "A receive window of half the bytes that are in flight.";
    HalfSendBuffer HalfBuffer [Connections] "Half the send buffer.";
    HostOffloads Packets [Stack] "The port's offloads switched on, on one end's host.";
    HostRoom Packets [Connections] "A host with more room in the queue of its own that drops.";
    HostSpread Packets [Connections] "Packets of a host's port handed to its idle CPUs.";
    SenderWork Work [] "More CPU work for each byte on the sending threads.";
    ReceiverWork Work [] "More CPU work for each byte on the receiving threads.";
    SmallerWrites Calls [Connections] "Half the bytes in each write.";
    SmallerReads Calls [Connections] "Half the bytes in each read.";
    Unpaced Pace [Stack] "The requested pace removed.";
    Paced Pace [Stack] "Each stream paced at half its rate. Goodput follows the pace; what counts is the loss and the round trips under this load.";
    OtherCongestion Congestion [Connections] "Another congestion control.";
    SmallerMss Segment [Stack] "Segments of half the size; small ones where none get through.";
    Discard Copy [Connections] "Payload dropped in the kernel instead of copied to the receiving program.";
    PastCache Copy [Disk] "Reads and writes past the page cache, not through it.";
    SmallerOperations Storage [Disk] "Operations of half the largest request of a disk, compared with operations of a whole one, as many in flight.";
    Unsynced Storage [Disk] "Writes that do not wait until their data are stored for good.";
    LargerReadAhead Storage [Disk] "A descriptor for which the kernel reads twice as far ahead.";
    ZeroCopy Copy [Connections] "Payload handed over as pages that the kernel sends itself, instead of copied from the sending program.";
    NearInterrupts Placement [Port] "One end's threads on the NUMA node that the port's interrupts are sent to.";
    OtherCpu Placement [] "One end's threads on CPUs that had little to do.";
    OtherPorts Redial [Connections] "Other source ports, by which fewer streams share a receive queue.";
}

/// A row of the table of trial kinds, [`TRIALS`].
#[derive(Debug, Clone, Copy)]
pub struct TrialKind {
    /// Stable id of the trial kind, as in records.
    pub id: &'static str,
    /// The factor that the trial changes.
    pub factor: Factor,
    /// The tried change in words that follow "testing".
    pub words: &'static str,
    /// The change in the past tense, as text before "gave x1.92".
    pub change: &'static str,
}

/// Every kind of trial. If two kinds distinguish the same rival causes, the run prefers the one listed first. Kinds
/// that can show a gain are listed before kinds that only show a loss.
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
    // Trials that change a setting of a host. They need the user's permission.
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
    // These trials are last: only the trial shows what share of the CPU time a copy costs here.
    TrialKind {
        id: "discard",
        factor: Factor::Discard,
        words: "whether the receiving thread gains where nothing is copied to it",
        change: "dropping the payload in the kernel",
    },
    TrialKind {
        id: "past-cache",
        factor: Factor::PastCache,
        words: "whether the rate is another one past the page cache",
        change: "reads and writes past the page cache",
    },
    TrialKind {
        id: "unsynced",
        factor: Factor::Unsynced,
        words: "what the wait for stored data costs",
        change: "writes that do not wait until their data are stored",
    },
    TrialKind {
        id: "larger-read-ahead",
        factor: Factor::LargerReadAhead,
        words: "whether reading further ahead helps",
        change: "reading twice as far ahead",
    },
    TrialKind {
        id: "smaller-operations",
        factor: Factor::SmallerOperations,
        words: "whether the disk has room for so many requests",
        change: "requests of half the size",
    },
    TrialKind {
        id: "zero-copy",
        factor: Factor::ZeroCopy,
        words: "whether the sending thread gains where nothing is copied from it",
        change: "handing payload over without a copy",
    },
];

/// The row of the trial kind with this id.
pub fn kind(id: &str) -> Option<&'static TrialKind> {
    TRIALS.iter().find(|k| k.id == id)
}
