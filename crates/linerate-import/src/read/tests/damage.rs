//! Damages samples of all formats: no reader, no merge and no rule may panic.

use std::path::Path;

use linerate_explain::{Material, explain};
use linerate_plan::path::Side;
use linerate_record::reported::{Measured, Outcome, Source};
use proptest::prelude::*;

use super::tests::samples;
use super::{Part, read};
use crate::merge;

/// A hostile change of a text.
#[derive(Debug, Clone)]
enum Change {
    /// Keeps only the bytes before this share of the text.
    Cut(f64),
    /// Exchanges two lines, at these shares of the text.
    Swap(f64, f64),
    /// Replaces up to a number of digits, from this share of the text on.
    Digits(f64, usize, u8),
    /// Replaces the byte at this share of the text.
    Byte(f64, u8),
    /// Repeats the line at this share of the text.
    Twice(f64),
}

fn change() -> impl Strategy<Value = Change> {
    let share = || 0.0..1.0f64;
    prop_oneof![
        share().prop_map(Change::Cut),
        (share(), share()).prop_map(|(a, b)| Change::Swap(a, b)),
        (share(), 1..40usize, b'0'..=b'9').prop_map(|(a, n, d)| Change::Digits(a, n, d)),
        (share(), any::<u8>()).prop_map(|(a, b)| Change::Byte(a, b)),
        share().prop_map(Change::Twice),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let at = |share: f64, len: usize| ((share * len as f64) as usize).min(len.saturating_sub(1));
    if bytes.is_empty() {
        return;
    }
    match *change {
        Change::Cut(share) => bytes.truncate(at(share, bytes.len())),
        Change::Byte(share, byte) => {
            let index = at(share, bytes.len());
            bytes[index] = byte;
        }
        Change::Digits(share, count, digit) => {
            let from = at(share, bytes.len());
            let digits = bytes[from..].iter_mut().filter(|byte| byte.is_ascii_digit());
            digits.take(count).for_each(|byte| *byte = digit);
        }
        Change::Swap(one, other) => {
            let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            let len = lines.len();
            lines.swap(at(one, len), at(other, len));
            *bytes = lines.concat();
        }
        Change::Twice(share) => {
            let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            let index = at(share, lines.len());
            lines.insert(index, lines[index]);
            *bytes = lines.concat();
        }
    }
}

/// Checks that all figures of a disk are positive and finite.
fn is_sound(outcome: &Outcome) {
    let Measured::Disk(disk) = &outcome.measured else {
        return;
    };
    assert!(!disk.rows.is_empty());
    for row in &disk.rows {
        assert!(row.bytes_per_sec > 0.0 && row.bytes_per_sec.is_finite());
        assert!(row.operations.is_none_or(f64::is_finite));
    }
}

/// Adds an output to the material, as an import does.
fn take(material: &mut Material, part: Part) {
    part.results.iter().for_each(is_sound);
    merge(&mut material.near, part.facts.clone());
    // The same output, pasted twice, is about the same host.
    merge(&mut material.near, part.facts);
    material.sources.push(Source {
        side: Some(Side::Near),
        tool: part.tool,
        results: part.results,
        ..Source::default()
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_damage_makes_an_import_panic(
        pick in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 1..6),
    ) {
        thread_local! {
            static SAMPLES: Vec<Vec<u8>> =
                samples(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples"));
        }
        let mut bytes = SAMPLES.with(|samples| pick.get(samples).clone());
        for change in &changes {
            apply(&mut bytes, change);
        }
        if let Ok(parsed) = read(&bytes) {
            let mut material = Material::default();
            for part in parsed.parts {
                take(&mut material, part);
            }
            explain(&material);
        }
    }
}
