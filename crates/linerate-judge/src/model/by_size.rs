//! Round trips by message size: for each size, the times over all rounds of a sweep.

use super::delayed::delayed;
use super::derive::round_trips;
use super::sweep::steps_of;
use linerate_ceiling::fingerprint::{Point, Spread};
use linerate_plan::Pattern;
use linerate_plan::study::trips::longest;
use linerate_record::{Record, Step};
use linerate_units::stats::{Histogram, merge, middle};
use linerate_units::{Bytes, Nanos};

/// A message size of a sweep, and its round trips.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeTrips {
    /// Payload of a message, and of its answer.
    pub size: Bytes,
    /// Round trips of all slices that count; `None` if no message was answered.
    pub times: Option<Histogram>,
    /// Shortest round trip of the first slice, which warms the connection up; `None` if that slice was not measured.
    pub first: Option<Nanos>,
    /// Total time of the slices that count.
    pub lasted: Nanos,
    /// Total time at the start of these slices, which is not measured.
    pub washout: Nanos,
    /// The time that the typical round trip waited for a delayed acknowledgement.
    pub delayed: Option<Nanos>,
}

impl SizeTrips {
    /// The median of the round trips, if there are enough of them.
    pub fn typical(&self) -> Option<Nanos> {
        middle(self.times.as_ref()?).map(Nanos)
    }

    /// The longest time that a round trip of the larger `size` may take.
    pub fn longest_of(&self, size: Bytes) -> Option<Nanos> {
        Some(longest(self.first?, self.size, size))
    }

    /// The point of this size for a fit of one-way times: half of the typical round trip.
    pub fn half(&self) -> Option<Point> {
        let time = Nanos(self.typical()?.0 / 2);
        Some(Point { size: self.size, time })
    }

    /// The shortest and the typical round trip of this size.
    pub fn spread(&self) -> Option<Spread> {
        Some(Spread {
            size: self.size,
            least: Nanos(self.times.as_ref()?.exact.as_ref()?.least),
            typical: self.typical()?,
        })
    }
}

/// Whether a record is a sweep of round trips over message sizes: it loads no direction, and times messages of each
/// size in more than one step.
pub fn is_by_size(record: &Record) -> bool {
    let sized = record.sets.iter().filter_map(|set| size_of(set.plan.pattern));
    record.start.plan.directions.is_empty() && record.start.plan.sweep && sized.count() > 0
}

/// The round trips of each of these message sizes.
pub fn by_size(record: &Record, sizes: &[Bytes]) -> Vec<SizeTrips> {
    sizes.iter().map(|size| of_size(record, *size)).collect()
}

/// The shortest round trip of a step; `None` if no message was answered.
pub fn shortest_trip(record: &Record, step: &Step) -> Option<Nanos> {
    let exact = round_trips(record, step)?.exact?;
    Some(Nanos(exact.least))
}

fn size_of(pattern: Pattern) -> Option<Bytes> {
    match pattern {
        Pattern::PingPong { size, .. } => Some(size),
        Pattern::Stream { .. } | Pattern::Operations { .. } => None,
    }
}

fn of_size(record: &Record, size: Bytes) -> SizeTrips {
    let mut first = None;
    let mut counted = Vec::new();
    let (mut lasted, mut washout) = (Nanos(0), Nanos(0));
    let mut waits = Vec::new();
    for (step, _, counts) in steps_of(record, |set| size_of(set.plan.pattern) == Some(size)) {
        if counts {
            let times = round_trips(record, step);
            waits.extend(times.as_ref().map(|times| delayed(record, step, times)));
            counted.extend(times);
            lasted.0 = lasted.0.saturating_add(step.plan.measure.0);
            washout.0 = washout.0.saturating_add(step.plan.washout.0);
        } else {
            first = first.or_else(|| shortest_trip(record, step));
        }
    }
    let times = merge(&counted).filter(|times| !times.counts.is_empty());
    waits.sort();
    SizeTrips {
        size,
        times,
        first,
        lasted,
        washout,
        delayed: waits.get(waits.len() / 2).copied().flatten(),
    }
}
