//! Two records compared, for people and for programs.

pub mod json;
mod text;

use linerate_explain::diff::{Diff, Judged};

pub use json::json;
pub use text::page;

/// Two records, and what became of the path from one to the other.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The first record.
    pub before: &'a Judged<'a>,
    /// The second.
    pub after: &'a Judged<'a>,
    /// The differences.
    pub diff: &'a Diff,
}

#[cfg(test)]
#[path = "tests/sample.rs"]
mod sample;
