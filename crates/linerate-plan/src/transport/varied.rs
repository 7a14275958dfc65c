//! The factors of a load that a study varies.

use schemars::JsonSchema;
use serde::Serialize;

/// A factor of a load that a study varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Swept {
    /// How the sender hands payload to the kernel.
    Copy,
    /// Payload of each read and each write, in bytes.
    Size,
    /// Number of connections.
    Streams,
    /// Number of requests in flight on each queue pair.
    Depth,
    /// Number of queue pairs of each stream.
    Qps,
}

impl Swept {
    /// All factors that a study may vary.
    pub const ALL: [Self; 5] = [Self::Copy, Self::Size, Self::Streams, Self::Depth, Self::Qps];

    /// Name of the factor in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Size => "size",
            Self::Streams => "streams",
            Self::Depth => "depth",
            Self::Qps => "qps",
        }
    }
}
