//! `linerate serve`: the far end.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Parser;
use linerate_engine::host::Live;
use linerate_engine::peer::Stop;
use linerate_engine::peer::keys::{self, Key};
use linerate_engine::peer::server::{Limits, Server, ServerOptions};

use super::exit::{Exit, Failure, tell};
use super::options::{self, Options};
use super::{changes, reach, signal};

// `linerate serve`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) serve: options::Serve,

    /// Port for control and data
    #[arg(long, env = "LINERATE_PORT", value_name = "PORT")]
    pub(crate) port: Option<super::quantity::Port>,
}

/// How often a stop by signal is looked for; it only delays the end.
const GLANCE: Duration = Duration::from_millis(100);

pub(crate) fn run(options: &Options) -> Result<Exit, Failure> {
    let changes = changes::ledger(options.serve.allow_changes)?;
    let (key, how) = key(options)?;
    let quiet = options.global.quiet == Some(true);
    let server = Server::bind(ServerOptions {
        listen: options.serve.listen.iter().copied().collect(),
        port: reach::port(&options.peer),
        key,
        limits: Limits::default(),
        machine: Arc::new(Live::new()),
        changes,
        log: Arc::new(move |line| {
            if !quiet {
                tell(&format!("{line}\n"));
            }
        }),
    })
    .map_err(reach::peer_failure)?;
    for address in server.addresses() {
        tell(&format!("listening on {address}\n"));
    }
    tell(&how);
    let stop = reach::system(Stop::new(), "cannot make an event descriptor")?;
    stop_on_signal(&stop)?;
    server.run(&stop).map_err(reach::peer_failure)?;
    Ok(Exit::Done)
}

/// The key to serve with, and what the user must know about it.
fn key(options: &Options) -> Result<(Option<Key>, String), Failure> {
    if options.serve.open == Some(true) {
        let words = "no key: anyone who reaches this port can load this host and its network\n";
        return Ok((None, words.to_owned()));
    }
    if options.serve.key_stdin == Some(true) {
        let key = Key::read(std::io::stdin()).map_err(reach::key_failure)?;
        return Ok((Some(key), "the key came from stdin\n".to_owned()));
    }
    if let Some(key) = Key::from_environment().map_err(reach::key_failure)? {
        let words = format!("the key came from {}\n", keys::KEY_VARIABLE);
        return Ok((Some(key), words));
    }
    let directory = keys::directory().map_err(reach::key_failure)?;
    let (key, new) = keys::server_key(&directory).map_err(reach::key_failure)?;
    // A kept key stays out of logs, and of a terminal that is to be quiet.
    let quiet = options.global.quiet == Some(true);
    let show = new || (!quiet && std::io::stderr().is_terminal());
    let words = key_words(&key, new, show, &keys::server_file(&directory));
    Ok((Some(key), words))
}

/// The key itself if it may be shown, else where it is.
fn key_words(key: &Key, new: bool, show: bool, file: &Path) -> String {
    let what = match (new, show) {
        (true, _) => format!("new key: {}", key.text()),
        (false, true) => format!("the key: {}", key.text()),
        (false, false) => format!("the key is in {0}    (cat {0})", file.display()),
    };
    format!("{what}\nto use it: linerate pair THIS-HOST    (on the machine that measures, once)\n")
}

fn stop_on_signal(stop: &Stop) -> Result<(), Failure> {
    let flag = reach::system(signal::interrupted(), "cannot watch for Ctrl-C")?;
    let stop = stop.clone();
    let watch = move || {
        while !flag.load(Ordering::Relaxed) {
            std::thread::sleep(GLANCE);
        }
        stop.request();
    };
    let thread = std::thread::Builder::new().name("signals".into());
    reach::system(thread.spawn(watch), "cannot start a thread").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_key_is_shown_only_where_it_may_be() {
        let key = Key::generate();
        let words = |new, show| key_words(&key, new, show, Path::new("/home/a/serve.key"));
        let hidden = words(false, false);
        assert!(!hidden.contains(&key.text()));
        assert!(hidden.contains("cat /home/a/serve.key"), "{hidden}");
        assert!(words(false, true).contains(&key.text()));
        assert!(words(true, true).contains(&key.text()));
    }
}
