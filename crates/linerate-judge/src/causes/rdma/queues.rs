//! Requests in flight of an RDMA load, for causes that find too few of them.

use crate::causes::FULL;
use crate::causes::prelude::*;
use crate::causes::rdma::port::carries;
use crate::causes::rdma::verbs::{queue_pairs, requester};
use crate::signs::round_trips::median;
use linerate_plan::transport::rdma::{self, Operation};
use linerate_units::Nanos;

/// Ratio of the time of a request in a full queue to that of a single one. Up to this ratio nothing queues.
const UNQUEUED: f64 = 1.2;

/// Minimum ratio of these times at which requests already queue at another limit.
const QUEUED: f64 = 2.0;

/// The send queues of a load, which the program keeps full.
pub(crate) struct Queues<'a> {
    pub load: &'a Load,
    /// The end that posts the requests.
    pub(crate) requester: Side,
    /// Number of queue pairs of all streams together.
    pub(crate) pairs: u32,
    /// Requests that the program posts to each queue pair.
    pub(crate) depth: u32,
    /// Reads and atomic operations that the devices keep in flight in each queue pair; `None` for other operations, and
    /// if unknown.
    pub(crate) reads: Option<u32>,
    /// Payload of a request, in bytes.
    size: f64,
    /// Round trip of a single message, in seconds.
    trip: f64,
    /// Bits per second that the port carries at most; `None` if unknown.
    wire: Option<f64>,
}

impl<'a> Queues<'a> {
    /// The send queues of a direction's load.
    pub(crate) fn of(model: &'a Model, direction: Direction) -> Result<Self, NoFinding> {
        let load = base(model, direction)?;
        let options = &load.knobs.options;
        let trip = median(model.idle.as_ref());
        let trip = trip.ok_or_else(|| {
            unknown("the round trip of a message that is alone", "it was not timed")
        })?;
        let ceilings = model.direction(direction).map(|dir| &dir.ceilings);
        let wire = ceilings.into_iter().flatten().map(|c| c.rate.0).min();
        let requester = requester(load, direction);
        let reads = load.rdma(direction, requester).map(|end| end.reads_out);
        let returns = Operation::of(options).returns();
        Ok(Self {
            load,
            requester,
            reads: reads.filter(|reads| returns && *reads > 0),
            pairs: queue_pairs(load) as u32,
            depth: rdma::depth(options),
            size: load.made.at(direction, direction.sender()).write_size as f64,
            trip: trip.0 as f64 / 1e9,
            wire: wire.map(|rate| rate as f64),
        })
    }

    /// Number of requests in flight in each queue pair.
    pub(crate) fn in_flight(&self) -> u32 {
        self.reads.unwrap_or(u32::MAX).min(self.depth)
    }

    /// Seconds for which a request was in flight, if each queue pair had `depth` requests in flight.
    //= Little, "A Proof for the Queuing Formula: L = lambda W", Operations Research 9 (3), 1961
    fn time(&self, depth: u32) -> f64 {
        f64::from(self.pairs) * f64::from(depth) * self.on_wire(None)
    }

    /// Seconds that a request's payload takes on a wire of this rate; without one, at the load's goodput.
    fn on_wire(&self, rate: Option<f64>) -> f64 {
        self.size * 8.0 / rate.unwrap_or(self.load.goodput.mean).max(1.0)
    }

    /// Least ratio of a request's time in flight to that of a single request, which takes at most a round trip.
    fn ratio(&self, depth: u32) -> f64 {
        self.time(depth) / (self.trip + self.on_wire(self.wire)).max(1e-12)
    }

    /// Whether requests wait in a queue, or the wire is full: more requests in flight then carry no more.
    pub(crate) fn wait(&self, depth: u32) -> bool {
        self.fills_wire() || self.ratio(depth) >= QUEUED
    }

    /// Whether requests were in flight hardly longer than a single one, so that the queue runs empty. This is known
    /// only if the rate of the wire is, and if the program polls. A message that is answered by another one takes at
    /// least half a round trip.
    pub(crate) fn runs_dry(&self, depth: u32) -> bool {
        let op = Operation::of(&self.load.knobs.options);
        let trip = if op.returns() { self.trip } else { self.trip / 2.0 };
        let alone = self.wire.map(|wire| trip + self.on_wire(Some(wire)));
        let polls = rdma::polls(&self.load.knobs.options);
        polls && alone.is_some_and(|alone| self.time(depth) < alone * UNQUEUED)
    }

    /// The share of the goodput that may be missing because too few requests are in flight.
    pub(crate) fn share(&self, depth: u32) -> f64 {
        (QUEUED - self.ratio(depth)).clamp(0.0, 1.0)
    }

    /// The times in words: `a request of 65536 B was in flight for 12 us; a message alone takes 10 us there and back`.
    pub(crate) fn words(&self, depth: u32) -> String {
        let nanos = |secs: f64| Nanos((secs * 1e9) as u64);
        format!(
            "a request of {} B was in flight for {}, and a message alone takes {} there and back",
            self.size,
            nanos(self.time(depth)),
            nanos(self.trip)
        )
    }

    /// Whether a port or a slot is full.
    pub(crate) fn fills_wire(&self) -> bool {
        let goodput = self.load.goodput.at_most();
        self.wire.is_some_and(|wire| goodput >= wire * FULL)
    }

    /// The end at which the requests are posted.
    pub(crate) fn place(&self) -> Place {
        Place::from(self.requester)
    }
}

/// The load of a direction, if requests to RDMA devices carry it.
pub(crate) fn load(model: &Model, direction: Direction) -> Option<&Load> {
    let load = model.direction(direction).map(|dir| &dir.base);
    load.filter(|load| carries(load))
}
