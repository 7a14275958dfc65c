//! Reads the rows of iperf 2 and iperf3, which have the same layout.
//!
//! A row is `[  5]   0.00-1.00   sec   108 MBytes   905 Mbits/sec`. Multiples of bits are decimal. Multiples of bytes
//! are binary, also in rates, whatever their name.
//= iperf3: units.c, unit_snprintf; iperf2: stdio.c, byte_snprintf

use crate::reading::{Notes, is_digits, lookup, named};

/// Units of sizes, in bytes.
const BYTES: &[(&str, f64)] = &[
    ("Bytes Byte", 1.0),
    ("KBytes KByte", 1024.0),
    ("MBytes MByte", 1_048_576.0),
    ("GBytes GByte", 1_073_741_824.0),
    ("TBytes", 1_099_511_627_776.0),
];

/// Units of rates, in bits per second.
const RATES: &[(&str, f64)] = &[
    ("bits/sec", 1.0),
    ("Kbits/sec", 1e3),
    ("Mbits/sec", 1e6),
    ("Gbits/sec", 1e9),
    ("Tbits/sec", 1e12),
    ("Bytes/sec", 8.0),
    ("KBytes/sec", 8.0 * 1024.0),
    ("MBytes/sec", 8.0 * 1_048_576.0),
    ("GBytes/sec", 8.0 * 1_073_741_824.0),
    ("TBytes/sec", 8.0 * 1_099_511_627_776.0),
];

/// The note for a row that contradicts itself.
pub(crate) const CONTRADICTS: &str =
    "the rate of a row does not fit its bytes and seconds: one of them is wrong";

/// Lowest rate that is taken for an error, in bits per second: iperf 2.0.5 prints such rates if a count fell below
/// zero.
//= https://github.com/esnet/iperf/issues/843
const MOST_RATE: f64 = 1e15;

/// Notes about lines that were not understood. They are kept only if a later line shows that these lines belong to
/// the output.
#[derive(Default)]
pub(crate) struct Strange(pub(crate) Notes);

/// Largest number of lines in a row that get a note.
const MOST_STRANGE: usize = 20;

impl Strange {
    pub(crate) fn line(&mut self, number: u64, line: &str) {
        if self.0.0.len() < MOST_STRANGE {
            let quoted: String = line.chars().take(60).collect();
            self.0.at(number, format!("not understood: `{quoted}`"));
        }
    }

    /// Keeps the notes up to the last damaged row, as these lines belong to the output even if they are its last
    /// ones. Returns whether there are any.
    pub(crate) fn end(mut self, notes: &mut Notes) -> bool {
        let last = self.0.0.iter().rposition(|note| note.what.contains("`["));
        self.0.0.truncate(last.map_or(0, |last| last + 1));
        notes.append(&mut self.0);
        last.is_some()
    }
}

/// The parts of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row<'a> {
    /// Number of the socket, or `SUM`.
    pub(crate) id: &'a str,
    /// Role of the end, such as `TX-C`; empty if the row has none.
    pub(crate) role: &'a str,
    /// Start of the interval in seconds.
    pub(crate) from: f64,
    /// End of the interval in seconds.
    pub(crate) to: f64,
    /// Number of digits after the point in the start.
    pub(crate) digits: usize,
    /// Whether the times use at least 14 characters, as iperf3 pads them, or have lost all padding: `[ 5] 0.00-1.00`.
    pub(crate) wide: bool,
    pub(crate) bytes: f64,
    /// Rate in bits per second.
    pub(crate) rate: f64,
    /// Whether the rate is printed in binary multiples of bytes.
    pub(crate) binary: bool,
    /// Whether the numbers have a decimal comma.
    pub(crate) comma: bool,
    /// The text after the rate.
    pub(crate) rest: &'a str,
}

impl Row<'_> {
    /// Whether the row is the sum of all streams.
    pub(crate) fn is_sum(&self) -> bool {
        self.id.starts_with("SUM")
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.to - self.from
    }

    /// Whether bytes over seconds differ from the printed rate. Figures of three digits are off by up to 0.5 % each,
    /// and the seconds by their last digit.
    pub(crate) fn contradicts(&self) -> bool {
        let seconds = self.seconds();
        if seconds <= 0.0 || self.bytes <= 0.0 {
            return false;
        }
        let ratio = self.rate * seconds / (self.bytes * 8.0);
        let last_digit = 10_f64.powi(-(self.digits.min(9) as i32));
        (ratio - 1.0).abs() > 0.02 + 2.0 * last_digit / seconds
    }
}

/// Splits a line that begins with brackets into the text in them, and the text after them.
pub(crate) fn bracket(line: &str) -> Option<(&str, &str)> {
    let (inside, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    (inside.len() <= 12).then_some((inside.trim(), rest))
}

/// Reads a row; `None` if the line is not a row.
pub(crate) fn row(line: &str) -> Option<Row<'_>> {
    let (id, rest) = bracket(line)?;
    let squeezed = id.len() == 1 && line.trim_start().find(']') == Some(3);
    let (role, rest) = bracket(rest).unwrap_or(("", rest));
    let (times, rest) = rest.split_once(" sec")?;
    let (from, to) = times.split_once('-')?;
    let from = from.trim();
    let mut comma = false;
    let mut read = |text| {
        let (value, with_comma) = number(text)?;
        comma |= with_comma;
        Some(value)
    };
    let (start, end) = (read(from)?, read(to.trim())?);
    let (bytes, rest) = word(rest)?;
    let (unit, rest) = word(rest)?;
    let bytes = read(bytes)? * named(BYTES, unit)?;
    let (rate, rest) = word(rest)?;
    let (unit, rest) = word(rest)?;
    let rate = Some(read(rate)? * lookup(RATES, unit)?).filter(|rate| *rate < MOST_RATE)?;
    Some(Row {
        id,
        role,
        from: start,
        to: end,
        wide: times.len() >= 14 || squeezed,
        digits: from.len() - from.find(['.', ',']).map_or(from.len(), |at| at + 1),
        bytes,
        rate,
        binary: unit.ends_with("Bytes/sec"),
        comma,
        rest: rest.trim(),
    })
}

/// Splits off the next word.
pub(crate) fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Rates of intervals of equal length, in which a shorter last one is left out, and the length of an interval.
pub(crate) fn ticks(intervals: &[&Row<'_>]) -> (Vec<f64>, Option<f64>) {
    let mut rows = intervals;
    if let [first, .., last] = rows
        && last.seconds() < 0.9 * first.seconds()
    {
        rows = &rows[..rows.len() - 1];
    }
    let seconds: f64 = rows.iter().map(|row| row.seconds()).sum();
    if seconds <= 0.0 {
        return (Vec::new(), None);
    }
    let tick = (seconds / rows.len() as f64 * 1e3).round() / 1e3;
    (rows.iter().map(|row| row.rate).collect(), Some(tick))
}

/// Number of bytes in a quantity such as `1.31 MBytes`.
pub(crate) fn bytes(number_text: &str, unit: &str) -> Option<f64> {
    Some(number(number_text)?.0 * named(BYTES, unit)?)
}

/// Reads a number that is not negative; also returns whether it has a decimal comma. iperf prints at most two digits
/// after the point (four below 10) and no thousands separators, so a comma before three digits is refused.
pub(crate) fn number(text: &str) -> Option<(f64, bool)> {
    let parsed = |text: &str| {
        let value: f64 = text.parse().ok()?;
        (value.is_finite() && text.starts_with(|c: char| c.is_ascii_digit())).then_some(value)
    };
    let Some((whole, part)) = text.split_once(',') else {
        return Some((parsed(text)?, false));
    };
    if !is_digits(whole) || !is_digits(part) || part.len() == 3 {
        return None;
    }
    Some((parsed(&format!("{whole}.{part}"))?, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_numbers_in_real_units() {
        let got =
            row("[  5][TX-C]   0.00-1.00   sec  2.00 KBytes  3.50 MBytes/sec    0   1.31 MBytes")
                .unwrap();
        assert_eq!((got.id, got.role, got.from, got.to), ("5", "TX-C", 0.0, 1.0));
        assert_eq!((got.bytes, got.rate), (2048.0, 3.5 * 8.0 * 1_048_576.0));
        assert_eq!((got.digits, got.rest), (2, "0   1.31 MBytes"));
        assert!(got.binary && !got.comma && !got.is_sum());
        let old = row("[  3]  0.0-10.0 sec  1.10 GBytes   942 Mbits/sec").unwrap();
        assert_eq!((old.digits, old.rate, old.binary), (1, 942e6, false));
        let sum = row("[SUM]   0.00-1.00   sec  0.00 Bytes  0.00 bits/sec").unwrap();
        assert!(sum.is_sum() && sum.rate == 0.0);
    }

    #[test]
    fn a_rate_that_its_bytes_contradict_is_found() {
        let of = |rate: &str| {
            let line = format!("[  4]  0.0-10.0 sec  1.09 GBytes  {rate} Mbits/sec");
            row(&line).unwrap().contradicts()
        };
        // 1.09 x 2^30 x 8 bits over 10 s are 936 Mb/s; 2 % and a fifth of a second in ten are allowed.
        assert!(!of("936") && !of("970") && of("980"));
        assert!(!of("900") && of("890") && of("39"));
    }

    #[test]
    fn a_comma_is_understood_only_where_it_is_decimal() {
        assert_eq!(number("3,73"), Some((3.73, true)));
        assert_eq!(number("0,0000"), Some((0.0, true)));
        for text in ["1,234", "1.2,3", ",5", "5,", "-1", "inf", "nan", ""] {
            assert_eq!(number(text), None, "{text}");
        }
        let line = "[  4]   0,00-1,00   sec   411 MBytes  3,45 Gbits/sec";
        assert!(row(line).unwrap().comma);
    }

    #[test]
    fn what_lacks_a_unit_is_no_row() {
        for line in [
            "[  4]   0.00-1.00   sec   411 MBytes  3.45",
            "[  4]   0.00-1.00   sec   411  3.45 Gbits/sec",
            "[  4]   0.00-1.00   sec   411 MBytes  3.45 Gbits",
            "[  4]   0.00   sec   411 MBytes  3.45 Gbits/sec",
            "   0.00-1.00   sec   411 MBytes  3.45 Gbits/sec",
            "[  5] local 127.0.0.1 port 41234 connected to 127.0.0.1 port 5201",
        ] {
            assert_eq!(row(line), None, "{line}");
        }
    }
}
