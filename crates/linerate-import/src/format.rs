//! One format: how it is recognised, how it is read, and what is documented about it.

pub(crate) use crate::reading::{Found, Section};

/// What an output has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Measured results.
    Results,
    /// Facts of a host.
    Facts,
}

/// How a reader was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// With the real program's own output; the text names the versions that were run.
    RunHere(&'static str),
    /// With published output; the text names its source.
    Published(&'static str),
}

/// One row of the table of formats.
pub struct Format {
    /// Stable id: `iperf3-json`.
    pub id: &'static str,
    /// The program and the form of its output: `iperf3, JSON`.
    pub label: &'static str,
    /// What the output has.
    pub holds: Holds,
    /// Versions of the program that write this form.
    pub versions: &'static str,
    /// How the reader was checked.
    pub evidence: &'static [Evidence],
    /// What cannot be known from such an output. One sentence.
    pub unknown: &'static str,
    /// Whether an output of this format begins at the start of this text, which is the rest of the input from
    /// the start of a line. Looks at a bounded number of bytes.
    pub(crate) starts: fn(&str) -> bool,
    /// Reads one output. One that has neither results nor facts, but notes, could not be read, and its first note
    /// says why; unlike behind an error, the reader goes on where it ends.
    pub(crate) read: fn(&Section<'_>) -> Result<Found, String>,
}
