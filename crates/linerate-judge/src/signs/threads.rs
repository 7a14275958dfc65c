//! The shares of their CPUs that the threads of a load need.

use crate::model::{Load, Model, Thread};
use linerate_plan::path::{Direction, Side};
use linerate_plan::transport::Feature;

/// Share of time in which the busiest of `threads` runs, waits for its CPU, or loses the CPU to interrupts and the
/// hypervisor; `None` if it was not read.
pub(crate) fn wanted(threads: &[Thread]) -> Option<f64> {
    threads.iter().map(need).collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max)
}

/// Largest share of samples with an empty send buffer, at which the sending thread still wrote in time.
const SELDOM: f64 = 0.2;

/// Largest share of time that the window stopped the sender, or of payload that arrived faster than it was read, at
/// which the receiving thread still read in time.
const HARDLY: f64 = 0.05;

/// Least share of samples with an empty receive queue, at which the receiving thread read in time.
const MOSTLY: f64 = 0.5;

/// Whether the threads of an end served their connections in time: the send buffer always had payload to send, or the
/// receiver had read all that had arrived. Then the time that they waited for a CPU cost no goodput. A thread that
/// uses all of its CPU may also meet this test. False if it was not read, and for transports without connections.
pub(crate) fn kept_up(load: &Load, direction: Direction, side: Side) -> bool {
    if !load.has(Feature::Connections) {
        return false;
    }
    let at_most = |share: Option<f64>, most| share.is_some_and(|share| share <= most);
    if side == direction.sender() {
        return at_most(load.tcp.starved, SELDOM);
    }
    at_most(load.tcp.rwnd_limited, HARDLY)
        && at_most(load.behind, HARDLY)
        && load.caught_up.is_some_and(|share| share >= MOSTLY)
}

/// As [`wanted`], for the threads of one end. Where they kept up, the time that they waited for a CPU does not count.
pub(crate) fn wanted_at(load: &Load, direction: Direction, side: Side) -> Option<f64> {
    let threads = threads(load, direction, side);
    if !kept_up(load, direction, side) {
        return wanted(threads);
    }
    let waited = |thread: &Thread| thread.waiting.unwrap_or(0.0);
    let needs = threads.iter().map(|thread| Some(need(thread)? - waited(thread)));
    needs.collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max)
}

/// The share of its CPU that one thread needs: it ran, waited for the CPU, or lost it; at most 1.
pub(crate) fn need(thread: &Thread) -> Option<f64> {
    let lost = thread.waiting.unwrap_or(0.0) + thread.taken.unwrap_or(0.0);
    Some((thread.busy? + lost).min(1.0))
}

/// The thread that needs the largest share of its CPU.
pub(crate) fn busiest(threads: &[Thread]) -> Option<&Thread> {
    let need = |thread| need(thread).unwrap_or(0.0);
    threads.iter().max_by(|a, b| need(a).total_cmp(&need(b)))
}

/// Whether the threads of a load poll: then they use all of their CPUs, however little they carry.
pub(crate) fn polls(model: &Model, direction: Direction) -> bool {
    model.direction(direction).is_some_and(|dir| dir.base.knobs.busy_poll)
}

/// The threads of the load at one end.
pub(crate) fn threads(load: &Load, direction: Direction, side: Side) -> &[Thread] {
    if side == direction.sender() { &load.senders } else { &load.receivers }
}

/// Wall time of one byte on one of `threads` that carry `goodput` bits per second together, in picoseconds; `None`
/// without goodput.
pub(crate) fn ps_per_byte(goodput: f64, threads: u32) -> Option<f64> {
    (goodput > 0.0).then(|| 8e12 * f64::from(threads) / goodput)
}

/// How many threads of one end carry `streams` streams: one for each, or fewer that share them.
pub(crate) fn at_work(threads: &[Thread], streams: u32) -> u32 {
    match threads.len() as u32 {
        0 => streams,
        some => some.min(streams),
    }
}
