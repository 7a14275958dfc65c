//! Source `arrival`: bytes that ports in the network of this end's address received.
//!
//! A host answers for all its addresses on all its ports. Packets may then arrive by another port than the one that
//! owns the address.

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_record::Table;

use super::port::find;
use super::sheets::Sheets;
use super::source::Source;
use super::{Machine, Query, gap, unreadable};

const METRICS: &[Metric] = &[metric::ARRIVAL_BYTES];
/// Number of rows per reading: only means over a step are needed.
const EVERY: usize = 5;

/// Reads the statistics of several ports.
pub(super) struct Arrivals {
    ports: Vec<u32>,
    /// Number of rows that were begun.
    rows: usize,
    sheets: Sheets<u32>,
}

impl Arrivals {
    /// Makes a reader of the ports with these indices.
    pub(crate) fn new(ports: Vec<u32>) -> Self {
        Self { ports, rows: 0, sheets: Sheets::new(METRICS, "") }
    }
}

impl Source for Arrivals {
    fn observe(&mut self, machine: &dyn Machine, at: u64, gaps: &mut Vec<Gap>) -> Result<(), Gap> {
        self.rows += 1;
        if self.rows % EVERY != 1 {
            return Ok(());
        }
        for &index in &self.ports {
            let reply = machine.query(&Query::Link(index)).map_err(|error| {
                let what = format!("the link with index {index}");
                unreadable("arrival", &what, &error, "ip -s link")
            })?;
            let link = find(&reply, index).map_err(|why| gap("arrival", &why, "ip -s link"))?;
            let received = link.stats.map(|stats| stats.rx_bytes);
            self.sheets.push(index, || link.name.to_string(), at, &[received], gaps);
        }
        self.sheets.sweep(gaps);
        Ok(())
    }

    fn take(&mut self) -> Vec<Table> {
        self.rows = 0;
        self.sheets.take()
    }
}
