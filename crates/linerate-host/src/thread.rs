//! Source `thread`: CPU times of one thread, of this program or of another process.

use std::io;

use linerate_facts::Gap;
use linerate_facts::metric::{self, Metric};
use linerate_facts::parse::{Malformed, schedstat, task_stat};

use super::source::{Row, Source};
use super::{Kept, Machine, gap, invalid, unreadable};

const PROC: &str = "mount -t proc proc /proc";
/// Metrics in the order of a row: the values of `schedstat`, then those of `stat`.
const METRICS: &[Metric] = &[
    metric::THREAD_RUN,
    metric::THREAD_WAIT,
    metric::THREAD_USER,
    metric::THREAD_SYSTEM,
    metric::THREAD_CPU,
];

/// Reads `/proc/self/task/TID/{stat,schedstat}`.
pub(super) struct Thread {
    subject: String,
    stat: File,
    schedstat: File,
    /// Which files could be read for the last row; `None` before the first row.
    seen: Option<Seen>,
}

/// A file of the thread that is read at each tick.
struct File {
    path: String,
    kept: Kept,
}

impl File {
    fn new(path: String) -> Self {
        let kept = Kept::default();
        Self { path, kept }
    }

    fn read<T>(
        &mut self,
        machine: &dyn Machine,
        decode: fn(&[u8]) -> Result<T, Malformed>,
    ) -> io::Result<T> {
        decode(machine.reread(&self.path, &mut self.kept)?).map_err(invalid)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// `schedstat` and `stat` of the thread.
    Both,
    /// Only `stat`: the kernel keeps no scheduler statistics.
    StatOnly,
    /// None, because the thread has ended; its table ends too.
    Ended,
}

impl Thread {
    /// Makes a reader of the thread with the kernel's id `tid`, which must have run already.
    pub(crate) fn new(subject: &str, tid: i32) -> Self {
        Self::at(subject, &format!("/proc/self/task/{tid}"))
    }

    /// Makes a reader of the first thread of another process.
    pub(super) fn of_process(subject: &str, process: u32) -> Self {
        Self::at(subject, &format!("/proc/{process}/task/{process}"))
    }

    fn at(subject: &str, task: &str) -> Self {
        Self {
            subject: subject.to_owned(),
            stat: File::new(format!("{task}/stat")),
            schedstat: File::new(format!("{task}/schedstat")),
            seen: None,
        }
    }

    /// Reads the values of a row; `None` once the thread has ended.
    fn values(
        &mut self,
        machine: &dyn Machine,
    ) -> io::Result<Option<[Option<u64>; METRICS.len()]>> {
        let Some(stat) = alive(self.stat.read(machine, task_stat::parse))? else {
            return Ok(None);
        };
        if matches!(stat.state, b'Z' | b'X') {
            return Ok(None);
        }
        let sched = match self.seen {
            Some(Seen::StatOnly) => None,
            Some(_) => match alive(self.schedstat.read(machine, schedstat::parse))? {
                None => return Ok(None),
                counted => counted,
            },
            // On kernels without scheduler statistics, `schedstat` is missing or all zero. All zero cannot be right,
            // because a living thread has used a CPU.
            None => match alive(self.schedstat.read(machine, schedstat::parse))? {
                None if alive(machine.file(&self.stat.path))?.is_none() => return Ok(None),
                counted => counted.filter(|c| !c.is_blank()),
            },
        };
        self.seen = Some(if sched.is_some() { Seen::Both } else { Seen::StatOnly });
        Ok(Some([
            sched.map(|s| s.run_ns),
            sched.map(|s| s.wait_ns),
            Some(stat.user_ticks),
            Some(stat.system_ticks),
            Some(stat.cpu),
        ]))
    }
}

/// Turns errors that mean that the thread has ended into `None`.
fn alive<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    const ESRCH: i32 = rustix::io::Errno::SRCH.raw_os_error();
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(ESRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Source for Thread {
    fn hint(&self) -> &'static str {
        "sudo sysctl kernel.task_delayacct=1"
    }

    fn observe(&mut self, row: &mut Row<'_>) -> Result<(), Gap> {
        if self.seen == Some(Seen::Ended) {
            return Ok(());
        }
        let values = self.values(row.machine);
        let values = values.map_err(|error| unreadable("thread", &self.stat.path, &error, PROC))?;
        match values {
            Some(values) => row.push(METRICS, (), || self.subject.clone(), &values),
            // For the first row, /proc may be missing instead of the thread.
            None if self.seen.is_none() => {
                let why = format!("cannot read {}: {} is not there", self.stat.path, self.subject);
                return Err(gap("thread", &why, PROC));
            }
            None => self.seen = Some(Seen::Ended),
        }
        Ok(())
    }

    fn taken(&mut self) {
        if self.seen != Some(Seen::Ended) {
            self.seen = None;
        }
    }
}
