//! Options whose value is one of a few words.

use clap::ValueEnum;
use linerate_plan::transport::Swept;
use serde::{Deserialize, Serialize};

use linerate_show::like::Like;

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// In which form people read a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    /// Text for a terminal, wrapped to its width; --color decides on colour.
    Text,
    /// GitHub-flavoured Markdown for issues and reports, without colour and line wraps.
    Markdown,
    /// Comma-separated values: only the table of `whatif --compare`, whose help names it.
    #[value(hide = true)]
    Csv,
}

/// How the sender passes payload to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HandOver {
    /// The kernel copies the payload of each send.
    Copy,
    /// The kernel sends from the program's memory without a copy (`MSG_ZEROCOPY`).
    Zerocopy,
    /// The kernel sends from a file in memory without a copy.
    Sendfile,
    /// Both ends use io_uring with registered memory, without a copy at the sender (Linux 6.2).
    IoUring,
}

/// What a sweep varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SweepFactor {
    /// How the sender passes payload to the kernel: finds which costs least CPU time per byte.
    Copy,
    /// Bytes of each read and write, 1 KiB to 4 MiB (RDMA: 2 B to 8 MiB): finds the size from which larger ones gain
    /// nothing.
    Size,
    /// 1, 2, 4 and so on to --streams connections (64): finds the number from which more gain nothing.
    Streams,
    /// RDMA and files: 1 to 1024 operations in flight on each queue pair or thread, as far as the device allows:
    /// finds the number from which more gain nothing.
    Depth,
    /// RDMA: 1 to 64 queue pairs of each stream: finds the number from which more gain nothing.
    Qps,
}

impl From<SweepFactor> for Swept {
    fn from(factor: SweepFactor) -> Self {
        match factor {
            SweepFactor::Copy => Self::Copy,
            SweepFactor::Size => Self::Size,
            SweepFactor::Streams => Self::Streams,
            SweepFactor::Depth => Self::Depth,
            SweepFactor::Qps => Self::Qps,
        }
    }
}

/// What a sweep of round trips varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TripFactor {
    /// Bytes of a message and of its answer, 2 B to 8 MiB as far as the engine carries them.
    Size,
}

/// The rows of a measurement of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RowSet {
    /// CrystalDiskMark 9, as since 8.0: SEQ 1M Q8 T1, SEQ 1M Q1 T1, RND 4K Q32 T1, RND 4K Q1 T1.
    Cdm9,
    /// CrystalDiskMark 8: the same rows.
    Cdm8,
    /// CrystalDiskMark 6: SEQ 128K Q32 T1, RND 4K Q8 T8, RND 4K Q32 T1, RND 4K Q1 T1.
    Cdm6,
    /// The profile for NVMe disks: SEQ 1M Q8 T1, SEQ 128K Q32 T1, RND 4K Q32 T16, RND 4K Q1 T1.
    Nvme,
    /// What one program does at a time: SEQ 1M Q1 T1, RND 4K Q1 T1.
    Real,
    /// Only writes, SEQ 1M Q8 T1, for 60 s or --time: whether they become slower, and after how many bytes.
    Sustained,
}

/// How a message of round trips is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TripPattern {
    /// Each message in one write; then its answer is read.
    WriteRead,
    /// Each message in two writes of half its size. Without TCP_NODELAY the second one waits for the
    /// acknowledgement of the first.
    WriteWriteRead,
}

/// The tool in whose form a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Likeness {
    /// The table of ib_write_lat and ib_send_lat: halves of round trips in microseconds.
    Perftest,
    /// The summary of sockperf ping-pong: halves of round trips in microseconds.
    Sockperf,
    /// The summary of sockperf ping-pong --full-rtt: whole round trips in microseconds.
    SockperfFullRtt,
}

impl From<Likeness> for Like {
    fn from(likeness: Likeness) -> Self {
        match likeness {
            Likeness::Perftest => Self::Perftest,
            Likeness::Sockperf => Self::Sockperf { whole: false },
            Likeness::SockperfFullRtt => Self::Sockperf { whole: true },
        }
    }
}

/// Directions of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LoadDirections {
    /// From this machine to the far machine.
    Forward,
    /// From the far machine to this machine.
    Reverse,
    /// Both at the same time.
    Both,
}

/// Directions to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RunDirections {
    /// From this machine to the far machine.
    Forward,
    /// From the far machine to this machine.
    Reverse,
    /// Each alone, and both at the same time.
    Both,
}
