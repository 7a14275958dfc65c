//! Reads single answers of `ibping` without its statistics: the run was interrupted, or only a part of the output was
//! pasted.
//= infiniband-diags 44, ibping.c: "Pong from %s (%s): time %" PRIu64 ".%03" PRIu64 " ms\n"

use linerate_record::reported::{Measured, SizeRow, Trip};
use linerate_units::{Bytes, Nanos};

use super::{DATAGRAM, Ttl};
use crate::format::{Found, Section};
use crate::reading::{Line, MILLI, MOST_ROWS, Notes, nanos, number, sizes};

/// Start of a line with an answer.
pub(super) const MARK: &str = "Pong from ";

/// Fewest answers whose median is kept as the typical time.
const MEDIAN_MIN: usize = 3;

pub(super) fn is_one(line: &str) -> bool {
    time(line).is_some()
}

/// The time in a line such as `Pong from host (Lid 2): time 0.239 ms`.
fn time(line: &str) -> Option<Nanos> {
    let (_, value) = line.strip_prefix(MARK)?.rsplit_once("): time ")?;
    nanos(number(value.trim_end().strip_suffix(" ms")?)?, MILLI)
}

/// The host in a line with an answer, such as `host (Lid 2)`.
fn target(line: &str) -> Option<&str> {
    Some(line.strip_prefix(MARK)?.rsplit_once(": time ")?.0)
}

pub(super) fn read(section: &Section<'_>) -> Result<Found, String> {
    let target = target(section.first()).unwrap_or("");
    answers(section, 0, ("ibping", target, "management datagram"), DATAGRAM, time)
}

/// The result of the answers after the first `skip` lines. The names are those of the program, its target and its
/// operation; `time` reads the time in a line.
pub(super) fn answers(
    section: &Section<'_>,
    skip: usize,
    (program, target, operation): (&str, &str, &str),
    size: Bytes,
    time: fn(&str) -> Option<Nanos>,
) -> Result<Found, String> {
    let mut notes = Notes::default();
    let mut times = Vec::new();
    let mut ttl = Ttl::default();
    for Line { number, text, .. } in section.lines().skip(skip) {
        ttl.see(text, "ttl=");
        match time(text) {
            Some(time) if times.len() < MOST_ROWS => times.push(time),
            None if !text.trim().is_empty() && text.trim() != "^C" => notes.strange(number, text),
            _ => {}
        }
    }
    notes.at(
        section.line,
        format!(
            "the statistics of {program} are missing: only the answers in the text are counted"
        ),
    );
    times.sort_unstable();
    let (Some(least), Some(most)) = (times.first(), times.last()) else {
        return Err("it has no answer with a time".into());
    };
    let count = times.len() as u64;
    let sum = times.iter().fold(0_u64, |sum, time| sum.saturating_add(time.0));
    let row = SizeRow {
        size,
        samples: Some(count),
        least: Some(*least),
        typical: times.get(times.len() / 2).copied().filter(|_| times.len() >= MEDIAN_MIN),
        mean: Some(Nanos(sum / count.max(1))),
        most: Some(*most),
        ttl: ttl.same(),
        ..SizeRow::default()
    };
    let table = sizes(operation, Trip::Whole, vec![row]);
    let found = Found::of(program, section.text.len(), notes);
    Ok(found.with(target, section.line, Measured::Sizes(table)))
}
