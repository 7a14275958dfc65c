//! Rows of a disk as text: each row of a disk benchmark, read and written.

use linerate_explain::diff::Judged;
use linerate_facts::HostFacts;
use linerate_facts::block::{BlockDevice, Layer};
use linerate_judge::causes::cause;
use linerate_judge::figure::{Entry, Figure, GOODPUT, LATENCY, OPERATIONS, Value};
use linerate_judge::model::{Load, derive, sent_in};
use linerate_judge::study::{Point, TYPICAL};
use linerate_plan::path::{Direction, Slowness};
use linerate_plan::study::Axis;
use linerate_record::Record;
use linerate_units::{Bytes, Nanos, digits};

use super::super::bw::own::broken;
use super::super::document::{LABEL, Table};
use super::super::words::bytes_rate;
use super::super::{Document, Tone};
use super::{Made, Study};

/// Names of the two axes of a study of rows: the row, and whether it is read or written.
pub const ROW: &str = "row";
pub const ACCESS: &str = "access";

/// The page: what limits reads and writes, what the file is on, a line for each row and access, and how far the figures
/// are those of the disk.
pub(super) fn page(study: &Study<'_>, axes: [&Axis; 2]) -> Document {
    let mut doc = Document::new();
    let points = study.points();
    for access in &axes[1].values {
        answer(&mut doc, study, &points, &access.label);
    }
    let target = study.target.unwrap_or_default();
    let records: Vec<&Record> = study.made().map(|(_, made)| made.record).collect();
    let near = records.first().and_then(|record| record.hosts.first());
    doc.line(&[(Tone::Dim, &near.map_or(target.to_owned(), |host| held(target, &host.facts)))], 0);
    doc.gap();
    table(&mut doc, &points, axes);
    doc.gap();
    for (name, made) in study.made() {
        let why = broken(made.record);
        if !why.is_empty() {
            doc.entry("ended early", &[(Tone::Warning, &format!("{name}: {why}"))], 2);
        }
    }
    if let ([write], [record]) = (axes[1].values.as_slice(), records.as_slice())
        && write.label == Direction::Forward.access()
        && derive(record).directions.iter().all(|one| one.fell.is_none())
    {
        let written = Bytes(sent_in(record, Direction::Forward).0);
        let text = format!("The rate did not fall while {written} were written.");
        doc.line(&[(Tone::Strong, &text)], 0);
    }
    let proof = proof(study, axes, &records);
    if !proof.is_empty() {
        doc.line(&[(Tone::Plain, &proof)], 0);
    }
    let note = "MB = 10^6 bytes. Means over the measuring time, with half of the 95 % interval; p50 and p99 are times of \
                single operations.";
    doc.line(&[(Tone::Dim, note)], 0);
    doc
}

/// Writes the rate of the fastest row of an access, and what limits it.
fn answer(doc: &mut Document, study: &Study<'_>, points: &[Point], access: &str) {
    let of = points.iter().filter(|point| point.values.get(1).is_some_and(|own| own == access));
    let goodput = |point: &&Point| find(point, &GOODPUT, None).map(|value| value.mid);
    let Some(most) = of.filter_map(|point| goodput(&point)).max_by(f64::total_cmp) else {
        return;
    };
    let rate = bytes_rate(most);
    let is_of = |made: &&Made<'_>| {
        let directions = &made.record.start.plan.directions;
        directions.first().is_some_and(|direction| direction.access() == access)
    };
    let judged = study.made().map(|(_, made)| made).find(is_of);
    let judged = judged.map(|made| Judged::new(made.record));
    let verdict = judged.as_ref().map(|judged| &judged.verdict);
    let limits = verdict.map(|verdict| verdict.limits.as_slice()).unwrap_or_default();
    let mut limits = limits.iter().filter(|limit| limit.metric.slowness() == Slowness::Rate);
    let Some(limit) = limits.next() else {
        let spans =
            [(Tone::Strong, rate.as_str()), (Tone::Warning, "  what limits it was not found")];
        doc.entry(access, &spans, 2);
        for unknown in verdict.iter().flat_map(|verdict| &verdict.unknown).take(1) {
            doc.evidence(&format!("{}: {}", unknown.what, unknown.why));
            doc.command("next", (Tone::Plain, &unknown.hint), 2);
        }
        return;
    };
    let name = cause(limit.cause).map_or(limit.cause, |cause| cause.name);
    let text = format!("  {name} [{}]", limit.certainty.name());
    doc.entry(access, &[(Tone::Strong, &rate), (Tone::Plain, &text)], 2);
    let gain = limit.advice.iter().find_map(|advice| advice.gain.filter(|gain| *gain > 1.0));
    if let Some(gain) = gain {
        doc.evidence(&format!("after the fix: about {}", bytes_rate(most * gain)));
    }
    for evidence in limit.evidence.iter().take(2) {
        doc.evidence(evidence);
    }
    for advice in limit.advice.iter().take(1) {
        doc.entry("fix", &[(Tone::Plain, &advice.text())], 2);
    }
    let why = [(Tone::Dim, "linerate causes "), (Tone::Dim, limit.cause)];
    doc.entry("more", &why, 2);
}

/// What a file is on: `/data  ext4 on dm-0 (logical volume) of nvme0n1, 1023 requests of 512 KiB at most`.
fn held(target: &str, facts: &HostFacts) -> String {
    let kind = facts.filesystem.as_ref().map(|held| held.kind.as_str()).unwrap_or_default();
    let named = |disk: &BlockDevice| {
        let what: &str = match disk.layer {
            Layer::Disk if disk.model.is_empty() => &disk.transport,
            Layer::Disk => &disk.model,
            _ if !disk.raid.is_empty() => &disk.raid,
            layer => layer.name(),
        };
        if what.is_empty() { disk.name.clone() } else { format!("{} ({what})", disk.name) }
    };
    let layers: Vec<String> = facts.disks.iter().map(named).collect();
    let mut words = format!("{target}  {kind}");
    if kind == "tmpfs" {
        words.push_str(" in memory, on no disk");
    }
    if !layers.is_empty() {
        let on = if kind.is_empty() { "" } else { " on " };
        words = format!("{words}{on}{}", layers.join(" of "));
    }
    let disk = facts.disks.last();
    let link = disk.and_then(|disk| disk.crossings().first().map(|link| link.now));
    words.extend(link.map(|link| format!(", PCIe {link}")));
    let queue = disk.map(|disk| &disk.queue);
    let limits = queue.and_then(|queue| Some((queue.depth.or(queue.requests)?, queue.largest?)));
    words.extend(
        limits.map(|(requests, largest)| format!(", {requests} requests of {largest} at most")),
    );
    words.extend(
        queue
            .filter(|queue| !queue.write_cache.is_empty())
            .map(|queue| format!(", cache {}", queue.write_cache)),
    );
    words
}

fn table(doc: &mut Document, points: &[Point], axes: [&Axis; 2]) {
    let head = ["", "", "MB/s", "", "operations/s", "p50", "p99"];
    let mut table = Table::new(&[LABEL, 7, 9, 9, 14, 10, 0]);
    table = table.head(&head.map(|cell| (Tone::Strong, cell)));
    for row in &axes[0].values {
        let mut name = row.label.as_str();
        for access in &axes[1].values {
            let at = [&row.label, &access.label];
            let point = points.iter().find(|point| point.values.iter().eq(at));
            let cells = point.map_or_else(Default::default, cells);
            let cells = [&[name.to_owned(), access.label.clone()][..], &cells].concat();
            let cells: Vec<_> = cells.iter().map(|cell| (Tone::Plain, cell.as_str())).collect();
            table.row(&cells);
            name = "";
        }
    }
    doc.table(table);
}

/// How far the figures are those of the disk: the share of the bytes that passed it, the requests in flight there in the
/// row that asks for most, and what was written.
fn proof(study: &Study<'_>, axes: [&Axis; 2], records: &[&Record]) -> String {
    let load = |record: &&Record| derive(record).directions.into_iter().next().map(|one| one.base);
    let loads: Vec<Load> = records.iter().filter_map(load).collect();
    let mut parts = Vec::new();
    let passed = loads
        .iter()
        .filter_map(|load| Some(load.disk?.own.bytes * 8.0 / load.goodput.mean.max(1.0)));
    if let Some(least) = passed.reduce(f64::min) {
        let percent = least.min(1.0) * 100.0;
        parts.push(format!("{percent:.0} % of the bytes, or more in each row, passed the disk"));
    }
    let asked = |load: &&Load| load.knobs.depth.max(1).saturating_mul(load.streams.max(1));
    let deepest = loads.iter().filter(|load| load.disk.is_some()).max_by_key(asked);
    if let Some((load, disk)) = deepest.and_then(|load| Some((load, load.disk?))) {
        let operations = load.operations.map_or(0.0, |rate| rate.mean);
        let each = (disk.own.requests / operations.max(1e-3)).max(1.0);
        let asked = f64::from(asked(&load)) * each;
        parts.push(format!("{:.1} of {asked:.0} requests in flight there", disk.in_flight));
    }
    let writes = axes[1].values.iter().any(|access| access.label == Direction::Forward.access());
    let written = records.iter().map(|record| sent_in(record, Direction::Forward).0).sum::<u64>();
    if writes && written > 0 && study.complete() {
        parts.push(format!("{} written to a file that is gone", Bytes(written)));
    }
    parts.join("; ")
}

/// The figures of a point: MB/s, half of their interval, operations in a second, and two percentiles of their times.
fn cells(point: &Point) -> [String; 5] {
    let find = |figure: &Figure, percentile: Option<f64>| find(point, figure, percentile);
    let goodput = find(&GOODPUT, None);
    let rate = goodput.map(|value| digits(value.mid / super::super::words::BITS_OF_MB));
    let half = goodput.and_then(|value| {
        let interval = value.interval().filter(|_| value.mid > 0.0)?;
        Some(format!("±{:.1} %", (interval.high - interval.low) / 2.0 / value.mid * 100.0))
    });
    let operations = find(&OPERATIONS, None).map(|value| digits(value.mid));
    let time = |percent| {
        let value = find(&LATENCY, Some(percent))?;
        Some(Nanos(value.mid as u64).to_string())
    };
    [rate, half, operations, time(TYPICAL), time(99.0)].map(Option::unwrap_or_default)
}

/// A figure of a point.
pub(super) fn find<'a>(
    point: &'a Point,
    figure: &Figure,
    percentile: Option<f64>,
) -> Option<&'a Value> {
    let mut entries = point.summary.entries.iter();
    let entry = |e: &&Entry| *e.figure == *figure && e.of.percentile == percentile;
    entries.find(entry).and_then(|entry| entry.value.as_ref().ok())
}
