//! `linerate lat --sweep`: round trips of several message sizes, in turn.

use anyhow::anyhow;
use linerate_judge::figure::Summary;
use linerate_load::transport;
use linerate_plan::Plan;
use linerate_record::{Made, Record};
use linerate_session::run::{RoundTrips, TripSweep, trip_sizes, trip_sweep};
use linerate_units::{Bytes, Nanos};

use super::exit::{Exit, Failure, tell};
use super::options::{Options, TripPattern};
use super::resolve::{self, Needs};
use super::single::Measured;
use super::{out, single};
use crate::expect::Found;
use linerate_show::trips::{self as show, Probe};
use linerate_show::{like, noted, one_line};

/// Time of the whole sweep if none is asked for.
const TIME: Nanos = Nanos::from_secs(20);

/// Times round trips of several sizes.
pub(super) fn measure(
    target: Option<&str>,
    options: &Options,
) -> Result<(Measured, Probe), Failure> {
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
    let mut sweep = asked(&plan, options)?;
    let measured = single::open(plan, Made::Lat, options, |link, plan, label, sink| {
        trip_sweep(link, plan, &mut sweep, label, sink)
    })?;
    let mut probe = Probe::of(&measured.record, &sizes(&measured.record));
    probe.refused(&sweep.left_out);
    Ok((measured, probe))
}

pub(crate) fn run(target: Option<&str>, options: &Options) -> Result<Exit, Failure> {
    let (mut measured, probe) = measure(target, options)?;
    if let Some(like) = options.lat.like {
        out::print(&like::page(like.into(), &probe.timed()))?;
        tell(&not_measured(&probe));
    } else if let Some(mut stream) = measured.stream.take() {
        stream.trips(&probe, measured.told(options));
        stream.finish().map_err(out::failed)?;
    } else {
        let record = measured.told(options);
        out::result(
            options,
            || show::json(&probe, record),
            || noted(show::page(&probe), &measured.record),
        )?;
    }
    let summary = Summary::default();
    Ok(measured.exit(probe.complete(), &Found::figures(summary), options))
}

/// Prints the result of a sweep that was kept.
pub(super) fn shown(record: &Record, options: &Options) -> Result<Exit, Failure> {
    let probe = Probe::of(record, &sizes(record));
    let told = (options.report.with_record == Some(true)).then_some(record);
    out::result(options, || show::json(&probe, told), || noted(show::page(&probe), record))?;
    Ok(if probe.complete() { Exit::Done } else { Exit::NotMeasured })
}

/// The sizes that a table of another tool leaves out.
pub(super) fn not_measured(probe: &Probe) -> String {
    let lacking = probe.lacking();
    let line = |(why, sizes): &(String, Vec<Bytes>)| {
        let sizes: Vec<String> = sizes.iter().map(Bytes::to_string).collect();
        format!("not measured: {}: {}\n", sizes.join(", "), one_line(why))
    };
    lacking.iter().map(line).collect()
}

/// The sizes that the transport of a sweep can carry.
pub(super) fn sizes(record: &Record) -> Vec<Bytes> {
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

/// The sizes that the engine can carry, and how they are timed.
fn asked(plan: &Plan, options: &Options) -> Result<TripSweep, Failure> {
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
        // The reason is the same for every size.
        let size = Bytes(64);
        resolve::possible(plan, Some(RoundTrips { size, ..trips }))?;
    }
    Ok(TripSweep { trips, sizes, left_out: Vec::new() })
}

/// Refuses options that contradict a sweep.
fn refuse(options: &Options) -> Result<(), Failure> {
    let asked = &options.lat;
    let rows = [
        (asked.size.is_some(), "--sweep size measures all sizes", "leave out --size"),
        (
            asked.rate.is_some(),
            "--sweep size sends each message when the answer before it has arrived",
            "leave out --rate",
        ),
        (asked.beside.is_some(), "--sweep size times an idle path", "leave out --beside"),
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
    match rows.into_iter().find(|(is_asked, ..)| *is_asked) {
        Some((_, what, hint)) => Err(Failure::usage(anyhow!("{what}")).hint(hint)),
        None => Ok(()),
    }
}
