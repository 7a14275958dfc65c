//! Source `disk`: what the block devices below a file did.

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::disk_stat;

use super::facts::block::storage;
use super::source::{Row, Source};
use super::{Machine, read, unreadable};

const METRICS: &[Metric] = &[
    metric::DISK_READS,
    metric::DISK_READ_BYTES,
    metric::DISK_WRITES,
    metric::DISK_WRITTEN_BYTES,
    metric::DISK_IN_FLIGHT,
    metric::DISK_BUSY,
    metric::DISK_QUEUE,
];

/// Reads the counters of each device below a path, from the one that holds it down to the disks.
pub(super) struct Disk {
    names: Vec<String>,
}

impl Disk {
    pub(super) fn new(machine: &dyn Machine, path: &str) -> Self {
        let storage = storage(machine);
        Self { names: storage.below(path).into_iter().map(|disk| disk.name.clone()).collect() }
    }
}

impl Source for Disk {
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        for name in &self.names {
            let path = format!("/sys/class/block/{name}/stat");
            let stat = read(row.machine, &path, disk_stat::parse);
            let stat = stat.map_err(|error| unreadable("disk", &path, &error, ""))?;
            let values = [
                stat.reads,
                stat.read_bytes,
                stat.writes,
                stat.written_bytes,
                stat.in_flight,
                stat.busy_ms,
                stat.queue_ms,
            ];
            row.push(METRICS, name.clone(), || name.clone(), &values.map(Some));
        }
        Ok(())
    }
}
