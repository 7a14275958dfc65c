//! What the readers of facts share: numbered lines, notes, and numbers.

use linerate_facts::Inventory;
use linerate_record::reported::{Note, Tool};

use crate::format::{Found, Section};
use crate::text::{MOST_NOTES, command, quoted};

/// Largest number of things of one kind that a text may describe: devices, ports, CPUs.
pub(crate) const MOST: usize = 8_192;
/// Largest number of lines of one output that are read.
const MOST_LINES: usize = 200_000;

/// A line of an output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// Its number in the input, from 1.
    pub(super) number: u64,
    /// Its text, without the end of the line and blanks before it.
    pub(super) text: &'a str,
}

impl<'a> Line<'a> {
    /// The text without blanks around it.
    pub(super) fn trimmed(&self) -> &'a str {
        self.text.trim()
    }

    /// Whether the line begins with a blank.
    pub(super) fn is_indented(&self) -> bool {
        self.text.starts_with([' ', '\t'])
    }

    /// The parts before and behind the first colon.
    pub(super) fn pair(&self) -> Option<(&'a str, &'a str)> {
        pair(self.text)
    }
}

/// The first bytes of a text, which show what it is.
pub(super) fn head(text: &str) -> &str {
    /// Bytes that are looked at: heads of outputs are shorter.
    const LONGEST: usize = 4_096;
    let mut ends = (0..=LONGEST.min(text.len())).rev();
    let end = ends.find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// The first line of a text, or its first bytes if it is very long.
pub(super) fn first_line(text: &str) -> &str {
    head(text).lines().next().unwrap_or_default()
}

/// The parts of a text before and behind the first colon, without blanks around them.
pub(super) fn pair(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':')?;
    Some((key.trim(), value.trim()))
}

/// Reads the lines of an output into facts.
pub(super) struct Reading<'a> {
    /// The lines that are not blank, up to a prompt.
    pub(super) lines: Vec<Line<'a>>,
    /// The command before the output.
    pub(super) command: Option<&'a str>,
    /// What was read.
    pub(super) facts: Inventory,
    /// Bytes up to the prompt.
    used: usize,
    notes: Vec<Note>,
}

impl<'a> Reading<'a> {
    /// The lines of a section up to the next prompt of a shell. No prompt is indented.
    pub(super) fn of(section: &Section<'a>) -> Self {
        Self::until(section, |line| !line.starts_with([' ', '\t']) && command(line).is_some())
    }

    /// The lines of a section, behind the first one up to one at which something else begins.
    pub(super) fn until(section: &Section<'a>, ends: impl Fn(&str) -> bool) -> Self {
        let mut lines = Vec::new();
        let mut used = 0;
        for (number, line) in (section.line..).zip(section.text.split_inclusive('\n')) {
            if used > 0 && ends(line) {
                break;
            }
            used += line.len();
            let text = line.trim_end();
            if !text.is_empty() && lines.len() < MOST_LINES {
                lines.push(Line { number, text });
            }
        }
        let is_long = lines.len() == MOST_LINES;
        let mut reading = Self {
            lines,
            command: section.command,
            facts: Inventory::default(),
            used,
            notes: Vec::new(),
        };
        if is_long {
            reading.note_of_all(format!("only the first {MOST_LINES} lines are read"));
        }
        reading
    }

    /// Adds a note about a line.
    pub(super) fn note(&mut self, line: u64, what: impl Into<String>) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(Note { line: Some(line), what: what.into() });
        }
    }

    /// Adds a note about the whole.
    pub(super) fn note_of_all(&mut self, what: impl Into<String>) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(Note { line: None, what: what.into() });
        }
    }

    /// Adds a note about a line that is not understood.
    pub(super) fn strange(&mut self, line: Line<'_>) {
        self.note(line.number, format!("not understood: `{}`", quoted(line.text)));
    }

    /// The content, with the name of the program. It is an error if there is none.
    pub(super) fn found(self, tool: &str) -> Result<Found, String> {
        if self.facts == Inventory::default() && self.notes.is_empty() {
            return Err("it ends before anything is complete".to_owned());
        }
        Ok(Found {
            tool: Tool::named(tool),
            facts: self.facts,
            notes: self.notes,
            used: Some(self.used),
            ..Found::default()
        })
    }

    /// The name that follows a program's name and options in the command before the output: that of a port.
    pub(super) fn argument(&self, program: &str) -> Option<&'a str> {
        let mut words = self.command?.split_whitespace();
        words.find(|word| word.rsplit('/').next() == Some(program))?;
        words.find(|word| !word.starts_with('-'))
    }
}

/// A number in hexadecimal digits after `0x`.
pub(super) fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let is_hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(digits, 16).ok())?
}

/// A number in decimal digits alone: a sign is no part of it.
pub(super) fn decimal(text: &str) -> Option<u64> {
    let is_decimal = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_decimal.then(|| text.parse().ok())?
}

/// A number of 32 bits in decimal digits alone.
pub(super) fn small(text: &str) -> Option<u32> {
    decimal(text).and_then(|n| u32::try_from(n).ok())
}

/// The numbers of a list such as `0-3,8`; at most [`MOST`].
pub(super) fn list(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (small(first)?, small(last)?);
        if last < first || (last - first) as usize >= MOST - all.len() {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// A number with at most nine digits behind the point, in billionths.
fn billionths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if part.len() > 9 {
        return None;
    }
    let part = decimal(part)?.checked_mul(10u64.pow(9 - part.len() as u32))?;
    decimal(whole)?.checked_mul(1_000_000_000)?.checked_add(part)
}

/// A decimal number with a point, times `unit`: `2.5` of a billion is 2,500,000,000.
pub(super) fn scaled(text: &str, unit: u64) -> Option<u64> {
    let product = u128::from(billionths(text)?) * u128::from(unit) / 1_000_000_000;
    u64::try_from(product).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_alone() {
        assert_eq!(hexadecimal("0x1f"), Some(31));
        assert_eq!(hexadecimal("1f"), None);
        assert_eq!(hexadecimal("0x"), None);
        assert_eq!(decimal("+1"), None);
        assert_eq!(decimal("18446744073709551616"), None);
        assert_eq!(scaled("2.5", 1_000_000_000), Some(2_500_000_000));
        assert_eq!(scaled("252.048", 1_000_000_000), Some(252_048_000_000));
        assert_eq!(scaled("99999999999999", 1_000_000), None);
        assert_eq!(scaled("1,5", 10), None);
    }

    #[test]
    fn lists_are_bounded() {
        assert_eq!(list("0-2,8"), Some(vec![0, 1, 2, 8]));
        assert_eq!(list(""), Some(vec![]));
        assert_eq!(list("3-1"), None);
        assert_eq!(list("a"), None);
        assert_eq!(list("0-8191").map(|all| all.len()), Some(MOST));
        assert_eq!(list("0-8192"), None);
        assert_eq!(list("0-8191,9000"), None);
        assert_eq!(list("0-4294967295"), None);
    }
}
