//! Functions that several tests of disks use.

use linerate_record::reported::{Disk, DiskRow, Measured};

use crate::Parsed;

/// All results about disks in a text.
pub(super) fn disks(parsed: &Parsed) -> Vec<&Disk> {
    let results = parsed.parts.iter().flat_map(|part| &part.results);
    let disks = results.filter_map(|result| match &result.measured {
        Measured::Disk(disk) => Some(disk),
        _ => None,
    });
    disks.collect()
}

/// The rate of a row in bytes per second, rounded.
pub(super) fn rate(row: &DiskRow) -> u64 {
    row.bytes_per_sec.round() as u64
}

/// All notes about a text, one per line.
pub(super) fn notes(parsed: &Parsed) -> String {
    let notes = parsed.parts.iter().flat_map(|part| &part.notes).chain(&parsed.notes);
    let notes: Vec<&str> = notes.map(|note| note.what.as_str()).collect();
    notes.join("\n")
}
