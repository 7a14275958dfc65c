//! `linerate flows`: finds the limits of transfers that already run on this machine.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use clap::Parser;
use linerate_host::{Flows, Live, Machine, Wanted, is_running};
use linerate_units::Nanos;

use super::exit::{Exit, Failure};
use super::options::{self, Options};
use super::{out, reach, signal};
use linerate_show::flows::{self, Look};

/// Time between the first two rounds: short, so that busy connections are known soon.
const FIRST_ROUND: Duration = Duration::from_millis(250);
/// Time between later rounds.
const ROUND: Duration = Duration::from_secs(1);
/// Pause after a round, as a multiple of the time that the round took: many connections then cost little CPU time.
const PAUSE_FACTOR: u32 = 20;
/// Samples of each connection within the observation time, if the time between two of them is within `TICK`.
const SAMPLES: u32 = 20;
const TICK: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// Longest sleep before the loop checks for Ctrl-C again.
const STOP_CHECK: Duration = Duration::from_millis(100);

// `linerate flows`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Show only connections of this HOST, HOST:PORT, :PORT or part of a process name [default: all]
    filter: Option<String>,

    #[command(flatten)]
    pub(crate) flows: options::Flows,

    #[command(flatten)]
    pub(crate) json: options::Json,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let stop = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    let machine: Arc<dyn Machine> = Arc::new(Live::new());
    let wanted = match &args.filter {
        None => Wanted::All,
        Some(text) => wanted(text, &*machine)?,
    };
    let (time, top) = (&options.flows.time, &options.flows.top);
    let time = time.map_or(Duration::from_secs(2), |t| t.0.duration());
    let top = top.map_or(10, |n| n.0 as usize);
    let look = look(Flows::new(machine, wanted, top), time, &stop).map_err(|e| untold(&e))?;
    out::result(options, || flows::json(&look), || flows::page(&look))?;
    Ok(if look.complete { Exit::Done } else { Exit::NotMeasured })
}

/// Observes the connections for `time`, or until `stop` is set.
fn look(mut flows: Flows, time: Duration, stop: &AtomicBool) -> io::Result<Look> {
    let begin = Instant::now();
    let at = || u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let tick = (time / SAMPLES).clamp(TICK[0], TICK[1]);
    let mut longest = Duration::ZERO;
    let mut round = |flows: &mut Flows| {
        let now = Instant::now();
        flows.round(at())?;
        longest = longest.max(now.elapsed());
        io::Result::Ok(now.elapsed())
    };
    round(&mut flows)?;
    let (mut next_round, mut next_tick) = (FIRST_ROUND, FIRST_ROUND);
    while begin.elapsed() < time && !stop.load(Ordering::Relaxed) {
        let now = begin.elapsed();
        if now >= next_round {
            let cost = round(&mut flows)?;
            next_round = begin.elapsed() + ROUND.max(cost * PAUSE_FACTOR);
        }
        if now >= next_tick {
            flows.sample(at());
            next_tick = (next_tick + tick).max(begin.elapsed());
        }
        let next = next_round.min(next_tick).min(time);
        thread::sleep(next.saturating_sub(begin.elapsed()).min(STOP_CHECK));
    }
    flows.sample(at());
    round(&mut flows)?;
    let complete = begin.elapsed() >= time;
    Ok(Look::judge(flows.finish(), complete, Nanos(at()), longest))
}

/// The hint that lists the forms of a filter.
const FILTER: &str = "a filter is a host, HOST:PORT, :PORT, or part of the name of a process";

/// The connections that match `text`. Process names are tried first, since a host name needs a query over the
/// network.
fn wanted(text: &str, machine: &dyn Machine) -> Result<Wanted, Failure> {
    let end = |addresses, port| Ok(Wanted::End { addresses, port });
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    if let Ok(ip) = bare.unwrap_or(text).parse::<IpAddr>() {
        return end(vec![ip.to_canonical()], None);
    }
    if let Ok(both) = text.parse::<SocketAddr>() {
        return end(vec![both.ip().to_canonical()], Some(both.port()));
    }
    if let Some(port) = text.strip_prefix(':') {
        let port = port.parse().map_err(|_| {
            Failure::usage(anyhow::anyhow!("`{text}` is not a port"))
                .hint("a port is written like :22, up to :65535")
        })?;
        return end(Vec::new(), Some(port));
    }
    if text.trim().is_empty() {
        let error = anyhow::anyhow!("an empty filter matches nothing");
        return Err(Failure::usage(error).hint(FILTER));
    }
    if is_running(machine, text) {
        return Ok(Wanted::Process(text.to_owned()));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()),
        None => (text, None),
    };
    let found = (host, 0).to_socket_addrs().map_err(|error| {
        let why = format!("no process has `{text}` in its name, and no host is called `{host}`");
        Failure::usage(anyhow::Error::new(error).context(why)).hint(FILTER)
    })?;
    end(found.map(|a| a.ip().to_canonical()).collect(), port)
}

/// The failure if the kernel does not list its connections.
fn untold(error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "sudo linerate flows",
        // The kernel supports neither socket queries (`sock_diag`) nor those for TCP.
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => "sudo modprobe tcp_diag",
        _ if error.raw_os_error() == Some(PROTOCOL) => "sudo modprobe tcp_diag",
        _ => "ss -ti asks the kernel the same",
    };
    let what = format!("cannot list the TCP connections of this host: {error}");
    Failure::not_measured(anyhow::anyhow!(what)).hint(hint)
}

/// The error number `EPROTONOSUPPORT`.
const PROTOCOL: i32 = 93;

#[cfg(test)]
mod tests {
    use linerate_host::{Captured, Replay};

    use super::*;

    fn meaning(text: &str) -> Result<Wanted, Failure> {
        wanted(text, &Replay::new(Captured::default()))
    }

    #[test]
    fn a_filter_is_an_address_a_port_or_both() {
        let end = |addresses: &[&str], port| {
            let addresses = addresses.iter().map(|a| a.parse().unwrap()).collect();
            Wanted::End { addresses, port }
        };
        for (text, want) in [
            ("10.0.0.2", end(&["10.0.0.2"], None)),
            ("::ffff:10.0.0.2", end(&["10.0.0.2"], None)),
            ("10.0.0.2:22", end(&["10.0.0.2"], Some(22))),
            ("fd00::2", end(&["fd00::2"], None)),
            ("[fd00::2]", end(&["fd00::2"], None)),
            ("[fd00::2]:22", end(&["fd00::2"], Some(22))),
            (":22", end(&[], Some(22))),
        ] {
            assert_eq!(meaning(text).unwrap(), want, "{text}");
        }
        for text in [":", ":65536", ":ssh", ""] {
            let failure = meaning(text).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage, "{text}");
            assert!(!failure.hint.is_empty(), "{text}");
        }
    }

    #[test]
    fn what_the_kernel_refuses_has_a_hint() {
        for (errno, hint) in [
            (1, "sudo linerate flows"),
            (2, "sudo modprobe tcp_diag"),
            (93, "sudo modprobe tcp_diag"),
        ] {
            let failure = untold(&io::Error::from_raw_os_error(errno));
            assert_eq!((failure.exit, failure.hint.as_str()), (Exit::NotMeasured, hint));
        }
    }
}
