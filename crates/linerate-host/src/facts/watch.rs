//! Changes of counters for `host --watch`. They are read as for the inventory, but only counters are read repeatedly.

use std::collections::BTreeMap;

use linerate_facts::Gap;
use linerate_facts::cpu::CpuTimes;
use linerate_facts::nic::Counter;
use linerate_facts::nic::counted::grouped;
use linerate_facts::parse::{driver, interrupts, link};
use linerate_facts::watch::{Change, PortCount, port_change};
use linerate_units::Nanos;

use super::busy::Used;
use super::irq::interrupts as all_interrupts;
use super::nic::network;
use super::{PROC, Reader};
use crate::{Machine, Query, invalid};

/// Reads the counters of a machine repeatedly, and computes the changes.
#[derive(Default)]
pub struct Watch {
    /// Index of the port to which each interrupt belongs. An interrupt that a driver requests later is not counted.
    served: BTreeMap<u32, u32>,
    /// Drivers of ports with a device, by the index of the port. Drivers count events that the kernel does not.
    drivers: BTreeMap<u32, String>,
    then: Option<Moment>,
    /// Gaps, each once, and how many of them were already reported.
    gaps: Vec<Gap>,
    reported: usize,
}

/// All readings of one sample.
struct Moment {
    at: Nanos,
    /// CPU times. They are read after everything else, so that the work of reading does not count in the next interval.
    times: Vec<CpuTimes>,
    processes: BTreeMap<u32, Used>,
    ports: BTreeMap<u32, PortCount>,
}

impl Watch {
    /// Makes a watch. Reads which interrupts belong to which port.
    pub fn new(machine: &dyn Machine) -> Self {
        let (network, interrupts) = (network(machine), all_interrupts(machine));
        let mut served = BTreeMap::new();
        for (port, irqs) in interrupts.by_port(&network.nics) {
            served.extend(irqs.iter().map(|irq| (irq.number, port)));
        }
        let cards = network.nics.iter().filter(|nic| !nic.device.is_empty());
        let drivers = cards.map(|nic| (nic.index, nic.driver.clone()));
        Self { served, drivers: drivers.collect(), ..Self::default() }
    }

    /// Returns the changes since the last sample; `None` for the first sample. `at` is the current time on any one
    /// clock.
    pub fn look(&mut self, machine: &dyn Machine, at: Nanos) -> Option<Change> {
        let mut reader = Reader { machine, gaps: Vec::new() };
        let end = reader.times().unwrap_or_default();
        let ports = reader.port_counts(&self.served, &self.drivers);
        let processes = reader.processes();
        let before = self.then.take();
        let change = before.map(|then| {
            let time = Nanos(at.0.saturating_sub(then.at.0));
            let old = then.ports;
            let both = ports.iter().filter_map(|(index, new)| Some((old.get(index)?, new)));
            Change {
                time,
                busy: reader.busy_between((&then.times, &then.processes), (&end, &processes)),
                ports: both.filter_map(|(old, new)| port_change(old, new, time)).collect(),
                gaps: Vec::new(),
            }
        });
        self.then =
            Some(Moment { at, times: reader.times().unwrap_or_default(), processes, ports });
        for gap in reader.gaps {
            if !self.gaps.contains(&gap) {
                self.gaps.push(gap);
            }
        }
        let mut change = change?;
        change.gaps = self.gaps.split_off(self.reported.min(self.gaps.len()));
        self.gaps.extend(change.gaps.iter().cloned());
        self.reported = self.gaps.len();
        Some(change)
    }
}

impl Reader<'_> {
    fn port_counts(
        &mut self,
        served: &BTreeMap<u32, u32>,
        drivers: &BTreeMap<u32, String>,
    ) -> BTreeMap<u32, PortCount> {
        let reply = match self.machine.query(&Query::Links) {
            Ok(reply) => reply,
            Err(error) => {
                self.miss("network", "the links", &error, "ip -s link");
                return BTreeMap::new();
            }
        };
        let mut counts = BTreeMap::new();
        for found in link::parse(&reply) {
            match found {
                Ok(link) => {
                    let count = PortCount {
                        name: link.name.to_string(),
                        up: link.up,
                        stats: link.stats.unwrap_or_default(),
                        interrupts: BTreeMap::new(),
                        driver: drivers.get(&link.index).cloned().unwrap_or_default(),
                        counters: Vec::new(),
                    };
                    counts.insert(link.index, count);
                }
                Err(error) => self.miss("network", "the links", &invalid(error), "ip -s link"),
            }
        }
        for (index, port) in counts.iter_mut().filter(|(index, _)| drivers.contains_key(index)) {
            port.counters = self.driver_counts(*index);
        }
        let by_cpu = self.get("irq.counts", "/proc/interrupts", PROC, |text| {
            interrupts::by_cpu(text, |irq| served.get(&irq).copied())
        });
        for ((port, cpu), count) in by_cpu.unwrap_or_default() {
            if let Some(port) = counts.get_mut(&port) {
                port.interrupts.insert(cpu, count);
            }
        }
        counts
    }
}

impl Reader<'_> {
    /// Reads the driver's counters of a port; empty if it has none, without a gap.
    fn driver_counts(&self, index: u32) -> Vec<Counter> {
        let reply = self.machine.query(&Query::DriverCounters(index)).ok();
        let counters = reply.and_then(|reply| driver::counters(&reply).ok());
        grouped(counters.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::Rate;
    use rustix::io::Errno;

    use super::*;
    use crate::testing::{Fake, attr, link};
    use crate::{Answer, Failure, Replay};

    const SECOND: Nanos = Nanos(1_000_000_000);

    /// Makes the link message of a port that has received `bytes` bytes and as many packets.
    fn port(bytes: u64) -> Vec<u8> {
        let stats: Vec<u8> =
            [bytes, 0, bytes, 0].into_iter().chain([0; 21]).flat_map(u64::to_ne_bytes).collect();
        link(7, "eth0", &[attr(23, &stats)])
    }

    fn machine() -> Fake {
        let interrupts = |n: u64| {
            format!(
                "CPU0 CPU1\n 64: {n} 5 PCI-MSI 1-edge eth0-rx-0\n 65: {n} 0 PCI-MSI 2-edge other\n"
            )
        };
        let counts = [100, 100, 350].map(interrupts);
        let counts: Vec<&str> = counts.iter().map(String::as_str).collect();
        let times = [(0, 0), (10, 100), (60, 150), (70, 150)];
        let times = times.map(|(busy, idle)| format!("cpu0 {busy} 0 0 {idle} 0 0 0 0\n"));
        let times: Vec<&str> = times.iter().map(String::as_str).collect();
        let (first, second) = (port(1000), port(126_000));
        Fake::default()
            .reply(Query::Links, &[&first, &first, &second])
            .file("/proc/interrupts", &counts)
            .file("/proc/stat", &times)
    }

    #[test]
    fn a_second_look_tells_what_happened_since_the_first() {
        let machine = Replay::new(machine().0);
        let mut watch = Watch::new(&machine);
        assert_eq!(watch.look(&machine, SECOND), None);
        let change = watch.look(&machine, Nanos(2 * SECOND.0)).unwrap();
        assert_eq!(change.time, SECOND);
        let [port] = &change.ports[..] else { panic!("{:?}", change.ports) };
        assert_eq!((port.name.as_str(), port.rx), ("eth0", Rate(1_000_000)));
        assert_eq!(port.interrupts, [(0, 250.0)], "the other one is no port's");
        let load = change.busy.unwrap().cpus[0];
        assert!((load.busy - 0.5).abs() < 1e-9, "from the end of a look to the next");
    }

    #[test]
    fn a_second_look_tells_what_the_driver_counted() {
        let mut info = vec![0; 196];
        info[4..9].copy_from_slice(b"ixgbe");
        let counters = |n: u64| {
            let mut raw: Vec<u8> =
                [0x1b, 1, 1].iter().flat_map(|w: &u32| w.to_ne_bytes()).collect();
            let mut name = b"rx_no_dma_resources".to_vec();
            name.resize(32, 0);
            raw.extend(name);
            raw.extend([0x1d, 1].iter().flat_map(|w: &u32| w.to_ne_bytes()));
            raw.extend(n.to_ne_bytes());
            raw
        };
        let card = |bytes: u64| {
            let stats: Vec<u8> = [bytes, 0, bytes, 0]
                .into_iter()
                .chain([0; 21])
                .flat_map(u64::to_ne_bytes)
                .collect();
            link(7, "eth0", &[attr(23, &stats), attr(56, b"0000:03:00.0"), attr(57, b"pci")])
        };
        let (first, second) = (card(1000), card(2000));
        let (before, after) = (counters(5), counters(9));
        let fake = Fake::default()
            .reply(Query::Links, &[&first, &first, &second])
            .reply(Query::Driver(7), &[&info])
            .reply(Query::DriverCounters(7), &[&before, &before, &after]);
        let machine = Replay::new(fake.0);
        let mut watch = Watch::new(&machine);
        assert_eq!(watch.look(&machine, SECOND), None);
        let change = watch.look(&machine, Nanos(2 * SECOND.0)).unwrap();
        let [grown] = &change.ports[0].grown[..] else { panic!("{:?}", change.ports) };
        assert_eq!((grown.name.as_str(), grown.by), ("rx_no_dma_resources", 4));
    }

    #[test]
    fn a_gap_is_told_once() {
        let refused = Answer::Failed(Failure {
            errno: Some(Errno::PERM.raw_os_error()),
            kind: String::new(),
            text: String::new(),
        });
        let mut fake = Fake::default();
        fake.0.queries.push((Query::Links, vec![refused; 3]));
        let machine = Replay::new(fake.0);
        let mut watch = Watch::default();
        let reported = [1, 2, 3].map(|at| {
            let change = watch.look(&machine, Nanos(at)).unwrap_or_default();
            let gaps = change.gaps.iter();
            gaps.filter(|gap| gap.what == "facts.network").count()
        });
        assert_eq!(reported, [0, 1, 0]);
    }
}
