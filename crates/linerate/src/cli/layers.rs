//! `linerate run --layers`: one path by verbs, by sockets, and by an ordinary program with and without the preload.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use linerate_facts::Gap;
use linerate_judge::figure::{GOODPUT, Subject, Summary};
use linerate_judge::model::{derive, same_machine};
use linerate_plan::path::Direction;
use linerate_plan::transport::{self, PRELOAD, Setting, TransportInfo, rdma};
use linerate_plan::{Knobs, Plan};
use linerate_record::{Made, Record};
use linerate_session::run::{RoundTrips, once};
use linerate_units::{Bytes, Nanos};

use super::exit::{Exit, Failure, tell};
use super::options::Options;
use super::single::{self, WASHOUT};
use super::{out, reach, resolve, session, signal};
use linerate_show::layers::{self as show, Layer, Layers, Load, Trips};
use linerate_show::{bw, lat};

/// Sizes of round trips: one that fits a request itself, and a page.
const SIZES: [Bytes; 2] = [Bytes(64), Bytes(4096)];
/// Least measured time of each part.
const LEAST: Nanos = Nanos::from_millis(200);

/// The key of an option, and its setting.
type Chosen = (&'static str, fn() -> Setting);

/// A layer: its name, its transport, and an option of it.
struct Kind {
    name: &'static str,
    info: &'static TransportInfo,
    option: Option<Chosen>,
}

/// The layers, in the order of columns. Messages of verbs are sent, not written: both programs take part, as with sockets.
const KINDS: [Kind; 4] = [
    Kind {
        name: "verbs",
        info: &transport::RDMA,
        option: Some((rdma::OPERATION.key, || {
            Setting::Word(rdma::Operation::Send.name().to_owned())
        })),
    },
    Kind { name: "sockets", info: &transport::TCP, option: None },
    Kind {
        name: "program",
        info: &transport::PROGRAM,
        option: Some((PRELOAD.key, || Setting::Switch(false))),
    },
    Kind {
        name: "preload",
        info: &transport::PROGRAM,
        option: Some((PRELOAD.key, || Setting::Switch(true))),
    },
];

/// Part of the measurement of a layer.
#[derive(Clone, Copy)]
enum Part {
    Trips(Bytes),
    Load(Direction),
}

/// What all parts share.
struct Asked<'a> {
    target: &'a str,
    directions: Vec<Direction>,
    /// Measured time of each part.
    time: Nanos,
    options: &'a Options,
    stop: Arc<AtomicBool>,
}

/// The far end: without one there is no path that has layers.
pub(super) fn target(peer: Option<&str>) -> Result<&str, Failure> {
    peer.ok_or_else(|| {
        let error = anyhow!("--layers needs a far end with an RDMA port");
        Failure::usage(error).hint("linerate run HOST --layers")
    })
}

pub(super) fn run(plan: &Plan, target: &str, options: &Options) -> Result<Exit, Failure> {
    let parts = KINDS.len() * (SIZES.len() + plan.directions.len());
    let each = plan.time.0 / parts as u64;
    let asked = Asked {
        target,
        directions: plan.directions.clone(),
        time: Nanos(each.saturating_sub(WASHOUT.0)).max(LEAST),
        options,
        stop: reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?,
    };
    let mut layers = Layers {
        target: target.to_owned(),
        same_machine: None,
        sizes: SIZES.into(),
        directions: asked.directions.clone(),
        layers: Vec::new(),
    };
    let mut first = None;
    for kind in &KINDS {
        let (layer, same, failure) = measured(kind, &asked);
        layers.same_machine = layers.same_machine.or(same);
        first = first.or(failure);
        layers.layers.push(layer);
    }
    // Without any figure the failure of the first layer says more than a table.
    if let (None, Some(failure)) = (layers.same_machine, first) {
        return Err(failure);
    }
    out::result(options, || show::json(&layers), || show::page(&layers))?;
    Ok(if layers.complete() { Exit::Done } else { Exit::NotMeasured })
}

/// Measures one layer; returns whether both ends share a machine, if that was seen, and the failure that ended it.
fn measured(kind: &Kind, asked: &Asked<'_>) -> (Layer, Option<bool>, Option<Failure>) {
    if asked.options.global.quiet != Some(true) {
        tell(&format!("{}\n", kind.name));
    }
    let mut layer = Layer {
        name: kind.name,
        engine: kind.info.name,
        options: own(kind, asked.options),
        ..Layer::default()
    };
    let sizes = SIZES.into_iter().map(Part::Trips);
    let loads = asked.directions.iter().copied().map(Part::Load);
    let mut same = None;
    for part in sizes.chain(loads) {
        match record(kind, part, &layer.options, asked) {
            Ok(record) => {
                same = Some(same_machine(&record));
                add(&mut layer, part, asked.target, &record);
            }
            // The other parts would fail in the same way.
            Err(failure) => {
                layer.gaps.push(Gap {
                    what: kind.name.to_owned(),
                    why: format!("{:#}", failure.error),
                    hint: failure.hint.clone(),
                });
                return (layer, same, Some(failure));
            }
        }
    }
    (layer, same, None)
}

/// The options of a layer. The user may choose those of verbs; whether there is a preload is what the layer is.
fn own(kind: &Kind, options: &Options) -> transport::Options {
    let mut own = options.engine.of(kind.info);
    if let Some((key, setting)) = kind.option
        && (key == PRELOAD.key || own.get(key).is_none())
    {
        own.set(key, setting());
    }
    own
}

/// Measures one part of a layer, over a session of its own.
fn record(
    kind: &Kind,
    part: Part,
    own: &transport::Options,
    asked: &Asked<'_>,
) -> Result<Record, Failure> {
    let info = kind.info;
    let (pattern, directions, trips) = match part {
        Part::Load(direction) => (transport::PatternKind::Stream, vec![direction], None),
        Part::Trips(size) => {
            let trips = RoundTrips {
                size,
                interval: None,
                busy_poll: false,
                nagle: false,
                two_writes: false,
            };
            (transport::PatternKind::RoundTrips, Vec::new(), Some(trips))
        }
    };
    let plan = Plan {
        engine: info.name.to_owned(),
        peer: Some(asked.target.to_owned()),
        reach: Vec::new(),
        knobs: Knobs { options: own.of(info.options, pattern), ..Knobs::default() },
        directions,
        time: Nanos(WASHOUT.0 + asked.time.0),
        sweep: false,
        trials: false,
    };
    resolve::possible(&plan, trips)?;
    let (options, stop) = (asked.options, &asked.stop);
    let stopped = || stop.load(Ordering::Relaxed);
    let mut reached = session::connect(&plan, options, None, stop, &stopped)?;
    let made = trips.map_or(Made::Bw, |_| Made::Lat);
    let address = reached.address.clone();
    let measured = single::over((address, made), None, options, stop, |label, sink| {
        let measured = once(&mut *reached.link, plan, WASHOUT, trips, label, sink);
        drop(reached);
        measured
    })?;
    measured.whole()
}

/// Adds the figures of one part.
fn add(layer: &mut Layer, part: Part, target: &str, record: &Record) {
    match part {
        Part::Trips(size) => {
            let probe = lat::Probe::of(target, "", record);
            layer.trips.push(Trips { size, samples: probe.samples(), summary: probe.summary() });
            layer.gaps.extend_from_slice(probe.gaps());
        }
        Part::Load(direction) => {
            let probe = bw::Probe::own(target, "", record, None);
            layer.loads.push(Load {
                direction,
                summary: probe.summary(),
                share: share(record, direction, &probe.summary()),
            });
            layer.gaps.extend_from_slice(probe.gaps());
        }
    }
}

/// The share of the lowest known ceiling of a direction that its goodput reaches.
fn share(record: &Record, direction: Direction, found: &Summary) -> Option<f64> {
    let goodput = found.value(&GOODPUT, Subject::load(direction))?.mid;
    let model = derive(record);
    let ceiling = model.direction(direction)?.ceiling()?.rate.0;
    Some(goodput / (ceiling as f64).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_the_layer_and_the_users_own() {
        let all = |options: &Options| KINDS.each_ref().map(|kind| own(kind, options));
        let [verbs, sockets, program, preload] = all(&Options::default());
        assert_eq!(verbs.word(rdma::OPERATION.key), Some("send"));
        assert!(sockets.is_empty());
        assert!(!program.is_on(PRELOAD.key) && preload.is_on(PRELOAD.key));
    }
}
