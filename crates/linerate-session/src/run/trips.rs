//! A sweep of round trips over message sizes, in interleaved rounds.

use linerate_facts::Gap;
use linerate_judge::model::shortest_trip;
use linerate_plan::path::Side;
use linerate_plan::study::{order, trips};
use linerate_plan::{Plan, Purpose};
use linerate_record::Record;
use linerate_units::stats::median;
use linerate_units::{Bytes, Nanos};

use super::once::{RoundTrips, possible};
use super::{Label, Run, session};
use crate::link::{Link, LinkError};
use linerate_judge::event::Sink;
use linerate_load::transport::Transport;

/// The message sizes of a sweep, and how round trips of each size are timed.
#[derive(Debug, Clone)]
pub struct TripSweep {
    /// Settings that the round trips of all sizes share; the `size` in them is not used.
    pub trips: RoundTrips,
    /// Message sizes, ascending.
    pub sizes: Vec<Bytes>,
    /// Gaps for the sizes that an end refused, with the reasons. [`trip_sweep`] fills them in.
    pub left_out: Vec<Gap>,
}

/// Returns the message sizes for a sweep of `trips` that `transport` can carry.
pub fn trip_sizes(transport: &dyn Transport, plan: &Plan, trips: RoundTrips) -> Vec<Bytes> {
    trips::sizes(|size| possible(transport, plan, Some(RoundTrips { size, ..trips })).is_ok())
}

/// Times round trips of each size in turn, in alternating order, for several rounds, within the time of the plan. A
/// first pass shows which sizes fit into the time. Returns the record and the error, as [`super::run`] does.
pub fn trip_sweep(
    link: &mut dyn Link,
    plan: Plan,
    sweep: &mut TripSweep,
    label: Label,
    sink: &mut dyn Sink,
) -> (Record, Option<LinkError>) {
    session(link, plan, label, sink, |run| run.by_size(sweep))
}

/// A size whose connection has already carried round trips.
#[derive(Debug, Clone, Copy)]
struct Warm {
    size: Bytes,
    set: u32,
    /// Shortest round trip of the size's last slice.
    trip: Nanos,
}

/// Results of the first pass over the sizes.
#[derive(Debug, Default)]
struct FirstPass {
    warm: Vec<Warm>,
    /// Time that each step took beyond its planned length, in nanoseconds.
    beyond: Vec<f64>,
}

impl FirstPass {
    /// Returns the median time that a step takes beyond its planned length. A disturbed step does not affect it much.
    fn usual_beyond(&mut self) -> Nanos {
        self.beyond.sort_by(f64::total_cmp);
        Nanos(median(&self.beyond).unwrap_or_default() as u64)
    }
}

/// Returns the index of the next size to try: `every` sizes further, or the largest before it that `may_try` permits.
fn next(
    sizes: &[Bytes],
    at: usize,
    every: usize,
    may_try: impl Fn(Bytes) -> bool,
) -> Option<usize> {
    let most = (at + every).min(sizes.len().checked_sub(1)?);
    (at + 1..=most).rev().find(|at| may_try(sizes[*at]))
}

impl Run<'_> {
    fn by_size(&mut self, sweep: &mut TripSweep) -> Result<(), LinkError> {
        let mut found = self.first_pass(sweep)?;
        let beyond = found.usual_beyond();
        let left = self.budget.left(self.link.now());
        let each: Vec<Nanos> = found.warm.iter().map(|size| size.trip).collect();
        let mut rounds = trips::rounds(left, &each, beyond);
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
        match sweep.left_out.first() {
            // If an end refuses every size, the sweep itself is refused.
            Some(Gap { why, hint, .. }) if self.record.steps.is_empty() => {
                Err(LinkError::Refused { what: why.clone(), hint: hint.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Prepares sizes in ascending order and times a few round
    /// trips of each, until the time for the first pass is over.
    fn first_pass(&mut self, sweep: &mut TripSweep) -> Result<FirstPass, LinkError> {
        let (began, time) = (self.link.now(), self.record.start.plan.time);
        let until = began.0.saturating_add(trips::first_pass(time).0);
        let mut found = FirstPass::default();
        let (mut at, mut every, mut longest) = (0, 1, Nanos(0));
        while let Some(size) = sweep.sizes.get(at).copied() {
            let now = self.link.now();
            if self.stopped || now.0 >= until {
                break;
            }
            let warm = self.warm(sweep, size, longest, &mut found.beyond)?;
            found.warm.extend(warm);
            let Some(last) = found.warm.last() else {
                at += 1;
                continue;
            };
            if found.warm.len() == 1 {
                // Slices with longer messages take longer.
                let took = self.link.now().0.saturating_sub(now.0);
                let each = Nanos(took.saturating_add(last.trip.0.saturating_mul(4)));
                every = trips::every(sweep.sizes.len(), each, time);
            }
            let Some(next) = next(&sweep.sizes, at, every, |size| {
                trips::may_try(trips::longest(last.trip, last.size, size), time)
            }) else {
                break;
            };
            longest = trips::longest(last.trip, last.size, sweep.sizes[next]);
            at = next;
        }
        Ok(found)
    }

    /// Prepares a size and times its first round trips; `None` if
    /// an end refuses the size, or no round trip was answered.
    fn warm(
        &mut self,
        sweep: &mut TripSweep,
        size: Bytes,
        longest: Nanos,
        beyond: &mut Vec<f64>,
    ) -> Result<Option<Warm>, LinkError> {
        let trips = RoundTrips { size, ..sweep.trips };
        let knobs = trips.knobs(&self.record.start.plan);
        let set = match self.set(trips.pattern(), knobs) {
            Err(LinkError::Refused { what, hint }) => {
                self.left_out(sweep, size, &what, hint);
                return Ok(None);
            }
            made => made?,
        };
        let slice = trips::first_slice(longest);
        let began = self.link.now();
        let trip = self.slice_of(size, set, [Nanos(0), slice])?;
        let took = self.link.now().0.saturating_sub(began.0);
        let Some(trip) = trip else {
            self.link.release(set)?;
            return Ok(None);
        };
        let more = took.saturating_sub(slice.0);
        beyond.push(more as f64);
        Ok(Some(Warm { size, set, trip }))
    }

    /// Measures one slice of each size that has a connection.
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

    /// Times round trips of a size; returns the shortest one.
    /// `None` if the connections were lost, or none was answered.
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
        let trip = step.and_then(|step| shortest_trip(&self.record, step));
        Ok(trip.filter(|_| !self.broke()))
    }

    fn left_out(&mut self, sweep: &mut TripSweep, size: Bytes, what: &str, hint: String) {
        let gap =
            Gap { what: format!("round trips of {size}"), why: format!("left out: {what}"), hint };
        self.hint(Side::Far, &gap);
        sweep.left_out.push(gap);
    }
}

#[cfg(test)]
mod tests {
    use linerate_judge::model::{SizeTrips, by_size};
    use linerate_plan::{Knobs, Pattern, SetPlan, StepPlan};
    use linerate_record::{End, EndReadings, Host, Set, Step};
    use linerate_units::stats::{Exact, Histogram};

    use super::*;
    use crate::link::{Live, StepControl};
    use linerate_judge::event::{Event, RunControl};
    use linerate_load::transport::transport;

    const MS: u64 = 1_000_000;

    /// A path without noise, in virtual time: its round trip, and
    /// the nanoseconds that each byte takes in each direction.
    struct Path {
        now: u64,
        rtt: u64,
        byte_ns: f64,
        sets: Vec<SetPlan>,
        /// Size of the largest message that the far end accepts.
        most: u64,
    }

    impl Path {
        fn trip(&self, set: u32) -> u64 {
            let plan = self.sets.iter().find(|plan| plan.id == set).unwrap();
            let Pattern::PingPong { size, .. } = plan.pattern else { panic!("{plan:?}") };
            self.rtt + (size.0 as f64 * 2.0 * self.byte_ns) as u64
        }
    }

    impl Link for Path {
        fn now(&self) -> Nanos {
            Nanos(self.now)
        }

        fn hosts(&mut self) -> Result<Vec<Host>, LinkError> {
            Ok(Vec::new())
        }

        fn prepare(&mut self, plan: &SetPlan) -> Result<Set, LinkError> {
            self.now += 3 * self.rtt;
            self.sets.push(plan.clone());
            match plan.pattern {
                Pattern::PingPong { size, .. } if size.0 > self.most => {
                    Err(LinkError::Refused { what: "too large".to_owned(), hint: String::new() })
                }
                _ => Ok(Set { plan: plan.clone(), ends: Vec::new() }),
            }
        }

        fn step(
            &mut self,
            plan: &StepPlan,
            _: &mut dyn FnMut(Live) -> StepControl,
        ) -> Result<Step, LinkError> {
            let trip = self.trip(plan.sets[0]);
            let length = plan.washout.0 + plan.measure.0;
            let all = length.div_ceil(trip);
            // Round trips that began in the washout do not count.
            let counted = all - plan.washout.0.div_ceil(trip).min(all);
            let began = Nanos(self.now);
            self.now += all * trip + 3 * self.rtt + 5 * MS;
            let exact = Exact { least: trip, most: trip, sum: counted * trip, deviation_ps: 0 };
            let times = Histogram {
                set: plan.sets[0],
                counts: vec![(trip, counted)],
                exact: Some(exact),
                ..Histogram::default()
            };
            Ok(Step {
                plan: plan.clone(),
                began,
                ends: vec![EndReadings {
                    latencies: Some(times).filter(|_| counted > 0).into_iter().collect(),
                    ..EndReadings::default()
                }],
                clock: None,
                took: Nanos(0),
                trouble: None,
            })
        }

        fn release(&mut self, _: u32) -> Result<(), LinkError> {
            Ok(())
        }
    }

    struct Deaf;

    impl Sink for Deaf {
        fn event(&mut self, _: &Event<'_>) -> RunControl {
            RunControl::Go
        }
    }

    /// Runs a sweep over a path with this round trip, and this rate in bits per nanosecond. Returns the sweep's record,
    /// its rows, and the time that the sweep took.
    fn swept(rtt: u64, rate: f64, secs: u64, most: u64) -> (Record, Vec<SizeTrips>, Nanos) {
        let plan = Plan {
            engine: "tcp".to_owned(),
            peer: None,
            reach: Vec::new(),
            knobs: Knobs::default(),
            directions: Vec::new(),
            time: Nanos::from_secs(secs),
            sweep: true,
            trials: false,
        };
        let trips = RoundTrips {
            size: Bytes(0),
            interval: None,
            busy_poll: false,
            nagle: false,
            two_writes: false,
        };
        let sizes = trip_sizes(transport("tcp").unwrap(), &plan, trips);
        let mut sweep = TripSweep { trips, sizes: sizes.clone(), left_out: Vec::new() };
        let mut path = Path { now: 0, rtt, byte_ns: 8.0 / rate, sets: Vec::new(), most };
        let (record, _) = trip_sweep(&mut path, plan, &mut sweep, Label::default(), &mut Deaf);
        let rows = by_size(&record, &sizes);
        (record, rows, Nanos(path.now))
    }

    #[test]
    fn a_sweep_keeps_to_its_time_whatever_the_path() {
        for rtt in [10_000, MS, 20 * MS, 100 * MS, 600 * MS] {
            for rate in [100.0, 1.0, 0.1, 0.001] {
                let (record, rows, took) = swept(rtt, rate, 20, u64::MAX);
                let words = format!("{rtt} ns, {rate} Gb/s: {took}");
                assert_eq!(record.end, Some(End::Complete), "{words}");
                assert!(took <= Nanos::from_secs(20), "{words}");
                assert!(took >= Nanos::from_secs(12), "{words}");
                let found: Vec<&SizeTrips> =
                    rows.iter().filter(|row| row.times.is_some()).collect();
                assert!(!found.is_empty(), "{words}");
                for row in found {
                    let times = row.times.as_ref().unwrap();
                    assert!(times.counts[0].1 >= 6, "{words}: {row:?}");
                }
            }
        }
    }

    #[test]
    fn every_size_is_timed_where_all_fit_and_the_longest_are_left_out_elsewhere() {
        let fit = |rtt, rate| {
            let rows = swept(rtt, rate, 20, u64::MAX).1;
            rows.iter().map(|row| row.times.is_some()).collect::<Vec<bool>>()
        };
        assert_eq!(fit(50_000, 10.0), [true; 23]);
        let slow = fit(50_000, 0.01);
        let first = slow.iter().position(|timed| !timed).unwrap();
        assert!(first > 15 && slow[first..].iter().all(|timed| !timed), "{slow:?}");
        let far = fit(300 * MS, 10.0);
        assert!(far[0] && !far[1], "every n-th: {far:?}");
    }

    #[test]
    fn sizes_that_an_end_refuses_are_left_out_and_none_is_an_error() {
        let (record, rows, _) = swept(50_000, 10.0, 20, 1 << 20);
        assert_eq!(record.end, Some(End::Complete));
        assert_eq!(rows.iter().filter(|row| row.times.is_some()).count(), 20);
        let (record, ..) = swept(50_000, 10.0, 20, 0);
        let why = "left out: too large".to_owned();
        assert_eq!(record.end, Some(End::Failed { why }));
    }
}
