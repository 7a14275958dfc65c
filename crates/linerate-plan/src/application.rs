//! The habit that makes an application of the lab slow, and the text that configures it.
//!
//! The lab sets the environment variable [`VARIABLE`] for the programs of one host; the engine reads it. Both parse and
//! print it with the type [`Habit`], so they cannot disagree.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use linerate_units::{Nanos, UnitError};

/// Name of the environment variable that holds a [`Habit`] as text.
pub const VARIABLE: &str = "LINERATE_LAB_APPLICATION";

/// The role of an application on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The application sends payload, or drives round trips.
    Sender,
    /// The application receives payload, or answers the messages of round trips.
    Receiver,
}

/// The burden that makes an application slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Burden {
    /// CPU time for each byte of payload, in picoseconds.
    Work {
        /// CPU time in picoseconds for each byte.
        ps_per_byte: u64,
    },
    /// A pause between operations, without CPU use.
    Pause {
        /// Length of the pause before the next operation.
        per_operation: Nanos,
    },
}

/// A burden, and the end that has it.
///
/// Its text is `[sender,|receiver,]work=800ps/B` or `...pause=200us/op`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Habit {
    /// The end that has the burden; `None` for both ends.
    pub role: Option<Role>,
    /// The planted burden.
    pub burden: Burden,
}

/// The text does not describe a habit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HabitError {
    /// The text does not have the form of a [`Habit`].
    #[error("`{0}` is not `[sender,|receiver,]work=800ps/B` or `...pause=200us/op`")]
    Form(String),
    /// The text of the pause is not a duration.
    #[error("`{text}`: {error}")]
    Pause {
        /// The text of the pause, which could not be read.
        text: String,
        /// Why the text is no duration.
        error: UnitError,
    },
}

impl Habit {
    /// Whether a thread with this `role` has the burden.
    pub fn binds(self, role: Role) -> bool {
        self.role.is_none_or(|own| own == role)
    }
}

impl fmt::Display for Habit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.role {
            None => "",
            Some(Role::Sender) => "sender,",
            Some(Role::Receiver) => "receiver,",
        })?;
        match self.burden {
            Burden::Work { ps_per_byte } => write!(f, "work={ps_per_byte}ps/B"),
            Burden::Pause { per_operation } => write!(f, "pause={}/op", per_operation.exact()),
        }
    }
}

impl FromStr for Habit {
    type Err = HabitError;

    fn from_str(text: &str) -> Result<Self, HabitError> {
        let form = || HabitError::Form(text.to_owned());
        let (role, burden) = match text.split_once(',') {
            None => (None, text),
            Some((role, burden)) => match role.trim() {
                "sender" => (Some(Role::Sender), burden),
                "receiver" => (Some(Role::Receiver), burden),
                _ => return Err(form()),
            },
        };
        let burden = match burden.trim().split_once('=').ok_or_else(form)? {
            ("work", value) => {
                let number = value.strip_suffix("ps/B").and_then(|n| n.parse().ok());
                let ps_per_byte = number.ok_or_else(form)?;
                Burden::Work { ps_per_byte }
            }
            ("pause", value) => {
                let time = value.strip_suffix("/op").ok_or_else(form)?;
                let per_operation = time
                    .parse()
                    .map_err(|error| HabitError::Pause { text: text.to_owned(), error })?;
                Burden::Pause { per_operation }
            }
            _ => return Err(form()),
        };
        Ok(Self { role, burden })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_habit_reads_back_as_itself(who in 0..3_usize, work: bool, n in 0..1_u64 << 52) {
            let role = [None, Some(Role::Sender), Some(Role::Receiver)][who];
            let burden = if work {
                Burden::Work { ps_per_byte: n }
            } else {
                Burden::Pause { per_operation: Nanos(n) }
            };
            let habit = Habit { role, burden };
            prop_assert_eq!(habit.to_string().parse(), Ok(habit));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".*") {
            let _ = text.parse::<Habit>();
        }
    }

    #[test]
    fn a_habit_is_written_as_documented() {
        let habit: Habit = "receiver, work=4000ps/B".parse().unwrap();
        assert_eq!(habit.to_string(), "receiver,work=4000ps/B");
        assert!(habit.binds(Role::Receiver) && !habit.binds(Role::Sender));
        let habit: Habit = "pause=0.2ms/op".parse().unwrap();
        assert_eq!(habit.to_string(), "pause=200us/op");
        assert!(habit.binds(Role::Receiver) && habit.binds(Role::Sender));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_in_words() {
        for text in [
            "",
            "work",
            "work=800",
            "work=800ns/B",
            "work=-1ps/B",
            "pause=200us",
            "pause=3/op",
            "both,work=1ps/B",
            "sleep=1us/op",
            "sender,",
            "sender,receiver,work=1ps/B",
        ] {
            let why = text.parse::<Habit>().unwrap_err().to_string();
            assert!(why.contains(&format!("`{text}`")), "{why}");
        }
    }
}
