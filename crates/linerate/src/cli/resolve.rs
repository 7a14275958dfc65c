//! Makes the plan from the options: fills in every default, and refuses options that contradict each other.

use anyhow::anyhow;
use linerate_plan::path::Direction;
use linerate_plan::transport::{
    self, FILE, FarEnd, Feature, Knob, OptionInfo, PatternKind, TRANSPORTS, TransportInfo, USUAL,
    file,
};
use linerate_plan::{Handover, Knobs, Plan, Receive};
use linerate_session::peer::PORT;
use linerate_session::run::{self, RoundTrips};
use linerate_units::{Bytes, Nanos};

use super::exit::Failure;
use super::options::{HandOver, LoadDirections, LoadOptions, Options, Peer, Run, RunDirections};

/// Budget if neither the user nor the defaults set one; the defaults always set one.
const TIME: Nanos = Nanos::from_secs(60);

/// Budget of `--quick`: enough for both directions and one trial of each.
const QUICK: Nanos = Nanos::from_secs(20);

/// Budget of `--thorough`.
const THOROUGH: Nanos = Nanos::from_secs(300);

/// The plan of a run toward `peer`.
pub(crate) fn plan(options: &Options, peer: Option<&str>) -> Result<Plan, Failure> {
    let run = &options.run;
    let engine = engine(run, Needs::Both)?;
    // Without a far end, this machine is measured against itself.
    let peer = peer.map(|peer| far_end(&engine, Some(peer))).transpose()?.flatten();
    Ok(Plan {
        reach: peer.map_or_else(Vec::new, |_| reach(&options.peer)),
        peer: peer.map(|peer| named(&engine, peer)),
        engine,
        knobs: knobs_of(options),
        directions: match run.direction {
            Some(RunDirections::Forward) => vec![Direction::Forward],
            Some(RunDirections::Reverse) => vec![Direction::Reverse],
            _ if far_end_of(run) == FarEnd::File => {
                match options.engine.of(&FILE).word(file::OP.key) {
                    Some(_) if file::writes(&options.engine.of(&FILE)) => vec![Direction::Forward],
                    Some(_) => vec![Direction::Reverse],
                    None => ways(peer.unwrap_or_default(), options),
                }
            }
            _ if is_alone(run) => vec![Direction::Forward],
            Some(RunDirections::Both) | None => Direction::ALL.to_vec(),
        },
        time: time(run)?,
        // If the user sets a number of streams, only this number is measured.
        sweep: options.load.streams.is_none(),
        trials: run.no_trials != Some(true),
    })
}

/// A path of this host in full: what lies below it is found by its start. A path that does not exist stays as it is.
pub(crate) fn absolute(path: &str) -> String {
    let full = std::fs::canonicalize(path).ok();
    full.and_then(|full| full.into_os_string().into_string().ok())
        .unwrap_or_else(|| path.to_owned())
}

/// The far end as plans name it: the full path of a file, any other as it was typed.
pub(crate) fn named(engine: &str, peer: &str) -> String {
    match transport::of(engine).far_end {
        // Without a slash it is the host whose disk is measured.
        FarEnd::File if peer.contains('/') => absolute(peer),
        _ => peer.to_owned(),
    }
}

/// Whether the user lets a disk be overwritten.
pub(crate) fn is_overwritten(options: &Options) -> bool {
    options.engine.of(&FILE).word(file::WRITE_TO.key).is_some()
}

/// The directions in which a file or a disk is measured: only a folder, which gets a file of linerate's own, is written,
/// and a disk that the user lets be overwritten.
pub(crate) fn ways(target: &str, options: &Options) -> Vec<Direction> {
    let consents = is_overwritten(options);
    match std::fs::metadata(target) {
        Ok(found) if found.is_dir() || consents => vec![Direction::Reverse, Direction::Forward],
        _ => vec![Direction::Reverse],
    }
}

/// The options that are needed to reach the far end, as the user would type them.
fn reach(peer: &Peer) -> Vec<String> {
    let port = peer.port.map_or(PORT.into(), |port| port.0);
    let port = (port != u32::from(PORT)).then(|| format!("--port={port}"));
    let flags = [(peer.open, "--open"), (peer.ipv4, "--ipv4"), (peer.ipv6, "--ipv6")];
    let set = flags.iter().filter(|(is_set, _)| *is_set == Some(true));
    port.into_iter().chain(set.map(|(_, flag)| (*flag).to_owned())).collect()
}

/// The budget: `--quick` or `--thorough` takes precedence over a time, which the defaults always set.
fn time(run: &Run) -> Result<Nanos, Failure> {
    match (run.quick == Some(true), run.thorough == Some(true)) {
        (true, true) => Err(Failure::usage(anyhow!("a run cannot be quick and thorough at once"))
            .hint("leave out --quick or --thorough")),
        (true, false) => Ok(QUICK),
        (false, true) => Ok(THOROUGH),
        (false, false) => Ok(run.time.map_or(TIME, |t| t.0)),
    }
}

/// The kinds of traffic that a command needs of a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// The command needs a load.
    Load,
    /// The command needs round trips.
    RoundTrips,
    /// The command needs round trips and a load of a path.
    Both,
    /// The command needs a load or round trips.
    Any,
}

impl Needs {
    pub(crate) fn met_by(self, transport: &TransportInfo) -> bool {
        let trips = transport.carries(PatternKind::RoundTrips);
        transport.offered
            && match self {
                Self::Load => transport.carries_load(),
                Self::RoundTrips => trips,
                Self::Both => {
                    trips && transport.carries_load() && transport.far_end != FarEnd::Absent
                }
                Self::Any => trips || transport.carries_load(),
            }
    }

    /// Whether an option of a transport affects the traffic of the command.
    pub(crate) fn uses(self, option: &OptionInfo) -> bool {
        let trips = option.is_of(PatternKind::RoundTrips);
        let load = option.is_of(PatternKind::Stream) || option.is_of(PatternKind::Operations);
        match self {
            Self::Load => load,
            Self::RoundTrips => trips,
            Self::Both | Self::Any => trips || load,
        }
    }
}

/// The name of the chosen transport, or of the default one.
pub(crate) fn engine_name(run: &Run) -> &str {
    run.engine.as_deref().unwrap_or(USUAL.name)
}

/// The name of the chosen transport; an error if it cannot carry the traffic in `needs`.
pub(crate) fn engine(run: &Run, needs: Needs) -> Result<String, Failure> {
    let name = engine_name(run);
    let requested = transport::named(name);
    if requested.is_some_and(|requested| needs.met_by(requested)) {
        return Ok(name.to_owned());
    }
    let what = match requested {
        Some(requested) if requested.far_end == FarEnd::Absent && requested.offered => format!(
            "engine `{name}` has no path to judge: it measures this host, with `linerate bw` and `linerate lat`"
        ),
        Some(requested) if requested.carries(PatternKind::RoundTrips) => {
            format!("engine `{name}` cannot carry a load")
        }
        Some(_) => format!("engine `{name}` cannot time round trips"),
        None => format!("there is no engine `{name}`"),
    };
    let able = TRANSPORTS.iter().filter(|other| needs.met_by(other));
    let able: Vec<_> = able.map(|other| other.name).collect();
    Err(Failure::usage(anyhow!(what)).hint(format!("--engine takes {}", able.join(" or "))))
}

/// The far end that the user named, if the transport needs one to be named. `None` if this program starts the far end,
/// or if the transport has none.
pub(crate) fn far_end<'a>(
    engine: &str,
    typed: Option<&'a str>,
) -> Result<Option<&'a str>, Failure> {
    let why = match (transport::of(engine).far_end, typed) {
        (FarEnd::Peer | FarEnd::File, Some(_)) | (FarEnd::Process | FarEnd::Absent, None) => {
            return Ok(typed);
        }
        (FarEnd::Peer, None) => {
            let hint = "name the host where `linerate serve` runs, or ssh://HOST to start it";
            return Err(Failure::usage(anyhow!("a far end is missing")).hint(hint));
        }
        (FarEnd::File, None) => {
            let hint = "name a file or a disk of this host";
            return Err(Failure::usage(anyhow!("a file is missing")).hint(hint));
        }
        (FarEnd::Process, Some(_)) => {
            "measures between two processes of this host, which linerate starts"
        }
        (FarEnd::Absent, Some(_)) => "has no far end",
    };
    Err(Failure::usage(anyhow!("engine `{engine}` {why}")).hint("leave out the far end"))
}

/// The kind of far end of the chosen engine.
fn far_end_of(run: &Run) -> FarEnd {
    transport::of(engine_name(run)).far_end
}

/// Whether the chosen engine has no far end.
pub(crate) fn is_alone(run: &Run) -> bool {
    transport::of(engine_name(run)).is_alone()
}

/// Whether the chosen engine loads from this host's memory: a round trip is then one load, and `--size` is that of the
/// array.
pub(crate) fn is_memory(run: &Run) -> bool {
    transport::of(engine_name(run)).has(Feature::Memory)
}

/// The size of a timed message or operation of the chosen engine, if none is requested.
pub(crate) fn message(run: &Run) -> Bytes {
    Bytes(transport::of(engine_name(run)).message)
}

/// Refuses `--direction` if the chosen engine has no far end.
pub(crate) fn undirected(run: &Run, typed: Option<LoadDirections>) -> Result<(), Failure> {
    if typed.is_some() && is_alone(run) {
        let error = anyhow!("engine `{}` has no far end, and no direction", engine_name(run));
        let hint = match far_end_of(run) {
            FarEnd::File => "say --op read or --op write in place of --direction",
            _ => "leave out --direction",
        };
        return Err(Failure::usage(error).hint(hint));
    }
    Ok(())
}

/// The directions that `bw` loads. Reads from a disk count as reverse; other operations without a far end count as forward.
pub(crate) fn load_directions(options: &Options) -> LoadDirections {
    let info = transport::of(engine_name(&options.run));
    match options.bw.direction {
        Some(typed) if !info.is_alone() => typed,
        _ if info.far_end == FarEnd::File && !file::writes(&options.engine.of(info)) => {
            LoadDirections::Reverse
        }
        _ => LoadDirections::Forward,
    }
}

/// Refuses a plan that its transport cannot carry out, before it connects to the far end.
pub(crate) fn possible(plan: &Plan, trips: Option<RoundTrips>) -> Result<(), Failure> {
    let can = |engine: &str| match linerate_load::transport::transport(engine) {
        Some(transport) => run::possible(transport, plan, trips),
        None => Ok(()),
    };
    let own = transport::named(&plan.engine).map(|info| info.far_end);
    can(&plan.engine).map_err(|why| {
        let mut others = TRANSPORTS.iter().filter(|other| Some(other.far_end) == own);
        let other = others.find(|other| can(other.name).is_ok());
        let hint = other.map_or_else(String::new, |other| format!("--engine {} can", other.name));
        Failure::usage(anyhow!("engine `{}`: {why}", plan.engine)).hint(hint)
    })
}

/// Refuses an option on the command line that the chosen transport does not have. In the environment or the
/// configuration file such an option may be for another transport, and is ignored.
pub(crate) fn fits(typed: &[String], run: &Run) -> Result<(), Failure> {
    let name = engine_name(run);
    // If several transports are chosen, an option is allowed if one of them has it.
    let chosen: Vec<_> = name.split(',').filter_map(transport::named).collect();
    let any = |key: &&String| chosen.is_empty() || chosen.iter().any(|info| has(info, key));
    let Some(key) = typed.iter().find(|key| !any(key)) else {
        return Ok(());
    };
    let able = TRANSPORTS.iter().filter(|info| info.offered && has(info, key));
    let able: Vec<&str> = able.map(|info| info.name).collect();
    let error = anyhow!("--{key} is not an option of engine `{name}`");
    Err(Failure::usage(error).hint(format!("--engine {} has it", able.join(" or "))))
}

/// Whether a transport has this option. Options that are not of transports are always allowed.
fn has(info: &TransportInfo, option: &str) -> bool {
    match option {
        // A disk may be that of a server.
        "port" | "open" | "ipv4" | "ipv6" => [FarEnd::Peer, FarEnd::File].contains(&info.far_end),
        "nodelay" => info.has(Feature::Connections),
        "pattern" => info.obeys.contains(&Knob::TwoWrites),
        own if transport::with_option(own).next().is_some() => {
            info.options.iter().any(|row| row.key == own)
        }
        _ => true,
    }
}

/// The settings of a load: those of its connections, and those of its transport.
pub(crate) fn knobs_of(options: &Options) -> Knobs {
    let mut knobs = Knobs {
        options: options.engine.of(transport::of(engine_name(&options.run))),
        ..knobs(&options.load)
    };
    if far_end_of(&options.run) == FarEnd::File && knobs.write_size.0 == 0 {
        (knobs.write_size, knobs.read_size) = (file::BLOCK, file::BLOCK);
    }
    knobs
}

/// The settings of dependent loads from memory; `--size` is the size of the array that they read.
pub(crate) fn knobs_of_loads(options: &Options) -> Knobs {
    let size = options.lat.size.map_or(Bytes(0), |size| size.0);
    Knobs { write_size: size, read_size: size, ..knobs_of(options) }
}

/// The settings of the connections of a load.
fn knobs(load: &LoadOptions) -> Knobs {
    let size = |fine: Option<super::quantity::OpSize>| fine.or(load.size).map_or(Bytes(0), |s| s.0);
    let defaults = Knobs::default();
    Knobs {
        streams: load.streams.map_or(defaults.streams, |s| s.0),
        write_size: size(load.write_size),
        read_size: size(load.read_size),
        copy: match load.copy {
            Some(HandOver::Zerocopy) => Handover::Zerocopy,
            Some(HandOver::Sendfile) => Handover::Sendfile,
            Some(HandOver::IoUring) => Handover::IoUring,
            Some(HandOver::Copy) | None => Handover::Copy,
        },
        nodelay: load.nodelay.unwrap_or(defaults.nodelay),
        send_buffer: load.send_buffer.map(|b| b.0),
        recv_buffer: load.recv_buffer.map(|b| b.0),
        mss: load.mss.map(|m| m.0),
        pacing: load.pacing.map(|p| p.0),
        congestion: load.congestion.clone(),
        ..defaults
    }
}

/// The settings of a load for a single measurement of throughput.
pub(crate) fn knobs_of_bw(options: &Options) -> Knobs {
    let receive = match options.bw.discard {
        Some(true) => Receive::Discard,
        Some(false) | None => Receive::Copy,
    };
    Knobs { receive, ..knobs_of(options) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_or_a_thorough_look_outranks_the_time_and_both_are_refused() {
        let of = |quick, thorough| {
            time(&Run {
                time: "30s".parse().ok(),
                quick: Some(quick),
                thorough: Some(thorough),
                ..Run::default()
            })
        };
        assert_eq!(of(false, false).ok(), Some(Nanos::from_secs(30)));
        assert_eq!(of(true, false).ok(), Some(QUICK));
        assert_eq!(of(false, true).ok(), Some(THOROUGH));
        assert!(of(true, true).is_err());
    }

    #[test]
    fn a_run_that_is_repeated_reaches_the_same_far_end() {
        let peer = |port: &str, open| Peer {
            port: port.parse().ok(),
            open,
            ipv6: Some(true),
            ..Peer::default()
        };
        assert_eq!(reach(&peer("5377", Some(false))), ["--ipv6"]);
        assert_eq!(reach(&peer("5378", Some(true))), ["--port=5378", "--open", "--ipv6"]);
        assert_eq!(reach(&Peer::default()), [""; 0]);
    }

    #[test]
    fn a_size_holds_for_both_ways_unless_a_finer_one_is_given() {
        let mut load = LoadOptions { size: "64KiB".parse().ok(), ..LoadOptions::default() };
        let both = knobs(&load);
        assert_eq!((both.write_size, both.read_size), (Bytes(65_536), Bytes(65_536)));
        load.read_size = "1MiB".parse().ok();
        assert_eq!(knobs(&load).read_size, Bytes(1 << 20));
        assert_eq!(knobs(&load).write_size, Bytes(65_536));
    }

    #[test]
    fn what_is_left_open_is_left_to_the_ends_and_the_kernel() {
        assert_eq!(knobs(&LoadOptions::default()), Knobs::default());
    }

    #[test]
    fn a_typed_option_without_a_meaning_is_refused_with_those_that_have_it() {
        let fits = |engine: &str, key: &str| {
            let run = Run { engine: Some(engine.to_owned()), ..Run::default() };
            fits(&[key.to_owned()], &run).map_err(|failure| failure.words())
        };
        for (engine, key) in [
            ("tcp", "port"),
            ("udp", "ipv6"),
            ("connect", "nodelay"),
            ("memory", "access"),
            ("shm", "ring"),
            ("shm", "streams"),
        ] {
            assert_eq!(fits(engine, key), Ok(()), "{engine} {key}");
        }
        for (engine, key, others) in [
            ("shm", "open", "--engine tcp or udp or connect or rdma or program or file has it"),
            ("memory", "port", "--engine tcp or udp or connect or rdma or program or file has it"),
            ("udp", "nodelay", "--engine tcp or connect has it"),
            ("memory", "ring", "--engine shm has it"),
        ] {
            let words = fits(engine, key).unwrap_err();
            let what = format!("--{key} is not an option of engine `{engine}`");
            assert!(words.contains(&what) && words.contains(others), "{words}");
        }
    }

    #[test]
    fn an_unknown_engine_is_refused_with_the_known_ones() {
        let engine_for = |name: &str, needs| {
            let run = Run { engine: Some(name.to_owned()), ..Run::default() };
            engine(&run, needs)
        };
        let engine = |name| engine_for(name, Needs::Both);
        assert!(engine("tcp").is_ok());
        let words = engine("null").unwrap_err().words();
        assert!(words.contains("`null` cannot time round trips"), "{words}");
        assert!(engine_for("connect", Needs::RoundTrips).is_ok());
        let words = engine("connect").unwrap_err().words();
        assert!(words.contains("`connect` cannot carry a load"), "{words}");
        let words = engine("carrier-pigeon").unwrap_err().words();
        assert!(words.contains("`carrier-pigeon`") && words.contains("tcp"), "{words}");
    }
}
