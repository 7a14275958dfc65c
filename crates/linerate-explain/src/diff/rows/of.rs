//! The rows of an import, to compare them with those of another record.

use super::{Row, RowFigure, SIZE, STREAMS, Trait};
use crate::{Explained, Table, load_figures, side_name};
use linerate_judge::figure::{Evidence, GOODPUT, Unit, Value};
use linerate_plan::path::{Direction, Side};
use linerate_record::reported::{
    Carrier, Counted, Disk, DiskRow, Measured, Outcome, SizeRow, Sizes, Source, Transfer, Trip,
};
use linerate_units::stats::mean_ci;
use linerate_units::{Bytes, Nanos};

pub(super) const SIZES: &str = "messages by size";
const DISKS: &str = "operations on a disk";
const TRANSFERS: &str = "transfers";

/// Most rows of a record that are compared: more than any output that a person reads has.
const MOST: usize = 5000;

const fn time(key: &'static str, label: &'static str) -> RowFigure {
    let unit = Unit::Nanos;
    RowFigure { key, label, unit }
}

pub(super) const MEDIAN: RowFigure = time("median_ns", "median");
const MEAN: RowFigure = time("mean_ns", "mean");
pub(super) const P99: RowFigure = time("p99_ns", "p99");
pub(super) const P999: RowFigure = time("p999_ns", "p99.9");
const LEAST: RowFigure = time("least_ns", "shortest");
const OPERATIONS: RowFigure =
    RowFigure { key: "operations_per_sec", label: "operations", unit: Unit::PerSecond };
const RATE: RowFigure = RowFigure { key: GOODPUT.key, label: "rate", unit: Unit::BitsPerSecond };
const BYTES: RowFigure =
    RowFigure { key: "bytes_per_sec", label: "rate", unit: Unit::BytesPerSecond };

/// A time as a figure; `None` if the program did not report it.
fn timed(figure: RowFigure, time: Option<Nanos>) -> Option<(RowFigure, Value)> {
    Some((figure, Value::bare(time?.0 as f64)))
}

pub(super) fn known(name: &'static str, value: impl Into<String>) -> Trait {
    (name, Some(value.into()))
}

fn number(name: &'static str, value: Option<impl ToString>) -> Trait {
    (name, value.map(|value| value.to_string()))
}

/// The names of a result: its host with the program's own title, with the file, and with both.
fn names(source: &Source, title: &str) -> Vec<String> {
    let host = side_name(source.side.unwrap_or(Side::Near));
    let own = (!title.is_empty()).then(|| format!("{host} {title}"));
    let file = format!("{host} {}", source.file);
    let both = format!("{host} {} {title}", source.file);
    own.into_iter().chain([file, both]).collect()
}

/// All rows of an import that have figures.
pub(in crate::diff) fn of_import(explained: &Explained<'_>) -> Vec<Row> {
    let bases = Direction::ALL.map(|direction| explained.material.base(direction));
    let rows = explained.material.runs().flat_map(|(source, result)| {
        let Outcome { title, measured, .. } = result;
        let named = names(source, title);
        match measured {
            Measured::Sizes(sizes) => of_sizes(sizes, &named),
            Measured::Disk(disk) => of_disk(disk, &named),
            // Counters, CPU tables and hops are not figures of a path.
            Measured::Counters(_) | Measured::Cpus(_) | Measured::Hops(_) => Vec::new(),
            Measured::Transfer(one) => {
                let is_base = bases.iter().flatten().any(|base| std::ptr::eq(*base, one.as_ref()));
                vec![of_transfer(one, is_base, named)]
            }
        }
    });
    let report = rows.filter(|row| !row.figures.is_empty());
    report.take(MOST).collect()
}

/// The rows of a table by size. Times that are halves of round trips are doubled.
fn of_sizes(sizes: &Sizes, names: &[String]) -> Vec<Row> {
    let carrier = sizes.carrier.map(Carrier::words);
    let (trip, round) = match sizes.trip {
        Trip::Whole | Trip::Half => (Some("whole"), ", whole round trips"),
        Trip::Unknown => (None, ""),
    };
    let factor = if sizes.trip == Trip::Half { 2 } else { 1 };
    let whole = |time: Option<Nanos>| time.map(|time| Nanos(time.0.saturating_mul(factor)));
    let is_echo = trip.is_some() && sizes.carrier != Some(Carrier::Rdma);
    // All programs measure the same when they send a message there and back through sockets.
    let operation = if is_echo && sizes.carrier.is_some_and(is_socket) {
        "ping-pong"
    } else {
        sizes.operation.as_str()
    };
    let title = format!("{}{round}", titled(operation, carrier));
    let row = |row: &SizeRow| {
        let rate = Table::rate(sizes, row).filter(|_| row.rate.is_some());
        let rate = rate.map(|rate| (RATE, Value::bare(rate.0 as f64)));
        let times = [
            timed(MEDIAN, whole(row.typical)),
            timed(MEAN, whole(row.mean)),
            timed(P99, whole(row.p99)),
            timed(P999, whole(row.p999)),
            timed(LEAST, whole(row.least)),
            rate,
        ];
        Row {
            kind: SIZES,
            title: title.clone(),
            size: Some(row.size),
            traits: vec![
                number("protocol", carrier),
                known("operation", operation),
                number("round trips", trip),
                known("both directions at once", yes(sizes.both && !is_echo)),
                known("options", ""),
                known(SIZE, row.size.to_string()),
            ],
            soft: Vec::new(),
            beside: Vec::new(),
            names: names.to_vec(),
            figures: times.into_iter().flatten().collect(),
            is_base: false,
        }
    };
    sizes.rows.iter().map(row).collect()
}

const fn is_socket(carrier: Carrier) -> bool {
    matches!(carrier, Carrier::Tcp | Carrier::Udp | Carrier::Sockets)
}

/// The title of a row: `ping-pong, TCP`, `RDMA write`.
fn titled(operation: &str, carrier: Option<&str>) -> String {
    match carrier {
        Some(carrier) if operation.contains(carrier) => operation.to_owned(),
        Some(carrier) if operation.is_empty() => carrier.to_owned(),
        Some(carrier) => format!("{operation}, {carrier}"),
        None if operation.is_empty() => SIZES.to_owned(),
        None => operation.to_owned(),
    }
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn of_disk(disk: &Disk, names: &[String]) -> Vec<Row> {
    let target = (!disk.target.is_empty()).then_some(&disk.target);
    let beside = vec![
        number("target", target),
        number("size of the file", disk.file),
        number("best of how many runs", disk.best_of),
    ];
    let row = |row: &DiskRow| {
        let operation = row.operation();
        let parts = [
            Some(operation.clone()),
            row.block.map(|size| size.to_string()),
            row.depth.map(|depth| format!("{depth} in flight")),
            row.threads.map(|n| counted(n, "thread")),
        ];
        let of = |figure, value: f64| (figure, Value::bare(value));
        let figures = [
            Some(of(BYTES, row.bytes_per_sec)),
            row.operations.map(|n| of(OPERATIONS, n)),
            timed(MEAN, row.mean),
            timed(MEDIAN, row.typical),
            timed(P99, row.p99),
            timed(P999, row.p999),
        ];
        Row {
            kind: DISKS,
            title: parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
            size: None,
            traits: vec![
                known("operation", operation),
                number("block", row.block),
                number("in flight", row.depth),
                number("threads", row.threads),
            ],
            soft: vec![number("cache bypassed", disk.direct.map(yes))],
            beside: beside.clone(),
            names: names.to_vec(),
            figures: figures.into_iter().flatten().collect(),
            is_base: false,
        }
    };
    disk.rows.iter().map(row).collect()
}

/// The row of a transfer. A rate that the sender counted is only compared with another one that the sender counted.
fn of_transfer(one: &Transfer, is_base: bool, names: Vec<String>) -> Row {
    let is_sent = one.counted == Counted::Sender;
    let sent = is_sent.then(|| {
        let interval = mean_ci(&one.ticks);
        let evidence = interval.map_or(Evidence::None, Evidence::Interval);
        let mid = one.goodput.0 as f64;
        (RATE, Value { mid, evidence })
    });
    let others = load_figures(one).into_iter().filter_map(|entry| {
        let figure =
            RowFigure { key: entry.figure.key, label: entry.figure.label, unit: entry.figure.unit };
        Some((figure, entry.value.ok()?))
    });
    Row {
        kind: TRANSFERS,
        title: words(one, is_sent),
        size: None,
        traits: requested(one, is_sent),
        soft: Vec::new(),
        beside: vec![number("congestion control", one.congestion.as_ref())],
        names,
        figures: sent.into_iter().chain(others).collect(),
        is_base: is_base && !is_sent,
    }
}

const fn way(direction: Direction) -> &'static str {
    match direction.sender() {
        Side::Near => "client to server",
        Side::Far => "server to client",
    }
}

/// Payload of a message in bytes; `None` for TCP, which has no messages.
fn message(one: &Transfer) -> Option<Bytes> {
    one.size.filter(|_| one.carrier != Carrier::Tcp)
}

/// A transfer in words: `TCP, 4 streams, client to server`.
fn words(one: &Transfer, is_sent: bool) -> String {
    let streams = one.streams.map(|n| counted(n, "stream"));
    let parts = [
        Some(one.carrier.words().to_owned()),
        streams,
        Some(way(one.direction).to_owned()),
        message(one).map(|size| format!("{size} each")),
        one.both.then(|| "both directions at once".to_owned()),
        is_sent.then(|| "as sent".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A number with its noun: `1 thread`, `4 threads`.
fn counted(n: u32, what: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {what}{s}")
}

/// The options that were requested for a transfer.
fn requested(one: &Transfer, is_sent: bool) -> Vec<Trait> {
    let or = |value: Option<String>, none: &str| Some(value.unwrap_or_else(|| none.to_owned()));
    let rate = one.requested.map(|rate| rate.to_string());
    let size = message(one).map(|size| size.to_string());
    let buffer = one.buffer.map(|size| size.to_string());
    vec![
        known("protocol", one.carrier.words()),
        known("direction", way(one.direction)),
        known("both directions at once", yes(one.both)),
        number(STREAMS, one.streams),
        ("rate asked for", or(rate, "not limited")),
        ("messages", or(size, "of the program")),
        ("socket buffers", or(buffer, "of the system")),
        known("counted by", if is_sent { "the sender" } else { "the receiver" }),
    ]
}
