//! The limits of the memory that the hosts' kernels give TCP.

use super::ends::end;
use super::readings::{Window, gauge, mean, per_second};
use linerate_facts::metric as m;
use linerate_plan::path::Side;
use linerate_record::{Step, Table};
use linerate_units::Bytes;

/// A limit of the memory that TCP may use on a host.
#[derive(Debug, Clone, PartialEq)]
pub struct SocketMemory {
    /// Path of the file with the limit of a control group, or the name of the system's setting.
    pub limit: String,
    /// The limit; `None` if this network namespace does not show it.
    pub most: Option<Bytes>,
    /// The largest memory in use at any reading.
    pub used: Bytes,
    /// The largest memory that was ever in use; `None` if that is not counted.
    pub ever: Option<Bytes>,
    /// Share of the readings in which the kernel saved memory on the whole system; `None` for control groups, and if it
    /// was not read.
    pub pressed: Option<f64>,
    /// How often per second a request for more memory was refused, or the limit was exceeded.
    pub refused: f64,
}

/// The memory limits of an end; `None` if they were not read.
pub(super) fn socket_memory(step: &Step, side: Side, window: Window) -> Option<Vec<SocketMemory>> {
    let tables = end(step, side)?.about(m::SOCKET_MEMORY_USED.source, |_| true);
    let limits: Vec<SocketMemory> = tables.filter_map(|table| limit(table, window)).collect();
    (!limits.is_empty()).then_some(limits)
}

fn limit(table: &Table, window: Window) -> Option<SocketMemory> {
    let most = |metric| gauge(table, metric, window).reduce(f64::max);
    let bytes = |value: f64| Bytes(value.max(0.0) as u64);
    Some(SocketMemory {
        limit: table.subject.clone(),
        most: most(m::SOCKET_MEMORY_LIMIT).map(bytes),
        ever: most(m::SOCKET_MEMORY_EVER).map(bytes),
        used: bytes(most(m::SOCKET_MEMORY_USED)?),
        pressed: mean(gauge(table, m::SOCKET_MEMORY_PRESSED, window)),
        refused: per_second(table, m::SOCKET_MEMORY_REFUSED, window)?,
    })
}
