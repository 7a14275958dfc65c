//! Units of figures: how their values are written and read.

use linerate_units::{Nanos, PerSecond, Percent, Rate, UnitError, digits};

/// Unit of a figure's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second.
    BitsPerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// A number of events per second.
    PerSecond,
    /// A share of a whole, 0 to 1; written in per cent.
    Share,
    /// Nanoseconds.
    Nanos,
    /// Nanoseconds for each byte.
    NanosPerByte,
}

/// Bytes per second from which a rate is written in GB/s. Below, MB/s are used, by which disks are compared.
const IN_GB: f64 = 1e10;

impl Unit {
    /// A value with its unit: `9.41 Gb/s`, `0.12 %`.
    pub fn words(self, value: f64) -> String {
        match self {
            Self::BitsPerSecond => Rate(value.max(0.0) as u64).to_string(),
            Self::BytesPerSecond if value < IN_GB => format!("{:.1} MB/s", value.max(0.0) / 1e6),
            Self::BytesPerSecond => format!("{:.1} GB/s", value / 1e9),
            Self::PerSecond => PerSecond(value.max(0.0)).to_string(),
            Self::Share => format!("{} %", digits(value * 100.0)),
            Self::Nanos => Nanos(value.max(0.0) as u64).to_string(),
            Self::NanosPerByte => format!("{} ns/B", digits(value)),
        }
    }

    /// Reads a value with its unit, as a user types it.
    pub fn parse(self, text: &str) -> Result<f64, UnitError> {
        Ok(match self {
            Self::BitsPerSecond => text.parse::<Rate>()?.0 as f64,
            Self::BytesPerSecond => text.parse::<Rate>()?.0 as f64 / 8.0,
            Self::PerSecond => text.parse::<PerSecond>()?.0,
            Self::Share => text.parse::<Percent>()?.0 / 100.0,
            Self::Nanos => text.parse::<Nanos>()?.0 as f64,
            Self::NanosPerByte => nanos_per_byte(text)?,
        })
    }
}

/// Reads nanoseconds for each byte: `0.35ns/B`.
fn nanos_per_byte(text: &str) -> Result<f64, UnitError> {
    let example = "0.5ns/B";
    let number = text.trim().strip_suffix("ns/B");
    let number = number.ok_or_else(|| UnitError::NoUnit { text: text.to_owned(), example })?;
    let read = number.trim().parse().ok();
    read.filter(|n: &f64| n.is_finite() && *n >= 0.0).ok_or_else(|| UnitError::NotANumber {
        text: text.to_owned(),
        what: "CPU time for each byte",
        example,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_with_their_unit_and_read_back() {
        for (unit, value, text) in [
            (Unit::BitsPerSecond, 9.41e9, "9.41 Gb/s"),
            (Unit::BytesPerSecond, 9_999.9e6, "9999.9 MB/s"),
            (Unit::BytesPerSecond, 1e10, "10.0 GB/s"),
            (Unit::PerSecond, 190_400.0, "190 k/s"),
            (Unit::Share, 0.0123, "1.23 %"),
            (Unit::Nanos, 58_000.0, "58 us"),
            (Unit::NanosPerByte, 0.351, "0.35 ns/B"),
        ] {
            assert_eq!(unit.words(value), text);
            let read = unit.parse(&text.replace(' ', "")).unwrap();
            assert!((read / value - 1.0).abs() < 0.01, "{text}: {read}");
            assert!(unit.parse("1").is_err() && unit.parse("-1 parsec").is_err());
        }
    }
}
