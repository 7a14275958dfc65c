//! `ucx_perftest`: the table on the console of the client, and the lines of `-f -v`.
//!
//! `MB/s` is 2^20 bytes. Of each row the columns `overall` count: `average` is that of the last second.
//= https://github.com/openucx/ucx, src/tools/perf/perftest.c, print_progress

use linerate_core::path::Direction;
use linerate_core::reported::{
    Carrier, Counted, Measured, Outcome, SizeRow, Sizes, Tool, Transfer, Trip,
};
use linerate_core::units::Bytes;

use crate::format::{Evidence, Format, Found, Holds, Section};
use crate::scaled::{
    MEBIBYTE, MICRO, Notes, body, bytes, command_of, count, lines, nanos, number, option, rate,
};

/// The row of the table of formats.
pub(crate) static UCX_PERFTEST: Format = Format {
    id: "ucx-perftest",
    label: "ucx_perftest, text",
    holds: Holds::Results,
    versions: "UCX 1.13",
    evidence: &[Evidence::RunHere(
        "1.13.1: tag_lat and tag_bw over tcp, -f -v, and a run that was cut off; both ends on one host",
    )],
    unknown: "The size of the messages and the test, if the command is missing: the client's table has neither.",
    starts,
    read,
};

/// Size of a message if the command sets none.
//= ucx_perftest -h: "-s <size> list of scatter-gather sizes for single message (8)"
const DEFAULT_SIZE: u64 = 8;
/// Tests of which the time is that of one operation, and no half of a round trip.
const WHOLE: &[&str] = &["get", "fadd", "add", "swap", "cswap"];
const CSV: &str =
    "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr";

fn starts(text: &str) -> bool {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or("").trim_end();
    if first == CSV {
        return true;
    }
    let is_frame = first.starts_with("+-----") && first.ends_with('+');
    is_frame && lines.next().is_some_and(|line| kind(line).is_some())
}

/// Whether the times of a table are latencies.
fn kind(line: &str) -> Option<bool> {
    let is_table =
        line.starts_with('|') && line.contains("bandwidth (MB/s)") && line.contains("(msg/s)");
    match is_table {
        true if line.contains("latency (usec)") => Some(true),
        true if line.contains("overhead (usec)") => Some(false),
        _ => None,
    }
}

/// The figures of one row.
#[derive(Debug, Clone, Copy)]
struct Figures {
    is_final: bool,
    samples: u64,
    typical: f64,
    mean: f64,
    /// Units of 2^20 bytes in a second.
    rate: f64,
    messages: f64,
}

fn figures(line: &str) -> Option<Figures> {
    let is_final = line.starts_with("Final:");
    let rest = match line.strip_prefix("Final:") {
        Some(rest) => rest,
        None if line.starts_with("[thread ") => line.split_once(']')?.1,
        None => line,
    };
    let cells: Vec<&str> = rest
        .split([' ', ','])
        .filter(|cell| !cell.is_empty())
        .take(9)
        .collect();
    let [samples, typical, _, mean, _, rate, _, messages] = cells.as_slice() else {
        return None;
    };
    Some(Figures {
        is_final,
        samples: count(samples)?,
        typical: number(typical)?,
        mean: number(mean)?,
        rate: number(rate)?,
        messages: number(messages)?,
    })
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let body = body(section);
    let mut notes = Notes::default();
    let command = command_of(section, |program| program == "ucx_perftest");
    let is_csv = body.starts_with(CSV);
    let is_latency = body.lines().nth(1).and_then(kind);
    let mut last: Option<Figures> = None;
    for (number, line) in lines(section, body).skip(1) {
        let is_frame = line.starts_with(['+', '|']) || line.trim().is_empty();
        match figures(line.trim()) {
            Some(figures) => last = Some(figures),
            None if is_frame => {}
            None => notes.strange(number, line),
        }
    }
    let figures = last.ok_or("it has no row: the end may be missing")?;
    if !figures.is_final && !is_csv {
        notes.whole("the end is missing: these are the figures until then");
    }
    let size = size(&figures, command, &mut notes)?;
    let outcome = Outcome {
        title: test(command).unwrap_or("").to_owned(),
        line: section.line,
        measured: measured(&figures, size, is_latency, command),
    };
    notes.whole("the rate is converted: ucx_perftest's MB/s are 2^20 bytes in a second");
    Ok(Found {
        tool: Tool::named("ucx_perftest"),
        results: vec![outcome],
        notes: notes.0,
        used: Some(body.len()),
        ..Found::default()
    })
}

/// The test that the command names.
fn test(command: Option<&str>) -> Option<&str> {
    option(command?, &["-t"])
}

fn measured(
    figures: &Figures,
    size: Bytes,
    is_latency: Option<bool>,
    command: Option<&str>,
) -> Measured {
    let rate = rate(figures.rate, MEBIBYTE);
    let messages = (figures.messages > 0.0).then_some(figures.messages);
    let (true, Some(goodput)) = (is_latency == Some(false), rate) else {
        let trip = match test(command) {
            Some(test) if WHOLE.iter().any(|whole| test.ends_with(whole)) => Trip::Whole,
            Some(test) if test.ends_with("_lat") => Trip::Half,
            _ => Trip::Unknown,
        };
        return Measured::Sizes(Sizes {
            carrier: Some(Carrier::Messages),
            operation: test(command).unwrap_or("").to_owned(),
            trip,
            both: trip == Trip::Half,
            rows: vec![SizeRow {
                size,
                samples: Some(figures.samples),
                typical: nanos(figures.typical, MICRO),
                mean: nanos(figures.mean, MICRO),
                rate,
                messages,
                ..SizeRow::default()
            }],
        });
    };
    let mut transfer = Transfer::new(
        Carrier::Messages,
        Direction::Forward,
        goodput,
        Counted::Sender,
    );
    transfer.size = Some(size);
    transfer.messages = messages;
    Measured::Transfer(Box::new(transfer))
}

/// The size of a message: that of the command, else the one that rate and messages prove.
fn size(figures: &Figures, command: Option<&str>, notes: &mut Notes) -> Result<Bytes, String> {
    if let Some(command) = command {
        let named = option(command, &["-s"]).map_or(Some(Bytes(DEFAULT_SIZE)), bytes);
        return named.ok_or_else(|| "its size of messages is a list".into());
    }
    // Both figures are rounded: the rate to 0.01, the messages to 1.
    let bytes = |rate: f64, messages: f64| rate * 1_048_576.0 / messages;
    let least = bytes(figures.rate - 0.005, figures.messages + 0.5);
    let most = bytes(figures.rate + 0.005, (figures.messages - 0.5).max(0.1));
    let mut fitting = (0..=40).map(|power| 1_u64 << power).filter(|size| {
        let size = *size as f64;
        least <= size && size <= most
    });
    match (fitting.next(), fitting.next()) {
        (Some(size), None) => {
            notes.whole(format!(
                "the table has no size of messages: rate and messages give {size} bytes"
            ));
            Ok(Bytes(size))
        }
        _ => Err("it has no size of messages: give the command as well".into()),
    }
}

#[cfg(test)]
mod tests;
