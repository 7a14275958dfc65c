//! Histograms of times, as records keep them.

use serde::{Deserialize, Serialize};

/// A histogram of times: each value that was seen, with its count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Id of the set whose connections were timed.
    pub set: u32,
    /// Times in nanoseconds (three significant digits), ascending, each with the number of round trips that took it.
    pub counts: Vec<(u64, u64)>,
    /// How many of the counted round trips were due and not answered: these took at least the time with which they are
    /// counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered: u64,
    /// Number of further messages that were sent and never answered, where a path may lose messages. No other count
    /// includes them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Histogram of the times that answers waited in the kernel of the end that sent the message, before its program
    /// read them. Empty if the kernel did not stamp arrivals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<(u64, u64)>,
    /// Exact figures of the times, to the nanosecond. `None` if there are no times, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<Exact>,
}

/// Exact figures of all times of a histogram, to the nanosecond: its counts have only three digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exact {
    /// Shortest of all times, in nanoseconds.
    pub least: u64,
    /// Longest of all times, in nanoseconds.
    pub most: u64,
    /// Sum of all times, in nanoseconds.
    pub sum: u64,
    /// Standard deviation of all times, in picoseconds.
    pub deviation_ps: u64,
}

/// Omits a count of zero, as in records that are older than the field.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
