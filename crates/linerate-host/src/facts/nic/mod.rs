//! Facts of all network ports: from netlink and the driver, and from /sys for what only /sys shows. For a directory
//! tree, which has no kernel to query, from /sys alone.

use std::collections::BTreeMap;
use std::io;

use linerate_facts::nic::{
    Bond, Network, Nic, PortAddresses, PortErrors, Queue, QueueDirection, VIRTUAL_BUSES,
    VIRTUAL_DRIVERS, counted,
};
use linerate_facts::parse::link::{INFINIBAND, LOOPBACK, Link};
use linerate_facts::parse::{Malformed, driver, ethtool, link, netdev, sysctl, sysfs};
use rustix::io::Errno;

use super::port::HIDDEN;
use super::{Reader, SYS};
use crate::{Ethtool, Machine, Query, gap, invalid, read};

mod addresses;
mod class;
mod fragments;
mod shapers;
mod stack;
mod tunnels;

/// Kind of all IPoIB ports. Older kernels report the kind only for IPoIB ports that users created.
const IPOIB: &str = "ipoib";
/// Bus of devices without a slot of their own: the slot is that of their controller.
const USB: &str = "usb";
/// Kinds of ports that exist in pairs. Their "lower port" is the other port of the pair.
const PAIRS: [&str; 3] = ["veth", "netkit", "vxcan"];
const WHAT: &str = "the links";
const HINT: &str = "ip -d -s link";
/// Names of the values of `IFLA_BOND_MODE`, by value.
const MODES: [&str; 7] = [
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
];
/// Names of the values of `IFLA_BOND_XMIT_HASH_POLICY`, by value.
const HASHES: [&str; 6] = ["layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"];

/// Reads all ports of this process's network namespace. For a fact that cannot be read there is a gap such as
/// `facts.nic.rings`.
pub fn network(machine: &dyn Machine) -> Network {
    let mut reader = Reader { machine, gaps: Vec::new() };
    let (nics, addresses) = reader.nics();
    Network {
        fragments: reader.fragments(&nics),
        default_ports: reader.default_ports(&nics),
        nics,
        addresses,
        gaps: reader.gaps,
    }
}

impl Reader<'_> {
    fn nics(&mut self) -> (Vec<Nic>, Vec<PortAddresses>) {
        let reply = match self.machine.query(&Query::Links) {
            Ok(reply) => reply,
            Err(error) => {
                self.miss("network", WHAT, &error, HINT);
                // A directory tree has no kernel to query; its ports are those that its own /sys shows.
                let files_only = Errno::from_io_error(&error).is_none();
                let nics = if files_only { self.listed_nics() } else { Vec::new() };
                let addresses = self.listed_addresses(&nics);
                return (nics, addresses);
            }
        };
        let links = self.links(&reply);
        let mut nics: Vec<Nic> = links.iter().filter_map(|link| self.nic(link)).collect();
        stack(&links, &mut nics);
        self.tunnels(&links, &mut nics);
        self.shapers(&mut nics);
        let addresses = self.port_addresses(&links);
        (nics, addresses)
    }

    /// Returns the links in a reply. An invalid link becomes a gap.
    fn links<'r>(&mut self, reply: &'r [u8]) -> Vec<Link<'r>> {
        let mut links = Vec::new();
        for link in link::parse(reply) {
            match link {
                Ok(link) => links.push(link),
                Err(error) => self.miss("network", WHAT, &invalid(error), HINT),
            }
        }
        links
    }

    /// Reads a port. If the port disappears while it is read, returns `None` and leaves a single gap.
    fn nic(&mut self, link: &Link<'_>) -> Option<Nic> {
        let before = self.gaps.len();
        let mut port = PortReader {
            name: link.name.to_string(),
            index: link.index,
            went: false,
            reader: self,
        };
        let nic = port.read(link);
        let gone = port.went && port.is_gone();
        if gone {
            self.gaps.truncate(before);
            let why = format!("{} disappeared while it was read", link.name);
            self.gaps.push(gap("facts.nic", &why, "ip link"));
        }
        (!gone).then_some(nic)
    }

    /// Adds a gap that many ports may share, once.
    fn once(&mut self, fact: &str, why: &str, hint: &str) {
        let gap = gap(fact, why, hint);
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }
}

/// Reads the facts of one port.
struct PortReader<'a, 'b> {
    reader: &'a mut Reader<'b>,
    name: String,
    index: u32,
    /// Whether a query reported that the port does not exist.
    went: bool,
}

impl PortReader<'_, '_> {
    fn read(&mut self, link: &Link<'_>) -> Nic {
        let mut nic = basic(link);
        if link.hardware == LOOPBACK {
            "loopback".clone_into(&mut nic.driver);
            nic.offloads = self.ask(Ethtool::Features, ethtool::features);
            return nic;
        }
        let class = self.reader.class_folder(link);
        let has_device = self.brief(&mut nic, link, class.as_deref());
        nic.is_wifi = class.as_deref().is_some_and(|class| self.reader.is_wifi(class));
        nic.offloads = self.ask(Ethtool::Features, ethtool::features);
        self.queues(&mut nic, class.as_deref());
        if has_device {
            self.hardware(&mut nic);
        }
        nic
    }

    /// Reads the facts that a run needs of the ports of its path: the device, the link and the stack. Returns whether
    /// the port has a device.
    fn brief(&mut self, nic: &mut Nic, link: &Link<'_>, class: Option<&str>) -> bool {
        let device = self.reader.device_folder(link, class);
        if let Some(device) = &device {
            self.device(nic, link, device);
            nic.coalesce = self.ask(Ethtool::Coalesce, ethtool::coalesce);
        } else {
            nic.driver.clone_from(&nic.kind);
        }
        nic.link = self.ask(Ethtool::LinkModes, ethtool::link_modes).unwrap_or_default();
        self.details(nic, link);
        device.is_some()
    }

    /// Reads the facts that only ports with a device have.
    fn hardware(&mut self, nic: &mut Nic) {
        if !nic.up {
            nic.down = self.ask(Ethtool::LinkState, ethtool::link_state).unwrap_or_default();
        }
        nic.fec = self.ask(Ethtool::Fec, ethtool::fec);
        nic.channels = self.ask(Ethtool::Channels, ethtool::channels);
        nic.rings = self.ask(Ethtool::Rings, ethtool::rings);
        nic.pause = self.ask(Ethtool::Pause, ethtool::pause);
        nic.rss = self.ask(Ethtool::Rss, ethtool::rss);
        let hint = format!("ethtool -S {}", self.name);
        let counters = self.query(Query::DriverCounters(self.index), driver::counters);
        let counters = self.settle("counters", counters, &hint).unwrap_or_default();
        let counters = counted::grouped(counters).into_iter();
        nic.counters = counters.filter(|counter| counted::is_kept(&nic.driver, counter)).collect();
        self.pollers(nic);
    }

    fn device(&mut self, nic: &mut Nic, link: &Link<'_>, folder: &str) {
        let hint = format!("ethtool -i {}", self.name);
        let info = self.query(Query::Driver(self.index), driver::info);
        let info = self.settle("driver", info, &hint).unwrap_or_default();
        nic.driver = info.driver;
        nic.firmware = info.firmware;
        nic.device = link.device.to_string();
        let above = match &*link.bus {
            "pci" => link.device.to_string(),
            _ => self.reader.pci_above(folder),
        };
        nic.node = self.reader.node_of(&above);
        if link.bus == USB {
            nic.usb = self.reader.usb_speed(folder);
            nic.usb_hubs = self.reader.usb_hubs(&link.device);
        } else {
            nic.pci = above;
        }
        if nic.driver.is_empty() {
            let uevent = self.reader.machine.file(&format!("{folder}/uevent"));
            let driver = uevent.ok().and_then(|text| sysctl::value_text(&text, "DRIVER"));
            nic.driver = driver.unwrap_or_default();
        }
        nic.is_virtual =
            VIRTUAL_BUSES.contains(&&*link.bus) || VIRTUAL_DRIVERS.contains(&nic.driver.as_str());
    }

    fn details(&mut self, nic: &mut Nic, link: &Link<'_>) {
        let hint = format!("ip -d link show {}", self.name);
        let bond = link.bond().map_err(invalid);
        nic.stack.bond = self.settle("bond", bond, &hint).flatten().map(|bond| Bond {
            mode: nth(&MODES, bond.mode),
            hash: nth(&HASHES, bond.hash),
            active: bond.active,
            aggregator: bond.aggregator,
            partner: bond.partner.map_or(String::new(), |mac| sysfs::hardware_address(&mac)),
        });
        let aggregator = link.aggregator().map_err(invalid);
        nic.stack.aggregator = self.settle("bond", aggregator, &hint).flatten();
        let vlan = link.vlan().map_err(invalid);
        nic.stack.vlan = self.settle("vlan", vlan, &hint).flatten();
    }

    /// Reads the queues of a port and the CPUs that they are bound to. Only /sys shows them.
    fn queues(&mut self, nic: &mut Nic, class: Option<&str>) {
        let Some(class) = class else {
            self.reader.once("facts.nic.queues", HIDDEN, SYS);
            return;
        };
        let folder = format!("{class}/queues");
        let names = self.reader.machine.list(&folder);
        let names = self.settle("queues", names, &format!("ls {folder}")).unwrap_or_default();
        nic.queues = names.iter().filter_map(|name| self.queue(&folder, name)).collect();
        nic.queues.sort_by_key(|queue| (queue.direction, queue.number));
        let threaded = format!("{class}/threaded");
        nic.threaded = match self.reader.optional_line(&threaded).as_str() {
            "0" => Some(false),
            "1" | "2" => Some(true),
            _ => None,
        };
    }

    fn queue(&self, folder: &str, name: &str) -> Option<Queue> {
        let (direction, number) = match name.split_once('-')? {
            ("rx", number) => (QueueDirection::Rx, number),
            ("tx", number) => (QueueDirection::Tx, number),
            _ => return None,
        };
        let (cpus, flows) = match direction {
            QueueDirection::Rx => ("rps_cpus", Some("rps_flow_cnt")),
            QueueDirection::Tx => ("xps_cpus", None),
        };
        // These files do not exist for a port with a single queue, or if the kernel lacks the feature.
        let (machine, path) = (self.reader.machine, |file| format!("{folder}/{name}/{file}"));
        Some(Queue {
            direction,
            number: number.parse().ok()?,
            napi: None,
            irq: None,
            cpus: read(machine, &path(cpus), sysfs::mask).ok(),
            flows: flows.and_then(|file| read(machine, &path(file), sysctl::number).ok()),
        })
    }

    /// Reads the poller (NAPI) and the interrupt of each queue, if the kernel reports them (Linux 6.8 or later).
    fn pollers(&mut self, nic: &mut Nic) {
        const HINT: &str = "use Linux 6.8 or later";
        let queues = self.query(Query::Queues(self.index), netdev::queues);
        let Some(queues) = self.settle("pollers", queues, HINT) else {
            return;
        };
        let napis = self.query(Query::Napis(self.index), netdev::napis);
        let napis = self.settle("pollers", napis, HINT).unwrap_or_default();
        let irqs: BTreeMap<u32, Option<u32>> = napis.iter().map(|n| (n.id, n.irq)).collect();
        let reported: BTreeMap<_, _> =
            queues.iter().map(|queue| ((queue.direction, queue.number), queue.napi)).collect();
        for queue in &mut nic.queues {
            let napi = reported.get(&(queue.direction, queue.number)).copied().flatten();
            queue.napi = napi;
            queue.irq = napi.and_then(|napi| irqs.get(&napi).copied().flatten());
        }
    }

    fn ask<T>(&mut self, what: Ethtool, decode: fn(&[u8]) -> Result<T, Malformed>) -> Option<T> {
        let (fact, option) = match what {
            Ethtool::LinkModes | Ethtool::LinkState => ("link", ""),
            Ethtool::Features => ("offloads", "-k "),
            Ethtool::Rings => ("rings", "-g "),
            Ethtool::Channels => ("channels", "-l "),
            Ethtool::Coalesce => ("coalesce", "-c "),
            Ethtool::Pause => ("pause", "-a "),
            Ethtool::Fec => ("fec", "--show-fec "),
            Ethtool::Rss => ("rss", "-x "),
        };
        let hint = format!("ethtool {option}{}", self.name);
        let got = self.query(Query::Ethtool(what, self.index), decode);
        self.settle(fact, got, &hint)
    }

    fn query<T>(&self, query: Query, decode: fn(&[u8]) -> Result<T, Malformed>) -> io::Result<T> {
        let reply = self.reader.machine.query(&query)?;
        decode(&reply).map_err(invalid)
    }

    /// Returns the value that was read. An error that means that the driver lacks the feature is not a gap.
    fn settle<T>(&mut self, fact: &str, got: io::Result<T>, hint: &str) -> Option<T> {
        let error = match got {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        match Errno::from_io_error(&error) {
            Some(Errno::OPNOTSUPP) => return None,
            Some(Errno::NODEV | Errno::NOENT) => self.went = true,
            // Without a kernel to query, all ports have the same gap.
            None if error.kind() == io::ErrorKind::Unsupported => {
                let why = error.to_string();
                self.reader.once(&format!("facts.nic.{fact}"), &why, hint_for_all(hint));
                return None;
            }
            _ => {}
        }
        let what = format!("the {fact} of {}", self.name);
        self.reader.miss(&format!("nic.{fact}"), &what, &error, hint);
        None
    }

    /// Returns whether the port no longer exists. Some drivers return "no such device" for a port in power saving, so
    /// the kernel's list of ports decides.
    fn is_gone(&self) -> bool {
        let requested = self.reader.machine.query(&Query::Link(self.index));
        requested.is_err_and(|error| Errno::from_io_error(&error) == Some(Errno::NODEV))
    }
}

/// Returns the hint without its last word, which is the name of the port.
fn hint_for_all(hint: &str) -> &str {
    match hint.strip_prefix("ethtool") {
        Some(_) => hint.rsplit_once(' ').map_or(hint, |(command, _)| command),
        None => hint,
    }
}

/// Returns the facts of a port that its link message contains.
fn basic(link: &Link<'_>) -> Nic {
    let stats = link.stats;
    Nic {
        name: link.name.to_string(),
        index: link.index,
        kind: match link.hardware {
            INFINIBAND => IPOIB.to_owned(),
            _ => link.kind.to_string(),
        },
        is_virtual: true,
        up: link.up,
        mtu: link.mtu,
        mtu_max: link.mtu_max,
        qdisc: link.qdisc.to_string(),
        errors: PortErrors {
            rx_packets: stats.map(|s| s.rx_packets),
            tx_bytes: stats.map(|s| s.tx_bytes),
            rx_errors: stats.map(|s| s.rx_errors),
            tx_errors: stats.map(|s| s.tx_errors),
            rx_dropped: stats.map(|s| s.rx_dropped),
            tx_dropped: stats.map(|s| s.tx_dropped),
            rx_missed: stats.map(|s| s.rx_missed),
            rx_fifo: stats.map(|s| s.rx_fifo_errors),
            rx_crc: stats.map(|s| s.rx_crc_errors),
            collisions: stats.map(|s| s.collisions),
            carrier_changes: link.carrier_changes,
        },
        ..Nic::default()
    }
}

/// Sets for each port the ports above and below it.
fn stack(links: &[Link<'_>], nics: &mut [Nic]) {
    let places: BTreeMap<u32, usize> =
        nics.iter().enumerate().map(|(at, n)| (n.index, at)).collect();
    let put = |nics: &mut [Nic], upper: u32, lower: u32| {
        if let Some(&at) = places.get(&upper) {
            nics[at].stack.below.push(lower);
        }
    };
    for link in links {
        let Some(&own) = places.get(&link.index) else {
            continue;
        };
        nics[own].stack.above = link.master;
        if let Some(master) = link.master {
            put(nics, master, link.index);
        }
        match link.lower {
            Some(_) if PAIRS.contains(&&*link.kind) => {}
            Some(_) if link.lower_elsewhere => nics[own].stack.below_hidden = true,
            Some(lower) if lower != link.index => put(nics, link.index, lower),
            _ => {}
        }
    }
    for nic in nics {
        nic.stack.below.sort_unstable();
        nic.stack.below.dedup();
    }
}

fn nth(names: &[&str], at: Option<u8>) -> String {
    let name = at.and_then(|at| names.get(usize::from(at)));
    name.copied().unwrap_or_default().to_owned()
}

#[cfg(test)]
#[path = "tests/counter_tests.rs"]
mod counter_tests;
#[cfg(test)]
mod tests;
