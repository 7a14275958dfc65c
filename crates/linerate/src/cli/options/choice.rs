//! Options that are one word of a few.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

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
    /// Text for a terminal: wrapped to its width, in colour as --color says.
    Text,
    /// GitHub-flavoured Markdown for issues and reports: no colour, no wrapped lines.
    Markdown,
}

/// How payload is handed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HandOver {
    /// Each send copies it.
    Copy,
    /// The kernel sends the program's own pages (`MSG_ZEROCOPY`).
    Zerocopy,
    /// The kernel sends pages of a file in memory.
    Sendfile,
    /// Both ends use io_uring: pages that the kernel is told of once, and buffers that it fills (Linux 6.2).
    IoUring,
}

/// What a sweep varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SweepFactor {
    /// How the sender hands payload to the kernel: which way costs least CPU time for each byte.
    Copy,
    /// Payload of each read and write, 1 KiB to 4 MiB: where larger ones gain nothing.
    Size,
    /// Connections, to --streams of them or to 64: where more gain nothing.
    Streams,
}

/// Directions of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LoadDirections {
    /// Near to far.
    Forward,
    /// Far to near.
    Reverse,
    /// Both at once.
    Both,
}

/// Directions to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RunDirections {
    /// Near to far.
    Forward,
    /// Far to near.
    Reverse,
    /// Each, and both at once.
    Both,
}
