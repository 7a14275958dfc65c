//! The CPUs of a machine, and their activity.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounded::{CPUS, at_most};
use super::exact::exact;
use super::topology::{self, Kind, Topology};
use linerate_units::{Bytes, Hertz, Nanos};

/// All CPUs of a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Processors {
    /// Model name of the CPUs.
    pub model: String,
    /// CPUs that are online, in ascending order.
    pub cpus: Vec<Cpu>,
    /// CPUs that are present but switched off.
    pub offline: Vec<u32>,
    /// CPUs to which the scheduler moves no tasks by itself (`isolcpus`).
    pub isolated: Vec<u32>,
    /// CPUs without a regular tick, which are kept for one task each (`nohz_full`).
    pub tickless: Vec<u32>,
    /// NUMA nodes, in ascending order.
    pub nodes: Vec<Node>,
    /// Caches, grouped by kind, level and size.
    pub caches: Vec<Cache>,
    /// Groups of CPUs with different computing power; empty if all CPUs are alike.
    pub kinds: Vec<Kind>,
    /// Idle states of the first CPU. The other CPUs are assumed to have the same.
    pub idle: Vec<IdleState>,
    /// Whether clocks may exceed the nominal clock (turbo); `None` when unknown.
    pub turbo: Option<bool>,
}

/// A CPU as the scheduler sees it: one hardware thread of a core.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cpu {
    /// Number of the CPU.
    pub id: u32,
    /// Number of the package (socket) that the CPU belongs to.
    pub package: Option<u32>,
    /// CPUs of the same core, including this one; empty when unknown.
    pub siblings: Vec<u32>,
    /// The CPU's computing power, where the strongest CPU has 1024; `None` if the kernel does not report it.
    pub capacity: Option<u32>,
    /// The CPU's clock.
    pub clock: Clock,
}

/// The clock of a CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// Present clock.
    pub now: Option<Hertz>,
    /// Nominal clock, which the CPU keeps at full load.
    pub nominal: Option<Hertz>,
    /// Highest clock that the hardware supports.
    pub max: Option<Hertz>,
    /// Highest clock that the settings allow.
    pub limit: Option<Hertz>,
    /// The kernel driver that sets the clock.
    pub driver: String,
    /// The governor, the kernel's policy for the clock: `performance`, `powersave`.
    pub governor: String,
    /// The preference between speed and energy that is given to the hardware, if the hardware picks the clock.
    pub preference: String,
}

impl Processors {
    /// The NUMA nodes, their distances and the kinds of CPUs.
    pub fn topology(&self) -> Topology {
        let node = |node: &Node| topology::Node {
            id: node.id,
            cpus: node.known_cpus().to_vec(),
            distances: node.distances.clone(),
        };
        Topology { nodes: self.nodes.iter().map(node).collect(), ..Topology::default() }
    }
}

impl Node {
    /// The CPUs of the node; empty if they are unknown.
    pub fn known_cpus(&self) -> &[u32] {
        self.cpus.as_deref().unwrap_or_default()
    }
}

/// CPUs that have the same clock settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clocked {
    /// Numbers of the CPUs.
    #[serde(deserialize_with = "at_most::<_, _, CPUS>")]
    pub cpus: Vec<u32>,
    /// The clock settings, without present clocks.
    pub clock: Clock,
}

/// A NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Node {
    /// Number of the node.
    #[serde(rename = "node")]
    pub id: u32,
    /// CPUs of the node; it may have none. Null if unknown.
    pub cpus: Option<Vec<u32>>,
    /// Memory of the node; a node may have none.
    #[serde(rename = "memory_bytes", serialize_with = "exact")]
    pub total: Option<Bytes>,
    /// Free memory of the node.
    #[serde(rename = "live_free_bytes", serialize_with = "exact")]
    pub free: Option<Bytes>,
    /// Distances to all nodes, in the order of their numbers. A node has the distance 10 to itself.
    pub distances: Vec<u32>,
}

/// Caches of the same kind, level and size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cache {
    /// Level of the caches. Level 1 is nearest to the core.
    pub level: u32,
    /// Kind of the caches: `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Size of each cache.
    #[serde(rename = "size_bytes", serialize_with = "exact")]
    pub size: Bytes,
    /// Number of CPUs that share one cache.
    pub shared_by: usize,
    /// Number of caches in this group.
    pub count: usize,
}

/// An idle state of a CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdleState {
    /// Name of the idle state: `C6`.
    pub name: String,
    /// Time that the CPU needs to wake up from the idle state.
    pub latency: Nanos,
    /// Whether the idle state is switched off.
    pub disabled: bool,
}

impl Processors {
    /// Number of packages (sockets); `None` when unknown.
    pub fn packages(&self) -> Option<usize> {
        let all: Option<BTreeSet<u32>> = self.cpus.iter().map(|c| c.package).collect();
        all.map(|p| p.len()).filter(|&n| n > 0)
    }

    /// Number of cores that have a CPU online; `None` when unknown.
    pub fn cores(&self) -> Option<usize> {
        let first = |c: &Cpu| c.siblings.first().copied();
        let all: Option<BTreeSet<u32>> = self.cpus.iter().map(first).collect();
        all.map(|c| c.len()).filter(|&n| n > 0)
    }

    /// The different clock settings, each with its CPUs, in the order of their first CPU. Present clocks are ignored,
    /// since they always differ.
    pub fn clocks(&self) -> Vec<(Clock, Vec<u32>)> {
        let mut sorts: Vec<(Clock, Vec<u32>)> = Vec::new();
        for cpu in &self.cpus {
            let clock = Clock { now: None, ..cpu.clock.clone() };
            match sorts.iter_mut().find(|(c, _)| *c == clock) {
                Some((_, cpus)) => cpus.push(cpu.id),
                None => sorts.push((clock, vec![cpu.id])),
            }
        }
        sorts.retain(|(clock, _)| *clock != Clock::default());
        sorts
    }
}

/// Groups of CPUs by the computing power that the kernel reports, or else by their nominal clocks, the strongest first.
/// Empty when all CPUs are alike, or when one CPU's figure is unknown.
pub fn kinds(cpus: &[Cpu]) -> Vec<Kind> {
    let by = |key: fn(&Cpu) -> Option<u64>, name: fn(u64) -> String| {
        let values: Option<BTreeSet<u64>> = cpus.iter().map(key).collect();
        let values = values.filter(|v| v.len() > 1).unwrap_or_default();
        let group = |value: u64| Kind {
            name: name(value),
            cpus: cpus.iter().filter(|c| key(c) == Some(value)).map(|c| c.id).collect(),
        };
        values.into_iter().rev().map(group).collect::<Vec<_>>()
    };
    let found = by(|c| c.capacity.map(u64::from), |v| format!("capacity {v}"));
    if found.is_empty() {
        return by(|c| c.clock.nominal.map(|h| h.0), |v| format!("nominal {}", Hertz(v)));
    }
    found
}

/// The activity of a machine between two readings, a tenth of a second apart, or less if all CPUs were idle.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Busy {
    /// Load of each CPU, in the order of `/proc/stat`.
    pub cpus: Vec<CpuLoad>,
    /// Processes that used CPU time, the busiest first. linerate itself is left out.
    pub processes: Vec<Process>,
}

/// How a CPU spent its time, as shares of all time (0 to 1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct CpuLoad {
    /// Number of the CPU.
    pub cpu: u32,
    /// Share of time for work: everything except idle time and waiting for devices.
    #[schemars(range(min = 0))]
    pub busy: f64,
    /// Share of time for hard and soft interrupts.
    #[schemars(range(min = 0))]
    pub interrupts: f64,
    /// Share of time that the hypervisor took from the CPU.
    #[schemars(range(min = 0))]
    pub stolen: f64,
}

/// A process that used CPU time between two readings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Name of the process.
    pub name: String,
    /// CPU time over elapsed time. A process with several threads may have more than 1.
    #[schemars(range(min = 0))]
    pub cpus: f64,
    /// CPU on which the process's main thread ran last.
    pub last_cpu: u32,
}

/// Time of one CPU since boot, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTimes {
    /// Number of the CPU.
    pub cpu: u32,
    /// Ticks by activity: user, nice, system, idle, iowait, irq, softirq, steal.
    pub ticks: [u64; 8],
}

/// Ticks that passed between two readings, as the mean over CPUs; `None` when none passed, as in a tree of files.
pub fn elapsed(before: &[CpuTimes], after: &[CpuTimes]) -> Option<f64> {
    let all: Vec<u64> = deltas(before, after).map(|(_, d)| d.iter().sum()).collect();
    let mean = all.iter().sum::<u64>() as f64 / all.len().max(1) as f64;
    (mean > 0.0).then_some(mean)
}

/// How each CPU spent the time between two readings. A CPU for which no tick was counted is left out: it went offline,
/// or its counters do not change.
pub fn loads(before: &[CpuTimes], after: &[CpuTimes]) -> Vec<CpuLoad> {
    let load = |(cpu, ticks): (u32, [u64; 8])| {
        let all: u64 = ticks.iter().sum();
        let share = |part: u64| part as f64 / all as f64;
        let [_, _, _, idle, waiting, irq, softirq, steal] = ticks;
        (all > 0).then(|| CpuLoad {
            cpu,
            busy: share(all - idle - waiting),
            interrupts: share(irq + softirq),
            stolen: share(steal),
        })
    };
    deltas(before, after).filter_map(load).collect()
}

/// Largest share of a CPU's time with work since boot that the hypervisor may have taken, if the CPU counts as idle.
const SELDOM_STOLEN: f64 = 0.01;
/// Fewest ticks of idle time between two readings that a CPU needs to count as idle.
const IDLE: u64 = 2;

/// Whether a short time between two readings is enough to call all CPUs idle: no CPU shows a tick of work, and each
/// shows at least two ticks of idle time. Then more than one tick has passed, so that no CPU can be 90 % busy over ten
/// ticks, whatever follows. Where a hypervisor has taken notable time before, a short time is not enough: it may take
/// time in portions.
pub fn are_idle(before: &[CpuTimes], after: &[CpuTimes]) -> bool {
    let is_idle = |(_, ticks): (u32, [u64; 8])| {
        let [work @ .., idle, waiting, irq, softirq, steal] = ticks;
        work.into_iter().chain([irq, softirq, steal]).all(|part| part == 0)
            && idle.saturating_add(waiting) >= IDLE
    };
    let is_seldom_stolen = |cpu: &CpuTimes| {
        let [user, nice, system, _, _, irq, softirq, steal] = cpu.ticks.map(|ticks| ticks as f64);
        steal <= SELDOM_STOLEN * (user + nice + system + irq + softirq + steal)
    };
    // A CPU that appeared or disappeared between the readings cannot be compared.
    let compared = deltas(before, after).count();
    compared > 0
        && compared == before.len()
        && compared == after.len()
        && deltas(before, after).all(is_idle)
        && after.iter().all(is_seldom_stolen)
}

/// How much each counter of each CPU grew between two readings. A counter that fell counts as 0: some kernels let idle
/// time fall.
fn deltas<'a>(
    before: &'a [CpuTimes],
    after: &'a [CpuTimes],
) -> impl Iterator<Item = (u32, [u64; 8])> + 'a {
    // Both readings are in the order of the file. CPUs may have appeared or disappeared in between.
    let mut old = before.iter().peekable();
    after.iter().filter_map(move |new| {
        while old.next_if(|o| o.cpu < new.cpu).is_some() {}
        let old = old.next_if(|o| o.cpu == new.cpu)?;
        let grown = |i: usize| new.ticks[i].saturating_sub(old.ticks[i]);
        Some((new.cpu, std::array::from_fn(grown)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(cpu: u32, ticks: [u64; 8]) -> CpuTimes {
        CpuTimes { cpu, ticks }
    }

    #[test]
    fn shares_of_time_need_time_that_passed() {
        let before = [times(0, [10, 0, 0, 100, 0, 0, 0, 0]), times(2, [0; 8])];
        let after = [
            times(0, [15, 0, 0, 102, 1, 1, 1, 0]),
            times(1, [9; 8]),
            times(2, [0, 0, 0, 10, 0, 0, 0, 0]),
        ];
        let loads = loads(&before, &after);
        let want = CpuLoad { cpu: 0, busy: 0.7, interrupts: 0.2, stolen: 0.0 };
        assert_eq!(loads[0], want);
        assert_eq!((loads.len(), loads[1].cpu, loads[1].busy), (2, 2, 0.0));
        assert_eq!(elapsed(&before, &after), Some(10.0));
        assert_eq!(elapsed(&after, &after), None);
        assert!(super::loads(&after, &after).is_empty());
        assert_eq!(elapsed(&[], &after), None);
    }

    #[test]
    fn cpus_are_idle_by_two_ticks_of_idle_time_and_none_of_work() {
        let boot = [500, 0, 300, 9000, 50, 0, 100, 0];
        let grown = |by: [u64; 8]| [times(0, std::array::from_fn(|i| boot[i] + by[i]))];
        let before = grown([0; 8]);
        assert!(are_idle(&before, &grown([0, 0, 0, 2, 0, 0, 0, 0])));
        assert!(are_idle(&before, &grown([0, 0, 0, 1, 1, 0, 0, 0])), "waiting is idle");
        assert!(!are_idle(&before, &grown([0, 0, 0, 1, 0, 0, 0, 0])));
        assert!(!are_idle(&before, &before), "no time passed");
        for part in [0, 1, 2, 5, 6, 7] {
            let mut by = [0, 0, 0, 9, 0, 0, 0, 0];
            by[part] = 1;
            assert!(!are_idle(&before, &grown(by)), "a tick of {part}");
        }
    }

    #[test]
    fn one_cpu_that_works_or_is_not_known_twice_is_enough_to_look_longer() {
        let at = |cpus: &[(u32, u64, u64)]| -> Vec<CpuTimes> {
            let time = |&(cpu, work, idle)| times(cpu, [work, 0, 0, idle, 0, 0, 0, 0]);
            cpus.iter().map(time).collect()
        };
        let before = at(&[(0, 5, 5), (1, 5, 5)]);
        assert!(are_idle(&before, &at(&[(0, 5, 8), (1, 5, 8)])));
        assert!(!are_idle(&before, &at(&[(0, 5, 8), (1, 6, 7)])));
        assert!(!are_idle(&before, &at(&[(0, 5, 8)])), "one went");
        assert!(!are_idle(&before, &at(&[(0, 5, 8), (1, 5, 8), (2, 0, 8)])), "one came");
        assert!(!are_idle(&[], &[]));
    }

    #[test]
    fn where_a_hypervisor_took_a_hundredth_of_the_work_a_short_time_is_not_enough() {
        let idle = |steal| {
            let at = |idle| [times(0, [9000, 0, 800, idle, 0, 0, 100, steal])];
            are_idle(&at(1_000_000), &at(1_000_003))
        };
        assert!(idle(100));
        assert!(!idle(101));
    }

    #[test]
    fn kinds_are_told_apart_by_power_and_never_from_a_part() {
        let cpu = |id, capacity, nominal: Option<u64>| Cpu {
            id,
            capacity,
            clock: Clock { nominal: nominal.map(Hertz), ..Clock::default() },
            ..Cpu::default()
        };
        let names = |cpus: &[Cpu]| kinds(cpus).into_iter().map(|k| k.name).collect::<Vec<_>>();
        let two = [cpu(0, Some(1024), None), cpu(1, Some(446), None)];
        assert_eq!(names(&two), ["capacity 1024", "capacity 446"]);
        let clocks = [cpu(0, None, Some(1_900_000_000)), cpu(1, None, Some(1_400_000_000))];
        assert_eq!(names(&clocks), ["nominal 1.9 GHz", "nominal 1.4 GHz"]);
        assert_eq!(names(&[cpu(0, Some(1024), None), cpu(1, None, None)]), [""; 0]);
        assert_eq!(names(&[cpu(0, Some(1024), None), cpu(1, Some(1024), None)]), [""; 0]);
    }

    #[test]
    fn packages_and_cores_are_counted_where_every_cpu_names_its_own() {
        let cpu = |id, package, siblings: &[u32]| Cpu {
            id,
            package,
            siblings: siblings.to_vec(),
            ..Cpu::default()
        };
        let mut all = Processors {
            cpus: vec![cpu(0, Some(0), &[0, 2]), cpu(1, Some(1), &[1]), cpu(2, Some(0), &[0, 2])],
            ..Processors::default()
        };
        assert_eq!((all.packages(), all.cores()), (Some(2), Some(2)));
        all.cpus.push(cpu(3, None, &[]));
        assert_eq!((all.packages(), all.cores()), (None, None));
        assert_eq!(Processors::default().cores(), None);
    }
}
