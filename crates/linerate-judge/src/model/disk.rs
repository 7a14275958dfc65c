//! What the disks below a file did while a load ran.

use super::ends::end;
use super::readings::{Window, gauge, mean, per_second};
use linerate_facts::block::BlockDevice;
use linerate_facts::metric as m;
use linerate_plan::path::{Direction, Side};
use linerate_record::{Record, Step, Table};

/// What the disks below a file did during a load of one direction, all disks together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskLoad {
    /// Bytes that they moved in the direction of the load, in a second.
    pub bytes: f64,
    /// Requests in the direction of the load that they completed, in a second.
    pub requests: f64,
    /// Mean number of requests in flight; `None` if none was ever seen.
    pub in_flight: Option<f64>,
}

/// The counters of the disks; `None` if no disk is known, or one of them was not read.
pub(super) fn disk(
    record: &Record,
    step: &Step,
    direction: Direction,
    window: Window,
) -> Option<DiskLoad> {
    let facts = &record.hosts.iter().find(|host| host.side == Side::Near)?.facts;
    let readings = end(step, Side::Near)?;
    let leaves = leaves(&facts.disks);
    let tables = leaves.map(|disk| readings.about("disk", |name| name == disk.name).next());
    let tables: Vec<&Table> = tables.collect::<Option<_>>()?;
    let [bytes, requests] = match direction {
        Direction::Forward => [m::DISK_WRITTEN_BYTES, m::DISK_WRITES],
        Direction::Reverse => [m::DISK_READ_BYTES, m::DISK_READS],
    };
    let sum = |metric| -> Option<f64> {
        tables.iter().map(|table| per_second(table, metric, window)).sum()
    };
    let flights = tables.iter().filter_map(|t| mean(gauge(t, m::DISK_IN_FLIGHT, window)));
    let in_flight = flights.reduce(|all, one| all + one);
    let load = DiskLoad { bytes: sum(bytes)?, requests: sum(requests)?, in_flight };
    (!tables.is_empty()).then_some(load)
}

/// The devices that are made of no other device.
fn leaves(disks: &[BlockDevice]) -> impl Iterator<Item = &BlockDevice> {
    let is_known = |name: &String| disks.iter().any(|disk| disk.name == *name);
    disks.iter().filter(move |disk| !disk.below.iter().any(is_known))
}
