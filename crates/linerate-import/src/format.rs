//! One format: how it is recognised, how it is read, and what is documented about it.

pub(crate) use crate::reading::{Found, Section, Start};

/// What an output has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Measured results.
    Results,
    /// Facts of a host.
    Facts,
}

/// How far an output goes where a line of it could begin another one of the same format.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    /// Up to that line.
    One,
    /// Beyond it: the parts of a host that facts describe one after the other, such as devices, begin alike.
    Parts,
    /// Beyond it, if this says so of the text of the output so far and of the rest from that line on.
    GoesOn(fn(&str, &str) -> bool),
    /// The reader finds the end, and the start of the next one, by itself.
    Own,
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
    /// How the reader was checked: with the program's own output (`run here`, and the versions), or with output that
    /// others published.
    pub evidence: &'static str,
    /// What cannot be known from such an output. One sentence.
    pub unknown: &'static str,
    /// Whether an output of this format begins here. Looks at a bounded number of lines.
    pub(crate) starts: fn(Start<'_>) -> bool,
    /// Reads one output. One that has neither results nor facts, but notes, could not be read, and its first note
    /// says why; unlike behind an error, the reader goes on where it ends.
    pub(crate) read: fn(&Section<'_>) -> Result<Found, String>,
    /// How far it goes.
    pub(crate) extent: Extent,
    /// Ends of its first line, if that is words alone and may stand before other lines of words.
    pub(crate) first_words: &'static [&'static str],
}

impl Format {
    /// What rows of results do not say themselves.
    pub(crate) const RESULTS: Self = Self {
        id: "",
        label: "",
        holds: Holds::Results,
        versions: "",
        evidence: "",
        unknown: "",
        starts: |_| false,
        read: |_| Err(String::new()),
        extent: Extent::One,
        first_words: &[],
    };

    /// The same of rows of facts.
    pub(crate) const FACTS: Self =
        Self { holds: Holds::Facts, extent: Extent::Parts, ..Self::RESULTS };
}
