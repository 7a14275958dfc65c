//! Interrupts: the queues that they serve, and the CPUs that handle them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Gap;
use super::nic::{Nic, QueueDirection};

/// All numbered interrupts of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interrupts {
    /// The interrupts, in ascending order of their numbers.
    pub irqs: Vec<Irq>,
    /// The readings of interrupts that failed.
    pub gaps: Vec<Gap>,
}

/// A numbered interrupt. Text that is unknown is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Irq {
    /// Number of the interrupt.
    pub number: u32,
    /// The driver's name of the interrupt: `eth0-TxRx-3`.
    pub name: String,
    /// The controller that delivers the interrupt: `PCI-MSIX-0000:03:00.0`, `IO-APIC`.
    pub chip: String,
    /// Number of times that the interrupt arrived since boot.
    pub total: Option<u64>,
    /// The CPU that handled the interrupt most often.
    pub busiest: Option<u32>,
    /// CPUs to which the interrupt is really sent.
    pub effective: Vec<u32>,
    /// CPUs to which the interrupt may be sent.
    pub allowed: Vec<u32>,
    /// NUMA node of the device that sends the interrupt.
    pub node: Option<u32>,
}

/// The queue that an interrupt serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Number of the queue.
    pub number: u32,
    /// Direction of the queue; `None` for a pair of queues, one for each direction.
    pub direction: Option<QueueDirection>,
}

impl Served {
    /// Whether the interrupt serves received packets.
    pub fn receives(self) -> bool {
        self.direction != Some(QueueDirection::Tx)
    }
}

impl Irq {
    /// The queue that the interrupt serves, according to its name; `None` if the name does not show a queue.
    pub fn queue(&self) -> Option<Served> {
        let name = self.name.split('@').next()?.to_ascii_lowercase();
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = name[stem.len()..].parse().ok()?;
        let stem = stem.trim_end_matches(['-', '.', '_']);
        let ends = |words: &[&str]| words.iter().any(|word| stem.ends_with(word));
        let last = stem.rsplit(['-', '_']).next().unwrap_or_default();
        // Names of queue pairs by driver: mlx5, then mlx4; qede and bnx2x; be2net and mana; gve.
        let pair = ends(&["comp", "ntfy-blk", "ntfy-block"]) || ["mlx4", "fp", "q"].contains(&last);
        let direction = if ends(&["txrx", "rxtx", "tx-rx", "rx-tx"]) || pair {
            None
        } else if ends(&["rx", "input", "rxq"]) {
            Some(QueueDirection::Rx)
        } else if ends(&["tx", "output", "txq"]) {
            Some(QueueDirection::Tx)
        } else {
            return None;
        };
        Some(Served { number, direction })
    }

    /// The PCI addresses that the interrupt may name: they are at the end of its chip's name or of its own name.
    fn addresses(&self) -> impl Iterator<Item = &str> {
        [&self.chip, &self.name].into_iter().flat_map(move |text| {
            let breaks = text.rmatch_indices(['-', ':', '@', ' ']).take(WORDS);
            let starts = breaks.map(|(at, _)| at + 1);
            starts.chain([0]).map(move |at| &text[at..])
        })
    }

    /// Texts that may be the name of a port or device: each starts at a word of the interrupt's name and ends at the
    /// end of a word. `eth1-rx-0`, `i40e-eth1-TxRx-0`, `ixgbe: eth1-rx-0`; `eth10-rx-0` does not give `eth1`.
    fn words(&self) -> impl Iterator<Item = &str> {
        let breaks = self.name.match_indices(['-', ' ']).take(WORDS);
        let starts = breaks.map(|(at, _)| at + 1);
        [0].into_iter().chain(starts).flat_map(|at| {
            let rest = &self.name[at..];
            let ends = rest.match_indices(['-', '@']).take(WORDS);
            let ends = ends.map(|(at, _)| at).chain([rest.len()]);
            ends.map(move |end| &rest[..end])
        })
    }
}

/// Largest number of separators in a name that are examined. Names in a kernel have three or four.
const WORDS: usize = 8;

/// What identifies the port of an interrupt. Each map leads to the indices of ports.
#[derive(Default)]
struct Signs<'a> {
    /// Numbers of the interrupts that the kernel reports for queues.
    numbers: BTreeMap<u32, Vec<u32>>,
    /// PCI addresses of the ports' cards.
    addresses: BTreeMap<&'a str, Vec<u32>>,
    /// Names of the ports and of their devices.
    names: BTreeMap<&'a str, Vec<u32>>,
}

impl<'a> Signs<'a> {
    fn of(nics: &'a [Nic]) -> Self {
        let mut signs = Self::default();
        // A port that is made by software has no interrupts.
        for nic in nics.iter().filter(|nic| !nic.is_software()) {
            for number in nic.queues.iter().filter_map(|queue| queue.irq) {
                signs.numbers.entry(number).or_default().push(nic.index);
            }
            if !nic.pci.is_empty() {
                signs.addresses.entry(&nic.pci).or_default().push(nic.index);
            }
            // Some names contain a PCI address: `hns3-0000:7d:00.0-TxRx-0`.
            for name in [&nic.device, &nic.name, &nic.pci] {
                if !name.is_empty() {
                    signs.names.entry(name).or_default().push(nic.index);
                }
            }
        }
        signs
    }

    /// The indices of the ports to which an interrupt belongs.
    fn ports(&self, irq: &Irq) -> BTreeSet<u32> {
        let number = self.numbers.get(&irq.number);
        let address = irq.addresses().filter_map(|a| self.addresses.get(a));
        let name = irq.words().filter_map(|word| self.names.get(word));
        number.into_iter().chain(address).chain(name).flatten().copied().collect()
    }
}

impl Interrupts {
    /// The interrupts of each port that has any, in ascending order, by the index of the port. There may be hundreds of
    /// ports and thousands of interrupts, so each interrupt is looked up instead of compared with every port.
    pub fn by_port(&self, nics: &[Nic]) -> BTreeMap<u32, Vec<&Irq>> {
        let signs = Signs::of(nics);
        let mut all: BTreeMap<u32, Vec<&Irq>> = BTreeMap::new();
        for irq in &self.irqs {
            for port in signs.ports(irq) {
                all.entry(port).or_default().push(irq);
            }
        }
        all
    }

    /// The interrupts of one port, in ascending order.
    pub fn of(&self, nic: &Nic) -> Vec<&Irq> {
        let mut all = self.by_port(std::slice::from_ref(nic));
        all.remove(&nic.index).unwrap_or_default()
    }
}

/// The interrupts of queues that are sent to none of the CPUs `close`, which are the CPUs of the port's node in
/// ascending order. Interrupts whose CPUs are unknown are left out.
pub fn remote<'a>(irqs: &[&'a Irq], close: &[u32]) -> Vec<&'a Irq> {
    let queues = irqs.iter().filter(|irq| irq.queue().is_some());
    let known = queues.filter(|irq| !irq.effective.is_empty());
    let is_close = |cpu: &u32| close.binary_search(cpu).is_ok();
    known.filter(|irq| !irq.effective.iter().any(is_close)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic::Queue;

    fn irq(number: u32, chip: &str, name: &str) -> Irq {
        Irq { number, chip: chip.to_owned(), name: name.to_owned(), ..Irq::default() }
    }

    #[test]
    fn names_tell_queues() {
        use QueueDirection::{Rx, Tx};
        for (name, want) in [
            ("eth0-TxRx-3", Some((3, None))),
            ("eth0-Tx-Rx-12", Some((12, None))),
            ("mlx5_comp7@pci:0000:03:00.0", Some((7, None))),
            ("virtio2-input.0", Some((0, Some(Rx)))),
            ("virtio2-output.1", Some((1, Some(Tx)))),
            ("ixgbe: eth0-rx-5", Some((5, Some(Rx)))),
            ("ice-eth0-TxRx-5", Some((5, None))),
            ("hns3-0000:7d:00.0-TxRx-5", Some((5, None))),
            ("mlx4-11@pci:0000:03:00.0", Some((11, None))),
            ("eth0-fp-3", Some((3, None))),
            ("eth0-q2", Some((2, None))),
            ("mana_q6@pci:7870:00:00.0", Some((6, None))),
            ("gve-ntfy-blk4@pci:0000:00:04.0", Some((4, None))),
            ("eth0-ntfy-block.4", Some((4, None))),
            ("eth0_rxq7", Some((7, Some(Rx)))),
            ("mlx4-async@pci:0000:03:00.0", None),
            ("mana_hwc@pci:7870:00:00.0", None),
            ("ena-mgmnt@pci:0000:00:05.0", None),
            ("seq0", None),
            ("eth0-q0-tx", None),
            ("virtio2-config", None),
            ("mlx5_async0@pci:0000:03:00.0", None),
            ("eth0-TxRx-99999999999", None),
            ("", None),
        ] {
            let want = want.map(|(number, direction)| Served { number, direction });
            assert_eq!(irq(1, "", name).queue(), want, "{name}");
        }
    }

    #[test]
    fn an_interrupt_is_remote_where_all_its_cpus_are() {
        let served = |number, name: &str, effective: &[u32]| Irq {
            effective: effective.to_vec(),
            ..irq(number, "", name)
        };
        let all = Interrupts {
            irqs: vec![
                served(1, "eth1-TxRx-0", &[3]),
                served(2, "eth1-TxRx-1", &[3, 4]),
                served(3, "eth1-TxRx-2", &[4]),
                served(4, "eth1-TxRx-3", &[]),
                served(5, "eth1-config", &[4]),
            ],
            gaps: vec![],
        };
        let nic = Nic { name: "eth1".to_owned(), ..Nic::default() };
        let remote = remote(&all.of(&nic), &[0, 1, 2, 3]);
        assert_eq!(remote.iter().map(|irq| irq.number).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn ports_share_no_interrupts_but_those_of_their_card() {
        let port = |index: u32, pci: &str| Nic {
            name: format!("eth{index}"),
            index,
            pci: pci.to_owned(),
            ..Nic::default()
        };
        let nics = [port(1, "0000:03:00.0"), port(2, "0000:03:00.0"), port(3, "")];
        let all = Interrupts {
            irqs: vec![
                irq(1, "PCI-MSIX-0000:03:00.0", "mlx4-async@pci:0000:03:00.0"),
                irq(2, "IO-APIC", "eth2-rx-0"),
                irq(3, "PCI-MSIX-0000:13:00.0", "eth10-rx-0"),
                irq(4, "PCI-MSIX-10000:03:00.0", "other"),
            ],
            gaps: vec![],
        };
        let found = all.by_port(&nics).into_iter();
        let found: Vec<(u32, Vec<u32>)> =
            found.map(|(port, irqs)| (port, irqs.iter().map(|irq| irq.number).collect())).collect();
        assert_eq!(found, [(1, vec![1]), (2, vec![1, 2])]);
    }

    #[test]
    fn a_name_of_many_words_is_not_read_to_its_end() {
        let long = irq(1, &"-".repeat(10_000), &"a-".repeat(10_000));
        assert_eq!(long.addresses().count(), 2 * (WORDS + 1));
        assert_eq!(long.words().count(), (WORDS + 1) * (WORDS + 1));
    }

    #[test]
    fn the_interrupts_of_a_port_are_found_by_whatever_tells_them() {
        let all = Interrupts {
            irqs: vec![
                irq(1, "IO-APIC", "eth1-TxRx-0"),
                irq(2, "IO-APIC", "eth10-TxRx-0"),
                irq(3, "PCI-MSIX-0000:03:00.0", "mlx5_async0@pci:0000:03:00.0"),
                irq(4, "IR-PCI-MSI", "mlx5_comp0@pci:0000:03:00.0"),
                irq(5, "IR-PCI-MSI", "i40e-eth1-TxRx-1"),
                irq(6, "IR-PCI-MSI", "opaque"),
                irq(7, "IR-PCI-MSI", "virtio1-input.0"),
            ],
            gaps: vec![],
        };
        let numbers = |nic: &Nic| all.of(nic).iter().map(|irq| irq.number).collect::<Vec<_>>();
        let mut nic = Nic { name: "eth1".to_owned(), ..Nic::default() };
        assert_eq!(numbers(&nic), [1, 5]);
        nic.pci = "0000:03:00.0".to_owned();
        nic.device = "virtio1".to_owned();
        nic.queues.push(Queue {
            direction: QueueDirection::Rx,
            number: 0,
            napi: None,
            irq: Some(6),
            cpus: None,
            flows: None,
        });
        assert_eq!(numbers(&nic), [1, 3, 4, 5, 6, 7]);
        assert_eq!(numbers(&Nic::default()), [0; 0]);
        let software = Nic {
            name: "eth1".to_owned(),
            kind: "veth".to_owned(),
            driver: "veth".to_owned(),
            is_virtual: true,
            ..Nic::default()
        };
        assert_eq!(numbers(&software), [0; 0], "one of the name, in another namespace");
        let unknown = Nic { kind: String::new(), driver: String::new(), ..software };
        assert_eq!(numbers(&unknown), [1, 5]);
    }
}
