//! A format of outputs: how it is recognised, how it is read, and what is documented about it.

pub(crate) use crate::reading::{Found, Section, Start};

/// The kind of content of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Results that the program measured.
    Results,
    /// Facts of a host.
    Facts,
}

/// Where an output ends if one of its lines could also begin another output of the same format.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    /// It ends before that line.
    One,
    /// It continues: an output has the facts of several parts of a host, such as devices, and these begin alike.
    Parts,
    /// It continues if this function returns true for the text of the output so far, and the text from that line on.
    GoesOn(fn(&str, &str) -> bool),
    /// The reader of the format finds the end of the output, and the start of the next one, by itself.
    Own,
}

/// One entry in the table of formats.
pub struct Format {
    /// Id that never changes, such as `iperf3-json`.
    pub id: &'static str,
    /// The program and the format of its output: `iperf3, JSON`.
    pub label: &'static str,
    /// The kind of content of the output.
    pub holds: Holds,
    /// Versions of the program that write this format.
    pub versions: &'static str,
    /// How the reader was tested: with the program's own output (`run here`, and the versions), or with output that
    /// other people published.
    pub evidence: &'static str,
    /// What such an output cannot show, in one sentence.
    pub unknown: &'static str,
    /// Whether an output of this format begins here. The function looks at a bounded number of lines.
    pub(crate) starts: fn(Start<'_>) -> bool,
    /// Reads one output. If it returns neither results nor facts but notes, the output could not be read, and the
    /// first note says why; the next output begins where it ends. After an error that end is unknown.
    pub(crate) read: fn(&Section<'_>) -> Result<Found, String>,
    /// Where the output ends if one of its lines could begin another one.
    pub(crate) extent: Extent,
    /// Ends of its first line, if the line is only words and may precede other lines of words.
    pub(crate) first_words: &'static [&'static str],
}

impl Format {
    /// Defaults for the entries of formats with results.
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

    /// Defaults for the entries of formats with facts.
    pub(crate) const FACTS: Self =
        Self { holds: Holds::Facts, extent: Extent::Parts, ..Self::RESULTS };
}
