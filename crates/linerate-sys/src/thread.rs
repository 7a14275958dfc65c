//! Functions for the calling thread: its id, its CPUs and its timers.

use std::io;
use std::num::NonZeroU64;

use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};

/// Returns the id of the calling thread, as in /proc/PID/task.
pub fn id() -> i32 {
    gettid().as_raw_nonzero().get()
}

/// Returns the CPUs on which the calling thread may run, in ascending order.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    Ok(cpus.map(|cpu| cpu as u32).collect())
}

/// Keeps the calling thread on one CPU. Fails if that CPU is not allowed or does not exist.
pub fn pin(cpu: u32) -> io::Result<()> {
    allow(&[cpu])
}

/// Lets the calling thread run on these CPUs. Fails if none of them is allowed, or if one does not exist.
pub fn allow(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu as usize >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(*cpu as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Makes timers of the calling thread fire on time. By default, the kernel may delay them by 50 us.
pub fn exact_timers() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_pinned_to_an_allowed_cpu_and_to_no_other() {
        let last = *allowed_cpus().unwrap().last().unwrap();
        let all = allowed_cpus().unwrap();
        let pinned = std::thread::spawn(move || {
            pin(last).unwrap();
            let pinned = allowed_cpus().unwrap();
            allow(&all).unwrap();
            assert_eq!(allowed_cpus().unwrap(), all, "it may run everywhere again");
            pinned
        });
        assert_eq!(pinned.join().unwrap(), vec![last]);
        assert!(pin(u32::MAX).is_err() && allow(&[]).is_err());
    }

    #[test]
    fn each_thread_has_its_own_id() {
        assert_ne!(id(), std::thread::spawn(id).join().unwrap());
    }
}
