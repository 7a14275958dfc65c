//! Numbers with a unit: times, rates and sizes.
//!
//! A number that is no measurement (`inf`, `-nan`, negative, too large) has no value here.

use linerate_record::reported::SizeRow;
use linerate_units::{Bytes, EXACT, Nanos, Rate};

use super::{lookup, number};

/// Nanoseconds in a microsecond.
pub(crate) const MICRO: f64 = 1e3;
/// Nanoseconds in a millisecond.
pub(crate) const MILLI: f64 = 1e6;
/// Nanoseconds in a second.
pub(crate) const SECOND: f64 = 1e9;
/// Bits in a second of rates in bits.
pub(crate) const BITS: &[(&str, f64)] = &[("Kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9)];
/// Bits in 2^20 bytes.
pub(crate) const MEBIBYTE: f64 = 8.0 * 1_048_576.0;
/// 2^20 bits.
pub(crate) const MEBIBIT: f64 = 1_048_576.0;

/// Largest number that [`figure`] takes: far above what any disk does, and far below the limits of `u64`.
const LARGEST: f64 = 1e18;
/// Factors of the prefixes of units.
const BINARY: &[(char, u64)] =
    &[('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30), ('t', 1 << 40), ('p', 1 << 50)];

fn whole(value: f64) -> Option<u64> {
    let value = value.round();
    (0.0..=EXACT as f64).contains(&value).then_some(value as u64)
}

/// A time of `value` units of `unit` nanoseconds.
pub(crate) fn nanos(value: f64, unit: f64) -> Option<Nanos> {
    whole(value * unit).map(Nanos)
}

/// A rate of `value` units of `unit` bits in a second. A rate of zero is none: nothing was measured.
pub(crate) fn rate(value: f64, unit: f64) -> Option<Rate> {
    whole(value * unit).filter(|bits| *bits > 0).map(Rate)
}

/// A number of bytes, such as `64`, `64k`, `1M`. Letters stand for powers of 1024. Units such as `KB`, which programs of
/// networks count either way, have no value.
pub(crate) fn bytes(text: &str) -> Option<Bytes> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => 1.0,
        "k" | "K" | "KiB" => 1024.0,
        "m" | "M" | "MiB" => 1_048_576.0,
        "g" | "G" | "GiB" => 1_073_741_824.0,
        _ => return None,
    };
    whole(number(digits)? * unit).map(Bytes)
}

/// Samples that a percentile needs: one above it at least.
pub(crate) const FOR_P99: f64 = 100.0;
pub(crate) const FOR_P999: f64 = 1_000.0;

/// Whether `samples` observations have one beyond the percentile `share` (0.99).
fn supports(samples: u64, share: f64) -> bool {
    samples as f64 * (1.0 - share) >= 0.999
}

/// Leaves out the percentiles that a row's observations do not support; whether there were any.
pub(crate) fn drop_unsupported(row: &mut SizeRow) -> bool {
    let samples = row.samples.unwrap_or(0);
    let before = (row.p99, row.p999);
    row.p99 = row.p99.filter(|_| supports(samples, 0.99));
    row.p999 = row.p999.filter(|_| supports(samples, 0.999));
    before != (row.p99, row.p999)
}

/// A number as programs of disks print it, with blanks around it: neither negative nor endless.
pub(crate) fn figure(text: &str) -> Option<f64> {
    usable(text.trim().parse().ok()?)
}

/// The number, if it can be a figure.
fn usable(number: f64) -> Option<f64> {
    (0.0..=LARGEST).contains(&number).then_some(number)
}

/// The number, if it can be a figure and is not zero.
pub(crate) fn positive(number: f64) -> Option<f64> {
    usable(number).filter(|n| *n > 0.0)
}

/// A time of `count` units of `unit` nanoseconds; `None` for zero, which no operation takes.
pub(crate) fn time(count: f64, unit: f64) -> Option<Nanos> {
    positive(count * unit).map(|n| Nanos(n.round() as u64))
}

/// A size as programs of disks print it, for which any prefix is binary: `4k`, `16M`, `1GB`, `512 KiB`. `None` for other
/// units.
pub(crate) fn size(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (count, unit) = text.split_at(digits.unwrap_or(text.len()));
    let factor = prefix(unit.trim())?;
    let bytes = figure(count)? * factor as f64;
    usable(bytes).map(|b| Bytes(b.round() as u64))
}

/// The factor of a binary unit of bytes.
fn prefix(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let unit = ["ib", "b"].iter().find_map(|end| unit.strip_suffix(end)).unwrap_or(&unit);
    let mut letters = unit.chars();
    match (letters.next(), letters.next()) {
        (None, _) => Some(1),
        (Some(letter), None) => lookup(BINARY, letter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_measurement_is_no_number() {
        assert_eq!(number("1.5"), Some(1.5));
        assert_eq!(number("0"), Some(0.0));
        for text in ["inf", "-nan", "nan", "-1", "+1", "1,5", "", "1e999"] {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(rate(0.0, 8.0), None);
        assert_eq!(rate(1e300, 8.0), None);
        assert_eq!(nanos(0.96, MICRO), Some(Nanos(960)));
    }

    #[test]
    fn sizes_have_letters_of_1024() {
        assert_eq!(bytes("64k"), Some(Bytes(65536)));
        assert_eq!(bytes("1.2k"), Some(Bytes(1229)));
        assert_eq!(bytes("64"), Some(Bytes(64)));
        assert_eq!(bytes("64x"), None);
        assert_eq!(bytes("k"), None);
    }

    #[test]
    fn a_percentile_needs_an_observation_beyond_it() {
        assert!(supports(1000, 0.999));
        assert!(!supports(998, 0.999));
        assert!(supports(100, 0.99));
        assert!(!supports(15, 0.99));
    }
}
