//! Reads the tables that perftest prints.

use linerate_facts::Inventory;
use linerate_facts::infiniband::{IbDevice, Layer};
use linerate_record::reported::{Setup, SizeRow};

use super::known::is_known;
use super::{FEWEST, Test, are_no_cycles};
use crate::columns::{Field, Stat};
use crate::facts::is_software;
use crate::format::{Extent, Format, Found, Section, Start};
use crate::reading::{
    MEBIBYTE, MICRO, Notes, SECOND, count, drop_unsupported, flag, nanos, number, quoted,
};

/// The entry in the table of formats.
pub(crate) static TABLE: Format = Format {
    id: "perftest",
    label: "perftest (ib_write_lat, ib_send_bw, ...), text",
    versions: "2.x to 25.x: latency in three columns (older), with mean and percentiles, or of a duration (-D); rates in MB/sec, MiB/sec or Gb/sec",
    evidence: "published: ib_read_lat, ib_send_lat and ib_write_lat of ConnectX-3 adapters, as their owner \
        published them; published: https://github.com/linux-rdma/perftest/issues/273 (Gb/sec, -D); published: \
        notes on NFS over RDMA in a public repository (client and server of ib_write_bw, MiB/sec); published: \
        a log of ib_send_lat -D in a public repository (mean alone); published: \
        tests/data/ib_loopback_all_sizes.log of https://github.com/microsoft/superbenchmark (both ends in one \
        log); published: AWS Elastic Fabric Adapter (EFA) Performance Testing Guide (percentiles, MiB/sec); \
        run here: 4.5+0.17 over Soft-RoCE: latency of reads, writes and sends, with events and with the list \
        of single times (-U), and a run whose clock failed; rates of all sizes, cut off, of four queue pairs \
        and both ways",
    unknown: "The longest time, unless single times are listed (-H, -U): versions with percentiles leave the two longest times out of everything but t_max, which is the second longest (seen with 4.5+0.17: findings/perftest-t-max-is-second.sh).",
    starts,
    read,
    extent: Extent::GoesOn(goes_on),
    first_words: &[" BW Test", " Latency Test"],
    ..Format::RESULTS
};

/// Number of lines after a title within which the settings or the heading of the table must follow.
const HEAD_LINES: usize = 40;

fn starts(Start { text, line, next }: Start<'_>) -> bool {
    if is_rule(line) {
        return Test::named(next.trim()).is_some() || is_header(next);
    }
    if Test::named(line.trim()).is_some() {
        // A heading in prose looks like a title, but no table follows.
        return text.lines().skip(1).take(HEAD_LINES).any(is_header);
    }
    is_header(line) || bare(line).is_some()
}

/// Whether an output continues at a title, at the heading of a table, or at a row.
fn goes_on(before: &str, rest: &str) -> bool {
    let mut first = before.lines();
    let is_first = first.next().is_some_and(is_rule) && first.next().is_none();
    let has_title = || before.lines().take(2).any(|line| Test::named(line.trim()).is_some());
    let mut lines = rest.lines();
    let next = lines.next().unwrap_or("");
    // The heading of a table may follow a line of dashes.
    let next = if is_rule(next) { lines.next().unwrap_or("") } else { next };
    is_first || is_header(next) && has_title() || bare(next).is_some()
}

/// Number of decimals that perftest prints for the rate of messages.
//= https://github.com/linux-rdma/perftest, src/perftest_parameters.h, REPORT_FMT
const DECIMALS: usize = 6;
/// Largest relative difference of two figures of a row that agree but for rounding.
const ROUNDED: f64 = 0.01;

/// The columns of a row of rates whose heading is missing: size and messages prove the unit of the rate.
fn bare(line: &str) -> Option<[Field; 5]> {
    // This runs for each line of every input, so the cheapest tests come first.
    if !line.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let cells: Vec<&str> = line.split_whitespace().take(6).collect();
    let [size, iterations, peak, average, messages] = cells.as_slice() else {
        return None;
    };
    let (_, decimals) = messages.split_once('.')?;
    if decimals.len() != DECIMALS {
        return None;
    }
    let (size, _, _) = (count(size)?, count(iterations)?, number(peak)?);
    let bits = number(messages)? * 1e6 * size as f64 * 8.0;
    let average = number(average)?;
    let is_unit = |unit: &f64| bits > 0.0 && (average * unit / bits - 1.0).abs() < ROUNDED;
    let unit = [SECOND, MEBIBYTE].into_iter().find(is_unit)?;
    Some([Field::Size, Field::Samples, Field::Passed, Field::Rate(unit), Field::Messages(1e6)])
}

/// Whether a line is the heading of a table. The characters `#` may have been lost when it was copied.
fn is_header(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches('#');
    let rest = line.strip_prefix("bytes");
    let rest = rest.map(|rest| rest.trim_start().trim_start_matches('#'));
    rest.is_some_and(|rest| {
        rest.starts_with("iterations") && (rest.contains("[usec]") || rest.contains("BW "))
    })
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 20 && line.bytes().all(|b| b == b'-')
}

/// Starts of the names of columns, with what their cells are. The unit of a rate follows the name.
const COLUMNS: &[(&str, Field)] = &[
    ("bytes", Field::Size),
    ("iterations", Field::Samples),
    ("#sl", Field::Passed),
    ("t_min[usec]", Field::Micros(Stat::Least)),
    ("t_max[usec]", Field::Micros(Stat::Most)),
    ("t_typical[usec]", Field::Micros(Stat::Typical)),
    ("t_avg[usec]", Field::Micros(Stat::Mean)),
    ("t_stdev[usec]", Field::Micros(Stat::Deviation)),
    ("99% percentile[usec]", Field::Micros(Stat::P99)),
    ("99.9% percentile[usec]", Field::Micros(Stat::P999)),
    ("tps average", Field::Passed),
    ("BW peak[", Field::Passed),
    ("BW average[MB/sec]", Field::Rate(MEBIBYTE)),
    ("BW average[MiB/sec]", Field::Rate(MEBIBYTE)),
    ("BW average[Gb/sec]", Field::Rate(SECOND)),
    ("BW Port1[", Field::Passed),
    ("BW Port2[", Field::Passed),
    ("MsgRate[Mpps]", Field::Messages(1e6)),
    ("MsgRate Port1[", Field::Passed),
    ("MsgRate Port2[", Field::Passed),
    ("CPU_Util[", Field::Passed),
];

/// The columns in a heading, in order.
fn columns(header: &str) -> Vec<Field> {
    let mut found: Vec<(usize, Field)> = COLUMNS
        .iter()
        .filter_map(|(name, column)| header.find(name).map(|at| (at, *column)))
        .collect();
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, column)| column).collect()
}

/// The state of one output while its lines are read.
struct Reading<'a> {
    test: Test<'a>,
    columns: Vec<Field>,
    rows: Vec<SizeRow>,
    /// Times of single messages, in the unit of the table.
    singles: Vec<f64>,
    /// The longest of the listed times that precede the next row.
    longest: Option<f64>,
    setup: Setup,
    /// Whether a line that ends the table was read.
    has_end: bool,
    /// Whether the output is a table without a title.
    is_bare: bool,
    /// Whether the next rows are of one end only; the table before has the sum of both ends.
    is_of_one_side: bool,
    /// Whether lines were read that every end prints, and lines that only a client prints.
    sides: (bool, bool),
    notes: Notes,
}

/// The RDMA device in the settings, if it is made by software: `Device         : rxe0`.
fn software(body: &str) -> Inventory {
    let device = body.lines().find_map(|line| {
        let (_, rest) = line.split_once(" Device ")?;
        let name = rest.trim_start().strip_prefix(':')?.split_whitespace().next()?;
        is_software(name).then(|| quoted(name))
    });
    let device = device.map(|name| IbDevice { name, software: true, ..IbDevice::default() });
    let mut facts = Inventory::default();
    facts.infiniband.devices.extend(device);
    facts
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let section = &section.body();
    let mut first = section.text.lines().take(2);
    let title = first.find_map(|line| Test::named(line.trim()));
    let is_latency = section.text.lines().take(2).any(|line| line.contains("[usec]"));
    let columns = bare(section.first());
    let mut reading = Reading {
        test: title.unwrap_or_else(|| Test::untitled(super::command(section), is_latency)),
        columns: columns.map(Vec::from).unwrap_or_default(),
        rows: Vec::new(),
        singles: Vec::new(),
        longest: None,
        setup: super::setup(super::command(section)),
        has_end: false,
        is_bare: title.is_none(),
        is_of_one_side: false,
        sides: (false, false),
        notes: Notes::default(),
    };
    if title.is_none() {
        reading.untitled();
    }
    let mut used = 0;
    for line in section.lines() {
        if reading.line(line.number, line.text.trim())? == Step::End {
            break;
        }
        used = line.end;
    }
    reading.check(section)?;
    let Reading { test, rows, setup, notes, .. } = reading;
    Ok(Found {
        facts: software(&section.text[..used]),
        results: vec![test.outcome(section.line, rows, setup)],
        ..Found::of("perftest", used, notes)
    })
}

/// Whether the output continues with a line, or ended before it.
#[derive(PartialEq, Eq)]
enum Step {
    On,
    End,
}

impl Reading<'_> {
    /// Adds a note about what is unknown for a table without a title.
    fn untitled(&mut self) {
        let (name, is_known) = (self.test.name, !self.test.operation.is_empty());
        self.notes.whole(if is_known {
            format!("the table stands without its title: the command says the operation, `{}`", quoted(name))
        } else if self.test.is_latency {
            "the table stands without its title: the operation is unknown, and so is whether a time is a round trip or its half".to_owned()
        } else {
            "the table stands without its title: the operation and its direction are unknown".to_owned()
        });
    }

    fn line(&mut self, number: u64, line: &str) -> Result<Step, String> {
        if is_header(line) {
            return self.header(line).map(|()| Step::On);
        }
        self.has_end |= is_rule(line) && !self.rows.is_empty();
        let is_over = self.has_end || self.is_bare && !self.rows.is_empty();
        if let Some(time) = listed(line).filter(|_| !self.columns.is_empty()) {
            self.longest = Some(self.longest.map_or(time, |longest| longest.max(time)));
        } else if line.starts_with(|c: char| c.is_ascii_digit()) && !self.columns.is_empty() {
            self.row(number, line);
        } else if line == "Local results:" || line == "Remote results:" {
            self.is_of_one_side = true;
        } else if let Some((key, value)) = line.split_once(" : ").filter(|_| !is_over) {
            self.setting(key, value);
        } else if let Some(why) = failure(line) {
            self.notes.at(number, why);
        } else if !self.is_known(line) {
            if is_over {
                return Ok(Step::End);
            }
            self.notes.strange(number, line);
        }
        Ok(Step::On)
    }

    fn header(&mut self, line: &str) -> Result<(), String> {
        self.columns = columns(line);
        let has_rate = |column: &Field| matches!(column, Field::Rate(_));
        if line.contains("BW average[MB/sec]") {
            self.notes
                .whole("the rates are converted: perftest's MB/sec are 2^20 bytes in a second");
        }
        if line.contains("BW average") && !self.columns.iter().any(has_rate) {
            return Err("the unit of `BW average` is none of MB/sec, MiB/sec, Gb/sec".into());
        }
        Ok(())
    }

    /// Reads a setting, such as those in `Number of qps : 1  Transport type : IB`.
    fn setting(&mut self, key: &str, value: &str) {
        match key.trim() {
            "Number of qps" => {
                let first = value.split_whitespace().next();
                let queues = first.and_then(|count| count.parse().ok());
                self.setup.queues = queues.or(self.setup.queues);
            }
            "Mtu" => {
                let bytes = value.trim().strip_suffix("[B]");
                self.setup.mtu = bytes.and_then(|bytes| bytes.parse().ok());
            }
            "Link type" => {
                self.setup.layer = match value.trim() {
                    "IB" => Some(Layer::InfiniBand),
                    "Ethernet" => Some(Layer::Ethernet),
                    _ => None,
                };
            }
            "TX depth" => self.sides.1 = true,
            "Data ex. method" => self.sides.0 = true,
            _ => {}
        }
    }

    fn is_known(&self, line: &str) -> bool {
        let is_title = Test::named(line).is_some_and(|test| test.name == self.test.name);
        line.is_empty() || is_rule(line) || is_title || is_known(line) || line.contains("\t :")
    }

    fn row(&mut self, number_of_line: u64, line: &str) {
        // A cell may have marks of Markdown around it.
        let cells = line.split_whitespace().map(|cell| cell.trim_matches('*'));
        let cells: Vec<&str> = cells.collect();
        if cells.len() != self.columns.len() {
            self.notes.strange(number_of_line, line);
            return;
        }
        let mut row = SizeRow::default();
        for (column, cell) in self.columns.iter().zip(&cells) {
            if number(cell).is_none() {
                let why = match *cell {
                    "inf" => ": perftest could not measure the CPU's clock rate",
                    _ => "",
                };
                let what = format!("`{}` is no number and is left out{why}", quoted(cell));
                self.notes.at(number_of_line, what);
            }
            column.set(&mut row, cell);
            let is_single = matches!(column, Field::Micros(Stat::Least | Stat::Most | Stat::P99));
            self.singles.extend(number(cell).filter(|_| is_single));
        }
        if let Some(longest) = self.longest.take().and_then(|time| nanos(time, MICRO)) {
            let is_longer = row.most.is_some_and(|most| most < longest);
            row.most = Some(longest);
            if is_longer {
                self.notes.at(
                    number_of_line,
                    "the longest time is that of the list: perftest's t_max is the second longest",
                );
            }
        }
        // perftest truncates differences below a microsecond to 0 before it squares them, so a deviation of 0 is
        // unknown.
        row.deviation = row.deviation.filter(|time| time.0 > 0);
        drop_unsupported(&mut row);
        if self.is_of_one_side {
            self.notes.whole(
                "the rates of each side are passed over: the table before has both together",
            );
        } else if row.time().is_none() && row.rate.is_none() {
            let what = format!("nothing was measured: `{}`", quoted(line));
            self.notes.at(number_of_line, what);
        } else if self.rows.last().is_none_or(|last| *last != row) {
            // If the log has the outputs of both ends, each row occurs twice.
            self.notes.keep(&mut self.rows, row);
        }
    }

    /// Refuses an output that is not a measurement.
    fn check(&mut self, section: &Section<'_>) -> Result<(), String> {
        let command = super::command(section).unwrap_or("");
        if self.columns.is_empty() {
            return Err("it has no table: the server of a test of reads or writes prints none, and the end may be missing".into());
        }
        if flag(command, &["-C", "--report-cycles"]) {
            return Err("its times are cycles of the CPU (-C), and no times".into());
        }
        if !self.singles.is_empty() && !are_no_cycles(&self.singles) {
            return Err("all its times are whole or half numbers: they may be cycles of the CPU (-C), and no microseconds".into());
        }
        let is_one_way = !self.test.both && !self.test.is_latency;
        let is_server = self.sides == (true, false) && is_one_way;
        if is_server {
            self.notes.whole(
                "the output has no line `TX depth`, as that of a server: the figures of the client are better ones",
            );
        }
        if is_server && self.test.operation == "send" {
            self.rows.retain(|row| row.samples.is_none_or(|samples| samples >= FEWEST));
        }
        if self.rows.is_empty() && !self.notes.0.is_empty() {
            let first = self.notes.0.swap_remove(0).what;
            return Err(format!("no row of its table has a measurement ({first})"));
        }
        if self.rows.is_empty() {
            return Err("no row of its table has a measurement".into());
        }
        if !self.has_end {
            self.notes.whole("the line that ends the table is missing, and maybe rows before it");
        }
        let repeats = |pair: &[SizeRow]| pair[0].size == pair[1].size;
        if self.rows.windows(2).any(repeats) {
            self.notes.whole(
                "a size has several rows: each is a part of a run without end, or a run of its own",
            );
        }
        Ok(())
    }
}

/// Reads a line of a list of single times, in the unit of the table: `5, 73259.6`.
fn listed(line: &str) -> Option<f64> {
    let (at, time) = line.split_once(", ")?;
    count(at)?;
    number(time)
}

/// A sentence for the user, if a line shows that figures are wrong or missing.
fn failure(line: &str) -> Option<&'static str> {
    if line.starts_with("Conflicting CPU frequency values")
        || line.starts_with("Correlation coefficient r^2")
    {
        return Some(
            "perftest was not sure of the CPU's clock rate, by which it computes all figures",
        );
    }
    (line.contains("Can't produce a report"))
        .then_some("perftest could not measure the CPU's clock rate: rows are missing")
}
