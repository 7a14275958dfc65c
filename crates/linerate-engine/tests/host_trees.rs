//! Facts of other machines, from parts of their /proc and /sys.

use std::path::Path;

use linerate_core::units::Bytes;
use linerate_engine::host::{Live, facts, infiniband, interrupts, network, storage};

#[test]
fn what_a_tree_holds_is_right_and_what_it_lacks_is_a_gap() {
    for (tree, model, nodes, l2_kib) in [
        (
            "20em64t-hybrid-1p6c2t+2ca4co1t",
            "13th Gen Intel(R) Core(TM) i7-1370P",
            1,
            1280,
        ),
        (
            "32em64t-2n8c+1mic",
            "Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz",
            2,
            256,
        ),
        (
            "40intel64-2g2n4c+pci",
            "Intel(R) Xeon(R) CPU E7- 4870  @ 2.40GHz",
            4,
            256,
        ),
    ] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/hosts")
            .join(tree);
        let facts = facts(&Live::under(&root).unwrap(), "127.0.0.1".parse().unwrap());
        assert_eq!(facts.cpu_model, model, "{tree}");
        assert_eq!(facts.nodes, nodes, "{tree}");
        assert_eq!(facts.l2_cache, Some(Bytes(l2_kib << 10)), "{tree}");
        // Neither the network nor the process of the machine that runs this test may show.
        assert_eq!(facts.port, None, "{tree}");
        assert_eq!(
            (facts.name.as_str(), facts.boot_id.as_str()),
            ("", ""),
            "{tree}"
        );
        assert!(facts.cpus.is_empty() && facts.ticks_per_sec == 0, "{tree}");
        let gaps: Vec<_> = facts.gaps.iter().map(|g| g.what.as_str()).collect();
        let want = [
            "facts.cpus",
            "facts.name",
            "facts.boot_id",
            "facts.kernel",
            "facts.port",
            "facts.congestion_available",
            "facts.congestion_default",
            "facts.tcp_rmem",
            "facts.tcp_wmem",
            "facts.rmem_max",
            "facts.wmem_max",
            "facts.ticks_per_sec",
        ];
        assert_eq!(gaps, want, "{tree}");
    }
}

#[test]
fn a_tree_without_ports_disks_and_interrupts_has_gaps_and_nothing_of_this_machine() {
    let trees = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts");
    let machine = Live::under(&trees.join("40intel64-2g2n4c+pci")).unwrap();
    let network = network(&machine);
    let interrupts = interrupts(&machine);
    let infiniband = infiniband(&machine);
    let storage = storage(&machine);
    assert!(network.nics.is_empty() && interrupts.irqs.is_empty());
    assert!(infiniband.devices.is_empty() && storage.devices.is_empty());
    let gaps = [network.gaps, interrupts.gaps, infiniband.gaps, storage.gaps].concat();
    let whats: Vec<_> = gaps.iter().map(|g| g.what.as_str()).collect();
    let want = [
        "facts.network",
        "facts.network.flow_entries",
        "facts.irq.counts",
        "facts.infiniband",
        "facts.block",
        "facts.filesystems",
    ];
    assert_eq!(whats, want);
    assert!(gaps.iter().all(|g| !g.hint.is_empty()));
}
