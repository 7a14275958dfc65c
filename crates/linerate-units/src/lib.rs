//! Quantities with their units, statistics, and quoting for a shell. Every other crate uses them.
//!
//! This crate owns bytes, rates and durations ([`Bytes`], [`Rate`], [`Nanos`]) with their text, what a few noisy
//! samples allow to conclude ([`stats`]), and quoted words for a shell ([`shell`]). It knows no path, host or run.
//!
//! Text distinguishes bits from bytes, and decimal from binary units: `KiB` is 1024 bytes, `kB` is 1000, `Mb/s`
//! is 10^6 bits per second, `MB/s` is 8 x 10^6.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod date;
pub mod shell;
pub mod stats;

pub use date::stamp;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a quantity could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text has no digits where a number is expected.
    #[error("`{text}` is not a {what} (expected for example `{example}`)")]
    NotANumber {
        /// The text that the user typed.
        text: String,
        /// The kind of quantity that was expected.
        what: &'static str,
        /// An example of a correct quantity.
        example: &'static str,
    },
    /// The text is a number without a unit.
    #[error("`{text}` has no unit (expected for example `{example}`)")]
    NoUnit {
        /// The text that the user typed.
        text: String,
        /// An example of a correct quantity.
        example: &'static str,
    },
    /// The text has a unit that does not measure this quantity.
    #[error("`{unit}` in `{text}` is not a unit of {what} (expected for example `{example}`)")]
    WrongUnit {
        /// The text that the user typed.
        text: String,
        /// The text after the number.
        unit: String,
        /// The kind of quantity that was expected.
        what: &'static str,
        /// An example of a correct quantity.
        example: &'static str,
    },
    /// The quantity is negative, not finite, or above 2^53.
    #[error("`{text}` is out of range for a {what}")]
    OutOfRange {
        /// The text that the user typed.
        text: String,
        /// The kind of quantity that was expected.
        what: &'static str,
    },
}

/// The largest whole number that every JSON reader reads exactly: 2^53 - 1.
//= RFC 8259, section 6
pub const EXACT: u64 = (1 << 53) - 1;

/// A number of bytes.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[schemars(inline)]
pub struct Bytes(pub u64);

/// A rate, in bits per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rate(pub u64);

/// A duration, or a time since the start of a run, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Nanos(pub u64);

/// A frequency, in cycles per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Hertz(pub u64);

/// A rate of events such as operations or messages, in events per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
pub struct PerSecond(pub f64);

/// Transfers per second on a PCI Express lane or by a memory module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Transfers(pub u64);

impl Transfers {
    /// The transfer rate in the unit of memory modules: `3200 MT/s`.
    pub fn mega(self) -> String {
        format!("{} MT/s", self.0 / 1_000_000)
    }
}

impl Rate {
    /// The rate in bits and in bytes per second: `16.3 Gb/s (2.04 GB/s)`. A rate of zero is given in bits only.
    pub fn with_bytes(self) -> String {
        if self.0 == 0 {
            return self.to_string();
        }
        let steps = [(8e9, "GB/s"), (8e6, "MB/s"), (8e3, "kB/s"), (8.0, "B/s")];
        format!("{self} ({})", scaled(self.0 as f64, &steps))
    }

    /// The mean rate of `bytes` moved in `time`; zero when no time has passed.
    pub fn of(bytes: Bytes, time: Nanos) -> Self {
        if time.0 == 0 {
            return Self(0);
        }
        Self((bytes.0 as f64 * 8e9 / time.0 as f64) as u64)
    }
}

impl Nanos {
    /// Whether the duration is zero.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }
    /// A duration of `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Self(n * 1_000)
    }
    /// A duration of `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }
    /// A duration of `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }
    /// The duration in seconds.
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Converts the duration to [`std::time::Duration`].
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl From<Duration> for Nanos {
    fn from(d: Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

const BYTES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("K", 1024.0),
    ("M", 1_048_576.0),
    ("G", 1_073_741_824.0),
];

const RATES: &[(&str, f64)] = &[
    ("b/s", 1.0),
    ("kb/s", 1e3),
    ("Kb/s", 1e3),
    ("Mb/s", 1e6),
    ("Gb/s", 1e9),
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
    ("kbit", 1e3),
    ("Mbit", 1e6),
    ("Gbit", 1e9),
    ("mbit", 1e6),
    ("gbit", 1e9),
    ("B/s", 8.0),
    ("kB/s", 8e3),
    ("MB/s", 8e6),
    ("GB/s", 8e9),
    ("MiB/s", 8.0 * 1_048_576.0),
    ("GiB/s", 8.0 * 1_073_741_824.0),
];

const EVENTS: &[(&str, f64)] = &[("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6), ("G/s", 1e9)];

const TIMES: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9)];

/// Splits `text` into a number and one of `units`, and multiplies the number by the factor of the unit.
fn parse(
    text: &str,
    units: &[(&str, f64)],
    what: &'static str,
    example: &'static str,
) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim());
    let own = || text.to_owned();
    let value: f64 =
        number.parse().map_err(|_| UnitError::NotANumber { text: own(), what, example })?;
    if unit.is_empty() {
        return Err(UnitError::NoUnit { text: own(), example });
    }
    let (_, factor) = units.iter().find(|(name, _)| *name == unit).ok_or_else(|| {
        UnitError::WrongUnit { text: own(), unit: unit.to_owned(), what, example }
    })?;
    let scaled = (value * factor).round();
    // The limit is 2^53: beyond it JSON numbers and f64 are no longer exact to the byte.
    if !(0.0..=9_007_199_254_740_992.0).contains(&scaled) {
        return Err(UnitError::OutOfRange { text: own(), what });
    }
    Ok(scaled as u64)
}

/// A share, in percent.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

impl FromStr for Percent {
    type Err = UnitError;
    fn from_str(s: &str) -> Result<Self, UnitError> {
        let text = || s.to_owned();
        let example = "0.1%";
        let number = s
            .trim()
            .strip_suffix('%')
            .ok_or_else(|| UnitError::NoUnit { text: text(), example })?;
        let read = number.trim().parse().ok().filter(|n: &f64| n.is_finite());
        read.map(Self).ok_or_else(|| UnitError::NotANumber { text: text(), what: "share", example })
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(s: &str) -> Result<Self, UnitError> {
        parse(s, BYTES, "size", "64KiB").map(Self)
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(s: &str) -> Result<Self, UnitError> {
        parse(s, RATES, "rate", "9Gbit/s").map(Self)
    }
}

impl FromStr for PerSecond {
    type Err = UnitError;
    fn from_str(s: &str) -> Result<Self, UnitError> {
        parse(s, EVENTS, "number per second", "100k/s").map(|n| Self(n as f64))
    }
}

impl FromStr for Nanos {
    type Err = UnitError;
    fn from_str(s: &str) -> Result<Self, UnitError> {
        parse(s, TIMES, "time", "30s").map(Self)
    }
}

/// The value as text with at most three significant digits, without trailing zeros after the point.
fn significant(value: f64) -> String {
    let digits = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// The value as text with about three significant digits. The value may be far below one.
pub fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        a if a >= 100.0 => format!("{value:.0}"),
        a if a >= 10.0 => format!("{value:.1}"),
        a if a >= 0.1 => format!("{value:.2}"),
        a if a >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// Writes `value` in the largest unit of `steps` in which it is at least one.
fn scaled(value: f64, steps: &[(f64, &str)]) -> String {
    let (factor, unit) = steps
        .iter()
        .find(|(f, _)| value >= f * 0.9995)
        .or(steps.last())
        .copied()
        .unwrap_or((1.0, ""));
    format!("{} {unit}", significant(value / factor))
}

impl Rate {
    /// The rate as text that reads back as exactly this rate: in the largest unit that divides it.
    pub fn exact(self) -> String {
        let units = [(1_000_000_000, "Gb/s"), (1_000_000, "Mb/s"), (1_000, "kb/s"), (1, "b/s")];
        exact(self.0, &units)
    }
}

impl Nanos {
    /// The time as text that reads back as exactly this time: in the largest unit that divides it.
    pub fn exact(self) -> String {
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
        exact(self.0, &units)
    }
}

impl Bytes {
    /// The size as text that reads back as exactly this size: in the largest unit that divides it.
    pub fn exact(self) -> String {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];
        exact(self.0, &units)
    }
}

/// Writes `value` in the largest of `units` that divides it without a remainder.
fn exact(value: u64, units: &[(u64, &str)]) -> String {
    let (factor, unit) = units
        .iter()
        .find(|(factor, _)| value >= *factor && value.is_multiple_of(*factor))
        .or(units.last())
        .copied()
        .unwrap_or((1, ""));
    format!("{}{unit}", value / factor)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = [(1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s"), (1.0, "b/s")];
        f.pad(&scaled(self.0 as f64, &steps))
    }
}

impl fmt::Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = [(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")];
        f.pad(&scaled(self.0, &steps))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
        f.pad(&scaled(self.0 as f64, &steps))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = [(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")];
        f.pad(&scaled(self.0 as f64, &steps))
    }
}

impl fmt::Display for Hertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = [(1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz")];
        f.pad(&scaled(self.0 as f64, &steps))
    }
}

impl fmt::Display for Transfers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = [(1e9, "GT/s"), (1e6, "MT/s"), (1e3, "kT/s"), (1.0, "T/s")];
        f.pad(&scaled(self.0 as f64, &steps))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_exactly_reads_back_as_itself(n in 0..=1_u64 << 53, unit in 0..4_usize) {
            let round = [1, 1 << 10, 1_000, 1_000_000][unit];
            for n in [n, n / round * round] {
                prop_assert_eq!(Bytes(n).exact().parse(), Ok(Bytes(n)));
                prop_assert_eq!(Rate(n).exact().parse(), Ok(Rate(n)));
                prop_assert_eq!(Nanos(n).exact().parse(), Ok(Nanos(n)));
            }
        }

        #[test]
        fn what_is_shown_reads_back_within_its_three_digits(n in 0..=1_u64 << 52) {
            let near = |read: u64| (read as f64 - n as f64).abs() <= n as f64 * 0.00501;
            prop_assert!(near(Bytes(n).to_string().parse::<Bytes>().unwrap().0), "{}", Bytes(n));
            prop_assert!(near(Rate(n).to_string().parse::<Rate>().unwrap().0), "{}", Rate(n));
            prop_assert!(near(Nanos(n).to_string().parse::<Nanos>().unwrap().0), "{}", Nanos(n));
        }
    }

    #[test]
    fn units_are_read_with_their_meaning() {
        assert_eq!("64KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!("9 Gbit/s".parse(), Ok(Rate(9_000_000_000)));
        assert_eq!("1.5GB/s".parse(), Ok(Rate(12_000_000_000)));
        assert_eq!("20ms".parse(), Ok(Nanos(20_000_000)));
    }

    #[test]
    fn what_is_not_a_quantity_is_refused_in_words() {
        assert!(matches!("10".parse::<Nanos>(), Err(UnitError::NoUnit { .. })));
        assert!(matches!("10s".parse::<Bytes>(), Err(UnitError::WrongUnit { .. })));
        assert!(matches!("-1s".parse::<Nanos>(), Err(UnitError::OutOfRange { .. })));
        assert!(matches!("fast".parse::<Rate>(), Err(UnitError::NotANumber { .. })));
        assert!(matches!("99999999999GiB".parse::<Bytes>(), Err(UnitError::OutOfRange { .. })));
    }

    #[test]
    fn digits_are_those_that_say_something() {
        for (x, text) in [
            (0.0, "0"),
            (0.00123, "0.0012"),
            (0.0123, "0.012"),
            (0.5, "0.50"),
            (1.994, "1.99"),
            (12.34, "12.3"),
            (5231.0, "5231"),
        ] {
            assert_eq!(digits(x), text);
        }
    }

    #[test]
    fn quantities_are_written_with_three_digits() {
        assert_eq!(Rate(941_500_000).to_string(), "942 Mb/s");
        assert_eq!(Rate(5_020_000_000).to_string(), "5.02 Gb/s");
        assert_eq!(Nanos(41_000).to_string(), "41 us");
        assert_eq!(Bytes(524_288).to_string(), "512 KiB");
        assert_eq!(Rate(999_990_000).to_string(), "1 Gb/s");
        assert_eq!(Hertz(2_701_000_000).to_string(), "2.7 GHz");
        assert_eq!(Transfers(2_500_000_000).to_string(), "2.5 GT/s");
        assert_eq!(Transfers(3_200_000_000).mega(), "3200 MT/s");
    }
}
