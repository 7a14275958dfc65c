//! `linerate bw --sweep`: runs one load with each setting of one factor in turn.

use std::thread::available_parallelism;

use anyhow::anyhow;
use linerate_judge::model::SweepPlan;
use linerate_load::transport::memory;
use linerate_plan::path::Direction;
use linerate_plan::study::{Pace, Part};
use linerate_plan::transport::rdma::Operation;
use linerate_plan::transport::{self, FarEnd, Swept, TRANSPORTS, TransportInfo};
use linerate_plan::{Access, Knobs, Pattern, Plan};
use linerate_record::Made;
use linerate_session::run::sweep;
use linerate_units::Nanos;

use super::super::exit::{Exit, Failure};
use super::super::options::{self, HandOver, LoadDirections, Options};
use super::super::resolve::{self, Needs};
use super::super::session::Stop;
use super::super::single;
use super::Done;

/// Time of all rounds if `--time` is not given.
const TIME: Nanos = Nanos::from_secs(60);

/// Largest number of streams if `--streams` is not given.
const STREAMS: u32 = 64;

pub(crate) fn run(
    target: Option<&str>,
    what: options::SweepFactor,
    options: &Options,
) -> Result<Exit, Failure> {
    let mut requested = requested(what, options)?;
    let engine = resolve::engine(&options.run, Needs::Load)?;
    let peer = resolve::far_end(&engine, target)?;
    let plan = Plan {
        engine,
        peer: peer.map(str::to_owned),
        reach: Vec::new(),
        knobs: requested.settings.first().cloned().unwrap_or_default(),
        directions: vec![requested.direction],
        time: options.bw.time.map_or(TIME, |t| t.0),
        sweep: false,
        trials: false,
    };
    let axis = requested.swept.axis(&requested.settings);
    let mut options = options.clone();
    options.records.study = Some(Part { id: 0, axes: vec![axis], at: Vec::new() });
    let stop = Stop::new()?;
    let measured = single::open(plan, Made::Bw, &options, &stop, |link, plan, label, sink| {
        sweep(link, plan, &mut requested, label, sink)
    })?;
    let mut done = Done { measured, left_out: requested.left_out };
    super::ended(&mut done, &options)
}

fn refuse<T>(what: &str, hint: &str) -> Result<T, Failure> {
    Err(Failure::usage(anyhow!("{what}")).hint(hint))
}

/// The plan of the sweep; an error if an option contradicts it.
fn requested(what: options::SweepFactor, options: &Options) -> Result<SweepPlan, Failure> {
    let (swept, load) = (Swept::from(what), &options.load);
    let sized = load.size.or(load.write_size).or(load.read_size).is_some();
    let copy = !matches!(load.copy, None | Some(HandOver::Copy));
    let both = options.bw.direction == Some(LoadDirections::Both);
    let find = "--sweep and --find-rate cannot be combined";
    let rows = [
        (both, "--sweep measures one direction", "-d forward, then -d reverse"),
        (options.bw.find_rate.is_some(), find, "leave out --sweep or --find-rate"),
        (
            options.bw.discard == Some(true),
            "--sweep and --discard cannot be combined",
            "leave out --discard",
        ),
        (
            swept == Swept::Size && sized,
            "--sweep size measures all sizes",
            "leave out --size, --write-size and --read-size",
        ),
        (
            swept == Swept::Copy && copy,
            "--sweep copy measures every value of --copy",
            "leave out --copy",
        ),
    ];
    if let Some((_, what, hint)) = rows.into_iter().find(|(is_requested, ..)| *is_requested) {
        return refuse(what, hint);
    }
    let engine = resolve::engine(&options.run, Needs::Load)?;
    let info = transport::named(&engine).unwrap_or(&transport::TCP);
    has(info, swept)?;
    let mut base = resolve::knobs_of(options);
    fits(swept, &base)?;
    let most = load.streams.map(|streams| streams.0);
    let settings = if info.far_end == FarEnd::Absent {
        of_memory(info, swept, &mut base, most)?
    } else {
        swept.settings(info, &base, most.unwrap_or(STREAMS))
    };
    let direction = match options.bw.direction {
        Some(LoadDirections::Reverse) => Direction::Reverse,
        _ => Direction::Forward,
    };
    let pace = pace(options.bw.time.map_or(TIME, |t| t.0), &settings)?;
    Ok(SweepPlan { swept, direction, pace, settings, left_out: Vec::new() })
}

/// Refuses a factor that the transport cannot vary.
fn has(info: &TransportInfo, swept: Swept) -> Result<(), Failure> {
    if info.varies.contains(&swept) {
        return Ok(());
    }
    let joined = |names: &mut dyn Iterator<Item = &str>| names.collect::<Vec<_>>().join(" or ");
    let able = TRANSPORTS.iter().filter(|other| other.varies.contains(&swept));
    let able = joined(&mut able.map(|other| other.name));
    let own = match info.varies {
        [] => String::new(),
        own => format!(", or --sweep {}", joined(&mut own.iter().map(|factor| factor.name()))),
    };
    let what = format!("--sweep {} does not work with engine `{}`", swept.name(), info.name);
    refuse(&what, &format!("--engine {able}{own}"))
}

/// Refuses a factor that another option sets to one value.
fn fits(swept: Swept, base: &Knobs) -> Result<(), Failure> {
    let name = swept.name();
    match swept {
        Swept::Depth | Swept::Qps if base.options.number(name).is_some() => {
            let what = format!("--sweep {name} measures several values of --{name}");
            refuse(&what, &format!("leave out --{name}"))
        }
        Swept::Size if Operation::of(&base.options) == Operation::Atomic => {
            refuse("an atomic operation has 8 B", "--sweep depth, or another --op")
        }
        _ => Ok(()),
    }
}

/// The settings of a sweep of memory. The arrays of all settings are in memory at the same time.
fn of_memory(
    info: &TransportInfo,
    swept: Swept,
    base: &mut Knobs,
    most: Option<u32>,
) -> Result<Vec<Knobs>, Failure> {
    let room = memory::room();
    let pattern = Pattern::Operations { access: Access::of(&base.options) };
    if swept == Swept::Size {
        return Ok(Swept::sizes(base, memory::sizes(&room, pattern, base.streams)));
    }
    let most = most.unwrap_or_else(|| available_parallelism().map_or(1, |cpus| cpus.get() as u32));
    // The settings 1, 2, 4 and so on up to `most` have fewer than twice `most` arrays together.
    let size = memory::room_for(&room, pattern, base, most.saturating_mul(2));
    let size = size.map_err(|why| Failure::not_measured(anyhow!(why)))?;
    (base.write_size, base.read_size) = (size, size);
    Ok(swept.settings(info, base, most))
}

/// The rounds of the settings within the time; an error if the time is too short for the least number of
/// rounds.
fn pace(time: Nanos, settings: &[Knobs]) -> Result<Pace, Failure> {
    Pace::of(time, settings.len()).ok_or_else(|| {
        let least = Pace::least(settings.len());
        let error = anyhow!(
            "{time} are too short for rounds of {} settings: at least {least} are needed",
            settings.len()
        );
        Failure::usage(error).hint(format!("--time {}", least.exact()))
    })
}
