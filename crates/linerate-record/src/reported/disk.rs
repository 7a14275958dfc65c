//! Operations on a disk or a file, as a program reported them.

use serde::{Deserialize, Serialize};

use linerate_units::{Bytes, Nanos};

/// The order in which places of the disk are read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// One place after the other.
    Sequential,
    /// Places at random.
    Random,
    /// A file is copied.
    Copy,
    /// Any order, or the program does not say.
    Unknown,
}

/// Whether an operation reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Does {
    /// Operations only read.
    Read,
    /// Operations only write.
    Write,
    /// Some operations read, others write.
    Mix,
}

/// Results of a disk or a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// The disk, file or folder as the program names it; empty if unknown.
    pub target: String,
    /// Size of the file that was tested; `None` if unknown.
    pub file: Option<Bytes>,
    /// Number of runs of each row, of which the program reports the best one; `None` if unknown.
    pub best_of: Option<u32>,
    /// Whether the cache of the operating system was bypassed; `None` if unknown.
    pub direct: Option<bool>,
    /// The I/O engine that did the operations, by the program's name, such as `libaio`; empty if unknown.
    #[serde(default)]
    pub engine: String,
    /// One row for each kind of operation.
    pub rows: Vec<DiskRow>,
}

/// Figures of one kind of operation on a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskRow {
    /// The order in which places are read or written.
    pub access: Access,
    /// Whether the operations read or write.
    pub does: Does,
    /// Payload of an operation in bytes; `None` if unknown.
    pub block: Option<Bytes>,
    /// Operations that each thread keeps in flight, as requested; `None` if unknown.
    pub depth: Option<u32>,
    /// Number of threads; `None` if unknown.
    pub threads: Option<u32>,
    /// Payload per second, in bytes.
    pub bytes_per_sec: f64,
    /// Operations per second; `None` if unknown.
    pub operations: Option<f64>,
    /// Mean time of an operation; `None` if unknown.
    pub mean: Option<Nanos>,
    /// Median time of an operation; `None` if unknown.
    pub typical: Option<Nanos>,
    /// 99th percentile of the time of an operation; `None` if unknown.
    pub p99: Option<Nanos>,
    /// 99.9th percentile of the time of an operation; `None` if unknown.
    pub p999: Option<Nanos>,
    /// Longest time of an operation; `None` if unknown.
    pub most: Option<Nanos>,
    /// Length of the measurement in seconds; `None` if unknown.
    pub seconds: Option<f64>,
    /// Bytes that the disk itself read or wrote during the measurement, by its own counters; `None` if unknown.
    pub at_disk: Option<Bytes>,
    /// Operations that each thread was requested to keep in flight, if the I/O engine keeps only one whatever is
    /// requested, so that `depth` is 1; else `None`.
    #[serde(default)]
    pub requested: Option<u32>,
    /// Mean time to submit an operation, which is part of the operation's time; `None` if unknown.
    #[serde(default)]
    pub submit: Option<Nanos>,
    /// Flushes to the disk that the program waited for, per operation: 1 after each, 0 never; `None` if unknown.
    #[serde(default)]
    pub flushed: Option<f64>,
    /// Mean time of a flush, if it is not part of an operation's time; `None` if unknown.
    #[serde(default)]
    pub flush: Option<Nanos>,
    /// Share of the time, from 0 to 1, in which the disk had a request, by the kernel's count; `None` if unknown.
    #[serde(default)]
    pub busy: Option<f64>,
}

impl DiskRow {
    /// The operation in words: `sequential read`, `copy by reads and writes`.
    pub fn operation(&self) -> String {
        let access = match self.access {
            Access::Sequential => "sequential ",
            Access::Random => "random ",
            Access::Copy => "copy by ",
            Access::Unknown => "",
        };
        let does = match self.does {
            Does::Read => "read",
            Does::Write => "write",
            Does::Mix => "reads and writes",
        };
        format!("{access}{does}")
    }

    /// A row of which only the kind and the rate are known.
    pub const fn new(access: Access, does: Does, bytes_per_sec: f64) -> Self {
        Self {
            access,
            does,
            block: None,
            depth: None,
            threads: None,
            bytes_per_sec,
            operations: None,
            mean: None,
            typical: None,
            p99: None,
            p999: None,
            most: None,
            seconds: None,
            at_disk: None,
            requested: None,
            submit: None,
            flushed: None,
            flush: None,
            busy: None,
        }
    }
}
