//! Source `disk`: what the block devices below a file did.

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::{disk_stat, sysctl};

use super::facts::block::{held, sensor};
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
    metric::DISK_TEMPERATURE,
];

/// Reads the counters of each device below a path, from the one that holds it down to the disks and to the single paths
/// to them.
pub(super) struct Disk {
    devices: Vec<Device>,
}

struct Device {
    name: String,
    /// The file with its temperature, if it has a sensor.
    sensor: Option<String>,
}

impl Disk {
    pub(super) fn new(machine: &dyn Machine, path: &str) -> Self {
        let below = held(machine, path).into_iter();
        let devices = below.flat_map(|disk| {
            let paths = disk.paths.iter().filter(|path| !path.device.is_empty());
            let paths = paths.map(|path| Device { name: path.device.clone(), sensor: None });
            let sensor = sensor(machine, &disk).map(|folder| format!("{folder}/temp1_input"));
            [Device { name: disk.name, sensor }].into_iter().chain(paths.collect::<Vec<_>>())
        });
        Self { devices: devices.collect() }
    }
}

impl Source for Disk {
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        for Device { name, sensor } in &self.devices {
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
            let temperature =
                sensor.as_ref().and_then(|path| read(row.machine, path, sysctl::number).ok());
            let values: Vec<_> = values.map(Some).into_iter().chain([temperature]).collect();
            row.push(METRICS, name.clone(), || name.clone(), &values);
        }
        Ok(())
    }
}
