//! qperf: bandwidth and latency of TCP, UDP, SCTP and RDMA.

#[cfg(test)]
mod tests;

use linerate_plan::path::{ByRole, Direction};
use linerate_record::reported::{
    Carrier, Counted, Cpu, CpuOf, Measured, SizeRow, Sizes, Transfer, Trip,
};
use linerate_units::{Bytes, Nanos, Rate};

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{Line, Notes, flag, outcome, sizes};

/// The format of qperf.
pub(crate) static FORMAT: Format = Format {
    id: "qperf",
    label: "qperf",
    versions: "0.4.11, with or without -v, -u and -oo",
    evidence: "run here: 0.4.11, tests of TCP and UDP on loopback; what RDMA tests count was read in its source",
    unknown: "Medians and percentiles. The size of messages, unless -v, -vu or the command is there. Its CPU \
              figures are those of the whole machine.",
    starts: |at| {
        test_name(at.line).is_some() && at.next.starts_with("    ") && at.next.contains("  =  ")
    },
    read,
    extent: Extent::Parts,
    ..Format::RESULTS
};

/// Protocols, by the start of a test's name.
const CARRIERS: &[(&str, Carrier)] = &[
    ("tcp_", Carrier::Tcp),
    ("udp_", Carrier::Udp),
    ("sctp_", Carrier::Sctp),
    ("rc_", Carrier::Rdma),
    ("uc_", Carrier::Rdma),
    ("ud_", Carrier::Rdma),
    ("xrc_", Carrier::Rdma),
    ("ver_rc_", Carrier::Rdma),
];

/// Largest number of tests in one part of an output.
const MOST_TESTS: usize = 500;

/// Tests that are not read: they show a host's settings, or use a protocol that linerate does not know.
const OTHERS: &[&str] = &["conf", "quit", "rds_bw", "rds_lat", "sdp_bw", "sdp_lat"];

/// Ends of the names of tests.
const KINDS: &[&str] =
    &["_bw", "_lat", "_compare_swap_mr", "_fetch_add_mr", "_compare_swap", "_fetch_add"];

/// Ends of the names of values that are not used.
const UNUSED: &[&str] =
    &["msgs", "errors", "_cost", "id", "rate", "port", "precedence", "sl", "inline"];

/// Units of values: rates in bits per second, times in nanoseconds, sizes in bytes, messages per second, shares of
/// one CPU.
//= qperf 0.4.11: qperf.c, view_band, view_time, view_size, view_rate, view_cpus
const UNITS: &[(&str, Unit, f64)] = &[
    ("bits/sec", Unit::Rate, 1.0),
    ("Kb/sec", Unit::Rate, 1e3),
    ("Mb/sec", Unit::Rate, 1e6),
    ("Gb/sec", Unit::Rate, 1e9),
    ("Tb/sec", Unit::Rate, 1e12),
    ("bytes/sec", Unit::Rate, 8.0),
    ("KB/sec", Unit::Rate, 8e3),
    ("MB/sec", Unit::Rate, 8e6),
    ("GB/sec", Unit::Rate, 8e9),
    ("TB/sec", Unit::Rate, 8e12),
    ("ns", Unit::Time, 1.0),
    ("us", Unit::Time, 1e3),
    ("ms", Unit::Time, 1e6),
    ("sec", Unit::Time, 1e9),
    ("bytes", Unit::Size, 1.0),
    ("KB", Unit::Size, 1e3),
    ("MB", Unit::Size, 1e6),
    ("GB", Unit::Size, 1e9),
    ("TB", Unit::Size, 1e12),
    ("KiB", Unit::Size, 1024.0),
    ("MiB", Unit::Size, 1_048_576.0),
    ("GiB", Unit::Size, 1_073_741_824.0),
    ("/sec", Unit::Events, 1.0),
    ("K/sec", Unit::Events, 1e3),
    ("M/sec", Unit::Events, 1e6),
    ("G/sec", Unit::Events, 1e9),
    ("% cpus", Unit::Share, 0.01),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Rate,
    Time,
    Size,
    Events,
    Share,
}

/// A test: its name, its line, and its values with their units.
#[derive(Debug)]
struct Test<'a> {
    name: &'a str,
    line: u64,
    values: Vec<(&'a str, Unit, f64)>,
}

fn test_name(line: &str) -> Option<&str> {
    let name = line.trim_end().strip_suffix(':')?;
    let ours = CARRIERS.iter().any(|(start, _)| name.starts_with(start))
        && KINDS.iter().any(|end| name.ends_with(end));
    (ours || OTHERS.contains(&name)).then_some(name)
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut notes = Notes::default();
    let (tests, used) = tests(section, &mut notes);
    let mut results = Vec::new();
    for test in &tests {
        if OTHERS.contains(&test.name) {
            if !["conf", "quit"].contains(&test.name) {
                let what = format!("qperf {} is not read: its protocol is none of ours", test.name);
                notes.at(test.line, what);
            }
            continue;
        }
        match test.measured(&tests, section.command, &mut notes) {
            Ok(measured) => results.push(outcome(test.name, test.line, measured)),
            Err(why) => notes.at(test.line, format!("qperf {}: {why}", test.name)),
        }
    }
    if results.is_empty() {
        let first = notes.0.first().map(|note| note.what.clone());
        return Err(first.unwrap_or_else(|| "it has no result".to_owned()));
    }
    Ok(Found { results, ..Found::of("qperf", used, notes) })
}

/// The tests of an output, and the number of bytes up to the last line that was understood.
fn tests<'a>(section: &Section<'a>, notes: &mut Notes) -> (Vec<Test<'a>>, usize) {
    let mut tests: Vec<Test<'_>> = Vec::new();
    let mut used = 0;
    for Line { number, text, end } in section.lines() {
        if let Some(name) = test_name(text.trim_end()) {
            if tests.len() == MOST_TESTS {
                break;
            }
            tests.push(Test { name, line: number, values: Vec::new() });
        } else if let (Some((name, value)), Some(test)) =
            (text.split_once("  =  "), tests.last_mut())
        {
            let name = name.trim();
            match quantity(value) {
                Some((unit, value)) => test.values.push((name, unit, value)),
                None if test.name == "conf" || UNUSED.iter().any(|end| name.ends_with(end)) => {}
                None => notes.at(number, format!("not understood: `{}`", text.trim())),
            }
        } else if !text.trim().is_empty() {
            break;
        } else {
            continue;
        }
        used = end;
    }
    (tests, used)
}

/// Reads a value with its unit: `2.84 GB/sec`, `64 KiB (65,536)`, `201 % cpus`.
fn quantity(text: &str) -> Option<(Unit, f64)> {
    let text = text.trim();
    let (value, unit) = text.split_once(' ')?;
    let unit = unit.split(" (").next().unwrap_or(unit).trim();
    let (_, kind, factor) = UNITS.iter().find(|(name, ..)| *name == unit)?;
    // qperf prints thousands separators in whole numbers.
    let value: f64 = value.replace(',', "").parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some((*kind, value * factor))
}

impl Test<'_> {
    fn value(&self, name: &str, unit: Unit) -> Option<f64> {
        let found = self.values.iter().find(|(known, of, _)| *known == name && *of == unit)?;
        Some(found.2)
    }

    fn carrier(&self) -> Carrier {
        let known = CARRIERS.iter().find(|(start, _)| self.name.starts_with(start));
        known.map_or(Carrier::Rdma, |(_, carrier)| *carrier)
    }

    /// The result of a test. Each assumption adds a note.
    fn measured(
        &self,
        tests: &[Test<'_>],
        command: Option<&str>,
        notes: &mut Notes,
    ) -> Result<Measured, String> {
        if self.name.ends_with("_bw") && !self.name.contains("_bi_") {
            return Ok(Measured::Transfer(Box::new(self.transfer()?)));
        }
        let said = self.size(tests, command)?;
        let default = Bytes(self.default_size());
        let row = SizeRow {
            size: said.unwrap_or(default),
            mean: self.value("latency", Unit::Time).map(|time| Nanos(time.round() as u64)),
            rate: self.value("bw", Unit::Rate).map(|rate| Rate(rate.round() as u64)),
            messages: self.value("msg_rate", Unit::Events),
            ..SizeRow::default()
        };
        if row.mean.is_none() && row.rate.is_none() && row.messages.is_none() {
            return Err("it has no value".to_owned());
        }
        if said.is_none() && command.is_none() {
            let what = format!(
                "the size of messages is not in the output: qperf's default was taken, {} B",
                default.0
            );
            notes.at(self.line, what);
        }
        Ok(Measured::Sizes(Sizes {
            carrier: Some(self.carrier()),
            both: self.name.contains("_bi_"),
            ..sizes(self.operation(), self.trip(), vec![row])
        }))
    }

    /// qperf divides the time by the number of messages that both ends received. In a read only one end receives.
    //= qperf 0.4.11: qperf.c, calc_results; rdma.c, rd_client_rdma_read_lat
    fn trip(&self) -> Trip {
        if self.name.ends_with("_bw") {
            Trip::Unknown
        } else if self.name.ends_with("read_lat") || !self.name.ends_with("_lat") {
            Trip::Whole
        } else {
            Trip::Half
        }
    }

    fn operation(&self) -> &'static str {
        let names = [
            ("rdma_read", "RDMA read"),
            ("rdma_write", "RDMA write"),
            ("compare_swap", "RDMA compare and swap"),
            ("fetch_add", "RDMA fetch and add"),
        ];
        let known = names.iter().find(|(part, _)| self.name.contains(part));
        known.map_or("send", |(_, operation)| operation)
    }

    /// Size of a message; `None` if it is qperf's default, as neither the output nor an option of the command has it.
    fn size(&self, tests: &[Test<'_>], command: Option<&str>) -> Result<Option<Bytes>, String> {
        if let Some(size) = self.value("msg_size", Unit::Size) {
            return Ok(Some(Bytes(size as u64)));
        }
        if self.name.contains("compare_swap") || self.name.contains("fetch_add") {
            return Ok(Some(Bytes(8)));
        }
        let same = tests.iter().filter(|test| test.name == self.name).count();
        let options = ["-m", "--msg_size", "-oo", "--loop"];
        if same > 1 || command.is_some_and(|command| flag(command, &options)) {
            return Err("the size of its messages is not in the output: run it with -vu".to_owned());
        }
        Ok(None)
    }

    fn default_size(&self) -> u64 {
        match self.name {
            name if name.ends_with("_lat") => 1,
            name if name.starts_with("ud_") => 2048,
            _ => 65536,
        }
    }

    fn transfer(&self) -> Result<Transfer, String> {
        let received = self.value("bw", Unit::Rate).or(self.value("recv_bw", Unit::Rate));
        let rate = received.ok_or("it has no bandwidth")?;
        // In a read the client is the receiver.
        let direction =
            if self.name.contains("rdma_read") { Direction::Reverse } else { Direction::Forward };
        // The sender of an unreliable write is not told whether it arrived, so only the sender's count is known.
        let counted =
            if self.name == "uc_rdma_write_bw" { Counted::Sender } else { Counted::Receiver };
        let mut transfer =
            Transfer::new(self.carrier(), direction, Rate(rate.round() as u64), counted);
        transfer.streams = Some(1);
        let time = self.value("recv_real_time", Unit::Time).or(self.value("time", Unit::Time));
        transfer.seconds = time.map(|nanos| nanos / 1e9);
        transfer.size = self.value("msg_size", Unit::Size).map(|size| Bytes(size as u64));
        transfer.messages = self.value("msg_rate", Unit::Events);
        transfer.cpu = ByRole { sender: self.cpu("send"), receiver: self.cpu("recv") };
        Ok(transfer)
    }

    fn cpu(&self, end: &str) -> Option<Cpu> {
        let share = |part: &str| self.value(&format!("{end}_cpus_{part}"), Unit::Share);
        let kernel = share("kernel");
        Some(Cpu {
            total: share("used")?,
            system: kernel.map(|kernel| kernel + share("intr").unwrap_or(0.0)),
            of: CpuOf::Machine,
        })
    }
}
