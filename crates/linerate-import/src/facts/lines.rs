//! Reads the lines of an output, and collects facts from them.

use linerate_facts::Inventory;

use crate::reading::{Found, Line, Notes, Section, command};

/// Largest number of lines of one output that are read.
const MOST_LINES: usize = 200_000;

/// The lines of an output, and the facts that were read from them.
pub(super) struct Reading<'a> {
    /// The lines up to the next prompt, without blank ones, and without blanks at their ends.
    pub(super) lines: Vec<Line<'a>>,
    /// The command before the output.
    pub(super) command: Option<&'a str>,
    /// The facts that were read.
    pub(super) facts: Inventory,
    pub(super) notes: Notes,
    /// Number of bytes up to the prompt.
    used: usize,
}

impl<'a> Reading<'a> {
    /// The lines of a section up to the next prompt of a shell. No prompt is indented.
    pub(super) fn of(section: &Section<'a>) -> Self {
        Self::until(section, is_prompt)
    }

    /// The lines of a section up to one for which `ends` is true; the first line is always included.
    pub(super) fn until(section: &Section<'a>, ends: impl Fn(&str) -> bool) -> Self {
        let mut reading = Self {
            lines: Vec::new(),
            command: section.command,
            facts: Inventory::default(),
            notes: Notes::default(),
            used: 0,
        };
        for line in section.lines() {
            if reading.used > 0 && ends(line.text) {
                break;
            }
            reading.used = line.end;
            let text = line.text.trim_end();
            if !text.is_empty() && reading.lines.len() < MOST_LINES {
                reading.lines.push(Line { text, ..line });
            }
        }
        if reading.lines.len() == MOST_LINES {
            reading.notes.whole(format!("only the first {MOST_LINES} lines are read"));
        }
        reading
    }

    /// Reads each line with `take`. If it returns `None`, the line is not understood and gets a note.
    pub(super) fn each(&mut self, mut take: impl FnMut(&mut Self, Line<'a>) -> Option<()>) {
        for line in std::mem::take(&mut self.lines) {
            if take(self, line).is_none() {
                self.strange(line);
            }
        }
    }

    /// Adds a note about a line that is not understood.
    pub(super) fn strange(&mut self, line: Line<'_>) {
        self.notes.strange(line.number, line.text);
    }

    /// The facts, as the output of the program `tool`. It is an error if there are no facts and no notes.
    pub(super) fn found(self, tool: &str) -> Result<Found, String> {
        if self.facts == Inventory::default() && self.notes.0.is_empty() {
            return Err("it ends before anything is complete".to_owned());
        }
        Ok(Found { facts: self.facts, ..Found::of(tool, self.used, self.notes) })
    }

    /// The argument after the program's name and options in the command before the output: the name of a port.
    pub(super) fn argument(&self, program: &str) -> Option<&'a str> {
        let mut words = self.command?.split_whitespace();
        words.find(|word| word.rsplit('/').next() == Some(program))?;
        words.find(|word| !word.starts_with('-'))
    }
}

/// Stores a fact; `None`, so that the value is unknown, if it was not understood.
pub(super) fn understood<T>(into: &mut Option<T>, fact: Option<T>) -> Option<()> {
    *into = fact;
    into.is_some().then_some(())
}

/// Whether a line begins with the prompt of a shell, which is never indented.
pub(super) fn is_prompt(line: &str) -> bool {
    !line.starts_with([' ', '\t']) && command(line).is_some()
}
