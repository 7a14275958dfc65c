//! What the machine is doing, from two readings.

use std::collections::BTreeMap;

use linerate_core::facts::cpu::{self, Busy, CpuTimes, Process};
use linerate_core::parse::proc_stat;
use linerate_core::parse::task_stat;

use super::{PROC, Reader, numbered};
use crate::host::gap;

/// More processes than this would take longer to read than a page may take.
const MOST: usize = 4096;
/// Processes that are kept.
const KEPT: usize = 16;

/// CPU time of a process so far.
pub(super) struct Used {
    name: String,
    ticks: u64,
    last_cpu: u32,
}

impl Reader<'_> {
    /// The work during `pause`. Nothing is read between the two readings of the CPUs, so that our own work does
    /// not count as the machine's.
    pub(super) fn busy(&mut self, pause: &dyn Fn()) -> Option<Busy> {
        let before = self.processes();
        let begin = self.times()?;
        pause();
        let end = self.times()?;
        let after = self.processes();
        self.busy_between((&begin, &before), (&end, &after))
    }

    /// What was done between two readings.
    pub(super) fn busy_between(
        &mut self,
        (begin, before): (&[CpuTimes], &BTreeMap<u32, Used>),
        (end, after): (&[CpuTimes], &BTreeMap<u32, Used>),
    ) -> Option<Busy> {
        let Some(elapsed) = cpu::elapsed(begin, end) else {
            let why = "no time passed between two readings of /proc/stat";
            self.lack(gap("facts.busy", why, ""));
            return None;
        };
        let own = self.machine.file("/proc/self/stat").ok();
        let own = own.and_then(|text| task_stat::identity(&text));
        let own = own.map(|(pid, _)| pid);
        let process = |(&pid, used): (&u32, &Used)| {
            // A process that is new since then has used all that it shows.
            let old = before.get(&pid).map_or(0, |old| old.ticks);
            let ticks = used.ticks.saturating_sub(old);
            (ticks > 0 && Some(pid) != own).then(|| Process {
                pid,
                name: used.name.clone(),
                cpus: ticks as f64 / elapsed,
                last_cpu: used.last_cpu,
            })
        };
        let mut processes: Vec<Process> = after.iter().filter_map(process).collect();
        processes.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
        processes.truncate(KEPT);
        Some(Busy {
            cpus: cpu::loads(begin, end),
            processes,
        })
    }

    pub(super) fn times(&mut self) -> Option<Vec<CpuTimes>> {
        self.get("busy", "/proc/stat", PROC, |text| {
            proc_stat::cpus(text).collect()
        })
    }

    pub(super) fn processes(&mut self) -> BTreeMap<u32, Used> {
        let pids = numbered(&self.look_in("busy.processes", "/proc"), "");
        if pids.len() > MOST {
            let why = format!("{} processes are more than {MOST}", pids.len());
            self.lack(gap("facts.busy.processes", &why, "top"));
            return BTreeMap::new();
        }
        pids.into_iter()
            .filter_map(|pid| Some((pid, self.used(pid)?)))
            .collect()
    }

    /// `None` if the process has ended, or is not visible to us.
    fn used(&self, pid: u32) -> Option<Used> {
        let text = self.machine.file(&format!("/proc/{pid}/stat")).ok()?;
        let stat = task_stat::parse(&text).ok()?;
        Some(Used {
            name: task_stat::identity(&text)?.1,
            ticks: stat.user_ticks.saturating_add(stat.system_ticks),
            last_cpu: u32::try_from(stat.cpu).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::facts::cpu::Busy;

    use crate::host::testing::Fake;
    use crate::host::{Answer, Replay, inventory};

    const BEFORE: &str = "cpu0 0 0 0 0 0 0 0 0\n";

    fn task(pid: u32, name: &str, ticks: u64) -> String {
        let zeros = "0 ".repeat(23);
        format!("{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 {zeros}7 0 0\n")
    }

    fn busy(after: &str, tasks: &[(u32, &str, [u64; 2])]) -> (Option<Busy>, Vec<String>) {
        let mut fake = Fake::default().file("/proc/stat", &[BEFORE, after]);
        let pids: Vec<String> = tasks.iter().map(|(pid, ..)| pid.to_string()).collect();
        let list = Answer::Reply(pids);
        fake.0
            .lists
            .insert("/proc".to_owned(), vec![list.clone(), list]);
        for (pid, name, ticks) in tasks {
            let texts = ticks.map(|t| task(*pid, name, t));
            let texts = [texts[0].as_str(), texts[1].as_str()];
            fake = fake.file(&format!("/proc/{pid}/stat"), &texts);
        }
        let fake = fake.file("/proc/self/stat", &[&task(9, "linerate", 0)]);
        let got = inventory(&Replay::new(fake.0), &|| {});
        let gaps = got.gaps.into_iter().map(|g| g.what);
        (
            got.busy,
            gaps.filter(|w| w.starts_with("facts.busy")).collect(),
        )
    }

    #[test]
    fn who_is_busy_and_where() {
        let tasks = [
            (5, "a (b)", [100, 150]),
            (6, "idle", [3, 3]),
            (7, "most", [0, 90]),
            (9, "linerate", [0, 10]),
        ];
        let (busy, gaps) = busy("cpu0 50 0 25 20 0 0 5 0\n", &tasks);
        let busy = busy.unwrap();
        assert_eq!(busy.cpus.len(), 1);
        assert!((busy.cpus[0].busy - 0.8).abs() < 1e-9);
        let who: Vec<_> = busy
            .processes
            .iter()
            .map(|p| (p.pid, p.name.as_str(), p.last_cpu))
            .collect();
        assert_eq!(who, [(7, "most", 7), (5, "a (b)", 7)]);
        assert!((busy.processes[1].cpus - 0.5).abs() < 1e-9);
        assert_eq!(gaps, [""; 0]);
    }

    #[test]
    fn files_that_stand_still_do_not_tell() {
        let (busy, gaps) = busy(BEFORE, &[]);
        assert_eq!((busy, gaps), (None, vec!["facts.busy".to_owned()]));
    }
}
