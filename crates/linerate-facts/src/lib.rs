//! The facts of a host that do not change during a run, as far as they could be read.
//!
//! This crate owns the facts by subject (CPU, memory, PCI, ports, RDMA, disks), the oddities in them ([`odd`]), the
//! parsers of what the kernel reports ([`parse`], from bytes to facts and readings), the readings themselves
//! ([`metric`]), and commands that a user types ([`advice`]). It opens no file and calls no kernel: `linerate-host`
//! does.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod advice;
pub mod metric;
pub mod parse;
pub mod placement;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use bounded::{CPUS, FEW, GAPS, at_most, some_at_most};
use linerate_plan::change::Setting;
use linerate_units::Bytes;
pub use pasted::host_of;
use underlay::Underlay;

pub mod block;
pub mod board;
mod bounded;
pub mod carrier;
pub mod cpu;
pub mod crossing;
mod exact;
pub mod finding;
pub mod ids;
pub mod infiniband;
pub mod irq;
pub mod machine;
pub mod memory;
pub mod nic;
pub mod odd;
mod pasted;
pub mod pci;
pub mod rdma;
pub mod route;
pub mod shaping;
pub mod topology;
pub mod underlay;
pub mod usb;
pub mod watch;

/// Everything that is known of one machine before anything is measured. A run records only the few facts in
/// [`HostFacts`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inventory {
    /// The kind of machine, its names and its limits.
    pub machine: machine::Machine,
    /// The machine's processors and NUMA nodes.
    pub processors: cpu::Processors,
    /// The machine's memory.
    pub memory: memory::Memory,
    /// The machine's PCI devices, in the order of their addresses.
    pub pci: Vec<pci::Device>,
    /// The machine's network ports.
    pub network: nic::Network,
    /// The machine's interrupts.
    pub interrupts: irq::Interrupts,
    /// The machine's RDMA devices.
    pub infiniband: infiniband::Infiniband,
    /// The machine's disks and their file systems.
    pub storage: block::Storage,
    /// Functions of USB devices other than hubs, if the facts come from pasted text; empty for a machine that was read.
    pub usb: Vec<usb::Function>,
    /// Kernel settings that matter to a path.
    pub tunables: Vec<Tunable>,
    /// The kernel's table of tracked connections; `None` if it tracks none, or if unknown.
    pub conntrack: Option<Conntrack>,
    /// The activity of the machine's CPUs; `None` if it cannot be read twice.
    pub busy: Option<cpu::Busy>,
    /// All facts that could not be read.
    pub gaps: Vec<Gap>,
}

impl Inventory {
    /// Whether a fact could not be read, so that nothing follows from its absence.
    pub fn lacks(&self, fact: &str) -> bool {
        self.gaps.iter().any(|gap| gap.what == fact)
    }
}

/// The kernel's table of tracked connections, for firewalls and address translation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Conntrack {
    /// Number of entries in use.
    #[serde(rename = "live_entries", serialize_with = "exact::exact")]
    pub entries: u64,
    /// Largest number of entries; 0 means no limit.
    #[serde(rename = "entries_max", serialize_with = "exact::exact")]
    pub most: u64,
    /// Entries that were evicted since boot because the table was full. Null if unknown.
    #[serde(rename = "live_evicted", serialize_with = "exact::exact")]
    pub evicted: Option<u64>,
    /// Packets that were dropped since boot because the table was full, or for another reason. Null if unknown.
    #[serde(rename = "live_dropped", serialize_with = "exact::exact")]
    pub dropped: Option<u64>,
}

/// A sysctl of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunable {
    /// Name of the setting: `net.core.rmem_max`.
    pub name: String,
    /// Value of the setting, as the kernel prints it.
    pub value: String,
}

/// A gap: a fact or a reading that should be there and is not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// Name of the missing metric or fact: `tcp.busy`, `port`, `facts.cpu`.
    pub what: String,
    /// Why the fact or the reading could not be read.
    pub why: String,
    /// The command that would allow the reading. Empty if there is none.
    pub hint: String,
}

/// How serious a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The run cannot continue.
    Fatal,
    /// A setting could be better.
    Hint,
    /// Information that needs no action.
    Info,
}

/// A network port, as its host reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Port {
    /// Name of the port, such as `eth0`.
    pub name: String,
    /// Driver of the port, or the kind of a port that is made by software: `mlx5_core`, `veth`; empty when unknown.
    pub driver: String,
    /// Nominal speed in Mb/s; `None` when unknown, and never trusted for virtual ports.
    pub speed_mbps: Option<u64>,
    /// Maximum transmission unit of the port, in bytes.
    pub mtu: Option<u32>,
    /// Whether the port sends Ethernet frames, so that the headers on its wire are known.
    pub is_ethernet: bool,
    /// Whether the port has no wire of its own (veth, tun, virtio, loopback): its speed is nominal and gives no
    /// ceiling.
    pub is_virtual: bool,
    /// NUMA node of the port; `None` when unknown or without meaning.
    pub node: Option<u32>,
    /// CPUs to which the interrupts of the port's receive queues are sent, ascending; empty when unknown.
    #[serde(deserialize_with = "at_most::<_, _, CPUS>")]
    pub served_by: Vec<u32>,
}

/// Limits of socket buffers, in bytes: those of TCP autotuning (minimum, default, maximum), and the largest `SO_SNDBUF`
/// and `SO_RCVBUF`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BufferLimits {
    /// Receive buffer of TCP: minimum, default and maximum (`net.ipv4.tcp_rmem`).
    pub tcp_rmem: Option<[u64; 3]>,
    /// Send buffer of TCP: minimum, default and maximum (`net.ipv4.tcp_wmem`).
    pub tcp_wmem: Option<[u64; 3]>,
    /// Largest `SO_RCVBUF` (`net.core.rmem_max`). The kernel doubles the requested size.
    pub rmem_max: Option<u64>,
    /// Largest `SO_SNDBUF` (`net.core.wmem_max`). The kernel doubles the requested size.
    pub wmem_max: Option<u64>,
}

impl BufferLimits {
    /// The largest limit that the kernel accepts: limits are signed numbers of 32 bits.
    //= torvalds/linux, proc_dointvec_minmax of rmem_max (net/core/sysctl_net_core.c) and tcp_rmem
    //= (net/ipv4/sysctl_net_ipv4.c)
    pub const MOST: u64 = i32::MAX as u64;
}

/// Facts of one host, as a run records them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// Name of the host.
    pub name: String,
    /// Boot id: two ends with the same boot id are on the same machine.
    pub boot_id: String,
    /// Release of the host's kernel.
    pub kernel: String,
    /// Version of linerate on this host.
    pub linerate: String,
    /// Model name of the host's CPUs.
    pub cpu_model: String,
    /// CPUs that this process may run on.
    #[serde(deserialize_with = "at_most::<_, _, CPUS>")]
    pub cpus: Vec<u32>,
    /// Number of NUMA nodes; 1 if there is no sysfs that shows them.
    pub nodes: u32,
    /// The topology of the host's CPUs.
    pub topology: topology::Topology,
    /// Clock settings of the CPUs that threads use first. Empty where nothing sets clocks, as in most virtual machines;
    /// `None` if unknown.
    #[serde(deserialize_with = "some_at_most::<_, _, CPUS>")]
    pub clocks: Option<Vec<cpu::Clocked>>,
    /// Idle states of the host's CPUs. Empty where CPUs have none, as in most virtual machines; `None` if unknown.
    #[serde(deserialize_with = "some_at_most::<_, _, FEW>")]
    pub idle_states: Option<Vec<cpu::IdleState>>,
    /// The host's memory channels; `None` if the list in the firmware was not read, as behind a virtual port.
    pub channels: Option<memory::Channels>,
    /// Size of the second-level cache of one core.
    pub l2_cache: Option<Bytes>,
    /// Size of the last cache before memory; `None` if it was not read, as where a card moves payload to memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_cache: Option<Bytes>,
    /// The port through which the route to the other end leaves.
    pub port: Option<Port>,
    /// The route to the other end, with the devices below the port; `None` in records from before routes were read.
    pub route: Option<route::Route>,
    /// The devices below the file or the disk of a load: first the one that holds it, then all that it is made of, down
    /// to the disks. Empty for other loads.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "at_most::<_, _, FEW>")]
    pub disks: Vec<block::BlockDevice>,
    /// The file system that holds the file of a load; `None` for other loads, and if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<block::FileSystem>,
    /// Limits that control groups of this process have on those devices.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "at_most::<_, _, FEW>")]
    pub io_limits: Vec<block::IoLimit>,
    /// Congestion controls that this process may choose.
    #[serde(deserialize_with = "at_most::<_, _, FEW>")]
    pub congestion_available: Vec<String>,
    /// The default congestion control of the host.
    pub congestion_default: String,
    /// Limits of socket buffers on the host.
    pub buffers: BufferLimits,
    /// Whether the host reports duplicate segments to its peers (`net.ipv4.tcp_dsack`). `None` in records from before
    /// the setting was read.
    pub tells_duplicates: Option<bool>,
    /// Whether the host tries smaller segments when none is acknowledged (`net.ipv4.tcp_mtu_probing`). `None` in
    /// records from before the setting was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probes_mtu: Option<bool>,
    /// Settings that a trial may change on this host, by their ids in [`linerate_plan::change::SETTINGS`]: the user and
    /// the system allow it.
    pub changeable: Vec<String>,
    /// Clock ticks per second in /proc/stat (`USER_HZ`).
    pub ticks_per_sec: u32,
    /// The facts that could not be read.
    #[serde(deserialize_with = "at_most::<_, _, GAPS>")]
    pub gaps: Vec<Gap>,
}

impl HostFacts {
    /// What carries the path at this end. If the route was not read, as in older records, all that is known is whether
    /// the port is made by software.
    pub fn underlay(&self) -> Underlay<'_> {
        match (&self.route, &self.port) {
            (Some(route), _) => route.underlay(),
            (None, Some(port)) if port.is_virtual => Underlay::Nothing,
            (None, _) => Underlay::Hidden,
        }
    }

    /// Whether a card may carry the path's traffic, directly or below a port that is made of other ports.
    pub fn has_card(&self) -> bool {
        self.port.is_some() && self.underlay() != Underlay::Nothing
    }

    /// Whether a trial may change this setting on this host.
    pub fn may_change(&self, setting: Setting) -> bool {
        let id = setting.row().id;
        self.changeable.iter().any(|known| known == id)
    }
}
