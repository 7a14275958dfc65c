//! The facts of a host that do not change during a run, as far as they could be read.
//!
//! Owns the facts by subject (CPU, memory, PCI, ports, RDMA, disks), what is odd about them ([`odd`]), the readers
//! of what the kernel says ([`parse`], from bytes to facts and readings), the readings themselves ([`metric`]), and
//! commands that a user types ([`advice`]). Opens no file and asks no kernel: that is `linerate-host`.
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

/// Everything that is known of one machine before anything is measured. A run's own facts are the
/// few in [`HostFacts`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inventory {
    /// The machine as a whole.
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
    /// Functions of devices on USB but the hubs, as pasted facts list them; empty of a machine that was read.
    pub usb: Vec<usb::Function>,
    /// Settings that matter to a path.
    pub tunables: Vec<Tunable>,
    /// The table of connections that the kernel tracks; `None` if it tracks none, or if unknown.
    pub conntrack: Option<Conntrack>,
    /// The activity of the machine's CPUs; `None` if it cannot be read twice.
    pub busy: Option<cpu::Busy>,
    /// The gaps of all facts.
    pub gaps: Vec<Gap>,
}

impl Inventory {
    /// Whether a fact has a gap, so that nothing follows from its absence.
    pub fn lacks(&self, fact: &str) -> bool {
        self.gaps.iter().any(|gap| gap.what == fact)
    }
}

/// The table of connections that the kernel tracks for firewalls and address translation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Conntrack {
    /// Entries in use.
    #[serde(rename = "live_entries", serialize_with = "exact::exact")]
    pub entries: u64,
    /// Largest number of entries; 0 is no limit.
    #[serde(rename = "entries_max", serialize_with = "exact::exact")]
    pub most: u64,
    /// Entries evicted since boot because the table was full. Null if unknown.
    #[serde(rename = "live_evicted", serialize_with = "exact::exact")]
    pub evicted: Option<u64>,
    /// Packets dropped since boot, for this or another reason. Null if unknown.
    #[serde(rename = "live_dropped", serialize_with = "exact::exact")]
    pub dropped: Option<u64>,
}

/// A setting of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunable {
    /// Name of the setting: `net.core.rmem_max`.
    pub name: String,
    /// Value of the setting, as it reads.
    pub value: String,
}

/// Something that should have been read and was not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// What is missing, by the name of the metric or fact: `tcp.busy`, `port`, `facts.cpu`.
    pub what: String,
    /// Why it could not be read.
    pub why: String,
    /// The command that would allow it. Empty if there is none.
    pub hint: String,
}

/// The severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The run cannot continue.
    Fatal,
    /// A setting could be better.
    Hint,
    /// Information that needs no action.
    Info,
}

/// A network port as its host sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Port {
    /// Interface name.
    pub name: String,
    /// Driver or link kind: `mlx5_core`, `veth`, `virtio_net`; empty when unknown.
    pub driver: String,
    /// Nominal speed in Mb/s; `None` when unknown, and never trusted for virtual ports.
    pub speed_mbps: Option<u64>,
    /// Maximum transmission unit in bytes.
    pub mtu: Option<u32>,
    /// Whether the port sends Ethernet frames: then the framing of its wire is known.
    pub is_ethernet: bool,
    /// True for ports without a wire of their own (veth, tun, virtio, loopback): their speed is
    /// nominal and gives no ceiling.
    pub is_virtual: bool,
    /// NUMA node; `None` when unknown or without meaning.
    pub node: Option<u32>,
    /// CPUs that the interrupts of its receive queues are sent to, ascending; empty when unknown.
    #[serde(deserialize_with = "at_most::<_, _, CPUS>")]
    pub served_by: Vec<u32>,
}

/// Limits of socket buffers, in bytes: minimum, default, maximum of autotuning, and the most that
/// `SO_SNDBUF`/`SO_RCVBUF` may request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BufferLimits {
    /// `net.ipv4.tcp_rmem`.
    pub tcp_rmem: Option<[u64; 3]>,
    /// `net.ipv4.tcp_wmem`.
    pub tcp_wmem: Option<[u64; 3]>,
    /// `net.core.rmem_max`; the kernel doubles the requested size.
    pub rmem_max: Option<u64>,
    /// `net.core.wmem_max`; the kernel doubles the requested size.
    pub wmem_max: Option<u64>,
}

impl BufferLimits {
    /// The largest limit that a kernel takes: they are signed numbers of 32 bits.
    //= torvalds/linux, proc_dointvec_minmax of rmem_max (net/core/sysctl_net_core.c) and tcp_rmem
    //= (net/ipv4/sysctl_net_ipv4.c)
    pub const MOST: u64 = i32::MAX as u64;
}

/// Facts of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// Host name.
    pub name: String,
    /// Boot id: two ends with the same one share a machine.
    pub boot_id: String,
    /// Kernel release.
    pub kernel: String,
    /// Version of linerate on this host.
    pub linerate: String,
    /// CPU model.
    pub cpu_model: String,
    /// CPUs that this process may run on.
    #[serde(deserialize_with = "at_most::<_, _, CPUS>")]
    pub cpus: Vec<u32>,
    /// NUMA nodes; 1 if there is no sysfs to say otherwise.
    pub nodes: u32,
    /// The topology of its CPUs.
    pub topology: topology::Topology,
    /// Clock settings of the CPUs that threads take first. Empty where nothing sets clocks, as in most virtual
    /// machines; `None` if unknown.
    #[serde(deserialize_with = "some_at_most::<_, _, CPUS>")]
    pub clocks: Option<Vec<cpu::Clocked>>,
    /// Idle states of its CPUs. Empty where nothing puts them to sleep, as in most virtual machines; `None` if
    /// unknown.
    #[serde(deserialize_with = "some_at_most::<_, _, FEW>")]
    pub idle_states: Option<Vec<cpu::IdleState>>,
    /// The host's memory channels; `None` if the firmware's list was not read, as behind a virtual port.
    pub channels: Option<memory::Channels>,
    /// Size of the second-level cache of one core.
    pub l2_cache: Option<Bytes>,
    /// Size of the last cache before memory; `None` if it was not read, as where a card moves payload to memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_cache: Option<Bytes>,
    /// The port of the route to the other end.
    pub port: Option<Port>,
    /// The route to the other end, with the devices below the port; `None` in records from before it was
    /// read.
    pub route: Option<route::Route>,
    /// The devices below the file or the disk that a load is aimed at: the one that holds it, then those that it is made
    /// of; empty for other loads.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "at_most::<_, _, FEW>")]
    pub disks: Vec<block::BlockDevice>,
    /// Congestion controls this process may choose.
    #[serde(deserialize_with = "at_most::<_, _, FEW>")]
    pub congestion_available: Vec<String>,
    /// The default congestion control.
    pub congestion_default: String,
    /// Socket buffer limits.
    pub buffers: BufferLimits,
    /// Whether it reports duplicate segments to its peers, `net.ipv4.tcp_dsack`. `None` in records made before
    /// this was read.
    pub tells_duplicates: Option<bool>,
    /// Whether it looks for smaller segments where none is acknowledged, `net.ipv4.tcp_mtu_probing`. `None` in records made
    /// before this was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probes_mtu: Option<bool>,
    /// Settings that a trial may change on this host, by their ids in [`linerate_plan::change::SETTINGS`]: its
    /// user allowed it, and so does the system.
    pub changeable: Vec<String>,
    /// Clock ticks per second of /proc/stat (`USER_HZ`).
    pub ticks_per_sec: u32,
    /// The facts that could not be read.
    #[serde(deserialize_with = "at_most::<_, _, GAPS>")]
    pub gaps: Vec<Gap>,
}

impl HostFacts {
    /// What carries the path at this end. If the route of the port was not read, as in older records, all
    /// that is known is whether the host made up the port.
    pub fn underlay(&self) -> Underlay<'_> {
        match (&self.route, &self.port) {
            (Some(route), _) => route.underlay(),
            (None, Some(port)) if port.is_virtual => Underlay::Nothing,
            (None, _) => Underlay::Hidden,
        }
    }

    /// Whether a card may carry the path's traffic, including a card below a port that is made of others.
    pub fn has_card(&self) -> bool {
        self.port.is_some() && self.underlay() != Underlay::Nothing
    }

    /// Whether a trial may change this setting here.
    pub fn may_change(&self, setting: Setting) -> bool {
        let id = setting.row().id;
        self.changeable.iter().any(|known| known == id)
    }
}
