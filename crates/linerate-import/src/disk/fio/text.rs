//! Reads fio's normal output.

use linerate_record::reported::{Access, Disk, DiskRow, Does, Measured};
use linerate_units::{Bytes, Nanos};

use super::document::{MOST_JOBS, Words};
use super::lines::{Head, Kind, Spec, flush, flushed, passed, started};
use super::options::{Options, given};
use super::{IN_FLIGHT_SLACK, Pattern, in_flight, tool};
use crate::format::{Extent, Format, Found, Section};
use crate::reading::{command, outcome, quoted};

/// The format of fio's normal output.
pub(crate) static TEXT: Format = Format {
    id: "fio-text",
    label: "fio, text",
    versions: "2.0 to 3.42",
    evidence: "run here: 2.2.10, 2.21, 3.33, 3.42",
    unknown: "Whether the cache was bypassed and which file it was is known only from the command line; rates have \
              four digits; of jobs that are reported together the depth is known only if all have the same; of a text \
              without its first lines the order of the places, unless the command is there.",
    starts: |at| {
        let is_result = at.line.contains("B/s") && Kind::of(at.line).is_some();
        let is_job = Spec::at(at.text).is_some() || Head::of(at.line).is_some();
        is_job || is_result || is_summary(at.line)
    },
    read,
    extent: Extent::Own,
    ..Format::RESULTS
};

/// Extensions of the names of job files.
const JOB_FILES: &[&str] = &["fio", "job", "ini", "cfg"];
/// Largest number of kinds of operations in the results of a job.
const MOST_KINDS: usize = 8;
/// A version that lists all options: those of a command are complete.
const COMPLETE: &str = "3.42";

/// Whether a line begins the sums over all jobs.
fn is_summary(line: &str) -> bool {
    line.trim_start().starts_with("Run status group")
}

/// The results of a job, collected until their last line.
#[derive(Default)]
struct Entry {
    head: Head,
    line: u64,
    kinds: Vec<Kind>,
    /// Mean time of a flush.
    flush: Option<Nanos>,
    /// Flushes per write.
    flushed: Option<f64>,
}

impl Entry {
    /// Reads a line about flushes; `false` if it is not such a line.
    fn takes(&mut self, text: &str) -> bool {
        let time = flush(text);
        let share = flushed(text);
        self.flush = time.or(self.flush);
        self.flushed = share.or(self.flushed);
        time.is_some() || share.is_some()
    }

    /// Adds the results of a kind of operation; `false` if the entry has that kind already: they belong to another
    /// run.
    fn takes_kind(&mut self, kind: &Kind) -> bool {
        let is_other = self.kinds.iter().any(|known| known.does == kind.does);
        if !is_other && self.kinds.len() < MOST_KINDS {
            self.kinds.push(kind.clone());
        }
        !is_other
    }
}

#[derive(Default)]
struct Reader<'a> {
    specs: Vec<Spec>,
    entry: Option<Entry>,
    /// The line that says how many jobs were started, and their number.
    started: Option<(u64, u64)>,
    /// Number of jobs whose results are in the text.
    ended: u64,
    /// Whether the summary has begun: from then on, a line that is not understood ends the output.
    ending: bool,
    /// The sums over all jobs.
    sums: Entry,
    command: Option<&'a str>,
    /// The options of the command, if it has one job.
    given: Option<Words>,
    found: Found,
}

/// Whether the output continues with a line, or ended before it.
#[derive(PartialEq, Eq)]
enum Step {
    On,
    End,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reader = Reader {
        command: section.command,
        given: section.command.and_then(given),
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
    reader.summed();
    reader.missing();
    let mut found = reader.found;
    if found.results.is_empty() {
        let why = found.notes.0.first().map(|note| note.what.clone());
        return Err(why.unwrap_or_else(|| "it is only the banner, without results".to_owned()));
    }
    found.used = Some(used);
    Ok(found)
}

impl Reader<'_> {
    /// Reads the line, or the description of a job, at the start of `rest`. Returns its number of lines; `None` where
    /// the output ends.
    fn takes(&mut self, line: u64, rest: &str) -> Option<usize> {
        let first = rest.split_inclusive('\n').next()?;
        let (step, count) = match Spec::at(rest) {
            Some((spec, count, is_whole)) => (self.describes(line, spec, is_whole), count),
            None => (self.takes_line(line, first.trim_end()), 1),
        };
        (step == Step::On).then_some(count)
    }

    /// Takes the description of a job; ends the output if results were read already.
    fn describes(&mut self, line: u64, spec: Spec, is_whole: bool) -> Step {
        if self.entry.is_some() || self.ending || !self.found.results.is_empty() {
            return Step::End;
        }
        if !is_whole {
            let what = format!(
                "the end of the description of job `{}` is missing: only its option rw is known",
                quoted(&spec.name)
            );
            self.found.notes.at(line, what);
        }
        if self.specs.len() < MOST_JOBS {
            self.specs.push(spec);
        }
        Step::On
    }

    fn takes_line(&mut self, line: u64, text: &str) -> Step {
        // fio overwrites the line of progress in place, with carriage returns.
        let text = text.rsplit('\r').next().unwrap_or(text);
        if let Some(head) = Head::of(text) {
            if self.ending || self.found.results.len() == MOST_JOBS {
                return Step::End;
            }
            self.finish();
            self.ended = self.ended.saturating_add(u64::from(head.jobs));
            self.entry = Some(Entry { head, line, ..Entry::default() });
            return Step::On;
        }
        self.takes_rest(line, text)
    }

    fn takes_rest(&mut self, line: u64, text: &str) -> Step {
        let trimmed = text.trim();
        if is_summary(text) || trimmed.starts_with("Disk stats") {
            return self.ends(line, is_summary(text));
        }
        if self.ending && Kind::summed(text).is_some_and(|kind| self.sums.takes_kind(&kind)) {
            return Step::On;
        }
        if trimmed.is_empty() || self.ending && trimmed.contains(": ios=") {
            return Step::On;
        }
        if let Some(version) = trimmed.strip_prefix("fio-").filter(|_| self.entry.is_none()) {
            self.found.tool = tool(version);
            return Step::On;
        }
        if let Some(kind) = Kind::of(text) {
            return self.takes_kind(line, kind);
        }
        if let Some(entry) = &mut self.entry
            && (entry.kinds.last_mut().is_some_and(|kind| kind.takes(text)) || entry.takes(text))
        {
            return Step::On;
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
        self.found.notes.strange(line, text);
        // A line without indent, between two runs: no line of fio's results begins at the margin.
        if !text.starts_with(' ')
            && self.entry.as_ref().is_some_and(|entry| !entry.kinds.is_empty())
        {
            self.finish();
        }
        Step::On
    }

    /// Takes a line of the summary: of sums, or of disks. Sums of a second group without results are another output.
    fn ends(&mut self, line: u64, is_sum: bool) -> Step {
        if is_sum && !self.sums.kinds.is_empty() && self.found.results.is_empty() {
            return Step::End;
        }
        self.finish();
        self.ending = true;
        if is_sum {
            self.sums.line = line;
        }
        Step::On
    }

    /// Takes the results of a kind of operation, of the current job, or of a new one whose first line is missing.
    fn takes_kind(&mut self, line: u64, kind: Kind) -> Step {
        if self.ending || self.found.results.len() == MOST_JOBS {
            return Step::End;
        }
        if self.entry.as_mut().is_some_and(|entry| entry.takes_kind(&kind)) {
            return Step::On;
        }
        self.finish();
        let kinds = vec![kind];
        self.entry = Some(Entry { line, kinds, ..Entry::default() });
        Step::On
    }

    /// If no job has results, the sums over all jobs become the result.
    fn summed(&mut self) {
        if self.found.results.is_empty() && !self.sums.kinds.is_empty() {
            let line = self.sums.line;
            self.found.notes.at(line, "only the sums over all jobs are in the text");
            self.entry = Some(std::mem::take(&mut self.sums));
            self.finish();
        }
    }

    /// Adds a note if some jobs have no results in the text.
    fn missing(&mut self) {
        let ended = self.ended;
        if let Some((line, all)) = self.started.filter(|(_, all)| ended > 0 && *all > ended) {
            let verb = if ended == 1 { "is" } else { "are" };
            let what = format!(
                "{ended} of {all} jobs {verb} in the text: the rates of all together are higher"
            );
            self.found.notes.at(line, what);
        }
    }

    /// Turns the collected lines of a job into a result.
    fn finish(&mut self) {
        let Some(mut entry) = self.entry.take() else {
            return;
        };
        let line = entry.line;
        let job = match entry.head.name.as_str() {
            "" => String::new(),
            name => format!("job `{}`: ", quoted(name)),
        };
        let mut say = |what: String| self.found.notes.at(line, format!("{job}{what}"));
        if entry.head.error != 0 {
            say(format!("ended with error {}", entry.head.error));
        }
        if entry.kinds.is_empty() {
            return say(
                "left out: no operation was done, or the end of the output is missing".to_owned()
            );
        }
        let none = Words::new();
        let options = Options::new(&none, self.given.as_ref(), COMPLETE);
        let given = self.given.as_ref().and_then(|_| Spec::given(&options));
        let mut specs: Vec<&Spec> = own(&self.specs, &entry.head);
        specs.extend(given.as_ref().filter(|_| self.specs.is_empty()));
        if entry.head.jobs == 0 {
            // If there are several jobs, it is unknown whether they are reported together.
            entry.head.jobs = options.jobs().filter(|jobs| *jobs == 1).unwrap_or(0);
        }
        let mut rows = match rows(&specs, &entry, &mut say) {
            Ok(rows) if rows.is_empty() => return,
            Ok(rows) => rows,
            Err(why) => return say(format!("left out: {why}")),
        };
        let writes = rows.iter_mut().filter(|row| row.does != Does::Read);
        for row in writes {
            row.flush = entry.flush;
            row.flushed = entry.flushed.or(options.flushed());
        }
        let engine = specs.first().map(|spec| spec.engine.as_str());
        let disk = Disk {
            target: options.target().to_owned(),
            direct: self.command.and_then(direct),
            engine: engine.unwrap_or_default().to_owned(),
            rows,
            ..Disk::default()
        };
        self.found.results.push(outcome(&entry.head.name, line, Measured::Disk(disk)));
    }
}

/// The descriptions of the jobs that have these results.
fn own<'a>(specs: &'a [Spec], head: &Head) -> Vec<&'a Spec> {
    let group = specs.iter().filter(|spec| spec.group == head.group);
    let group: Vec<&Spec> = group.collect();
    if head.jobs > 1 || group.len() == 1 {
        return group;
    }
    group.into_iter().filter(|spec| spec.name == head.name).collect()
}

fn rows(
    specs: &[&Spec],
    entry: &Entry,
    say: &mut dyn FnMut(String),
) -> Result<Vec<DiskRow>, &'static str> {
    let (head, kinds) = (&entry.head, &entry.kinds);
    if specs.is_empty() {
        say(
            "the line with its options is missing: the order of the places, the payload of an operation and the depth \
             are unknown"
                .to_owned(),
        );
    }
    let mut rows = Vec::new();
    for kind in kinds {
        let Some(does) = kind.does else {
            say("trims are left out".to_owned());
            continue;
        };
        let Some(access) = access(specs, does) else {
            say("is a group, in which the order of the places is unknown: some rows are left out"
                .to_owned());
            continue;
        };
        let mut row = kind.row(access, does).ok_or("its rate is zero")?;
        row.block = block(specs, does);
        row.threads = Some(head.jobs).filter(|jobs| *jobs > 0);
        if let Some(what) = contradicts(&row) {
            say(what);
            row.operations = None;
        }
        rows.push(row);
    }
    flight(specs, entry, &mut rows, say);
    Ok(rows)
}

/// Fills in the depth, if it is known for all jobs.
fn flight(specs: &[&Spec], entry: &Entry, rows: &mut [DiskRow], say: &mut dyn FnMut(String)) {
    let Some(first) = specs.first() else {
        return;
    };
    let of_all = |depth: fn(&Spec) -> Option<u32>| {
        let depth_of_first = depth(first);
        depth_of_first.filter(|_| specs.iter().all(|spec| depth(spec) == depth_of_first))
    };
    let jobs = f64::from(entry.head.jobs.max(1));
    let flying = in_flight(rows);
    let depth =
        of_all(Spec::depth).filter(|depth| flying <= f64::from(*depth) * jobs * IN_FLIGHT_SLACK);
    let ignored = of_all(Spec::ignored).filter(|_| depth.is_some());
    let shared = entry.kinds.iter().filter(|kind| kind.does != Some(Does::Mix)).count() > 1;
    for row in rows {
        row.depth = depth.filter(|_| !shared || row.does == Does::Mix);
        row.requested = ignored;
    }
    match depth {
        None => say("the depth of its jobs is unknown".to_owned()),
        Some(depth) if shared => say(format!("reads and writes share the depth of {depth}")),
        Some(_) => {}
    }
}

/// Order of the places, if all jobs have the same; [`Access::Unknown`] if no job has a description.
fn access(specs: &[&Spec], does: Does) -> Option<Access> {
    if specs.is_empty() {
        return Some(Access::Unknown);
    }
    pattern(specs, does).map(Pattern::access)
}

/// Payload of an operation, if all jobs have the same.
fn block(specs: &[&Spec], does: Does) -> Option<Bytes> {
    let index = usize::from(does == Does::Write);
    let blocks = specs.first()?.blocks;
    let same = specs.iter().all(|spec| spec.blocks[index] == blocks[index]);
    let is_one = same && (does != Does::Mix || blocks[0] == blocks[1]);
    blocks[index].filter(|_| is_one)
}

/// Factor by which the operations per second may differ from the rate over the payload. The last, short operation of
/// a file and the rounding of both figures cause smaller differences.
const DIFFERENCE: f64 = 1.25;

/// A sentence for the user, if the operations per second do not fit the rate.
fn contradicts(row: &DiskRow) -> Option<String> {
    let (operations, block) = (row.operations?, row.block?);
    let by_rate = row.bytes_per_sec / block.0 as f64;
    // fio truncates the operations per second to a whole number.
    let is_near =
        by_rate <= (operations + 1.0) * DIFFERENCE && operations <= by_rate * DIFFERENCE + 1.0;
    (!is_near).then(|| {
        format!(
            "its figures contradict each other: {operations:.0} operations/s, and {by_rate:.0} by the rate and the \
             payload of {block}; the operations are left out"
        )
    })
}

/// The pattern of the jobs that do operations of this kind, if all have the same.
fn pattern(specs: &[&Spec], does: Does) -> Option<Pattern> {
    let mut patterns =
        specs.iter().filter_map(|spec| spec.pattern()).filter(|pattern| match does {
            Does::Read => pattern.reads,
            Does::Write => pattern.writes,
            Does::Mix => true,
        });
    let first = patterns.next()?;
    patterns.all(|other| other.random == first.random).then_some(first)
}

/// Whether the command bypassed the cache; `None` if unknown.
fn direct(command: &str) -> Option<bool> {
    let words = command.split_whitespace().map(|word| word.trim_start_matches('-'));
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
