//! A step that was measured once and by itself: what a single probe tells.

use super::datagrams::{Counted, counted};
use super::load::{end, load, sent, steady_window, stream_set};
use super::readings::{Window, growth};
use super::{Load, Thread};
use crate::metric as m;
use crate::plan::{Direction, Side};
use crate::record::{Histogram, Record, Step};
use crate::stats::merge;
use crate::units::{Bytes, Nanos};

/// One direction of a step, with what one load is asked for that a verdict is not.
#[derive(Debug, Clone, PartialEq)]
pub struct Once {
    /// Which direction.
    pub direction: Direction,
    /// The load.
    pub load: Load,
    /// Payload that the sender handed to its kernel and that the receiver took from its own, each over its
    /// own clock, in the time that goodput is over; `None` where it was not counted.
    pub moved: [Option<(Bytes, Nanos)>; 2],
    /// Segments sent again in that time; `None` where a counter is missing.
    pub again: Option<u64>,
    /// CPU time of the threads that move payload, in nanoseconds for each byte of goodput: of the sender
    /// and of the receiver; `None` where it was not read.
    pub cpu_per_byte: [Option<f64>; 2],
    /// What became of its datagrams in that time; `None` where it sends none.
    pub datagrams: Option<Counted>,
    /// Times from one send to the next in the time that counts, of a sender that keeps a rate by itself.
    pub send_gaps: Option<Histogram>,
}

/// What `step` says of one direction; `None` when it did not load it or nothing was counted.
pub fn once(record: &Record, step: &Step, direction: Direction) -> Option<Once> {
    let set = stream_set(record, step, direction)?.plan.id;
    let load = load(record, step, direction)?;
    let receiving = end(step, direction.receiver())?;
    let window = steady_window(step, receiving, set);
    let sides = [direction.sender(), direction.receiver()];
    let sending = end(step, direction.sender())?;
    let again = sent(sending, set, window);
    let bytes_per_second = load.goodput.mean / 8.0;
    let threads = [&load.senders, &load.receivers];
    Some(Once {
        direction,
        moved: [(sides[0], "tx"), (sides[1], "rx")]
            .map(|(side, role)| moved(step, side, &format!("s{set}/{role}"), window)),
        again: again.map(|count| count.events.max(0.0) as u64),
        cpu_per_byte: threads.map(|threads| cpu_per_byte(threads, bytes_per_second)),
        datagrams: counted(sending, receiving, set, window),
        send_gaps: merge(sending.send_gaps.iter().filter(|gaps| gaps.set == set)),
        load,
    })
}

/// Payload that the workers of one side moved, and the time between the readings of the first of them.
fn moved(step: &Step, side: Side, prefix: &str, window: Window) -> Option<(Bytes, Nanos)> {
    let workers = end(step, side)?.about("worker", |s| s.starts_with(prefix));
    let grown: Vec<(f64, f64)> = workers
        .map(|table| growth(table, m::WORKER_BYTES, window))
        .collect::<Option<_>>()?;
    let (_, seconds) = *grown.first()?;
    let bytes: f64 = grown.iter().map(|(bytes, _)| bytes).sum();
    Some((Bytes(bytes as u64), Nanos((seconds * 1e9) as u64)))
}

fn cpu_per_byte(threads: &[Thread], bytes_per_second: f64) -> Option<f64> {
    let busy: f64 = threads.iter().map(|t| t.busy).sum::<Option<f64>>()?;
    (!threads.is_empty() && bytes_per_second > 0.0).then(|| busy * 1e9 / bytes_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_of_all_threads_or_not_told() {
        let thread = |busy| Thread {
            busy,
            ..Thread::default()
        };
        let two = [thread(Some(0.5)), thread(Some(0.25))];
        assert_eq!(cpu_per_byte(&two, 1e9), Some(0.75));
        assert_eq!(cpu_per_byte(&two, 0.0), None);
        assert_eq!(cpu_per_byte(&[thread(Some(0.5)), thread(None)], 1e9), None);
        assert_eq!(cpu_per_byte(&[], 1e9), None);
    }
}
