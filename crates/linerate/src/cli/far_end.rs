//! A far end that this program starts: it reads its key from a pipe, and ends when that pipe is closed.

use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use linerate_session::peer::address::Target;
use linerate_session::peer::keys::Key;

use super::exit::{Failure, tell};
use linerate_show::one_line;

/// The start of the line that `serve` prints for each address that it listens on.
pub(crate) const LISTENING: &str = "listening on ";

/// The file of this running program, even if an upgrade has replaced it on disk.
const OWN: &str = "/proc/self/exe";

/// Variables that configure `linerate serve` and that a far end started by this program must not inherit.
const OF_SERVERS: [&str; 8] = [
    "LINERATE_PORT",
    "LINERATE_LISTEN",
    "LINERATE_ALLOW",
    "LINERATE_MAX_CLIENTS",
    "LINERATE_KEY_STDIN",
    "LINERATE_SERVE_OPEN",
    "LINERATE_SERVE_IPERF3",
    "LINERATE_SERVE_ALLOW_CHANGES",
];

/// Time that the far end has to end by itself once it is no longer needed; then its process is killed.
const PATIENCE: Duration = Duration::from_secs(3);

/// Time between two checks whether the far end has ended.
const GLANCE: Duration = Duration::from_millis(10);

/// A far end that ends when this value is dropped.
pub(crate) struct FarEnd {
    process: Child,
    /// Standard input of the far end, which ends when this pipe is closed.
    hold: Option<ChildStdin>,
    pub(crate) target: Target,
    pub(crate) key: Key,
}

/// The reason why there is no far end.
pub(crate) enum Unmade {
    /// The program could not be started.
    Unstarted(std::io::Error),
    /// The far end ended with the given status before it listened.
    Ended(Option<i32>),
}

impl FarEnd {
    /// Starts a far end by `command`, which runs `linerate serve --attached` on `host`.
    pub(crate) fn start(mut command: Command, host: String) -> Result<Self, Unmade> {
        let pipes = command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let started = pipes.stdout(Stdio::null()).spawn();
        let mut process = started.map_err(Unmade::Unstarted)?;
        let words = process.stderr.take().map(BufReader::new);
        let mut far = Self {
            hold: process.stdin.take(),
            process,
            target: Target { host, port: 0 },
            key: Key::generate(),
        };
        // A failed write is ignored: if the process has already ended, it printed the reason to its stderr.
        let hold = far.hold.as_mut();
        let _ = hold.map(|hold| writeln!(hold, "{}", far.key.text()));
        match words.and_then(listening) {
            Some(port) => far.target.port = port,
            None => return Err(far.ended()),
        }
        Ok(far)
    }

    /// Starts another process of this program on this host as a far end. With `changes`, the far end lets runs
    /// change settings of the host.
    pub(crate) fn process(changes: bool) -> Result<Self, Failure> {
        let mut command = Command::new(OWN);
        command.arg0("linerate");
        command.args(["serve", "--attached", "--process"]);
        if changes {
            command.arg("--allow-changes");
        }
        // Settings of servers for other users do not apply to this far end.
        for name in OF_SERVERS {
            command.env_remove(name);
        }
        // The far end has its own process group, so Ctrl-C reaches only this process, which ends the run in order.
        command.process_group(0);
        let host = Ipv4Addr::LOCALHOST.to_string();
        Self::start(command, host).map_err(|unmade| {
            let error = match unmade {
                Unmade::Unstarted(error) => anyhow!("cannot start a second process: {error}"),
                Unmade::Ended(_) => anyhow!("the second process ended before it listened"),
            };
            Failure::not_measured(error)
        })
    }

    fn ended(&mut self) -> Unmade {
        self.hold = None;
        let status = self.process.wait().ok();
        Unmade::Ended(status.and_then(|status| status.code()))
    }
}

/// The TCP port on which the far end reports to listen; `None` if it ends before it reports one. Earlier lines are
/// shown to the user. Later lines are its log, which is dropped.
fn listening(words: BufReader<ChildStderr>) -> Option<u16> {
    let mut lines = words.split(b'\n').map_while(Result::ok);
    let port = lines.by_ref().find_map(|line| {
        let line = String::from_utf8_lossy(&line).into_owned();
        let port = port(&line);
        if port.is_none() {
            tell(&format!("{}\n", one_line(line.trim_end())));
        }
        port
    })?;
    // The far end's stderr is read to its end: a full pipe would block the far end.
    thread::spawn(move || lines.for_each(drop));
    Some(port)
}

/// The TCP port in a line that reports where the far end listens.
fn port(line: &str) -> Option<u16> {
    let address = line.trim_end().strip_prefix(LISTENING)?;
    address.rsplit_once(':')?.1.parse().ok()
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        self.hold = None;
        let until = Instant::now() + PATIENCE;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(GLANCE);
        }
        // A failure to kill is ignored: then the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_that_of_the_line_that_names_it() {
        assert_eq!(port("listening on [::]:40123\r"), Some(40_123));
        assert_eq!(port("listening on 10.0.0.1:5377"), Some(5377));
        assert_eq!(port("Welcome, you are listening on 10.0.0.1:5377"), None);
        assert_eq!(port("listening on the radio"), None);
    }
}
