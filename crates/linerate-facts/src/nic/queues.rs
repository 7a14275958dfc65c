//! Queues of a port, their rings and interrupts, and how packets are spread over them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A setting and its maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Setting {
    /// Present value.
    pub now: Option<u32>,
    /// Largest value that the driver accepts.
    pub most: Option<u32>,
}

impl Setting {
    /// Both values, if the present one could be raised.
    pub fn below_most(self) -> Option<(u32, u32)> {
        let (now, most) = (self.now?, self.most?);
        (now < most).then_some((now, most))
    }
}

/// Channels of a port: groups of queues with one interrupt each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Channels {
    /// Channels that only receive.
    pub rx: Setting,
    /// Channels that only send.
    pub tx: Setting,
    /// Channels that do both.
    pub combined: Setting,
}

/// Descriptor rings of a port, in packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Rings {
    /// Receive.
    pub rx: Setting,
    /// Send.
    pub tx: Setting,
}

/// Interrupt coalescing: how long interrupts are delayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Coalesce {
    /// Microseconds after a packet is received.
    pub rx_usecs: Option<u32>,
    /// Packets received before an interrupt.
    pub rx_frames: Option<u32>,
    /// Microseconds after a packet is sent.
    pub tx_usecs: Option<u32>,
    /// Packets sent before an interrupt.
    pub tx_frames: Option<u32>,
    /// The driver adapts the receive settings to the load.
    pub adaptive_rx: Option<bool>,
    /// The driver adapts the send settings to the load.
    pub adaptive_tx: Option<bool>,
}

/// How received packets are spread over queues by their hash.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rss {
    /// Hash function: `toeplitz`, `xor`, `crc32`; empty when unknown.
    pub function: String,
    /// For each value of the hash, the queue.
    pub table: Vec<u32>,
}

impl Rss {
    /// The queues that get packets, in ascending order.
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
    /// Receives.
    Rx,
    /// The queue sends.
    Tx,
}

/// A queue of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The direction of the packets.
    pub direction: QueueDirection,
    /// Number, counted for each direction.
    pub number: u32,
    /// Poller that serves it (6.8+).
    pub napi: Option<u32>,
    /// Interrupt that wakes the poller.
    pub irq: Option<u32>,
    /// CPUs that packets are handed to (RPS), or that send by this queue (XPS); empty is off.
    pub cpus: Option<Vec<u32>>,
    /// Flows that follow their application (RFS), of a receive queue; 0 is off.
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
