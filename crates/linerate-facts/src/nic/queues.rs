//! Queues of a port, their rings and interrupts, and how packets are spread over them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of a setting, and its maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Setting {
    /// Present value of the setting.
    pub now: Option<u32>,
    /// Largest value of the setting that the driver accepts.
    pub most: Option<u32>,
}

impl Setting {
    /// The present value and the maximum, if the present value can be raised.
    pub fn below_most(self) -> Option<(u32, u32)> {
        let (now, most) = (self.now?, self.most?);
        (now < most).then_some((now, most))
    }
}

/// Channels of a port: groups of queues with one interrupt each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Channels {
    /// Channels that only receive packets.
    pub rx: Setting,
    /// Channels that only send packets.
    pub tx: Setting,
    /// Channels that receive and send packets.
    pub combined: Setting,
}

/// Sizes of the descriptor rings of a port, in packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Rings {
    /// Size of a receive ring.
    pub rx: Setting,
    /// Size of a send ring.
    pub tx: Setting,
}

/// Interrupt coalescing: how long, and for how many packets, interrupts are delayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Coalesce {
    /// Microseconds from a received packet to the interrupt.
    pub rx_usecs: Option<u32>,
    /// Number of packets received before an interrupt.
    pub rx_frames: Option<u32>,
    /// Microseconds from a sent packet to the interrupt.
    pub tx_usecs: Option<u32>,
    /// Number of packets sent before an interrupt.
    pub tx_frames: Option<u32>,
    /// Whether the driver adapts the receive settings to the load.
    pub adaptive_rx: Option<bool>,
    /// Whether the driver adapts the send settings to the load.
    pub adaptive_tx: Option<bool>,
}

/// How the card distributes received packets over its queues, by a hash (RSS).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rss {
    /// Hash function: `toeplitz`, `xor`, `crc32`; empty when unknown.
    pub function: String,
    /// Number of the queue for each value of the hash.
    pub table: Vec<u32>,
}

impl Rss {
    /// The queues to which the table sends packets, in ascending order.
    pub fn queues(&self) -> Vec<u32> {
        let queues: BTreeSet<u32> = self.table.iter().copied().collect();
        queues.into_iter().collect()
    }
}

/// Direction of a queue.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum QueueDirection {
    /// The queue receives packets.
    Rx,
    /// The queue sends packets.
    Tx,
}

/// A queue of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Whether the queue receives or sends.
    pub direction: QueueDirection,
    /// Number of the queue. Each direction counts from 0.
    pub number: u32,
    /// Id of the poller (NAPI) that serves the queue (Linux 6.8 and later).
    pub napi: Option<u32>,
    /// Number of the interrupt that wakes the poller.
    pub irq: Option<u32>,
    /// CPUs to which packets of a receive queue are passed (RPS), or that use this send queue (XPS); empty is off.
    pub cpus: Option<Vec<u32>>,
    /// Number of flows of a receive queue that follow their application to its CPU (RFS); 0 is off.
    pub flows: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_the_queues_that_get_packets() {
        let rss = Rss { table: vec![0, 2, 0, 2], ..Rss::default() };
        assert_eq!(rss.queues(), [0, 2]);
    }
}
