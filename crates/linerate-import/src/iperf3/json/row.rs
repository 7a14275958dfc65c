//! A row: the figures of one object.

use serde::de::MapAccess;

use super::fields::{Fill, NUMBER};

/// Declares the figures that are read, each with its name in a document.
macro_rules! figures {
    ($($figure:ident = $name:literal),+ $(,)?) => {
        /// A figure that a row can have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum F { $($figure),+ }

        const NAMES: &[&str] = &[$($name),+];
    };
}

figures! {
    Seconds = "seconds",
    Bytes = "bytes",
    Bits = "bits_per_second",
    Retransmits = "retransmits",
    Omitted = "omitted",
    Sender = "sender",
    // Figures of a stream at the end of the test.
    MaxCwnd = "max_snd_cwnd",
    MaxWnd = "max_snd_wnd",
    MaxRtt = "max_rtt",
    MinRtt = "min_rtt",
    MeanRtt = "mean_rtt",
    // Figures of datagrams.
    Jitter = "jitter_ms",
    Lost = "lost_packets",
    Packets = "packets",
    // Figures of CPU time.
    HostTotal = "host_total",
    HostSystem = "host_system",
    RemoteTotal = "remote_total",
    RemoteSystem = "remote_system",
    // Settings of the test.
    TargetBitrate = "target_bitrate",
    Mss = "tcp_mss",
    MssDefault = "tcp_mss_default",
    Buffer = "sock_bufsize",
    Streams = "num_streams",
    Block = "blksize",
    Omit = "omit",
    Blocks = "blocks",
    Reverse = "reverse",
    Bidir = "bidir",
    FqRate = "fqrate",
}

/// The figures of one object. A figure that the object does not have is `NaN`.
#[derive(Debug, Clone)]
pub(super) struct Row([f64; NAMES.len()]);

impl Default for Row {
    fn default() -> Self {
        Self([f64::NAN; NAMES.len()])
    }
}

impl Row {
    /// The value of a figure; `None` if it is missing.
    pub(super) fn get(&self, figure: F) -> Option<f64> {
        Some(self.0[figure as usize]).filter(|value| value.is_finite())
    }

    /// The value of a figure; `None` if it is missing, zero or negative.
    pub(super) fn positive(&self, figure: F) -> Option<f64> {
        self.get(figure).filter(|value| *value > 0.0)
    }

    /// Sets the figure with this name.
    pub(super) fn put(&mut self, name: &str, value: f64) {
        if let Some(at) = NAMES.iter().position(|known| *known == name) {
            self.0[at] = value;
        }
    }
}

impl Fill for Row {
    const NAMES: &'static [&'static str] = NAMES;

    fn take<'de, A: MapAccess<'de>>(&mut self, name: usize, map: &mut A) -> Result<(), A::Error> {
        self.0[name] = map.next_value_seed(NUMBER)?;
        Ok(())
    }
}
