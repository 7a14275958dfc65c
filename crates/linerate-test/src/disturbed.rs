//! Disturbances of the machine while a test measures. They are found independently of the tested program.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::iter;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two wake-ups of the watch.
const BEAT: Duration = Duration::from_millis(10);
/// A wake-up that is late by this time means that the machine was suspended. The scheduler prefers a thread that slept:
/// on a CPU that is shared with four other threads, it is late by only a few time slices of 3 ms.
const STOOD_STILL: Duration = Duration::from_millis(100);
/// Share of all CPU time from which the time of a hypervisor, or of other programs, counts as a disturbance.
const TAKEN: f64 = 0.10;

/// Disturbances of the machine during a [`Watch`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disturbance {
    /// Largest delay of a wake-up.
    pub late: Duration,
    /// Share of the CPU time that the hypervisor used, 0 to 1.
    pub stolen: f64,
    /// Share of the CPU time that programs other than this test used, 0 to 1.
    pub others: f64,
}

impl Disturbance {
    /// Returns whether any of these values can change the figures of a test.
    pub fn counts(&self) -> bool {
        self.late >= STOOD_STILL || self.stolen >= TAKEN || self.others >= TAKEN
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.counts() {
            return write!(f, "the machine was quiet");
        }
        write!(
            f,
            "a thread woke up {} ms late; the hypervisor took {:.0} % and other programs {:.0} % of the CPU time",
            self.late.as_millis(),
            self.stolen * 100.0,
            self.others * 100.0
        )
    }
}

/// Watches the machine from [`Watch::begin`] to [`Watch::end`].
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    /// Largest delay of a wake-up so far, in nanoseconds.
    late: Arc<AtomicU64>,
    /// Thread of the watch; `None` once the watch has ended.
    beat: Option<JoinHandle<()>>,
    cpu: CpuTime,
    processes: Processes,
}

impl Watch {
    /// Starts to watch the machine.
    ///
    /// # Panics
    /// If no thread can be started.
    pub fn begin() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let late = Arc::new(AtomicU64::new(0));
        let beat = thread::spawn({
            let (stop, late) = (Arc::clone(&stop), Arc::clone(&late));
            move || watch(&stop, &late)
        });
        Self { stop, late, beat: Some(beat), cpu: CpuTime::read(), processes: Processes::read() }
    }

    /// Stops watching, and returns the disturbances.
    ///
    /// # Panics
    /// If the thread of the watch panicked.
    pub fn end(mut self) -> Disturbance {
        self.stop.store(true, Ordering::Relaxed);
        let beat = self.beat.take().expect("a watch ends once");
        beat.join().expect("a thread that does not panic");
        let now = CpuTime::read();
        let all = now.all.saturating_sub(self.cpu.all).max(1) as f64;
        let others = Processes::read().taken_since(&self.processes) as f64;
        Disturbance {
            late: Duration::from_nanos(self.late.load(Ordering::Relaxed)),
            stolen: now.stolen.saturating_sub(self.cpu.stolen) as f64 / all,
            others: (others / all).min(1.0),
        }
    }
}

/// Ends the watch's thread, also if a test fails while it is watched.
impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn watch(stop: &AtomicBool, late: &AtomicU64) {
    while !stop.load(Ordering::Relaxed) {
        let slept = Instant::now();
        thread::sleep(BEAT);
        late.fetch_max(over(slept.elapsed()), Ordering::Relaxed);
    }
}

/// Returns by how many nanoseconds a thread that slept for a beat woke up too late.
fn over(slept: Duration) -> u64 {
    slept.saturating_sub(BEAT).as_nanos() as u64
}

/// CPU time of all CPUs in ticks, from `/proc/stat`.
#[derive(Debug)]
struct CpuTime {
    all: u64,
    stolen: u64,
}

impl CpuTime {
    fn read() -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        Self::parse(text.lines().next().unwrap_or_default())
    }

    /// Parses `cpu user nice system idle iowait irq softirq steal guest guest_nice`.
    /// Guest time is already part of user time, so it is left out.
    fn parse(line: &str) -> Self {
        let ticks: Vec<u64> =
            line.split_whitespace().skip(1).take(8).map(|n| n.parse().unwrap_or(0)).collect();
        Self { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or(0) }
    }
}

/// A process by its id and start time. A later process with the same id is a different one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Process {
    id: u32,
    started: u64,
}

/// The fields of a `/proc/PID/stat` file that are needed here.
#[derive(Debug, Clone, Copy)]
struct Stat {
    process: Process,
    parent: u32,
    session: u32,
    /// CPU time that the process used itself, in ticks.
    own: u64,
    /// CPU time of its ended children, and of their ended children, in ticks.
    children: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        let (id, rest) = text.split_once(' ')?;
        // The name may contain any character, but it ends at the last parenthesis.
        let fields: Vec<&str> = rest.rsplit_once(") ")?.1.split(' ').collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            process: Process { id: id.parse().ok()?, started: number(19)? },
            parent: number(1)? as u32,
            session: number(3)? as u32,
            own: number(11)? + number(12)?,
            children: number(13)? + number(14)?,
        })
    }

    fn ticks(&self) -> u64 {
        self.own + self.children
    }
}

/// Id of the process whose children are the kernel threads. They also work for a test's own load, so they do not count.
const KERNEL: u32 = 2;
/// Id of the process that becomes the parent of orphans, unless an ancestor of theirs has requested to adopt them.
const INIT: u32 = 1;

/// All processes at a moment, without kernel threads.
#[derive(Debug)]
struct Processes {
    /// Processes that are neither this process nor its descendants.
    others: HashMap<Process, Stat>,
    /// Sessions of this process and of its descendants.
    sessions: HashSet<u32>,
}

impl Processes {
    fn read() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten();
        let stats = entries.filter_map(|entry| {
            let path = entry.ok()?.path();
            path.file_name()?.to_str()?.parse::<u32>().ok()?;
            Stat::parse(&fs::read_to_string(path.join("stat")).ok()?)
        });
        Self::of(&stats.collect::<Vec<_>>(), process::id())
    }

    fn of(stats: &[Stat], own: u32) -> Self {
        let parents: HashMap<u32, u32> = stats.iter().map(|s| (s.process.id, s.parent)).collect();
        let ancestors: HashSet<u32> = line_of(&parents, own).chain([INIT]).collect();
        let (mut others, mut sessions) = (HashMap::new(), HashSet::new());
        for stat in stats {
            let line: Vec<u32> = line_of(&parents, stat.process.id).collect();
            if line.contains(&own) {
                sessions.insert(stat.session);
            } else if !line.contains(&KERNEL) {
                // If an ancestor adopts orphans of this process, their
                // CPU time counts as that of its children when they end.
                let adopts = ancestors.contains(&stat.process.id);
                let children = if adopts { 0 } else { stat.children };
                others.insert(stat.process, Stat { children, ..*stat });
            }
        }
        Self { others, sessions }
    }

    /// Returns the ticks that other processes used since `before`,
    /// including processes that have started or ended since then.
    ///
    /// When a process ends, all its CPU time is added to that of its parent, including time from before the watch
    /// began. So the earlier time is subtracted from the growth of the nearest ancestor that still exists. No tick is
    /// counted twice, unless an ancestor ended before its child did; then at most the earlier time of the child is. A
    /// new process counts from its start, unless it is in a session of this test: then it may be an orphan of the test.
    fn taken_since(&self, before: &Self) -> u64 {
        let mut grown: HashMap<u32, u64> = HashMap::new();
        for (who, now) in &self.others {
            let is_ours = |all: &Self| all.sessions.contains(&now.session);
            let used = match before.others.get(who) {
                Some(then) => now.ticks().saturating_sub(then.ticks()),
                None if is_ours(before) || is_ours(self) => 0,
                None => now.ticks(),
            };
            grown.insert(who.id, used);
        }
        let stats = before.others.values();
        let parents: HashMap<u32, u32> = stats.map(|s| (s.process.id, s.parent)).collect();
        let ended = before.others.iter();
        for (who, then) in ended.filter(|(who, _)| !self.others.contains_key(who)) {
            let heir = line_of(&parents, who.id).find(|id| grown.contains_key(id));
            if let Some(used) = heir.and_then(|id| grown.get_mut(&id)) {
                *used = used.saturating_sub(then.ticks());
            }
        }
        grown.values().sum()
    }
}

/// Returns a process and its ancestors, at most 64: ids may be reused while the table is read, and then form a circle.
fn line_of(parents: &HashMap<u32, u32>, id: u32) -> impl Iterator<Item = u32> {
    iter::successors(Some(id), |id| parents.get(id).copied()).take(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Disturbance =
        Disturbance { late: Duration::from_millis(99), stolen: 0.099, others: 0.099 };

    #[test]
    fn each_kind_counts_from_its_threshold_on() {
        assert!(!QUIET.counts());
        let late = Disturbance { late: Duration::from_millis(100), ..QUIET };
        let stolen = Disturbance { stolen: 0.1, ..QUIET };
        let others = Disturbance { others: 0.1, ..QUIET };
        for one in [late, stolen, others] {
            assert!(one.counts(), "{one:?}");
            assert!(one.to_string().contains("ms late"), "{one}");
        }
        assert_eq!(QUIET.to_string(), "the machine was quiet");
    }

    #[test]
    fn stolen_time_is_the_eighth_column_and_guests_do_not_count_twice() {
        let time = CpuTime::parse("cpu  10 20 30 40 50 60 70 80 1000 2000");
        assert_eq!((time.all, time.stolen), (360, 80));
        assert_eq!(CpuTime::parse("").all, 0);
    }

    #[test]
    fn a_name_with_parentheses_and_spaces_is_read() {
        let text = "42 (a) (b c)) S 7 1 3 0 -1 0 0 0 0 0 5 6 20 40 20 0 1 0 99 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.process.id, stat.parent, stat.session), (42, 7, 3));
        assert_eq!((stat.own, stat.children, stat.process.started), (11, 60, 99));
        assert!(Stat::parse("42 (a").is_none() && Stat::parse("").is_none());
    }

    /// A process that has its own session.
    fn stat(id: u32, parent: u32, own: u64, children: u64) -> Stat {
        Stat { process: Process { id, started: 1 }, parent, session: id, own, children }
    }

    /// Adds the test and its ancestors: the test is process 10, a child of 9, which is a child of 1.
    fn processes(others: &[Stat]) -> Processes {
        let own = [stat(1, 0, 5, 5), stat(9, 1, 5, 5), stat(10, 9, 5, 5)];
        Processes::of(&[&own, others].concat(), 10)
    }

    #[test]
    fn descendants_and_kernel_threads_are_not_other_processes() {
        // The test started 11, which started 12. Process 20 does not belong to the test.
        let all = [
            stat(2, 0, 5, 0),
            stat(3, 2, 5, 0),
            stat(11, 10, 5, 0),
            stat(12, 11, 5, 0),
            stat(20, 1, 5, 0),
        ];
        let found = processes(&all);
        let mut ids: Vec<u32> = found.others.keys().map(|p| p.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, [1, 9, 20]);
        assert_eq!(found.sessions, HashSet::from([10, 11, 12]));
        // If the parents form a circle, the search ends all the same.
        let circle = Processes::of(&[stat(30, 31, 5, 0), stat(31, 30, 5, 0)], 10);
        assert_eq!(circle.others.len(), 2);
    }

    fn taken(before: &[Stat], after: &[Stat]) -> u64 {
        processes(after).taken_since(&processes(before))
    }

    #[test]
    fn what_others_use_counts_with_what_their_children_used_that_ended() {
        let before = [stat(20, 1, 100, 1000)];
        assert_eq!(taken(&before, &before), 0);
        assert_eq!(taken(&before, &[stat(20, 1, 103, 1000)]), 3);
        assert_eq!(taken(&before, &[stat(20, 1, 100, 1040)]), 40);
    }

    #[test]
    fn what_an_ended_process_used_before_the_watch_does_not_count() {
        // Before the watch, 21 had used 500 ticks, and its child 22 had used 70. Both end, after 8 and 2 more ticks.
        let before = [stat(20, 1, 100, 0), stat(21, 20, 500, 0), stat(22, 21, 70, 0)];
        assert_eq!(taken(&before, &[stat(20, 1, 100, 580)]), 10);
        let one = [stat(20, 1, 100, 0), stat(21, 20, 500, 72)];
        assert_eq!(taken(&before, &one), 2);
        // If no parent waits for them, their time is lost. The result is zero, not negative.
        assert_eq!(taken(&before, &[stat(20, 1, 101, 0)]), 0);
    }

    #[test]
    fn a_new_process_counts_unless_it_may_be_an_orphan_of_ours() {
        assert_eq!(taken(&[], &[stat(20, 1, 7, 30)]), 37);
        // Process 11, a child of the test, had its own session, to which its orphan 12 still belongs.
        let orphan = Stat { session: 11, ..stat(12, 1, 50, 0) };
        assert_eq!(taken(&[stat(11, 10, 5, 0)], &[orphan]), 0);
        assert_eq!(taken(&[], &[stat(11, 10, 5, 0), orphan]), 0);
        assert_eq!(taken(&[], &[orphan]), 50);
    }

    #[test]
    fn orphans_that_an_ancestor_took_in_do_not_count_when_they_end() {
        let own = |children| {
            let all = [stat(1, 0, 5, children), stat(9, 1, 6, children)];
            Processes::of(&[&all[..], &[stat(10, 9, 5, 5)]].concat(), 10)
        };
        assert_eq!(own(900).taken_since(&own(0)), 0);
    }

    #[test]
    fn the_parent_of_this_process_is_another_and_it_is_none_itself() {
        let seen = Processes::read();
        let has = |id: u32| seen.others.keys().any(|process| process.id == id);
        assert!(has(std::os::unix::process::parent_id()), "{seen:?}");
        assert!(!has(process::id()), "{seen:?}");
        assert!(!seen.sessions.is_empty());
    }

    #[test]
    fn a_thread_is_late_by_what_exceeds_its_beat() {
        let nano = Duration::from_nanos(1);
        assert_eq!(over(BEAT.saturating_sub(nano)), 0);
        assert_eq!(over(BEAT), 0);
        assert_eq!(over(BEAT + nano), 1);
    }

    #[test]
    fn a_watch_sees_the_time_of_its_own_machine() {
        let watch = Watch::begin();
        thread::sleep(Duration::from_millis(30));
        let seen = watch.end();
        assert!((0.0..=1.0).contains(&seen.stolen), "{seen:?}");
        assert!((0.0..=1.0).contains(&seen.others), "{seen:?}");
    }

    #[test]
    fn a_watch_that_is_dropped_stops() {
        let watch = Watch::begin();
        let stop = Arc::clone(&watch.stop);
        assert!(!stop.load(Ordering::Relaxed));
        drop(watch);
        assert!(stop.load(Ordering::Relaxed));
    }
}
