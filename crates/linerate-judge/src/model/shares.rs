//! The TCP counts of the sender's connections.

use linerate_units::{Bytes, Nanos, Rate};

/// The sender's TCP counters over the measured time: means over streams, and shares of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TcpShares {
    /// Share of time in which the receiver's window limited the sender: by the kernel's clock, or the share of samples
    /// in which the data in flight filled the window, whichever is larger.
    pub rwnd_limited: Option<f64>,
    /// Share of time in which the send buffer limited the sender: by the kernel's clock, or the share of samples in
    /// which the buffer was full of data already sent, whichever is larger.
    pub sndbuf_limited: Option<f64>,
    /// Share of samples in which the program left the connection without a full segment to send, although the send
    /// buffer had room and no unacknowledged data delayed the rest.
    pub starved: Option<f64>,
    /// The part of `starved` in which less than a segment waited although nothing was unacknowledged: the program
    /// delays it (`TCP_CORK`, `MSG_MORE`). `None` for linerate's own load.
    pub corked: Option<f64>,
    /// Share of samples in which less than a segment waited for the late acknowledgement of a small
    /// one (Nagle's algorithm). `None` for linerate's own load.
    pub nagle: Option<f64>,
    /// The remaining share of time, in which congestion control limited the sender.
    pub network: Option<f64>,
    /// Payload in flight of one stream, in bytes: mean over streams and time.
    pub in_flight: Option<Bytes>,
    /// Window offered to one stream, in bytes: mean over streams and time.
    pub window: Option<Bytes>,
    /// Whether both ends agreed to scale windows: otherwise no window exceeds 64 KiB.
    pub window_scaling: Option<bool>,
    /// Congestion window of one stream, in bytes: mean over streams and time.
    pub cwnd: Option<Bytes>,
    /// The congestion window, if that of every stream settled at one value, was full, and no longer changed; else
    /// `None`.
    pub cwnd_stood: Option<Bytes>,
    /// Payload of one stream that was written and not sent yet, in bytes: mean over streams and time.
    pub not_sent: Option<Bytes>,
    /// Smoothed round-trip time of the kernel: mean over streams and time.
    pub rtt: Option<Nanos>,
    /// Shortest round-trip time that the kernel measured.
    pub min_rtt: Option<Nanos>,
    /// Bytes retransmitted over bytes sent.
    pub retransmitted: Option<f64>,
    /// Received segments with a congestion mark (ECN), over all received segments.
    pub marked: Option<f64>,
    /// Segments sent per second, all streams together, retransmitted ones included.
    pub segments: Option<f64>,
    /// Number of times per second that the sender detected reordering on the path.
    pub reordered: Option<f64>,
    /// Segments per second that were retransmitted needlessly: the receiver reported them as duplicates (DSACK), or
    /// received more than the lost ones. `None` if the receiver may not report this.
    pub needless: Option<f64>,
    /// Segments retransmitted per second, all streams together.
    pub repeated: Option<f64>,
    /// The most segments that any stream retransmitted since its connection began, also before the measured time.
    pub repeated_ever: Option<u64>,
    /// Number of expired retransmission timers, all streams together; `None` before Linux 6.7.
    pub timeouts: Option<f64>,
    /// Least share of time for which a stream waited for a retransmission timer; `None` before Linux 6.7.
    pub timer_limited: Option<f64>,
    /// The pace that the application set for each stream.
    pub max_pacing: Option<Rate>,
    /// Memory of the send buffer (`sk_sndbuf`), in bytes: mean over streams and time.
    pub send_memory: Option<Bytes>,
}

impl TcpShares {
    /// Memory that the send buffer can use: its size, or the data in flight if the buffer is smaller than a group of
    /// segments (64 KiB). The kernel only checks whether there is some room before it accepts a group, not whether
    /// there is room for all of it.
    //= Linux, tcp_sendmsg_locked(): sk_stream_memory_free() before the group is allocated
    pub fn send_room(&self) -> Option<Bytes> {
        let in_flight = self.in_flight.unwrap_or_default();
        self.send_memory.map(|memory| memory.max(in_flight))
    }
}
