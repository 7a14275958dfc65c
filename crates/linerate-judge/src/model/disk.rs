//! What the disks below a file did while a load ran.

use super::ends::end;
use super::readings::{Window, per_second};
use linerate_facts::block::BlockDevice;
use linerate_facts::metric as m;
use linerate_plan::path::{Direction, Side};
use linerate_record::{Record, Step};

/// Bytes per second that the disks below a file moved in the direction of a load, all disks together; `None` if no disk is
/// known, or one of them was not read.
pub(super) fn disk_bytes(
    record: &Record,
    step: &Step,
    direction: Direction,
    window: Window,
) -> Option<f64> {
    let facts = &record.hosts.iter().find(|host| host.side == Side::Near)?.facts;
    let readings = end(step, Side::Near)?;
    let counter = match direction {
        Direction::Forward => m::DISK_WRITTEN_BYTES,
        Direction::Reverse => m::DISK_READ_BYTES,
    };
    let bytes = |disk: &BlockDevice| {
        let table = readings.about("disk", |name| name == disk.name).next()?;
        per_second(table, counter, window)
    };
    let each: Vec<f64> = leaves(&facts.disks).map(bytes).collect::<Option<_>>()?;
    (!each.is_empty()).then(|| each.iter().sum())
}

/// The devices that are made of no other device.
fn leaves(disks: &[BlockDevice]) -> impl Iterator<Item = &BlockDevice> {
    let is_known = |name: &String| disks.iter().any(|disk| disk.name == *name);
    disks.iter().filter(move |disk| !disk.below.iter().any(is_known))
}
