//! Numbers of a text with the unit of their column, the lines of an output, and the options of a command.
//!
//! A number that is no measurement (`inf`, `-nan`, negative, too large) has no value here.

use linerate_record::reported::Note;
use linerate_units::{Bytes, EXACT, Nanos, Rate};

use crate::format::Section;
use crate::text::{MOST_NOTES, quoted};

/// Nanoseconds in a microsecond.
pub(crate) const MICRO: f64 = 1e3;
/// Nanoseconds in a millisecond.
pub(crate) const MILLI: f64 = 1e6;
/// Nanoseconds in a second.
pub(crate) const SECOND: f64 = 1e9;
/// Bits in 2^20 bytes.
pub(crate) const MEBIBYTE: f64 = 8.0 * 1_048_576.0;
/// 2^20 bits.
pub(crate) const MEBIBIT: f64 = 1_048_576.0;

/// Most rows of a table that are kept.
pub(crate) const MOST_ROWS: usize = 100_000;

/// A finite number that is not negative.
pub(crate) fn number(text: &str) -> Option<f64> {
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let value: f64 = text.parse().ok().filter(|_| is_plain)?;
    value.is_finite().then_some(value)
}

/// A count.
pub(crate) fn count(text: &str) -> Option<u64> {
    text.parse().ok().filter(|count| *count <= EXACT)
}

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

/// A number of bytes, such as `64`, `64k`, `1M`. Letters stand for powers of 1024.
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

/// Whether `samples` observations have one beyond the percentile `share` (0.99).
pub(crate) fn supports(samples: u64, share: f64) -> bool {
    samples as f64 * (1.0 - share) >= 0.999
}

/// The part of an output before the next prompt of a shell. Its length is `Found.used`.
pub(crate) fn body<'a>(section: &Section<'a>) -> &'a str {
    let mut end = 0;
    for line in section.text.split_inclusive('\n') {
        if end > 0 && is_prompt(line) {
            break;
        }
        end += line.len();
    }
    &section.text[..end]
}

fn is_prompt(line: &str) -> bool {
    let line = line.trim();
    if line.starts_with("$ ") || line.starts_with("PS ") && line.contains("> ") {
        return true;
    }
    let before = ["$ ", "# ", "% "].iter().find_map(|prompt| line.split_once(prompt));
    before.is_some_and(|(before, _)| {
        before.len() <= 60 && before.contains('@') && before.split(' ').count() <= 2
    })
}

/// The lines of an output with their numbers in the input.
pub(crate) fn lines<'a>(
    section: &Section<'_>,
    body: &'a str,
) -> impl Iterator<Item = (u64, &'a str)> {
    (section.line..).zip(body.lines())
}

/// The command before an output, if it runs such a program: `cat` of a file says nothing about options.
pub(crate) fn command_of<'a>(
    section: &Section<'a>,
    is_program: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    let command = section.command?;
    let mut words = command.split_whitespace();
    words.any(|word| is_program(word.rsplit('/').next().unwrap_or(word))).then_some(command)
}

/// The value of an option in a command: `-m 64`, `-m64`, `--msg-size=64`, `--msg-size 64`.
pub(crate) fn option<'a>(command: &'a str, names: &[&str]) -> Option<&'a str> {
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        for name in names {
            match word.strip_prefix(name) {
                Some("") => return words.next(),
                Some(value) if name.starts_with("--") => {
                    if let Some(value) = value.strip_prefix('=') {
                        return Some(value);
                    }
                }
                Some(value) if value.starts_with(|c: char| c.is_ascii_digit()) => {
                    return Some(value);
                }
                _ => {}
            }
        }
    }
    None
}

/// Whether a command has one of these words.
pub(crate) fn flag(command: &str, names: &[&str]) -> bool {
    command.split_whitespace().any(|word| names.contains(&word))
}

/// Notes of one output. Their number is bounded.
#[derive(Debug, Default)]
pub(crate) struct Notes(pub(crate) Vec<Note>);

impl Notes {
    /// A note about a line.
    pub(crate) fn at(&mut self, line: u64, what: impl Into<String>) {
        self.push(Some(line), what.into());
    }

    /// A note about the whole output. The same note is made once.
    pub(crate) fn whole(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.0.iter().any(|note| note.what == what) {
            self.push(None, what);
        }
    }

    /// Keeps a row, if there are not too many.
    pub(crate) fn keep<T>(&mut self, rows: &mut Vec<T>, row: T) {
        if rows.len() < MOST_ROWS {
            rows.push(row);
        } else {
            self.whole(format!("rows after the first {MOST_ROWS} are left out"));
        }
    }

    /// A line that is not understood.
    pub(crate) fn strange(&mut self, line: u64, text: &str) {
        self.at(line, format!("not understood: `{}`", quoted(text)));
    }

    fn push(&mut self, line: Option<u64>, what: String) {
        if self.0.len() < MOST_NOTES {
            self.0.push(Note { line, what });
        }
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

    #[test]
    fn options_are_read_as_programs_read_them() {
        for command in ["x -m 64 -t 2", "x -m64", "x --msg-size=64", "x --msg-size 64"] {
            let value = option(command, &["-m", "--msg-size"]);
            assert_eq!(value, Some("64"), "{command}");
        }
        assert_eq!(option("x --mps=64", &["-m", "--msg-size"]), None);
        assert!(flag("x -b --report_gbits", &["--report_gbits"]));
    }

    #[test]
    fn a_command_is_of_its_program() {
        let of = |command| {
            let section = Section { text: "", line: 1, command: Some(command) };
            command_of(&section, |program| program == "sockperf").is_some()
        };
        assert!(of("sudo /usr/bin/sockperf pp"));
        assert!(!of("cat sockperf.txt"));
    }

    #[test]
    fn an_output_ends_at_a_prompt() {
        let end = |text: &str| {
            let section = Section { text, line: 1, command: None };
            body(&section).len()
        };
        assert_eq!(end("a\nuser@host:~$ b\nc\n"), 2);
        assert_eq!(end("a\n[root@host ~]# b\n"), 2);
        assert_eq!(end("a\n$ b\n"), 2);
        let comments = "# a\n# b\nsockperf: # c\n---> d\n";
        assert_eq!(end(comments), comments.len());
    }
}
