//! Source `clock`: the frequency of the CPUs to which threads are pinned.

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};

use super::number;
use super::source::{Row, Source};

const METRICS: &[Metric] = &[metric::CLOCK_NOW];

/// Reads `scaling_cur_freq`. On x86 it is the average over the CPU's last tick, from the CPU's own counters. On other
/// processors it is the frequency that the driver requested, which the CPU does not exceed for long.
///
/// On a kernel before 5.18, reading the file sleeps for 10 ms to measure. So this source is the last of a row, and each
/// row reads only one CPU.
pub(super) struct Clock {
    pub(super) cpus: Vec<u32>,
}

impl Source for Clock {
    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        // The first row is taken before the load begins.
        let turn = row.number.checked_sub(1);
        let Some(&cpu) = turn.and_then(|turn| self.cpus.get(turn % self.cpus.len().max(1))) else {
            return Ok(());
        };
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        // Without this file, as in most virtual machines, only the host's facts contain the frequency.
        let Some(kilohertz) = number(row.machine, "clock", &path)? else {
            return Ok(());
        };
        row.push(METRICS, cpu, || cpu.to_string(), &[Some(kilohertz)]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Fake, of};

    fn path(cpu: u32) -> String {
        format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")
    }

    #[test]
    fn each_row_after_the_first_reads_the_next_cpu() {
        let fake = Fake::default()
            .file(&path(2), &["3000000\n", "3100000\n"])
            .file(&path(7), &["800000\n"]);
        let mut sources = fake.sources();
        sources.watch_clocks(vec![2, 7]);
        (0..4).for_each(|at| sources.observe(at));
        let (tables, gaps) = of("clock", sources.take());
        assert_eq!(gaps, []);
        let rows: Vec<_> = tables
            .iter()
            .map(|t| (t.subject.as_str(), t.at.clone(), t.columns[0].values.clone()))
            .collect();
        let want = [("2", vec![1, 3], vec![3_000_000, 3_100_000]), ("7", vec![2], vec![800_000])];
        assert_eq!(rows, want);
    }

    #[test]
    fn a_machine_without_clock_control_has_neither_table_nor_gap_and_a_broken_one_a_gap() {
        let read = |fake: Fake| {
            let mut sources = fake.sources();
            sources.watch_clocks(vec![0]);
            (0..2).for_each(|at| sources.observe(at));
            of("clock", sources.take())
        };
        let absent = Fake::default().failing(&path(0), &[], rustix::io::Errno::NOENT);
        assert!(read(absent).1.is_empty());
        let (tables, gaps) = read(Fake::default().file(&path(0), &["<unknown>\n"]));
        assert_eq!((tables.len(), gaps.len()), (0, 1));
    }
}
