//! The result of `linerate import` as JSON: reported figures, and what they show. The schema is made from `Output`.

use linerate_explain::{Explained, Table};
use linerate_facts::finding::Finding;
use linerate_judge::verdict::{Limit, Unknown};
use linerate_plan::path::{Certainty, Direction, Side};
use linerate_record::reported::{
    Access, Carrier, Counted, Disk, DiskRow, Does, SizeRow, Source, Transfer, Trip,
};
use linerate_units::{Nanos, Rate};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::fitted::{Agreement, FitOut, TimerOut, fit_out, timer_out};
use super::super::json::{CauseId, FigureOut, exact, figures, text};
use crate::head::Head;

/// One JSON document. Keys contain the units. Unknown values are null. The client is near, the server is far.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "Result of linerate import")]
pub(crate) struct Output<'a> {
    #[serde(flatten)]
    head: Head<'static>,
    /// Title of the import. Null if it has none.
    title: Option<&'a str>,
    #[serde(flatten)]
    results: Results<'a>,
}

/// Reported figures of one path, and what they show.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Results<'a> {
    /// What limits the transfers, by the verdict.
    limits: Vec<LimitOut<'a>>,
    /// What the verdict leaves unknown.
    unknown: &'a [Unknown],
    /// What rules find in the figures, beside the verdict.
    findings: Vec<&'a Finding>,
    /// The most important figures of the results.
    figures: Vec<FigureOut>,
    /// Reported transfers over a network.
    transfers: Vec<TransferOut<'a>>,
    /// Tables of times and rates by message size.
    tables: Vec<TableOut<'a>>,
    /// Reported figures of disks and files.
    disks: Vec<DiskOut<'a>>,
    /// What is odd about the client's host, by its reported facts.
    near_findings: &'a [Finding],
    /// What is odd about the server's host, by its reported facts.
    far_findings: &'a [Finding],
    /// The files of program output that were read.
    sources: Vec<ReadOut<'a>>,
}

/// A limit of the transfers.
#[derive(Serialize, JsonSchema)]
struct LimitOut<'a> {
    #[schemars(with = "CauseId")]
    cause: &'static str,
    direction: Direction,
    certainty: Certainty,
    /// Readings that speak for the limit, with numbers.
    evidence: &'a [String],
}

/// A transfer, as the program reported it.
#[derive(Serialize, JsonSchema)]
struct TransferOut<'a> {
    /// File that reports the transfer.
    file: &'a str,
    /// Protocol: `tcp`, `udp`, `sockets` (TCP or UDP), `sctp`, `rdma` or `messages`.
    carrier: &'static str,
    direction: Direction,
    /// Whether the other direction was loaded at the same time.
    both: bool,
    /// Number of connections. Null if unknown.
    streams: Option<u32>,
    goodput_bps: u64,
    /// Whether only the sender counted the goodput.
    counted_at_sender: bool,
    /// Length of the transfer in seconds. Null if unknown.
    seconds: Option<f64>,
    /// Number of segments retransmitted. Null if unknown.
    retransmits: Option<u64>,
    /// Number of datagrams lost. Null for other protocols.
    lost: Option<u64>,
    /// Number of datagrams sent. Null for other protocols.
    datagrams: Option<u64>,
    /// Mean round trip that the sender's kernel reported. Null if unknown.
    round_trip_ns: Option<u64>,
    /// CPU time of the sending program, as a share of one CPU. Null if unknown.
    sender_cpu: Option<f64>,
    /// CPU time of the receiving program, as a share of one CPU. Null if unknown.
    receiver_cpu: Option<f64>,
    /// Rate of each stream. Empty if unknown.
    each_bps: &'a [f64],
}

/// A table of times and rates by message size.
#[derive(Serialize, JsonSchema)]
struct TableOut<'a> {
    /// File that reports the table.
    file: &'a str,
    /// The measured operation in words. Empty if unknown.
    operation: &'a str,
    /// `whole` or `half`: the times are whole round trips, or halves of round trips. `unknown` if that is not known.
    trip: &'static str,
    rows: Vec<RowOut>,
    /// The line fitted through the times. Null if they show none.
    fit: Option<FitOut>,
    /// The timer that sets the times. Null if they show none.
    timer: Option<TimerOut>,
}

/// Figures for the messages of one size.
#[derive(Serialize, JsonSchema)]
struct RowOut {
    size_bytes: u64,
    /// Number of messages. Null if unknown, like the figures below.
    samples: Option<u64>,
    least_ns: Option<u64>,
    typical_ns: Option<u64>,
    mean_ns: Option<u64>,
    deviation_ns: Option<u64>,
    p99_ns: Option<u64>,
    p999_ns: Option<u64>,
    most_ns: Option<u64>,
    rate_bps: Option<u64>,
    messages_per_sec: Option<f64>,
}

/// Reported figures of a disk or a file.
#[derive(Serialize, JsonSchema)]
struct DiskOut<'a> {
    /// File that reports the figures.
    file: &'a str,
    side: Option<Side>,
    /// The measured disk, file or folder. Empty if unknown.
    target: &'a str,
    rows: Vec<DiskRowOut>,
}

/// Figures of one kind of operation.
#[derive(Serialize, JsonSchema)]
struct DiskRowOut {
    /// Order of the operations: `sequential`, `random`, `copy` or `unknown`.
    access: &'static str,
    /// Kind of the operations: `read`, `write` or `mix`.
    does: &'static str,
    /// Payload of an operation. Null if unknown, like the figures below.
    block_bytes: Option<u64>,
    depth: Option<u32>,
    threads: Option<u32>,
    bytes_per_sec: f64,
    operations_per_sec: Option<f64>,
    mean_ns: Option<u64>,
    p99_ns: Option<u64>,
}

/// A file of program output that was read.
#[derive(Serialize, JsonSchema)]
struct ReadOut<'a> {
    /// Name of the file that was read.
    file: &'a str,
    side: Option<Side>,
    /// The program that wrote the file, and the format of its output.
    form: &'a str,
    /// Version of the program. Null if unknown.
    version: Option<&'a str>,
    notes: Vec<NoteOut<'a>>,
}

/// A note about a file that was read.
#[derive(Serialize, JsonSchema)]
struct NoteOut<'a> {
    /// Line that the note is about. Null if it is about the whole file.
    line: Option<u64>,
    what: &'a str,
}

/// The result of an import as one JSON document.
pub fn json(explained: &Explained<'_>) -> serde_json::Result<String> {
    let title = explained.material.title.as_str();
    text(&Output {
        head: Head::new(explained.headline.clone()),
        title: Some(title).filter(|title| !title.is_empty()),
        results: Results::of(explained),
    })
}

impl<'a> Results<'a> {
    pub(crate) fn of(explained: &'a Explained<'a>) -> Self {
        let material = explained.material;
        Self {
            limits: explained.verdict.limits.iter().map(limit).collect(),
            unknown: &explained.verdict.unknown,
            findings: explained.remarks.iter().map(|remark| &remark.finding).collect(),
            figures: figures(&explained.summary),
            transfers: material.transfers().map(transfer).collect(),
            tables: explained.tables.iter().map(table).collect(),
            disks: material.disks().map(disk).collect(),
            near_findings: &explained.oddities[0],
            far_findings: &explained.oddities[1],
            sources: material.sources.iter().map(source).collect(),
        }
    }
}

fn limit(limit: &Limit) -> LimitOut<'_> {
    LimitOut {
        cause: limit.cause,
        direction: limit.direction,
        certainty: limit.certainty,
        evidence: &limit.evidence,
    }
}

fn nanos(time: Option<Nanos>) -> Option<u64> {
    time.map(|time| exact(time.0))
}

fn transfer<'a>((source, one): (&'a Source, &'a Transfer)) -> TransferOut<'a> {
    TransferOut {
        file: &source.file,
        carrier: match one.carrier {
            Carrier::Tcp => "tcp",
            Carrier::Udp => "udp",
            Carrier::Sockets => "sockets",
            Carrier::Sctp => "sctp",
            Carrier::Rdma => "rdma",
            Carrier::Messages => "messages",
        },
        direction: one.direction,
        both: one.both,
        streams: one.streams,
        goodput_bps: exact(one.goodput.0),
        counted_at_sender: one.counted == Counted::Sender,
        seconds: one.seconds,
        retransmits: one.retransmits.map(exact),
        lost: one.datagrams.map(|counts| exact(counts.lost)),
        datagrams: one.datagrams.map(|counts| exact(counts.of)),
        round_trip_ns: nanos(one.round_trip.mean),
        sender_cpu: one.cpu.sender.map(|cpu| cpu.total),
        receiver_cpu: one.cpu.receiver.map(|cpu| cpu.total),
        each_bps: &one.each,
    }
}

fn table<'a>(table: &'a Table<'a>) -> TableOut<'a> {
    let agrees = Agreement::Path(table.facts.clone());
    TableOut {
        file: &table.source.file,
        operation: &table.sizes.operation,
        trip: match table.sizes.trip {
            Trip::Whole => "whole",
            Trip::Half => "half",
            Trip::Unknown => "unknown",
        },
        rows: table.sizes.rows.iter().map(row).collect(),
        fit: table.fit.as_ref().map(|fit| fit_out(fit, &agrees)),
        timer: table.timer.as_ref().map(|timer| timer_out(timer, &agrees)),
    }
}

fn row(row: &SizeRow) -> RowOut {
    RowOut {
        size_bytes: exact(row.size.0),
        samples: row.samples.map(exact),
        least_ns: nanos(row.least),
        typical_ns: nanos(row.typical),
        mean_ns: nanos(row.mean),
        deviation_ns: nanos(row.deviation),
        p99_ns: nanos(row.p99),
        p999_ns: nanos(row.p999),
        most_ns: nanos(row.most),
        rate_bps: row.rate.map(|Rate(bits)| exact(bits)),
        messages_per_sec: row.messages,
    }
}

fn disk<'a>((source, disk): (&'a Source, &'a Disk)) -> DiskOut<'a> {
    DiskOut {
        file: &source.file,
        side: source.side,
        target: &disk.target,
        rows: disk.rows.iter().map(disk_row).collect(),
    }
}

fn disk_row(row: &DiskRow) -> DiskRowOut {
    DiskRowOut {
        access: match row.access {
            Access::Sequential => "sequential",
            Access::Random => "random",
            Access::Copy => "copy",
            Access::Unknown => "unknown",
        },
        does: match row.does {
            Does::Read => "read",
            Does::Write => "write",
            Does::Mix => "mix",
        },
        block_bytes: row.block.map(|size| exact(size.0)),
        depth: row.depth,
        threads: row.threads,
        bytes_per_sec: row.bytes_per_sec,
        operations_per_sec: row.operations,
        mean_ns: nanos(row.mean),
        p99_ns: nanos(row.p99),
    }
}

fn source(source: &Source) -> ReadOut<'_> {
    let notes = source.notes.iter().map(|note| NoteOut { line: note.line, what: &note.what });
    ReadOut {
        file: &source.file,
        side: source.side,
        form: &source.label,
        version: source.tool.version.as_deref(),
        notes: notes.collect(),
    }
}
