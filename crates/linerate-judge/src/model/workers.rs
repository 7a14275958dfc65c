//! The threads that move the payload of a load.

use super::cpus::taken;
use super::readings::{Window, growth, per_second};
use super::{Cpu, Thread};
use linerate_facts::metric as m;
use linerate_record::EndReadings;

/// The worker threads whose subject begins with `prefix`, with the time that interrupts took on their CPUs.
pub(super) fn at_work(
    end: &EndReadings,
    prefix: &str,
    cpus: &[Cpu],
    window: Window,
) -> Vec<Thread> {
    let mut all = threads(end, prefix, window);
    for thread in &mut all {
        thread.taken = taken(thread, cpus);
    }
    all
}

/// The worker threads whose subject begins with `prefix`.
pub(super) fn threads(end: &EndReadings, prefix: &str, window: Window) -> Vec<Thread> {
    let stream_of = |subject: &str| subject.strip_prefix(prefix).and_then(|s| s.parse().ok());
    end.about("worker", |s| s.starts_with(prefix))
        .filter_map(|worker| {
            let stream = stream_of(&worker.subject)?;
            let own = end.about("thread", |s| s == worker.subject).next();
            let share = |metric| Some((per_second(own?, metric, window)? / 1e9).clamp(0.0, 1.0));
            let ticks = |metric| own.and_then(|t| growth(t, metric, window)).map(|(g, _)| g);
            let user = match (ticks(m::THREAD_USER), ticks(m::THREAD_SYSTEM)) {
                // Ticks last 10 ms: fewer than ten of them are too inaccurate.
                (Some(u), Some(s)) if u + s >= 10.0 => Some(u / (u + s)),
                _ => None,
            };
            let moved = |metric| growth(worker, metric, window).map(|(g, _)| g);
            let bytes_per_op = match (moved(m::WORKER_BYTES), moved(m::WORKER_OPS)) {
                (Some(bytes), Some(ops)) if ops > 0.0 => Some(bytes / ops),
                _ => None,
            };
            let on = own.and_then(|t| t.column(m::THREAD_CPU));
            let on = on.and_then(|all| Some((u32::try_from(*all.last()?).ok()?, all)));
            Some(Thread {
                stream,
                busy: share(m::THREAD_RUN),
                waiting: share(m::THREAD_WAIT),
                user,
                cpu: on.map(|(cpu, _)| cpu),
                home: on.and_then(|(cpu, all)| {
                    let stayed = all.iter().all(|at| *at == i64::from(cpu));
                    stayed.then_some(cpu)
                }),
                taken: None,
                bytes_per_op,
                takes_in: None,
            })
        })
        .collect()
}
