//! Source `cpu`: how each CPU of the machine spends its time, in ticks.

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::proc_stat;

use super::source::{Row, Source};
use super::{read, unreadable};

const PATH: &str = "/proc/stat";
const METRICS: &[Metric] = &[
    metric::CPU_USER,
    metric::CPU_NICE,
    metric::CPU_SYSTEM,
    metric::CPU_IDLE,
    metric::CPU_IOWAIT,
    metric::CPU_IRQ,
    metric::CPU_SOFTIRQ,
    metric::CPU_STEAL,
];

/// Reads `/proc/stat`.
pub(super) struct Cpu;

impl Source for Cpu {
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        let cpus =
            read(row.machine, PATH, |text| proc_stat::cpus(text).collect::<Result<Vec<_>, _>>());
        let cpus =
            cpus.map_err(|error| unreadable("cpu", PATH, &error, "mount -t proc proc /proc"))?;
        for times in cpus {
            let subject = || times.cpu.to_string();
            row.push(METRICS, times.cpu, subject, &times.ticks.map(Some));
        }
        row.sweep();
        Ok(())
    }
}
