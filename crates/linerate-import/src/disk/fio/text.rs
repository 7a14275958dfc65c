//! fio's normal output.

use linerate_core::reported::{Disk, DiskRow, Does};

use super::document::MOST_JOBS;
use super::lines::{Head, Kind, Spec, passed, started};
use super::{IN_FLIGHT_SLACK, Pattern, in_flight, tool};
use crate::disk::figures::{outcome, say};
use crate::format::{Evidence, Format, Found, Holds, Section};
use crate::read::quoted;
use crate::text::command;

/// fio's normal output.
pub(crate) static TEXT: Format = Format {
    id: "fio-text",
    label: "fio, text",
    holds: Holds::Results,
    versions: "2.0 to 3.42",
    evidence: &[Evidence::RunHere("2.2.10, 2.21, 3.33, 3.42")],
    unknown: "Whether the cache was bypassed and how large the file was is known only from the command line; rates \
              have four digits; of jobs that are reported together the depth is known only if all have the same.",
    starts,
    read,
};

/// Ends of the names of files with jobs.
const JOB_FILES: &[&str] = &["fio", "job", "ini", "cfg"];
/// Kinds of operations of a job, at the most.
const MOST_KINDS: usize = 8;

fn starts(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    Spec::at(text).is_some() || Head::of(line).is_some()
}

/// The results of a job until its last line.
struct Entry {
    head: Head,
    line: u64,
    kinds: Vec<Kind>,
}

#[derive(Default)]
struct Reader<'a> {
    specs: Vec<Spec>,
    entry: Option<Entry>,
    /// The line that says how many jobs were started, and how many.
    started: Option<(u64, u64)>,
    /// Jobs whose results are in the text.
    ended: u64,
    /// Whether the summary has begun, behind which every line that is not understood ends the output.
    ending: bool,
    command: Option<&'a str>,
    found: Found,
}

/// What a line does to the output.
#[derive(PartialEq, Eq)]
enum Step {
    On,
    End,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reader = Reader {
        command: section.command,
        ..Reader::default()
    };
    reader.found.tool = tool("");
    let (mut used, mut line) = (0, section.line);
    while let Some(count) = reader.takes(line, &section.text[used..]) {
        let taken = section.text[used..].split_inclusive('\n').take(count);
        used += taken.map(str::len).sum::<usize>();
        line += count as u64;
    }
    reader.finish();
    reader.missing();
    let mut found = reader.found;
    if found.results.is_empty() {
        let why = found.notes.first().map(|note| note.what.clone());
        return Err(why.unwrap_or_else(|| "it is only the banner, without results".to_owned()));
    }
    found.used = Some(used);
    Ok(found)
}

impl Reader<'_> {
    /// Takes what is at the start of the rest: its number of lines; `None` where the output ends.
    fn takes(&mut self, line: u64, rest: &str) -> Option<usize> {
        let first = rest.split_inclusive('\n').next()?;
        let (step, count) = match Spec::at(rest) {
            Some((spec, count, is_whole)) => (self.describes(line, spec, is_whole), count),
            None => (self.takes_line(line, first.trim_end()), 1),
        };
        (step == Step::On).then_some(count)
    }

    /// Takes the description of a job.
    fn describes(&mut self, line: u64, spec: Spec, is_whole: bool) -> Step {
        if self.entry.is_some() || self.ending || !self.found.results.is_empty() {
            return Step::End;
        }
        if !is_whole {
            let what = format!(
                "the end of the description of job `{}` is missing: only its option rw is known",
                quoted(&spec.name)
            );
            say(&mut self.found.notes, line, what);
        }
        if self.specs.len() < MOST_JOBS {
            self.specs.push(spec);
        }
        Step::On
    }

    fn takes_line(&mut self, line: u64, text: &str) -> Step {
        // The line of progress is overwritten in place.
        let text = text.rsplit('\r').next().unwrap_or(text);
        if let Some(head) = Head::of(text) {
            if self.ending || self.found.results.len() == MOST_JOBS {
                return Step::End;
            }
            self.finish();
            self.ended = self.ended.saturating_add(u64::from(head.jobs));
            let kinds = Vec::new();
            self.entry = Some(Entry { head, line, kinds });
            return Step::On;
        }
        self.takes_rest(line, text)
    }

    fn takes_rest(&mut self, line: u64, text: &str) -> Step {
        let trimmed = text.trim();
        if trimmed.starts_with("Run status group") || trimmed.starts_with("Disk stats") {
            self.ending = true;
            return Step::On;
        }
        if trimmed.is_empty() || self.ending && trimmed.contains(": ios=") {
            return Step::On;
        }
        if let Some(version) = trimmed
            .strip_prefix("fio-")
            .filter(|_| self.entry.is_none())
        {
            self.found.tool = tool(version);
            return Step::On;
        }
        if let Some(entry) = &mut self.entry {
            if let Some(kind) = Kind::of(text) {
                if entry.kinds.len() < MOST_KINDS {
                    entry.kinds.push(kind);
                }
                return Step::On;
            }
            if entry.kinds.last_mut().is_some_and(|kind| kind.takes(text)) {
                return Step::On;
            }
        }
        if let Some(count) = started(text) {
            self.started = Some((line, count));
            return Step::On;
        }
        if passed(text) {
            return Step::On;
        }
        if self.ending || command(text).is_some() {
            return Step::End;
        }
        let what = format!("not understood: `{}`", quoted(text));
        say(&mut self.found.notes, line, what);
        Step::On
    }

    /// Says how many jobs have no results in the text.
    fn missing(&mut self) {
        let ended = self.ended;
        if let Some((line, all)) = self.started.filter(|(_, all)| ended > 0 && *all > ended) {
            let verb = if ended == 1 { "is" } else { "are" };
            let what = format!(
                "{ended} of {all} jobs {verb} in the text: the rates of all together are higher"
            );
            say(&mut self.found.notes, line, what);
        }
    }

    /// Ends the results of a job.
    fn finish(&mut self) {
        let Some(entry) = self.entry.take() else {
            return;
        };
        let Entry { head, line, kinds } = entry;
        let name = &head.name;
        let shown = quoted(name);
        let mut say = |what: String| {
            say(
                &mut self.found.notes,
                line,
                format!("job `{shown}`: {what}"),
            );
        };
        if head.error != 0 {
            say(format!("ended with error {}", head.error));
        }
        if kinds.is_empty() {
            return say(
                "left out: no operation was done, or the end of the output is missing".to_owned(),
            );
        }
        let specs: Vec<&Spec> = own(&self.specs, &head);
        let rows = match rows(&specs, &head, &kinds, &mut say) {
            Ok(rows) if rows.is_empty() => return,
            Ok(rows) => rows,
            Err(why) => return say(format!("left out: {why}")),
        };
        let disk = Disk {
            direct: self.command.and_then(direct),
            rows,
            ..Disk::default()
        };
        self.found.results.push(outcome(name, line, disk));
    }
}

/// The descriptions of the jobs whose results these are.
fn own<'a>(specs: &'a [Spec], head: &Head) -> Vec<&'a Spec> {
    let group = specs.iter().filter(|spec| spec.group == head.group);
    let group: Vec<&Spec> = group.collect();
    if head.jobs > 1 || group.len() == 1 {
        return group;
    }
    group
        .into_iter()
        .filter(|spec| spec.name == head.name)
        .collect()
}

fn rows(
    specs: &[&Spec],
    head: &Head,
    kinds: &[Kind],
    say: &mut dyn FnMut(String),
) -> Result<Vec<DiskRow>, &'static str> {
    let Some(first) = specs.first() else {
        return Err(
            "the line with its option rw is missing, so the order of the places is unknown",
        );
    };
    let shared = kinds
        .iter()
        .filter(|kind| kind.does != Some(Does::Mix))
        .count()
        > 1;
    let mut rows = Vec::new();
    for kind in kinds {
        let Some(does) = kind.does else {
            say("trims are left out".to_owned());
            continue;
        };
        let Some(pattern) = pattern(specs, does) else {
            say(
                "is a group, in which the order of the places is unknown: some rows are left out"
                    .to_owned(),
            );
            continue;
        };
        let mut row = kind.row(pattern, does).ok_or("its rate is zero")?;
        let index = usize::from(does == Does::Write);
        let block = first.blocks[index];
        let same = specs.iter().all(|spec| spec.blocks[index] == block);
        row.block =
            block.filter(|_| same && !(does == Does::Mix && first.blocks[0] != first.blocks[1]));
        row.threads = Some(head.jobs);
        if let Some(what) = contradicts(&row) {
            say(what);
            row.operations = None;
        }
        rows.push(row);
    }
    let depth = first.depth();
    let depth = depth.filter(|_| specs.iter().all(|spec| spec.depth() == depth));
    let fits = |depth: &u32| {
        in_flight(&rows) <= f64::from(*depth) * f64::from(head.jobs) * IN_FLIGHT_SLACK
    };
    let depth = depth.filter(fits);
    for row in &mut rows {
        row.depth = depth.filter(|_| !shared || row.does == Does::Mix);
    }
    match depth {
        None => say("the depth of its jobs is unknown".to_owned()),
        Some(depth) if shared => say(format!("reads and writes share the depth of {depth}")),
        Some(_) => {}
    }
    Ok(rows)
}

/// Factor by which the rate by the payload may differ from the operations in a second, which the last, short
/// operation of a file and the rounding of both do not reach.
const DIFFERENCE: f64 = 1.25;

/// What is wrong where the operations in a second do not fit the rate.
fn contradicts(row: &DiskRow) -> Option<String> {
    let (operations, block) = (row.operations?, row.block?);
    let by_rate = row.bytes_per_sec / block.0 as f64;
    // fio cuts its figure of operations to a whole number.
    let is_near =
        by_rate <= (operations + 1.0) * DIFFERENCE && operations <= by_rate * DIFFERENCE + 1.0;
    (!is_near).then(|| {
        format!(
            "its figures contradict each other: {operations:.0} operations/s, and {by_rate:.0} by the rate and the \
             payload of {block}; the operations are left out"
        )
    })
}

/// What the jobs that do such operations do, if all do the same.
fn pattern(specs: &[&Spec], does: Does) -> Option<Pattern> {
    let mut patterns =
        specs
            .iter()
            .filter_map(|spec| spec.pattern())
            .filter(|pattern| match does {
                Does::Read => pattern.reads,
                Does::Write => pattern.writes,
                Does::Mix => true,
            });
    let first = patterns.next()?;
    patterns
        .all(|other| other.random == first.random)
        .then_some(first)
}

/// Whether the command bypassed the cache.
fn direct(command: &str) -> Option<bool> {
    let words = command
        .split_whitespace()
        .map(|word| word.trim_start_matches('-'));
    let mut words = words.skip_while(|word| !word.ends_with("fio"));
    words.next()?;
    let mut job_file = false;
    for word in words {
        match word {
            "direct=1" | "direct" | "buffered=0" => return Some(true),
            "direct=0" | "buffered=1" => return Some(false),
            _ => {
                let end = word.rsplit_once('.').map(|(_, end)| end);
                job_file |= end.is_some_and(|end| JOB_FILES.contains(&end));
            }
        }
    }
    let whole = command.contains("--rw=") || command.contains("-rw=");
    (whole && !job_file).then_some(false)
}
