//! `linerate pair`: reads the key that a far end shows, and saves it.

use std::io::{self, IsTerminal};

use clap::Parser;
use linerate_session::peer::PORT;
use linerate_session::peer::client::{self, PairError};
use linerate_session::peer::keys::{self, Key};

use super::exit::{Exit, Failure, tell};
use super::options::{self, Options};
use super::reach::Origin;
use super::{out, reach};

// `linerate pair`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Far machine, by the name that you will give to `linerate run`
    host: String,

    #[command(flatten)]
    pub(crate) peer: options::Peer,
}

pub(crate) fn run(args: &Args, options: &Options) -> Result<Exit, Failure> {
    let target = reach::target(&args.host, &options.peer)?;
    let directory = keys::directory().map_err(reach::key_failure)?;
    let (key, origin) = read(&args.host)?;
    let family = reach::family(&options.peer);
    let path =
        client::pair(&directory, &target, family, &key).map_err(|error| refused(error, origin))?;
    let port = options.peer.port.filter(|p| p.0 != u32::from(PORT));
    out::print(&format!(
        "paired: {} accepts the key, which is saved in {}\nnow: linerate run {}{}\n",
        args.host,
        path.display(),
        args.host,
        port.map_or_else(String::new, |p| format!(" --port {}", p.0)),
    ))?;
    Ok(Exit::Done)
}

fn refused(error: PairError, origin: Origin) -> Failure {
    let of_key = match &error {
        PairError::Peer(error) => reach::hint_of_key(error, origin),
        PairError::Key(_) => None,
    };
    let hint = of_key.unwrap_or_else(|| error.hint());
    Failure::not_measured(error).hint(hint)
}

/// Reads the key: from the environment, from a line that is typed, or from all of standard input if it is no terminal.
fn read(host: &str) -> Result<(Key, Origin), Failure> {
    if let Some(key) = Key::from_environment().map_err(reach::key_failure)? {
        // A key from the environment is used without asking.
        tell(&format!("the key was read from {}\n", keys::KEY_VARIABLE));
        return Ok((key, Origin::Environment));
    }
    let key = if io::stdin().is_terminal() {
        tell(&format!("key that `linerate serve` shows on {host}: "));
        Key::read_line(io::stdin().lock())
    } else {
        Key::read(io::stdin())
    };
    Ok((key.map_err(reach::key_failure)?, Origin::Own))
}
