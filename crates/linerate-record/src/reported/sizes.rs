//! Results of messages of several sizes, as a program reported them.

use serde::{Deserialize, Serialize};

use super::{Carrier, Setup};
use linerate_units::{Bytes, Nanos, Rate};

/// Whether the times of a table are of whole or half round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trip {
    /// Whole round trips.
    Whole,
    /// Halves of round trips, often called one-way latency.
    Half,
    /// The output does not say whether round trips are whole.
    Unknown,
}

/// A table by message size: the times or the rate of each size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sizes {
    /// The protocol that carried the messages; `None` if unknown.
    pub carrier: Option<Carrier>,
    /// The operation in words: `RDMA read`, `send`, `MPI ping-pong`; empty if unknown.
    pub operation: String,
    /// Whether the times are of whole or half round trips.
    pub trip: Trip,
    /// Whether the rates count both directions of an exchange, or of a bidirectional test.
    pub both: bool,
    /// The rows, in the order of the table; not empty.
    pub rows: Vec<SizeRow>,
    /// How the test was set up.
    #[serde(default)]
    pub setup: Setup,
}

/// A router on a path, or the host at its end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Hop {
    /// Place of the hop on the path, from 1.
    pub number: u32,
    /// Name or address of the hop; empty if it never answered.
    pub host: String,
    /// Counts and times of the hop's answers.
    pub row: SizeRow,
}

impl Hop {
    /// Packets that the hop did not answer, and packets sent to it; `None` if it never answered, or if unknown.
    pub fn lost(&self) -> Option<(u64, u64)> {
        let (answers, lost) = (self.row.samples?, self.row.lost?);
        (answers > 0 && !self.host.is_empty()).then(|| (lost, answers.saturating_add(lost)))
    }
}

/// Figures of the messages of one size. Those that the table does not have are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeRow {
    /// Payload of a message in bytes.
    pub size: Bytes,
    /// Number of times or messages that were measured.
    pub samples: Option<u64>,
    /// Messages that were not answered; `None` if unknown.
    #[serde(default)]
    pub lost: Option<u64>,
    /// Time to live (hop limit) with which all answers arrived; `None` if unknown, or if it differs.
    #[serde(default)]
    pub ttl: Option<u8>,
    /// Shortest time.
    pub least: Option<Nanos>,
    /// Median time.
    pub typical: Option<Nanos>,
    /// Mean time.
    pub mean: Option<Nanos>,
    /// Standard deviation of the times.
    pub deviation: Option<Nanos>,
    /// 99th percentile of the times.
    pub p99: Option<Nanos>,
    /// 99.9th percentile of the times.
    pub p999: Option<Nanos>,
    /// Longest time.
    pub most: Option<Nanos>,
    /// Payload per second.
    pub rate: Option<Rate>,
    /// Messages per second.
    pub messages: Option<f64>,
}

impl SizeRow {
    /// The time that represents the size: the median, else the mean, else the shortest.
    pub fn time(&self) -> Option<Nanos> {
        self.typical.or(self.mean).or(self.least)
    }
}
