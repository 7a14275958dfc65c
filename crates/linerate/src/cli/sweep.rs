//! `linerate bw --sweep`: the same load with each setting of one factor in turn.

use anyhow::anyhow;
use linerate_core::path::Direction;
use linerate_core::plan::{Knobs, Plan};
use linerate_core::sweep::{Pace, Swept};
use linerate_core::units::Nanos;
use linerate_engine::run::{Sweep, sweep};

use super::exit::{Exit, Failure};
use super::options::{self, HandOver, Options, Ways};
use super::resolve::Needs;
use super::single::{self, THIS_HOST};
use super::{out, resolve};
use crate::expect::Found;
use crate::show::sweep::{self as show, Probe};

/// Time of all rounds where none is asked for.
const TIME: Nanos = Nanos::from_secs(60);

/// The engine that has all that is swept.
const ENGINE: &str = "tcp";

/// Most streams where no bound is asked for.
const STREAMS: u32 = 64;

pub(crate) fn run(
    target: Option<&str>,
    what: options::Sweep,
    options: &Options,
) -> Result<Exit, Failure> {
    let mut asked = asked(what, options)?;
    let target = resolve::far_end(ENGINE, target)?.unwrap_or(THIS_HOST);
    let plan = Plan {
        engine: ENGINE.to_owned(),
        peer: Some(target.to_owned()),
        knobs: asked.settings.first().cloned().unwrap_or_default(),
        directions: vec![asked.direction],
        time: options.bw.time.map_or(TIME, |t| t.0),
        sweep: false,
        trials: false,
    };
    let mut measured = single::open(plan, options, |link, plan, wall, sink| {
        sweep(link, plan, &mut asked, wall, sink)
    })?;
    let probe = Probe::of(target, &measured.address, &measured.record, &asked);
    if let Some(mut stream) = measured.stream.take() {
        stream.sweep(&probe, measured.told(options));
        stream.finish().map_err(out::failed)?;
    } else {
        let record = measured.told(options);
        out::result(
            options,
            || show::json(&probe, record),
            || show::page(&probe),
        )?;
    }
    let found = Found::figures(probe.summary());
    Ok(measured.exit(probe.complete(), &found, options))
}

/// What is to be measured, where nothing that was asked for contradicts it.
fn asked(what: options::Sweep, options: &Options) -> Result<Sweep, Failure> {
    let (load, refuse) = (&options.load, |what: &str, hint: &str| {
        Err(Failure::usage(anyhow!("{what}")).hint(hint))
    });
    let direction = match options.bw.direction {
        Some(Ways::Both) => {
            return refuse("a sweep loads one direction", "-d forward, then -d reverse");
        }
        Some(Ways::Reverse) => Direction::Reverse,
        Some(Ways::Forward) | None => Direction::Forward,
    };
    if options.bw.find_rate.is_some() {
        return refuse(
            "a sweep and a search for a rate are two measurements",
            "leave out --sweep or --find-rate",
        );
    }
    if options.bw.discard == Some(true) {
        return refuse(
            "a sweep is of what programs can do, and they read what they receive",
            "leave out --discard",
        );
    }
    if resolve::engine(&options.run, Needs::Load)? != ENGINE {
        return refuse("a sweep is by TCP", "leave out --engine");
    }
    let swept = match what {
        options::Sweep::Copy => Swept::Copy,
        options::Sweep::Size => Swept::Size,
        options::Sweep::Streams => Swept::Streams,
    };
    let sized = load.size.or(load.write_size).or(load.read_size);
    if swept == Swept::Size && sized.is_some() {
        return refuse(
            "a sweep of sizes takes all of them",
            "leave out --size, --write-size and --read-size",
        );
    }
    if swept == Swept::Copy && !matches!(load.copy, None | Some(HandOver::Copy)) {
        return refuse("a sweep takes every way to copy", "leave out --copy");
    }
    let base = resolve::knobs(load);
    let most = load.streams.map_or(STREAMS, |streams| streams.0);
    let settings = swept.settings(&base, most);
    Ok(Sweep {
        swept,
        direction,
        pace: pace(options.bw.time.map_or(TIME, |t| t.0), &settings)?,
        settings,
        left_out: Vec::new(),
    })
}

/// Rounds of these settings within the time, where it is enough for the fewest.
fn pace(time: Nanos, settings: &[Knobs]) -> Result<Pace, Failure> {
    Pace::of(time, settings.len()).ok_or_else(|| {
        let least = Pace::least(settings.len());
        let error = anyhow!(
            "{time} are too short for rounds of {} settings: {least} at least",
            settings.len()
        );
        Failure::usage(error).hint(format!("--time {}", least.exact()))
    })
}
