//! The counts of the sender's connections.

use linerate_units::{Bytes, Nanos, Rate};

/// The sender's TCP counters over the time that counts: means over streams, shares of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TcpShares {
    /// Share of time limited by the receiver's window: the kernel's clock, or the samples in which the data in
    /// flight fill the window, whichever is larger.
    pub rwnd_limited: Option<f64>,
    /// Share of time held by the send buffer: the kernel's clock, or the samples in which all that
    /// the buffer holds is sent already, whichever is larger.
    pub sndbuf_limited: Option<f64>,
    /// Share of samples in which the program left the connection without a full segment to send,
    /// although its buffer had room and nothing unacknowledged kept it from being sent.
    pub starved: Option<f64>,
    /// The part of them in which less than a segment waited although nothing was unacknowledged: the program
    /// delays it (`TCP_CORK`, `MSG_MORE`). `None` for linerate's own load.
    pub corked: Option<f64>,
    /// Share of samples in which less than a segment waited for the late acknowledgement of a small
    /// one (Nagle's algorithm). `None` for linerate's own load.
    pub nagle: Option<f64>,
    /// The remaining share of time: limited by congestion control.
    pub network: Option<f64>,
    /// Payload in flight of one stream, mean.
    pub in_flight: Option<Bytes>,
    /// Window offered to one stream, mean.
    pub window: Option<Bytes>,
    /// Whether both ends agreed to scale windows: without, none exceeds 64 KiB.
    pub window_scaling: Option<bool>,
    /// Congestion window of one stream, mean.
    pub cwnd: Option<Bytes>,
    /// `cwnd`, if the window of every stream settled at one value, was full, and no longer changed.
    pub cwnd_stood: Option<Bytes>,
    /// Payload of one stream that waits in the send queue, mean.
    pub not_sent: Option<Bytes>,
    /// Smoothed round-trip time, mean.
    pub rtt: Option<Nanos>,
    /// Smallest round-trip time.
    pub min_rtt: Option<Nanos>,
    /// Bytes retransmitted over bytes sent.
    pub retransmitted: Option<f64>,
    /// Received segments with a congestion mark (ECN) over received segments.
    pub marked: Option<f64>,
    /// Segments sent in a second, all streams, those that were retransmitted included.
    pub segments: Option<f64>,
    /// Number of times per second that the sender detected reordering on the path.
    pub reordered: Option<f64>,
    /// Segments in a second that were retransmitted needlessly: the receiver reports them as duplicates
    /// (DSACK), or received more than the lost ones. `None` if it may not report this.
    pub needless: Option<f64>,
    /// Segments retransmitted in a second, all streams.
    pub repeated: Option<f64>,
    /// The most segments that a stream had retransmitted since its connection began, be it before the load counted.
    pub repeated_ever: Option<u64>,
    /// Times that the retransmission timers of all streams ran out; `None` before Linux 6.7.
    pub timeouts: Option<f64>,
    /// Minimum share of time that a stream waited for a retransmission timer; `None` before Linux 6.7.
    pub timer_limited: Option<f64>,
    /// The pace that the application set for each stream.
    pub max_pacing: Option<Rate>,
    /// Memory of the send buffer (`sk_sndbuf`), mean.
    pub send_memory: Option<Bytes>,
}

impl TcpShares {
    /// Memory that the send buffer uses: its size, or the data in flight if the buffer is smaller than a group
    /// of segments (64 KiB). The kernel only checks whether there is some room before it accepts a group, not
    /// whether there is room for all of it.
    //= Linux, tcp_sendmsg_locked(): sk_stream_memory_free() before the group is allocated
    pub fn send_room(&self) -> Option<Bytes> {
        let in_flight = self.in_flight.unwrap_or_default();
        self.send_memory.map(|memory| memory.max(in_flight))
    }
}
