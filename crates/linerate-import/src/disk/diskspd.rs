//! The text of DiskSpd, the engine of CrystalDiskMark.

use linerate_record::reported::{Access, Disk, DiskRow, Does, Measured};
use linerate_units::{Bytes, Nanos};

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{
    FOR_P99, FOR_P999, Line, MILLI, Notes, command, figure, positive, size, time,
};

/// The format of DiskSpd's text.
pub(crate) static DISKSPD: Format = Format {
    id: "diskspd",
    label: "DiskSpd, text",
    versions: "2.0 to 2.2",
    evidence: "published: 2.0.21 (README of a repository of containers; an example of Microsoft's \
        VirtualClient), 2.2 (an exercise of a course)",
    unknown: "The version; percentiles without -L.",
    starts: |at| starts(at.text),
    read,
    extent: Extent::Own,
    ..Format::RESULTS
};

/// Names of the percentiles that are read.
const PERCENTILES: &[&str] = &["50th", "99th", "3-nines", "max"];
/// The start of the line after which the results follow.
const RESULTS: &str = "Results for timespan ";
/// Names of the tables, and the kind of their operations; `None` for reads and writes together.
const TABLES: &[(&str, Option<Does>)] =
    &[("Total IO", None), ("Read IO", Some(Does::Read)), ("Write IO", Some(Does::Write))];

fn starts(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default().trim_start();
    let command = line.strip_prefix("Command Line: ");
    let named = command.is_some_and(|command| {
        let program = command.split_whitespace().next().unwrap_or_default();
        program.to_ascii_lowercase().contains("diskspd")
    });
    named
        || line.starts_with("Input parameters:")
            && text.lines().take(4).any(|line| line.contains("timespan:"))
}

/// What the command line requested, as DiskSpd prints it before the results.
#[derive(Default)]
struct Requested {
    timespans: u32,
    targets: u32,
    target: String,
    access: Option<Access>,
    block: Option<Bytes>,
    depth: Option<u32>,
    direct: Option<bool>,
}

/// The sum in the last line of a table.
struct Total {
    does: Option<Does>,
    bytes: f64,
    operations: f64,
    mean: Option<Nanos>,
}

#[derive(Default)]
struct Reader {
    requested: Requested,
    seconds: Option<f64>,
    threads: Option<u32>,
    /// The kind of operation and the columns of the table that is being read.
    table: Option<(Option<Does>, Vec<String>)>,
    totals: Vec<Total>,
    /// Percentiles in milliseconds by their name, such as `99th`: of reads, of writes, and of all operations.
    percentiles: Vec<(String, [Option<f64>; 3])>,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reader = Reader::default();
    let mut results = false;
    let used = section.up_to(|Line { text, .. }, used| {
        let line = text.trim();
        // The output ends at the next run of a script, or at a prompt.
        if results && starts(&section.text[used..]) || used > 0 && command(line).is_some() {
            return false;
        }
        results |= line.starts_with(RESULTS);
        if results {
            reader.result(line);
        } else {
            reader.requested.takes(line);
        }
        true
    });
    let Reader { requested, seconds, .. } = &reader;
    if requested.timespans > 1 {
        return Err("it has several timespans, which are not told apart".to_owned());
    }
    let access = requested.access.ok_or("the order of the places is not in it")?;
    let seconds = seconds.ok_or("the results are missing")?;
    let rows = reader.rows(access, seconds);
    if rows.is_empty() {
        return Err("no operation was done".to_owned());
    }
    let mut notes = Notes::default();
    if requested.targets > 1 {
        notes.at(section.line, format!("the figures are sums over {} files", requested.targets));
    }
    if rows.len() > 1 {
        notes.at(section.line, "reads and writes share the operations in flight");
    }
    let disk = Disk {
        target: requested.target.clone(),
        direct: requested.direct,
        rows,
        ..Disk::default()
    };
    Ok(Found::of("DiskSpd", used, notes).with("", section.line, Measured::Disk(disk)))
}

impl Requested {
    fn takes(&mut self, line: &str) {
        let after = |key: &str| line.strip_prefix(key).map(str::trim);
        if after("timespan:").is_some() {
            self.timespans += 1;
        } else if let Some(path) = after("path:") {
            self.targets += 1;
            path.trim_matches('\'').clone_into(&mut self.target);
        } else if let Some(block) = after("block size:") {
            self.block = size(block);
        } else if line.starts_with("using random I/O") {
            self.access = Some(Access::Random);
        } else if line.starts_with("using sequential I/O")
            || line.starts_with("using interlocked sequential I/O")
        {
            self.access = Some(Access::Sequential);
        } else if line.starts_with("number of outstanding I/O operations") {
            self.depth = line.rsplit(':').next().and_then(|n| n.trim().parse().ok());
        } else if line.starts_with("software cache disabled")
            || line.starts_with("software and hardware write cache disabled")
        {
            self.direct = Some(true);
        } else if line.starts_with("using software") {
            self.direct = Some(false);
        }
    }
}

impl Reader {
    fn result(&mut self, line: &str) {
        if let Some(time) = line.strip_prefix("actual test time:") {
            self.seconds = figure(time.trim().trim_end_matches('s')).and_then(positive);
        } else if let Some(count) = line.strip_prefix("thread count:") {
            self.threads = count.trim().parse().ok();
        } else if let Some((_, does)) = TABLES.iter().find(|(name, _)| *name == line) {
            self.table = Some((*does, Vec::new()));
        } else if line.starts_with("thread |") {
            if let Some((_, columns)) = &mut self.table {
                *columns = cells(line).map(str::to_owned).collect();
            }
        } else if let Some(rest) = line.strip_prefix("total:").filter(|rest| rest.contains('|')) {
            let total = self.table.take().and_then(|(does, columns)| total(does, &columns, rest));
            self.totals.extend(total.filter(|_| self.totals.len() < TABLES.len()));
        } else if self.percentiles.len() < PERCENTILES.len() {
            self.percentiles.extend(percentile(line));
        }
    }

    /// One row for reads and one for writes; if both were done, also one for all operations.
    fn rows(&self, access: Access, seconds: f64) -> Vec<DiskRow> {
        let done =
            |does: Does| self.totals.iter().any(|t| t.does == Some(does) && t.operations > 0.0);
        let both = done(Does::Read) && done(Does::Write);
        let rows = self.totals.iter().filter(|total| total.does.is_some() || both);
        rows.filter_map(|total| self.row(total, access, seconds, both)).collect()
    }

    fn row(&self, total: &Total, access: Access, seconds: f64, both: bool) -> Option<DiskRow> {
        let does = total.does.unwrap_or(Does::Mix);
        let mut row = DiskRow::new(access, does, positive(total.bytes / seconds)?);
        row.operations = positive(total.operations / seconds);
        row.seconds = Some(seconds);
        row.block = self.requested.block;
        row.threads = self.threads;
        row.depth = self.requested.depth.filter(|_| !both || does == Does::Mix);
        row.mean = total.mean;
        let column = match does {
            Does::Read => 0,
            Does::Write => 1,
            Does::Mix => 2,
        };
        let of = |name: &str, needs: f64| {
            let (_, values) = self.percentiles.iter().find(|(key, _)| key == name)?;
            time(values[column].filter(|_| total.operations >= needs)?, MILLI)
        };
        row.typical = of("50th", 1.0);
        row.p99 = of("99th", FOR_P99);
        row.p999 = of("3-nines", FOR_P999);
        row.most = of("max", 1.0);
        Some(row)
    }
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split('|').map(str::trim)
}

/// Reads the last line of a table; `rest` is the text after `total:`.
fn total(does: Option<Does>, columns: &[String], rest: &str) -> Option<Total> {
    let values: Vec<&str> = cells(rest).collect();
    let of = |name: &str| {
        let at = columns.iter().position(|column| column == name)?;
        figure(values.get(at.checked_sub(1)?)?)
    };
    Some(Total {
        does,
        bytes: of("bytes")?,
        operations: of("I/Os")?,
        mean: of("AvgLat").and_then(|ms| time(ms, MILLI)),
    })
}

/// Reads a line such as `   99th |      4.075 |      3.153 |      3.779`.
fn percentile(line: &str) -> Option<(String, [Option<f64>; 3])> {
    let mut parts = cells(line);
    let name = parts.next()?;
    let known = PERCENTILES.contains(&name);
    let mut next = || parts.next().and_then(figure);
    known.then(|| (name.to_owned(), [next(), next(), next()]))
}
