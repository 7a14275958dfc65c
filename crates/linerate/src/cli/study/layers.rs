//! `linerate run --layers`: measures one path by verbs, by sockets, and by an ordinary program with and without the
//! preload.

use anyhow::anyhow;
use linerate_plan::path::Direction;
use linerate_plan::study::{Axis, AxisValue};
use linerate_plan::transport::{self, PRELOAD, Setting, TransportInfo, rdma};
use linerate_plan::{Knobs, Plan};
use linerate_record::Made;
use linerate_session::run::{RoundTrips, once};
use linerate_show::study::{LAYERS, PART};
use linerate_units::{Bytes, Nanos};

use super::super::exit::{Exit, Failure, tell};
use super::super::options::Options;
use super::super::resolve;
use super::super::session::{self, Stop};
use super::super::single::{self, WASHOUT};
use super::{Done, Parts};

/// Message sizes of the round trips: one that fits into a request of the card (inline), and a page.
const SIZES: [Bytes; 2] = [Bytes(64), Bytes(4096)];
/// Least measuring time of each part.
const LEAST: Nanos = Nanos::from_millis(200);

/// The key of an option, and a function that makes its setting.
type Chosen = (&'static str, fn() -> Setting);

/// A layer: its name, its transport, and an option that makes the transport this layer.
struct Kind {
    name: &'static str,
    info: &'static TransportInfo,
    option: Option<Chosen>,
}

/// The layers, in the order of the columns. Verbs send messages and do not write to remote memory: both programs take
/// part, as with sockets.
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

/// One measurement of a layer: round trips of a size, or a load of a direction.
#[derive(Clone, Copy)]
enum Part {
    Trips(Bytes),
    Load(Direction),
}

impl Part {
    fn value(self) -> AxisValue {
        match self {
            Self::Trips(size) => AxisValue::size(size),
            Self::Load(direction) => AxisValue::word(direction.name().to_owned()),
        }
    }
}

/// The far end; an error without one, because a path within this host has no layers.
pub(in super::super) fn target(peer: Option<&str>) -> Result<&str, Failure> {
    peer.ok_or_else(|| {
        let error = anyhow!("--layers needs a far end with an RDMA port");
        Failure::usage(error).hint("linerate run HOST --layers")
    })
}

pub(in super::super) fn run(plan: &Plan, target: &str, options: &Options) -> Result<Exit, Failure> {
    let loads = plan.directions.iter().copied().map(Part::Load);
    let all: Vec<Part> = SIZES.into_iter().map(Part::Trips).chain(loads).collect();
    let each = plan.time.0 / (KINDS.len() * all.len()) as u64;
    let time = Nanos(each.saturating_sub(WASHOUT.0)).max(LEAST);
    let axes = vec![
        Axis::of(LAYERS, KINDS.iter().map(|kind| kind.name.to_owned())),
        Axis { name: PART.to_owned(), values: all.iter().map(|part| part.value()).collect() },
    ];
    // If a layer cannot be measured, all of its parts fail with the same reason.
    let mut failed: Option<(usize, String, String)> = None;
    let parts = Parts::measured(axes, false, options, |at, options, stop| {
        let (layer, part) = (at[0], at[1]);
        if let Some((_, why, hint)) = failed.as_ref().filter(|(known, ..)| *known == layer) {
            return Err(Failure::not_measured(anyhow!("{why}")).hint(hint));
        }
        let done = measured(&KINDS[layer], all[part], (target, time), options, stop);
        let done = done.inspect_err(|failure| {
            failed = Some((layer, format!("{:#}", failure.error), failure.hint.clone()));
        });
        done.map(|mut done| {
            // If the session failed later, what was measured before is shown and saved.
            if let Some(error) = done.measured.error.take() {
                tell(&session::link_failure(error).words());
            }
            let exit = if done.measured.unsaved { Exit::NotMeasured } else { Exit::Done };
            (done, exit)
        })
    })?;
    let exit = parts.shown(Some(target), options)?;
    Ok(if parts.study(Some(target)).complete() { exit } else { exit.or(Exit::NotMeasured) })
}

/// The options of a layer. The user may change those of verbs, but not the preload: it makes the layer what it is.
fn own(kind: &Kind, options: &Options) -> transport::Options {
    let mut own = options.engine.of(kind.info);
    if let Some((key, setting)) = kind.option
        && (key == PRELOAD.key || own.get(key).is_none())
    {
        own.set(key, setting());
    }
    own
}

/// Measures one part of a layer for `time`.
fn measured(
    kind: &Kind,
    part: Part,
    (target, time): (&str, Nanos),
    options: &Options,
    stop: &Stop,
) -> Result<Done, Failure> {
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
    let own = own(kind, options);
    let plan = Plan {
        engine: info.name.to_owned(),
        peer: Some(target.to_owned()),
        reach: Vec::new(),
        knobs: Knobs { options: own.of(info.options, pattern), ..Knobs::default() },
        directions,
        time: Nanos(WASHOUT.0 + time.0),
        sweep: false,
        trials: false,
    };
    resolve::possible(&plan, trips)?;
    let made = trips.map_or(Made::Bw, |_| Made::Lat);
    let measured = single::open(plan, made, options, stop, |link, plan, label, sink| {
        once(link, plan, WASHOUT, trips, label, sink)
    })?;
    Ok(Done::from(measured))
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
