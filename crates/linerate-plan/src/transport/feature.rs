//! Features of transports, which causes, factors and stages need.

/// What the bytes of a transport pass, or what its loads have. A row of the table of transports lists the features. A
/// cause or a factor that needs a feature applies only to transports that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// The bytes pass a network port.
    Port,
    /// The bytes pass a network card and its slot.
    Card,
    /// Packets pass the kernel's network stack.
    Stack,
    /// The loads have connections, with windows, retransmissions and congestion control.
    Connections,
    /// The loads send datagrams, without congestion control and retransmissions.
    Datagrams,
    /// The loads post requests to an RDMA device, without the kernel in between.
    Verbs,
    /// The loads are operations on the memory of this host, without the kernel and without a far end.
    Memory,
    /// The loads have operations that are counted one by one. A plan may set the number in flight:
    /// [`crate::Knobs::depth`].
    Operations,
    /// The bytes are in a file or on a disk.
    Disk,
    /// The loads make a new connection for each message.
    Redial,
}
