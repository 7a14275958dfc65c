//! Results that other programs reported.
//!
//! A parser reads the output of a program into these types and converts only units. A value that the program did not
//! report, or could not know, is `None`. Findings and figures are derived from the results again each time.

mod disk;
mod setup;
mod sizes;
mod transfer;

pub use disk::{Access, Disk, DiskRow, Does};
pub use setup::Setup;
pub use sizes::{Hop, SizeRow, Sizes, Trip};
pub use transfer::{Carrier, Counted, Cpu, CpuOf, Held, Lost, RoundTrips, Transfer};

use serde::{Deserialize, Serialize};

use linerate_plan::path::Side;

/// The program that reported results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Name of the program, such as `iperf3`.
    pub name: String,
    /// Version as the program writes it, without the name, such as `3.12`; `None` if the output has none.
    pub version: Option<String>,
}

impl Tool {
    /// A program whose version is unknown.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), version: None }
    }
}

/// One result of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The program's own name of the result, such as that of a job; empty if it has none.
    pub title: String,
    /// The line of the input where the result begins, from 1.
    pub line: u64,
    /// What was measured.
    pub measured: Measured,
}

/// What a result measured, with its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// A transfer of payload over a network, in one direction.
    Transfer(Box<Transfer>),
    /// A table by message size: the times or the rate of each size.
    Sizes(Sizes),
    /// Operations on a disk or a file.
    Disk(Disk),
    /// Counters of a host.
    Counters(Counters),
    /// Shares of time of the CPUs of a host.
    Cpus(Vec<CpuTime>),
    /// The hops of a path, the nearest first.
    Hops(Vec<Hop>),
}

/// Counters of a host, as a program printed them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Name and value of each counter.
    pub values: Vec<(String, u64)>,
    /// Whether the values are the growth between two readings, and not the count since the host started.
    pub grew: bool,
}

impl Counters {
    /// The value of a counter; `None` if the program did not print it.
    pub fn value(&self, name: &str) -> Option<u64> {
        let found = self.values.iter().find(|(known, _)| known == name)?;
        Some(found.1)
    }
}

/// What a CPU did, as shares of time from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Number of the CPU; `None` for the mean of all CPUs.
    pub cpu: Option<u32>,
    /// Share of time in which it did work of the host, without time that a hypervisor took away.
    pub busy: f64,
    /// Share of time in which it served interrupts, and the packets that they announce.
    pub interrupts: f64,
}

/// The results of one output of a program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Source {
    /// Name of the file, without its folder.
    pub file: String,
    /// The host at which the output was made. Results call it the client, or the disk's host.
    pub side: Option<Side>,
    /// The program and the format of its output: `iperf3, JSON`.
    pub label: String,
    /// The program that reported the results.
    pub tool: Tool,
    /// The results.
    pub results: Vec<Outcome>,
    /// Notes about the output.
    pub notes: Vec<Note>,
}

/// Something about the input that a reader should know: a line that was not understood, a figure that was
/// corrected, a value that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The line of the input, from 1; `None` if the note is about the whole input.
    pub line: Option<u64>,
    /// The note: a sentence without a full stop.
    pub what: String,
}
