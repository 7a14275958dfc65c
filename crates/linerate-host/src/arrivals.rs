//! Source `arrival`: bytes received by each port that has an address in the same IP network as this end's address.
//!
//! A Linux host accepts packets for any of its addresses on any of its ports. Packets may then arrive by another port
//! than the one that owns the address.

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};

use super::port::find;
use super::source::{Row, Source};
use super::{Query, gap, unreadable};

const METRICS: &[Metric] = &[metric::ARRIVAL_BYTES];
/// Number of rows of the sampler per reading: only means over a step are needed.
const EVERY: usize = 5;

/// Reads the received bytes of several ports.
pub(super) struct Arrivals {
    /// Interface indices of the ports.
    pub(super) ports: Vec<u32>,
}

impl Source for Arrivals {
    fn every(&self) -> usize {
        EVERY
    }

    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        for &index in &self.ports {
            let reply = row.machine.query(&Query::Link(index)).map_err(|error| {
                let what = format!("the link with index {index}");
                unreadable("arrival", &what, &error, "ip -s link")
            })?;
            let link = find(&reply, index).map_err(|why| gap("arrival", &why, "ip -s link"))?;
            let received = link.stats.map(|stats| stats.rx_bytes);
            row.push(METRICS, index, || link.name.to_string(), &[received]);
        }
        row.sweep();
        Ok(())
    }
}
