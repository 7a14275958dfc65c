//! The content that was read from an output.

use linerate_facts::Inventory;
use linerate_record::reported::{
    Carrier, Disk, DiskRow, Measured, Outcome, Setup, SizeRow, Sizes, Tool, Transfer, Trip,
};

use super::Notes;

/// The content of one output.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The program that printed the output.
    pub(crate) tool: Tool,
    /// The results in the output.
    pub(crate) results: Vec<Outcome>,
    /// The facts in the output.
    pub(crate) facts: Inventory,
    /// Notes about lines that were not understood, and about corrections. Line numbers are those of the input.
    pub(crate) notes: Notes,
    /// Number of bytes of the section that belong to the output; `None` if all do.
    pub(crate) used: Option<usize>,
}

impl Found {
    /// An output of a program, without results, that uses the first `used` bytes of the section.
    pub(crate) fn of(program: &str, used: usize, notes: Notes) -> Self {
        Self { tool: Tool::named(program), notes, used: Some(used), ..Self::default() }
    }

    /// Returns this output, or the error `why` if it has no results.
    pub(crate) fn complete(self, why: &str) -> Result<Self, String> {
        if self.results.is_empty() { Err(why.to_owned()) } else { Ok(self) }
    }

    /// Adds a result.
    pub(crate) fn with(mut self, title: &str, line: u64, measured: Measured) -> Self {
        self.results.push(outcome(title, line, measured));
        self
    }
}

/// A result with this title, of an output that begins at `line`.
pub(crate) fn outcome(title: &str, line: u64, measured: Measured) -> Outcome {
    Outcome { title: title.to_owned(), line, measured }
}

/// A result without a title that is one transfer.
pub(crate) fn transfer(line: u64, transfer: Transfer) -> Outcome {
    outcome("", line, Measured::Transfer(Box::new(transfer)))
}

/// The result for a disk or a copy with one row.
pub(crate) fn disk(row: DiskRow) -> Disk {
    Disk { rows: vec![row], ..Disk::default() }
}

/// A table of messages that go to the other end and back. Each time is half of a round trip.
pub(crate) fn ping_pong(rows: Vec<SizeRow>) -> Measured {
    let table = sizes("ping-pong", Trip::Half, rows);
    Measured::Sizes(Sizes { carrier: Some(Carrier::Messages), both: true, ..table })
}

/// A table by size, for one direction of an unknown protocol.
pub(crate) fn sizes(operation: impl Into<String>, trip: Trip, rows: Vec<SizeRow>) -> Sizes {
    let (operation, setup) = (operation.into(), Setup::default());
    Sizes { carrier: None, operation, trip, both: false, rows, setup }
}
