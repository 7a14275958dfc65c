//! The parts of which the texts of faults consist.

use std::fmt::Display;
use std::str::FromStr;

use linerate_plan::application::{Habit, HabitError};
use linerate_plan::path::{Direction, Side};
use linerate_units::{Bytes, Nanos, Rate};

use super::{Depth, FaultDirection, FaultError, Manner, Origin, Rhythm, Share};

/// A part of a fault's text, which is one or more of its pieces.
pub(super) trait Part: Sized {
    /// Removes the pieces of this part from the end, and parses them.
    fn read(pieces: &mut Pieces<'_>) -> Result<Self, FaultError>;

    /// Returns the text that is parsed to this part.
    fn text(&self) -> String;
}

/// The pieces of a fault's text, which commas separate. The last part is parsed first, because parts that may be left
/// out are at the end.
pub(super) struct Pieces<'a> {
    /// The text that the user typed.
    text: &'a str,
    /// The text after the fault's name and colon.
    rest: &'a str,
    /// Correct text of such a fault.
    example: &'static str,
    /// Pieces that no part has been parsed from yet.
    left: Vec<&'a str>,
    /// The error for the wrong value that was parsed last, which is the first wrong one in the text. It is reported
    /// only if the text has the right form.
    wrong: Option<FaultError>,
}

/// Parses all parts of a fault from `rest`, the text after its name.
pub(super) fn read<P: Part>(
    text: &str,
    rest: &str,
    example: &'static str,
) -> Result<P, FaultError> {
    let left = rest.split(',').map(str::trim).collect();
    let mut pieces = Pieces { text, rest, example, left, wrong: None };
    let parts = P::read(&mut pieces)?;
    if !pieces.left.is_empty() {
        return Err(pieces.form());
    }
    pieces.wrong.map_or(Ok(parts), Err)
}

impl<'a> Pieces<'a> {
    fn form(&self) -> FaultError {
        FaultError::Form { text: self.text.to_owned(), example: self.example }
    }

    fn refuse(&self, error: impl Display) -> FaultError {
        FaultError::Value { text: self.text.to_owned(), error: error.to_string() }
    }

    /// Removes and returns the last piece.
    fn last(&mut self) -> Result<&'a str, FaultError> {
        self.left.pop().ok_or_else(|| self.form())
    }

    /// Removes the last piece and parses it as `label` and a number.
    fn number(&mut self, label: &str) -> Result<u32, FaultError> {
        let number = self.last()?.strip_prefix(label).and_then(|number| number.parse().ok());
        number.ok_or_else(|| self.form())
    }

    /// Removes the last piece and parses it as a quantity. For a wrong one returns `other`, so that errors of form are
    /// found first.
    fn quantity<T: FromStr<Err: Display>>(&mut self, other: T) -> Result<T, FaultError> {
        let piece = self.last()?;
        Ok(self.later(self.parse(piece), other))
    }

    fn parse<T: FromStr<Err: Display>>(&self, piece: &str) -> Result<T, FaultError> {
        piece.parse().map_err(|error| self.refuse(error))
    }

    /// Returns the value. If it is an error, keeps the error for later and returns `other`.
    fn later<T>(&mut self, value: Result<T, FaultError>, other: T) -> T {
        value.unwrap_or_else(|error| {
            self.wrong = Some(error);
            other
        })
    }
}

impl<A: Part, B: Part> Part for (A, B) {
    fn read(pieces: &mut Pieces<'_>) -> Result<Self, FaultError> {
        let last = B::read(pieces)?;
        Ok((A::read(pieces)?, last))
    }

    fn text(&self) -> String {
        format!("{},{}", self.0.text(), self.1.text())
    }
}

impl<A: Part, B: Part, C: Part> Part for (A, B, C) {
    fn read(pieces: &mut Pieces<'_>) -> Result<Self, FaultError> {
        let ((first, second), last) = Part::read(pieces)?;
        Ok((first, second, last))
    }

    fn text(&self) -> String {
        format!("{},{},{}", self.0.text(), self.1.text(), self.2.text())
    }
}

/// The words of a choice, each with its meaning.
type Words<T> = &'static [(&'static str, T)];

/// A part that is one of a few words.
pub(super) trait Choice: Copy + PartialEq + 'static {
    /// All words of this choice.
    const WORDS: Words<Self>;
    /// The meaning if no word is given; `None` if a word is required.
    const LEFT_OUT: Option<Self> = None;

    fn word(self) -> &'static str {
        let own = Self::WORDS.iter().find(|(_, choice)| *choice == self);
        own.map_or("", |(word, _)| word)
    }
}

impl<T: Choice> Part for T {
    fn read(pieces: &mut Pieces<'_>) -> Result<Self, FaultError> {
        let named = |last: &&str| T::WORDS.iter().find(|(word, _)| word == last);
        match pieces.left.last().and_then(named) {
            Some((_, choice)) => pieces.last().map(|_| *choice),
            None => T::LEFT_OUT.ok_or_else(|| pieces.form()),
        }
    }

    fn text(&self) -> String {
        self.word().to_owned()
    }
}

impl Choice for Side {
    const WORDS: Words<Self> = &[("near", Self::Near), ("far", Self::Far)];
}

impl Choice for Depth {
    const WORDS: Words<Self> = &[("shallow", Self::Shallow), ("deep", Self::Deep)];
}

impl Choice for Manner {
    const WORDS: Words<Self> = &[("shaped", Self::Shaped), ("policed", Self::Policed)];
}

impl Choice for FaultDirection {
    const WORDS: Words<Self> =
        &[("forward", Self::Forward), ("reverse", Self::Reverse), ("both", Self::Both)];
    const LEFT_OUT: Option<Self> = Some(Self::Both);
}

/// The word `off`.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Off;

impl Choice for Off {
    const WORDS: Words<Self> = &[("off", Self)];
}

/// A number, written after `cpu=`.
pub(super) struct Cpu(pub(super) u32);

/// A number, written after `threads=`.
pub(super) struct Threads(pub(super) u32);

/// A number, written after `every=`.
pub(super) struct Every(pub(super) u32);

/// Makes parts that are one piece each. A row has a type, the code that parses its value from the pieces, and the
/// value's text.
macro_rules! single {
    ($($part:ident: |$pieces:ident| $read:expr, |$value:pat_param| $text:expr;)*) => {$(
        impl Part for $part {
            fn read($pieces: &mut Pieces<'_>) -> Result<Self, FaultError> {
                $read
            }

            fn text(&self) -> String {
                let $value = self;
                $text
            }
        }
    )*};
}

single! {
    Rate: |pieces| pieces.quantity(Rate(0)), |rate| rate.exact();
    Nanos: |pieces| pieces.quantity(Nanos(0)), |time| time.exact();
    Bytes: |pieces| pieces.quantity(Bytes(0)), |bytes| bytes.exact();
    Share: |pieces| pieces.quantity(Share::LEAST), |share| share.to_string();
    u32: |pieces| pieces.number(""), |number| number.to_string();
    Cpu: |pieces| pieces.number("cpu=").map(Cpu), |Cpu(cpu)| format!("cpu={cpu}");
    Threads: |pieces| pieces.number("threads=").map(Threads), |Threads(n)| format!("threads={n}");
    Every: |pieces| pieces.number("every=").map(Every), |Every(n)| format!("every={n}");
}

/// Number of packets that are lost in a row (left out if it is 1), and directions.
pub(super) struct Bursts(pub(super) u32, pub(super) FaultDirection);

impl Part for Bursts {
    fn read(pieces: &mut Pieces<'_>) -> Result<Self, FaultError> {
        let directions = Part::read(pieces)?;
        let burst = if pieces.left.len() < 2 { 1 } else { pieces.number("bursts=")? };
        Ok(Self(burst, directions))
    }

    fn text(&self) -> String {
        match self {
            Self(1, directions) => directions.text(),
            Self(burst, directions) => format!("bursts={burst},{}", directions.text()),
        }
    }
}

/// Delays forward and in reverse: written as their sum if they are equal, as one delay with its direction if the other
/// is zero, else as both.
pub(super) struct RoundTrip(pub(super) Nanos, pub(super) Nanos);

impl Part for RoundTrip {
    fn read(pieces: &mut Pieces<'_>) -> Result<Self, FaultError> {
        let time = |piece| pieces.parse::<Nanos>(piece);
        let both = match pieces.left[..] {
            [sum] => {
                let half = Nanos(time(sum)?.0 / 2);
                Self(half, half)
            }
            [forward, "forward"] => Self(time(forward)?, Nanos(0)),
            [reverse, "reverse"] => Self(Nanos(0), time(reverse)?),
            [forward, reverse] => Self(time(forward)?, time(reverse)?),
            _ => return Err(pieces.form()),
        };
        pieces.left.clear();
        Ok(both)
    }

    fn text(&self) -> String {
        let Self(forward, reverse) = self;
        match (forward.0, reverse.0) {
            (a, b) if a == b => Nanos(a.saturating_mul(2)).exact(),
            (_, 0) => format!("{},forward", forward.exact()),
            (0, _) => format!("{},reverse", reverse.exact()),
            _ => format!("{},{}", forward.exact(), reverse.exact()),
        }
    }
}

/// Direction of traffic, followed by `ends` if the traffic is between the hosts.
pub(super) struct Course(pub(super) Direction, pub(super) Origin);

impl Part for Course {
    fn read(pieces: &mut Pieces<'_>) -> Result<Self, FaultError> {
        let (direction, origin) = match pieces.left[..] {
            [_, direction] => (direction, Origin::Elsewhere),
            [_, direction, "ends"] => (direction, Origin::Ends),
            _ => return Err(pieces.form()),
        };
        pieces.left.truncate(1);
        let named = Direction::ALL.into_iter().find(|d| d.name() == direction);
        let direction = pieces.later(named.ok_or_else(|| pieces.form()), Direction::Forward);
        Ok(Self(direction, origin))
    }

    fn text(&self) -> String {
        let ends = if self.1 == Origin::Ends { ",ends" } else { "" };
        format!("{}{ends}", self.0.name())
    }
}

/// Length of stalls, after the time of a single stall or before the period of repeated ones.
pub(super) struct Stalls(pub(super) Nanos, pub(super) Rhythm);

impl Part for Stalls {
    fn read(pieces: &mut Pieces<'_>) -> Result<Self, FaultError> {
        let [_, first, second] = pieces.left[..] else {
            return Err(pieces.form());
        };
        let (lasting, rhythm) = match second.strip_prefix("every=") {
            Some(period) => (first, Rhythm::Every(pieces.parse(period)?)),
            None => (second, Rhythm::Once(pieces.parse(first)?)),
        };
        pieces.left.truncate(1);
        Ok(Self(pieces.later(pieces.parse(lasting), Nanos(0)), rhythm))
    }

    fn text(&self) -> String {
        let lasting = self.0.exact();
        match self.1 {
            Rhythm::Once(after) => format!("{},{lasting}", after.exact()),
            Rhythm::Every(period) => format!("{lasting},every={}", period.exact()),
        }
    }
}

impl Part for Habit {
    fn read(pieces: &mut Pieces<'_>) -> Result<Self, FaultError> {
        // There is always at least one piece: the side, before the habit.
        let habit = pieces.left.split_off(1).join(",");
        habit.parse().map_err(|error| match error {
            HabitError::Form(_) => pieces.form(),
            HabitError::Pause { error, .. } => pieces.refuse(error),
        })
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// Name and value of an environment variable. The value may contain commas.
pub(super) struct Variable(pub(super) String, pub(super) String);

impl Part for Variable {
    fn read(pieces: &mut Pieces<'_>) -> Result<Self, FaultError> {
        let parts = pieces.rest.split_once(',');
        let parts = parts.and_then(|(side, set)| Some((side, set.split_once('=')?)));
        match parts {
            Some((side, (name, value))) if !name.is_empty() && !pieces.rest.contains('\0') => {
                pieces.left = vec![side];
                Ok(Self(name.to_owned(), value.to_owned()))
            }
            _ => Err(pieces.form()),
        }
    }

    fn text(&self) -> String {
        format!("{}={}", self.0, self.1)
    }
}
