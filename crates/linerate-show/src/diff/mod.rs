//! The comparison of two records, as text and as JSON.

pub mod json;
mod text;

use linerate_explain::diff::{Diff, Judged};

pub use json::json;
pub use text::page;

/// Two judged records, and their differences.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The first record.
    pub before: &'a Judged<'a>,
    /// The second record.
    pub after: &'a Judged<'a>,
    /// The differences between the two records.
    pub diff: &'a Diff,
}

#[cfg(test)]
#[path = "tests/sample.rs"]
mod sample;
