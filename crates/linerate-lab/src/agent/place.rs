//! The namespaces of one host.

use std::io;
use std::os::fd::OwnedFd;

use linerate_sys::namespace::{self, Space};
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags};

use crate::error::{self, LabError};
use crate::netlink::Netlink;

/// Descriptors of a host's namespaces.
pub(super) struct Place {
    pub(super) net: OwnedFd,
    pub(super) mount: OwnedFd,
    pub(super) netlink: Netlink,
}

/// Makes mounts that are invisible outside, with a /proc that shows the lab's processes.
pub(super) fn private_mounts() -> Result<OwnedFd, LabError> {
    let what = "mount namespace";
    namespace::unshare(&[Space::Mount]).map_err(|e| error::forbidden(what, &e))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(|e| error::forbidden(what, &e.into()))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("proc", "/proc", "proc", flags, None)
        .map_err(|e| error::forbidden("new /proc", &e.into()))?;
    namespace::current(Space::Mount).map_err(|e| error::forbidden(what, &e))
}

/// Makes a network namespace, and a mount namespace whose /sys shows that network's ports.
pub(super) fn make_place(base: &OwnedFd) -> Result<Place, LabError> {
    let what = "network namespace";
    namespace::enter(Space::Mount, base).map_err(|e| error::forbidden(what, &e))?;
    namespace::unshare(&[Space::Net, Space::Mount]).map_err(|e| error::forbidden(what, &e))?;
    mount_sys().map_err(|e| error::forbidden("new /sys", &e))?;
    let handles = || -> io::Result<Place> {
        Ok(Place {
            net: namespace::current(Space::Net)?,
            mount: namespace::current(Space::Mount)?,
            netlink: Netlink::open()?,
        })
    };
    handles().map_err(|e| LabError::step("cannot open a new network namespace", &e))
}

fn mount_sys() -> io::Result<()> {
    const CGROUPS: &str = "/sys/fs/cgroup";
    // The new /sys lacks the file systems that were mounted inside the old one; quotas need the control groups there.
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let cgroups = rustix::mount::open_tree(rustix::fs::CWD, CGROUPS, flags).ok();
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let mount = |flags| rustix::mount::mount("sysfs", "/sys", "sysfs", flags, None);
    // If the old /sys is read-only, as in containers, the new one must be read-only too.
    mount(flags).or_else(|_| mount(flags | MountFlags::RDONLY))?;
    if let Some(tree) = cgroups {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(tree, "", rustix::fs::CWD, CGROUPS, flags)?;
    }
    Ok(())
}
