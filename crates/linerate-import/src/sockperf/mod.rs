//! sockperf: ping-pong, under-load and throughput, as text and as the CSV of `--full-log`.
//!
//! Times are half round trips unless `--full-rtt` was given. `MBps` and `Mbps` are multiples of 2^20.
//= https://github.com/Mellanox/sockperf, src/client.cpp, client_statistics and stream_statistics

use linerate_plan::path::Direction;
use linerate_record::reported::{
    Carrier, Counted, Measured, Outcome, SizeRow, Sizes, Tool, Transfer, Trip,
};
use linerate_units::{Bytes, Nanos, Rate};

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{
    Line, MEBIBIT, MEBIBYTE, MICRO, Notes, bytes, command_of, count, drop_unsupported, nanos,
    number, option, outcome, quoted, rate, sizes,
};

/// The entry in the table of formats.
pub(crate) static SOCKPERF: Format = Format {
    id: "sockperf",
    label: "sockperf, text and the CSV of --full-log",
    versions: "3.7 to 3.10",
    evidence: "run here: 3.7: ping-pong, under-load and throughput over UDP and TCP, --full-rtt, --full-log, \
        --giga-size; published: https://github.com/Mellanox/sockperf/issues/172 (3.8)",
    unknown: "The size of the messages, if neither the command nor the output has it; what arrived in a test of throughput.",
    starts: |at| {
        let first = at.line.trim_start();
        if typed(first).is_some() {
            return is_version(at.next);
        }
        let is_log = first.starts_with("----------") && first.trim_end().bytes().all(|b| b == b'-');
        is_version(first) || is_log && at.next.starts_with(PARAMETERS)
    },
    read,
    extent: Extent::GoesOn(goes_on),
    ..Format::RESULTS
};

/// Size of a message in bytes if the command sets none.
//= sockperf(1): "Use messages of size <size> bytes (minimum default 14)"
const DEFAULT_SIZE: u64 = 14;
const VERSION: &str = "sockperf: == version #";
const PARAMETERS: &str = "test was performed using the following parameters:";

/// Whether an output continues at a line with a version: it does only if the output so far is the command alone.
fn goes_on(before: &str, _: &str) -> bool {
    let mut lines = before.lines();
    lines.next().and_then(typed).is_some() && lines.next().is_none()
}

fn is_version(line: &str) -> bool {
    line.trim_start().starts_with(VERSION)
}

/// Names of the modes of the client.
const MODES: &[&str] =
    &["ping-pong", "pp", "under-load", "ul", "throughput", "tp", "playback", "pb"];

/// The command in a line that has no prompt; there may be marks of Markdown around it.
fn typed(line: &str) -> Option<&str> {
    let line = line.trim().trim_matches(['_', '*', '`']);
    let mode = line.strip_prefix("sockperf ")?.split_whitespace().next()?;
    MODES.contains(&mode).then_some(line)
}

/// The statistics for one server.
#[derive(Debug, Default)]
struct Block {
    line: u64,
    title: String,
    row: SizeRow,
    is_whole: bool,
}

/// The figures of the lines that were read.
#[derive(Debug, Default)]
struct Reading {
    version: Option<String>,
    size: Option<Bytes>,
    carrier: Option<Carrier>,
    seconds: Option<f64>,
    messages: Option<f64>,
    /// Numbers of messages sent and of answers received.
    messages_of_run: (u64, u64),
    rate: Option<Rate>,
    blocks: Vec<Block>,
    is_server: bool,
    has_command: bool,
    notes: Notes,
}

/// Starts of lines, after `sockperf: `, that have nothing about the results.
const KNOWN: &[&str] = &[
    "Warmup stage",
    "Starting test",
    "Test end",
    "Summary: ",
    "---> percentile",
    "[SERVER]",
    "[tid ",
    "using ",
    "Preliminary: ",
];

/// Largest number of servers in one output.
const MOST: usize = 1_000;

fn read(section: &Section<'_>) -> Result<Found, String> {
    let section = &section.body();
    let mut reading = Reading::default();
    let mut is_log = false;
    let typed = typed(section.first());
    for Line { number, text: line, .. } in section.lines().skip(usize::from(typed.is_some())) {
        is_log |= line.starts_with("packet, txTime");
        if !is_log {
            // The line may have marks of Markdown.
            reading.line(number, line.replace("**", "").trim());
        }
    }
    let command = typed.or_else(|| command_of(section, |program| program == "sockperf"));
    let named = command.and_then(|command| option(command, &["-m", "--msg-size"]));
    reading.size = reading.size.or(named.and_then(bytes));
    reading.has_command = command.is_some();
    if is_log {
        reading
            .notes
            .whole("the single messages of the log were passed over: its summary was read");
    }
    let results = reading.results(section)?;
    let tool = Tool { version: reading.version, ..Tool::named("sockperf") };
    Ok(Found { tool, results, ..Found::of("", section.text.len(), reading.notes) })
}

impl Reading {
    fn line(&mut self, number: u64, line: &str) {
        if let Some(version) = line.strip_prefix(VERSION) {
            let version = version.split(' ').next().unwrap_or("");
            self.version = Some(quoted(version.trim_end_matches("-no.git")));
        } else if line.starts_with(PARAMETERS) || line.contains("NOTE: test was performed") {
            let size = option(line, &["--msg-size"]).or_else(|| after(line, "msg-size="));
            self.size = size.and_then(bytes);
        } else if line.starts_with("[ ") && line.contains("PORT =") {
            self.carrier = carrier(line);
        } else if let Some(line) = line.strip_prefix("sockperf: ") {
            self.said(number, line.trim());
        } else if line.starts_with("sockperf[") || line.starts_with("----") || line.is_empty() {
            self.is_server |= line.contains("[SERVER]");
        } else {
            self.notes.strange(number, line);
        }
    }

    fn said(&mut self, at: u64, line: &str) {
        self.is_server |= line.starts_with("[SERVER]");
        if line.starts_with("[Total Run]") {
            let count = |mark| after(line, mark).and_then(count).unwrap_or(0);
            self.messages_of_run = (count("SentMessages="), count("ReceivedMessages="));
        } else if line.contains("====> avg-") {
            self.mean(line);
        } else if line.contains("Printing statistics") && self.blocks.len() < MOST {
            self.blocks.push(Block {
                line: at,
                title: after(line, "Server No: ")
                    .map_or_else(String::new, |no| format!("server {}", quoted(no))),
                ..Block::default()
            });
        } else if line.starts_with("Total of ") {
            self.seconds = after(line, " sent in ").and_then(number);
        } else if line.starts_with("Summary: Message Rate") {
            self.messages = after(line, "is ").and_then(number);
        } else if line.starts_with("Summary: BandWidth") {
            self.bandwidth(line);
        } else if line.starts_with("# dropped messages") {
            self.dropped(at, line);
        } else if line.starts_with("No valid observations") || line.starts_with("ERROR") {
            self.notes.at(at, format!("sockperf says: {}", quoted(line)));
        } else if !self.observation(line) && !KNOWN.iter().any(|known| line.starts_with(known)) {
            self.notes.strange(at, line);
        }
    }

    fn mean(&mut self, line: &str) {
        let Some(block) = self.blocks.last_mut() else {
            return;
        };
        block.is_whole = line.contains("avg-rtt");
        // The arrow `====>` in the line has equals signs too, so the first one after `avg-` is used.
        let mean = line.split("avg-").nth(1).and_then(|rest| after(rest, "="));
        block.row.mean = mean.and_then(micros);
        block.row.deviation = after(line, "std-dev=").and_then(micros);
    }

    /// Reads a line of the distribution; `false` if the line is not one.
    fn observation(&mut self, line: &str) -> bool {
        let Some(block) = self.blocks.last_mut() else {
            return false;
        };
        if line.starts_with("[Valid Duration]") {
            return true;
        }
        if line.starts_with("Total ") && line.contains(" observations") {
            block.row.samples = line.split(' ').nth(1).and_then(count);
            return true;
        }
        let Some((name, value)) = line.strip_prefix("---> ").and_then(|line| line.split_once('='))
        else {
            return false;
        };
        let time = micros(value.trim());
        match name.trim().trim_matches(['<', '>']) {
            "MAX> observation" | "MAX observation" => block.row.most = time,
            "MIN> observation" | "MIN observation" => block.row.least = time,
            "percentile 50.000" => block.row.typical = time,
            "percentile 99.000" => block.row.p99 = time,
            "percentile 99.900" => block.row.p999 = time,
            _ => {}
        }
        true
    }

    fn bandwidth(&mut self, line: &str) {
        const GIGA: f64 = 1024.0;
        let words: Vec<&str> = line.split([' ', '(', ')']).filter(|w| !w.is_empty()).collect();
        let unit = words.last().copied().unwrap_or("");
        let value = words.iter().rev().nth(1).and_then(|value| number(value));
        let unit = match unit {
            "Mbps" => MEBIBIT,
            "Gbps" => MEBIBIT * GIGA,
            "MBps" => MEBIBYTE,
            "GBps" => MEBIBYTE * GIGA,
            _ => return,
        };
        self.rate = value.and_then(|value| rate(value, unit));
        self.notes.whole("the rate is converted: sockperf's Mbps and MBps are units of 2^20");
    }

    fn dropped(&mut self, number: u64, line: &str) {
        let counts = line.split(['=', ';']).filter_map(|word| count(word.trim()));
        if counts.sum::<u64>() > 0 {
            self.notes
                .at(number, format!("messages went wrong: {}", line.trim_start_matches("# ")));
        }
    }
}

/// The text after a mark, up to the next blank, comma, semicolon or bracket.
fn after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(mark)?;
    Some(first_word(rest))
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    // A comma within a number does not end it: `8,634` is not 8.
    let is_end = |(at, c): &(usize, char)| {
        let is_inner = || text[at + 1..].starts_with(|next: char| next.is_ascii_digit());
        matches!(c, ' ' | ')' | ';') || *c == ',' && !is_inner()
    };
    let end = text.char_indices().find(is_end);
    end.map_or(text, |(end, _)| &text[..end])
}

fn micros(text: &str) -> Option<Nanos> {
    nanos(number(text)?, MICRO)
}

fn carrier(line: &str) -> Option<Carrier> {
    match line.rsplit("# ").next()?.trim() {
        "TCP" => Some(Carrier::Tcp),
        "UDP" => Some(Carrier::Udp),
        _ => None,
    }
}

impl Reading {
    fn results(&mut self, section: &Section<'_>) -> Result<Vec<Outcome>, String> {
        if let Some(rate) = self.rate {
            return Ok(vec![self.transfer(section, rate)?]);
        }
        let blocks = std::mem::take(&mut self.blocks);
        let measured: Vec<Block> =
            blocks.into_iter().filter(|block| block.row.mean.is_some()).collect();
        if measured.is_empty() {
            return Err(if self.is_server {
                "it is the output of the server, which measures nothing".into()
            } else {
                "it has no result: the end may be missing, or too few messages were answered".into()
            });
        }
        let size = self.size();
        Ok(measured.iter().map(|block| self.sizes(block, size)).collect())
    }

    /// The size of the messages. Clients print it only in the log.
    fn size(&mut self) -> Bytes {
        if self.size.is_none() && !self.has_command {
            self.notes.whole(format!(
                "the output does not say how large its messages are: {DEFAULT_SIZE} bytes are sockperf's default"
            ));
        }
        self.size.unwrap_or(Bytes(DEFAULT_SIZE))
    }

    fn sizes(&mut self, block: &Block, size: Bytes) -> Outcome {
        let mut row = SizeRow { size, ..block.row };
        if row.least.is_none() {
            self.notes.whole("the end is missing: the distribution is not complete");
        }
        if drop_unsupported(&mut row) {
            let samples = row.samples.unwrap_or(0);
            self.notes.whole(format!(
                "percentiles that {samples} observations do not support are left out"
            ));
        }
        let trip = if block.is_whole { Trip::Whole } else { Trip::Half };
        let table = sizes(self.operation(), trip, vec![row]);
        let measured = Measured::Sizes(Sizes { carrier: self.carrier, ..table });
        outcome(&block.title, block.line, measured)
    }

    /// The mode of the client. In the mode under-load, most messages request no answer.
    fn operation(&self) -> &'static str {
        let (sent, received) = self.messages_of_run;
        if received.saturating_mul(2) < sent { "under-load" } else { "ping-pong" }
    }

    fn transfer(&mut self, section: &Section<'_>, rate: Rate) -> Result<Outcome, String> {
        let carrier = self.carrier.ok_or("it does not say whether TCP or UDP was used")?;
        // If the output has no size, the rate over the messages gives it.
        let size = self.messages.filter(|messages| *messages > 0.0);
        let size = size.map(|messages| Bytes((rate.0 as f64 / 8.0 / messages).round() as u64));
        let mut transfer = Transfer::new(carrier, Direction::Forward, rate, Counted::Sender);
        transfer.seconds = self.seconds;
        transfer.messages = self.messages;
        transfer.size = self.size.or(size);
        self.notes.whole("sockperf counts what was sent, and not what arrived");
        Ok(outcome("throughput", section.line, Measured::Transfer(Box::new(transfer))))
    }
}

#[cfg(test)]
mod tests;
