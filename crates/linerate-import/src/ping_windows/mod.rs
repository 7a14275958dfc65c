//! `ping` of Windows, in English: whole round trips of one size, in whole milliseconds. The statistics are used or,
//! if they are missing, the single answers.

use linerate_record::reported::{Measured, SizeRow, Trip};
use linerate_units::{Bytes, Nanos};

use crate::format::{Extent, Format, Found, Section};
use crate::ping::Ttl;
use crate::reading::{Line, MILLI, Notes, after, count, nanos, quoted, sizes};

/// The entry in the table of formats.
pub(crate) static PING_WINDOWS: Format = Format {
    id: "ping-windows",
    label: "ping of Windows, text",
    versions: "the text in English",
    evidence: "published: http://som.csudh.edu/fac/471/hout/netech/pingsession.htm, with its lines parted again",
    unknown: "All times below a millisecond, the median, percentiles and the deviation.",
    starts: |at| {
        let line = at.line.trim();
        let is_head = line.starts_with(HEAD) && line.ends_with(" bytes of data:");
        let is_statistics = line.starts_with(STATISTICS) && line.ends_with(':');
        is_head || is_statistics || line.starts_with(ANSWER) && line.contains(": bytes=")
    },
    read,
    extent: Extent::GoesOn(goes_on),
    ..Format::RESULTS
};

const HEAD: &str = "Pinging ";
const ANSWER: &str = "Reply from ";
const STATISTICS: &str = "Ping statistics for ";
/// Starts of the lines that are printed instead of an answer.
const SILENT: [&str; 3] = ["Request timed out", "General failure", "PING: transmit failed"];

/// Payload in bytes if the command sets none.
//= ping of Windows: "-l size   Send buffer size", 32 by default
const USUAL: Bytes = Bytes(32);

/// Whether an output continues, with its next answer or its statistics.
fn goes_on(before: &str, rest: &str) -> bool {
    let last = before.trim_end().rsplit('\n').next().unwrap_or("").trim();
    let is_within = [HEAD, ANSWER].iter().chain(&SILENT).any(|start| last.starts_with(start));
    is_within && !rest.trim_start().starts_with(HEAD)
}

/// The figures of the lines that were read.
#[derive(Default)]
struct Reading {
    target: String,
    size: Option<Bytes>,
    ttl: Ttl,
    /// Number of answers; and the shortest, the sum and the longest of their times in milliseconds.
    answers: (u64, u64, u64, u64),
    silent: u64,
    /// Numbers of answers and of lost packets, from the statistics.
    counted: Option<(Option<u64>, Option<u64>)>,
    /// The shortest, mean and longest time, from the statistics.
    times: Option<[Option<Nanos>; 3]>,
    notes: Notes,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let section = &section.body();
    let mut reading = Reading::default();
    for Line { number, text: line, .. } in section.lines() {
        reading.line(number, line.trim());
    }
    let row = reading.row(section.line)?;
    let table = sizes("ICMP echo", Trip::Whole, vec![row]);
    let found = Found::of("ping", section.text.len(), reading.notes);
    Ok(found.with(&reading.target, section.line, Measured::Sizes(table)))
}

impl Reading {
    fn line(&mut self, number: u64, line: &str) {
        self.ttl.see(line, " TTL=");
        if let Some(rest) = line.strip_prefix(HEAD) {
            self.named(rest.split(' ').next());
            let words: Vec<&str> = rest.split_whitespace().collect();
            let at = words.iter().rposition(|word| *word == "bytes");
            let size = at.and_then(|at| count(words.get(at.checked_sub(1)?)?));
            self.size = size.map(Bytes);
        } else if let Some((host, rest)) = answer(line) {
            self.named(Some(host));
            self.answered(rest);
        } else if line.starts_with("Packets:") {
            let number_of = |name| after(line, name).and_then(count);
            self.counted = Some((number_of("Received = "), number_of("Lost = ")));
            if let Some(lost) = number_of("Lost = ").filter(|lost| *lost > 0) {
                self.notes.at(number, format!("{lost} packets were not answered"));
            }
        } else if line.starts_with("Minimum = ") {
            self.times =
                Some(["Minimum = ", "Average = ", "Maximum = "].map(|name| time(line, name)));
        } else if SILENT.iter().any(|start| line.starts_with(start)) || line.contains("unreachable")
        {
            self.silent += 1;
        } else if let Some(rest) = line.strip_prefix(STATISTICS) {
            self.named(Some(rest.trim_end_matches(':')));
        } else if !is_known(line) {
            self.notes.strange(number, line);
        }
    }

    fn named(&mut self, host: Option<&str>) {
        if self.target.is_empty() {
            self.target = quoted(host.unwrap_or(""));
        }
    }

    /// Reads an answer: `bytes=32 time=28ms TTL=255`, `bytes=32 time<1ms TTL=64`, or with IPv6 `time=28ms`.
    fn answered(&mut self, rest: &str) {
        self.size = self.size.or(after(rest, "bytes=").and_then(count).map(Bytes));
        let millis = match after(rest, "time=") {
            Some(time) => time.strip_suffix("ms").and_then(count),
            None => rest.contains("time<1ms").then_some(0),
        };
        if let Some(millis) = millis {
            let (all, least, sum, most) = &mut self.answers;
            *least = if *all == 0 { millis } else { millis.min(*least) };
            (*all, *sum, *most) = (*all + 1, sum.saturating_add(millis), millis.max(*most));
        }
    }

    /// The row with the statistics or, if they are missing, with the single answers.
    fn row(&mut self, line: u64) -> Result<SizeRow, String> {
        let (all, least, sum, most) = self.answers;
        let millis = |value: f64| nanos(value, MILLI).filter(|time| time.0 > 0);
        let of_answers =
            [least as f64, sum as f64 / (all as f64).max(1.0), most as f64].map(millis);
        let (samples, lost) = match self.counted {
            Some(counted) => counted,
            None if all > 0 => {
                self.notes.at(
                    line,
                    "the statistics of ping are missing: only the answers in the text are counted",
                );
                (Some(all), Some(self.silent))
            }
            None => return Err("it has no statistics: the end is missing".into()),
        };
        let [least, mean, most] = self.times.unwrap_or(of_answers);
        if mean.or(least).is_none() {
            return Err(
                "no packet was answered, or all within a millisecond, which it cannot tell".into(),
            );
        }
        if self.size.is_none() {
            self.notes.whole(format!("its size is not in the output: {USUAL} is the usual one"));
        }
        Ok(SizeRow {
            size: self.size.unwrap_or(USUAL),
            samples,
            // The statistics count a router's message that a host is unreachable as an answer, so the lines without
            // an answer count as losses too.
            lost: lost.map(|lost| lost.max(self.silent)),
            ttl: self.ttl.same(),
            least,
            mean,
            most,
            ..SizeRow::default()
        })
    }
}

/// The rest of a line after the host that answered: `Reply from 10.0.0.1: bytes=32 time=1ms TTL=64`.
fn answer(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix(ANSWER)?
        .split_once(": ")
        .filter(|(_, rest)| rest.starts_with("bytes=") || rest.starts_with("time"))
}

/// Whether a line is a heading, or shows a pressed key.
fn is_known(line: &str) -> bool {
    line.is_empty()
        || line.starts_with("Approximate round trip times")
        || line == "Control-C"
        || line == "^C"
}

/// A time in whole milliseconds. Zero means less than one, so the time is unknown.
fn time(line: &str, name: &str) -> Option<Nanos> {
    let millis = count(after(line, name)?.strip_suffix("ms")?)?;
    nanos(millis as f64, MILLI).filter(|time| time.0 > 0)
}

#[cfg(test)]
mod tests;
