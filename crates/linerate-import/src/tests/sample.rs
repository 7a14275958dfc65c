//! Functions that tests of several formats use.

use linerate_record::reported::{Disk, Measured, Outcome, SizeRow, Sizes, Transfer};
use linerate_units::{Bytes, Nanos, Rate};

use crate::{Part, Refused, read};

/// The one output in a text.
pub(crate) fn part(text: &str) -> Part {
    let parsed = read(text.as_bytes()).unwrap();
    assert_eq!(parsed.parts.len(), 1, "{parsed:?}");
    parsed.parts.into_iter().next().unwrap()
}

/// Why the output in a text could not be read.
pub(crate) fn why(text: &str) -> String {
    match read(text.as_bytes()) {
        Err(Refused::Damaged { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

/// Whether a note contains these words.
pub(crate) fn notes(part: &Part, words: &str) -> bool {
    part.notes.iter().any(|note| note.what.contains(words))
}

pub(crate) fn sizes(outcome: &Outcome) -> &Sizes {
    match &outcome.measured {
        Measured::Sizes(sizes) => sizes,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn transfer(outcome: &Outcome) -> &Transfer {
    match &outcome.measured {
        Measured::Transfer(transfer) => transfer,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn disk(outcome: &Outcome) -> &Disk {
    match &outcome.measured {
        Measured::Disk(disk) => disk,
        other => panic!("{other:?}"),
    }
}

/// A row with this size; tests set its other figures.
pub(crate) fn row(size: u64) -> SizeRow {
    SizeRow { size: Bytes(size), ..SizeRow::default() }
}

#[expect(clippy::unnecessary_wraps, reason = "a field of a row is an option")]
pub(crate) fn ns(nanos: u64) -> Option<Nanos> {
    Some(Nanos(nanos))
}

#[expect(clippy::unnecessary_wraps, reason = "a field of a row is an option")]
pub(crate) fn bits(rate: u64) -> Option<Rate> {
    Some(Rate(rate))
}
