//! CPU time of this process in the unit that iperf3 uses: percent of one CPU, summed over all threads.

use std::time::Instant;

use linerate_facts::parse::task_stat;
use linerate_record::iperf3::Cpu;

use linerate_host::Machine;

/// CPU time that this process had used at a moment, in clock ticks.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    at: Instant,
    user: u64,
    system: u64,
}

impl Used {
    /// Returns the CPU time used so far; `None` if it cannot be read.
    pub(crate) fn now(machine: &dyn Machine) -> Option<Self> {
        let stat = machine.file("/proc/self/stat").ok()?;
        let stat = task_stat::parse(&stat).ok()?;
        Some(Self { at: Instant::now(), user: stat.user_ticks, system: stat.system_ticks })
    }

    /// Returns the CPU time since `before`, in nanoseconds.
    pub(crate) fn nanos_since(&self, before: &Self) -> u64 {
        let ticks = |used: &Self| used.user + used.system;
        let used = ticks(self).saturating_sub(ticks(before));
        used * 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
    }

    pub(crate) fn since(&self, before: &Self) -> Option<Cpu> {
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let share = |now: u64, then: u64| {
            let used = now.saturating_sub(then) as f64 / ticks;
            used / seconds * 100.0
        };
        let user = share(self.user, before.user);
        let system = share(self.system, before.system);
        (seconds > 0.0).then_some(Cpu { total: user + system, user, system })
    }
}
