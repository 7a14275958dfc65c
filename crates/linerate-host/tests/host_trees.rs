//! Tests that read facts of other machines from parts of their /proc and /sys.

use std::net::IpAddr;
use std::path::Path;

use linerate_facts::Gap;
use linerate_facts::block::Layer;
use linerate_facts::infiniband::{LinkState, PhysicalState};
use linerate_facts::nic::Duplex;
use linerate_host::{Live, facts, infiniband, interrupts, network, storage};
use linerate_units::{Bytes, Rate};

fn tree(name: &str) -> Live {
    let trees = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts");
    Live::under(&trees.join(name)).expect("the tree lies here")
}

#[test]
fn what_a_tree_holds_is_right_and_what_it_lacks_is_a_gap() {
    for (tree, model, nodes, l2_kib) in [
        ("20em64t-hybrid-1p6c2t+2ca4co1t", "13th Gen Intel(R) Core(TM) i7-1370P", 1, 1280),
        ("32em64t-2n8c+1mic", "Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz", 2, 256),
        ("40intel64-2g2n4c+pci", "Intel(R) Xeon(R) CPU E7- 4870  @ 2.40GHz", 4, 256),
    ] {
        let facts = facts(&self::tree(tree), "127.0.0.1".parse::<IpAddr>().unwrap());
        assert_eq!(facts.cpu_model, model, "{tree}");
        assert_eq!(facts.nodes, nodes, "{tree}");
        assert_eq!(facts.l2_cache, Some(Bytes(l2_kib << 10)), "{tree}");
        // No facts of the network or the process of the machine that runs this test may appear.
        assert_eq!(facts.port, None, "{tree}");
        assert_eq!((facts.name.as_str(), facts.boot_id.as_str()), ("", ""), "{tree}");
        assert!(facts.cpus.is_empty() && facts.ticks_per_sec == 0, "{tree}");
        let gaps: Vec<_> = facts.gaps.iter().map(|g| g.what.as_str()).collect();
        let want = [
            "facts.cpus",
            "facts.port",
            "facts.name",
            "facts.boot_id",
            "facts.kernel",
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
    let machine = tree("20em64t-hybrid-1p6c2t+2ca4co1t");
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
        "facts.irq.counts",
        "facts.infiniband",
        "facts.block",
        "facts.filesystems",
    ];
    assert_eq!(whats, want);
    assert!(gaps.iter().all(|g| !g.hint.is_empty()));
}

/// A server of 2013 with four Ethernet ports, of which the tree contains two, and an InfiniBand card.
const SERVER: &str = "40intel64-2g2n4c+pci";

fn whats(gaps: &[Gap]) -> Vec<&str> {
    gaps.iter().map(|g| g.what.as_str()).collect()
}

#[test]
fn the_ports_of_a_tree_are_those_of_its_own_sys() {
    let network = network(&tree(SERVER));
    // There is no kernel to query, and the link to the tree's loopback port has no target.
    let want = ["facts.network", "facts.nic"];
    assert_eq!(whats(&network.gaps), want);
    let [eth0, eth1, ib0] = &network.nics[..] else { panic!("{:?}", network.nics) };
    assert_eq!((eth0.name.as_str(), eth0.driver.as_str()), ("eth0", "bnx2"));
    assert_eq!((eth0.pci.as_str(), eth0.node), ("0000:02:00.0", None));
    assert_eq!((eth0.up, eth0.is_virtual), (true, false));
    assert_eq!(eth0.link.speed, Some(Rate(1_000_000_000)));
    assert_eq!(eth0.link.duplex, Some(Duplex::Full));
    assert_eq!((eth0.queues.len(), eth0.queues[7].number), (8, 7));
    assert_eq!(eth0.queues[0].cpus, Some(vec![]));
    assert_eq!(eth0.errors.rx_crc, Some(0));
    assert_eq!((eth1.up, eth1.link.speed, eth1.link.duplex), (false, None, None));
    assert_eq!((ib0.pci.as_str(), ib0.node), ("0000:43:00.0", Some(2)));
    assert_eq!((ib0.mtu, ib0.link.speed), (Some(2044), None));
}

#[test]
fn the_infiniband_card_of_a_tree_is_healthy() {
    let infiniband = infiniband(&tree(SERVER));
    assert_eq!(whats(&infiniband.gaps), ["facts.infiniband.allowed"]);
    let [card] = &infiniband.devices[..] else { panic!("{:?}", infiniband.devices) };
    assert_eq!((card.name.as_str(), card.model.as_str()), ("qib0", "InfiniPath_QLE7340"));
    assert_eq!((card.pci.as_str(), card.node), ("0000:43:00.0", Some(2)));
    let port = &card.ports[0];
    assert_eq!(port.state, Some(LinkState::Active));
    assert_eq!(port.physical, Some(PhysicalState::LinkUp));
    assert_eq!((port.lid, port.sm_lid), (Some(0x12a), Some(1)));
    let rate = port.rate.as_ref().unwrap();
    assert_eq!((rate.rate, rate.width), (Rate(40_000_000_000), 4));
    assert_eq!((rate.speed.as_str(), port.counters.len()), ("QDR", 17));
}

#[test]
fn the_disk_of_a_tree_is_found_below_its_partition() {
    let storage = storage(&tree(SERVER));
    // The link to a memory disk has no target. The tree contains neither mounts nor SCSI hosts.
    let want = ["facts.block.size", "facts.filesystems", "facts.block.transport"];
    assert_eq!(whats(&storage.gaps), want);
    let leaves = storage.leaves("sda1");
    assert_eq!(storage.device("sda1").unwrap().layer, Layer::Partition);
    let [disk] = leaves[..] else { panic!("{leaves:?}") };
    assert_eq!((disk.name.as_str(), disk.model.as_str()), ("sda", "PERC H700"));
    assert_eq!(disk.size, Some(Bytes(3_512_991_744 * 512)));
    assert_eq!((disk.pci.as_str(), disk.queue.depth), ("0000:01:00.0", Some(128)));
    assert_eq!((disk.queue.scheduler.as_str(), disk.queue.rotational), ("cfq", Some(true)));
    assert_eq!(disk.queue.largest, Some(Bytes(128 << 10)));
}
