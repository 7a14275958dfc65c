//! What the disks below a file did while a load ran.

use super::derive::round_trip_rate;
use super::ends::end;
use super::readings::{Window, gauge, per_second};
use linerate_facts::HostFacts;
use linerate_facts::block::{BlockDevice, IoLimit, Layer};
use linerate_facts::metric::{self as m, Metric};
use linerate_plan::Pattern;
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::file::writes;
use linerate_record::{EndReadings, Record, Step};

/// What the disks below a file did under a load, all disks together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DiskLoad {
    /// What was done in the direction of the load.
    pub own: Done,
    /// What was done in the other direction.
    pub other: Done,
    /// Mean number of requests in flight at the disks, over the whole time.
    pub in_flight: f64,
    /// Share of the time in which the busiest disk had a request in flight.
    pub busy: f64,
    /// Highest temperature of a disk, in thousandths of a degree Celsius; `None` if none was read.
    pub hottest: Option<f64>,
}

/// Bytes and requests in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Done {
    /// Bytes in a second.
    pub bytes: f64,
    /// Requests in a second, after the kernel has merged and split them.
    pub requests: f64,
}

impl Done {
    /// Mean bytes of a request; `None` if there was none.
    pub fn size(self) -> Option<f64> {
        (self.requests > 0.0).then(|| self.bytes / self.requests)
    }
}

impl Done {
    /// What is left without a part of it.
    fn less(self, part: Self) -> Self {
        Self {
            bytes: (self.bytes - part.bytes).max(0.0),
            requests: (self.requests - part.requests).max(0.0),
        }
    }
}

impl std::ops::Add for Done {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, requests: self.requests + other.requests }
    }
}

impl std::ops::Add for DiskLoad {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            own: self.own + other.own,
            other: self.other + other.other,
            in_flight: self.in_flight + other.in_flight,
            busy: self.busy.max(other.busy),
            hottest: self.hottest.into_iter().chain(other.hottest).reduce(f64::max),
        }
    }
}

/// What the disks below the file of a load did; `None` if no disk is known, or one of them was not read.
pub(super) fn disk_load(
    record: &Record,
    step: &Step,
    direction: Direction,
    window: Window,
) -> Option<DiskLoad> {
    let facts = &record.hosts.iter().find(|host| host.side == Side::Near)?.facts;
    let readings = end(step, Side::Near)?;
    let each = leaves(&facts.disks).map(|disk| of_disk(disk, readings, direction, window));
    let all: DiskLoad = each.reduce(|a, b| Some(a? + b?))??;
    let singles = singles(record, step);
    Some(match singles {
        Some((way, single)) if way == direction => DiskLoad { own: all.own.less(single), ..all },
        Some((_, single)) => DiskLoad { other: all.other.less(single), ..all },
        None => all,
    })
}

/// The single operations that were timed beside the load, and their direction; `None` if there were none.
fn singles(record: &Record, step: &Step) -> Option<(Direction, Done)> {
    let requests = round_trip_rate(record, step)?;
    let sets = record.sets.iter().filter(|set| step.plan.sets.contains(&set.plan.id));
    sets.map(|set| &set.plan).find_map(|plan| {
        let Pattern::PingPong { size, .. } = plan.pattern else { return None };
        let writes = writes(&plan.knobs.options);
        let direction = if writes { Direction::Forward } else { Direction::Reverse };
        Some((direction, Done { bytes: requests * size.0 as f64, requests }))
    })
}

/// What a disk did. The paths to it are counted where the kernel does not count the disk itself, as before Linux 6.4.
fn of_disk(
    disk: &BlockDevice,
    readings: &EndReadings,
    direction: Direction,
    window: Window,
) -> Option<DiskLoad> {
    let own = of_device(&disk.name, readings, direction, window)?;
    let paths = disk.paths.iter().filter(|path| !path.device.is_empty());
    let paths = paths.map(|path| of_device(&path.device, readings, direction, window));
    let paths = paths.reduce(|a, b| Some(a? + b?)).flatten();
    Some(
        paths
            .filter(|sum| (own.own + own.other).bytes < (sum.own + sum.other).bytes)
            .unwrap_or(own),
    )
}

fn of_device(
    name: &str,
    readings: &EndReadings,
    direction: Direction,
    window: Window,
) -> Option<DiskLoad> {
    let table = readings.about("disk", |subject| subject == name).next()?;
    let rate = |metric: Metric| per_second(table, metric, window);
    let read = Done { bytes: rate(m::DISK_READ_BYTES)?, requests: rate(m::DISK_READS)? };
    let written = Done { bytes: rate(m::DISK_WRITTEN_BYTES)?, requests: rate(m::DISK_WRITES)? };
    let (own, other) = match direction {
        Direction::Forward => (written, read),
        Direction::Reverse => (read, written),
    };
    // The kernel counts milliseconds.
    let [in_flight, busy] = [m::DISK_QUEUE, m::DISK_BUSY].map(|metric| Some(rate(metric)? / 1e3));
    Some(DiskLoad {
        own,
        other,
        in_flight: in_flight?,
        busy: busy?.min(1.0),
        hottest: gauge(table, m::DISK_TEMPERATURE, window).reduce(f64::max),
    })
}

/// The devices that are made of no other device.
pub(crate) fn leaves(disks: &[BlockDevice]) -> impl Iterator<Item = &BlockDevice> {
    let is_known = |name: &String| disks.iter().any(|disk| disk.name == *name);
    disks.iter().filter(move |disk| !disk.below.iter().any(is_known))
}

/// Requests that the disks below a file can hold at once, if `threads` threads start them: each thread uses the hardware
/// queue of its CPU. `None` if the limit of a disk is unknown.
pub(crate) fn room(facts: &HostFacts, threads: u32) -> Option<u64> {
    let of = |disk: &BlockDevice| {
        let queue = &disk.queue;
        let queues = queue.queues.unwrap_or(1).clamp(1, threads.max(1).into());
        let waiting = queue.requests?.saturating_mul(queues);
        Some(queue.depth.map_or(waiting, |depth| depth.min(waiting)))
    };
    leaves(&facts.disks).map(of).reduce(|a, b| Some(a?.saturating_add(b?)))?
}

/// The bytes of the largest request that the kernel sends to a disk below a file, the least of all layers; `None` if
/// unknown.
pub(crate) fn largest(facts: &HostFacts) -> Option<u64> {
    facts.disks.iter().filter_map(|disk| disk.queue.largest_scattered()).map(|size| size.0).min()
}

/// Whether one of the devices below a file belongs to a layer.
pub(crate) fn has_layer(facts: &HostFacts, layer: Layer) -> bool {
    facts.disks.iter().any(|disk| disk.layer == layer)
}

/// What a limit allows in a direction: bytes, and operations, in a second.
pub(crate) fn allowed(limit: &IoLimit, direction: Direction) -> [Option<u64>; 2] {
    match direction {
        Direction::Forward => [limit.written_bytes, limit.writes],
        Direction::Reverse => [limit.read_bytes, limit.reads],
    }
}
