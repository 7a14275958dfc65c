//! Facts of all network ports: by netlink and the driver, and from /sys what only it has.
//! Where nobody can be asked, in a tree of files, /sys alone.

use std::collections::BTreeMap;
use std::io;

use linerate_core::facts::nic::{Bond, Counter, Direction, Network, Nic, PortErrors, Queue};
use linerate_core::parse::link::{LOOPBACK, Link};
use linerate_core::parse::{Malformed, driver, ethtool, link, netdev, sysctl, sysfs};
use rustix::io::Errno;

use super::port::{HIDDEN, VIRTUAL_BUSES, VIRTUAL_DRIVERS};
use super::{Reader, SYS};
use crate::host::{Ethtool, Machine, Query, gap, invalid, read};

mod class;

/// Kinds whose "lower port" is the other half of a pair.
const PAIRS: [&str; 3] = ["veth", "netkit", "vxcan"];
/// Names of counters of packets that did not make it, or had to wait.
const LOSS: [&str; 11] = [
    "drop",
    "discard",
    "err",
    "miss",
    "crc",
    "fifo",
    "out_of_buffer",
    "no_buf",
    "pause",
    "timeout",
    "overrun",
];
/// `IFLA_BOND_MODE`.
const MODES: [&str; 7] = [
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
];
/// `IFLA_BOND_XMIT_HASH_POLICY`.
const HASHES: [&str; 6] = [
    "layer2",
    "layer3+4",
    "layer2+3",
    "encap2+3",
    "encap3+4",
    "vlan+srcmac",
];

/// All ports of our network namespace. What cannot be read has a gap: `facts.nic.rings`.
pub fn network(machine: &dyn Machine) -> Network {
    const ENTRIES: &str = "/proc/sys/net/core/rps_sock_flow_entries";
    const HINT: &str = "sudo nsenter -t 1 -n sysctl net.core.rps_sock_flow_entries";
    let mut reader = Reader {
        machine,
        gaps: Vec::new(),
    };
    let nics = reader.nics();
    let flow_entries = reader.get("network.flow_entries", ENTRIES, HINT, sysctl::number);
    Network {
        nics,
        flow_entries,
        gaps: reader.gaps,
    }
}

impl Reader<'_> {
    fn nics(&mut self) -> Vec<Nic> {
        const WHAT: &str = "the links";
        const HINT: &str = "ip -d -s link";
        let reply = match self.machine.query(&Query::Links) {
            Ok(reply) => reply,
            Err(error) => {
                self.miss("network", WHAT, &error, HINT);
                // A tree of files: its ports are those that its own /sys shows.
                let files_only = Errno::from_io_error(&error).is_none();
                return if files_only {
                    self.listed_nics()
                } else {
                    Vec::new()
                };
            }
        };
        let mut links = Vec::new();
        for link in link::parse(&reply) {
            match link {
                Ok(link) => links.push(link),
                Err(error) => self.miss("network", WHAT, &invalid(error), HINT),
            }
        }
        let mut nics: Vec<Nic> = links.iter().filter_map(|link| self.nic(link)).collect();
        stack(&links, &mut nics);
        nics
    }

    /// The port; `None` and one gap where it goes away while it is read.
    fn nic(&mut self, link: &Link<'_>) -> Option<Nic> {
        let before = self.gaps.len();
        let mut port = Port {
            name: link.name.to_string(),
            index: link.index,
            went: false,
            reader: self,
        };
        let nic = port.read(link);
        let gone = port.went && port.is_gone();
        if gone {
            self.gaps.truncate(before);
            let why = format!("{} went away while it was read", link.name);
            self.gaps.push(gap("facts.nic", &why, "ip link"));
        }
        (!gone).then_some(nic)
    }

    /// A gap that many ports may share is told once.
    fn once(&mut self, fact: &str, why: &str, hint: &str) {
        let gap = gap(fact, why, hint);
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }
}

/// Reads one port.
struct Port<'a, 'b> {
    reader: &'a mut Reader<'b>,
    name: String,
    index: u32,
    /// Something said that there is no such port.
    went: bool,
}

impl Port<'_, '_> {
    fn read(&mut self, link: &Link<'_>) -> Nic {
        let mut nic = basic(link);
        if link.hardware == LOOPBACK {
            "loopback".clone_into(&mut nic.driver);
            nic.offloads = self.ask(Ethtool::Features, ethtool::features);
            return nic;
        }
        let class = self.reader.class_folder(link);
        let device = self.reader.device_folder(link, class.as_deref());
        if let Some(device) = &device {
            self.device(&mut nic, link, device);
        } else {
            nic.driver.clone_from(&nic.kind);
        }
        nic.link = self
            .ask(Ethtool::LinkModes, ethtool::link_modes)
            .unwrap_or_default();
        nic.offloads = self.ask(Ethtool::Features, ethtool::features);
        self.details(&mut nic, link);
        self.queues(&mut nic, class.as_deref());
        if device.is_some() {
            self.hardware(&mut nic);
        }
        nic
    }

    /// What only a port with a device has.
    fn hardware(&mut self, nic: &mut Nic) {
        nic.fec = self.ask(Ethtool::Fec, ethtool::fec);
        nic.channels = self.ask(Ethtool::Channels, ethtool::channels);
        nic.rings = self.ask(Ethtool::Rings, ethtool::rings);
        nic.coalesce = self.ask(Ethtool::Coalesce, ethtool::coalesce);
        nic.pause = self.ask(Ethtool::Pause, ethtool::pause);
        nic.rss = self.ask(Ethtool::Rss, ethtool::rss);
        let hint = format!("ethtool -S {}", self.name);
        let counters = self.query(Query::DriverCounters(self.index), driver::counters);
        let counters = self.settle("counters", counters, &hint).unwrap_or_default();
        nic.counters = counters.into_iter().filter(tells_loss).collect();
        self.pollers(nic);
    }

    fn device(&mut self, nic: &mut Nic, link: &Link<'_>, folder: &str) {
        let hint = format!("ethtool -i {}", self.name);
        let info = self.query(Query::Driver(self.index), driver::info);
        let info = self.settle("driver", info, &hint).unwrap_or_default();
        nic.driver = info.driver;
        nic.firmware = info.firmware;
        nic.device = link.device.to_string();
        nic.pci = match &*link.bus {
            "pci" => link.device.to_string(),
            _ => self.reader.pci_above(folder),
        };
        nic.node = self.reader.node_of(&nic.pci);
        if nic.driver.is_empty() {
            let uevent = self.reader.machine.file(&format!("{folder}/uevent"));
            let driver = uevent
                .ok()
                .and_then(|text| sysctl::value_text(&text, "DRIVER"));
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
        });
        let vlan = link.vlan().map_err(invalid);
        nic.stack.vlan = self.settle("vlan", vlan, &hint).flatten();
    }

    /// Queues and the CPUs that they are tied to, which only /sys tells.
    fn queues(&mut self, nic: &mut Nic, class: Option<&str>) {
        let Some(class) = class else {
            self.reader.once("facts.nic.queues", HIDDEN, SYS);
            return;
        };
        let folder = format!("{class}/queues");
        let names = self.reader.machine.list(&folder);
        let names = self
            .settle("queues", names, &format!("ls {folder}"))
            .unwrap_or_default();
        nic.queues = names
            .iter()
            .filter_map(|name| self.queue(&folder, name))
            .collect();
        nic.queues
            .sort_by_key(|queue| (queue.direction, queue.number));
    }

    fn queue(&self, folder: &str, name: &str) -> Option<Queue> {
        let (direction, number) = match name.split_once('-')? {
            ("rx", number) => (Direction::Rx, number),
            ("tx", number) => (Direction::Tx, number),
            _ => return None,
        };
        let (cpus, flows) = match direction {
            Direction::Rx => ("rps_cpus", Some("rps_flow_cnt")),
            Direction::Tx => ("xps_cpus", None),
        };
        // The files are not there for a port with one queue, or without the feature in the kernel.
        let (machine, path) = (self.reader.machine, |file| {
            format!("{folder}/{name}/{file}")
        });
        Some(Queue {
            direction,
            number: number.parse().ok()?,
            napi: None,
            irq: None,
            cpus: read(machine, &path(cpus), sysfs::mask).ok(),
            flows: flows.and_then(|file| read(machine, &path(file), sysctl::number).ok()),
        })
    }

    /// Which poller and interrupt serve each queue, where the kernel tells (6.8+).
    fn pollers(&mut self, nic: &mut Nic) {
        const HINT: &str = "a kernel of 6.8 or later";
        let queues = self.query(Query::Queues(self.index), netdev::queues);
        let Some(queues) = self.settle("pollers", queues, HINT) else {
            return;
        };
        let napis = self.query(Query::Napis(self.index), netdev::napis);
        let napis = self.settle("pollers", napis, HINT).unwrap_or_default();
        let irqs: BTreeMap<u32, Option<u32>> = napis.iter().map(|n| (n.id, n.irq)).collect();
        let told: BTreeMap<_, _> = queues
            .iter()
            .map(|queue| ((queue.direction, queue.number), queue.napi))
            .collect();
        for queue in &mut nic.queues {
            let napi = told
                .get(&(queue.direction, queue.number))
                .copied()
                .flatten();
            queue.napi = napi;
            queue.irq = napi.and_then(|napi| irqs.get(&napi).copied().flatten());
        }
    }

    fn ask<T>(&mut self, what: Ethtool, decode: fn(&[u8]) -> Result<T, Malformed>) -> Option<T> {
        let (fact, option) = match what {
            Ethtool::LinkModes => ("link", ""),
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

    /// What was read. That a driver does not have something is an answer, not a gap.
    fn settle<T>(&mut self, fact: &str, got: io::Result<T>, hint: &str) -> Option<T> {
        let error = match got {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        match Errno::from_io_error(&error) {
            Some(Errno::OPNOTSUPP) => return None,
            Some(Errno::NODEV | Errno::NOENT) => self.went = true,
            // Nobody can be asked: the same for all ports.
            None if error.kind() == io::ErrorKind::Unsupported => {
                let why = error.to_string();
                self.reader
                    .once(&format!("facts.nic.{fact}"), &why, hint_for_all(hint));
                return None;
            }
            _ => {}
        }
        let what = format!("the {fact} of {}", self.name);
        self.reader
            .miss(&format!("nic.{fact}"), &what, &error, hint);
        None
    }

    /// Some drivers say "no such device" of a port that sleeps: the list of ports decides.
    fn is_gone(&self) -> bool {
        let asked = self.reader.machine.query(&Query::Link(self.index));
        asked.is_err_and(|error| Errno::from_io_error(&error) == Some(Errno::NODEV))
    }
}

/// The hint without the name of the port, which stands last.
fn hint_for_all(hint: &str) -> &str {
    match hint.strip_prefix("ethtool") {
        Some(_) => hint.rsplit_once(' ').map_or(hint, |(command, _)| command),
        None => hint,
    }
}

/// What the link message tells.
fn basic(link: &Link<'_>) -> Nic {
    let stats = link.stats;
    Nic {
        name: link.name.to_string(),
        index: link.index,
        kind: link.kind.to_string(),
        is_virtual: true,
        up: link.up,
        mtu: link.mtu,
        mtu_max: link.mtu_max,
        qdisc: link.qdisc.to_string(),
        errors: PortErrors {
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

/// Tells each port what it is part of and what it is made of.
fn stack(links: &[Link<'_>], nics: &mut [Nic]) {
    let places: BTreeMap<u32, usize> = nics
        .iter()
        .enumerate()
        .map(|(at, n)| (n.index, at))
        .collect();
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

fn tells_loss(counter: &Counter) -> bool {
    let name = counter.name.to_ascii_lowercase();
    name.contains("allowance") || counter.value > 0 && LOSS.iter().any(|word| name.contains(word))
}

fn nth(names: &[&str], at: Option<u8>) -> String {
    let name = at.and_then(|at| names.get(usize::from(at)));
    name.copied().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use linerate_core::facts::nic::{Network, Nic, Setting};
    use linerate_core::units::Rate;
    use rustix::io::Errno;

    use super::network;
    use crate::host::testing::{Fake, attr, link, msg};
    use crate::host::{Capture, Ethtool, Live, Query, Replay};

    const CLASS: &str = "/sys/class/net/eth0";

    fn word(kind: u16, value: u32) -> Vec<u8> {
        attr(kind, &value.to_ne_bytes())
    }

    /// A message of a generic family.
    fn generic(attributes: &[Vec<u8>]) -> Vec<u8> {
        msg(21, &[vec![0; 4], attributes.concat()].concat())
    }

    fn driver(name: &str, firmware: &str) -> Vec<u8> {
        let mut info = vec![0; 196];
        for (at, text) in [(4, name), (68, firmware)] {
            info[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
        info
    }

    fn counters(counters: &[(&str, u64)]) -> Vec<u8> {
        let count = u32::try_from(counters.len()).unwrap();
        let mut raw: Vec<u8> = [0x1b, 1, count]
            .iter()
            .flat_map(|w: &u32| w.to_ne_bytes())
            .collect();
        for (name, _) in counters {
            let mut field = name.as_bytes().to_vec();
            field.resize(32, 0);
            raw.extend(field);
        }
        raw.extend([0x1d, count].iter().flat_map(|w: &u32| w.to_ne_bytes()));
        raw.extend(counters.iter().flat_map(|(_, value)| value.to_ne_bytes()));
        raw
    }

    const ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 7];

    /// What a card with two queues answers.
    fn replies() -> Vec<(Query, Vec<u8>)> {
        let link = link(
            7,
            "eth0",
            &[
                attr(1, &ADDRESS),
                attr(56, b"0000:03:00.0"),
                attr(57, b"pci"),
                word(51, 9000),
            ],
        );
        let ask = |what, words: &[(u16, u32)]| {
            let words: Vec<_> = words
                .iter()
                .map(|&(kind, value)| word(kind, value))
                .collect();
            (Query::Ethtool(what, 7), generic(&words))
        };
        let table: Vec<u8> = [0u32, 1].iter().flat_map(|w| w.to_ne_bytes()).collect();
        vec![
            (Query::Links, link),
            ask(Ethtool::LinkModes, &[(5, 100_000)]),
            ask(Ethtool::Features, &[(1, 0)]),
            ask(Ethtool::Fec, &[(4, 50)]),
            ask(Ethtool::Channels, &[(5, 63), (9, 2)]),
            ask(Ethtool::Rings, &[(2, 8192), (6, 1024)]),
            ask(Ethtool::Coalesce, &[(2, 8)]),
            ask(Ethtool::Pause, &[(3, 1)]),
            (Query::Ethtool(Ethtool::Rss, 7), generic(&[attr(4, &table)])),
            (Query::Driver(7), driver("mlx5_core", "16.35.1012")),
            (
                Query::DriverCounters(7),
                counters(&[
                    ("rx_packets", 5),
                    ("rx_out_of_buffer", 3),
                    ("tx_errors", 0),
                    ("bw_in_allowance_exceeded", 0),
                ]),
            ),
            (
                Query::Queues(7),
                [
                    generic(&[word(1, 0), word(3, 0), word(4, 8193)]),
                    generic(&[word(1, 0), word(3, 1), word(4, 8194)]),
                ]
                .concat(),
            ),
            (Query::Napis(7), generic(&[word(2, 8193), word(3, 64)])),
        ]
    }

    /// A card all of whose questions are answered.
    fn card() -> Fake {
        let fake = replies()
            .into_iter()
            .fold(Fake::default(), |fake, (query, reply)| {
                fake.reply(query, &[&reply])
            });
        fake.file("/proc/sys/net/core/rps_sock_flow_entries", &["0\n"])
            .file(&format!("{CLASS}/ifindex"), &["7\n"])
            .file(&format!("{CLASS}/address"), &["02:00:00:00:00:07\n"])
            .list(&format!("{CLASS}/queues"), &["rx-0", "tx-0"])
            .file(
                &format!("{CLASS}/queues/rx-0/rps_cpus"),
                &["00000000,00000003\n"],
            )
            .file(&format!("{CLASS}/queues/rx-0/rps_flow_cnt"), &["4096\n"])
            .failing(&format!("{CLASS}/queues/tx-0/xps_cpus"), &[], Errno::NOENT)
            .file("/sys/bus/pci/devices/0000:03:00.0/numa_node", &["1\n"])
    }

    fn only(network: Network) -> Nic {
        let [nic] = <[Nic; 1]>::try_from(network.nics).unwrap();
        nic
    }

    #[test]
    fn a_card_is_described_whole_and_without_a_gap() {
        let network = network(&Replay::new(card().0));
        assert_eq!(
            (&network.gaps[..], network.flow_entries),
            (&[][..], Some(0))
        );
        let nic = only(network);
        assert_eq!(
            (nic.driver.as_str(), nic.firmware.as_str()),
            ("mlx5_core", "16.35.1012")
        );
        assert_eq!(
            (nic.pci.as_str(), nic.node, nic.is_virtual),
            ("0000:03:00.0", Some(1), false)
        );
        assert_eq!(nic.link.speed, Some(Rate(100_000_000_000)));
        assert_eq!((nic.up, nic.mtu_max), (true, Some(9000)));
        assert_eq!(nic.fec.unwrap().active, "RS");
        let want = Setting {
            now: Some(2),
            most: Some(63),
        };
        assert_eq!(nic.channels.unwrap().combined, want);
        assert_eq!(
            nic.rings.unwrap().rx,
            Setting {
                now: Some(1024),
                most: Some(8192)
            }
        );
        assert_eq!(nic.coalesce.unwrap().rx_usecs, Some(8));
        assert_eq!(nic.pause.unwrap().rx, Some(true));
        assert_eq!(nic.rss.unwrap().table, [0, 1]);
        let counters: Vec<_> = nic
            .counters
            .iter()
            .map(|c| (c.name.as_str(), c.value))
            .collect();
        assert_eq!(
            counters,
            [("rx_out_of_buffer", 3), ("bw_in_allowance_exceeded", 0)]
        );
        let [rx, tx] = &nic.queues[..] else {
            panic!("{:?}", nic.queues)
        };
        assert_eq!(
            (rx.napi, rx.irq, rx.flows),
            (Some(8193), Some(64), Some(4096))
        );
        assert_eq!(rx.cpus, Some(vec![0, 1]));
        assert_eq!((tx.napi, tx.irq, tx.cpus.clone()), (Some(8194), None, None));
    }

    #[test]
    fn what_a_driver_does_not_have_is_no_gap_but_what_fails_is() {
        for (errno, gaps) in [(Errno::OPNOTSUPP, 0), (Errno::IO, 1), (Errno::PERM, 1)] {
            let fake = card().refusing(Query::Ethtool(Ethtool::Rings, 7), errno);
            let network = network(&Replay::new(fake.0));
            assert_eq!(network.gaps.len(), gaps, "{:?}", network.gaps);
            assert!(network.gaps.iter().all(|g| g.what == "facts.nic.rings"));
            assert_eq!(only(network).rings, None);
        }
    }

    #[test]
    fn a_port_that_goes_away_is_left_out_and_one_that_sleeps_is_not() {
        let asleep = || card().refusing(Query::Ethtool(Ethtool::Rings, 7), Errno::NODEV);
        let gone = network(&Replay::new(
            asleep().refusing(Query::Link(7), Errno::NODEV).0,
        ));
        assert_eq!((gone.nics, gone.gaps.len()), (vec![], 1));
        assert!(
            gone.gaps[0].why.contains("went away"),
            "{}",
            gone.gaps[0].why
        );
        let awake = asleep().reply(Query::Link(7), &[&link(7, "eth0", &[])]);
        let network = network(&Replay::new(awake.0));
        assert_eq!((network.nics.len(), network.gaps.len()), (1, 1));
    }

    #[test]
    fn a_bond_is_made_of_its_members_and_a_pair_of_nothing() {
        let details = [attr(1, &[4]), attr(14, &[1])].concat();
        let kind =
            |kind: &[u8], details: &[u8]| attr(18, &[attr(1, kind), attr(2, details)].concat());
        let links = [
            link(2, "a", &[word(10, 5)]),
            link(3, "b", &[word(10, 5)]),
            link(5, "bond0", &[kind(b"bond", &details)]),
            link(
                6,
                "bond0.7",
                &[kind(b"vlan", &attr(1, &7u16.to_ne_bytes())), word(5, 5)],
            ),
            link(8, "pair", &[kind(b"veth", &[]), word(5, 2)]),
            link(
                9,
                "inner",
                &[kind(b"macvlan", &[]), word(5, 2), word(37, 0)],
            ),
        ];
        let fake = Fake::default().reply(Query::Links, &[&links.concat()]);
        let network = network(&Replay::new(fake.0));
        let bond = network.nic(5).unwrap().stack.clone();
        assert_eq!(
            (bond.below, network.nic(2).unwrap().stack.above),
            (vec![2, 3], Some(5))
        );
        let bond = bond.bond.unwrap();
        assert_eq!(
            (bond.mode.as_str(), bond.hash.as_str()),
            ("802.3ad", "layer3+4")
        );
        assert_eq!(network.nic(6).unwrap().stack.vlan, Some(7));
        assert_eq!(network.leaves(6), [2, 3]);
        assert_eq!(network.leaves(8), [8]);
        let inner = &network.nic(9).unwrap().stack;
        assert_eq!((inner.below.len(), inner.below_hidden), (0, true));
    }

    #[test]
    fn gaps_that_all_ports_share_are_told_once() {
        let links: Vec<u8> = (1..=50)
            .flat_map(|n| link(n, &format!("p{n}"), &[]))
            .collect();
        let network = network(&Replay::new(
            Fake::default().reply(Query::Links, &[&links]).0,
        ));
        assert_eq!(network.nics.len(), 50);
        let whats: Vec<_> = network.gaps.iter().map(|g| g.what.as_str()).collect();
        let want = ["facts.nic.link", "facts.nic.offloads", "facts.nic.queues"];
        assert_eq!(whats, [&want[..], &["facts.network.flow_entries"]].concat());
    }

    #[test]
    fn a_list_of_links_that_is_cut_short_keeps_what_came_and_says_so() {
        let whole = [link(1, "a", &[]), link(2, "b", &[])].concat();
        let cut = &whole[..whole.len() - 4];
        let network = network(&Replay::new(Fake::default().reply(Query::Links, &[cut]).0));
        assert_eq!(network.nics.len(), 1);
        assert!(network.gaps.iter().any(|g| g.what == "facts.network"));
    }

    #[test]
    fn this_machine_has_loopback_and_a_replay_gives_the_same() {
        let machine = Capture::new(Live::new());
        let live = network(&machine);
        let lo = live.nic(1).unwrap();
        assert_eq!(
            (lo.name.as_str(), lo.driver.as_str(), lo.pci.as_str()),
            ("lo", "loopback", "")
        );
        assert!(lo.is_virtual && lo.link.speed.is_none() && lo.mtu.is_some());
        assert!(
            lo.offloads
                .as_ref()
                .is_some_and(|o| o.iter().any(|f| f == "tx-scatter-gather"))
        );
        assert_eq!(network(&Replay::new(machine.captured())), live);
    }
}
