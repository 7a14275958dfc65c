//! The note of a record: a few words of the user, by which the record can be found.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Most characters of a note.
const LONGEST: usize = 100;

/// Characters that change the direction of text around them.
const TURNS: [std::ops::RangeInclusive<char>; 2] =
    ['\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}'];

/// A note that has been checked: short, and without characters that disturb a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Note(String);

impl FromStr for Note {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let turns = |c| TURNS.iter().any(|range| range.contains(&c));
        if text.is_empty() {
            return Err("a note has at least one character".to_owned());
        }
        if text.chars().any(|c| c.is_control() || turns(c)) {
            return Err("a note has no control characters".to_owned());
        }
        let length = text.chars().count();
        if length > LONGEST {
            return Err(format!("a note has at most {LONGEST} characters, not {length}"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Note {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Note> for String {
    fn from(note: Note) -> Self {
        note.0
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_short_and_has_no_control_characters() {
        let read = |text: &str| text.parse::<Note>().map(String::from);
        assert_eq!(read(" before "), Ok("before".to_owned()));
        assert!(read(&"ä".repeat(LONGEST)).is_ok());
        for wrong in [&*"ä".repeat(LONGEST + 1), "", " ", "a\nb", "a\u{1b}[1mb", "a\u{202e}b"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
