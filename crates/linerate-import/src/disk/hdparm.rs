//! `hdparm -t` and `hdparm -T`.

use linerate_record::reported::{Access, Disk, DiskRow, Does, Measured};

use crate::format::{Format, Found, Section};
use crate::reading::{Line, Notes, disk, figure, outcome, positive};

/// The format of hdparm's timings.
pub(crate) static HDPARM: Format = Format {
    id: "hdparm",
    label: "hdparm -t",
    versions: "9",
    evidence: "run here: 9.65",
    unknown: "Payload and number of the operations, and their times.",
    starts: |at| {
        let disk = at.line.strip_suffix(':');
        let named = disk.is_some_and(|disk| disk.starts_with('/') && !disk.contains(' '));
        named && at.next.starts_with(" Timing ")
    },
    read,
    ..Format::RESULTS
};

/// Number of bytes in an MB of hdparm.
//= hdparm 9.65, hdparm.c: total_MB is counted in TIMING_BUF_MB of 1024 * 1024 bytes
const MB: f64 = 1_048_576.0;
/// Largest number of lines that hdparm writes for each disk.
const LINES: usize = 6;
/// The words of each measurement, and whether it bypassed the cache; `None` if it read from memory.
const KINDS: &[(&str, Option<bool>)] = &[
    ("Timing buffered disk reads:", Some(false)),
    ("Timing O_DIRECT disk reads:", Some(true)),
    ("Timing cached reads:", None),
    ("Timing O_DIRECT cached reads:", None),
];

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut lines = section.lines();
    let Some(first) = lines.next() else { return Err("it is empty".to_owned()) };
    let mut found = Found::of("hdparm", first.end, Notes::default());
    let target = first.trimmed().trim_end_matches(':');
    for Line { number: line, text, end } in lines.take(LINES) {
        let timing = text.trim_start();
        if !timing.starts_with("Timing ") {
            break;
        }
        found.used = Some(end);
        match timed(timing) {
            Some((Some(direct), rate)) => {
                let mut row = DiskRow::new(Access::Sequential, Does::Read, rate.0);
                row.seconds = Some(rate.1);
                let target = target.to_owned();
                let disk = Disk { target, direct: Some(direct), ..disk(row) };
                found.results.push(outcome("", line, Measured::Disk(disk)));
            }
            Some((None, _)) => {
                let what = "cached reads are left out: they measure memory, not the disk";
                found.notes.at(line, what);
            }
            None => found.notes.strange(line, timing),
        }
    }
    if found.results.is_empty() {
        return Err(found.notes.last().unwrap_or_else(|| "no timing is complete".to_owned()));
    }
    found.notes.at(section.line, "its MB are 2^20 bytes: converted");
    Ok(found)
}

/// Which measurement a line is, its bytes per second, and its seconds: `1024 MB in  3.00 seconds = 341.01 MB/sec`.
fn timed(line: &str) -> Option<(Option<bool>, (f64, f64))> {
    let (rest, direct) =
        KINDS.iter().find_map(|(start, direct)| Some((line.strip_prefix(start)?, *direct)))?;
    let (_, rest) = rest.split_once(" MB in")?;
    let (seconds, rest) = rest.split_once(" seconds =")?;
    let (rate, unit) = rest.trim().split_once(' ')?;
    let factor = match unit.trim() {
        "MB/sec" => MB,
        "kB/sec" => 1024.0,
        _ => return None,
    };
    Some((direct, (positive(figure(rate)? * factor)?, positive(figure(seconds)?)?)))
}
