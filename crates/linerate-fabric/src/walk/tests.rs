use proptest::prelude::*;

use super::super::fake::Fake;
use super::super::mad::LEN;
use super::super::mad::node::NodeKind;
use super::*;
use linerate_ceiling::infiniband::Speed;

fn walk(fake: &Fake, host: &str) -> Network {
    let mut drive = fake.drive(host, 1);
    let mut walk = Walk::default();
    drive.all(&mut walk);
    assert!(drive.kept_limits(), "{:?}", drive.most);
    assert!(walk.is_done());
    walk.into_network()
}

fn size(network: &Network) -> (usize, usize) {
    (network.nodes.len(), network.links().count())
}

/// Whether the network has a finding of two nodes with the same GUID.
fn is_doubled(network: &Network) -> bool {
    let found = super::super::finding::find(network);
    found.iter().any(|finding| finding.id == "duplicate-guid")
}

fn gaps(network: &Network) -> Vec<Why> {
    network.gaps.iter().map(|gap| gap.why).collect()
}

#[test]
fn all_of_a_fat_tree_is_found_within_limits() {
    let mut fake = Fake::fat_tree(4, 4, 2);
    fake.manage("host-1-1", 1);
    let mut drive = fake.drive("host-4-4", 1);
    let mut walk = Walk::default();
    drive.all(&mut walk);
    let network = walk.network();
    assert_eq!(size(network), (16 + 4 + 2, 16 + 8));
    assert_eq!(network.gaps, []);
    // The number of requests without a reply reached its limit, and did not exceed it.
    assert_eq!(drive.most[0], OUTSTANDING);
    assert!(drive.kept_limits(), "{:?}", drive.most);
    let manager = network.managers().next().unwrap();
    assert_eq!(network.nodes[manager.0].name(), "host-1-1");
    assert_eq!(network.by_name("leaf3").len(), 1);
    let read = network.ports().filter(|(_, port)| port.counters.len() == 2);
    assert_eq!(read.count(), 2 * network.links().count());
    let keys = network.ports().filter(|(_, port)| port.keys.is_some());
    assert_eq!(keys.count(), 16);
}

#[test]
fn only_what_a_host_can_see_is_found() {
    let mut fake = Fake::two_ports();
    fake.manage("SRV", 1);
    let network = walk(&fake, "CLB");
    assert_eq!(size(&network), (2, 1));
    let server = network.by_name("SRV")[0];
    let other = network.port(PortAt { node: server, port: 1 });
    assert!(other.unwrap().is_active() && other.unwrap().counters.is_empty());
}

#[test]
fn a_loop_of_switches_is_found_once() {
    let mut fake = Fake::default();
    let host = fake.host("H", 1);
    let ring: Vec<usize> = (0..4).map(|n| fake.switch(&format!("S{n}"), 4)).collect();
    for n in 0..4 {
        fake.link((ring[n], 1), (ring[(n + 1) % 4], 2));
    }
    fake.link((host, 1), (ring[0], 3));
    // A cable from a switch to itself.
    fake.link((ring[2], 3), (ring[2], 4));
    let network = walk(&fake, "H");
    assert_eq!(size(&network), (5, 6));
    assert!(!is_doubled(&network));
}

#[test]
fn two_ports_of_an_adapter_on_one_network_are_asked_by_their_own_routes() {
    let mut fake = Fake::star(2);
    let two = fake.host("TWO", 2);
    let switch = fake.node("SW");
    fake.link((two, 1), (switch, 3));
    fake.link((two, 2), (switch, 4));
    fake.manage("H1", 1);
    fake.port((two, 1)).keys = vec![0x8001];
    fake.port((two, 2)).keys = vec![0x8002];
    let standby = fake.port((two, 2));
    standby.manager = Some((2, 1));
    standby.capabilities |= 1 << 1;
    let network = walk(&fake, "H2");
    assert_eq!(size(&network), (4, 4));
    let node = network.by_name("TWO")[0];
    for (port, key) in [(1, 0x8001), (2, 0x8002)] {
        let port = network.port(PortAt { node, port }).unwrap();
        let keys: Vec<u16> = port.keys.iter().flatten().map(|key| key.0).collect();
        assert_eq!((keys, port.counters.len()), (vec![key], 2));
    }
    assert_eq!(network.managers().count(), 2);
    assert!(!is_doubled(&network));
}

#[test]
fn half_of_the_datagrams_of_a_node_may_be_lost() {
    let mut fake = Fake::star(4);
    fake.manage("H1", 1);
    let lossy = fake.node("H3");
    fake.nodes[lossy].loss = 50;
    for seed in 0..20 {
        fake.seed = seed;
        let network = walk(&fake, "H2");
        assert_eq!(network.nodes.len(), 5);
        let of = |name| &network.nodes[network.by_name(name)[0]];
        assert!(of("H3").lost > 0 && of("H3").sent > of("H3").lost);
        assert_eq!(of("H4").lost, 0);
    }
}

#[test]
fn a_node_that_stops_to_answer_is_given_up() {
    let mut fake = Fake::star(30);
    fake.manage("H1", 1);
    let dead = fake.node("H7");
    fake.nodes[dead].loss = 100;
    let network = walk(&fake, "H2");
    assert_eq!(network.nodes.len(), 30);
    assert_eq!(gaps(&network), [Why::NoReply(TRIES)]);
    assert_eq!(network.gaps[0].from.unwrap().port, 7);
    // The switch answers once, and then no more: the walk does not wait for a lost request of each of its ports.
    let mut drive = fake.drive("H2", 1);
    let switch = fake.node("SW");
    let mut walk = Walk::default();
    drive.fake.nodes[dead].loss = 0;
    while walk.network().nodes.len() < 2 {
        drive.step(&mut walk);
    }
    drive.fake.nodes[switch].loss = 100;
    drive.run(&mut walk);
    let of_switch = walk.network().gaps.iter().filter(|gap| gap.node == Some(1));
    let whys: Vec<Why> = of_switch.map(|gap| gap.why).collect();
    let requested = whys.iter().filter(|why| **why == Why::NoReply(TRIES));
    assert_eq!(requested.count(), queues::OUTSTANDING_OF_NODE);
    assert!(whys.contains(&Why::NotSent));
}

#[test]
fn lies_about_ports_do_no_harm() {
    for claims in [
        [Some(255), None],
        [Some(0), None],
        [None, Some(200)],
        [None, Some(0)],
        [Some(255), Some(255)],
    ] {
        let mut fake = Fake::star(3);
        fake.manage("H1", 1);
        let liar = fake.node("SW");
        fake.nodes[liar].claims = claims;
        let network = walk(&fake, "H2");
        assert!(network.nodes.len() >= 2, "{claims:?}");
        assert!(!is_doubled(&network), "{claims:?}");
        assert!(!network.gaps.is_empty(), "{claims:?}");
    }
}

#[test]
fn replies_may_be_late_doubled_or_for_others() {
    let mut fake = Fake::star(4);
    fake.manage("H1", 1);
    for node in &mut fake.nodes {
        node.delay = Nanos::from_millis(700);
    }
    let mut drive = fake.drive("H2", 1);
    drive.copies = 3;
    let mut walk = Walk::default();
    drive.deliver(Nanos(0), &[0xa5; LEN]);
    drive.all(&mut walk);
    assert_eq!(size(walk.network()), (5, 4));
    assert_eq!(walk.network().gaps, []);
    assert!(!walk.receive(drive.now, &[0; LEN]) && !walk.receive(drive.now, &[]));
}

#[test]
fn a_request_that_was_not_delivered_is_sent_again_once() {
    let mut walk = Walk::default();
    let (first, _) = walk.request(Nanos(0), 8).unwrap();
    walk.lost(first);
    let (second, _) = walk.request(Nanos(1_000_000), 8).unwrap();
    assert_ne!(first, second);
    // The loss of the first try is reported a second time.
    walk.lost(first);
    assert!(walk.request(Nanos(2_000_000), 8).is_none());
    for _ in 2..TRIES {
        walk.expire(Nanos(u64::MAX));
        assert!(walk.request(Nanos(u64::MAX / 2), 8).is_some());
    }
    walk.expire(Nanos(u64::MAX));
    assert!(walk.is_done());
    assert_eq!(gaps(walk.network()), [Why::NoReply(TRIES)]);
}

#[test]
fn requests_are_paced() {
    let mut walk = Walk::within(LIMITS);
    walk.pace(1000);
    let mut fake = Fake::fat_tree(4, 4, 4);
    fake.manage("host-1-1", 1);
    let mut drive = fake.drive("host-1-2", 1);
    drive.run(&mut walk);
    let held = walk.sent().saturating_sub(MOST_IN_BURST + 1);
    assert!(held > 50, "{}", walk.sent());
    assert!(drive.now >= Nanos::from_millis(held), "{} in {:?}", held, drive.now);
}

/// The reply of an endless network: each link leads to a new switch.
fn endless(mad: &[u8; LEN]) -> [u8; LEN] {
    let mut reply = *mad;
    reply[3] = 0x81;
    reply[4] = 0x80;
    let route = &mad[129..129 + usize::from(mad[7])];
    match mad[17] {
        0x11 => {
            reply[64..68].copy_from_slice(&[1, 1, 2, 255]);
            let guid = route.iter().fold(7_u64, |h, p| h.wrapping_mul(257) + u64::from(*p));
            reply[76..84].copy_from_slice(&guid.to_be_bytes());
            reply[100] = 255;
        }
        0x15 => reply[96..98].copy_from_slice(&[0x02, 0x50]),
        _ => {}
    }
    reply
}

#[test]
fn endless_new_nodes_end() {
    let limits = Limits { nodes: 300, ports: 20_000 };
    let mut walk = Walk::within(limits);
    let mut now = Nanos(0);
    while !walk.is_done() {
        now = Nanos(now.0 + 1_000_000);
        while let Some((transaction, get)) = walk.request(now, 64) {
            let reply = endless(&get.encode(transaction));
            assert!(walk.receive(now, &reply));
        }
    }
    let network = walk.network();
    assert!(network.nodes.len() <= limits.nodes);
    assert!(network.ports().count() <= limits.ports + limits.nodes);
    assert!(gaps(network).iter().all(|why| *why == Why::TooMany));
    assert!(network.gaps.len() <= limits.ports + limits.nodes);
    // A walk has room for every possible subnet, and not for much more.
    let most = LIMITS.nodes;
    assert!((0xbfff..65_000).contains(&most));
}

#[test]
fn a_route_of_more_than_63_links_is_not_taken() {
    let mut fake = Fake::default();
    let mut last = (fake.host("H", 1), 1);
    for n in 1..=70 {
        let node = fake.add(&format!("S{n}"), NodeKind::Switch, 2);
        fake.link(last, (node, 1));
        last = (node, 2);
    }
    let network = walk(&fake, "H");
    assert_eq!(network.nodes.len(), 1 + 63);
    assert_eq!(gaps(&network), [Why::TooFar]);
}

#[test]
fn lids_that_change_do_not_mix_counters_of_two_nodes() {
    let mut fake = Fake::star(4);
    fake.manage("H1", 1);
    let [a, b] = ["H3", "H4"].map(|name| (fake.node(name), 1));
    fake.port(b).counters[0] = 1000;
    let mut drive = fake.drive("H2", 1);
    let mut walk = Walk::default();
    drive.run(&mut walk);
    walk.read_counters();
    drive.run(&mut walk);
    // The two hosts exchange their LIDs.
    let [low, high] = [a, b].map(|at| fake.port(at).lid);
    drive.fake.port(a).lid = high;
    drive.fake.port(b).lid = low;
    let switch = fake.node("SW");
    drive.fake.nodes[switch].forwarding.swap(low.into(), high.into());
    walk.read_counters();
    drive.run(&mut walk);
    let network = walk.network();
    for (name, lid) in [("H3", high), ("H4", low)] {
        let node = network.by_name(name)[0];
        let port = network.port(PortAt { node, port: 1 }).unwrap();
        assert_eq!((port.counters.len(), port.info.unwrap().lid), (0, lid));
    }
    assert_eq!(gaps(network), [Why::LidChanged; 2]);
    // The next reading has the counters of the right node.
    walk.read_counters();
    drive.run(&mut walk);
    let node = walk.network().by_name("H4")[0];
    let port = walk.network().port(PortAt { node, port: 1 }).unwrap();
    assert_eq!(port.counters[0].1.values[0], 1000);
}

#[test]
fn more_partition_keys_are_read_until_a_block_is_empty() {
    let mut fake = Fake::star(2);
    let own = (fake.node("H2"), 1);
    fake.port(own).keys = (1..=70).collect();
    let keys = |fake: &Fake| {
        let network = walk(fake, "H1");
        let node = network.by_name("H2")[0];
        let port = network.port(PortAt { node, port: 1 });
        port.unwrap().keys.as_ref().unwrap().len()
    };
    assert_eq!(keys(&fake), 70);
    fake.nodes[own.0].partitions = 64;
    assert_eq!(keys(&fake), 64);
}

#[test]
fn a_part_of_the_partition_keys_is_not_kept() {
    let own = |keys: u16, lost: Option<u16>| {
        let mut fake = Fake::star(1);
        fake.port((0, 1)).keys = (1..=keys).collect();
        fake.nodes[0].partitions = 1024;
        let (mut walk, mut now) = (Walk::default(), Nanos(0));
        while !walk.is_done() {
            now = Nanos(now.0 + 1_000_000_000);
            walk.expire(now);
            while let Some((transaction, get)) = walk.request(now, 64) {
                let is_lost = lost.map(Attribute::PartitionKeys) == Some(get.attribute);
                let answer = fake.answer((0, 1), get.lid(), &get.encode(transaction));
                if let Some((_, mad)) = answer.filter(|_| !is_lost) {
                    walk.receive(now, &mad);
                }
            }
        }
        let network = walk.into_network();
        let keys = network.port(network.own().unwrap()).unwrap().keys.as_ref();
        (keys.map(Vec::len), gaps(&network).len())
    };
    assert_eq!(own(40, None), (Some(40), 0));
    assert_eq!(own(40, Some(1)), (None, 1));
    // The port reports more blocks of keys than a walk requests.
    assert_eq!(own(224, None), (Some(224), 0));
    assert_eq!(own(300, None), (None, 1));
}

#[test]
fn a_request_that_this_host_cannot_send_is_given_up_at_once() {
    let mut walk = Walk::default();
    let (first, _) = walk.request(Nanos(0), 8).unwrap();
    walk.cannot_send(first);
    assert!(walk.is_done());
    assert_eq!(gaps(walk.network()), [Why::NotPossible]);
}

#[test]
fn a_reading_has_both_halves_of_the_counters_or_none() {
    let readings = |mute: Vec<u16>| {
        let mut fake = Fake::star(2);
        fake.manage("H1", 1);
        let own = fake.node("H2");
        fake.nodes[own].counting = [0x1200, 0];
        fake.nodes[own].mute = mute;
        let network = walk(&fake, "H1");
        let node = network.by_name("H2")[0];
        network.nodes[node].ports[&1].counters.len()
    };
    assert_eq!(readings(vec![]), 2);
    assert_eq!(readings(vec![0x1d]), 0);
}

#[test]
fn a_busy_node_is_asked_again() {
    let mut walk = Walk::default();
    let (first, get) = walk.request(Nanos(0), 8).unwrap();
    let mut busy = get.encode(first);
    (busy[3], busy[5]) = (0x81, 0x01);
    assert!(!walk.receive(Nanos(1), &busy));
    walk.expire(Nanos(u64::MAX / 2));
    assert!(walk.request(Nanos(u64::MAX / 2), 8).is_some() && walk.network().gaps.is_empty());
}

#[test]
fn a_limited_member_asks_full_members_alone() {
    let mut fake = Fake::star(3);
    fake.manage("H1", 1);
    fake.port((0, 1)).keys = vec![0x7fff];
    fake.port((1, 1)).keys = vec![0xffff];
    fake.port((2, 1)).keys = vec![0x7fff];
    let network = walk(&fake, "H1");
    let read = |name: &str| {
        let node = &network.nodes[network.by_name(name)[0]];
        node.ports.values().any(|port| !port.counters.is_empty())
    };
    assert_eq!(["H2", "H3", "SW"].map(read), [true, false, false]);
    assert!(gaps(&network).contains(&Why::LimitedMember(3)), "{:?}", network.gaps);
    // A full member reaches all nodes.
    fake.port((0, 1)).keys = vec![0xffff];
    assert_eq!(gaps(&walk(&fake, "H1")), []);
}

#[test]
fn fdr10_is_asked_for_only_where_it_may_be() {
    let speed = |vendor, refused: &[u16]| {
        let mut fake = Fake::star(2);
        let own = (fake.node("H2"), 1);
        fake.rate(own, 4, Speed::Fdr10);
        fake.port(own).own_speed = [1; 3];
        fake.nodes[own.0].vendor = vendor;
        fake.nodes[own.0].refused = refused.to_vec();
        let network = walk(&fake, "H1");
        assert_eq!(network.gaps, []);
        let node = network.by_name("H2")[0];
        let port = network.port(PortAt { node, port: 1 }).unwrap();
        port.info.unwrap().speed.active
    };
    assert_eq!(speed(0x2c9, &[]), Some(Speed::Fdr10));
    assert_eq!(speed(0x1175, &[]), Some(Speed::Qdr));
    assert_eq!(speed(0x2c9, &[0xff90]), Some(Speed::Qdr));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_request_ends(
        seed: u64,
        losses in proptest::collection::vec(0..=100_u32, 9),
        delays in proptest::collection::vec(0..400_u64, 9),
        copies in 1..3_usize,
    ) {
        let mut fake = Fake::fat_tree(2, 2, 2);
        fake.manage("host-1-1", 1);
        fake.seed = seed;
        for ((node, loss), delay) in fake.nodes.iter_mut().zip(losses).zip(delays) {
            node.loss = loss;
            node.delay = Nanos::from_millis(delay);
        }
        let mut drive = fake.drive("host-2-2", 1);
        drive.copies = copies;
        let mut walk = Walk::default();
        drive.all(&mut walk);
        prop_assert!(walk.is_done() && drive.kept_limits());
        prop_assert!(walk.network().nodes.len() <= 8);
        // Each request waits a limited time, and few are given up at one node.
        prop_assert!(drive.now < Nanos::from_secs(600));
    }

    #[test]
    fn no_replies_panic(replies in proptest::collection::vec(any::<[u8; 96]>(), 1..60)) {
        let mut walk = Walk::within(Limits { nodes: 50, ports: 2000 });
        let mut now = Nanos(0);
        for data in replies {
            now = Nanos(now.0 + 1_000_000);
            let Some((transaction, get)) = walk.request(now, 64) else { break };
            let mut mad = get.encode(transaction);
            mad[3] = 0x81;
            mad[64..160].copy_from_slice(&data);
            walk.receive(now, &mad);
        }
        let _ = super::super::finding::find(walk.network());
    }
}
