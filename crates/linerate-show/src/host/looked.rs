//! What an answer of "nothing odd" is based on: which parts of a machine were read, and which were not.

use linerate_facts::Inventory;

use super::super::words::count;

/// Largest number of unread parts that the first screen names.
const NAMED: usize = 4;

/// The parts that were read: `16 CPUs, 1 node, memory, 3 PCI devices, 3 ports, 33 settings`.
pub(super) fn read(inventory: &Inventory) -> String {
    let counted = |n: usize, what: &str| (n > 0).then(|| count(n as u64, what));
    let modules = inventory.memory.modules.as_ref();
    let rdma = inventory.infiniband.devices.iter();
    let parts = [
        counted(inventory.processors.cpus.len(), "CPU"),
        counted(inventory.processors.nodes.len(), "node"),
        inventory.memory.total.map(|_| "memory".to_owned()),
        counted(modules.map_or(0, Vec::len), "memory slot"),
        counted(inventory.pci.len(), "PCI device"),
        counted(inventory.network.nics.len(), "port"),
        counted(rdma.map(|device| device.ports.len()).sum(), "RDMA port"),
        counted(inventory.interrupts.irqs.len(), "interrupt"),
        counted(inventory.storage.disks().count(), "disk"),
        counted(inventory.tunables.len(), "setting"),
        inventory.conntrack.map(|_| "the table of connections".to_owned()),
        inventory.busy.as_ref().map(|_| "what runs now".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Names of the parts that were not read: the first few, and how many more facts are unknown.
pub(super) fn not_read(inventory: &Inventory) -> String {
    let ports_of_files = inventory.lacks("facts.network") && !inventory.network.nics.is_empty();
    let parts = [
        (inventory.processors.cpus.is_empty(), "CPUs"),
        (inventory.network.nics.is_empty(), "ports"),
        (ports_of_files, "offloads, rings and driver counters of ports"),
        (inventory.lacks("facts.pci"), "PCI devices"),
        (inventory.lacks("facts.pci.links"), "PCI links"),
        (inventory.interrupts.irqs.is_empty(), "interrupts"),
        (inventory.tunables.is_empty(), "settings"),
        (inventory.memory.modules.is_none(), "memory modules"),
        (inventory.lacks("facts.block"), "disks"),
        (inventory.busy.is_none(), "what runs now"),
    ];
    let all: Vec<&str> =
        parts.into_iter().filter(|(lacks, _)| *lacks).map(|(_, name)| name).collect();
    let shown = &all[..all.len().min(NAMED)];
    match (shown, all.len() - shown.len(), inventory.gaps.len()) {
        ([], _, 0) => String::new(),
        ([], _, gaps) => count(gaps as u64, "fact"),
        (shown, 0, _) => shown.join(", "),
        (shown, more, _) => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::{Gap, Tunable, cpu::Cpu};

    use super::*;

    #[test]
    fn parts_are_read_or_not() {
        let mut inventory = Inventory::default();
        assert_eq!(read(&inventory), "");
        assert_eq!(not_read(&inventory), "CPUs, ports, interrupts, settings and 2 more");
        inventory.processors.cpus = vec![Cpu::default(), Cpu::default()];
        inventory.tunables = vec![Tunable { name: "a".to_owned(), value: "1".to_owned() }];
        assert_eq!(read(&inventory), "2 CPUs, 1 setting");
        assert_eq!(not_read(&inventory), "ports, interrupts, memory modules, what runs now");
    }

    #[test]
    fn what_only_a_kernel_answers_is_named_of_a_tree() {
        let mut inventory = Inventory::default();
        inventory.network.nics = vec![linerate_facts::nic::Nic::default()];
        inventory.gaps =
            vec![Gap { what: "facts.network".to_owned(), why: String::new(), hint: String::new() }];
        assert!(
            not_read(&inventory)
                .starts_with("CPUs, offloads, rings and driver counters of ports, ")
        );
    }
}
