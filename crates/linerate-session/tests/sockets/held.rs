//! Pages that the kernel holds while it sends them without a copy:
//! reads the counters of such sends, and makes the kernel refuse them.

use linerate_facts::metric::Metric;
use linerate_record::EndReadings;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// Returns the last value of a counter of the first stream of a set.
pub(crate) fn last(end: &EndReadings, set: u32, metric: Metric) -> Option<i64> {
    let subject = format!("s{set}/0");
    let mut tables = end.tables.iter();
    let table = tables.find(|t| t.source == metric.source && t.subject == subject)?;
    table.column(metric)?.last().copied()
}

/// Takes CAP_IPC_LOCK, the right to hold any number of pages, from this thread and from threads that it starts.
pub(crate) fn without_the_right() {
    let mut sets = capabilities(None).unwrap();
    sets.effective -= CapabilitySet::IPC_LOCK;
    set_capabilities(None, sets).unwrap();
}

/// Runs `what` while the whole process may hold at most `bytes` bytes of pages.
pub(crate) fn within<T>(bytes: u64, what: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::Memlock);
    let less = Rlimit { current: Some(bytes), ..before };
    setrlimit(Resource::Memlock, less).unwrap();
    let reported = what();
    setrlimit(Resource::Memlock, before).unwrap();
    reported
}
