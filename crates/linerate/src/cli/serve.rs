//! `linerate serve`: runs the far end.

use std::io::{ErrorKind, IsTerminal};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use clap::Parser;
use ipnet::IpNet;
use linerate_host::{Live, rights};
use linerate_session::iperf3::server as iperf3;
use linerate_session::peer::keys::{self, Key};
use linerate_session::peer::server::{Limits, Log, Server, ServerOptions};
use linerate_session::peer::{PORT, PeerError, Stop};

use super::exit::{Exit, Failure, tell};
use super::log::Writer;
use super::options::{self, Options};
use super::{changes, far_end, reach, resolve, signal};

// `linerate serve`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) serve: options::Serve,

    /// Port to listen on, for control and data
    #[arg(long, env = "LINERATE_PORT", value_name = "PORT")]
    pub(crate) port: Option<super::quantity::PortNumber>,

    // Used when this program starts its own far end, for a transport between two processes of one host: the server then
    // serves only the process that started it.
    #[arg(long, hide = true, requires = "attached")]
    pub(crate) process: bool,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let changes = changes::ledger(options.serve.allow_changes)?;
    let (key, how) = key(options)?;
    let quiet = options.global.quiet == Some(true);
    // Privileges are dropped before any thread starts, since each thread has its own.
    renounce(options)?;
    // Ctrl-C is watched before the server reports that it listens: the reader of that line may stop the server at once.
    let stop = reach::system(Stop::new(), "cannot make an event descriptor")?;
    let requested = stop.clone();
    let watched = signal::at_first(move || requested.request());
    reach::system(watched, "cannot watch for Ctrl-C")?;
    let writer = Writer::start(move |line| {
        if !quiet {
            tell(&format!("{line}\n"));
        }
    });
    let writer = reach::system(writer, "cannot start a thread")?;
    let log = writer.log();
    let mut server = ServerOptions {
        listen: options.serve.listen.iter().copied().collect(),
        port: reach::port(&options.peer),
        key,
        allow: allowed(options),
        limits: limits(options),
        machine: Arc::new(Live::new()),
        changes,
        process: false,
        storage: storage(options)?,
        log: Arc::clone(&log),
    };
    if args.process {
        of_parent(&mut server)?;
    }
    let server = bind(options, server)?;
    let iperf3 = iperf3(options, &log)?;
    for address in server.addresses() {
        tell(&format!("{}{address}\n", far_end::LISTENING));
    }
    tell(&how);
    if attached(options) {
        stop_on_end(&stop)?;
    }
    let ended = std::thread::scope(|scope| {
        let beside = iperf3.map(|server| {
            let stop = &stop;
            scope.spawn(move || server.run(stop))
        });
        let ended = server.run(&stop);
        // A panic in the thread for iperf3 has already been reported as a bug.
        let beside = beside.and_then(|thread| thread.join().ok());
        ended.and(beside.unwrap_or(Ok(())))
    });
    writer.finish();
    ended.map_err(reach::peer_failure)?;
    Ok(Exit::Done)
}

/// Whether another program started this server, which ends when that program closes its stdin.
fn attached(options: &Options) -> bool {
    options.serve.attached == Some(true)
}

/// Serves only the process that started this one, on loopback, whatever the configuration sets for other servers. The
/// server ends with its parent process, even if another process still holds the other end of its stdin.
fn of_parent(server: &mut ServerOptions) -> Result<(), Failure> {
    let ends = rights::end_with_parent();
    reach::system(ends, "cannot watch for the end of the parent process")?;
    server.listen = vec![Ipv4Addr::LOCALHOST.into()];
    server.port = 0;
    server.allow = Vec::new();
    server.limits = Limits::default();
    server.process = true;
    server.storage = None;
    Ok(())
}

/// Binds the port. If it is in use, a server that another program started uses any free port, and reports its number to
/// that program.
fn bind(options: &Options, server: ServerOptions) -> Result<Server, Failure> {
    let bound = match Server::bind(server.clone()) {
        Err(PeerError::Listen { source, .. })
            if source.kind() == ErrorKind::AddrInUse && attached(options) =>
        {
            Server::bind(ServerOptions { port: 0, ..server })
        }
        bound => bound,
    };
    bound.map_err(reach::peer_failure)
}

/// Drops the privileges that serving never needs. Prints a note if the process then still has more than it needs.
fn renounce(options: &Options) -> Result<(), Failure> {
    reach::system(rights::renounce(), "cannot drop privileges")?;
    let wanted = attached(options) || options.serve.allow_changes == Some(true);
    if rights::is_root() && !wanted {
        tell(
            "this server runs as root, which it uses only for readings of this host that need root\n",
        );
    }
    Ok(())
}

/// The folder in which clients may measure the disk.
fn storage(options: &Options) -> Result<Option<String>, Failure> {
    let Some(folder) = &options.serve.storage else {
        return Ok(None);
    };
    if !std::fs::metadata(folder).is_ok_and(|found| found.is_dir()) {
        let error = anyhow::anyhow!("{folder} is no folder that this user can open");
        return Err(Failure::usage(error).hint("--storage takes a folder on the disk to measure"));
    }
    let folder = resolve::absolute(folder);
    tell(&format!("clients may measure the disk below {folder}, by files of up to 16 GiB\n"));
    Ok(Some(folder))
}

fn allowed(options: &Options) -> Vec<IpNet> {
    let networks = options.serve.allow.iter().flatten();
    networks.map(|network| network.0).collect()
}

fn limits(options: &Options) -> Limits {
    let limits = Limits::default();
    Limits {
        sessions: (options.serve.max_clients).map_or(limits.sessions, |n| n.0 as usize),
        ..limits
    }
}

/// The server for iperf3 clients, if the user requested one.
fn iperf3(options: &Options, log: &Log) -> Result<Option<iperf3::Server>, Failure> {
    let Some(port) = options.serve.iperf3.filter(|_| !attached(options)) else {
        return Ok(None);
    };
    let server = iperf3::Server::bind(iperf3::ServerOptions {
        listen: options.serve.listen.iter().copied().collect(),
        port: port.0 as u16,
        allow: allowed(options),
        limits: iperf3::Limits::default(),
        machine: Arc::new(Live::new()),
        log: Arc::clone(log),
    })
    .map_err(reach::peer_failure)?;
    for address in server.addresses() {
        tell(&format!("listening on {address} for iperf3 clients\n"));
    }
    tell("iperf3 has no keys: anyone who can reach that port can load this host and its network\n");
    Ok(Some(server))
}

/// The key to serve with, and a text about it for the user.
fn key(options: &Options) -> Result<(Option<Key>, String), Failure> {
    // The configuration file of this account is for servers that its user starts, not for this one.
    if attached(options) {
        let key = Key::read_line(std::io::stdin().lock()).map_err(reach::key_failure)?;
        return Ok((Some(key), String::new()));
    }
    if options.serve.open == Some(true) {
        if options.serve.key_stdin == Some(true) {
            let error = anyhow::anyhow!("--open uses no key, and --key-stdin reads one");
            return Err(Failure::usage(error).hint("leave out --open or --key-stdin"));
        }
        let words = "no key: anyone who can reach this port can load this host and its network\n";
        return Ok((None, words.to_owned()));
    }
    if options.serve.key_stdin == Some(true) {
        let key = Key::read(std::io::stdin()).map_err(reach::key_failure)?;
        return Ok((Some(key), "the key was read from stdin\n".to_owned()));
    }
    if let Some(key) = Key::from_environment().map_err(reach::key_failure)? {
        let words = format!("the key was read from {}\n", keys::KEY_VARIABLE);
        return Ok((Some(key), words));
    }
    let directory = keys::directory().map_err(reach::key_failure)?;
    let (key, new) = keys::server_key(&directory).map_err(reach::key_failure)?;
    // A key is never logged, and a saved key is not shown on a terminal with --quiet.
    let quiet = options.global.quiet == Some(true);
    let show = (new || !quiet) && std::io::stderr().is_terminal();
    let file = keys::server_file(&directory);
    let words = key_words(&key, new, show, &file, reach::port(&options.peer));
    Ok((Some(key), words))
}

/// Words with the key if it may be shown, else with its file.
fn key_words(key: &Key, new: bool, show: bool, file: &Path, port: u16) -> String {
    let which = if new { "new" } else { "the" };
    let what = if show {
        format!("{which} key: {}", key.text())
    } else {
        format!("{which} key is in {0}    (cat {0})", file.display())
    };
    let port = if port == PORT { String::new() } else { format!(" --port {port}") };
    format!(
        "{what}\nto use it: linerate pair THIS-HOST{port}    (on the machine that measures, once)\n"
    )
}

/// Requests a stop when stdin is closed: the program that started this one has ended, or no longer needs it.
fn stop_on_end(stop: &Stop) -> Result<(), Failure> {
    let stop = stop.clone();
    let watch = move || {
        // Only the end of standard input matters; bytes written to it are ignored.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        stop.request();
    };
    let thread = std::thread::Builder::new().name("stdin".into());
    reach::system(thread.spawn(watch), "cannot start a thread").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_only_where_it_may_be() {
        let key = Key::generate();
        let at = |new, show, port| key_words(&key, new, show, Path::new("/home/a/serve.key"), port);
        let words = |new, show| at(new, show, PORT);
        assert!(words(false, true).contains("linerate pair THIS-HOST  "));
        assert!(at(false, true, 6011).contains("linerate pair THIS-HOST --port 6011  "));
        for new in [false, true] {
            let hidden = words(new, false);
            assert!(!hidden.contains(&key.text()));
            assert!(hidden.contains("cat /home/a/serve.key"), "{hidden}");
            assert!(words(new, true).contains(&key.text()));
        }
    }
}
