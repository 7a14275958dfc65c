//! Facts of the host: properties that do not change during a run.

use std::io;

use linerate_facts::memory::Channels;
use linerate_facts::odd::few;
use linerate_facts::parse::{Malformed, cpuinfo, sysctl};
use linerate_facts::{BufferLimits, Gap, HostFacts};
use linerate_units::Bytes;

use block::Held;

use super::{Machine, Query, Subject, gap, invalid, read, unreadable};

pub(super) mod block;
mod busy;
mod conntrack;
mod cpu;
pub(super) mod infiniband;
mod inventory;
mod iommu;
pub(super) mod irq;
mod machine;
mod memory;
pub(super) mod nic;
mod pci;
mod port;
mod room;
mod route;
mod topology;
mod tree;
mod tunables;
mod watch;

pub use inventory::inventory;
pub(super) use machine::folders;
pub use room::{Room, room};
pub use watch::Watch;

const PROC: &str = "mount -t proc proc /proc";
const SYS: &str = "mount -t sysfs sysfs /sys";
const STATUS: &str = "/proc/self/status";
const MOUNTS: &str = "/proc/self/mountinfo";
const NODES: &str = "/sys/devices/system/node";

/// Reads the facts of the machine and of the subject of a load: for a peer, the port of the route to it; for a file,
/// the disks below it. A fact that cannot be read is empty and has a gap named after its field, such as
/// `facts.cpu_model`.
pub fn facts(machine: &dyn Machine, subject: impl Into<Subject>) -> HostFacts {
    let subject = subject.into();
    let mut reader = Reader { machine, gaps: Vec::new() };
    let cpus = reader.get("cpus", STATUS, PROC, |t| sysctl::value_list(t, "Cpus_allowed_list"));
    let cpus = cpus.unwrap_or_default();
    let topology = reader.topology();
    let (port, route) = match subject {
        Subject::Peer(toward) => reader.port(toward),
        Subject::File(_) | Subject::Host => (None, None),
    };
    let held = match &subject {
        Subject::File(path) => reader.held(path),
        Subject::Peer(_) | Subject::Host => Held::default(),
    };
    let first = cpus.first().copied().unwrap_or(0);
    let mut facts = HostFacts {
        name: reader.line("name", "/proc/sys/kernel/hostname"),
        boot_id: reader.line("boot_id", "/proc/sys/kernel/random/boot_id"),
        kernel: reader.line("kernel", "/proc/sys/kernel/osrelease"),
        linerate: env!("CARGO_PKG_VERSION").to_owned(),
        cpu_model: reader.cpu_model(),
        nodes: (topology.nodes.len() as u32).max(1),
        topology,
        l2_cache: reader.l2_cache(first),
        last_cache: None,
        port,
        route,
        disks: held.disks,
        filesystem: held.filesystem,
        io_limits: held.limits,
        clocks: None,
        idle_states: None,
        channels: None,
        congestion_available: reader.congestion(),
        congestion_default: reader
            .line("congestion_default", "/proc/sys/net/ipv4/tcp_congestion_control"),
        buffers: reader.buffers(),
        tells_duplicates: reader.is_set("tcp_dsack"),
        probes_mtu: reader.is_set("tcp_mtu_probing"),
        changeable: Vec::new(),
        ticks_per_sec: reader.ticks(),
        cpus,
        gaps: Vec::new(),
    };
    facts.clocks = reader.clocks(&facts);
    facts.idle_states = reader.idle_states(&facts);
    // If no network card moves payload to memory, payload may stay in the CPU caches.
    if !facts.has_card() {
        // Both caches are in the same folder, so a gap was already reported for the second-level cache.
        let gaps = reader.gaps.len();
        facts.last_cache = reader.last_cache(first);
        reader.gaps.truncate(gaps);
    }
    // Memory channels matter only if a card moves payload to memory, or if memory itself is measured.
    if facts.has_card() || subject == Subject::Host {
        facts.channels = reader.modules().and_then(|modules| Channels::of(&modules));
    }
    facts.gaps = reader.gaps;
    facts
}

/// Returns whether an error means that the file does not exist.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the numbers of names such as `node12`, in ascending order.
pub(super) fn numbered(names: &[String], prefix: &str) -> Vec<u32> {
    let number = |name: &String| {
        let digits = name.strip_prefix(prefix)?;
        // This check rejects a sign, which the parser of numbers would accept.
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let mut all: Vec<u32> = names.iter().filter_map(number).collect();
    all.sort_unstable();
    all
}

/// Reads facts, and collects the gaps of those that could not be read.
struct Reader<'a> {
    machine: &'a dyn Machine,
    gaps: Vec<Gap>,
}

impl Reader<'_> {
    fn miss(&mut self, fact: &str, path: &str, error: &io::Error, hint: &str) {
        self.lack(unreadable(&format!("facts.{fact}"), path, error, hint));
    }

    /// Adds a gap unless there is one for the same fact: one is enough if many CPUs or devices lack it.
    fn lack(&mut self, gap: Gap) {
        if self.gaps.iter().all(|g| g.what != gap.what) {
            self.gaps.push(gap);
        }
    }

    /// Reads a file that some machines lack. There is a gap only if the file exists and cannot be used.
    fn look<T>(
        &mut self,
        fact: &str,
        path: &str,
        decode: impl FnOnce(&[u8]) -> Result<T, Malformed>,
    ) -> Option<T> {
        match read(self.machine, path, decode) {
            Ok(value) => Some(value),
            Err(error) if is_absent(&error) => None,
            Err(error) => {
                self.miss(fact, path, &error, "");
                None
            }
        }
    }

    /// Lists the names in a directory; empty if the directory does not exist. Other errors become gaps.
    fn look_in(&mut self, fact: &str, path: &str) -> Vec<String> {
        match self.machine.list(path) {
            Ok(names) => names,
            Err(error) => {
                if !is_absent(&error) {
                    self.miss(fact, path, &error, "");
                }
                Vec::new()
            }
        }
    }

    fn get<T>(
        &mut self,
        fact: &str,
        path: &str,
        hint: &str,
        decode: impl FnOnce(&[u8]) -> Result<T, Malformed>,
    ) -> Option<T> {
        read(self.machine, path, decode).map_err(|error| self.miss(fact, path, &error, hint)).ok()
    }

    /// Returns the text of a file that was read earlier, or reports the error of that reading as a gap.
    fn known<'a>(
        &mut self,
        fact: &str,
        path: &str,
        text: &'a io::Result<Vec<u8>>,
    ) -> Option<&'a [u8]> {
        match text {
            Ok(text) => Some(text),
            Err(error) => {
                self.miss(fact, path, error, PROC);
                None
            }
        }
    }

    fn line(&mut self, fact: &str, path: &str) -> String {
        self.get(fact, path, PROC, |text| Ok(sysctl::line(text))).unwrap_or_default()
    }

    fn cpu_model(&mut self) -> String {
        const PATH: &str = "/proc/cpuinfo";
        match self.get("cpu_model", PATH, PROC, |text| Ok(cpuinfo::model(text))) {
            Some(Some(model)) => return model,
            Some(None) => {
                let why = format!("{PATH} does not name it");
                self.gaps.push(gap("facts.cpu_model", &why, "lscpu"));
            }
            None => {}
        }
        String::new()
    }

    /// Returns the NUMA nodes in ascending order. A kernel without NUMA shows CPUs in /sys but no nodes.
    fn node_ids(&mut self) -> Vec<u32> {
        let names = match self.machine.list(NODES) {
            Ok(names) => names,
            Err(error) => {
                let numa = error.kind() != io::ErrorKind::NotFound
                    || self.machine.list("/sys/devices/system/cpu").is_err();
                if numa {
                    self.miss("nodes", NODES, &error, SYS);
                }
                return Vec::new();
            }
        };
        numbered(&names, "node")
    }

    fn l2_cache(&mut self, cpu: u32) -> Option<Bytes> {
        let caches = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
        let found = self.machine.list(&caches).and_then(|names| {
            for name in names.iter().filter(|n| n.starts_with("index")) {
                let folder = format!("{caches}/{name}");
                if read(self.machine, &format!("{folder}/level"), sysctl::number)? == 2 {
                    return read(self.machine, &format!("{folder}/size"), sysctl::size);
                }
            }
            let why = "no second-level cache is listed";
            Err(io::Error::new(io::ErrorKind::NotFound, why))
        });
        found.map_err(|error| self.miss("l2_cache", &caches, &error, SYS)).ok().map(Bytes)
    }

    /// Returns the congestion controls that may be chosen without privilege or, if this process may administer the
    /// network, all that are available.
    fn congestion(&mut self) -> Vec<String> {
        const NET_ADMIN: u64 = 1 << 12;
        let words = |text: &[u8]| Ok(sysctl::words(text));
        let mut path = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
        let effective = read(self.machine, STATUS, |t| Ok(sysctl::value_hexadecimal(t, "CapEff")));
        if effective.ok().flatten().is_some_and(|capabilities| capabilities & NET_ADMIN != 0) {
            path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
        }
        self.get("congestion_available", path, PROC, words).unwrap_or_default()
    }

    fn buffers(&mut self) -> BufferLimits {
        BufferLimits {
            tcp_rmem: self.get("tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem", PROC, sysctl::numbers),
            tcp_wmem: self.get("tcp_wmem", "/proc/sys/net/ipv4/tcp_wmem", PROC, sysctl::numbers),
            rmem_max: self.core_limit("rmem_max"),
            wmem_max: self.core_limit("wmem_max"),
        }
    }

    /// Returns whether a setting of IP is other than 0; `None` on older kernels that lack the setting.
    fn is_set(&mut self, name: &str) -> Option<bool> {
        let path = format!("/proc/sys/net/ipv4/{name}");
        self.look(name, &path, sysctl::number).map(|set: u64| set != 0)
    }

    /// Reads a limit of net.core. Older kernels hide these limits inside a network namespace.
    fn core_limit(&mut self, name: &str) -> Option<u64> {
        let hint = format!("sudo nsenter -t 1 -n sysctl net.core.{name}");
        self.get(name, &format!("/proc/sys/net/core/{name}"), &hint, sysctl::number)
    }

    fn ticks(&mut self) -> u32 {
        let reply = self.machine.query(&Query::TicksPerSec);
        let ticks = reply.and_then(|text| sysctl::number(&text).map_err(invalid));
        ticks
            .map_err(|error| self.miss("ticks_per_sec", "CLK_TCK", &error, "getconf CLK_TCK"))
            .map_or(0, |ticks| u32::try_from(ticks).unwrap_or(0))
    }
}
