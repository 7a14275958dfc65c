//! Privileges of this process.

use std::io;

/// Prevents for good that programs executed by this process gain privileges from set-user-ID files or file
/// capabilities. It must be called before threads are started.
pub fn renounce() -> io::Result<()> {
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// Returns whether this process runs as root, even if only in a user namespace.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes the kernel send SIGTERM to this process when its parent process ends.
pub fn end_with_parent() -> io::Result<()> {
    let signal = rustix::process::Signal::TERM;
    Ok(rustix::process::set_parent_process_death_signal(Some(signal))?)
}
