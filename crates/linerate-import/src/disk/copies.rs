//! Copies of files: robocopy and rsync.

use linerate_record::reported::{Access, Disk, DiskRow, Does, Measured};
use linerate_units::Bytes;

use super::progress;
use crate::format::{Extent, Format, Found, Section};
use crate::reading::{Line, Notes, command, disk, figure, positive};

/// The format of robocopy's summary.
pub(crate) static ROBOCOPY: Format = Format {
    id: "robocopy",
    label: "robocopy, summary",
    versions: "Windows 7 to 11, in English",
    evidence: "published: Windows 10 and Server (courses and documentation of Microsoft Azure)",
    unknown: "Sizes of the files; with /MT the times are sums over threads, so the rate is too low.",
    starts: |at| at.line.trim_start().starts_with(HEADING) || is_summary(at.line),
    read: read_robocopy,
    extent: Extent::Own,
    ..Format::RESULTS
};

/// The format of rsync's summary.
pub(crate) static RSYNC: Format = Format {
    id: "rsync",
    label: "rsync, summary",
    versions: "3 (-v, --stats, --info=stats)",
    evidence: "run here: 3.5.0",
    unknown: "Whether files went over a network; its clock counts half seconds, so rates of short copies are rough.",
    starts: |at| {
        let is_statistics = at.line.starts_with("Number of files: ") || is_sent(at.line);
        is_list(at.line) || is_statistics || progress::is_rsync(at.line)
    },
    read: read_rsync,
    extent: Extent::Own,
    //= rsync: flist.c, send_file_list and recv_file_list
    first_words: &["incremental file list"],
    ..Format::RESULTS
};

/// Seconds below which a rate is too rough to show: rsync's clock counts half seconds.
const ROUGH_SECONDS: f64 = 10.0;
/// Share of the files' bytes: if a run of rsync moved less than this, the copy was not its main work.
const COPY_SHARE_MIN: f64 = 0.1;
/// Factor by which the files may exceed the bytes that were moved before a note says so.
const SLACK: f64 = 1.01;

/// The heading of robocopy, which `/NJH` leaves out.
const HEADING: &str = "ROBOCOPY     ::";
/// The columns of robocopy's summary.
const COLUMNS: &[&str] = &["Total", "Copied", "Skipped", "Mismatch", "FAILED", "Extras"];

fn is_summary(line: &str) -> bool {
    line.split_whitespace().eq(COLUMNS.iter().copied())
}

/// What an output of robocopy says.
#[derive(Default)]
struct Robocopy {
    destination: String,
    /// Whether files were copied by several threads.
    threads: bool,
    summary: bool,
    rate: Option<f64>,
    failed: f64,
}

impl Robocopy {
    fn takes(&mut self, text: &str) {
        self.summary |= is_summary(text);
        let Some((key, value)) = text.split_once(':') else {
            return;
        };
        let value = value.trim();
        match (key.trim(), self.summary) {
            ("Dest", false) => value.clone_into(&mut self.destination),
            ("Options", false) => self.threads = value.to_ascii_uppercase().contains("/MT"),
            ("Speed", true) if self.rate.is_none() => {
                let bytes = value.strip_suffix("Bytes/sec.");
                self.rate = bytes.and_then(figure).and_then(positive);
            }
            // The columns are total, copied, skipped, mismatch, failed, extras.
            ("Files", true) => {
                let failed = value.split_whitespace().nth(4);
                self.failed = failed.and_then(figure).unwrap_or_default();
            }
            _ => {}
        }
    }
}

fn read_robocopy(section: &Section<'_>) -> Result<Found, String> {
    let mut said = Robocopy::default();
    let mut used = 0;
    for Line { text, end, .. } in section.lines() {
        if used > 0 && command(text).is_some() {
            break;
        }
        used = end;
        said.takes(text);
        if said.summary && text.trim_start().starts_with("Ended :") {
            break;
        }
    }
    let rate = said
        .rate
        .ok_or("it has no speed in Bytes/sec.: nothing was copied, or it is not in English")?;
    let row = DiskRow::new(Access::Copy, Does::Mix, rate);
    let disk = Disk { target: said.destination, ..disk(row) };
    let mut notes = Notes::default();
    if said.failed > 0.0 {
        notes.at(section.line, format!("{} files could not be copied", said.failed));
    }
    if said.threads {
        let what = "with /MT its times are sums over threads: the rate is too low";
        notes.at(section.line, what);
    }
    Ok(Found::of("robocopy", used, notes).with("", section.line, Measured::Disk(disk)))
}

/// Whether a line is the first one of a run of rsync with -v.
fn is_list(line: &str) -> bool {
    let first = ["sending incremental file list", "receiving incremental file list"];
    first.contains(&line.trim_end())
}

/// Whether a line is like `sent 30,007,434 bytes  received 38 bytes  60,014,944.00 bytes/sec`.
fn is_sent(line: &str) -> bool {
    let ends = line.trim_end().ends_with(" bytes/sec");
    ends && line.starts_with("sent ") && line.contains(" received ")
}

fn read_rsync(section: &Section<'_>) -> Result<Found, String> {
    // A line of progress has a per cent sign, which looks like that of a prompt.
    let is_end = |text: &str| command(text).is_some() && !progress::is_rsync(text);
    let is_next = |line: &Line<'_>| line.number > section.line && is_list(line.text);
    let mut lines = section.lines().take_while(|line| !(is_end(line.text) || is_next(line)));
    let Some(Line { number: at, text, end }) = lines.find(|line| is_sent(line.text)) else {
        let found = progress::read(section);
        return found.map_err(|_| "its last lines are missing: it had not finished".to_owned());
    };
    let words = text.split_whitespace();
    let mut numbers = words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let mut next = || numbers.next().and_then(grouped);
    let (sent, received, rate) = (next(), next(), next());
    let (Some(sent), Some(received), Some(rate)) = (sent, received, rate.and_then(positive)) else {
        return Err("its numbers are rounded (-h) or written in another way".to_owned());
    };
    let moved = sent + received;
    let total = lines.next();
    let total = total.and_then(|line| Some((line.text.strip_prefix("total size is ")?, line.end)));
    let used = total.map_or(end, |(_, end)| end);
    let size = total.and_then(|(rest, _)| grouped(rest.split_whitespace().next()?));
    if size.is_some_and(|size| moved < size * COPY_SHARE_MIN) {
        return Err("nearly nothing was moved: the files were there already".to_owned());
    }
    let mut row = DiskRow::new(Access::Copy, Does::Mix, rate);
    row.seconds = positive(moved / rate);
    let file = size.and_then(positive).map(|size| Bytes(size as u64));
    let disk = Disk { file, ..disk(row) };
    let mut notes = Notes::default();
    if moved / rate < ROUGH_SECONDS {
        let what =
            format!("its clock counts half seconds: a rate over {:.1} s is rough", moved / rate);
        notes.at(at, what);
    }
    if size.is_some_and(|size| size > moved * SLACK) {
        let what = "the rate is of bytes that were moved, which are less than the files have: some were there, or \
                    compressed";
        notes.at(at, what);
    }
    Ok(Found::of("rsync", used, notes).with("", section.line, Measured::Disk(disk)))
}

/// A whole number with commas in groups of three, or a number with a point.
fn grouped(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let grouped = rest.iter().all(|group| group.len() == 3 && digits(group));
    if !grouped || !digits(first) || !digits(fraction) || (!rest.is_empty() && first.len() > 3) {
        return None;
    }
    figure(&format!("{first}{}.{fraction}0", rest.concat()))
}
