//! Ctrl-C, and the loss of the terminal: the first signal requests an orderly end, the second ends the program at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::Builder;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::exit::Exit;

/// A flag that is set by Ctrl-C, SIGTERM or SIGHUP. A second signal ends the program at once: its sender does
/// not want to wait.
pub(crate) fn interrupted() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals() {
        // The immediate exit is registered before the flag is set, so that only the second signal finds the flag set.
        flag::register_conditional_shutdown(signal, Exit::NotMeasured as i32, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Calls `end` at the first signal that interrupts the program. A separate thread sleeps until that signal, without
/// wake-ups.
pub(crate) fn at_first(end: impl FnOnce() + Send + 'static) -> io::Result<()> {
    interrupted()?;
    let mut signals = Signals::new(signals())?;
    let wait = move || {
        if signals.forever().next().is_some() {
            end();
        }
    };
    Builder::new().name("signals".into()).spawn(wait).map(drop)
}

/// Makes a write beyond the limit of `ulimit -f` fail with an error that can be reported. By default SIGXFSZ would end
/// the program.
pub(crate) fn large_files_fail_in_words() {
    // If the handler cannot be installed, the default stays.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

fn signals() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM].into_iter().chain(hangup())
}

/// SIGHUP, unless the parent process has made us ignore it (nohup).
fn hangup() -> Option<i32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let ignored = status.lines().find_map(|l| l.strip_prefix("SigIgn:"))?;
    let ignored = u64::from_str_radix(ignored.trim(), 16).ok()?;
    (ignored >> (SIGHUP - 1) & 1 == 0).then_some(SIGHUP)
}
