//! CSV of iperf 2 (`-y C`), which has no header.

use std::collections::BTreeMap;

use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Counted, Lost, Outcome, Transfer};
use linerate_units::{Nanos, Rate};

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{self, Notes, flag};

/// The format of iperf 2's CSV.
pub(crate) static FORMAT: Format = Format {
    id: "iperf2-csv",
    label: "iperf 2, CSV",
    versions: "2.0 and 2.1, `-y C`",
    evidence: "run here: 2.1.8, client, on loopback",
    unknown: "Which end wrote it, unless the command is there: the end with the lower port is taken for the server. \
              The receiver's count of a client, and everything about its kernel.",
    starts: |at| record(at.line).is_some(),
    read,
    extent: Extent::Parts,
    ..Format::RESULTS
};

/// The fields of a line.
struct Record<'a> {
    ports: [u16; 2],
    id: &'a str,
    from: f64,
    to: f64,
    rate: u64,
    /// Jitter in milliseconds, number of lost datagrams, number of all datagrams.
    datagrams: Option<(f64, u64, u64)>,
}

/// Reads `20261128101513,127.0.0.1,55564,127.0.0.1,17021,1,0.0-0.5,466223164,7459570624`. With UDP, further fields
/// follow: jitter, lost datagrams, all datagrams, share lost, out of order.
fn record(line: &str) -> Option<Record<'_>> {
    if !line.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let fields: Vec<&str> = line.trim().split(',').take(15).collect();
    let digits =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let time = *fields.first()?;
    if !(fields.len() == 9 || fields.len() == 14) || time.len() < 14 || !digits(time) {
        return None;
    }
    let (from, to) = fields[6].split_once('-')?;
    let datagrams = (fields.len() == 14).then(|| {
        Some((fields[9].parse().ok()?, fields[10].parse().ok()?, fields[11].parse().ok()?))
    });
    Some(Record {
        ports: [fields[2].parse().ok()?, fields[4].parse().ok()?],
        id: fields[5],
        from: from.parse().ok().filter(|n: &f64| n.is_finite())?,
        to: to.parse().ok().filter(|n: &f64| n.is_finite())?,
        rate: fields[8].parse().ok()?,
        datagrams: datagrams.flatten(),
    })
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut used = 0;
    let mut records = Vec::new();
    for line in section.lines() {
        let Some(record) = record(line.text) else { break };
        used = line.end;
        records.push((line.number, record));
    }
    let mut notes = Notes::default();
    let has = |name: &str| flag(section.command.unwrap_or_default(), &[name]);
    let known = (has("-s") || has("-c")).then(|| has("-s"));
    if known.is_none() {
        let what = "CSV of iperf does not say which end wrote it: the one with the lower port was read as the server";
        notes.at(section.line, what);
    }
    let results: Vec<Outcome> = tests(&records)
        .into_iter()
        .filter_map(|(line, records)| Some(reading::transfer(line, transfer(&records, known)?)))
        .collect();
    let found = Found { results, ..Found::of("iperf", used, notes) };
    found.complete("it has no line of a whole test")
}

/// The records of each test, with its first line. The last record of a stream covers the whole time, as does the sum
/// (id -1).
fn tests<'a, 'b>(records: &'a [(u64, Record<'b>)]) -> Vec<(u64, Vec<&'a Record<'b>>)> {
    let mut tests: Vec<(u64, Vec<&Record<'_>>)> = Vec::new();
    // Ports of each stream of the last test, by the id of the stream.
    let mut streams: BTreeMap<&str, [u16; 2]> = BTreeMap::new();
    for (line, record) in records {
        let known = streams.get(record.id).is_none_or(|ports| *ports == record.ports);
        let mut first = streams.values().take(1).flatten();
        let shared = first.any(|port| record.ports.contains(port));
        match tests.last_mut() {
            // The record with the sum of a test has no ports of its own.
            Some((_, test)) if (known && shared) || record.id == "-1" => test.push(record),
            _ => {
                streams.clear();
                tests.push((*line, vec![record]));
            }
        }
        streams.insert(record.id, record.ports);
    }
    tests
}

fn transfer(records: &[&Record<'_>], known: Option<bool>) -> Option<Transfer> {
    let end = records.iter().map(|record| record.to).fold(0.0, f64::max);
    // The streams of a test end at nearly the same time.
    let whole = |record: &&&Record<'_>| record.from == 0.0 && record.to >= 0.9 * end;
    let wholes = records.iter().filter(whole).filter(|record| record.id != "-1");
    let last: BTreeMap<&str, &Record<'_>> = wholes.map(|record| (record.id, *record)).collect();
    let streams: Vec<&Record<'_>> = last.into_values().collect();
    let first = streams.first()?;
    let server = known.unwrap_or(first.ports[0] < first.ports[1]);
    let report = first.datagrams.filter(|(.., of)| *of > 0);
    let carrier = if records.iter().any(|record| record.datagrams.is_some()) {
        Carrier::Udp
    } else {
        Carrier::Tcp
    };
    let counted = if server || report.is_some() { Counted::Receiver } else { Counted::Sender };
    let rate = streams.iter().fold(0_u64, |sum, record| sum.saturating_add(record.rate));
    let mut transfer = Transfer::new(carrier, Direction::Forward, Rate(rate), counted);
    transfer.streams = u32::try_from(streams.len()).ok();
    transfer.seconds = Some(end);
    transfer.each = streams.iter().map(|record| record.rate as f64).collect();
    if let (Some((jitter, lost, of)), 1) = (report, streams.len()) {
        transfer.datagrams =
            Some(Lost { lost, of, jitter: (jitter > 0.0).then_some(Nanos((jitter * 1e6) as u64)) });
    }
    if let [only] = streams[..] {
        let intervals: Vec<_> =
            records.iter().filter(|r| r.id == only.id && r.to - r.from < 0.9 * end).collect();
        let seconds: f64 = intervals.iter().map(|record| record.to - record.from).sum();
        if seconds > 0.0 {
            transfer.tick = Some(seconds / intervals.len() as f64);
            transfer.ticks = intervals.iter().map(|record| record.rate as f64).collect();
        }
    }
    Some(transfer)
}
