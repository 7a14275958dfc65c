//! The inventory of a machine: all facts that can be read before a measurement.

use std::collections::BTreeSet;
use std::time::Duration;

use linerate_facts::pci::Address;
use linerate_facts::{Gap, Inventory};

use super::block::storage_of;
use super::infiniband::{claims, infiniband};
use super::iommu::translations;
use super::irq::interrupts;
use super::nic::network;
use super::{PROC, Reader, few};
use crate::{Machine, gap};

/// Reads all facts of a machine. A fact that cannot be read is empty and has a gap.
///
/// The activity of CPUs and processes needs several readings; `pause` waits for the given time between two of them.
pub fn inventory(machine: &dyn Machine, pause: &dyn Fn(Duration)) -> Inventory {
    let mut reader = Reader { machine, gaps: Vec::new() };
    let cpuinfo = reader.get("cpu", "/proc/cpuinfo", PROC, |text| Ok(text.to_vec()));
    let cpuinfo = cpuinfo.unwrap_or_default();
    let groups = reader.groups();
    let mut inventory = Inventory {
        machine: reader.platform(&cpuinfo, &groups),
        processors: reader.processors(&cpuinfo),
        memory: reader.memory(),
        pci: reader.pci(),
        network: network(machine),
        interrupts: interrupts(machine),
        infiniband: infiniband(machine),
        storage: storage_of(machine, &groups.mounts),
        usb: Vec::new(),
        tunables: reader.tunables(),
        conntrack: reader.conntrack(),
        busy: reader.busy(pause),
        gaps: reader.gaps,
    };
    let kernel = &inventory.machine.kernel;
    translations(machine, kernel, &mut inventory.pci);
    let rdma = &inventory.infiniband;
    let claims = claims(machine, &inventory.pci, &inventory.machine.kernel, rdma);
    inventory.infiniband.claims = claims;
    inventory.gaps.extend(unlisted(&inventory));
    for gaps in [
        &mut inventory.network.gaps,
        &mut inventory.interrupts.gaps,
        &mut inventory.infiniband.gaps,
        &mut inventory.storage.gaps,
    ] {
        inventory.gaps.append(gaps);
    }
    inventory
}

/// Reports devices that contradict the list of the PCI bus: their function is not listed there.
fn unlisted(inventory: &Inventory) -> Option<Gap> {
    let ports = inventory.network.nics.iter().map(|n| (&n.name, &n.pci));
    let rdma = inventory.infiniband.devices.iter();
    let rdma = rdma.map(|device| (&device.name, &device.pci));
    let disks = inventory.storage.disks().map(|disk| (&disk.name, &disk.pci));
    let all: BTreeSet<Address> = inventory.pci.iter().map(|device| device.address).collect();
    let is_listed = |pci: &str| pci.parse().is_ok_and(|address| all.contains(&address));
    let unlisted = ports.chain(rdma).chain(disks);
    let unlisted = unlisted.filter(|(_, pci)| !pci.is_empty() && !is_listed(pci));
    let names: Vec<String> = unlisted.map(|(name, pci)| format!("{name} ({pci})")).collect();
    (!all.is_empty() && !names.is_empty()).then(|| {
        let why =
            format!("/sys/bus/pci lists no function that these are attached to: {}", few(&names));
        gap("facts.pci.place", &why, "lspci -D")
    })
}

#[cfg(test)]
mod tests {
    use linerate_facts::{Inventory, odd};
    use proptest::prelude::*;

    use crate::testing::tree;
    use crate::{Answer, Capture, Captured, Live, Replay, inventory};

    /// Files whose content decides which other files are read.
    const FILES: [&str; 15] = [
        "/proc/cpuinfo",
        "/proc/interrupts",
        "/proc/meminfo",
        "/proc/self/cgroup",
        "/proc/self/mountinfo",
        "/proc/stat",
        "/proc/7/stat",
        "/sys/bus/pci/devices/0000:00:00.0/config",
        "/sys/bus/pci/devices/0000:00:00.0/current_link_speed",
        "/sys/bus/pci/devices/0000:00:00.0/numa_node",
        "/sys/class/block/sda/size",
        "/sys/class/infiniband/mlx5_0/ports/1/state",
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/node/node0/meminfo",
        "/sys/firmware/dmi/tables/DMI",
    ];

    #[test]
    fn of_a_machine_without_files_nothing_is_known_and_all_is_missing() {
        let got = inventory(&Replay::new(Captured::default()), &|_| {});
        let known = Inventory { gaps: got.gaps.clone(), ..Inventory::default() };
        assert_eq!(got, known);
        let mut whats: Vec<_> = got.gaps.iter().map(|g| g.what.as_str()).collect();
        for fact in [
            "busy",
            "cpu",
            "name",
            "kernel",
            "nodes",
            "memory.total",
            "pci",
            "network",
            "irq.counts",
            "infiniband",
            "block",
            "filesystems",
            "tunables",
        ] {
            let what = format!("facts.{fact}");
            assert!(whats.contains(&what.as_str()), "{what} in {whats:?}");
        }
        whats.sort_unstable();
        whats.dedup();
        assert_eq!(whats.len(), got.gaps.len(), "one gap for each fact");
    }

    #[test]
    fn what_says_where_our_groups_and_file_systems_are_is_read_once() {
        let machine = Capture::new(Live::new());
        inventory(&machine, &|_| {});
        let captured = machine.captured();
        for path in ["/proc/self/cgroup", "/proc/self/mountinfo"] {
            assert_eq!(captured.files[path].len(), 1, "{path}");
        }
    }

    #[test]
    fn a_disk_on_a_function_that_the_bus_does_not_list_is_a_contradiction() {
        let place = |address: &str| {
            let root = tree(&[
                ("/sys/bus/pci/devices/0000:01:00.0/class", "0x010802\n"),
                ("/sys/class/block/nvme0n1", "->../../devices/x/nvme0n1"),
                ("/sys/devices/x/nvme0n1/size", "8\n"),
                ("/sys/devices/x/uevent", &format!("PCI_SLOT_NAME={address}\n")),
            ]);
            let got = inventory(&Live::under(root.path()).unwrap(), &|_| {});
            assert_eq!(got.storage.devices[0].transport, "pcie");
            let gap = got.gaps.into_iter().find(|g| g.what == "facts.pci.place");
            gap.map(|gap| gap.why)
        };
        assert_eq!(place("0000:01:00.0"), None);
        let why = place("0000:02:00.0").unwrap();
        assert!(why.ends_with("nvme0n1 (0000:02:00.0)"), "{why}");
    }

    proptest! {
        #[test]
        fn arbitrary_files_never_panic(
            texts in proptest::collection::vec(any::<Vec<u8>>(), FILES.len()),
            name: String,
        ) {
            let mut captured = Captured::default();
            for (path, text) in FILES.iter().zip(texts) {
                let answer = Answer::Reply(text);
                captured.files.insert((*path).to_owned(), vec![answer.clone(), answer]);
            }
            for (path, known) in [
                ("/proc", "7"),
                ("/sys/bus/pci/devices", "0000:00:00.0"),
                ("/sys/class/block", "sda"),
                ("/sys/class/infiniband", "mlx5_0"),
                ("/sys/class/infiniband/mlx5_0/ports", "1"),
                ("/sys/devices/system/node", "node0"),
            ] {
                let answer = Answer::Reply(vec![name.clone(), known.to_owned()]);
                captured.lists.insert(path.to_owned(), vec![answer.clone(), answer]);
            }
            let found = inventory(&Replay::new(captured.clone()), &|_| {});
            let _ = odd::find(&found);
            captured.mask();
            let masked = inventory(&Replay::new(captured), &|_| {});
            prop_assert_eq!(found.pci, masked.pci);
        }
    }
}
