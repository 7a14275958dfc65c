//! The use of a host's CPU time: by this run's threads, interrupts, other programs and the hypervisor, and the time for
//! which a used-up quota stopped threads.

use std::collections::BTreeMap;

use super::ends::end;
use super::readings::{Window, gauge, growth, mean, per_second};
use super::{Cpu, Thread, Throttled};
use linerate_facts::metric as m;
use linerate_plan::path::Side;
use linerate_record::{EndReadings, Step, Table};
use linerate_units::Hertz;

/// CPU time that this run's threads used on one CPU.
#[derive(Debug, Clone, Copy, Default)]
struct Own {
    /// Share of time in which the threads ran.
    ran: f64,
    /// Ticks in which the threads ran in user mode.
    user: f64,
}

/// The CPUs of one host. If both ends share the machine, threads of both ends are this run's threads.
pub(super) fn cpus(step: &Step, side: Side, shared: bool, window: Window) -> Vec<Cpu> {
    let sides = [Side::Near, Side::Far].into_iter();
    let ends = sides.filter(|s| shared || *s == side);
    let own = own(ends.map(|s| end(step, s)), window);
    let Some(end) = end(step, side) else {
        return Vec::new();
    };
    end.about("cpu", |_| true).filter_map(|table| cpu(end, table, own.as_ref(), window)).collect()
}

/// The time that this run's threads used on each CPU; `None` if an end has no thread readings.
fn own<'a>(
    ends: impl Iterator<Item = Option<&'a EndReadings>>,
    window: Window,
) -> Option<BTreeMap<u32, Own>> {
    let mut all: BTreeMap<u32, Own> = BTreeMap::new();
    for end in ends {
        let mut tables = end?.about("thread", |_| true).peekable();
        tables.peek()?;
        for table in tables {
            add_used(&mut all, table, window)?;
        }
    }
    Some(all)
}

/// Adds the time that one thread used on each CPU. Growth between two rows counts for the CPU of the second row. `None`
/// if it was not read.
fn add_used(all: &mut BTreeMap<u32, Own>, table: &Table, window: Window) -> Option<()> {
    let column = |metric| table.column(metric);
    let (run, user) = (column(m::THREAD_RUN)?, column(m::THREAD_USER)?);
    let cpus = column(m::THREAD_CPU)?;
    let Some((first, last)) = window.rows(table) else {
        return Some(());
    };
    let time = (table.at[last] - table.at[first]) as f64;
    let grown = |values: &[i64], row: usize| {
        let grown = values.get(row)?.checked_sub(*values.get(row - 1)?)?;
        Some(grown.max(0) as f64)
    };
    // A thread hardly ever moves to another CPU: the entry is looked up only when it does.
    let mut on: Option<(i64, &mut Own)> = None;
    for row in first + 1..=last {
        let cpu = *cpus.get(row)?;
        if on.as_ref().is_none_or(|(before, _)| *before != cpu) {
            on = Some((cpu, all.entry(u32::try_from(cpu).ok()?).or_default()));
        }
        let (_, sum) = on.as_mut()?;
        sum.ran += grown(run, row)? / time;
        sum.user += grown(user, row)?;
    }
    Some(())
}

fn cpu(
    end: &EndReadings,
    table: &Table,
    own: Option<&BTreeMap<u32, Own>>,
    window: Window,
) -> Option<Cpu> {
    const KINDS: [m::Metric; 8] = [
        m::CPU_USER,
        m::CPU_NICE,
        m::CPU_SYSTEM,
        m::CPU_IDLE,
        m::CPU_IOWAIT,
        m::CPU_IRQ,
        m::CPU_SOFTIRQ,
        m::CPU_STEAL,
    ];
    let grown = KINDS.map(|kind| growth(table, kind, window).map_or(0.0, |(g, _)| g));
    let all: f64 = grown.iter().sum();
    if all <= 0.0 {
        return None;
    }
    let number: u32 = table.subject.parse().unwrap_or_default();
    let own = own.map(|own| own.get(&number).copied().unwrap_or_default());
    let busy = 1.0 - (grown[3] + grown[4]) / all;
    let softirq = (grown[5] + grown[6]) / all;
    let steal = grown[7] / all;
    // The larger one of two lower bounds: a kernel without IRQ time accounting counts interrupt time twice, as
    // interrupts and as time of the interrupted thread, but never as user time.
    let others = own.map(|own| {
        let rest = busy - softirq - steal - own.ran;
        rest.max((grown[0] + grown[1] - own.user) / all).max(0.0)
    });
    Some(Cpu {
        number,
        busy,
        softirq,
        steal,
        ours: own.map(|own| own.ran.min(1.0)),
        others,
        packets: end
            .about("softnet", |subject| subject == table.subject)
            .find_map(|t| per_second(t, m::SOFTNET_PROCESSED, window)),
        clock: clock(end, &table.subject, window),
    })
}

/// Mean clock of a CPU over the window.
fn clock(end: &EndReadings, cpu: &str, window: Window) -> Option<Hertz> {
    let kilohertz =
        end.about("clock", |subject| subject == cpu).flat_map(|t| gauge(t, m::CLOCK_NOW, window));
    Some(Hertz((mean(kilohertz)?.max(0.0) * 1e3) as u64))
}

/// The share of its CPU's time that interrupts and the hypervisor took from a thread. What they take from other
/// programs costs the thread nothing: it sleeps then, or waits, which is counted separately. Together with the thread's
/// own time it never exceeds the CPU's busy time, so that time counted twice is left out.
pub(super) fn taken(thread: &Thread, cpus: &[Cpu]) -> Option<f64> {
    let home = thread.home?;
    let cpu = cpus.iter().find(|cpu| cpu.number == home)?;
    let own = thread.busy? + thread.waiting.unwrap_or(0.0);
    let taken = cpu.softirq + cpu.steal;
    let of_others = cpu.others.unwrap_or(0.0) / (1.0 - taken).max(f64::EPSILON);
    let ours = taken * (1.0 - of_others).max(0.0);
    Some(((own + ours).min(cpu.busy) - own).max(0.0))
}

/// Of the control groups of an end, the one that its quota stopped longest.
pub(super) fn throttled(end: &EndReadings, window: Window) -> Option<Throttled> {
    let groups = end.about("cgroup", |_| true).filter_map(|table| {
        let (stopped, secs) = growth(table, m::CGROUP_THROTTLED_TIME, window)?;
        let (times, _) = growth(table, m::CGROUP_THROTTLED, window)?;
        let (periods, _) = growth(table, m::CGROUP_PERIODS, window)?;
        Some(Throttled {
            group: table.subject.clone(),
            periods: times / periods.max(1.0),
            time: (stopped / 1e9 / secs).min(1.0),
        })
    });
    groups.max_by(|a, b| a.time.total_cmp(&b.time))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, WHOLE};
    use super::*;
    use linerate_plan::{Purpose, StepPlan};
    use linerate_units::Nanos;

    /// A table whose counters grew by these values, and whose gauges had them.
    fn table(subject: &str, columns: &[(m::Metric, i64)]) -> Table {
        let read = |&(metric, value): &(m::Metric, i64)| match metric.kind {
            m::Kind::Counter => (metric, [7, 7 + value]),
            m::Kind::Gauge => (metric, [value; 2]),
        };
        let columns: Vec<_> = columns.iter().map(read).collect();
        testing::table(subject, &columns)
    }

    /// A step of one second in which CPU 0 spent these ticks in user, system, idle and softirq. On it ran a thread of
    /// each end for the given milliseconds, with the given ticks in user mode.
    fn second(ticks: [i64; 4], threads: &[(i64, i64)]) -> Step {
        let [user, system, idle, softirq] = ticks;
        let counted = table(
            "0",
            &[
                (m::CPU_USER, user),
                (m::CPU_SYSTEM, system),
                (m::CPU_IDLE, idle),
                (m::CPU_SOFTIRQ, softirq),
            ],
        );
        let end = |(millis, user): &(i64, i64)| {
            let thread =
                [(m::THREAD_RUN, millis * 1_000_000), (m::THREAD_USER, *user), (m::THREAD_CPU, 0)];
            EndReadings {
                tables: vec![counted.clone(), table("s0/tx0", &thread)],
                ..EndReadings::default()
            }
        };
        Step {
            plan: StepPlan {
                index: 0,
                purpose: Purpose::IdleLatency,
                sets: vec![0],
                washout: Nanos(0),
                measure: Nanos::from_secs(1),
                tick: Nanos::from_secs(1),
            },
            ends: threads.iter().map(end).collect(),
            began: Nanos(0),
            clock: None,
            took: Nanos(0),
            trouble: None,
        }
    }

    fn near(step: &Step, shared: bool) -> Cpu {
        cpus(step, Side::Near, shared, WHOLE).remove(0)
    }

    #[test]
    fn what_is_neither_ours_nor_interrupts_is_others() {
        let close = |got: Option<f64>, want: f64| (got.expect("read") - want).abs() < 1e-9;
        // With IRQ time accounting: 30 + 20 + 50.
        let cpu = near(&second([45, 5, 0, 50], &[(300, 0)]), false);
        assert!(close(cpu.ours, 0.3) && close(cpu.others, 0.45), "{cpu:?}");
        // Otherwise half of the thread's time belongs to interrupts; the rest is not time of other programs.
        let cpu = near(&second([0, 50, 0, 50], &[(1000, 0)]), false);
        assert!(close(cpu.others, 0.0), "{cpu:?}");
        // A loop in user space of another program shows nevertheless.
        let cpu = near(&second([40, 30, 0, 30], &[(600, 2)]), false);
        assert!(close(cpu.others, 0.38), "{cpu:?}");
    }

    #[test]
    fn ends_on_one_machine_are_no_others_to_each_other() {
        let step = second([0, 90, 10, 0], &[(400, 0), (500, 0)]);
        let (alone, both) = (near(&step, false), near(&step, true));
        assert!((alone.others.expect("read") - 0.5).abs() < 1e-9);
        assert!(both.others.expect("read") < 1e-9);
        assert!((both.ours.expect("read") - 0.9).abs() < 1e-9);
    }

    #[test]
    fn threads_that_were_not_read_leave_others_unknown() {
        let mut step = second([0, 90, 10, 0], &[(400, 0)]);
        step.ends[0].tables.pop();
        assert_eq!(near(&step, false).others, None);
    }

    #[test]
    fn interrupts_take_what_the_thread_did_not_run_and_no_more_than_was_busy() {
        let cpu = Cpu { busy: 0.95, softirq: 0.5, steal: 0.05, ..Cpu::default() };
        let at = |busy| {
            let thread = Thread { busy: Some(busy), home: Some(0), ..Thread::default() };
            taken(&thread, std::slice::from_ref(&cpu)).expect("read")
        };
        assert!((at(0.3) - 0.55).abs() < 1e-9, "accounted apart");
        assert!((at(0.9) - 0.05).abs() < 1e-9, "accounted in the thread");
        assert_eq!(taken(&Thread::default(), &[cpu]), None);
    }

    #[test]
    fn interrupts_take_nothing_from_a_thread_while_other_programs_run() {
        let taken = |others, busy, waiting| {
            let cpu = Cpu { busy: 1.0, softirq: 0.4, others: Some(others), ..Cpu::default() };
            let thread = Thread {
                busy: Some(busy),
                waiting: Some(waiting),
                home: Some(0),
                ..Thread::default()
            };
            taken(&thread, &[cpu]).expect("read")
        };
        let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-9, "{got}");
        // Of the time without interrupts other programs had two thirds, so two thirds of the interrupts hit them.
        close(taken(0.4, 0.2, 0.24), 0.4 / 3.0);
        close(taken(0.6, 0.0, 0.0), 0.0);
        // A thread alone on its CPU loses all the time that interrupts take.
        close(taken(0.0, 0.6, 0.0), 0.4);
    }

    #[test]
    fn the_group_that_stopped_longest_counts() {
        let group = |name: &str, times, millis: i64| {
            let counted = [
                (m::CGROUP_PERIODS, 10),
                (m::CGROUP_THROTTLED, times),
                (m::CGROUP_THROTTLED_TIME, millis * 1_000_000),
            ];
            table(name, &counted)
        };
        let end = EndReadings {
            tables: vec![group("/a", 10, 100), group("/a/b", 8, 600)],
            ..EndReadings::default()
        };
        let worst = throttled(&end, WHOLE).expect("counted");
        assert_eq!(worst.group, "/a/b");
        assert!((worst.periods - 0.8).abs() < 1e-9 && (worst.time - 0.6).abs() < 1e-9);
        assert_eq!(throttled(&EndReadings::default(), WHOLE), None);
    }
}
