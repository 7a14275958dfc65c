//! One format: how it is recognised, how it is read, and what is documented about it.

use linerate_facts::Inventory;
use linerate_record::reported::{Measured, Note, Outcome, Sizes, Tool};

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

/// The text of one output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section<'a> {
    /// The text from the first line of the output. It ends before the next line at which an output of any format
    /// begins; of JSON it is all the rest.
    pub(crate) text: &'a str,
    /// Number of its first line in the input, from 1.
    pub(crate) line: u64,
    /// The command that stands in the line before it, without the prompt; `None` if there is none.
    pub(crate) command: Option<&'a str>,
}

/// The content of one output.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The program.
    pub(crate) tool: Tool,
    /// Its results.
    pub(crate) results: Vec<Outcome>,
    /// Its facts.
    pub(crate) facts: Inventory,
    /// Lines that were not understood, and corrections. Line numbers are those of the input.
    pub(crate) notes: Vec<Note>,
    /// Bytes of the section that belong to the output; `None` if all do.
    pub(crate) used: Option<usize>,
}

impl Found {
    /// An output that is one table of sizes, of which `used` bytes belong to it.
    pub(crate) fn table(tool: Tool, (title, line): (&str, u64), sizes: Sizes, used: usize) -> Self {
        Self {
            tool,
            results: vec![Outcome {
                title: title.to_owned(),
                line,
                measured: Measured::Sizes(sizes),
            }],
            used: Some(used),
            ..Self::default()
        }
    }
}
