//! What disturbed the machine while a test measured: independent of what the tested program says.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the watch wakes up.
const BEAT: Duration = Duration::from_millis(10);
/// A wake-up this late means that the machine stood still. A thread that slept is preferred by the
/// scheduler: on a CPU that four others share it is late by a few time slices of 3 ms.
const STOOD_STILL: Duration = Duration::from_millis(100);
/// The share of all CPU time that a hypervisor or other programs must take to count.
const TAKEN: f64 = 0.10;

/// What happened to the machine while a [`Watch`] looked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disturbance {
    /// How late the latest wake-up was.
    pub late: Duration,
    /// Share of the CPU time that the hypervisor took, 0 to 1.
    pub stolen: f64,
    /// Share of the CPU time that programs took which ran before the watch began and do not belong
    /// to this test, 0 to 1.
    pub others: f64,
}

impl Disturbance {
    /// Whether any of it can change what a test measures.
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
            "the machine stood still for {} ms; the hypervisor took {:.0} % and other programs {:.0} % of the CPU time",
            self.late.as_millis(),
            self.stolen * 100.0,
            self.others * 100.0
        )
    }
}

/// Looks at the machine from [`Watch::begin`] to [`Watch::end`].
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    /// Nanoseconds of the latest wake-up.
    late: Arc<AtomicU64>,
    beat: JoinHandle<()>,
    cpu: CpuTime,
    others: HashMap<Process, u64>,
}

impl Watch {
    /// Starts to look.
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
        Self {
            stop,
            late,
            beat,
            cpu: CpuTime::read(),
            others: other_processes(),
        }
    }

    /// Stops to look, and says what was seen.
    ///
    /// # Panics
    /// If the thread of the watch panicked.
    pub fn end(self) -> Disturbance {
        self.stop.store(true, Ordering::Relaxed);
        self.beat.join().expect("a thread that does not panic");
        let now = CpuTime::read();
        let all = now.all.saturating_sub(self.cpu.all).max(1) as f64;
        let after = other_processes();
        let grown = |(who, before): (&Process, &u64)| {
            after.get(who).map_or(0, |now| now.saturating_sub(*before))
        };
        let others: u64 = self.others.iter().map(grown).sum();
        Disturbance {
            late: Duration::from_nanos(self.late.load(Ordering::Relaxed)),
            stolen: now.stolen.saturating_sub(self.cpu.stolen) as f64 / all,
            others: others as f64 / all,
        }
    }
}

fn watch(stop: &AtomicBool, late: &AtomicU64) {
    while !stop.load(Ordering::Relaxed) {
        let slept = Instant::now();
        thread::sleep(BEAT);
        let over = slept.elapsed().saturating_sub(BEAT).as_nanos() as u64;
        late.fetch_max(over, Ordering::Relaxed);
    }
}

/// Ticks of all CPUs, from `/proc/stat`.
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

    /// `cpu user nice system idle iowait irq softirq steal guest guest_nice`; guest time is also
    /// user time.
    fn parse(line: &str) -> Self {
        let ticks: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .take(8)
            .map(|n| n.parse().unwrap_or(0))
            .collect();
        Self {
            all: ticks.iter().sum(),
            stolen: ticks.get(7).copied().unwrap_or(0),
        }
    }
}

/// A process: its id and when it started, so that a reused id is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Process {
    id: u32,
    started: u64,
}

/// A line of `/proc/PID/stat`.
#[derive(Debug)]
struct Stat {
    process: Process,
    parent: u32,
    ticks: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        let (id, rest) = text.split_once(' ')?;
        // The name may hold anything, but ends with the last parenthesis.
        let fields: Vec<&str> = rest.rsplit_once(") ")?.1.split(' ').collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            process: Process {
                id: id.parse().ok()?,
                started: number(19)?,
            },
            parent: number(1)? as u32,
            ticks: number(11)? + number(12)?,
        })
    }
}

/// Ticks of each process that is no kernel thread and does not belong to this one.
fn other_processes() -> HashMap<Process, u64> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return HashMap::new();
    };
    let stats = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        path.file_name()?.to_str()?.parse::<u32>().ok()?;
        Stat::parse(&fs::read_to_string(path.join("stat")).ok()?)
    });
    others(&stats.collect::<Vec<_>>(), process::id())
}

/// Kernel threads are children of this one; they do work that a test's own load asks for.
const KERNEL: u32 = 2;

fn others(stats: &[Stat], own: u32) -> HashMap<Process, u64> {
    let parents: HashMap<u32, u32> = stats.iter().map(|s| (s.process.id, s.parent)).collect();
    let belongs = |mut id: u32| {
        // Bounded: ids may be reused while the table is read, and then form a circle.
        for _ in 0..64 {
            if id == own || id == KERNEL {
                return true;
            }
            match parents.get(&id) {
                Some(parent) => id = *parent,
                None => return false,
            }
        }
        false
    };
    let other = stats.iter().filter(|s| !belongs(s.process.id));
    other.map(|s| (s.process, s.ticks)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Disturbance = Disturbance {
        late: Duration::from_millis(99),
        stolen: 0.099,
        others: 0.099,
    };

    #[test]
    fn each_kind_counts_from_its_threshold_on() {
        assert!(!QUIET.counts());
        let late = Disturbance {
            late: Duration::from_millis(100),
            ..QUIET
        };
        let stolen = Disturbance {
            stolen: 0.1,
            ..QUIET
        };
        let others = Disturbance {
            others: 0.1,
            ..QUIET
        };
        for one in [late, stolen, others] {
            assert!(one.counts(), "{one:?}");
            assert!(one.to_string().contains("stood still"), "{one}");
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
        let text = "42 (a) (b c)) S 7 1 1 0 -1 0 0 0 0 0 5 6 0 0 20 0 1 0 99 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.process.id, stat.parent), (42, 7));
        assert_eq!((stat.ticks, stat.process.started), (11, 99));
        assert!(Stat::parse("42 (a").is_none() && Stat::parse("").is_none());
    }

    fn stat(id: u32, parent: u32) -> Stat {
        Stat {
            process: Process { id, started: 1 },
            parent,
            ticks: 5,
        }
    }

    #[test]
    fn descendants_and_kernel_threads_are_not_other_processes() {
        // 1 starts 10 (the test), which starts 11, which starts 12; 20 belongs to nobody here.
        let all = [
            stat(1, 0),
            stat(2, 0),
            stat(3, 2),
            stat(10, 1),
            stat(11, 10),
            stat(12, 11),
            stat(20, 1),
        ];
        let found = others(&all, 10);
        let mut ids: Vec<u32> = found.keys().map(|p| p.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, [1, 20]);
        // A circle ends.
        assert_eq!(others(&[stat(30, 31), stat(31, 30)], 10).len(), 2);
    }

    #[test]
    fn a_watch_sees_the_time_of_its_own_machine() {
        let watch = Watch::begin();
        thread::sleep(Duration::from_millis(30));
        let seen = watch.end();
        assert!((0.0..=1.0).contains(&seen.stolen), "{seen:?}");
        assert!(seen.others >= 0.0, "{seen:?}");
    }
}
