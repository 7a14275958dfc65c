//! The statistics of `ping` and `ibping`: whole round trips of one size.

mod pong;

use linerate_record::reported::{Measured, SizeRow, Trip};
use linerate_units::{Bytes, Nanos};

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{Line, MILLI, Notes, count, nanos, number, quoted, sizes};

/// The entry in the table of formats, for ping.
pub(crate) static PING: Format = Format {
    id: "ping",
    label: "ping, text",
    versions: "iputils, busybox and BSD: the lines of statistics",
    evidence: "run here: iputils 20221126, with IPv4, IPv6, -q, -f and without answers",
    unknown: "Median and percentiles.",
    starts: |at| at.line.trim_start().starts_with("PING ") && at.line.contains("bytes"),
    read,
    ..Format::RESULTS
};

/// The entry in the table of formats, for ibping.
pub(crate) static IBPING: Format = Format {
    id: "ibping",
    label: "ibping, text",
    versions: "infiniband-diags 1.x to 44: the lines of statistics, or of answers without them",
    evidence: "run here: 44, in a network of ibsim in which no answer came; published: the lines of a run with \
        answers in ibsim, as its owner published them; single answers from the source of ibping, 44",
    unknown: "Median, percentiles and deviation.",
    starts: |at| is_ib_statistics(at.line) || pong::is_one(at.line),
    read: read_ib,
    extent: Extent::GoesOn(goes_on),
    ..Format::RESULTS
};

/// Size of an InfiniBand management datagram.
//= InfiniBand Architecture Specification, volume 1, 13.4.2: a MAD has 256 bytes
const DATAGRAM: Bytes = Bytes(256);

fn read(section: &Section<'_>) -> Result<Found, String> {
    let section = &section.body();
    let first = section.first();
    let size = payload(first).ok_or("its first line has no size")?;
    let target = first.split_whitespace().nth(1).unwrap_or("");
    let names = ("ping", target, "ICMP echo");
    // Without statistics the output was truncated, or ping was still running.
    if !section.text.contains("packets transmitted") {
        return pong::answers(section, 1, names, size, answered);
    }
    statistics(section, size, names)
}

/// The time in a line such as `64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=4356 ms`.
fn answered(line: &str) -> Option<Nanos> {
    let (_, value) = line.split_once(" time=")?;
    nanos(number(value.trim_end().strip_suffix(" ms")?)?, MILLI)
}

fn read_ib(section: &Section<'_>) -> Result<Found, String> {
    let section = &section.body();
    let Some(first) = section.text.lines().find(|line| is_ib_statistics(line)) else {
        return pong::read(section);
    };
    let target = first.trim_start_matches("--- ").split(" ibping").next();
    let names = ("ibping", target.unwrap_or(""), "management datagram");
    statistics(section, DATAGRAM, names)
}

fn is_ib_statistics(line: &str) -> bool {
    line.starts_with("--- ") && line.trim_end().ends_with(" ibping statistics ---")
}

/// Whether an output of ibping continues: its last line is an answer, so another answer or the statistics follow.
fn goes_on(before: &str, _: &str) -> bool {
    let last = before.trim_end().rsplit('\n').next();
    last.is_some_and(pong::is_one)
}

/// The payload in `56(84) bytes of data.` or in `56 data bytes`.
fn payload(line: &str) -> Option<Bytes> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| word.trim_end_matches('.') == "bytes")?;
    let behind = words.get(at.checked_sub(1)?)?;
    let word = match *behind {
        "data" => words.get(at.checked_sub(2)?)?,
        _ => behind,
    };
    let digits = word.split('(').next().unwrap_or("");
    count(digits).map(Bytes)
}

/// Texts in lines about single packets, and in other lines that add nothing to the statistics.
const PASSED: &[&str] = &[
    "icmp_seq=",
    "bytes from",
    " statistics ---",
    "packets transmitted",
    "seq=",
    // The answer may still arrive, and then the statistics count it.
    "Request timeout for icmp_seq",
    pong::MARK,
];

fn statistics(
    section: &Section<'_>,
    size: Bytes,
    (name, target, operation): (&str, &str, &str),
) -> Result<Found, String> {
    let mut notes = Notes::default();
    let mut counted = None;
    let mut times = None;
    let mut ttl = Ttl::default();
    for Line { number, text: line, .. } in section.lines().skip(1) {
        let line = line.trim();
        ttl.see(line, "ttl=");
        if line.contains("packets transmitted") {
            counted = counts(line, number, &mut notes);
        } else if line.contains("min/avg/max") {
            times = line.split_once('=').map(|(_, values)| values.trim());
        } else if !PASSED.iter().any(|mark| line.contains(mark)) && !is_progress(line) {
            notes.strange(number, line);
        }
    }
    let (received, lost) = counted.ok_or("it has no statistics: the end is missing")?;
    if received == 0 {
        return Err("no packet was answered".into());
    }
    let times = times.ok_or("it has no times: the end is missing")?;
    let row =
        SizeRow { lost: Some(lost), ttl: ttl.same(), ..row(size, received, times, &mut notes)? };
    let table = sizes(operation, Trip::Whole, vec![row]);
    let found = Found::of(name, section.text.len(), notes);
    Ok(found.with(&quoted(target), section.line, Measured::Sizes(table)))
}

/// Whether a line is empty, has only the dots that `ping -f` prints and erases, or shows a pressed key.
fn is_progress(line: &str) -> bool {
    line == "^C" || line.chars().all(|c| c.is_whitespace() || c.is_control() || c == '.')
}

/// The numbers of answers and of lost packets in `5 packets transmitted, 5 received, 0% packet loss`.
fn counts(line: &str, number: u64, notes: &mut Notes) -> Option<(u64, u64)> {
    let mut parts = line.split(", ");
    let sent = count(parts.next()?.split(' ').next()?)?;
    let received = count(parts.next()?.split(' ').next()?)?;
    if received < sent {
        notes.at(number, format!("{} of {sent} packets were not answered", sent - received));
    }
    Some((received, sent.saturating_sub(received)))
}

/// The time to live of the answers.
#[derive(Debug, Default)]
pub(crate) struct Ttl {
    first: Option<u8>,
    differs: bool,
}

impl Ttl {
    /// Reads the time to live in a line: the number after a mark, as in `ttl=64`.
    pub(crate) fn see(&mut self, line: &str, mark: &str) {
        let behind = line.split_once(mark).map(|(_, rest)| rest);
        let digits = behind.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        if let Some(ttl) = digits.and_then(|digits| digits.parse().ok()) {
            self.differs |= *self.first.get_or_insert(ttl) != ttl;
        }
    }

    /// The time to live of all answers; `None` if it differs, or if no line has it.
    pub(crate) fn same(&self) -> Option<u8> {
        self.first.filter(|_| !self.differs)
    }
}

/// The row with the times in `0.022/0.029/0.047/0.009 ms`, after which other figures may follow.
fn row(size: Bytes, received: u64, times: &str, notes: &mut Notes) -> Result<SizeRow, String> {
    let (values, rest) = times.split_once(' ').unwrap_or((times, ""));
    if !rest.starts_with("ms") {
        return Err("its times are no milliseconds".into());
    }
    // Slashes separate the numbers, so a comma can only be a decimal comma.
    let has_comma = values.contains(',') && !values.contains('.');
    if has_comma {
        notes.whole("its numbers have decimal commas");
    }
    let values = values.replace(',', if has_comma { "." } else { "," });
    let mut values = values.split('/').map(|value| nanos(number(value)?, MILLI));
    let mut next = || values.next().flatten();
    let (least, mean, most) = (next(), next(), next());
    if mean.is_none() {
        return Err("its times are no numbers".into());
    }
    Ok(SizeRow {
        size,
        samples: Some(received),
        least,
        mean,
        most,
        // A single packet has no deviation.
        deviation: next().filter(|_| received > 1),
        ..SizeRow::default()
    })
}

#[cfg(test)]
mod tests;
