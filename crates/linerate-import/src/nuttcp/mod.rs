//! nuttcp, which prints one line for each test.

#[cfg(test)]
mod tests;

use linerate_plan::path::{ByRole, Direction};
use linerate_record::reported::{Carrier, Counted, Cpu, CpuOf, Lost, Outcome, Tool, Transfer};
use linerate_units::{Bytes, Rate};

use crate::format::{Extent, Format, Found, Section};
use crate::reading;
use crate::reading::{Notes, flag};

/// The format of nuttcp.
pub(crate) static FORMAT: Format = Format {
    id: "nuttcp",
    label: "nuttcp",
    versions: "6 to 8: the line of a test, lines of intervals (-i), the two blocks of -v, and -fparse",
    evidence: "run here: 6.1.2, client, TCP and UDP, on loopback",
    unknown: "The direction, unless the command or -v is there; the number of streams, the windows. Its round-trip \
              time is that of the connection's start, and is left out.",
    starts: |at| read_line(at.line).is_some() || is_block(at.line),
    read,
    extent: Extent::Parts,
    ..Format::RESULTS
};

/// The figures in a line of a test or of an interval.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Line {
    seconds: f64,
    /// Rate in bits per second.
    rate: f64,
    /// CPU time as a share of one CPU, of sender and receiver; only the line of a test has them.
    cpu: Option<[f64; 2]>,
    retransmits: Option<u64>,
    /// Number of lost datagrams, and of all datagrams.
    datagrams: Option<(u64, u64)>,
    /// Whether the line has CPU time or round-trip time, as only that of a whole test has.
    whole: bool,
}

fn is_block(line: &str) -> bool {
    ["nuttcp-t: v", "nuttcp-r: v"].iter().any(|start| line.starts_with(start))
        && line.ends_with(": socket")
}

/// Reads ` 5199.1468 MB /   1.00 sec = 43561.6792 Mbps 27 %TX 71 %RX 0 retrans 0.20 msRTT`, or a line of `-fparse`.
fn read_line(line: &str) -> Option<Line> {
    if line.starts_with("megabytes=") {
        return parsable(line);
    }
    let (megabytes, rest) = line.trim().split_once(" MB / ")?;
    let (seconds, rest) = rest.split_once(" sec = ")?;
    let (rate, rest) = rest.split_once(" Mbps")?;
    positive(megabytes)?;
    let mut found =
        Line { seconds: positive(seconds)?, rate: positive(rate)? * 1e6, ..Line::default() };
    let words: Vec<&str> = rest.split_whitespace().collect();
    let before = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at.checked_sub(1)?).copied()
    };
    let share = |name: &str| Some(positive(before(name)?)? / 100.0);
    found.cpu = share("%TX").zip(share("%RX")).map(|(sent, received)| [sent, received]);
    found.retransmits = before("retrans").and_then(|n| n.parse().ok());
    let slash = words.iter().position(|word| *word == "/");
    found.datagrams = slash.and_then(|at| {
        let lost = words.get(at.checked_sub(1)?)?;
        Some((lost.parse().ok()?, words.get(at + 1)?.parse().ok()?))
    });
    found.whole = found.cpu.is_some();
    Some(found)
}

/// Reads `megabytes=2.3438 real_seconds=1.01 rate_Mbps=19.4273 tx_cpu=46 rx_cpu=0 drop=0 pkt=300 data_loss=0.00000`.
fn parsable(line: &str) -> Option<Line> {
    let value = |name: &str| {
        let mut pairs = line.split_whitespace().filter_map(|word| word.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let share = |name: &str| Some(positive(value(name)?)? / 100.0);
    let count = |name: &str| value(name)?.parse::<u64>().ok();
    let cpu = share("tx_cpu").zip(share("rx_cpu"));
    Some(Line {
        seconds: positive(value("real_seconds")?)?,
        rate: positive(value("rate_Mbps")?)? * 1e6,
        cpu: cpu.map(|(sent, received)| [sent, received]),
        retransmits: count("retrans"),
        datagrams: count("drop").zip(count("pkt")),
        whole: cpu.is_some(),
    })
}

/// Reads a number that is not negative.
fn positive(text: &str) -> Option<f64> {
    let value: f64 = text.trim().parse().ok()?;
    (value.is_finite() && (0.0..1e15).contains(&value)).then_some(value)
}

/// The results in the lines of an output, while they are read.
#[derive(Debug, Default)]
struct Output {
    results: Vec<Outcome>,
    notes: Notes,
    intervals: Vec<Line>,
    /// Number of the line of the first interval, or of the test.
    from: Option<u64>,
    version: Option<String>,
    blocks: Vec<Block>,
    /// Whether the direction is assumed, as the output does not show it.
    assumed: bool,
    used: usize,
}

/// The lines that one end prints with `-v`.
#[derive(Debug, Default)]
struct Block {
    transmits: bool,
    line: u64,
    udp: bool,
    found: Line,
    size: Option<u64>,
    streams: Option<u32>,
    segment: Option<u32>,
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut output = Output::default();
    for reading::Line { number: place, text, end } in section.lines() {
        let line = text.trim_end();
        if let Some(found) = read_line(line) {
            output.line(found, place, section.command);
        } else if line.starts_with("nuttcp-t: ") || line.starts_with("nuttcp-r: ") {
            output.block(line, place);
        } else if line.trim().is_empty() {
            continue;
        } else {
            break;
        }
        output.used = end;
    }
    output.end_blocks();
    output.end_intervals(section.command);
    if output.assumed {
        let what = "nuttcp does not print the direction: it was read as that from the client to the server";
        output.notes.at(section.line, what);
    }
    let found = Found {
        tool: Tool { version: output.version, ..Tool::named("nuttcp") },
        results: output.results,
        ..Found::of("nuttcp", output.used, output.notes)
    };
    found.complete("it has no line with a rate")
}

impl Output {
    fn line(&mut self, found: Line, place: u64, command: Option<&str>) {
        let from = *self.from.get_or_insert(place);
        if !found.whole {
            self.intervals.push(found);
            return;
        }
        let intervals = std::mem::take(&mut self.intervals);
        self.push(found, &intervals, from, command);
        self.from = None;
    }

    /// Ends intervals that lack the line of their test: version 5 prints it without CPU time, or the output is
    /// truncated.
    fn end_intervals(&mut self, command: Option<&str>) {
        let intervals = std::mem::take(&mut self.intervals);
        let Some(from) = self.from.take() else { return };
        if let [only] = intervals[..] {
            self.push(only, &[], from, command);
            return;
        }
        let seconds: f64 = intervals.iter().map(|line| line.seconds).sum();
        let bits: f64 = intervals.iter().map(|line| line.rate * line.seconds).sum();
        if seconds <= 0.0 {
            return;
        }
        let mean = Line { seconds, rate: bits / seconds, ..Line::default() };
        let what = "the line of the whole test is missing: the rate is that of the intervals";
        self.notes.at(from, what);
        self.push(mean, &intervals, from, command);
    }

    fn push(&mut self, found: Line, intervals: &[Line], from: u64, command: Option<&str>) {
        let has = |names: &[&str]| command.is_some_and(|command| flag(command, names));
        let direction = if has(&["-r", "-F"]) { Direction::Reverse } else { Direction::Forward };
        self.assumed |= command.is_none();
        let udp = found.datagrams.is_some() || has(&["-u"]);
        let mut transfer = transfer(found, direction, udp);
        let last = intervals.last().map_or(0.0, |line| line.seconds);
        let first = intervals.first().map_or(0.0, |line| line.seconds);
        let equal = if last < 0.9 * first { &intervals[..intervals.len() - 1] } else { intervals };
        let seconds: f64 = equal.iter().map(|line| line.seconds).sum();
        if seconds > 0.0 {
            transfer.ticks = equal.iter().map(|line| line.rate).collect();
            transfer.tick = Some((seconds / equal.len() as f64 * 1e3).round() / 1e3);
        }
        self.results.push(reading::transfer(from, transfer));
    }

    /// Reads a line of `-v`.
    fn block(&mut self, line: &str, place: u64) {
        let (name, rest) = line.split_at(10);
        let transmits = name == "nuttcp-t: ";
        if let Some(version) = rest.strip_suffix(": socket") {
            self.version = Some(version.trim_start_matches('v').to_owned());
            if self.blocks.len() == 2 {
                self.end_blocks();
            }
            self.blocks.push(Block { transmits, line: place, ..Block::default() });
        }
        if let Some(block) = self.blocks.last_mut() {
            block.line(rest);
        }
    }

    /// Ends the blocks of a test. The first block is the client's; the receiver's has the goodput.
    fn end_blocks(&mut self) {
        let blocks = std::mem::take(&mut self.blocks);
        let Some(first) = blocks.first() else { return };
        let direction = if first.transmits { Direction::Forward } else { Direction::Reverse };
        let receiver = blocks.iter().find(|block| !block.transmits && block.found.rate > 0.0);
        let sender = blocks.iter().find(|block| block.transmits);
        let Some(goodput) = receiver.or(sender).filter(|block| block.found.rate > 0.0) else {
            return;
        };
        let mut transfer = transfer(goodput.found, direction, first.udp);
        if receiver.is_none() {
            transfer.counted = Counted::Sender;
        }
        let cpu = |block: Option<&Block>| block.and_then(|block| Some(cpu(block.found.cpu?[0])));
        transfer.cpu = [cpu(sender), cpu(receiver)].into();
        transfer.retransmits = sender.and_then(|block| block.found.retransmits);
        transfer.size = first.size.map(Bytes);
        transfer.streams = first.streams;
        transfer.segment = first.segment;
        self.results.push(reading::transfer(first.line, transfer));
    }
}

impl Block {
    fn line(&mut self, rest: &str) {
        if let Some((size, settings)) =
            rest.strip_prefix("buflen=").and_then(|rest| rest.split_once(','))
        {
            self.size = size.parse().ok();
            self.udp = settings.contains(" udp");
            let streams = settings.split_once("nstream=").map(|(_, n)| n);
            self.streams = streams.and_then(|n| n.split(',').next()?.parse().ok());
        } else if let Some((_, mss)) = rest.split_once(" with mss=") {
            self.segment = mss.split(',').next().and_then(|n| n.parse().ok());
        } else if let Some((seconds, rate)) = rest.split_once(" real seconds = ") {
            let seconds = seconds.split_once(" MB in ").and_then(|(_, seconds)| positive(seconds));
            let rate = rate
                .split_once("KB/sec = ")
                .and_then(|(_, rate)| positive(rate.split_once(" Mbps")?.0));
            (self.found.seconds, self.found.rate) =
                (seconds.unwrap_or(0.0), rate.unwrap_or(0.0) * 1e6);
        } else if let Some(retransmits) = rest.strip_prefix("retrans = ") {
            self.found.retransmits = retransmits.trim().parse().ok();
        } else if let Some((_, share)) = rest.split_once("real ") {
            let share = share.split_once('%').and_then(|(share, _)| positive(share));
            self.found.cpu = share.map(|percent| [percent / 100.0; 2]);
        }
    }
}

fn cpu(total: f64) -> Cpu {
    Cpu { total, system: None, of: CpuOf::Program }
}

fn transfer(found: Line, direction: Direction, udp: bool) -> Transfer {
    let carrier = if udp { Carrier::Udp } else { Carrier::Tcp };
    let mut transfer =
        Transfer::new(carrier, direction, Rate(found.rate.round() as u64), Counted::Receiver);
    transfer.seconds = Some(found.seconds).filter(|seconds| *seconds > 0.0);
    transfer.retransmits = found.retransmits;
    transfer.cpu =
        found.cpu.map_or(ByRole::default(), |shares| shares.map(|share| Some(cpu(share))).into());
    transfer.datagrams = found.datagrams.map(|(lost, of)| Lost { lost, of, jitter: None });
    transfer
}
