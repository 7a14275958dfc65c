//! Source `softnet`: packets that each CPU of the machine received from ports.

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::softnet::Softnet as Counted;
use linerate_facts::parse::{softnet, sysctl};

use super::source::{Row, Source};
use super::{Machine, gap, read, unreadable};

const PATH: &str = "/proc/net/softnet_stat";
const ONLINE: &str = "/sys/devices/system/cpu/online";
const METRICS: &[Metric] =
    &[metric::SOFTNET_PROCESSED, metric::SOFTNET_DROPPED, metric::SOFTNET_SQUEEZED];

/// Reads `/proc/net/softnet_stat`.
pub(super) struct Softnet;

impl Source for Softnet {
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        let rows =
            read(row.machine, PATH, |text| softnet::parse(text).collect::<Result<Vec<_>, _>>())
                .map_err(|error| unreadable("softnet", PATH, &error, "mount -t proc proc /proc"))?;
        for (cpu, one) in numbers(row.machine, &rows)?.into_iter().zip(&rows) {
            let values = [one.processed, one.dropped, one.squeezed].map(Some);
            row.push(METRICS, cpu, || cpu.to_string(), &values);
        }
        row.sweep();
        Ok(())
    }
}

/// Returns the CPU of each row. If the kernel does not number the rows, they are those of the online CPUs, in order.
fn numbers(machine: &dyn Machine, rows: &[Counted]) -> Result<Vec<u32>, Gap> {
    if let Some(named) = rows.iter().map(|row| row.cpu).collect() {
        return Ok(named);
    }
    let online = read(machine, ONLINE, sysctl::list)
        .map_err(|error| unreadable("softnet", ONLINE, &error, "mount -t sysfs sysfs /sys"))?;
    if online.len() != rows.len() {
        return Err(gap("softnet", "its rows do not match the CPUs that are online", ""));
    }
    Ok(online)
}
