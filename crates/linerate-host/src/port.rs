//! Source `port`: statistics of the port by which packets to the other end leave.
//!
//! They are read by netlink, never from /sys: in a new network namespace, a /sys that was mounted before still shows
//! the ports of the old namespace.

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::link::{self, Link};

use super::source::{Row, Source};
use super::{Query, gap, invalid, unreadable};

const METRICS: &[Metric] = &[
    metric::PORT_RX_BYTES,
    metric::PORT_TX_BYTES,
    metric::PORT_RX_PACKETS,
    metric::PORT_TX_PACKETS,
    metric::PORT_RX_DROPPED,
    metric::PORT_TX_DROPPED,
    metric::PORT_RX_ERRORS,
    metric::PORT_TX_ERRORS,
    metric::PORT_RX_MISSED,
    metric::PORT_RX_FIFO_ERRORS,
    metric::PORT_RX_CRC_ERRORS,
    metric::PORT_COLLISIONS,
    metric::PORT_CARRIER_CHANGES,
    metric::PORT_UP,
];

/// Reads the statistics of one port by its interface index.
pub(super) struct PortCounters {
    /// Interface index of the port, or the gap with the reason why it is unknown.
    pub(super) port: Result<u32, Gap>,
}

impl Source for PortCounters {
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        let index = self.port.clone()?;
        let reply = row.machine.query(&Query::Link(index));
        let reply =
            reply.map_err(|error| unreadable("port", &what(index), &error, "ip -s link"))?;
        let link = find(&reply, index).map_err(|why| gap("port", &why, "ip -s link"))?;
        row.push(METRICS, index, || link.name.to_string(), &values(&link)?);
        Ok(())
    }
}

fn what(index: u32) -> String {
    format!("the link with index {index}")
}

/// Finds the link with `index` in a reply; the error is the reason why it is not found.
pub(super) fn find(reply: &[u8], index: u32) -> Result<Link<'_>, String> {
    for link in link::parse(reply) {
        let link =
            link.map_err(|error| format!("cannot read {}: {}", what(index), invalid(error)))?;
        if link.index == index {
            return Ok(link);
        }
    }
    Err(format!("the reply does not hold {}", what(index)))
}

fn values(link: &Link<'_>) -> Result<[Option<u64>; METRICS.len()], Gap> {
    let why = "the kernel sent no statistics of the port";
    let stats = link.stats.ok_or_else(|| gap("port", why, "ip -s link"))?;
    Ok([
        Some(stats.rx_bytes),
        Some(stats.tx_bytes),
        Some(stats.rx_packets),
        Some(stats.tx_packets),
        Some(stats.rx_dropped),
        Some(stats.tx_dropped),
        Some(stats.rx_errors),
        Some(stats.tx_errors),
        Some(stats.rx_missed),
        Some(stats.rx_fifo_errors),
        Some(stats.rx_crc_errors),
        Some(stats.collisions),
        link.carrier_changes.map(u64::from),
        Some(u64::from(link.up)),
    ])
}
