//! Finds the CPU that receives the packets of each stream, and how many streams share a CPU.

use std::collections::BTreeMap;

use super::Load;
use super::load::load;
use super::readings::{Window, gauge};
use linerate_facts::metric::SOCKET_CPU;
use linerate_plan::path::Direction;
use linerate_record::{EndReadings, Record, Step};

/// The streams whose packets one CPU of the receiver receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crowd {
    /// Number of the CPU that receives the packets.
    pub cpu: u32,
    /// Number of streams whose packets it receives.
    pub streams: u32,
}

impl Load {
    /// The CPU that receives the packets of most streams; `None` if it was not read for each stream, or changed during
    /// the load.
    pub fn crowd(&self) -> Option<Crowd> {
        let mut streams: BTreeMap<u32, u32> = BTreeMap::new();
        for thread in &self.receivers {
            *streams.entry(thread.takes_in?).or_default() += 1;
        }
        let most = streams.into_iter().max_by_key(|(_, streams)| *streams);
        most.map(|(cpu, streams)| Crowd { cpu, streams })
    }
}

/// The CPU that receives the packets of most streams in one step of a record.
pub fn crowd(record: &Record, step: &Step, direction: Direction) -> Option<Crowd> {
    load(record, step, direction)?.crowd()
}

/// The CPU that received the packets of one stream in every sample; `None` if it changed.
pub(super) fn takes_in(
    receiving: &EndReadings,
    set: u32,
    stream: u32,
    window: Window,
) -> Option<u32> {
    let subject = format!("s{set}/{stream}");
    let table = receiving.about("socket", |s| s == subject).next()?;
    let mut seen = gauge(table, SOCKET_CPU, window);
    let first = seen.next()?;
    let stayed = first >= 0.0 && seen.all(|cpu| (cpu - first).abs() < 0.5);
    stayed.then_some(first as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_record::{Column, Table};

    const WHOLE: Window = Window { from: 0, to: 2 };

    fn end(cpus: Vec<i64>) -> EndReadings {
        let column = Column {
            name: SOCKET_CPU.name.into(),
            unit: SOCKET_CPU.unit,
            kind: SOCKET_CPU.kind,
            values: cpus,
        };
        EndReadings {
            tables: vec![Table {
                source: "socket".to_owned(),
                subject: "s4/1".to_owned(),
                at: vec![0, 1, 2],
                columns: vec![column],
            }],
            ..EndReadings::default()
        }
    }

    #[test]
    fn a_cpu_counts_where_it_took_in_all_packets_of_the_stream() {
        let of = |cpus: &[i64], stream| takes_in(&end(cpus.to_vec()), 4, stream, WHOLE);
        assert_eq!(of(&[3, 3, 3], 1), Some(3));
        assert_eq!(of(&[3, 3, 2], 1), None, "it moved");
        assert_eq!(of(&[-1, -1, -1], 1), None, "no packet came");
        assert_eq!(of(&[3, 3, 3], 0), None, "of another stream");
    }
}
