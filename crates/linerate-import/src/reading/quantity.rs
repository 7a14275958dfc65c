//! Reads numbers with a unit: times, rates and sizes.
//!
//! A number that cannot be a measurement (`inf`, `-nan`, negative, too large) gives `None`.

use linerate_record::reported::SizeRow;
use linerate_units::{Bytes, EXACT, Nanos, Rate};

use super::{lookup, number};

/// Nanoseconds in a microsecond.
pub(crate) const MICRO: f64 = 1e3;
/// Nanoseconds in a millisecond.
pub(crate) const MILLI: f64 = 1e6;
/// Nanoseconds in a second.
pub(crate) const SECOND: f64 = 1e9;
/// Units of rates, in bits per second.
pub(crate) const BITS: &[(&str, f64)] = &[("Kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9)];
/// Number of bits in 2^20 bytes.
pub(crate) const MEBIBYTE: f64 = 8.0 * 1_048_576.0;
/// Number of bits in a mebibit: 2^20.
pub(crate) const MEBIBIT: f64 = 1_048_576.0;

/// Largest number that [`figure`] accepts: far above what any disk reaches, and far below the limit of `u64`.
const LARGEST: f64 = 1e18;
/// Factors of binary prefixes of units.
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

/// A rate of `value` units of `unit` bits per second. A rate of zero gives `None`: nothing was measured.
pub(crate) fn rate(value: f64, unit: f64) -> Option<Rate> {
    whole(value * unit).filter(|bits| *bits > 0).map(Rate)
}

/// Reads a number of bytes, such as `64`, `64k` or `1M`. Letters are powers of 1024. Units such as `KB`, which
/// network programs use for 1000 or for 1024, give `None`.
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

/// Fewest samples for the 99th and for the 99.9th percentile: at least one sample must be above it.
pub(crate) const FOR_P99: f64 = 100.0;
pub(crate) const FOR_P999: f64 = 1_000.0;

/// Whether at least one of `samples` samples is above the percentile `share` (0.99).
fn supports(samples: u64, share: f64) -> bool {
    samples as f64 * (1.0 - share) >= 0.999
}

/// Removes percentiles that a row has too few samples for; returns whether there were any.
pub(crate) fn drop_unsupported(row: &mut SizeRow) -> bool {
    let samples = row.samples.unwrap_or(0);
    let before = (row.p99, row.p999);
    row.p99 = row.p99.filter(|_| supports(samples, 0.99));
    row.p999 = row.p999.filter(|_| supports(samples, 0.999));
    before != (row.p99, row.p999)
}

/// Reads a number that programs for disks print, with blanks around it; `None` if it is negative or not finite.
pub(crate) fn figure(text: &str) -> Option<f64> {
    usable(text.trim().parse().ok()?)
}

/// Returns the number if it can be a figure.
fn usable(number: f64) -> Option<f64> {
    (0.0..=LARGEST).contains(&number).then_some(number)
}

/// Returns the number if it can be a figure and is not zero.
pub(crate) fn positive(number: f64) -> Option<f64> {
    usable(number).filter(|n| *n > 0.0)
}

/// A time of `count` units of `unit` nanoseconds; `None` for zero, which no operation can take.
pub(crate) fn time(count: f64, unit: f64) -> Option<Nanos> {
    positive(count * unit).map(|n| Nanos(n.round() as u64))
}

/// Reads a size that programs for disks print; they use binary prefixes only: `4k`, `16M`, `1GB`, `512 KiB`. `None`
/// for other units.
pub(crate) fn size(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (count, unit) = text.split_at(digits.unwrap_or(text.len()));
    let factor = prefix(unit.trim())?;
    let bytes = figure(count)? * factor as f64;
    usable(bytes).map(|b| Bytes(b.round() as u64))
}

/// The factor of a unit of bytes with a binary prefix.
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
