//! Factors: what a trial can change.
//!
//! A cause predicts what a change of a factor does; a trial makes the change.

use crate::transport::Scope;

/// What a trial changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Factor {
    /// Twice the streams.
    MoreStreams,
    /// Sixteen times the streams, beside four times as many: what counts is how much larger a share they lose.
    Crowd,
    /// Twice the operations in flight.
    MoreDepth,
    /// A larger receive buffer, as far as the host allows.
    LargerWindow,
    /// A receive window of half the bytes that are in flight.
    HalfWindow,
    /// A larger send buffer, as far as the host allows.
    LargerSendBuffer,
    /// A host that allows a larger receive buffer.
    HostWindow,
    /// A host that allows a larger send buffer.
    HostSendBuffer,
    /// The port's offloads switched on, on one end's host.
    HostOffloads,
    /// A host with more room in the queue of its own that drops.
    HostRoom,
    /// Packets of a host's port handed to its idle CPUs.
    HostSpread,
    /// Half the send buffer.
    HalfSendBuffer,
    /// More CPU work for each byte on the sending threads.
    SenderWork,
    /// More CPU work for each byte on the receiving threads.
    ReceiverWork,
    /// Half the bytes in each write.
    SmallerWrites,
    /// Half the bytes in each read.
    SmallerReads,
    /// The pace that was asked for lifted.
    Unpaced,
    /// Another congestion control.
    OtherCongestion,
    /// Each stream paced at half of what it carries: goodput follows, what counts is what it loses and how
    /// long round trips beside it take.
    Paced,
    /// Segments of half the size; small ones where none get through.
    SmallerMss,
    /// Payload dropped in the kernel instead of copied to the receiving program.
    Discard,
    /// Payload handed over as pages that the kernel sends itself, instead of copied from the sending program.
    ZeroCopy,
    /// One end's threads on the NUMA node that the port's interrupts are sent to.
    NearInterrupts,
    /// One end's threads on CPUs that had little to do.
    OtherCpu,
    /// Other source ports, by which fewer streams share a receive queue.
    OtherPorts,
}

impl Factor {
    /// The loads that have it. Datagrams have no window and no congestion control, and a write is one of them.
    pub const fn scope(self) -> Scope {
        match self {
            Self::MoreStreams
            | Self::MoreDepth
            | Self::SenderWork
            | Self::ReceiverWork
            | Self::NearInterrupts
            | Self::OtherCpu => Scope::Any,
            Self::LargerWindow
            | Self::HostOffloads
            | Self::Unpaced
            | Self::Paced
            | Self::SmallerMss => Scope::Sockets,
            Self::Crowd
            | Self::HalfWindow
            | Self::LargerSendBuffer
            | Self::HostWindow
            | Self::HostSendBuffer
            | Self::HalfSendBuffer
            | Self::SmallerWrites
            | Self::SmallerReads
            | Self::OtherCongestion
            | Self::Discard
            | Self::HostRoom
            | Self::HostSpread
            | Self::ZeroCopy
            | Self::OtherPorts => Scope::Tcp,
        }
    }
}
