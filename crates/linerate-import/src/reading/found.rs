//! What was found in an output.

use linerate_facts::Inventory;
use linerate_record::reported::{
    Carrier, Disk, DiskRow, Measured, Outcome, Setup, SizeRow, Sizes, Tool, Transfer, Trip,
};

use super::Notes;

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
    pub(crate) notes: Notes,
    /// Bytes of the section that belong to the output; `None` if all do.
    pub(crate) used: Option<usize>,
}

impl Found {
    /// An output of a program, without results. It has so many bytes of the section.
    pub(crate) fn of(program: &str, used: usize, notes: Notes) -> Self {
        Self { tool: Tool::named(program), notes, used: Some(used), ..Self::default() }
    }

    /// The same; an error if it has no result.
    pub(crate) fn complete(self, why: &str) -> Result<Self, String> {
        if self.results.is_empty() { Err(why.to_owned()) } else { Ok(self) }
    }

    /// With one more result.
    pub(crate) fn with(mut self, title: &str, line: u64, measured: Measured) -> Self {
        self.results.push(outcome(title, line, measured));
        self
    }
}

/// A result, of the output that begins at a line.
pub(crate) fn outcome(title: &str, line: u64, measured: Measured) -> Outcome {
    Outcome { title: title.to_owned(), line, measured }
}

/// A result that is one transfer, without a title.
pub(crate) fn transfer(line: u64, transfer: Transfer) -> Outcome {
    outcome("", line, Measured::Transfer(Box::new(transfer)))
}

/// A disk, or a copy, of which one row was measured.
pub(crate) fn disk(row: DiskRow) -> Disk {
    Disk { rows: vec![row], ..Disk::default() }
}

/// A table of messages that go to the other end and back, of which a time is half of a round trip.
pub(crate) fn ping_pong(rows: Vec<SizeRow>) -> Measured {
    let table = sizes("ping-pong", Trip::Half, rows);
    Measured::Sizes(Sizes { carrier: Some(Carrier::Messages), both: true, ..table })
}

/// A table by size, of an unknown protocol in one direction.
pub(crate) fn sizes(operation: impl Into<String>, trip: Trip, rows: Vec<SizeRow>) -> Sizes {
    let (operation, setup) = (operation.into(), Setup::default());
    Sizes { carrier: None, operation, trip, both: false, rows, setup }
}
