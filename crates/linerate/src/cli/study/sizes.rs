//! `linerate lat --sweep`: times round trips of several message sizes, in turn.

use anyhow::anyhow;
use linerate_load::transport;
use linerate_plan::Plan;
use linerate_record::{Made, Record};
use linerate_session::run::{RoundTrips, TripSweep, trip_sizes, trip_sweep};
use linerate_units::{Bytes, Nanos};

use super::super::exit::Failure;
use super::super::options::{Options, TripPattern};
use super::super::resolve::{self, Needs};
use super::super::session::Stop;
use super::super::single;
use super::Done;

/// Time of the whole sweep if `--time` is not given.
const TIME: Nanos = Nanos::from_secs(20);

/// Times round trips of several sizes.
pub(in super::super) fn measure(
    target: Option<&str>,
    options: &Options,
    stop: &Stop,
) -> Result<Done, Failure> {
    refuse(options)?;
    let engine = resolve::engine(&options.run, Needs::RoundTrips)?;
    let peer = resolve::far_end(&engine, target)?;
    let plan = Plan {
        engine,
        peer: peer.map(str::to_owned),
        reach: Vec::new(),
        knobs: resolve::knobs_of(options),
        directions: Vec::new(),
        time: options.lat.time.map_or(TIME, |t| t.0),
        sweep: true,
        trials: false,
    };
    let mut sweep = requested(&plan, options)?;
    let measured = single::open(plan, Made::Lat, options, stop, |link, plan, label, sink| {
        trip_sweep(link, plan, &mut sweep, label, sink)
    })?;
    Ok(Done { measured, left_out: sweep.left_out })
}

/// The message sizes of a recorded sweep that its transport can carry.
pub(super) fn carried(record: &Record) -> Vec<Bytes> {
    let plan = &record.start.plan;
    let knobs = record.sets.first().map(|set| set.plan.knobs.clone()).unwrap_or_default();
    let trips = RoundTrips {
        size: Bytes(0),
        interval: None,
        busy_poll: knobs.busy_poll,
        nagle: knobs.nagle,
        two_writes: knobs.two_writes,
    };
    let engine = transport::transport(&plan.engine);
    engine.map_or_else(Vec::new, |engine| trip_sizes(engine, plan, trips))
}

/// The message sizes that the engine can carry, and how round trips are timed.
fn requested(plan: &Plan, options: &Options) -> Result<TripSweep, Failure> {
    let trips = RoundTrips {
        size: Bytes(0),
        interval: None,
        busy_poll: options.lat.busy_poll == Some(true),
        nagle: options.lat.nodelay == Some(false),
        two_writes: options.lat.pattern == Some(TripPattern::WriteWriteRead),
    };
    let engine = transport::transport(&plan.engine);
    let sizes = engine.map_or_else(Vec::new, |engine| trip_sizes(engine, plan, trips));
    if sizes.is_empty() {
        // A transport that refuses this size refuses every size, for the same reason.
        let size = Bytes(64);
        resolve::possible(plan, Some(RoundTrips { size, ..trips }))?;
    }
    Ok(TripSweep { trips, sizes, left_out: Vec::new() })
}

/// Refuses options that contradict a sweep.
fn refuse(options: &Options) -> Result<(), Failure> {
    let requested = &options.lat;
    let rows = [
        (requested.size.is_some(), "--sweep size measures all sizes", "leave out --size"),
        (
            requested.rate.is_some(),
            "--sweep size sends each message when the answer before it has arrived",
            "leave out --rate",
        ),
        (requested.beside.is_some(), "--sweep size times an idle path", "leave out --beside"),
        (
            resolve::is_alone(&options.run),
            "--sweep size needs an engine with a far end",
            "linerate bw --engine memory --sweep size has the rates of arrays",
        ),
        (
            options.report.expect.as_ref().is_some_and(|all| !all.is_empty()),
            "--expect is about one figure, and a sweep has one for each size",
            "--size with one of the sizes",
        ),
    ];
    match rows.into_iter().find(|(is_requested, ..)| *is_requested) {
        Some((_, what, hint)) => Err(Failure::usage(anyhow!("{what}")).hint(hint)),
        None => Ok(()),
    }
}
