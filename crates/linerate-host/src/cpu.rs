//! Source `cpu`: how each CPU of the machine spends its time.

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::proc_stat;
use linerate_record::Table;

use super::sheets::Sheets;
use super::source::Source;
use super::{Machine, read, unreadable};

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
pub(super) struct Cpu {
    sheets: Sheets<u32>,
}

impl Cpu {
    pub(crate) fn new() -> Self {
        Self { sheets: Sheets::new(METRICS, "") }
    }
}

impl Source for Cpu {
    fn observe(&mut self, machine: &dyn Machine, at: u64, gaps: &mut Vec<Gap>) -> Result<(), Gap> {
        let cpus = read(machine, PATH, |text| proc_stat::cpus(text).collect::<Result<Vec<_>, _>>());
        let cpus =
            cpus.map_err(|error| unreadable("cpu", PATH, &error, "mount -t proc proc /proc"))?;
        for times in cpus {
            let subject = || times.cpu.to_string();
            self.sheets.push(times.cpu, subject, at, &times.ticks.map(Some), gaps);
        }
        self.sheets.sweep(gaps);
        Ok(())
    }

    fn take(&mut self) -> Vec<Table> {
        self.sheets.take()
    }
}
