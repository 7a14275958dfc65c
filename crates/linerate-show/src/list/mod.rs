//! The result of `linerate list`: the saved records, as text and as JSON.

pub mod json;
mod text;

use linerate_explain::Headline;
use linerate_judge::figure::{GOODPUT, LATENCY, Subject, Summary};
use linerate_judge::verdict::Verdict;
use linerate_plan::path::{Certainty, Direction, Measure};
use linerate_record::{End, Record, Start};
use linerate_units::Bytes;

pub use json::json;
pub use text::page;

/// The records of a directory, oldest first.
#[derive(Debug, Default)]
pub struct Listed {
    /// The directory in which the records are saved.
    pub dir: String,
    /// The records that are listed.
    pub rows: Vec<Row>,
    /// Number of older records that match the filter and are not listed.
    pub left_out: usize,
}

impl Listed {
    /// The headline of the newest record that was judged.
    fn headline(&self) -> Option<Headline> {
        let mut newest = self.rows.iter().rev().filter_map(|row| row.answer.as_ref());
        newest.next()?.headline.clone()
    }
}

/// A file in the directory of records.
#[derive(Debug)]
pub struct Row {
    /// Name of the record: its file name without `.lnr`.
    pub name: String,
    /// The start of the record, or why the file is no record.
    pub start: Result<Start, String>,
    /// The result in brief; `None` if the record was not judged.
    pub answer: Option<Answer>,
    /// Why the record could not be judged or which part is missing; empty if there is no problem.
    pub problem: String,
}

/// The result of a record in brief.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The headline; `None` if nothing was judged.
    pub headline: Option<Headline>,
    /// Whether all that was planned was measured.
    pub complete: bool,
    /// The goodput of each direction that was measured.
    pub rates: Vec<Goodput>,
    /// The typical round trip on the idle path, in nanoseconds.
    pub round_trip: Option<f64>,
    /// Payload of the messages of `round_trip`, for a sweep; `None` for other records.
    pub size: Option<Bytes>,
    /// Names of the files of an import.
    pub files: Vec<String>,
}

/// The goodput of a direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goodput {
    /// Direction of the goodput.
    pub direction: Direction,
    /// Goodput in bits per second.
    pub rate: f64,
    /// The first limit of the goodput, and how certain it is; `None` if it is unknown, or if no limit was looked for.
    pub limit: Option<(&'static str, Certainty)>,
}

impl Answer {
    /// The result in brief: the main figures of a record, its headline, and limits from the verdict if one is given.
    pub fn of(
        record: &Record,
        summary: &Summary,
        headline: Option<Headline>,
        verdict: Option<&Verdict>,
    ) -> Self {
        let rates = Direction::ALL.into_iter().filter_map(|direction| {
            let value = summary.value(&GOODPUT, Subject::load(direction))?;
            Some(Goodput {
                direction,
                rate: value.mid,
                limit: verdict.and_then(|verdict| limit(verdict, direction)),
            })
        });
        let typical = Subject { percentile: Some(50.0), ..Subject::default() };
        let files = record.imported.iter().flat_map(|imported| &imported.files);
        Self {
            headline,
            complete: matches!(record.end, Some(End::Complete)),
            rates: rates.collect(),
            round_trip: summary.value(&LATENCY, typical).map(|value| value.mid),
            size: None,
            files: files.map(|file| file.name.clone()).collect(),
        }
    }

    /// The result of a sweep in brief: the round trip of its smallest messages.
    pub fn of_sweep(record: &Record, smallest: Option<(Bytes, u64)>) -> Self {
        Self {
            complete: matches!(record.end, Some(End::Complete)),
            round_trip: smallest.map(|(_, nanos)| nanos as f64),
            size: smallest.map(|(size, _)| size),
            ..Self::default()
        }
    }
}

fn limit(verdict: &Verdict, direction: Direction) -> Option<(&'static str, Certainty)> {
    let mut limits = verdict.limits.iter();
    let found = limits.find(|l| l.metric == Measure::Goodput && l.direction == direction);
    found.map(|limit| (limit.cause, limit.certainty))
}

#[cfg(test)]
#[path = "tests/sample.rs"]
mod sample;
