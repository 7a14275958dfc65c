//! The result of `linerate import` as a page of text.

use std::collections::BTreeSet;

use linerate_explain::{Answered, Explained, Headline, Remark, Table as Sized};
use linerate_facts::finding::Stands;
use linerate_judge::verdict::suspects;
use linerate_plan::path::Side;
use linerate_record::reported::{Counted, Disk, DiskRow, SizeRow, Sizes, Transfer, Trip};
use linerate_units::{Nanos, Rate};

use super::super::document::{Entry, Item, Table};
use super::super::finding::{DETAILS, REMARK, parts};
use super::super::fitted::{self, Agreement};
use super::super::names::Names;
use super::super::{Document, Tone, text, words};

/// Largest number of suspected causes that are named.
const FEW: usize = 4;

/// Largest number of rows of a table that are shown; the JSON document has all.
const ROWS: usize = 40;

/// The page of an import. `saved` is the name of its record and the command that shows the record, if it was saved.
pub fn page(explained: &Explained<'_>, saved: Option<(&str, &str)>) -> Document {
    let mut doc = Document::new();
    if !explained.material.title.is_empty() {
        doc.title(&explained.material.title);
        doc.gap();
    }
    answer(&mut doc, explained);
    figures(&mut doc, explained);
    if let Some((name, shown_by)) = saved {
        let shown_by = format!("   ({shown_by})");
        doc.entry("Saved", &[(Tone::Plain, name), (Tone::Dim, &shown_by)], 0);
    }
    doc
}

/// Writes the answer: what the reported figures show.
pub(crate) fn answer(doc: &mut Document, explained: &Explained<'_>) {
    let headline = explained.headline.as_ref();
    let rule = headline.and_then(|headline| headline.rule);
    let is_first = |remark: &&Remark| {
        let found = &remark.finding;
        Some(found.id) == rule && headline.is_some_and(|h| h.what == found.what)
    };
    let first = explained.remarks.iter().find(is_first);
    if let Some((headline, remark)) = headline.zip(first) {
        remark_line(doc, headline, remark);
        doc.gap();
    }
    // If a rule gives the answer, the line that the judge found no limit is left out.
    if first.is_none() || !explained.verdict.limits.is_empty() {
        judged(doc, explained);
        doc.gap();
    }
    let rest = explained
        .remarks
        .iter()
        .filter(|remark| first.is_none_or(|first| !std::ptr::eq(first, *remark)));
    remarks(doc, rest);
    if first.is_none() {
        unknown(doc, explained);
    }
    doc.gap();
}

/// Writes the answer of a rule: what it found, why, and the next step.
fn remark_line(doc: &mut Document, headline: &Headline, remark: &Remark) {
    let (label, tone) = match headline.stands {
        Answered::Contradiction => ("Contradiction", Tone::Warning),
        Answered::Limit => ("Limit", Tone::Strong),
        Answered::Unknown => ("Unknown", Tone::Warning),
        Answered::Healthy => ("As it should", Tone::Good),
    };
    let id = match (headline.cause, headline.certainty) {
        (Some(cause), Some(certainty)) => format!(" [{cause}, {}]", certainty.name()),
        _ => format!(" ({})", remark.finding.id),
    };
    doc.entry(label, &[(tone, &headline.what), (Tone::Dim, &id)], 2);
    if !headline.candidates.is_empty() {
        let maybe = format!("it may be {}", headline.candidates.join(" or "));
        doc.entry("", &[(Tone::Plain, &maybe)], 2);
    }
    if !headline.ruled_out.is_empty() {
        let not = format!("it is not {}", headline.ruled_out.join(", nor "));
        doc.entry("", &[(Tone::Plain, &not)], 2);
    }
    parts(doc, &remark.finding, REMARK, None);
}

/// Writes the reported figures themselves, and which files were read.
pub(crate) fn figures(doc: &mut Document, explained: &Explained<'_>) {
    oddities(doc, explained);
    doc.gap();
    fits(doc, &explained.tables);
    for table in &explained.tables {
        doc.gap();
        sizes(doc, table);
    }
    doc.gap();
    transfers(doc, explained);
    doc.gap();
    disks(doc, explained);
    doc.gap();
    read(doc, explained);
}

/// Writes the limits that the judge found.
fn judged(doc: &mut Document, explained: &Explained<'_>) {
    if let Some(model) = &explained.model {
        let names = Names::of_hosts(model);
        text::judged(doc, model, &explained.verdict, &names);
    }
}

/// Writes that neither a rule nor the judge has an answer.
fn not_known(doc: &mut Document, explained: &Explained<'_>) {
    let odd = explained.oddities.iter().any(|all| !all.is_empty());
    let what = match &explained.headline {
        Some(headline) => headline.what.as_str(),
        None if odd => return,
        None => "it has no result of a test: facts of hosts alone do not say what is slow",
    };
    doc.entry("Unknown", &[(Tone::Plain, what)], 2);
}

/// Writes what the judge cannot derive from the figures, and what would make it known.
fn unknown(doc: &mut Document, explained: &Explained<'_>) {
    let verdict = &explained.verdict;
    if verdict.unknown.is_empty() || !verdict.limits.is_empty() {
        // With remarks, something is known and has been written already.
        if explained.remarks.is_empty() && verdict.limits.is_empty() {
            not_known(doc, explained);
        }
        return;
    }
    let found = suspects(verdict);
    let maybe: Vec<&str> = found.iter().map(|s| s.cause).collect();
    let open = match maybe.as_slice() {
        [] => "no cause fits the figures that were reported".to_owned(),
        few if few.len() <= FEW => format!("it may be {}", few.join(", ")),
        many => format!(
            "these figures do not tell sender, receiver and network apart ({} causes are left)",
            many.len()
        ),
    };
    doc.entry("Unknown", &[(Tone::Plain, &open)], 2);
    let found = found.iter().filter(|s| s.outcome == "finding");
    let mut seen = BTreeSet::new();
    for why in found.flat_map(|s| &s.why).filter(|why| seen.insert(*why)) {
        doc.evidence(why);
    }
    let next = "to know it, with `linerate serve` on the other host:";
    doc.detail(&[(Tone::Dim, next)], 2);
    doc.detail_command((Tone::Strong, "linerate run HOST"), 0);
}

fn remarks<'a>(doc: &mut Document, remarks: impl Iterator<Item = &'a Remark>) {
    for found in remarks.map(|remark| &remark.finding) {
        let (label, tone) = match found.stands {
            Stands::Contradiction => ("Contradiction", Tone::Warning),
            Stands::Doubt => ("In doubt", Tone::Warning),
            Stands::Good => ("As it should", Tone::Good),
            _ => ("Found", Tone::Strong),
        };
        let id = format!(" ({})", found.id);
        doc.entry(label, &[(tone, &found.what), (Tone::Dim, &id)], 2);
        parts(doc, found, REMARK, None);
    }
}

/// A time in microseconds, as it is written in tables by message size.
fn micros(time: Option<Nanos>) -> String {
    time.map_or(String::new(), |time| {
        let micros = time.0 as f64 / 1e3;
        let digits = if micros < 1_000.0 { 2 } else { 0 };
        format!("{micros:.digits$}")
    })
}

/// A column of a table by message size: heading, function that makes a cell, and unit to add where there is no
/// heading.
type Column = (&'static str, fn(&Sizes, &SizeRow) -> String, &'static str);

const COLUMNS: [Column; 11] = [
    ("size", |_, row| row.size.to_string(), ""),
    ("least", |_, row| micros(row.least), " us"),
    ("typical", |_, row| micros(row.typical), " us"),
    ("mean", |_, row| micros(row.mean), " us"),
    ("dev", |_, row| micros(row.deviation), " us"),
    ("p99", |_, row| micros(row.p99), " us"),
    ("p99.9", |_, row| micros(row.p999), " us"),
    ("max", |_, row| micros(row.most), " us"),
    ("rate", rate, ""),
    ("messages/s", |_, row| row.messages.map_or(String::new(), |n| format!("{n:.0}")), ""),
    ("samples", |_, row| row.samples.map_or(String::new(), |n| n.to_string()), ""),
];

fn rate(sizes: &Sizes, row: &SizeRow) -> String {
    // A single row is a latency measurement: size divided by time would be no rate of the path.
    let is_table = row.rate.is_some() || sizes.rows.len() > 1;
    let rate = Sized::rate(sizes, row).filter(|_| is_table);
    rate.map_or(String::new(), |rate| rate.to_string())
}

fn sizes(doc: &mut Document, table: &Sized<'_>) {
    let trip = match table.sizes.trip {
        Trip::Whole => ", whole round trips in us",
        Trip::Half => ", halves of round trips in us",
        Trip::Unknown if table.smallest().is_some() => ", times in us (half or whole is not known)",
        Trip::Unknown => "",
    };
    doc.heading(&format!("{}{trip}", table.name));
    let rows = &table.sizes.rows;
    let filled = |column: &&Column| rows.iter().any(|row| !column.1(table.sizes, row).is_empty());
    let columns: Vec<&Column> = COLUMNS.iter().filter(filled).collect();
    let width = |column: &&Column| {
        let cells = rows.iter().map(|row| column.1(table.sizes, row).chars().count());
        cells.chain([column.0.len()]).max().unwrap_or(0) + 2
    };
    let widths: Vec<usize> = columns.iter().map(width).collect();
    let head: Vec<_> = columns.iter().map(|c| (Tone::Dim, c.0)).collect();
    let least = widths.iter().sum::<usize>().saturating_sub(2);
    let mut out = Table::new(&widths).head(&head).least(least);
    for row in rows.iter().take(ROWS) {
        let cells: Vec<String> = columns.iter().map(|column| column.1(table.sizes, row)).collect();
        let entry = narrow(&columns, &cells);
        let cells: Vec<_> = cells.iter().map(|c| (Tone::Plain, c.as_str())).collect();
        out.row_or(&cells, entry);
    }
    doc.table(out);
    if rows.len() > ROWS {
        let more = format!("{} more rows; --json has all", rows.len() - ROWS);
        doc.line(&[(Tone::Dim, &more)], 2);
    }
}

/// A row on a page that is too narrow for the table: `4 KiB` with `typical 6.09 us, max 9.99 us`.
fn narrow(columns: &[&Column], cells: &[String]) -> Entry {
    let named = columns.iter().zip(cells).skip(1);
    let filled = named.filter(|(_, cell)| !cell.is_empty());
    let named: Vec<String> =
        filled.map(|((name, _, unit), cell)| format!("{name} {cell}{unit}")).collect();
    let size = cells.first().map_or("", String::as_str);
    Entry::new(size, &[(Tone::Plain, &named.join(", "))], 2)
}

/// Writes what the times by message size show, for each table.
fn fits(doc: &mut Document, tables: &[Sized<'_>]) {
    let timed = |table: &&Sized<'_>| table.smallest().is_some();
    for table in tables.iter().filter(timed) {
        let agrees = Agreement::Path(table.facts.clone());
        if let Some(timer) = &table.timer {
            fitted::ticks(doc, &table.name, timer, &agrees);
        }
        match &table.fit {
            Some(fit) => fitted::rate(doc, &table.name, Some(fit), &agrees),
            None => smallest(doc, table),
        }
    }
}

/// Writes the time of the smallest messages, for a table that has too few or too small messages to show a rate.
fn smallest(doc: &mut Document, table: &Sized<'_>) {
    let Some((row, time)) = table.smallest().and_then(|row| Some((row, row.time()?))) else {
        return;
    };
    let time = time.to_string();
    let text = format!(", {}: messages of {}", table.name, row.size);
    let body = [(Tone::Strong, time.as_str()), (Tone::Plain, text.as_str())];
    doc.item(Item::new(&body).indent(0, 4));
}

fn transfers(doc: &mut Document, explained: &Explained<'_>) {
    let mut rows = explained.material.transfers().peekable();
    if rows.peek().is_none() {
        return;
    }
    doc.heading("Transfers");
    for (source, one) in rows.take(ROWS) {
        let rate = one.goodput.to_string();
        let text = transfer(one);
        let file = format!(" ({})", source.file);
        let head = [(rate.as_str(), 12.into())];
        let item = Item::new(&[(Tone::Plain, &text), (Tone::Dim, &file)]);
        doc.item(item.head(Tone::Strong, &head).indent(2, 16));
    }
}

/// A transfer in words: `TCP, 4 streams, client to server, 10 s, 12 retransmitted`.
fn transfer(one: &Transfer) -> String {
    let streams = one.streams.map(|n| words::count(u64::from(n), "stream"));
    let way = match one.direction.sender() {
        Side::Near => "client to server",
        Side::Far => "server to client",
    };
    let size = one.size.map(|size| format!("{size} each"));
    let both = one.both.then(|| "both directions at once".to_owned());
    let sent = (one.counted == Counted::Sender).then(|| "as sent, not as received".to_owned());
    let time = one.seconds.map(|secs| format!("{secs:.1} s"));
    let retransmitted = one.retransmits.map(|n| format!("{n} retransmitted"));
    let lost = one.datagrams.map(|counts| {
        let share = counts.lost as f64 / (counts.of as f64).max(1.0) * 100.0;
        format!("{share:.2} % lost")
    });
    let trip = one.round_trip.mean.map(|rtt| format!("round trip {rtt}"));
    let cpu = |what: &str, cpu: Option<linerate_record::reported::Cpu>| {
        cpu.map(|cpu| format!("{what} CPU {:.0} %", cpu.total * 100.0))
    };
    let carrier = one.carrier.words().to_owned();
    let parts = [
        Some(carrier),
        streams,
        Some(way.to_owned()),
        both,
        size,
        time,
        sent,
        retransmitted,
        lost,
        trip,
        cpu("sender", one.cpu.sender),
        cpu("receiver", one.cpu.receiver),
        one.error.as_ref().map(|why| format!("ended early: {why}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn disks(doc: &mut Document, explained: &Explained<'_>) {
    let mut all = explained.material.disks().peekable();
    if all.peek().is_none() {
        return;
    }
    doc.heading("Disks and files");
    for (source, disk) in all {
        let is_on_path = explained.material.transfers().next().is_some();
        let at = source.side.filter(|_| is_on_path);
        let at = at.map_or("", linerate_explain::side_name);
        let head = [source.file.as_str(), at, disk.target.as_str()];
        let head: Vec<&str> = head.into_iter().filter(|part| !part.is_empty()).collect();
        doc.line(&[(Tone::Dim, &head.join(", "))], 2);
        for row in disk.rows.iter().take(ROWS) {
            let rate = disk_rate(row.bytes_per_sec);
            let head = [(rate.as_str(), 14.into())];
            let item = Item::new(&[(Tone::Plain, &disk_row(disk, row))]);
            doc.item(item.head(Tone::Strong, &head).indent(2, 18));
        }
    }
}

/// Bytes per second from which a rate is written in GB/s. Below it is in MB/s, in which disks are usually compared.
const IN_GB: f64 = 1e10;

/// A rate of a disk in words: `92.2 GB/s`, `5632.0 MB/s`.
fn disk_rate(bytes: f64) -> String {
    if bytes < IN_GB {
        format!("{:.1} MB/s", bytes / 1e6)
    } else {
        format!("{:.1} GB/s", bytes / 1e9)
    }
}

fn disk_row(disk: &Disk, row: &DiskRow) -> String {
    let best = disk.best_of.filter(|runs| *runs > 1);
    let parts = [
        Some(row.operation()),
        row.block.map(|size| size.to_string()),
        row.depth.map(|n| format!("depth {n}")),
        row.threads.map(|n| words::count(u64::from(n), "thread")),
        row.operations.map(|n| format!("{n:.0} operations/s")),
        row.mean.map(|time| format!("mean {time}")),
        row.p99.map(|time| format!("p99 {time}")),
        best.map(|runs| format!("best of {runs}")),
        Some(Rate((row.bytes_per_sec * 8.0) as u64).to_string()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Writes what is odd about the hosts, by their reported facts.
fn oddities(doc: &mut Document, explained: &Explained<'_>) {
    let sides = [Side::Near, Side::Far];
    for (side, all) in sides.into_iter().zip(&explained.oddities) {
        for odd in all {
            let label = match side {
                Side::Near => "Host",
                Side::Far => "Far host",
            };
            let subject = format!("{}: ", odd.subject);
            doc.entry(label, &[(Tone::Strong, &subject), (Tone::Plain, &odd.what)], 2);
            parts(doc, odd, DETAILS, None);
        }
    }
}

/// Writes which files were read, and which lines were not understood.
fn read(doc: &mut Document, explained: &Explained<'_>) {
    for (i, source) in explained.material.sources.iter().enumerate() {
        let version = source.tool.version.as_ref();
        let version = version.map_or(String::new(), |version| format!(" {version}"));
        let text = format!("{}: {}{version}", source.file, source.label);
        doc.entry(if i == 0 { "Read" } else { "" }, &[(Tone::Plain, &text)], 2);
        for note in &source.notes {
            let line = note.line.map_or(String::new(), |line| format!("line {line}: "));
            doc.detail(&[(Tone::Warning, &line), (Tone::Plain, &note.what)], 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_rates_of_disks_are_in_gb() {
        assert_eq!(disk_rate(92_234.4e6), "92.2 GB/s");
        assert_eq!(disk_rate(10_000e6), "10.0 GB/s");
        assert_eq!(disk_rate(9_999.9e6), "9999.9 MB/s");
        assert_eq!(disk_rate(0.5e6), "0.5 MB/s");
    }
}
