//! Facts of the host: what does not change during a run.

use std::io;
use std::net::IpAddr;

use linerate_core::facts::{BufferLimits, Gap, HostFacts, Port};
use linerate_core::parse::link::{LOOPBACK, Link};
use linerate_core::parse::{cpuinfo, sysctl};
use linerate_core::units::Bytes;

use super::sources::{no_route, port_toward};
use super::{Machine, Query, gap, invalid, port, read, unreadable};

const PROC: &str = "mount -t proc proc /proc";
const SYS: &str = "mount -t sysfs sysfs /sys";
const STATUS: &str = "/proc/self/status";

/// Buses of devices that a hypervisor made up, and drivers of such devices on other buses: their
/// speed is nominal.
const VIRTUAL_BUSES: [&str; 4] = ["virtio", "vmbus", "xen", "vio"];
const VIRTUAL_DRIVERS: [&str; 8] = [
    "virtio_net",
    "hv_netvsc",
    "vif",
    "vmxnet3",
    "ena",
    "gve",
    "mana",
    "ibmveth",
];

/// Facts of the machine; of its ports, the one that the route to `toward` leaves by. What cannot
/// be read is empty and has a gap, whose name is that of the field: `facts.cpu_model`.
pub fn facts(machine: &dyn Machine, toward: IpAddr) -> HostFacts {
    let mut reader = Reader {
        machine,
        gaps: Vec::new(),
    };
    let cpus = reader.get("cpus", STATUS, PROC, |t| {
        sysctl::value_list(t, "Cpus_allowed_list")
    });
    let cpus = cpus.unwrap_or_default();
    let mut facts = HostFacts {
        name: reader.line("name", "/proc/sys/kernel/hostname"),
        boot_id: reader.line("boot_id", "/proc/sys/kernel/random/boot_id"),
        kernel: reader.line("kernel", "/proc/sys/kernel/osrelease"),
        linerate: env!("CARGO_PKG_VERSION").to_owned(),
        cpu_model: reader.cpu_model(),
        nodes: reader.nodes(),
        l2_cache: reader.l2_cache(cpus.first().copied().unwrap_or(0)),
        port: reader.port(toward),
        congestion_available: reader.congestion(),
        congestion_default: reader.line(
            "congestion_default",
            "/proc/sys/net/ipv4/tcp_congestion_control",
        ),
        buffers: reader.buffers(),
        ticks_per_sec: reader.ticks(),
        cpus,
        gaps: Vec::new(),
    };
    facts.gaps = reader.gaps;
    facts
}

/// Reads facts and keeps the gaps.
struct Reader<'a> {
    machine: &'a dyn Machine,
    gaps: Vec<Gap>,
}

impl Reader<'_> {
    fn miss(&mut self, fact: &str, path: &str, error: &io::Error, hint: &str) {
        self.gaps
            .push(unreadable(&format!("facts.{fact}"), path, error, hint));
    }

    fn get<T>(
        &mut self,
        fact: &str,
        path: &str,
        hint: &str,
        decode: impl FnOnce(&[u8]) -> Result<T, linerate_core::parse::Malformed>,
    ) -> Option<T> {
        read(self.machine, path, decode)
            .map_err(|error| self.miss(fact, path, &error, hint))
            .ok()
    }

    fn line(&mut self, fact: &str, path: &str) -> String {
        self.get(fact, path, PROC, |text| Ok(sysctl::line(text)))
            .unwrap_or_default()
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

    /// Nodes with memory or CPUs. A kernel without NUMA has CPUs in /sys but no nodes: that is one.
    fn nodes(&mut self) -> u32 {
        const NODES: &str = "/sys/devices/system/node";
        let names = match self.machine.list(NODES) {
            Ok(names) => names,
            Err(error) => {
                let numa = error.kind() != io::ErrorKind::NotFound
                    || self.machine.list("/sys/devices/system/cpu").is_err();
                if numa {
                    self.miss("nodes", NODES, &error, SYS);
                }
                return 1;
            }
        };
        let is_node = |name: &&String| {
            let number = name.strip_prefix("node");
            number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        (names.iter().filter(is_node).count() as u32).max(1)
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
        found
            .map_err(|error| self.miss("l2_cache", &caches, &error, SYS))
            .ok()
            .map(Bytes)
    }

    /// What may be chosen without privilege, and the rest too where we may administer the network.
    fn congestion(&mut self) -> Vec<String> {
        const NET_ADMIN: u64 = 1 << 12;
        let words = |text: &[u8]| Ok(sysctl::words(text));
        let mut path = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
        let effective = read(self.machine, STATUS, |t| {
            Ok(sysctl::value_hexadecimal(t, "CapEff"))
        });
        if effective
            .ok()
            .flatten()
            .is_some_and(|capabilities| capabilities & NET_ADMIN != 0)
        {
            path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
        }
        self.get("congestion_available", path, PROC, words)
            .unwrap_or_default()
    }

    fn buffers(&mut self) -> BufferLimits {
        // The limits of core are hidden inside a network namespace of its own (before 6.6).
        const INSIDE: &str = "read it outside of this network namespace";
        let mut core = |fact: &str, path| self.get(fact, path, INSIDE, sysctl::number);
        let rmem_max = core("rmem_max", "/proc/sys/net/core/rmem_max");
        let wmem_max = core("wmem_max", "/proc/sys/net/core/wmem_max");
        BufferLimits {
            tcp_rmem: self.get(
                "tcp_rmem",
                "/proc/sys/net/ipv4/tcp_rmem",
                PROC,
                sysctl::numbers,
            ),
            tcp_wmem: self.get(
                "tcp_wmem",
                "/proc/sys/net/ipv4/tcp_wmem",
                PROC,
                sysctl::numbers,
            ),
            rmem_max,
            wmem_max,
        }
    }

    fn ticks(&mut self) -> u32 {
        let reply = self.machine.query(&Query::TicksPerSec);
        let ticks = reply.and_then(|text| sysctl::number(&text).map_err(invalid));
        ticks
            .map_err(|error| self.miss("ticks_per_sec", "CLK_TCK", &error, "getconf CLK_TCK"))
            .map_or(0, |ticks| u32::try_from(ticks).unwrap_or(0))
    }

    fn port(&mut self, toward: IpAddr) -> Option<Port> {
        let index = port_toward(self.machine, toward)
            .map_err(|error| self.gaps.push(no_route("facts.port", toward, &error)))
            .ok()?;
        let what = format!("the link with index {index}");
        let reply = self.machine.query(&Query::Link(index));
        let reply = reply
            .map_err(|error| self.miss("port", &what, &error, "ip link"))
            .ok()?;
        match port::find(&reply, index) {
            Ok(link) => Some(self.describe(&link)),
            Err(why) => {
                self.gaps.push(gap("facts.port", &why, "ip link"));
                None
            }
        }
    }

    fn describe(&mut self, link: &Link<'_>) -> Port {
        let mut port = Port {
            name: link.name.to_string(),
            driver: link.kind.to_string(),
            mtu: link.mtu,
            ..Port::default()
        };
        if link.hardware == LOOPBACK {
            return Port {
                is_virtual: true,
                driver: "loopback".to_owned(),
                ..port
            };
        }
        let class = self.class_folder(link);
        // By bus where netlink names the device: that path is the same in every namespace.
        let device = match (&*link.bus, &*link.device, &class) {
            ("", _, Some(class)) | (_, "", Some(class)) => Some(format!("{class}/device")),
            ("", _, None) | (_, "", None) => None,
            (bus, device, _) => Some(format!("/sys/bus/{bus}/devices/{device}")),
        };
        let device = device.filter(|folder| self.machine.list(folder).is_ok());
        if let (Some(folder), "") = (&device, &*link.kind) {
            let path = format!("{folder}/uevent");
            let driver = self.get("port.driver", &path, SYS, |t| {
                Ok(sysctl::value_text(t, "DRIVER"))
            });
            port.driver = driver.flatten().unwrap_or_default();
        }
        // A port made by software has no device below it, but for IP over InfiniBand.
        let software = !link.kind.is_empty() && device.is_none() && link.device.is_empty();
        port.is_virtual = software
            || VIRTUAL_BUSES.contains(&&*link.bus)
            || VIRTUAL_DRIVERS.contains(&&*port.driver);
        if let Some(folder) = device.filter(|_| !port.is_virtual) {
            let node = read(self.machine, &format!("{folder}/numa_node"), sysctl::number);
            // "-1", which is no number here, and a kernel without nodes: no meaning, so no gap.
            port.node = node.ok().and_then(|n| u32::try_from(n).ok());
        }
        port.speed_mbps = self.speed(class.as_deref(), port.is_virtual);
        port
    }
}

impl Reader<'_> {
    /// Folder of the port under /sys/class, if the /sys that is mounted shows this port and not
    /// one of the same name in another network namespace.
    fn class_folder(&mut self, link: &Link<'_>) -> Option<String> {
        let folder = format!("/sys/class/net/{}", link.name);
        let index = read(self.machine, &format!("{folder}/ifindex"), sysctl::number).ok()?;
        let address = self.machine.file(&format!("{folder}/address")).ok()?;
        let bytes: Vec<String> = link.address.iter().map(|b| format!("{b:02x}")).collect();
        let same = index == u64::from(link.index) && sysctl::line(&address) == bytes.join(":");
        same.then_some(folder)
    }

    /// Nominal speed; a gap only where a wire should have one.
    fn speed(&mut self, class: Option<&str>, is_virtual: bool) -> Option<u64> {
        let speed = match class {
            Some(class) => read(self.machine, &format!("{class}/speed"), sysctl::number),
            None => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the /sys that is mounted does not show this network namespace",
            )),
        };
        match speed {
            Ok(speed) => return Some(speed).filter(|&s| s != 0 && s < u64::from(u32::MAX)),
            Err(error) if !is_virtual => self.miss("port.speed_mbps", "its speed", &error, SYS),
            Err(_) => {}
        }
        None
    }
}
