//! One measurement of throughput, for people and for programs: with linerate or iperf3 as the far end.

mod iperf3;
mod json;
pub(super) mod own;
#[cfg(test)]
mod sample;
pub(super) mod text;

use linerate_core::facts::Gap;
use linerate_core::model::Estimate;
use linerate_core::plan::{Direction, Side};
use linerate_core::record::SetEnd;
use linerate_core::units::{Bytes, Nanos};

pub use json::{FORMAT, SCHEMA, json};
pub(super) use json::{Output, output};
pub use text::text;

use super::flows::Look;

/// What serves at the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FarEnd {
    /// `linerate serve`.
    Linerate,
    /// An iperf3 server.
    Iperf3,
}

impl FarEnd {
    /// The word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linerate => "linerate",
            Self::Iperf3 => "iperf3",
        }
    }
}

/// What was measured.
#[derive(Debug)]
pub struct Probe {
    target: String,
    far_end: FarEnd,
    /// Address and port of the far end.
    address: String,
    streams: u32,
    /// Time that counts, as it was asked for.
    time: Nanos,
    /// As long as it lasted: shorter where it ended early.
    lasted: Nanos,
    /// Time before it that does not count.
    washout: Nanos,
    /// Whether both ends share one machine; `None` where that is not known.
    same_machine: Option<bool>,
    /// Why it ended early; empty where it did not.
    broken: String,
    /// The directions that were asked for, with what is known of each.
    ways: Vec<Way>,
    /// This end's connections, judged from here alone; `None` where that was not done.
    look: Option<Look>,
    gaps: Vec<Gap>,
}

/// One direction.
#[derive(Debug)]
pub(super) struct Way {
    direction: Direction,
    /// Payload that the receiver counted, over its own clock; `None` where it is not known.
    goodput: Option<Estimate>,
    /// Payload and time that goodput is of.
    received: Option<(Bytes, Nanos)>,
    /// Whether a steady part was found; `None` where samples of the receiver are not known.
    steady: Option<bool>,
    /// How payload was handed to the kernel, in words, where not by copies.
    handed: Option<String>,
    /// Goodput of each whole second in bits per second; empty where it is not known.
    seconds: Vec<f64>,
    /// Segments that the sender sent again; `None` where it does not tell.
    again: Option<u64>,
    /// The sender's smoothed round trip, mean, and the smallest one.
    rtt: Option<Nanos>,
    min_rtt: Option<Nanos>,
    near: Option<End>,
    far: Option<End>,
}

/// What one end counted of a direction.
#[derive(Debug)]
pub(super) struct End {
    bytes: Bytes,
    /// How long it counted; `None` where it does not say.
    time: Option<Nanos>,
    /// CPU time of the whole program, in percent of one CPU.
    cpu_percent: Option<f64>,
    /// CPU time in nanoseconds for each byte of payload: of the threads that move it, or of the whole
    /// program where only that is known.
    cpu_per_byte: Option<f64>,
    made: SetEnd,
}

impl Probe {
    /// Whether all that was asked for was measured.
    pub fn complete(&self) -> bool {
        self.broken.is_empty() && self.ways.iter().all(|way| way.goodput.is_some())
    }

    /// Goodput of each direction that was measured, in bits per second.
    pub fn goodput(&self) -> Vec<(Direction, f64)> {
        let known = |way: &Way| Some((way.direction, way.goodput?.mean));
        self.ways.iter().filter_map(known).collect()
    }
}

impl Way {
    fn end(&self, side: Side) -> Option<&End> {
        match side {
            Side::Near => self.near.as_ref(),
            Side::Far => self.far.as_ref(),
        }
    }
}

fn gap(what: impl Into<String>, why: &str, hint: &str) -> Gap {
    Gap {
        what: what.into(),
        why: why.to_owned(),
        hint: hint.to_owned(),
    }
}
