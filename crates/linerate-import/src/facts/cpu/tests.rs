use linerate_units::Bytes;

use super::super::samples::{ids, merged, of, text, words};

#[test]
fn nodes_of_numactl() {
    let (all, notes) = of(&["numactl/two-nodes.txt"]);
    let [first, second] = &all.processors.nodes[..] else { panic!() };
    assert_eq!(second.known_cpus().first(), Some(&32));
    assert_eq!(first.total, Some(Bytes(773_271 << 20)));
    assert_eq!(second.free, Some(Bytes(684_984 << 20)));
    assert_eq!(first.distances, [10, 32]);
    assert_eq!(words(&notes), [""; 0]);
    let cut = text("numactl/two-nodes.txt").replace("  0:  10  32", "  0:  10");
    let (all, notes) = merged(&[&cut]);
    assert!(all.processors.nodes[0].distances.is_empty());
    assert_eq!(notes.len(), 1);
    assert!(crate::read(b"available: 2 nodes (0-1)\n").is_err());
}

#[test]
fn lscpu_of_old_and_new_versions() {
    let (all, _) = of(&["lscpu/old.txt"]);
    let processors = &all.processors;
    assert_eq!(processors.model, "AMD EPYC 7251 8-Core Processor");
    assert_eq!((processors.cpus.len(), processors.nodes.len()), (16, 4));
    assert_eq!(processors.nodes[3].known_cpus(), [6, 7, 14, 15]);
    assert!(processors.caches.is_empty(), "how many there are is unknown");
    assert_eq!(processors.packages(), None);
    let (all, _) = of(&["lscpu/two-sockets.txt"]);
    let last = all.processors.caches.last().unwrap();
    assert_eq!((last.level, last.size, last.count, last.shared_by), (3, Bytes(20 << 20), 2, 8));
    let (all, _) = of(&["lscpu/virtual.txt"]);
    let platform = &all.machine.platform;
    assert_eq!((platform.guest, platform.hypervisor), (Some(true), "KVM"));
}

#[test]
fn lscpu_tells_whether_clocks_may_rise() {
    let result_of = |value: &str| {
        let text = format!("{}Frequency boost: {value}\n", text("lscpu/old.txt"));
        let (all, _) = merged(&[&text]);
        (all.processors.turbo, ids(&all))
    };
    assert_eq!(result_of("enabled"), (Some(true), vec![]));
    assert_eq!(result_of("disabled"), (Some(false), vec!["turbo-off"]));
}

#[test]
fn lscpu_lists_cores_and_packages() {
    let (all, _) = of(&["lscpu-list/two-sockets.txt"]);
    assert_eq!((all.processors.packages(), all.processors.cores()), (Some(2), Some(16)));
    assert_eq!(all.processors.nodes[1].known_cpus(), [8, 9, 10, 11, 12, 13, 14, 15]);
    let (all, _) = of(&["lscpu-list/hybrid.txt"]);
    assert_eq!(all.processors.cpus[1].siblings, [0, 1]);
    let off = "CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE\n  0    0      0    0 0:0:0:0          yes\n  \
               1    -      -    - -                no\n";
    let (all, _) = merged(&[off]);
    assert_eq!((all.processors.offline.as_slice(), all.processors.cpus.len()), (&[1][..], 1));
}

#[test]
fn interrupts_with_the_cpus_that_served_them() {
    let (all, notes) = of(&["interrupts/virtual.txt"]);
    let irqs = &all.interrupts.irqs;
    let input = irqs.iter().find(|irq| irq.name == "virtio2-input.0").unwrap();
    assert_eq!((input.number, input.total, input.busiest), (38, Some(19_862), Some(1)));
    assert_eq!(input.chip, "PCI-MSIX-0000:00:03.0");
    assert_eq!(all.processors.cpus.len(), 2);
    assert_eq!(words(&notes), [""; 0]);
    let cut =
        text("interrupts/virtual.txt").replace(" 38:          0      19862", " 38:          0");
    let (all, notes) = merged(&[&cut]);
    assert!(all.interrupts.irqs.iter().all(|irq| irq.number != 38));
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn lines_about_nodes_alone_are_lscpu() {
    let (facts, said) = merged(&[
        "$ lscpu | grep NUMA\nNUMA node(s):        2\nNUMA node0 CPU(s):   0-3\nNUMA node1 CPU(s):   4-7\n",
    ]);
    let cpus: Vec<_> = facts.processors.nodes.iter().map(|node| node.cpus.clone()).collect();
    assert_eq!(cpus, [Some(vec![0, 1, 2, 3]), Some(vec![4, 5, 6, 7])]);
    assert_eq!(words(&said), [""; 0]);
}
