//! Readings of the connections of other programs.

use std::net::SocketAddr;

use linerate_facts::metric as m;
use linerate_facts::{Gap, HostFacts};
use linerate_units::Rate;

use crate::EndReadings;

/// The readings of one connection during an observation.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Address of this end.
    pub local: SocketAddr,
    /// Address of the far end.
    pub remote: SocketAddr,
    /// This end's congestion control; empty if unknown.
    pub congestion: String,
    /// The processes that hold this end of the connection; empty if unknown.
    pub owners: Vec<Owner>,
    /// Whether the connection ended before the measurement did.
    pub ended: bool,
    /// Facts of this host, with the port that the connection's packets leave by.
    pub facts: HostFacts,
    /// Readings of this end: `tcp` and `socket` about [`Flow::SUBJECT`], `thread` about the threads of
    /// its owners, and the host's.
    pub readings: EndReadings,
}

/// A process that holds a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The process id.
    pub pid: u32,
    /// The name of the process.
    pub name: String,
}

impl Flow {
    /// The subject of the tables of a connection's readings.
    pub const SUBJECT: &'static str = "s0/0";

    /// The rate of the connection over the whole measurement, in bits per second: sent, then received. `None` if the
    /// connection was read fewer than two times.
    pub fn carried(&self) -> Option<[Rate; 2]> {
        let table = self.readings.about("tcp", |_| true).next()?;
        let last = table.at.len().checked_sub(2)? + 1;
        let secs = table.at[last].checked_sub(table.at[0]).filter(|ns| *ns > 0)? as f64 / 1e9;
        let rate = |metric| {
            let values = table.column(metric)?;
            let grown = values.get(last)?.checked_sub(*values.first()?)?;
            (grown >= 0).then(|| Rate((grown as f64 * 8.0 / secs) as u64))
        };
        Some([rate(m::TCP_BYTES_ACKED)?, rate(m::TCP_BYTES_RECEIVED)?])
    }
}

/// What an observation of the host's connections found.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Number of connections in the last reading of all connections.
    pub connections: usize,
    /// The busiest connections; the one that carried most payload is first.
    pub flows: Vec<Flow>,
    /// Facts that could not be read.
    pub gaps: Vec<Gap>,
}
