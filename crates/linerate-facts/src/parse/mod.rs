//! Decoders for what the kernel returns (text of /proc and /sys, netlink messages, socket options), and for the marks
//! and headers that another end puts into its payload.
//!
//! Each format has its own file. Every parser takes bytes and returns values or [`Malformed`]. No input makes a parser
//! panic. Parsers do not guess, and they skip additions of newer kernels.

pub mod address;
pub mod alias;
pub mod cgroup;
pub mod conntrack;
pub mod control;
pub mod cpu_stat;
pub mod cpuinfo;
pub mod datagram;
pub mod disk_stat;
pub mod driver;
pub mod ethtool;
pub mod genetlink;
pub mod infiniband;
pub mod interrupts;
pub mod io_max;
pub mod limit;
pub mod link;
pub mod mem_info;
pub mod meminfo;
pub mod modules;
pub mod mounts;
pub mod netdev;
mod netem;
pub mod netlink;
pub mod pci_config;
pub mod pressure;
pub mod proc_stat;
pub mod qdisc;
pub mod route;
pub mod routes;
pub mod run;
pub mod schedstat;
pub mod shaping;
pub mod smbios;
pub mod snmp;
pub mod sock_diag;
pub mod softnet;
pub mod sysctl;
pub mod sysfs;
pub mod task_stat;
pub mod tcp_info;
mod text;
pub mod tunnel;
pub mod zerocopy;

/// Why bytes from the kernel could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes end before the item does.
    #[error("{0} is cut short")]
    Short(&'static str),
    /// The text in the place of a number is not a number, or is too large.
    #[error("{0} is not a number")]
    NotANumber(&'static str),
    /// A part that is always present is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
}
