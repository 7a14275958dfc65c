//! Processes: forks without `exec`, and programs started in other namespaces.
#![expect(unsafe_code, reason = "fork, signals and work between fork and exec")]

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::Pid;

use crate::namespace::{self, Space};

/// Exit status of a forked child whose `body` panicked.
const PANICKED: u8 = 101;

/// Number of times that a fork checks for other threads, 1 ms apart.
const LOOKS: u32 = 50;

/// Forks, and runs `body` in the child. The child ends with the status that `body` returns.
///
/// The child keeps descriptors 0 to 2 and those in `keep`, and closes all others, so `keep` must list the descriptors
/// that `body` uses. All signals have their default actions in the child. Fails with `EBUSY` while the process has
/// other threads, because locks that they hold would stay locked in the child for ever.
pub fn fork(keep: &[&OwnedFd], body: impl FnOnce() -> u8) -> io::Result<Pid> {
    if !is_alone()? {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    // SAFETY: the process has only one thread, as was just checked. So no lock of the allocator or the standard library
    // is held by a thread that the child lacks, and the child may run any code.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            close_all_but(keep);
            default_signals();
            let status = catch_unwind(AssertUnwindSafe(body)).unwrap_or(PANICKED);
            // SAFETY: the call ends this process without running the parent's exit handlers. It never returns, so no
            // value of the parent is dropped a second time.
            unsafe { libc::_exit(i32::from(status)) }
        }
        _ => Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork gave no process id")),
    }
}

/// Returns whether the process has no other threads. A thread that was just joined still counts until the kernel has
/// released it, so the check is repeated.
fn is_alone() -> io::Result<bool> {
    for _ in 0..LOOKS {
        if fs::read_dir("/proc/self/task")?.count() == 1 {
            return Ok(true);
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(false)
}

/// Closes all descriptors from 3 on, except those in `keep`.
fn close_all_but(keep: &[&OwnedFd]) {
    let mut numbers: Vec<RawFd> = keep.iter().map(|fd| fd.as_raw_fd()).collect();
    numbers.sort_unstable();
    let mut first = 3;
    for number in numbers {
        if number >= first {
            close_range(first, number - 1);
            first = number + 1;
        }
    }
    close_range(first, RawFd::MAX);
}

fn close_range(first: RawFd, last: RawFd) {
    if first > last {
        return;
    }
    // SAFETY: this is only called in a new child, which never returns to the functions whose values own these
    // descriptors. So no owner uses or closes them again.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if closed < 0 {
        // The kernel is older than 5.9, or a filter forbids the call. A descriptor that stayed open would keep
        // connections and locks of the parent alive as long as the child lives.
        close_listed(first, last);
    }
}

/// Closes the descriptors of a range one by one. /proc lists which of them are open.
fn close_listed(first: RawFd, last: RawFd) {
    let Ok(listed) = fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers: Vec<RawFd> = listed
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| (first..=last).contains(number))
        .collect();
    for number in numbers {
        // SAFETY: as in `close_range`. The descriptor of the list itself is already closed: its number is either free,
        // so that the call fails, or unused.
        unsafe {
            libc::close(number);
        }
    }
}

/// Restores the default action of every signal, and unblocks all signals.
fn default_signals() {
    for signal in 1..=64 {
        // SAFETY: setting the default action installs no handler. The calls for SIGKILL, SIGSTOP and the signals of the
        // C library fail without an effect.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    // SAFETY: `set` is a plain bit array, which `sigemptyset` initialises before it is read.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Makes `command` start its program in a network and a mount namespace, in the directory `cwd` of the mount namespace.
pub fn start_inside(command: &mut Command, net: OwnedFd, mount: OwnedFd, cwd: CString) {
    let enter = move || {
        namespace::enter(Space::Net, net.as_fd())?;
        namespace::enter(Space::Mount, mount.as_fd())?;
        rustix::process::chdir(cwd.as_c_str())?;
        Ok(())
    };
    // SAFETY: between fork and exec, the closure makes three system calls on values that already exist. It takes no
    // lock and allocates nothing, whether it succeeds or fails.
    unsafe {
        command.pre_exec(enter);
    }
}

/// Requests short time slices for this thread, so that it waits less before it runs.
/// Kernels before 6.12 ignore this. The nice value is not changed: to lower it again
/// needs a privilege that the user who started this program with `nice` may not have.
pub fn prefer_short_slices(slice: Duration) -> io::Result<()> {
    // The first version of `struct sched_attr`: size, policy, flags, nice, priority, runtime, deadline, period.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice: rustix::process::getpriority_process(None)?,
        priority: 0,
        runtime: slice.as_nanos() as u64,
        deadline: 0,
        period: 0,
    };
    // SAFETY: `attributes` is a whole structure that contains its own size, and outlives the call.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use rustix::process::{getpriority_process, nice};

    use super::*;

    /// Runs on its own thread: a nice value belongs to one thread, and only a privileged user can lower it again.
    #[test]
    fn short_slices_leave_the_nice_value_as_it_is() {
        let thread = thread::spawn(|| {
            let before = nice(3).unwrap();
            prefer_short_slices(Duration::from_micros(100)).unwrap();
            (before, getpriority_process(None).unwrap())
        });
        let (before, after) = thread.join().unwrap();
        assert_eq!(before, after);
    }
}
