//! Namespaces: creating new ones, and entering existing ones.
#![expect(unsafe_code, reason = "unshare is unsafe in rustix because of one flag")]

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::thread::{LinkNameSpaceType, UnshareFlags};

/// A kind of namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// User and group ids, and capabilities.
    User,
    /// Process ids. The first child after the call is the init process of the
    /// namespace; when it ends, all processes in the namespace are killed.
    Pid,
    Mount,
    /// Network ports, addresses, routes, sockets, `net.*` settings.
    Net,
}

impl Space {
    const fn flag(self) -> UnshareFlags {
        match self {
            Self::User => UnshareFlags::NEWUSER,
            Self::Pid => UnshareFlags::NEWPID,
            Self::Mount => UnshareFlags::NEWNS,
            Self::Net => UnshareFlags::NEWNET,
        }
    }

    const fn link(self) -> LinkNameSpaceType {
        match self {
            Self::User => LinkNameSpaceType::User,
            Self::Pid => LinkNameSpaceType::ProcessID,
            Self::Mount => LinkNameSpaceType::Mount,
            Self::Net => LinkNameSpaceType::Network,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Pid => "pid",
            Self::Mount => "mnt",
            Self::Net => "net",
        }
    }
}

/// Moves the caller from its current namespaces of the given kinds to new ones.
///
/// Fails with `EPERM` or `ENOSPC` if a setting or a system call filter forbids this, and with `EINVAL` for a user
/// namespace while the process has more than one thread.
pub fn unshare(spaces: &[Space]) -> io::Result<()> {
    let flags = spaces.iter().fold(UnshareFlags::empty(), |all, space| all | space.flag());
    // SAFETY: the precondition concerns only `CLONE_FILES`, which is the flag of no `Space`. So the table of
    // descriptors stays shared by all threads of the process.
    unsafe { rustix::thread::unshare_unsafe(flags) }?;
    Ok(())
}

/// Returns a handle of the caller's current namespace of a kind. The handle keeps this namespace alive.
pub fn current(space: Space) -> io::Result<OwnedFd> {
    Ok(fs::File::open(format!("/proc/self/ns/{}", space.name()))?.into())
}

/// Moves the calling thread into a namespace. In a mount namespace, the
/// working directory is afterwards the root directory of that namespace.
pub fn enter(space: Space, handle: impl AsFd) -> io::Result<()> {
    rustix::thread::move_into_link_name_space(handle.as_fd(), Some(space.link()))?;
    Ok(())
}

/// Maps root of the caller's new user namespace to the user and group that the caller had outside. No other user is
/// mapped. An ordinary user may do this only after disabling `setgroups`.
pub fn map_root(uid: u32, gid: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1"))
}
