//! Factors: the things that a trial can change.
//!
//! A cause predicts the effect of a change of a factor; a trial makes the change. A factor is a row of the
//! table here. `causes/predict.rs::bystander` has the predictions for factors that a cause is not about.

use crate::transport::Scope;

/// The class of changes that a factor belongs to. Causes predict the same of most factors of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// More streams at the same time.
    Parallel,
    /// Larger buffers and windows, of connections or of a host.
    LargerBuffer,
    /// Buffers and windows of half the size.
    HalfBuffer,
    /// Another setting for the way in which a host handles packets.
    Packets,
    /// More CPU work for each byte.
    Work,
    /// Smaller reads or writes.
    Calls,
    /// Another pace of the sender.
    Pace,
    /// Another congestion control of the connections.
    Congestion,
    /// Another size of the segments.
    Segment,
    /// Send without a copy.
    Copy,
    /// Other CPUs or another node for the threads.
    Placement,
    /// Other connections with the same settings.
    Redial,
}

macro_rules! factors {
    ($($factor:ident $class:ident $scope:ident $doc:literal;)*) => {
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

            /// The loads that have it. Datagrams have no window and no congestion control, and each write is one datagram.
            pub const fn scope(self) -> Scope {
                match self {
                    $(Self::$factor => Scope::$scope,)*
                }
            }
        }
    };
}

factors! {
    MoreStreams Parallel Any "Twice the streams.";
    Crowd Parallel Tcp "Sixteen times the streams, compared with four times as many: what counts is how much larger a share they lose.";
    MoreDepth Parallel Any "Twice the operations in flight.";
    MoreQueuePairs Parallel Rdma "Twice the queue pairs, with the same number of requests in flight.";
    MoreReads Parallel Rdma "Twice the reads that the devices keep in flight.";
    MoreInline Calls Rdma "Payload inside of requests.";
    LargerWindow LargerBuffer Sockets "A larger receive buffer, as far as the host allows.";
    LargerSendBuffer LargerBuffer Tcp "A larger send buffer, as far as the host allows.";
    HostWindow LargerBuffer Tcp "A host that allows a larger receive buffer.";
    HostSendBuffer LargerBuffer Tcp "A host that allows a larger send buffer.";
    HalfWindow HalfBuffer Tcp "A receive window of half the bytes that are in flight.";
    HalfSendBuffer HalfBuffer Tcp "Half the send buffer.";
    HostOffloads Packets Sockets "The port's offloads switched on, on one end's host.";
    HostRoom Packets Tcp "A host with more room in the queue of its own that drops.";
    HostSpread Packets Tcp "Packets of a host's port handed to its idle CPUs.";
    SenderWork Work Any "More CPU work for each byte on the sending threads.";
    ReceiverWork Work Any "More CPU work for each byte on the receiving threads.";
    SmallerWrites Calls Tcp "Half the bytes in each write.";
    SmallerReads Calls Tcp "Half the bytes in each read.";
    Unpaced Pace Sockets "The requested pace removed.";
    Paced Pace Sockets "Each stream paced at half its rate. Goodput follows the pace; what counts is the loss and the round trips under this load.";
    OtherCongestion Congestion Tcp "Another congestion control.";
    SmallerMss Segment Sockets "Segments of half the size; small ones where none get through.";
    Discard Copy Tcp "Payload dropped in the kernel instead of copied to the receiving program.";
    ZeroCopy Copy Tcp "Payload handed over as pages that the kernel sends itself, instead of copied from the sending program.";
    NearInterrupts Placement Ports "One end's threads on the NUMA node that the port's interrupts are sent to.";
    OtherCpu Placement Any "One end's threads on CPUs that had little to do.";
    OtherPorts Redial Tcp "Other source ports, by which fewer streams share a receive queue.";
}
