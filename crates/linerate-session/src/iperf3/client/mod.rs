//! The client of an iperf3 server: it runs a test over the control connection and reads the server's report.
//!
//! The workers of a run (`crate::iperf3::link`) move the payload of the streams. No counters are read on the server's
//! host, so values that iperf3 does not report are gaps.

mod datagrams;
mod error;
mod hello;
mod lines;
mod report;
mod talk;
mod test;

use linerate_plan::path::Direction;
use linerate_plan::{Handover, Knobs, Pattern, SetPlan};
use linerate_record::iperf3::{Protocol, STREAMS_MAX};

pub use error::ClientError;
pub(crate) use report::{Report, missing};
pub(crate) use test::{Opened, Test, Wanted, dialled};

use linerate_load::transport::{self, tcp};

/// Refuses settings that a test with an iperf3 server does not support.
pub fn possible(
    protocol: Protocol,
    direction: Direction,
    knobs: &Knobs,
) -> Result<(), ClientError> {
    if knobs.streams > STREAMS_MAX {
        return Err(ClientError::Streams(knobs.streams));
    }
    if protocol == Protocol::Udp {
        return datagrams::bounds(knobs);
    }
    let sends = direction == Direction::Forward;
    if !sends && !matches!(knobs.copy, Handover::Copy | Handover::Sendfile) {
        let how = knobs.copy.name();
        let what = format!("an iperf3 server can send with copies or sendfile, but not with {how}");
        return Err(ClientError::Unsupported(what));
    }
    let plan = SetPlan { id: 0, pattern: Pattern::Stream { direction }, knobs: knobs.clone() };
    transport::possible(&tcp::Tcp, &plan).map_err(ClientError::Unsupported)
}
