//! fio's JSON output.
//!
//! One run may write several documents (`--status-interval`), each of which counts from the start of the run: only
//! the last one is read.

use linerate_record::reported::{Does, Measured, Outcome};
use linerate_units::Bytes;
use serde_json::{Deserializer, error::Category};

use super::document::{Document, Job, MOST_JOBS, Used, Words};
use super::job::{Context, disk};
use super::options::{Options, given};
use super::tool;
use crate::format::{Format, Found, Section};
use crate::reading::{floor, outcome, positive, quoted};

/// The format of fio's JSON, `json+` included.
pub(crate) static JSON: Format = Format {
    id: "fio-json",
    label: "fio, JSON",
    versions: "2.2 to 3.42 (--output-format=json and json+; also of clients, client_stats)",
    evidence: "run here: 2.2.10, 2.21, 3.33, 3.42",
    unknown: "Percentiles are those of completion, without the time to submit, unless the user asked fio for others; \
              of jobs that are reported together the options are those of the last one; documents of 2.2 have no \
              options, which are then taken from the command in the line before, if it is there.",
    starts: |at| starts(at.text),
    read,
    ..Format::RESULTS
};

/// The first key of each document, and the number of bytes within which it must occur.
const FIRST_KEY: &str = "\"fio version\"";
const FIRST_BYTES: usize = 80;
/// Largest document in bytes, so that memory is bounded.
const MOST_BYTES: usize = 16 << 20;
/// `groupid` of the second entry that fio writes for a group of jobs.
const NO_GROUP: u64 = u32::MAX as u64;
/// Name of the entry that has the sum over all clients.
const ALL_CLIENTS: &str = "All clients";
/// Seconds by which two documents of one run may differ in their begin: fio counts whole seconds.
const SAME_BEGIN: f64 = 2.0;
/// Keys whose values are the lists of jobs.
const LISTS: &[&str] = &["\"jobs\"", "\"client_stats\""];
/// Number of bytes of a sector.
//= Linux, Documentation/block/stat.rst: "standard UNIX 512-byte sectors"
const SECTOR: f64 = 512.0;

fn starts(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('{') else {
        return false;
    };
    let rest = &rest[..floor(rest, FIRST_BYTES)];
    rest.trim_start().starts_with(FIRST_KEY)
}

/// A document, and its place in the text.
struct At {
    document: Document,
    line: u64,
    /// Byte in the text at which the document starts; `end` is the one after its last.
    start: usize,
    end: usize,
    /// The error, if the end of the document is missing or damaged.
    cut: Option<String>,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut last = one(section.text, 0, section.line)?;
    let mut earlier = 0;
    while last.cut.is_none() {
        let rest = &section.text[last.end..];
        let start = rest.len() - rest.trim_start().len();
        let line = last.line + lines(&section.text[last.start..last.end + start]);
        if !starts(&rest[start..]) {
            break;
        }
        match one(section.text, last.end + start, line) {
            Ok(next) if continues(&last.document, &next.document) => last = next,
            _ => break,
        }
        earlier += 1;
    }
    // fio before 2.13 writes no options, so they are read from the command.
    if let (Some(command), [job]) = (section.command, last.document.jobs.as_mut_slice()) {
        job.options = job.options.take().or_else(|| given(command));
    }
    let mut found = results(&last);
    found.used = Some(last.end);
    if earlier > 0 {
        found.notes.at(section.line, format!("{earlier} interim reports of the run are left out"));
    }
    Ok(found)
}

fn lines(text: &str) -> u64 {
    text.bytes().filter(|b| *b == b'\n').count() as u64
}

/// Whether `next` is a later report of the same run as `document`.
fn continues(document: &Document, next: &Document) -> bool {
    let same = document.jobs().map(Job::name).eq(next.jobs().map(Job::name));
    let began = document.began().zip(next.began());
    let near = began.is_some_and(|(one, other)| (one - other).abs() <= SAME_BEGIN);
    same && near && document.elapsed() < next.elapsed()
}

/// Reads the document that begins at byte `start` of the text.
fn one(text: &str, start: usize, line: u64) -> Result<At, String> {
    let rest = &text[start..];
    let rest = &rest[..floor(rest, MOST_BYTES)];
    let mut stream = Deserializer::from_str(rest).into_iter::<Document>();
    let error = match stream.next() {
        Some(Ok(document)) => {
            return Ok(At { document, line, start, end: start + stream.byte_offset(), cut: None });
        }
        Some(Err(error)) => error,
        None => return Err("the document is empty".to_owned()),
    };
    let why = match error.classify() {
        Category::Eof => "the end of the document is missing".to_owned(),
        _ => format!("line {}: {error}", line + error.line() as u64 - 1),
    };
    let (document, used) = whole_jobs(rest).ok_or_else(|| why.clone())?;
    // If the end of the text is missing, the whole rest belongs to the document; else another one may follow the
    // damage.
    let used = if error.is_eof() { rest.len() } else { used };
    Ok(At { document, line, start, end: start + used, cut: Some(why) })
}

/// The complete jobs of a damaged document, and the number of bytes up to the end of the last of them.
fn whole_jobs(text: &str) -> Option<(Document, usize)> {
    let list = LISTS.iter().find_map(|key| text.find(key))?;
    let mut at = list + text[list..].find('[')? + 1;
    let mut jobs = Vec::new();
    while jobs.len() < MOST_JOBS {
        let rest = text[at..].trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        at = text.len() - rest.len();
        let mut stream = Deserializer::from_str(rest).into_iter::<Job>();
        let Some(Ok(job)) = stream.next() else { break };
        at += stream.byte_offset();
        jobs.push(job);
    }
    if jobs.is_empty() {
        return None;
    }
    Some((head(&text[..list], jobs)?, at))
}

/// A document from the text before its jobs, with these jobs.
fn head(text: &str, jobs: Vec<Job>) -> Option<Document> {
    let text = text.trim_end().trim_end_matches(',');
    let mut document: Document = serde_json::from_str(&format!("{text}}}")).ok()?;
    document.jobs = jobs;
    Some(document)
}

fn results(at: &At) -> Found {
    let At { document, line, cut, .. } = at;
    let mut found = Found { tool: tool(&document.version), ..Found::default() };
    for job in document.jobs() {
        job_results(document, job, *line, &mut found);
    }
    if let Some(why) = cut {
        found.notes.at(*line, format!("only whole jobs of the document were read: {why}"));
    }
    at_disk(document, &mut found.results);
    found
}

fn job_results(document: &Document, job: &Job, line: u64, found: &mut Found) {
    let mut say = |what: String| found.notes.at(line, what);
    if job.groupid == Some(NO_GROUP) {
        return say("a second report of a group, without a name, is left out".to_owned());
    }
    if is_sum(document, job) {
        return say(
            "the sum over all clients is left out: it has jobs of several groups".to_owned()
        );
    }
    let name = job.name();
    let shown = quoted(name);
    if job.error != 0 {
        say(format!("job `{shown}` ended with error {}", job.error));
    }
    let alike = document
        .jobs()
        .filter(|other| other.name() == name && other.groupid == job.groupid)
        .filter(|other| other.hostname == job.hostname)
        .count();
    let context = Context {
        job,
        options: Options::new(&document.global, options(document, job), &document.version),
        alike,
    };
    match disk(&context) {
        Ok((disk, said)) => {
            for what in said {
                say(format!("job `{shown}`: {what}"));
            }
            if !disk.rows.is_empty() {
                let title = match &job.hostname {
                    Some(host) if !host.is_empty() => format!("{name} at {host}"),
                    _ => name.to_owned(),
                };
                found.results.push(outcome(&title, line, Measured::Disk(disk)));
            }
        }
        Err(why) => say(format!("job `{shown}` is left out: {why}")),
    }
}

/// The options of a job. The sum over clients has none, so those of the first client are used.
fn options<'a>(document: &'a Document, job: &'a Job) -> Option<&'a Words> {
    let first = document.client_stats.first();
    let first = first.filter(|_| job.name() == ALL_CLIENTS);
    job.options.as_ref().or_else(|| first?.options.as_ref())
}

/// Whether a job is the sum over clients whose jobs did not run together.
fn is_sum(document: &Document, job: &Job) -> bool {
    let mut groups = document.client_stats.iter().map(|job| job.groupid);
    let first = groups.next();
    job.name() == ALL_CLIENTS && groups.any(|group| Some(group) != first)
}

/// Fills in the bytes that the disk moved, if they can only belong to one row.
fn at_disk(document: &Document, results: &mut [Outcome]) {
    // The counters of disks include the ramp time; the results do not.
    let ramps = |words: &Words| words.contains_key("ramp_time");
    let mut own = document.jobs().filter_map(|job| job.options.as_ref());
    let named = document.jobs().filter(|job| job.groupid != Some(NO_GROUP));
    if ramps(&document.global) || own.any(ramps) || named.count() != 1 {
        return;
    }
    let ([disk], [result]) = (document.disk_util.as_slice(), results) else {
        return;
    };
    let Measured::Disk(measured) = &mut result.measured else {
        return;
    };
    let [row] = measured.rows.as_mut_slice() else {
        return;
    };
    let Used { read_sectors, write_sectors } = disk;
    let sectors = match row.does {
        Does::Read => *read_sectors,
        Does::Write => *write_sectors,
        Does::Mix => read_sectors.zip(*write_sectors).map(|(r, w)| r + w),
    };
    row.at_disk =
        sectors.and_then(|sectors| positive(sectors * SECTOR)).map(|bytes| Bytes(bytes as u64));
}
