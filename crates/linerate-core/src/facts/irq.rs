//! Interrupts: what each is for, and which CPUs serve it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Gap;
use super::nic::{Direction, Nic};

/// All numbered interrupts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interrupts {
    /// In ascending order of their numbers.
    pub irqs: Vec<Irq>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// A numbered interrupt. Text that is not known is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Irq {
    /// Number.
    pub number: u32,
    /// What drivers call it: `eth0-TxRx-3`.
    pub name: String,
    /// What delivers it: `PCI-MSIX-0000:03:00.0`, `IO-APIC`.
    pub chip: String,
    /// Times that it arrived since boot.
    pub total: Option<u64>,
    /// The CPU that served most of them.
    pub busiest: Option<u32>,
    /// CPUs that it is really sent to.
    pub effective: Vec<u32>,
    /// CPUs that it may be sent to.
    pub allowed: Vec<u32>,
    /// NUMA node of the device that sends it.
    pub node: Option<u32>,
}

/// The queue that an interrupt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Number of the queue.
    pub number: u32,
    /// Which way; `None` for a pair of queues, one each way.
    pub direction: Option<Direction>,
}

impl Irq {
    /// The queue that it is for, by its name; `None` where the name tells none.
    pub fn queue(&self) -> Option<Served> {
        let name = self.name.split('@').next()?.to_ascii_lowercase();
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = name[stem.len()..].parse().ok()?;
        let stem = stem.trim_end_matches(['-', '.', '_']);
        let ends = |words: &[&str]| words.iter().any(|word| stem.ends_with(word));
        let direction = if ends(&["txrx", "rxtx", "tx-rx", "rx-tx", "comp"]) {
            None
        } else if ends(&["rx", "input"]) {
            Some(Direction::Rx)
        } else if ends(&["tx", "output"]) {
            Some(Direction::Tx)
        } else {
            return None;
        };
        Some(Served { number, direction })
    }

    /// Whether it belongs to a port: by the device that sends it, or by its name.
    fn is_of(&self, nic: &Nic) -> bool {
        let by_bus =
            !nic.pci.is_empty() && (self.chip.ends_with(&nic.pci) || self.name.ends_with(&nic.pci));
        by_bus || self.names(&nic.device) || self.names(&nic.name)
    }

    /// Whether the name starts with `who`, or a word of it does: `eth1-rx-0`, `i40e-eth1-TxRx-0`,
    /// `ixgbe: eth1-rx-0`; `eth10-rx-0` is not of `eth1`.
    fn names(&self, who: &str) -> bool {
        let starts = |rest: &str| {
            let rest = rest.strip_prefix(who);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '@']))
        };
        let mut breaks = self.name.match_indices(['-', ' ']);
        !who.is_empty()
            && (starts(&self.name) || breaks.any(|(at, _)| starts(&self.name[at + 1..])))
    }
}

impl Interrupts {
    /// The interrupts of a port, in ascending order.
    pub fn of(&self, nic: &Nic) -> Vec<&Irq> {
        // There may be a thousand of them, and as many interrupts: they need not be compared.
        if nic.is_software() {
            return Vec::new();
        }
        // Those that the kernel names, where it does.
        let told: BTreeSet<u32> = nic.queues.iter().filter_map(|queue| queue.irq).collect();
        let own = |irq: &&Irq| told.contains(&irq.number) || irq.is_of(nic);
        self.irqs.iter().filter(own).collect()
    }

    /// Those of a port's queues that no CPU of these serves: `near` are the CPUs of its node.
    /// One whose CPUs are not known is not counted.
    pub fn remote(&self, nic: &Nic, near: &[u32]) -> Vec<&Irq> {
        let queues = self.of(nic).into_iter().filter(|irq| irq.queue().is_some());
        let known = queues.filter(|irq| !irq.effective.is_empty());
        known
            .filter(|irq| !irq.effective.iter().any(|cpu| near.contains(cpu)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::nic::Queue;

    fn irq(number: u32, chip: &str, name: &str) -> Irq {
        Irq {
            number,
            chip: chip.to_owned(),
            name: name.to_owned(),
            ..Irq::default()
        }
    }

    #[test]
    fn names_tell_queues() {
        use Direction::{Rx, Tx};
        for (name, want) in [
            ("eth0-TxRx-3", Some((3, None))),
            ("eth0-Tx-Rx-12", Some((12, None))),
            ("mlx5_comp7@pci:0000:03:00.0", Some((7, None))),
            ("virtio2-input.0", Some((0, Some(Rx)))),
            ("virtio2-output.1", Some((1, Some(Tx)))),
            ("ixgbe: eth0-rx-5", Some((5, Some(Rx)))),
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
        let nic = Nic {
            name: "eth1".to_owned(),
            ..Nic::default()
        };
        let remote = all.remote(&nic, &[0, 1, 2, 3]);
        assert_eq!(remote.iter().map(|irq| irq.number).collect::<Vec<_>>(), [3]);
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
        let mut nic = Nic {
            name: "eth1".to_owned(),
            ..Nic::default()
        };
        assert_eq!(numbers(&nic), [1, 5]);
        nic.pci = "0000:03:00.0".to_owned();
        nic.device = "virtio1".to_owned();
        nic.queues.push(Queue {
            direction: Direction::Rx,
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
        assert_eq!(
            numbers(&software),
            [0; 0],
            "one of the name, in another namespace"
        );
        let unknown = Nic {
            kind: String::new(),
            driver: String::new(),
            ..software
        };
        assert_eq!(numbers(&unknown), [1, 5]);
    }
}
