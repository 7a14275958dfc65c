//! Features of transports: what causes, factors and stages ask of a row.

/// What the bytes of a transport pass, or what its loads have. A row of the table lists the features of its transport. A
/// cause or a factor that needs one applies to no other transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// The bytes pass a network port.
    Port,
    /// The bytes pass a network card and its slot.
    Card,
    /// Packets pass the kernel's network stack.
    Stack,
    /// Connections: windows, retransmissions, congestion control.
    Connections,
    /// Datagrams: no congestion control and no retransmissions.
    Datagrams,
    /// Requests to an RDMA device, without the kernel in between.
    Verbs,
    /// Operations on the memory of this host, without a kernel or a far end in between.
    Memory,
    /// Operations that are counted one by one. A plan may keep a number of them in flight: [`crate::Knobs::depth`].
    Operations,
    /// A new connection for each message.
    Redial,
}
