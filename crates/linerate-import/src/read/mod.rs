//! Finds the outputs of known programs in a text, and reads them.

#[cfg(test)]
#[path = "tests/damage.rs"]
mod damage;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use linerate_facts::Inventory;
use linerate_record::reported::{Note, Outcome, Tool};

use crate::FORMATS;
use crate::facts::is_speed;
use crate::format::{Extent, Format, Found, Holds, Section, Start};
use crate::heads::with_heads;
use crate::peel::{Peeled, peeled};
use crate::reading::{Notes, command, floor, quoted, run};
use crate::text::{decoded, plain, tidy};

/// Largest input, in bytes.
pub const MOST_BYTES: usize = 256 << 20;
/// Largest number of outputs in one input.
const MOST_PARTS: usize = 1_000;

/// Number of lines outside of any output that get their own note, and of those whose line numbers are kept.
const MOST_STRAY: usize = 3;
const MOST_NUMBERS: usize = 10_000;
/// Largest number of ranges of lines that a note lists.
const MOST_RANGES: usize = 12;
/// Largest number of prefixes, one inside the other, that are removed from lines.
const MOST_PREFIXES: u32 = 4;

/// Longest output in bytes, for formats whose reader finds the end itself.
const MOST_OWN: usize = 1 << 20;

/// Why an input has nothing to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The input has no bytes, or only blank lines.
    #[error("it is empty")]
    Empty,
    /// The input is longer than [`MOST_BYTES`].
    #[error("it is longer than {} MiB", MOST_BYTES >> 20)]
    TooLong,
    /// The input is not text.
    #[error("it is binary, and no text")]
    Binary,
    /// No format recognises any part of the input.
    #[error("no output of a known program was found in it; its first line is `{0}`")]
    Unknown(String),
    /// Outputs were recognised, but none of them could be read.
    #[error("line {line} looks like output of {label}, and cannot be read: {why}")]
    Damaged {
        /// The first line of the first output that could not be read, from 1.
        line: u64,
        /// The format of that output.
        label: &'static str,
        /// Why that output could not be read.
        why: String,
    },
}

/// The outputs in an input.
#[derive(Debug)]
pub struct Parsed {
    /// The outputs, in order; at least one.
    pub parts: Vec<Part>,
    /// Notes about lines outside of any output.
    pub notes: Vec<Note>,
}

/// One output of a program.
#[derive(Debug)]
pub struct Part {
    /// The format that recognised the output.
    pub format: &'static Format,
    /// Number of the output's first line, from 1.
    pub line: u64,
    /// The program that printed the output.
    pub tool: Tool,
    /// The results in the output.
    pub results: Vec<Outcome>,
    /// The facts in the output.
    pub facts: Inventory,
    /// Notes about the output.
    pub notes: Vec<Note>,
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// The text without what web pages added, and with the missing first lines of parts. A JSON document is left as it
/// is.
fn prepared(text: &str) -> Cow<'_, str> {
    if is_json(text) {
        return Cow::Borrowed(text);
    }
    let is_known = |rest: &str| starting(rest).is_some() && !is_speed(rest);
    match tidy(text) {
        Cow::Borrowed(text) => with_heads(text, is_known),
        Cow::Owned(text) => Cow::Owned(with_heads(&text, is_known).into_owned()),
    }
}

/// Reads all outputs in an input.
pub fn read(bytes: &[u8]) -> Result<Parsed, Refused> {
    if bytes.len() > MOST_BYTES {
        return Err(Refused::TooLong);
    }
    let text = decoded(bytes).ok_or(Refused::Binary)?;
    let text = plain(&text);
    let text = prepared(&text);
    let first = text.lines().find(|line| !line.trim().is_empty());
    let first = quoted(first.ok_or(Refused::Empty)?);
    let mut reader = Reader::new(&text);
    reader.run();
    match (reader.parts.is_empty(), reader.damaged) {
        (true, None) => Err(Refused::Unknown(first)),
        (true, Some((line, format, why))) => {
            Err(Refused::Damaged { line, label: format.label, why })
        }
        (false, _) => Ok(Parsed { parts: reader.parts, notes: reader.notes.0 }),
    }
}

/// Whether a text is one JSON document that no web page has changed. It may be long, and needs no preparation.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.trim_end().ends_with('}') && !text.contains('&')
}

struct Reader<'a> {
    /// The text that is not read yet. It begins at the start of a line.
    rest: &'a str,
    /// Number of the first line of `rest`, from 1.
    line: u64,
    /// The command that printed the text in `rest`, from a line before it.
    command: Option<&'a str>,
    parts: Vec<Part>,
    notes: Notes,
    /// Number of outputs that could not be read.
    failed: usize,
    /// The first output that could not be read: its first line, its format, and the reason.
    damaged: Option<(u64, &'static Format, String)>,
    /// Lines that no format understood: the texts of the first ones, and below, the numbers of all.
    stray: Vec<(u64, String)>,
    strays: Vec<u64>,
    /// Number of prefixes that were removed from each line of the text.
    prefixes: u32,
    /// Length of `rest` behind lines whose common prefix hides no output: until there no prefix is tried.
    retry_below: usize,
}

impl<'a> Reader<'a> {
    fn new(rest: &'a str) -> Self {
        Self {
            rest,
            line: 1,
            command: None,
            parts: Vec::new(),
            notes: Notes::default(),
            failed: 0,
            damaged: None,
            stray: Vec::new(),
            strays: Vec::new(),
            prefixes: 0,
            retry_below: usize::MAX,
        }
    }

    fn run(&mut self) {
        self.outputs();
        self.note_strays();
        self.notes.0.sort_by_key(|note| note.line);
    }

    fn outputs(&mut self) {
        while !self.rest.is_empty() && self.parts.len() + self.failed < MOST_PARTS {
            match starting(self.rest) {
                Some(format) => self.output(format),
                None => self.other_line(),
            }
        }
    }

    /// Reads the output that begins at the start of `rest`.
    fn output(&mut self, format: &'static Format) {
        // Rows of a text may also begin with a bracket.
        let is_text = matches!(format.extent, Extent::GoesOn(_));
        let is_json = self.rest.starts_with(['{', '[']) && !is_text;
        let (end, read) = if is_json {
            let end = self.rest.len();
            (end, (format.read)(&self.section(end)))
        } else if matches!(format.extent, Extent::Own) {
            self.own_end(format)
        } else {
            let end = extent(self.rest, format);
            (end, (format.read)(&self.section(end)))
        };
        match read {
            Ok(found) => {
                let used = found.used.unwrap_or(end).min(end);
                self.keep(format, found);
                self.skip(used);
            }
            Err(why) => {
                self.refuse(format, why);
                self.skip(if is_json {
                    value(self.rest).unwrap_or_else(|| extent(self.rest, format))
                } else {
                    next_prompt(&self.rest[..end])
                });
            }
        }
    }

    /// Reads an output of a format that finds its own end, up to the start of an output of another format.
    fn own_end(&self, format: &'static Format) -> (usize, Result<Found, String>) {
        let end = whole_lines(self.rest, MOST_OWN);
        let read = (format.read)(&self.section(end));
        let used = match &read {
            Ok(found) => found.used.unwrap_or(end).min(end),
            Err(_) => next_prompt(&self.rest[..end]),
        };
        let other = extent(&self.rest[..used], format);
        if other == used {
            return (end, read);
        }
        (other, (format.read)(&self.section(other)))
    }

    /// The first `end` bytes of `rest`.
    fn section(&self, end: usize) -> Section<'a> {
        Section { text: &self.rest[..end], line: self.line, command: self.command }
    }

    fn keep(&mut self, format: &'static Format, found: Found) {
        let Found { tool, results, facts, notes: Notes(notes), .. } = found;
        // An output without results and facts could not be read: its first note says why.
        if format.holds == Holds::Results
            && results.is_empty()
            && facts == Inventory::default()
            && let Some(first) = notes.first()
        {
            let mut why = first.what.clone();
            // A later note may have the line at which the output is damaged.
            if let Some((second, line)) = notes.get(1).and_then(|note| Some((note, note.line?))) {
                why = format!("{why}; line {line}: {}", second.what);
            }
            return self.refuse(format, why);
        }
        self.parts.push(Part { format, line: self.line, tool, results, facts, notes });
    }

    fn refuse(&mut self, format: &'static Format, why: String) {
        let what = format!("looks like output of {}, and cannot be read: {why}", format.label);
        self.notes.push(Some(self.line), what);
        self.damaged.get_or_insert((self.line, format, why));
        self.failed += 1;
    }

    /// Moves `rest` behind `used` bytes, to the start of a line.
    fn skip(&mut self, used: usize) {
        let used = floor(self.rest, used);
        let to_end_of_line =
            self.rest[used..].find('\n').map_or(self.rest.len(), |at| used + at + 1);
        // If the bytes used end with a line, nothing of that line is left.
        let ended = used > 0 && self.rest[..used].ends_with('\n');
        let next = if ended { used } else { to_end_of_line };
        let (done, rest) = self.rest.split_at(next);
        self.line += done.bytes().filter(|b| *b == b'\n').count() as u64;
        self.rest = rest;
        self.command = None;
    }

    /// Skips a line that is outside of any output.
    fn other_line(&mut self) {
        let end = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
        let (line, rest) = self.rest.split_at(end);
        if line.trim().is_empty() {
            self.rest = rest;
            self.line += 1;
            return;
        }
        if self.hidden() {
            return;
        }
        let known = run(line).or_else(|| command(line));
        // The lines that follow belong to this command, even if some of them are not understood. A line of dashes
        // needs no note.
        self.command = known.or(self.command);
        let is_rule = line.trim().bytes().all(|byte| b"- ".contains(&byte));
        if known.is_none() && !is_rule {
            if self.strays.len() < MOST_NUMBERS {
                self.strays.push(self.line);
            }
            if self.stray.len() < MOST_STRAY {
                self.stray.push((self.line, quoted(line)));
            }
        }
        self.rest = rest;
        self.line += 1;
    }

    /// Reads the outputs that a prefix of the next lines hides. Returns whether there are any.
    fn hidden(&mut self) -> bool {
        if self.prefixes >= MOST_PREFIXES || self.rest.len() > self.retry_below {
            return false;
        }
        let Some(Peeled { end, text }) = peeled(self.rest) else {
            return false;
        };
        let text = tidy(&text);
        let mut inner = Reader {
            line: self.line,
            command: self.command,
            prefixes: self.prefixes + 1,
            ..Reader::new(&text)
        };
        inner.outputs();
        if inner.parts.is_empty() {
            self.retry_below = self.rest.len() - end;
            return false;
        }
        let Reader { parts, mut notes, failed, damaged, stray, strays, .. } = inner;
        self.parts.extend(parts);
        self.failed += failed;
        self.damaged = self.damaged.take().or(damaged);
        self.stray.extend(stray);
        self.stray.truncate(MOST_STRAY);
        self.strays.extend(strays);
        self.notes.append(&mut notes);
        self.skip(end);
        true
    }

    fn note_strays(&mut self) {
        let stray = std::mem::take(&mut self.stray);
        if self.strays.len() <= MOST_STRAY {
            for (line, text) in stray {
                self.notes.push(Some(line), format!("not understood: `{text}`"));
            }
        } else if let Some((line, text)) = stray.first() {
            let (count, lines) = (self.strays.len(), ranges(&self.strays));
            let what = format!(
                "{count} lines that are no output of a known program ({lines}), the first: `{text}`"
            );
            self.notes.push(Some(*line), what);
        }
    }
}

/// Numbers of lines as a text. Consecutive numbers become a range: `3, 7-9`.
fn ranges(lines: &[u64]) -> String {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for line in lines {
        match all.last_mut() {
            Some((_, last)) if *last + 1 == *line => *last = *line,
            _ => all.push((*line, *line)),
        }
    }
    let more = if all.len() > MOST_RANGES { ", ..." } else { "" };
    let named = all.iter().take(MOST_RANGES).map(|(first, last)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    });
    format!("{}{more}", named.collect::<Vec<_>>().join(", "))
}

/// Number of bytes of the JSON value at the start of a text; `None` if the value is damaged, so that its end is
/// unknown.
fn value(text: &str) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    let is_whole = matches!(values.next(), Some(Ok(_)));
    is_whole.then(|| values.byte_offset())
}

/// The format of the output with which a text begins.
fn starting(text: &str) -> Option<&'static Format> {
    let at = Start::of(text);
    let known = || FORMATS.iter().copied().find(|format| (format.starts)(at));
    if is_prose(at) { None } else { known() }
}

/// Whether the first line has only words, and the second one no digit and no dash: no output begins so. This test
/// saves time: trying each format at each line of a long text is slow.
fn is_prose(at: Start<'_>) -> bool {
    let (first, second) = (at.line.trim_end(), at.next.trim_end());
    let is_words = |byte: u8| byte.is_ascii_alphabetic() || b" ,.'!?".contains(&byte);
    first.bytes().all(is_words)
        && !second.bytes().any(|byte| byte.is_ascii_digit() || byte == b'-')
        && !FORMATS.iter().flat_map(|format| format.first_words).any(|words| first.ends_with(words))
}

/// Number of bytes from the start of an output to the line at which another output begins.
fn extent(text: &str, own: &Format) -> usize {
    let continues = |next: &Format, before: &str, rest: &str| {
        next == own
            && match own.extent {
                Extent::One => false,
                Extent::Parts | Extent::Own => true,
                Extent::GoesOn(goes_on) => goes_on(before, rest),
            }
    };
    let ends = text.match_indices('\n').map(|(at, _)| at + 1);
    let mut starts = ends.filter(|at| *at < text.len());
    let is_run = |rest: &str| own.holds == Holds::Results && run(Start::of(rest).line).is_some();
    let is_end = |at: &usize| {
        let (before, rest) = text.split_at(*at);
        is_run(rest) || starting(rest).is_some_and(|next| !continues(next, before, rest))
    };
    let next = starts.find(is_end);
    next.map_or(text.len(), |at| before_prompt(text, at))
}

/// Number of bytes up to the end of the line that contains byte `most`.
fn whole_lines(text: &str, most: usize) -> usize {
    let rest = text.as_bytes().get(most..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'\n');
    end.map_or(text.len(), |at| most + at + 1)
}

/// The start of the line before `at`, if that line is a prompt with a command, and is not the first line; else `at`.
fn before_prompt(text: &str, at: usize) -> usize {
    let before = text[..at].trim_end_matches('\n');
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    if start > 0 && command(&before[start..]).is_some() { start } else { at }
}

/// Number of bytes up to the next prompt with a command, after the first line.
fn next_prompt(text: &str) -> usize {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at > 0 && command(line).is_some() {
            return at;
        }
        at += line.len();
    }
    at
}
