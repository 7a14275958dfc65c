//! `ucx_perftest`: the table on the console of the client, and the lines of `-f -v`.
//!
//! `MB/s` is 2^20 bytes per second. Of each row the columns `overall` are read: `average` is that of the last second
//! only.
//= https://github.com/openucx/ucx, src/tools/perf/perftest.c, print_progress

use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Counted, Measured, SizeRow, Sizes, Transfer, Trip};
use linerate_units::Bytes;

use crate::format::{Format, Found, Section};
use crate::reading::{
    Line, MEBIBYTE, MICRO, Notes, bytes, command_of, count, nanos, number, option, quoted, rate,
    sizes,
};

/// The entry in the table of formats.
pub(crate) static UCX_PERFTEST: Format = Format {
    id: "ucx-perftest",
    label: "ucx_perftest, text",
    versions: "UCX 1.3 to 1.13",
    evidence: "run here: 1.13.1: tag_lat and tag_bw over tcp, -f -v, and a run that was cut off; both ends on \
        one host; published: OpenMPI and OpenSHMEM with UCX, https://github.com/openucx/ucx/wiki (1.3, without \
        the column `Stage`); published: a guide to GPUs and UCX in a public repository (1.9, column `typical`)",
    unknown: "The size of the messages and the test, if the command is missing: the client's table has neither.",
    starts: |at| {
        let first = at.line.trim();
        let is_frame = first.starts_with("+-----") && first.ends_with('+');
        first == CSV || is_frame && is_head(at.next.trim())
    },
    read,
    ..Format::RESULTS
};

/// Size of a message in bytes if the command sets none.
//= ucx_perftest -h: "-s <size> list of scatter-gather sizes for single message (8)"
const DEFAULT_SIZE: u64 = 8;
/// Tests whose time is that of a whole operation, and not half of a round trip.
const WHOLE: &[&str] = &["get", "fadd", "add", "swap", "cswap"];
const CSV: &str =
    "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr";

/// Whether a line is the heading that names groups of columns.
fn is_head(line: &str) -> bool {
    let has_times = line.contains("latency (usec)") || line.contains("overhead (usec)");
    has_times && line.starts_with('|') && line.contains("bandwidth (MB/s)")
}

/// The figures of one row.
#[derive(Debug, Clone, Copy)]
struct Figures {
    /// Whether the row is of one thread, so that more rows must follow.
    is_part: bool,
    samples: u64,
    typical: f64,
    mean: f64,
    /// Rate in units of 2^20 bytes per second.
    rate: f64,
    messages: f64,
}

fn figures(line: &str) -> Option<Figures> {
    let is_part = line.starts_with("[thread ");
    let rest = match line.strip_prefix("Final:") {
        Some(rest) => rest,
        None if is_part => line.split_once(']')?.1,
        None => line,
    };
    let cells: Vec<&str> = rest.split([' ', ',']).filter(|cell| !cell.is_empty()).take(9).collect();
    let [samples, typical, _, mean, _, rate, _, messages] = cells.as_slice() else {
        return None;
    };
    Some(Figures {
        is_part,
        samples: count(samples)?,
        typical: number(typical)?,
        mean: number(mean)?,
        rate: number(rate)?,
        messages: number(messages)?,
    })
}

/// What the command or the output shows about a test.
#[derive(Debug, Default)]
struct Said {
    /// Name of the test in the command, or its description in the output.
    test: String,
    size: Option<Bytes>,
    /// Whether the times are latencies; `None` if nothing shows it.
    is_latency: Option<bool>,
}

impl Said {
    fn of(command: Option<&str>) -> Result<Self, String> {
        let Some(command) = command else {
            return Ok(Self::default());
        };
        let size = option(command, &["-s"]).map_or(Some(Bytes(DEFAULT_SIZE)), bytes);
        let mut said =
            Self { size: Some(size.ok_or("its size of messages is a list")?), ..Self::default() };
        said.test(option(command, &["-t"]).unwrap_or(""));
        Ok(said)
    }

    fn test(&mut self, name: &str) {
        self.test = quoted(name);
        let is_latency = name.ends_with("_lat") || name.contains("latency") || self.is_whole();
        let is_rate = name.ends_with("_bw") || name.ends_with("_mr") || name.ends_with("bandwidth");
        self.is_latency = (is_latency || is_rate).then_some(is_latency);
    }

    /// Reads a line of the heading, or of the description that some versions print below it.
    fn line(&mut self, line: &str) {
        let line = line.trim_matches(['|', ' ']);
        if let Some(test) = line.strip_prefix("Test:") {
            self.test(test.trim());
        } else if let Some(size) = line.strip_prefix("Message size:") {
            self.size = self.size.or(bytes(size.trim()));
        } else if line.starts_with("Stage") {
            // Versions that lack this column print `latency` above every test.
            self.is_latency = self.is_latency.or(Some(true));
        } else if line.contains("overhead (usec)") {
            self.is_latency = self.is_latency.or(Some(false));
        }
    }

    /// Whether a time is that of a whole operation.
    fn is_whole(&self) -> bool {
        let mut words = self.test.split(['_', ' ']);
        words.any(|word| WHOLE.contains(&word))
    }

    fn trip(&self) -> Trip {
        match self.is_whole() {
            true => Trip::Whole,
            _ if self.is_latency == Some(true) && !self.test.is_empty() => Trip::Half,
            _ => Trip::Unknown,
        }
    }
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let section = &section.body();
    let mut notes = Notes::default();
    let mut said = Said::of(command_of(section, |program| program == "ucx_perftest"))?;
    let mut last: Option<Figures> = None;
    for Line { number, text: line, .. } in section.lines().skip(1) {
        let line = line.trim();
        if let Some(figures) = figures(line) {
            last = Some(figures);
        } else if line.starts_with('|') {
            said.line(line);
        } else if !line.starts_with('+') && !line.is_empty() {
            notes.strange(number, line);
        }
    }
    let figures = last.ok_or("it has no row: the end may be missing")?;
    if figures.is_part {
        notes.whole("the end is missing: these are the figures until then");
    }
    let size = said.size.map_or_else(|| size(&figures, &mut notes), Ok)?;
    if said.trip() == Trip::Unknown && said.is_latency != Some(false) {
        notes.whole("the table does not name the test: a time may be a round trip or its half");
    }
    notes.whole("the rate is converted: ucx_perftest's MB/s are 2^20 bytes in a second");
    let found = Found::of("ucx_perftest", section.text.len(), notes);
    Ok(found.with(&said.test, section.line, measured(&figures, size, &said)))
}

fn measured(figures: &Figures, size: Bytes, said: &Said) -> Measured {
    let rate = rate(figures.rate, MEBIBYTE);
    let messages = (figures.messages > 0.0).then_some(figures.messages);
    if let (Some(false), Some(goodput)) = (said.is_latency, rate) {
        let mut transfer =
            Transfer::new(Carrier::Messages, Direction::Forward, goodput, Counted::Sender);
        transfer.size = Some(size);
        transfer.messages = messages;
        return Measured::Transfer(Box::new(transfer));
    }
    let trip = said.trip();
    let time = |micros| nanos(micros, MICRO).filter(|time| time.0 > 0);
    let row = SizeRow {
        size,
        samples: Some(figures.samples),
        typical: time(figures.typical),
        mean: time(figures.mean),
        rate,
        messages,
        ..SizeRow::default()
    };
    Measured::Sizes(Sizes {
        carrier: Some(Carrier::Messages),
        both: trip == Trip::Half,
        ..sizes(said.test.as_str(), trip, vec![row])
    })
}

/// The size of a message that the rate over the messages proves.
fn size(figures: &Figures, notes: &mut Notes) -> Result<Bytes, String> {
    // Both figures are rounded: the rate to 0.01, the messages to whole ones.
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
