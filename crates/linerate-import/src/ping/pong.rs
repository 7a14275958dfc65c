//! Single answers of `ibping`, without its statistics: those of a run that was cut short, or a part of its output.
//= infiniband-diags 44, ibping.c: "Pong from %s (%s): time %" PRIu64 ".%03" PRIu64 " ms\n"

use linerate_core::reported::{Setup, SizeRow, Sizes, Tool, Trip};
use linerate_core::units::Nanos;

use super::DATAGRAM;
use crate::format::{Found, Section};
use crate::scaled::{MILLI, MOST_ROWS, Notes, lines, nanos, number};

/// The start of an answer.
pub(super) const MARK: &str = "Pong from ";

/// Answers from which on their median is typical.
const ENOUGH: usize = 3;

pub(super) fn is_one(line: &str) -> bool {
    time(line).is_some()
}

/// The time in `Pong from host (Lid 2): time 0.239 ms`.
fn time(line: &str) -> Option<Nanos> {
    let (_, value) = line.strip_prefix(MARK)?.rsplit_once("): time ")?;
    nanos(number(value.trim_end().strip_suffix(" ms")?)?, MILLI)
}

/// The host in it: `host (Lid 2)`.
fn target(line: &str) -> Option<&str> {
    Some(line.strip_prefix(MARK)?.rsplit_once(": time ")?.0)
}

pub(super) fn read(section: &Section<'_>, body: &str) -> Result<Found, String> {
    let mut notes = Notes::default();
    let mut times = Vec::new();
    for (line, text) in lines(section, body) {
        match time(text) {
            Some(time) if times.len() < MOST_ROWS => times.push(time),
            None if !text.trim().is_empty() => notes.strange(line, text),
            _ => {}
        }
    }
    notes.at(
        section.line,
        "the statistics of ibping are missing: only the answers in the text are counted",
    );
    times.sort_unstable();
    let (Some(least), Some(most)) = (times.first(), times.last()) else {
        return Err("it has no answer with a time".into());
    };
    let count = times.len() as u64;
    let sum = times
        .iter()
        .fold(0_u64, |sum, time| sum.saturating_add(time.0));
    let row = SizeRow {
        size: DATAGRAM,
        samples: Some(count),
        least: Some(*least),
        typical: times
            .get(times.len() / 2)
            .copied()
            .filter(|_| times.len() >= ENOUGH),
        mean: Some(Nanos(sum / count.max(1))),
        most: Some(*most),
        ..SizeRow::default()
    };
    let first = body.lines().next().unwrap_or("");
    Ok(Found {
        notes: notes.0,
        ..Found::table(
            Tool::named("ibping"),
            (target(first).unwrap_or(""), section.line),
            Sizes {
                carrier: None,
                operation: "management datagram".to_owned(),
                trip: Trip::Whole,
                both: false,
                rows: vec![row],
                setup: Setup::default(),
            },
            body.len(),
        )
    })
}
