//! The programs of a simulated network: they end with the thread that started them.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::error::IbError;
use crate::tool;

/// Time between two checks whether a program is ready or has ended.
pub(super) const LOOK: Duration = Duration::from_millis(10);
/// Time that a program has to end after SIGTERM; then it is killed.
const END_WITHIN: Duration = Duration::from_secs(2);

pub(super) fn find(what: &'static str) -> Result<PathBuf, IbError> {
    tool::find(what).ok_or(IbError::Missing { what })
}

/// Returns a command for a program that ends with this thread, even if this process is killed.
pub(super) fn command(program: impl AsRef<OsStr>) -> Result<Command, IbError> {
    let mut command = Command::new(find("setpriv")?);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program.as_ref());
    Ok(command)
}

/// Starts a program whose output goes to a file. Ctrl-C does not reach the program: it is ended in order, after the
/// program that uses the network.
pub(super) fn start(program: &str, command: &mut Command, output: &Path) -> Result<Child, IbError> {
    let failed = || IbError::step(format!("cannot start {program}"));
    let file = File::create(output).map_err(failed())?;
    let errors = file.try_clone().map_err(failed())?;
    command.stdout(file).stderr(errors).process_group(0);
    command.spawn().map_err(failed())
}

/// The outcome of waiting for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// The program is ready.
    Ready,
    /// The program has ended.
    Ended,
    /// The program was not ready in time.
    Late,
}

/// Waits until a program is ready or ends, at most for `within`.
pub(super) fn wait_until(
    child: &mut Child,
    within: Duration,
    is_ready: impl Fn() -> bool,
) -> Result<Waited, IbError> {
    let began = Instant::now();
    loop {
        if is_ready() {
            return Ok(Waited::Ready);
        }
        let ended = child.try_wait();
        if ended.map_err(IbError::step("cannot wait for a program"))?.is_some() {
            return Ok(Waited::Ended);
        }
        if began.elapsed() >= within {
            return Ok(Waited::Late);
        }
        thread::sleep(LOOK);
    }
}

/// Ends a program by SIGTERM, and kills it if it does not end in time.
pub(super) fn end(child: &mut Child) -> io::Result<ExitStatus> {
    if let Some(status) = child.try_wait()? {
        return Ok(status);
    }
    kill_process(Pid::from_child(child), Signal::TERM)?;
    let began = Instant::now();
    while began.elapsed() < END_WITHIN {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(LOOK);
    }
    child.kill()?;
    child.wait()
}
