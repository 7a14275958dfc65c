//! Rights of this process.

use std::io;

/// Drops, for this process and for good, the privileges that an executed program could gain from set-user-ID
/// files and file capabilities. Must be called before threads are started.
pub fn renounce() -> io::Result<()> {
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// Returns whether this process runs as root, even if only in a user namespace.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Asks the kernel to send SIGTERM to this process when the process that started it has ended.
pub fn end_with_parent() -> io::Result<()> {
    let signal = rustix::process::Signal::TERM;
    Ok(rustix::process::set_parent_process_death_signal(Some(signal))?)
}
