//! perftest: `ib_write_lat`, `ib_send_bw`, `raw_ethernet_bw` and others.
//!
//! Times of reads and atomic operations are whole round trips, those of writes and sends are halves. `MB/sec` is 2^20
//! bytes per second.
//= https://github.com/linux-rdma/perftest, src/perftest_parameters.c, print_report_lat and print_report_bw

mod json;
mod known;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use json::JSON;
pub(crate) use table::TABLE;

use linerate_plan::path::Direction;
use linerate_record::reported::{
    Carrier, Counted, Measured, Outcome, Setup, SizeRow, Sizes, Transfer, Trip,
};

use crate::format::Section;
use crate::launch::{behind, bound, itself};
use crate::reading::{command_of, flag, option, outcome, quoted, sizes};

/// An operation that perftest measures.
struct Verb {
    /// Name of the operation in titles.
    title: &'static str,
    /// Name of the operation in names of programs: `ib_NAME_bw`.
    program: &'static str,
    /// Name of the operation in results of linerate.
    operation: &'static str,
    /// Whether a time is a whole or a half round trip.
    trip: Trip,
    /// The direction of the payload.
    direction: Direction,
}

const fn verb(
    [title, program, operation]: [&'static str; 3],
    trip: Trip,
    direction: Direction,
) -> Verb {
    Verb { title, program, operation, trip, direction }
}

const VERBS: &[Verb] = &[
    verb(["RDMA_Write", "write", "RDMA write"], Trip::Half, Direction::Forward),
    verb(["RDMA_Read", "read", "RDMA read"], Trip::Whole, Direction::Reverse),
    verb(["Send", "send", "send"], Trip::Half, Direction::Forward),
    verb(["Atomic", "atomic", "atomic"], Trip::Whole, Direction::Forward),
];

/// A test, from its name: `RDMA_Write Bidirectional BW Test`.
#[derive(Debug, Clone, Copy)]
struct Test<'a> {
    name: &'a str,
    operation: &'static str,
    trip: Trip,
    /// The direction of the payload; `None` if the operation is unknown.
    direction: Option<Direction>,
    is_latency: bool,
    both: bool,
}

impl<'a> Test<'a> {
    /// The test with this name. Its words are separated by spaces, or in JSON by underscores.
    fn named(name: &'a str) -> Option<Self> {
        let is_latency = name.contains("Latency");
        let is_test = name.ends_with("Test") && (is_latency || name.contains("BW"));
        let verb = VERBS.iter().find(|verb| name.starts_with(verb.title))?;
        is_test.then_some(Self {
            name,
            operation: verb.operation,
            trip: verb.trip,
            direction: Some(verb.direction),
            is_latency,
            both: name.contains("Bidirectional"),
        })
    }

    /// The test of a table without a title, from the command that printed it.
    fn untitled(command: Option<&'a str>, is_latency: bool) -> Self {
        let end = if is_latency { "lat" } else { "bw" };
        let of = |verb: &'static Verb| {
            let name = format!("ib_{}_{end}", verb.program);
            let mut words = command?.split_whitespace();
            let program = words.find_map(|word| {
                let program = word.rsplit('/').next()?;
                (program == name).then_some(program)
            });
            Some((verb, program?))
        };
        let found = VERBS.iter().find_map(of);
        let verb = found.map(|(verb, _)| verb);
        Self {
            name: found.map_or("perftest", |(_, program)| program),
            operation: verb.map_or("", |verb| verb.operation),
            trip: verb.map_or(Trip::Unknown, |verb| verb.trip),
            direction: verb.map(|verb| verb.direction),
            is_latency,
            both: command.is_some_and(|command| flag(command, &["-b", "--bidirectional"])),
        }
    }

    /// Number of times in a round trip: 2 if a time is half of it.
    const fn halves(self) -> f64 {
        match self.trip {
            Trip::Half => 2.0,
            Trip::Whole | Trip::Unknown => 1.0,
        }
    }

    /// The result with these rows; there must be one or more. A single size in one direction becomes a transfer.
    fn outcome(self, line: u64, rows: Vec<SizeRow>, setup: Setup) -> Outcome {
        let plain = match rows.as_slice() {
            [row] if !self.is_latency && !self.both => self.transfer(row, &setup),
            _ => None,
        };
        let measured = plain.unwrap_or_else(|| {
            let trip = if self.is_latency { self.trip } else { Trip::Unknown };
            let table = sizes(self.operation, trip, rows);
            Measured::Sizes(Sizes { carrier: Some(Carrier::Rdma), both: self.both, setup, ..table })
        });
        outcome(&quoted(self.name), line, measured)
    }

    fn transfer(self, row: &SizeRow, setup: &Setup) -> Option<Measured> {
        // The client measures: in reads it is the receiver, otherwise the sender.
        let direction = self.direction?;
        let counted = match direction {
            Direction::Forward => Counted::Sender,
            Direction::Reverse => Counted::Receiver,
        };
        let mut transfer = Transfer::new(Carrier::Rdma, direction, row.rate?, counted);
        transfer.streams = setup.queues;
        transfer.messages = row.messages;
        transfer.size = Some(row.size);
        transfer.setup = Setup { messages: row.samples, ..setup.clone() };
        Some(Measured::Transfer(Box::new(transfer)))
    }
}

/// Whether times of single messages prove that their unit is the microsecond. With an option perftest prints CPU
/// cycles under the same heading, and these are whole numbers or halves.
fn are_no_cycles(times: &[f64]) -> bool {
    times.iter().any(|time| ((time * 2.0).round() - time * 2.0).abs() > 1e-6)
}

/// The command that ran a test of perftest, such as `ib_write_bw`.
fn command<'a>(section: &Section<'a>) -> Option<&'a str> {
    command_of(section, |program| {
        let is_ours = program.starts_with("ib_") || program.starts_with("raw_ethernet_");
        is_ours && (program.ends_with("_bw") || program.ends_with("_lat"))
    })
}

/// The set-up that a command requests.
fn setup(command: Option<&str>) -> Setup {
    let Some(command) = command else {
        return Setup::default();
    };
    let (cpu, node) = bound(command);
    Setup {
        hosts: itself(command),
        cpu,
        node,
        command: if cpu.is_some() || node.is_some() { behind(command) } else { String::new() },
        queues: option(command, &["-q", "--qp"]).and_then(|count| count.parse().ok()),
        ..Setup::default()
    }
}

/// Fewest iterations with which the rate of a server of `ib_send_bw` is kept: its clock starts late, so with fewer
/// the rate is far too high.
//= measured with Soft-RoCE and 5 iterations: 1279 MB/s at the server, 2.42 MB/s at the client
const FEWEST: u64 = 1_000;
