//! Errors and drops that a port counted.

use serde::{Deserialize, Serialize};

/// Counts of a port since boot: errors, drops, and all packets for comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortErrors {
    /// All packets that the port received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_packets: Option<u64>,
    /// All bytes that the port sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx_bytes: Option<u64>,
    /// Damaged packets received.
    pub rx_errors: Option<u64>,
    /// Packets that could not be sent.
    pub tx_errors: Option<u64>,
    /// Packets that were received but dropped by the host, or that belong to a protocol which it does not handle.
    pub rx_dropped: Option<u64>,
    /// Packets dropped while sending.
    pub tx_dropped: Option<u64>,
    /// Packets lost because the host had no buffer for them.
    pub rx_missed: Option<u64>,
    /// Packets lost because the receive queue overran.
    pub rx_fifo: Option<u64>,
    /// Packets received with a wrong checksum, often because of a bad cable or transceiver.
    pub rx_crc: Option<u64>,
    /// Collisions, which occur only on a half-duplex link.
    pub collisions: Option<u64>,
    /// Number of times that the link went up or down.
    pub carrier_changes: Option<u32>,
}

/// A counter, with the name that its source gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// Name of the counter.
    pub name: String,
    /// Value of the counter, since it was last cleared.
    pub value: u64,
}

impl PortErrors {
    /// Errors and drops, each with its place, without zeros and unknown counters. Not all of them are losses: the
    /// kernel also counts received packets of unused protocols as dropped, and packets that collided are sent again.
    //= Linux, Documentation/networking/statistics.rst: rx_dropped, collisions
    pub fn counted(&self) -> Vec<(&'static str, u64)> {
        let all = [
            ("rx errors", self.rx_errors),
            ("rx dropped or unhandled", self.rx_dropped),
            ("rx missed", self.rx_missed),
            ("rx fifo", self.rx_fifo),
            ("tx errors", self.tx_errors),
            ("tx dropped", self.tx_dropped),
            ("collisions", self.collisions),
        ];
        let some = |(name, count): (&'static str, Option<u64>)| Some((name, count?));
        all.into_iter().filter_map(some).filter(|(_, n)| *n > 0).collect()
    }
}
