//! The activity of the machine's CPUs and processes between two readings.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use linerate_facts::cpu::{self, Busy, CpuTimes, Process};
use linerate_facts::parse::{proc_stat, task_stat};

use super::{PROC, Reader, numbered};
use crate::{gap, read};

/// Time between the two readings that show the activity: ten ticks of most kernels. With fewer ticks, a CPU that is
/// busy for 80 % of the time could not be distinguished from one that is busy for 90 %.
const WHOLE: Duration = Duration::from_millis(100);
/// Shorter time, after which an idle machine is known to be idle.
const SHORT: Duration = Duration::from_millis(30);
const TIMES: &str = "/proc/stat";

/// Most processes that are read: reading more would delay the page too long.
const PROCESSES_MAX: usize = 4096;
/// Number of processes that are reported, those with the most CPU time.
const REPORTED_MAX: usize = 16;

/// CPU time that a process has used so far, in ticks, and where it last ran.
pub(super) struct Used {
    name: String,
    ticks: u64,
    last_cpu: u32,
}

impl Reader<'_> {
    /// Measures the activity while it waits by `pause`: for the short time if all CPUs are idle and no process uses a
    /// CPU in it, otherwise for the whole time. Nothing is read between the two readings of the CPUs, so that this
    /// program's own work does not count.
    pub(super) fn busy(&mut self, pause: &dyn Fn(Duration)) -> Option<Busy> {
        let before = self.processes();
        let begin = self.times()?;
        pause(SHORT);
        let end = self.times()?;
        if !cpu::are_idle(&begin, &end) {
            return self.busy_for(WHOLE.saturating_sub(SHORT), pause, (&begin, &before), end);
        }
        let after = self.processes();
        let busy = self.busy_between((&begin, &before), (&end, &after))?;
        if busy.processes.is_empty() {
            return Some(busy);
        }
        // Work that is shorter than a tick shows only in the CPU time of its process. Its amount is measured over a new
        // whole time, so that reading the processes just now does not count.
        let Ok(begin) = self.later_times() else {
            return Some(busy);
        };
        self.busy_for(WHOLE, pause, (&begin, &after), begin.clone())
    }

    /// Computes the activity from `begin` until `pause` has lasted for `time`. A capture of an older version of
    /// linerate has no later reading: the interval then ends at `end`.
    fn busy_for(
        &mut self,
        time: Duration,
        pause: &dyn Fn(Duration),
        begin: (&[CpuTimes], &BTreeMap<u32, Used>),
        end: Vec<CpuTimes>,
    ) -> Option<Busy> {
        pause(time);
        let end = match self.later_times() {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => end,
            later => later.map_err(|error| self.miss("busy", TIMES, &error, PROC)).ok()?,
        };
        let after = self.processes();
        self.busy_between(begin, (&end, &after))
    }

    /// Computes the activity between two readings.
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
            // A process that started after the first reading has used all of its CPU time since then.
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
        processes.truncate(REPORTED_MAX);
        Some(Busy { cpus: cpu::loads(begin, end), processes })
    }

    pub(super) fn times(&mut self) -> Option<Vec<CpuTimes>> {
        let times = self.later_times();
        times.map_err(|error| self.miss("busy", TIMES, &error, PROC)).ok()
    }

    fn later_times(&self) -> io::Result<Vec<CpuTimes>> {
        read(self.machine, TIMES, |text| proc_stat::cpus(text).collect())
    }

    pub(super) fn processes(&mut self) -> BTreeMap<u32, Used> {
        let pids = numbered(&self.look_in("busy.processes", "/proc"), "");
        if pids.len() > PROCESSES_MAX {
            let why = format!("{} processes are more than {PROCESSES_MAX}", pids.len());
            self.lack(gap("facts.busy.processes", &why, "top"));
            return BTreeMap::new();
        }
        pids.into_iter().filter_map(|pid| Some((pid, self.used(pid)?))).collect()
    }

    /// Returns the CPU time that a process has used; `None` if it has ended or is not visible to this process.
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
    use std::cell::RefCell;
    use std::time::Duration;

    use linerate_facts::cpu::Busy;
    use linerate_facts::{Inventory, odd};

    use crate::testing::Fake;
    use crate::{Answer, Capture, Replay, inventory};

    const BEFORE: &str = "cpu0 0 0 0 0 0 0 0 0\n";
    const SHORT: u128 = 30;
    const REST: u128 = 70;
    const WHOLE: u128 = 100;

    fn task(pid: u32, name: &str, ticks: u64) -> String {
        let zeros = "0 ".repeat(23);
        format!("{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 {zeros}7 0 0\n")
    }

    /// Makes a machine whose CPUs and processes give these readings in turn. Process 9 is linerate itself.
    fn machine(times: &[&str], tasks: &[(u32, &str, &[u64])]) -> Fake {
        let mut fake = Fake::default().file("/proc/stat", times);
        let pids: Vec<String> = tasks.iter().map(|(pid, ..)| pid.to_string()).collect();
        let lists = vec![Answer::Reply(pids); 3];
        fake.0.lists.insert("/proc".to_owned(), lists);
        for (pid, name, ticks) in tasks {
            let texts: Vec<String> = ticks.iter().map(|t| task(*pid, name, *t)).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            fake = fake.file(&format!("/proc/{pid}/stat"), &texts);
        }
        fake.file("/proc/self/stat", &[&task(9, "linerate", 0)])
    }

    /// Returns the inventory of that machine, and for how many milliseconds each pause lasted.
    fn look(times: &[&str], tasks: &[(u32, &str, &[u64])]) -> (Inventory, Vec<u128>) {
        let waits = RefCell::new(Vec::new());
        let wait = |time: Duration| waits.borrow_mut().push(time.as_millis());
        let found = inventory(&Replay::new(machine(times, tasks).0), &wait);
        (found, waits.into_inner())
    }

    fn busy(after: &str, tasks: &[(u32, &str, &[u64])]) -> (Option<Busy>, Vec<String>) {
        let (found, _) = look(&[BEFORE, after], tasks);
        let gaps = found.gaps.into_iter().map(|g| g.what);
        let gaps = gaps.filter(|what| what.starts_with("facts.busy"));
        (found.busy, gaps.collect())
    }

    fn is_odd(inventory: &Inventory, id: &str) -> bool {
        odd::find(inventory).iter().any(|oddity| oddity.id == id)
    }

    #[test]
    fn who_is_busy_and_where() {
        let tasks = [
            (5, "a (b)", &[100, 150][..]),
            (6, "idle", &[3, 3]),
            (7, "most", &[0, 90]),
            (9, "linerate", &[0, 10]),
        ];
        let (busy, gaps) = busy("cpu0 50 0 25 20 0 0 5 0\n", &tasks);
        let busy = busy.unwrap();
        assert_eq!(busy.cpus.len(), 1);
        assert!((busy.cpus[0].busy - 0.8).abs() < 1e-9);
        let who: Vec<_> =
            busy.processes.iter().map(|p| (p.pid, p.name.as_str(), p.last_cpu)).collect();
        assert_eq!(who, [(7, "most", 7), (5, "a (b)", 7)]);
        assert!((busy.processes[1].cpus - 0.5).abs() < 1e-9);
        assert_eq!(gaps, [""; 0]);
    }

    #[test]
    fn files_that_stand_still_do_not_tell() {
        let (busy, gaps) = busy(BEFORE, &[]);
        assert_eq!((busy, gaps), (None, vec!["facts.busy".to_owned()]));
    }

    #[test]
    fn an_idle_machine_is_known_after_a_short_look() {
        let later = "cpu0 0 0 0 3 0 0 0 0\n";
        let tasks = [(5, "quiet", &[7, 7][..]), (9, "linerate", &[1, 2])];
        let (found, waits) = look(&[BEFORE, later], &tasks);
        assert_eq!(waits, [SHORT]);
        let busy = found.busy.unwrap();
        assert_eq!((busy.cpus[0].busy, busy.processes.len()), (0.0, 0));
    }

    #[test]
    fn a_machine_with_work_is_looked_at_for_the_whole_time() {
        let times = [BEFORE, "cpu0 1 0 0 2 0 0 0 0\n", "cpu0 5 0 0 5 0 0 0 0\n"];
        let (found, waits) = look(&times, &[(5, "worker", &[10, 14])]);
        assert_eq!(waits, [SHORT, REST]);
        let busy = found.busy.unwrap();
        assert!((busy.cpus[0].busy - 0.5).abs() < 1e-9, "{busy:?}");
        assert!((busy.processes[0].cpus - 0.4).abs() < 1e-9, "{busy:?}");
    }

    #[test]
    fn a_burst_at_the_start_is_no_busy_cpu_and_work_all_the_time_is() {
        let short = "cpu0 3 0 0 0 0 0 0 0\n";
        let is_busy = |end| is_odd(&look(&[BEFORE, short, end], &[]).0, "cpu-busy");
        assert!(!is_busy("cpu0 3 0 0 7 0 0 0 0\n"));
        assert!(!is_busy("cpu0 8 0 0 2 0 0 0 0\n"));
        assert!(is_busy("cpu0 9 0 0 1 0 0 0 0\n"));
    }

    #[test]
    fn time_stolen_in_a_short_look_is_weighed_over_the_whole_one() {
        let short = "cpu0 0 0 0 2 0 0 0 1\n";
        let is_stolen = |end| is_odd(&look(&[BEFORE, short, end], &[]).0, "cpu-steal");
        assert!(is_stolen("cpu0 0 0 0 9 0 0 0 1\n"));
        assert!(!is_stolen("cpu0 0 0 0 99 0 0 0 1\n"));
    }

    #[test]
    fn work_between_the_ticks_of_a_cpu_is_seen_in_its_process() {
        let times = ["3", "5", "15"].map(|idle| format!("cpu0 0 0 0 {idle} 0 0 0 0\n"));
        let times = [BEFORE, &times[0], &times[1], &times[2]];
        let (found, waits) = look(&times, &[(5, "player", &[10, 11, 14])]);
        assert_eq!(waits, [SHORT, WHOLE]);
        let processes = found.busy.unwrap().processes;
        assert!((processes[0].cpus - 0.3).abs() < 1e-9, "{processes:?}");
    }

    #[test]
    fn a_capture_with_two_readings_gives_what_it_gave() {
        // Captures of older versions, which always measured for a tenth of a second, have two readings.
        for (end, busy) in [("1 0 0 9", 0.1), ("0 0 0 10", 0.0)] {
            let end = format!("cpu0 {end} 0 0 0 0\n");
            let tasks = [(5, "worker", &[10, 11][..])];
            let (found, _) = look(&[BEFORE, &end], &tasks);
            let got = found.busy.unwrap();
            assert!((got.cpus[0].busy - busy).abs() < 1e-9, "{got:?}");
            assert!((got.processes[0].cpus - 0.1).abs() < 1e-9, "{got:?}");
            let gaps = found.gaps.iter().map(|gap| gap.what.as_str());
            let gaps: Vec<&str> = gaps.filter(|what| what.starts_with("facts.busy")).collect();
            assert_eq!(gaps, [""; 0]);
        }
    }

    #[test]
    fn what_a_look_found_replays() {
        let short = "cpu0 1 0 0 2 0 0 0 0\n";
        let whole = "cpu0 2 0 0 8 0 0 0 0\n";
        let idle = "cpu0 0 0 0 3 0 0 0 0\n";
        for times in [&[BEFORE, short, whole][..], &[BEFORE, idle]] {
            let tasks = [(5, "worker", &[10, 10][..])];
            let capture = Capture::new(Replay::new(machine(times, &tasks).0));
            let found = inventory(&capture, &|_| {});
            assert!(found.busy.is_some());
            let repeated = inventory(&Replay::new(capture.captured()), &|_| {});
            assert_eq!(repeated, found);
        }
    }
}
