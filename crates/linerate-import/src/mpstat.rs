//! `mpstat -P ALL`: how busy each CPU of a host was, and with which kind of work.

use std::collections::BTreeMap;

use linerate_record::reported::{CpuTime, Measured};

use crate::format::{Extent, Format, Found, Section};
use crate::reading::{Line, Notes, command, run};

/// The format of mpstat.
pub(crate) static MPSTAT: Format = Format {
    id: "mpstat",
    label: "mpstat -P ALL",
    versions: "sysstat 10 to 12",
    evidence: "published: netdev: fec copybreak handling throughput, 2020 (broken by mail), with other figures",
    unknown: "Which program and which packets the time went to; of several samples the last one counts, or their mean.",
    starts: |at| starts(at.text),
    read,
    extent: Extent::Parts,
    ..Format::RESULTS
};

/// Largest number of columns.
const MOST_COLUMNS: usize = 32;
/// Number of CPUs that are kept: those with the lowest numbers.
const MOST: u32 = 1_024;

fn starts(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let is_banner = first.starts_with("Linux ") && first.ends_with(" CPU)");
    is_head(first) || is_banner && lines.next().is_some_and(is_head)
}

/// Whether a line is a heading: `23:38:51     CPU    %usr   %nice    %sys ...`. A mail program may have wrapped it.
fn is_head(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.by_ref().take(3).any(|word| word == "CPU")
        && words.next().is_some_and(|word| matches!(word, "%usr" | "%user"))
}

#[derive(Default)]
struct Reading<'a> {
    head: Vec<&'a str>,
    row: Vec<&'a str>,
    cpus: BTreeMap<Option<u32>, CpuTime>,
}

impl<'a> Reading<'a> {
    /// Reads a line; `false` if it is not part of the table.
    fn line(&mut self, line: &'a str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        if is_head(line) {
            (self.head, self.row) = (words, Vec::new());
        } else if words.iter().all(|word| word.starts_with('%'))
            && self.head.len() < MOST_COLUMNS
            && !self.head.contains(&"%idle")
        {
            self.head.extend(words);
        } else if self.is_row(&words) {
            self.row.extend(words);
            if self.row.len() >= self.head.len() {
                self.end_row();
            }
        } else {
            return self.head.is_empty();
        }
        true
    }

    /// Whether words are a row, or the rest of a wrapped one: a time, a CPU and shares.
    fn is_row(&self, words: &[&str]) -> bool {
        let is_share = |word: &&str| word.replace(',', ".").parse::<f64>().is_ok();
        let is_time = |word: &str| word == "Average:" || word.split(':').count() == 3;
        let first = words.first().copied().unwrap_or_default();
        let last = words.last().is_some_and(is_share);
        !self.head.is_empty()
            && last
            && (is_time(first) || !self.row.is_empty() && is_share(&first))
    }

    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        let of = |name: &str| {
            let at = self.head.iter().position(|known| *known == name)?;
            row.get(at).copied()
        };
        let share = |name: &str| of(name)?.replace(',', ".").parse::<f64>().ok();
        let part = |percent: f64| (percent.clamp(0.0, 100.0) * 100.0).round() / 1e4;
        let (Some(cpu), Some(idle)) = (of("CPU"), share("%idle")) else {
            return;
        };
        let number = cpu.parse().ok().filter(|number| *number < MOST);
        if number.is_none() && cpu != "all" {
            return;
        }
        // Time that a hypervisor takes away is not work of the host.
        let waits = share("%iowait").unwrap_or(0.0) + share("%steal").unwrap_or(0.0);
        let packets = share("%soft").unwrap_or(0.0) + share("%irq").unwrap_or(0.0);
        let time =
            CpuTime { cpu: number, busy: part(100.0 - idle - waits), interrupts: part(packets) };
        self.cpus.insert(number, time);
    }
}

fn read(section: &Section<'_>) -> Result<Found, String> {
    let mut reading = Reading::default();
    let used = section.up_to(|Line { text, .. }, used| {
        let line = text.trim_end();
        let is_end = used > 0 && (run(line).is_some() || command(line).is_some());
        !is_end && (line.is_empty() || reading.line(line))
    });
    if reading.cpus.is_empty() {
        return Err("it has no row with a CPU and its idle time".to_owned());
    }
    let cpus = Measured::Cpus(reading.cpus.into_values().collect());
    Ok(Found::of("mpstat", used, Notes::default()).with("", section.line, cpus))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::part;

    fn cpus(text: &str) -> Vec<(Option<u32>, f64, f64)> {
        match &part(text).results[0].measured {
            Measured::Cpus(cpus) => {
                let each = cpus.iter();
                each.map(|one| (one.cpu, one.busy, one.interrupts)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    const ROWS: &str = "12:10:01 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest   %idle\n\
        12:10:02 AM  all    1.00    0.00    9.00    0.50    0.00   25.00    0.00    0.00   64.50\n\
        12:10:02 AM    2    0.00    0.00    1.00    0.00    0.50   98.00    0.00    0.00    0.50\n";

    #[test]
    fn each_cpu_has_the_share_of_its_work_and_of_its_interrupts() {
        let want = [(None, 0.35, 0.25), (Some(2), 0.995, 0.985)];
        assert_eq!(cpus(ROWS), want);
        assert_eq!(
            cpus(&format!("Linux 6.1.0 (n1) \t11/03/26 \t_x86_64_\t(4 CPU)\n\n{ROWS}")),
            want
        );
        let broken = ROWS
            .replace("  %steal", "\n%steal")
            .replace("  0.00    0.00   64.50", "\n0.00 0.00 64.50");
        assert_eq!(cpus(&broken), want);
        // The line with the mean replaces the samples before it.
        let mean = ROWS
            .replace("12:10:01 AM", "Average:")
            .replace("12:10:02 AM", "Average:")
            .replace("98.00", "90.00");
        assert_eq!(cpus(&format!("{ROWS}\n{mean}"))[1], (Some(2), 0.995, 0.905));
    }

    #[test]
    fn a_table_ends_where_another_command_begins() {
        let parsed =
            crate::read(format!("$ mpstat -P ALL 1 1\n{ROWS}$ uptime\n up 3 days\n").as_bytes())
                .unwrap();
        assert_eq!(parsed.parts.len(), 1);
        assert_eq!(parsed.notes.len(), 1);
        for none in ["CPU %usr\n", "1 CPU %usr %idle\nx 0 1\n"] {
            assert!(crate::read(none.as_bytes()).is_err());
        }
    }
}
