//! `linerate bw`: one measurement of throughput, for scripts.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::anyhow;
use clap::Parser;
use linerate_host::Live;
use linerate_plan::Plan;
use linerate_plan::path::Direction;
use linerate_plan::transport::{self, Feature};
use linerate_record::flow::Owner;
use linerate_record::iperf3::{PORT, Protocol};
use linerate_record::{Made, Record};
use linerate_session::iperf3::client::{self, ClientError};
use linerate_session::iperf3::link::Iperf3;
use linerate_session::peer::address::Target;
use linerate_session::run::once;
use linerate_units::Nanos;

use super::exit::{Exit, Failure};
use super::options::own::{self, Flags};
use super::options::{self, Options};
use super::resolve::Needs;
use super::session::{self, Stop};
use super::single::{self, Measured, Shared, THIS_HOST, WASHOUT, What, directions};
use super::study::loads;
use super::{out, reach, resolve};
use crate::expect::Found;
use linerate_show::bw::{self, Connections, Probe};
use linerate_show::noted;
use linerate_show::stream::Stream;

/// Longest step of a search for a rate.
const SEARCH_MOST: Nanos = Nanos::from_secs(1200);

/// Prefix of a target that is an iperf3 server.
const IPERF3: &str = "iperf3://";

/// Measuring time if neither a flag, the environment nor the configuration file sets one.
const TIME: Nanos = Nanos::from_secs(10);

/// The verb `bw`; its flags include the options of all transports that can carry a load.
#[derive(Debug, Clone)]
pub(crate) struct Verb;

impl own::Verb for Verb {
    const NEEDS: Needs = Needs::Load;
}

// `linerate bw`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Far machine where `linerate serve` runs, or ssh://HOST to start it there, or an iperf3 server:
    /// iperf3://HOST[:PORT]. Engines within this machine, such as shm, take none
    target: Option<String>,

    #[command(flatten)]
    pub(crate) bw: options::Bw,
    #[command(flatten)]
    pub(crate) load: options::LoadOptions,
    #[command(flatten)]
    pub(crate) own: Flags<Verb>,
    #[command(flatten)]
    pub(crate) shared: Shared,
    #[command(flatten)]
    pub(crate) records: options::Records,
}

pub(crate) fn run(args: &Args, options: &Options, on_line: &[String]) -> Result<Exit, Failure> {
    let options = &kept(options, on_line)?;
    let directions = directions(resolve::load_directions(options));
    resolve::undirected(&options.run, args.bw.direction)?;
    if let Some(swept) = options.bw.sweep {
        return loads::run(args.target.as_deref(), swept, options);
    }
    let time = options.bw.time.map_or(TIME, |t| t.0);
    let target = args.target.as_deref();
    match target.and_then(|target| Some((target, target.strip_prefix(IPERF3)?))) {
        Some((target, host)) => {
            portless(host, &args.shared.reach)?;
            foreign(target, host, &directions, time, options)
        }
        None => own(target, directions, time, options),
    }
}

/// The options, without a record if the user requested none or if `--find-rate` makes one impossible.
fn kept(options: &Options, on_line: &[String]) -> Result<Options, Failure> {
    let mut options = single::kept_on_request(options, on_line);
    if options.bw.find_rate.is_none() {
        return Ok(options);
    }
    if on_line.iter().any(|id| id == "note" || id == "save") {
        let error = anyhow!("--find-rate keeps no record");
        return Err(Failure::usage(error).hint("leave out --note and --save"));
    }
    options.records.no_save = Some(true);
    Ok(options)
}

/// Runs a measurement whose far end is `linerate serve`, or within this host.
fn own(
    target: Option<&str>,
    directions: Vec<Direction>,
    time: Nanos,
    options: &Options,
) -> Result<Exit, Failure> {
    let what = what(&directions, options)?;
    let measured = single::measure(target, directions, time, what, options, &Stop::new()?)?;
    let allowed = match what {
        What::Rate(allowed) => Some(allowed),
        _ => None,
    };
    let target = target.unwrap_or(THIS_HOST);
    let probe = Probe::own(target, &measured.address, &measured.record, allowed);
    shown(measured, &probe, options)
}

/// Prints the result of the measurement; returns the exit status.
fn shown(mut measured: Measured, probe: &Probe, options: &Options) -> Result<Exit, Failure> {
    match measured.stream.take() {
        Some(mut stream) => {
            stream.bw(probe, measured.shown_record(options));
            stream.finish().map_err(out::failed)?;
        }
        None => print(probe, &measured.record, options)?,
    }
    let found = Found::figures(probe.summary());
    Ok(measured.exit(probe.complete(), &found, options))
}

/// The kind of measurement that the options request for `directions`.
fn what(directions: &[Direction], options: &Options) -> Result<What, Failure> {
    let Some(share) = options.bw.find_rate else {
        return Ok(What::Load);
    };
    let refuse = |what: &str, hint: &str| Err(Failure::usage(anyhow!("{what}")).hint(hint));
    let engine = resolve::engine(&options.run, Needs::Load)?;
    if !transport::of(&engine).has(Feature::Datagrams) {
        return refuse(
            "--find-rate needs datagrams: TCP adapts its rate and loses no payload",
            "--engine udp --find-rate",
        );
    }
    if directions.len() > 1 {
        return refuse(
            "--find-rate searches one direction at a time",
            "-d forward, then -d reverse",
        );
    }
    // A search may need a few steps of this length until one passes, and a server ends a session after two hours.
    if options.bw.time.is_some_and(|time| time.0 > SEARCH_MOST) {
        return refuse(
            "the longer steps of --find-rate take at most 20 min",
            "--time 20min, then --pacing with the rate found and a longer --time",
        );
    }
    Ok(What::Rate(share.0.0 / 100.0))
}

/// Refuses `--port` for an iperf3 server, whose port is part of its name. `typed` holds the options of the command
/// line and the environment: a port in the configuration file is for `linerate serve`.
fn portless(host: &str, typed: &options::Peer) -> Result<(), Failure> {
    let Some(port) = &typed.port else {
        return Ok(());
    };
    // A host that is typed with a port needs no default port.
    let bare = Target::parse(host.trim_end_matches('/'), 0).map_err(Failure::usage)?;
    let named = match &*bare.host {
        address if address.contains(':') => format!("[{address}]"),
        name => name.to_owned(),
    };
    let port = match bare.port {
        0 => port.0,
        own => u32::from(own),
    };
    let error =
        anyhow!("--port (LINERATE_PORT) is the port of `linerate serve`, not of an iperf3 server");
    Err(Failure::usage(error).hint(format!("iperf3://{named}:{port}, without --port")))
}

/// Runs a measurement whose far end is an iperf3 server.
fn foreign(
    target: &str,
    host: &str,
    directions: &[Direction],
    time: Nanos,
    options: &Options,
) -> Result<Exit, Failure> {
    let (protocol, direction) = can(directions, options)?;
    let knobs = resolve::knobs_of_bw(options);
    client::possible(protocol, direction, &knobs).map_err(refused)?;
    let parsed = Target::parse(host.trim_end_matches('/'), PORT).map_err(Failure::usage)?;
    let stream = session::stream(options)?.map(Stream::of_a_probe);
    let stop = Stop::new()?.flag;
    let family = reach::family(&options.peer);
    let servers = session::at_once(&stop, || parsed.resolve(family).map_err(reach::peer_failure))?;
    // Datagrams have no slow start, and old iperf3 servers cannot leave out the start of a test.
    let washout = match protocol {
        Protocol::Udp => Nanos(0),
        _ => WASHOUT,
    };
    let test = linerate_session::iperf3::link::Options {
        servers,
        protocol,
        washout,
        time,
        machine: Arc::new(Live::new()),
    };
    let mut link = Iperf3::reach(test, &stop).map_err(not_reached)?;
    let plan = Plan {
        engine: resolve::engine(&options.run, Needs::Load)?,
        peer: Some(target.to_owned()),
        reach: Vec::new(),
        knobs,
        directions: vec![direction],
        time: Nanos(washout.0 + time.0),
        sweep: false,
        trials: false,
    };
    let address = link.address().to_string();
    let at = (address, Made::Bw);
    let measured = single::over(at, stream, options, &stop, |label, sink| {
        once(&mut link, plan, washout, None, label, sink)
    })?;
    let connections = connections(link.streams().to_vec());
    let probe = Probe::iperf3(target, &measured.address, &measured.record, &connections);
    shown(measured, &probe, options)
}

/// The protocol and direction of a test with an iperf3 server; an error where it cannot do what the options ask
/// for.
fn can(directions: &[Direction], options: &Options) -> Result<(Protocol, Direction), Failure> {
    let refuse = |what: &str, hint: &str| Err(Failure::usage(anyhow!("{what}")).hint(hint));
    if options.bw.find_rate.is_some() {
        return refuse(
            "--find-rate does not work with an iperf3 server",
            "with `linerate serve` there: linerate bw HOST --engine udp --find-rate",
        );
    }
    if options.bw.discard == Some(true) && directions.contains(&Direction::Forward) {
        return refuse(
            "an iperf3 server does not report whether it dropped payload unread",
            "-d reverse, so that this end receives, or `linerate serve` there",
        );
    }
    let own = options.engine.of(transport::of(resolve::engine_name(&options.run)));
    for option in [&transport::BIND, &transport::DSCP] {
        if own.get(option.key).is_some() {
            return refuse(
                &format!("--{} does not work with an iperf3 server", option.key),
                &format!("leave out --{}, or `linerate serve` there", option.key),
            );
        }
    }
    let protocol = match resolve::engine(&options.run, Needs::Load)?.as_str() {
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        _ => {
            return refuse(
                "an iperf3 server supports only TCP and UDP",
                "--engine tcp, or --engine udp",
            );
        }
    };
    match directions {
        [direction] => Ok((protocol, *direction)),
        _ => refuse(
            "both directions at once need linerate at both ends",
            "-d forward, then -d reverse; or `linerate serve` there",
        ),
    }
}

/// The connections of this process, each as its two addresses.
fn connections(ends: Vec<[SocketAddr; 2]>) -> Connections {
    Connections {
        ends,
        owner: Owner { pid: std::process::id(), name: env!("CARGO_PKG_NAME").to_owned() },
    }
}

/// Prints the result of a measurement that was kept.
pub(super) fn show_kept(record: &Record, options: &Options) -> Result<Exit, Failure> {
    let plan = &record.start.plan;
    let target = plan.peer.as_deref().unwrap_or(THIS_HOST);
    // A record holds neither the address nor the connections of the far end.
    let probe = if target.starts_with(IPERF3) {
        Probe::iperf3(target, "", record, &connections(Vec::new()))
    } else {
        Probe::own(target, "", record, None)
    };
    print(&probe, record, options)?;
    let found = Found::figures(probe.summary());
    Ok(single::exit(probe.complete(), &plan.directions, &found, options))
}

fn print(probe: &Probe, record: &Record, options: &Options) -> Result<(), Failure> {
    let reported = (options.report.with_record == Some(true)).then_some(record);
    out::result(options, || bw::json(probe, reported), || noted(bw::page(probe), record))
}

/// The failure for a test that iperf3 cannot run with these options.
fn refused(error: ClientError) -> Failure {
    let hint = error.hint();
    Failure::usage(error).hint(hint)
}

fn not_reached(error: ClientError) -> Failure {
    let hint = error.hint();
    Failure::not_measured(error).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_an_iperf3_server_stands_with_its_host() {
        let typed =
            |port: &str| options::Peer { port: port.parse().ok(), ..options::Peer::default() };
        let hint = |host, port| {
            let failure = portless(host, &typed(port)).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            failure.hint
        };
        assert!(portless("brook", &typed("")).is_ok());
        assert_eq!(hint("brook", "5202"), "iperf3://brook:5202, without --port");
        assert_eq!(hint("brook:5203/", "5202"), "iperf3://brook:5203, without --port");
        assert_eq!(hint("fe80::1%eth0", "5202"), "iperf3://[fe80::1%eth0]:5202, without --port");
    }
}
