//! Numbers, sizes and notes that the readers of this folder share.

use crate::text::MOST_NOTES;
use linerate_record::reported::{Disk, Measured, Note, Outcome};
use linerate_units::{Bytes, Nanos};

/// Largest number that is taken for a figure: far above what any disk does, and far below the limits of `u64`.
const LARGEST: f64 = 1e18;
/// Factors of the prefixes of units.
const BINARY: &[(char, u64)] =
    &[('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30), ('t', 1 << 40), ('p', 1 << 50)];

/// A note about a line.
fn note(line: u64, what: impl Into<String>) -> Note {
    Note { line: Some(line), what: what.into() }
}

/// Adds a note about a line, if there are not too many.
pub(super) fn say(notes: &mut Vec<Note>, line: u64, what: impl Into<String>) {
    if notes.len() < MOST_NOTES {
        notes.push(note(line, what));
    }
}

/// A result of a disk.
pub(super) fn outcome(title: &str, line: u64, disk: Disk) -> Outcome {
    Outcome { title: title.to_owned(), line, measured: Measured::Disk(disk) }
}

/// A number that can be a figure: neither negative nor endless.
pub(super) fn number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    usable(number)
}

/// The number, if it can be a figure.
pub(super) fn usable(number: f64) -> Option<f64> {
    (0.0..=LARGEST).contains(&number).then_some(number)
}

/// The number, if it can be a figure and is not zero.
pub(super) fn some(number: f64) -> Option<f64> {
    usable(number).filter(|n| *n > 0.0)
}

/// A time of `count` units of `unit` nanoseconds; `None` for zero, which no operation takes.
pub(super) fn time(count: f64, unit: f64) -> Option<Nanos> {
    some(count * unit).map(|n| Nanos(n.round() as u64))
}

/// A size with a binary prefix: `4k`, `16M`, `1GiB`, `512 KiB`. `None` for other units, and for none but bytes.
pub(super) fn size(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (count, unit) = text.split_at(digits.unwrap_or(text.len()));
    let factor = prefix(unit.trim())?;
    let bytes = number(count)? * factor as f64;
    usable(bytes).map(|b| Bytes(b.round() as u64))
}

/// The factor of a binary unit of bytes.
fn prefix(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let unit = ["ib", "b"].iter().find_map(|end| unit.strip_suffix(end)).unwrap_or(&unit);
    let mut letters = unit.chars();
    match (letters.next(), letters.next()) {
        (None, _) => Some(1),
        (Some(letter), None) => {
            BINARY.iter().find(|(name, _)| *name == letter).map(|(_, factor)| *factor)
        }
        _ => None,
    }
}
