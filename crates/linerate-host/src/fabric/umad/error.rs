//! Errors of user MAD devices, with hints.

use std::borrow::Cow;
use std::fmt;

use rustix::fs::Stat;

use super::choice::Name;

/// Why the network cannot be queried through any port of this host.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UmadError {
    /// There is no RDMA device with a port.
    #[error("this host has no InfiniBand device")]
    NoDevice,
    /// The port that the user named does not exist.
    #[error("this host has no {wanted}; it has {}", list(.ports))]
    NotHere {
        /// The device or port that the user named.
        wanted: String,
        /// RDMA ports that this host has.
        ports: Vec<Name>,
    },
    /// The port's link is Ethernet, not InfiniBand.
    #[error(
        "{port} is an Ethernet port (RoCE or iWARP): it needs no subnet manager, and there is no InfiniBand network to \
         walk"
    )]
    Ethernet {
        /// The Ethernet port.
        port: Name,
    },
    /// The port is an Omni-Path port.
    #[error(
        "{port} is an Omni-Path port: its management datagrams have a format that linerate does not know"
    )]
    OmniPath {
        /// The Omni-Path port.
        port: Name,
    },
    /// The kernel module of user MAD devices is not loaded.
    #[error("the kernel has no user MAD devices: the module ib_umad is not loaded")]
    NoModule {
        /// The port that was chosen.
        port: Name,
    },
    /// The kernel module is loaded, but has no device for the port.
    #[error("ib_umad has no user MAD device for {port}")]
    NoMadDevice {
        /// The port that has no device.
        port: Name,
    },
    /// The kernel implements another version of the interface.
    #[error("the kernel has version {version} of user MAD devices, and linerate knows version 5")]
    Version {
        /// The version that the kernel implements.
        version: String,
    },
    /// The device has no file in `/dev`.
    #[error("{path} does not exist, although the kernel has the device")]
    NoFile {
        /// Path of the device file.
        path: String,
    },
    /// This process may not open the device.
    #[error("no permission to open {path}, which belongs to {owner}")]
    Denied {
        /// Path of the device file.
        path: String,
        /// Owner and mode of the file.
        owner: Owner,
        /// Whether this process is root.
        is_root: bool,
    },
    /// The port has no queue pair 0.
    #[error("{port} cannot send subnet management datagrams: it has no queue pair 0")]
    NoSubnet {
        /// The port without queue pair 0.
        port: Name,
    },
    /// The device was removed.
    #[error("the device of {port} was removed")]
    Removed {
        /// The port of the removed device.
        port: Name,
    },
}

impl UmadError {
    /// Returns the command or action that would help; empty if none is known.
    pub fn hint(&self) -> Cow<'static, str> {
        let container = |path: &str| {
            format!("a container needs the device: docker run --device {path} ...").into()
        };
        match self {
            Self::NoDevice => "lspci -d ::0207 lists InfiniBand cards, and linerate host their \
                               drivers; IBSIM_SOCKNAME=sim linerate fabric asks ibsim's network"
                .into(),
            Self::NotHere { ports, .. } => match ports.first() {
                Some(port) => format!("linerate fabric --device {}", port.option()).into(),
                None => "".into(),
            },
            Self::Ethernet { .. } => {
                "linerate host shows the port and its network interface".into()
            }
            Self::OmniPath { .. } => "sudo opafabricinfo".into(),
            Self::NoModule { .. } => "sudo modprobe ib_umad".into(),
            Self::NoMadDevice { .. } => {
                "grep . /sys/class/infiniband_mad/umad*/{ibdev,port} lists \
                                         the devices; --device chooses the port"
                    .into()
            }
            Self::Version { .. } => "use the kernel's own modules, or report it".into(),
            Self::Denied { is_root: false, .. } => "sudo linerate fabric".into(),
            Self::NoFile { path } | Self::Denied { path, .. } => container(path),
            Self::NoSubnet { .. } => {
                "a virtual function has none: run linerate fabric on the host \
                                      that owns the card, or choose another port with --device"
                    .into()
            }
            Self::Removed { .. } => "dmesg says why".into(),
        }
    }
}

/// Owner and mode of a file, which determine who may open it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    user: u32,
    group: u32,
    mode: u32,
}

impl Owner {
    pub(super) fn of(stat: &Stat) -> Self {
        Self { user: stat.st_uid, group: stat.st_gid, mode: stat.st_mode & 0o7777 }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {} and group {}, mode {:04o}", self.user, self.group, self.mode)
    }
}

fn list(ports: &[Name]) -> String {
    let names: Vec<String> = ports.iter().map(ToString::to_string).collect();
    names.join(", ")
}
