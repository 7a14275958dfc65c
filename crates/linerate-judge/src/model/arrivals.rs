//! The ports of the receiving host by which payload may arrive.

use super::ends::end;
use super::readings::{Window, per_second};
use linerate_facts::metric as m;
use linerate_plan::path::Side;
use linerate_record::Step;

/// A port of the receiver that has an address in the network of the receiver's own address.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// Name of the port.
    pub port: String,
    /// Bytes per second that the port received, for all programs.
    pub per_sec: f64,
}

/// The ports of a host by which its payload may arrive. Empty if only one port is in the network of the host's address,
/// or if they were not read.
pub(super) fn arrivals(step: &Step, side: Side, window: Window) -> Vec<Arrival> {
    let ports = end(step, side).into_iter();
    let ports = ports.flat_map(|end| end.about(m::ARRIVAL_BYTES.source, |_| true));
    let counted = ports.filter_map(|table| {
        Some(Arrival {
            port: table.subject.clone(),
            per_sec: per_second(table, m::ARRIVAL_BYTES, window)?,
        })
    });
    counted.collect()
}
