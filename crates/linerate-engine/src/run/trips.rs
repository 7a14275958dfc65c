//! A sweep of round trips over message sizes, in interleaved rounds.

use linerate_core::facts::Gap;
use linerate_core::model::mean_trip;
use linerate_core::path::Side;
use linerate_core::plan::{Plan, Purpose};
use linerate_core::record::Record;
use linerate_core::stats::median;
use linerate_core::sweep::{order, trips};
use linerate_core::units::{Bytes, Nanos};

use super::once::{RoundTrips, possible};
use super::{Run, session};
use crate::event::Sink;
use crate::link::{Link, LinkError};
use crate::load::transport::Transport;

/// The sizes of a sweep, and how each is timed.
#[derive(Debug, Clone)]
pub struct TripSweep {
    /// Settings of all round trips; the size is that of none of them.
    pub trips: RoundTrips,
    /// Message sizes, ascending.
    pub sizes: Vec<Bytes>,
    /// Sizes that an end refused, and why: filled in by [`trip_sweep`].
    pub left_out: Vec<Gap>,
}

/// The message sizes of a sweep of `trips` that `transport` can carry.
pub fn trip_sizes(transport: &dyn Transport, plan: &Plan, trips: RoundTrips) -> Vec<Bytes> {
    trips::sizes(|size| possible(transport, plan, Some(RoundTrips { size, ..trips })).is_ok())
}

/// Times round trips of each size in turn, in alternating order, for several rounds, within the time of the plan. A first
/// pass shows which sizes fit into the time. Returns the record and the error, as [`super::run`] does.
pub fn trip_sweep(
    link: &mut dyn Link,
    plan: Plan,
    sweep: &mut TripSweep,
    wall_secs: u64,
    sink: &mut dyn Sink,
) -> (Record, Option<LinkError>) {
    session(link, plan, wall_secs, sink, |run| run.by_size(sweep))
}

/// A size whose connection is warm.
#[derive(Debug, Clone, Copy)]
struct Warm {
    size: Bytes,
    set: u32,
    /// Mean round trip.
    trip: Nanos,
}

/// What the first pass found.
#[derive(Debug, Default)]
struct FirstPass {
    warm: Vec<Warm>,
    /// Time that each step took in addition to its planned length and to the last round trip, in nanoseconds.
    beyond: Vec<f64>,
}

impl FirstPass {
    /// The usual time that a step takes in addition: one that was disturbed does not count.
    fn usual_beyond(&mut self) -> Nanos {
        self.beyond.sort_by(f64::total_cmp);
        Nanos(median(&self.beyond).unwrap_or_default() as u64)
    }
}

impl Run<'_> {
    fn by_size(&mut self, sweep: &mut TripSweep) -> Result<(), LinkError> {
        let mut found = self.first_pass(sweep)?;
        let beyond = found.usual_beyond();
        let left = self.budget.left(self.link.now());
        let mut rounds = trips::rounds(left, found.warm.len(), beyond);
        let mut warm: Vec<Option<Warm>> = found.warm.into_iter().map(Some).collect();
        let mut number = 0;
        while rounds > 0 && !self.stopped {
            let left = self.budget.left(self.link.now());
            self.round(&mut warm, number, Nanos(left.0 / rounds), beyond)?;
            (rounds, number) = (rounds - 1, number + 1);
        }
        for size in warm.into_iter().flatten() {
            self.link.release(size.set)?;
        }
        Ok(())
    }

    /// Prepares the sizes in ascending order and times a few round trips of each, as far as the time allows.
    fn first_pass(&mut self, sweep: &mut TripSweep) -> Result<FirstPass, LinkError> {
        let (began, time) = (self.link.now(), self.record.start.plan.time);
        let until = began.0.saturating_add(trips::first_pass(time).0);
        let mut found = FirstPass::default();
        let mut to_try: Vec<usize> = (0..sweep.sizes.len()).collect();
        let mut expected = Nanos(0);
        let mut at = 0;
        while let Some(size) = to_try.get(at).map(|at| sweep.sizes[*at]) {
            let now = self.link.now();
            if self.stopped || now.0 >= until || !trips::may_try(expected, time) {
                break;
            }
            if let Some(warm) = self.warm(sweep, size, expected, &mut found.beyond)? {
                found.warm.push(warm);
                expected = warm.trip;
            }
            if at == 0 {
                // Slices of longer messages are longer.
                let took = self.link.now().0.saturating_sub(began.0);
                let each = Nanos(took.saturating_add(expected.0.saturating_mul(2)));
                to_try = trips::tried(sweep.sizes.len(), each, time);
            }
            at += 1;
            // A message twice as long takes at most twice as long.
            if let Some(next) = to_try.get(at).map(|at| sweep.sizes[*at]) {
                expected.0 = expected.0.saturating_mul(next.0.div_ceil(size.0.max(1)));
            }
        }
        Ok(found)
    }

    /// Prepares a size and times its first round trips; `None` if an end refuses it, or none was answered.
    fn warm(
        &mut self,
        sweep: &mut TripSweep,
        size: Bytes,
        expected: Nanos,
        beyond: &mut Vec<f64>,
    ) -> Result<Option<Warm>, LinkError> {
        let trips = RoundTrips {
            size,
            ..sweep.trips
        };
        let knobs = trips.knobs(&self.record.start.plan);
        let set = match self.set(trips.pattern(), knobs) {
            Err(LinkError::Refused { what, hint }) => {
                self.left_out(sweep, size, what, hint);
                return Ok(None);
            }
            made => made?,
        };
        let slice = trips::first_slice(expected);
        let began = self.link.now();
        let trip = self.slice_of(size, set, [Nanos(0), slice])?;
        let took = self.link.now().0.saturating_sub(began.0);
        let Some(trip) = trip else {
            self.link.release(set)?;
            return Ok(None);
        };
        let more = took.saturating_sub(slice.0.saturating_add(trip.0));
        beyond.push(more as f64);
        Ok(Some(Warm { size, set, trip }))
    }

    /// Measures a slice of each size that has one.
    fn round(
        &mut self,
        warm: &mut [Option<Warm>],
        number: u32,
        time: Nanos,
        beyond: Nanos,
    ) -> Result<(), LinkError> {
        let alive: Vec<usize> = (0..warm.len()).filter(|at| warm[*at].is_some()).collect();
        let trips: Vec<Nanos> = warm.iter().flatten().map(|size| size.trip).collect();
        let slices = trips::slices(time, &trips, beyond);
        for k in order(number, alive.len()) {
            let at = alive[k];
            let (Some(size), Some(slice)) = (warm[at], slices[k]) else {
                continue;
            };
            if self.stopped {
                break;
            }
            match self.slice_of(size.size, size.set, trips::parts(slice))? {
                Some(trip) => warm[at] = Some(Warm { trip, ..size }),
                None if self.stopped => {}
                None => {
                    self.link.release(size.set)?;
                    warm[at] = None;
                }
            }
        }
        Ok(())
    }

    /// Times round trips of a size; returns their mean. `None` if the connections were lost, or nothing was answered.
    fn slice_of(
        &mut self,
        size: Bytes,
        set: u32,
        [washout, measure]: [Nanos; 2],
    ) -> Result<Option<Nanos>, LinkError> {
        let words = format!("round trips of {size}");
        let before = self.record.steps.len();
        self.step(Purpose::IdleLatency, &[set], washout, measure, &words)?;
        let step = self.record.steps.get(before);
        let trip = step.and_then(|step| mean_trip(&self.record, step));
        Ok(trip.filter(|_| !self.broke()))
    }

    fn left_out(&mut self, sweep: &mut TripSweep, size: Bytes, what: String, hint: String) {
        let gap = Gap {
            what: format!("round trips of {size}"),
            why: format!("left out: {what}"),
            hint,
        };
        self.hint(Side::Far, &gap);
        sweep.left_out.push(gap);
    }
}
