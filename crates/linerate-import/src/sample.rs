//! What tests of formats share.

use linerate_core::reported::{Disk, Measured, Outcome, SizeRow, Sizes, Transfer};
use linerate_core::units::{Bytes, Nanos, Rate};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

use crate::{Part, Refused, read};

/// The only output in a text.
pub(crate) fn part(text: &str) -> Part {
    let parsed = read(text.as_bytes()).unwrap();
    assert_eq!(parsed.parts.len(), 1, "{parsed:?}");
    parsed.parts.into_iter().next().unwrap()
}

/// Why a text is refused.
pub(crate) fn why(text: &str) -> String {
    match read(text.as_bytes()) {
        Err(Refused::Damaged { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

/// Whether a note says this.
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

/// A row of a size, which tests fill further.
pub(crate) fn row(size: u64) -> SizeRow {
    SizeRow {
        size: Bytes(size),
        ..SizeRow::default()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a field of a row is an option")]
pub(crate) fn ns(nanos: u64) -> Option<Nanos> {
    Some(Nanos(nanos))
}

#[expect(clippy::unnecessary_wraps, reason = "a field of a row is an option")]
pub(crate) fn bits(rate: u64) -> Option<Rate> {
    Some(Rate(rate))
}

/// Reads samples that were cut, whose lines were moved, and whose characters were replaced: none may panic.
pub(crate) fn survive(samples: &'static [&'static str]) {
    let change = (
        any::<Index>(),
        any::<Index>(),
        0..4_u8,
        "[-0-9.,;:{}\"a-z \t\n%#|+>$]{0,3}",
    );
    let changes = proptest::collection::vec(change, 1..6);
    let input = (proptest::sample::select(samples), changes);
    let config = Config {
        cases: 300,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&input, |(sample, changes)| {
        let mut text = sample.to_owned();
        for (one, other, kind, with) in changes {
            text = changed(&text, one, other, kind, &with);
        }
        let _ = read(text.as_bytes());
        Ok(())
    });
    outcome.unwrap();
}

fn changed(text: &str, one: Index, other: Index, kind: u8, with: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let mut lines: Vec<&str> = text.lines().collect();
    if chars.is_empty() || lines.is_empty() {
        return with.to_owned();
    }
    let at = one.index(chars.len());
    match kind {
        0 => chars.truncate(at),
        1 => {
            let (a, b) = (one.index(lines.len()), other.index(lines.len()));
            lines.swap(a, b);
            return lines.join("\n");
        }
        2 => {
            let end = (at + other.index(40)).min(chars.len());
            chars.splice(at..end, with.chars());
        }
        _ => {
            let digits: Vec<usize> = (0..chars.len())
                .filter(|at| chars[*at].is_ascii_digit())
                .collect();
            if !digits.is_empty() {
                let at = digits[one.index(digits.len())];
                chars.splice(at..=at, with.chars());
            }
        }
    }
    chars.into_iter().collect()
}
