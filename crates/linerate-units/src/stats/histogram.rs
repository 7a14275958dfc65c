//! Histograms of times, as records keep them.

use serde::{Deserialize, Serialize};

/// A histogram of times: counts by value, sparse.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Set whose connections were timed.
    pub set: u32,
    /// Values in nanoseconds (three significant digits), ascending, with how often each was seen.
    pub counts: Vec<(u64, u64)>,
    /// Number of the counted round trips that were due and not answered: these took at least the recorded
    /// time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered: u64,
    /// Number of further messages that were sent and never answered, where a path may lose them. They are in
    /// no other count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Times that answers waited in the kernel of the asking end before its program read them, as counts.
    /// Empty if the kernel did not stamp arrivals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<(u64, u64)>,
    /// What is known of the times to the nanosecond. `None` if there are none, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<Exact>,
}

/// What is known of all times of a histogram to the nanosecond: its counts have three digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exact {
    /// Shortest time, in nanoseconds.
    pub least: u64,
    /// Longest time, in nanoseconds.
    pub most: u64,
    /// Sum of all times, in nanoseconds.
    pub sum: u64,
    /// Standard deviation of all times, in picoseconds.
    pub deviation_ps: u64,
}

/// Records without these round trips are older than the field that counts them.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
