use linerate_facts::nic::{Network, Nic, Setting};
use linerate_facts::{Inventory, odd};
use linerate_units::Rate;
use proptest::prelude::*;
use rustix::io::Errno;

use super::network;
use crate::testing::{Fake, attr, link, msg, qdisc};
use crate::{Answer, Capture, Ethtool, Live, Query, Replay};

const CLASS: &str = "/sys/class/net/eth0";

fn word(kind: u16, value: u32) -> Vec<u8> {
    attr(kind, &value.to_ne_bytes())
}

/// Makes a message of a generic netlink family.
fn generic(attributes: &[Vec<u8>]) -> Vec<u8> {
    msg(21, &[vec![0; 4], attributes.concat()].concat())
}

pub(super) fn driver(name: &str, firmware: &str) -> Vec<u8> {
    let mut info = vec![0; 196];
    for (at, text) in [(4, name), (68, firmware)] {
        info[at..at + text.len()].copy_from_slice(text.as_bytes());
    }
    info
}

pub(super) fn counters(counters: &[(&str, u64)]) -> Vec<u8> {
    let count = u32::try_from(counters.len()).unwrap();
    let mut raw: Vec<u8> = [0x1b, 1, count].iter().flat_map(|w: &u32| w.to_ne_bytes()).collect();
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

/// Replies to the queries about a card with two queues.
fn replies() -> Vec<(Query, Vec<u8>)> {
    let link = link(
        7,
        "eth0",
        &[attr(1, &ADDRESS), attr(56, b"0000:03:00.0"), attr(57, b"pci"), word(51, 9000)],
    );
    let ask = |what, words: &[(u16, u32)]| {
        let words: Vec<_> = words.iter().map(|&(kind, value)| word(kind, value)).collect();
        (Query::Ethtool(what, 7), generic(&words))
    };
    let address = [&[2, 24, 0, 0][..], &7u32.to_ne_bytes(), &attr(2, &[192, 0, 2, 7])];
    let address = msg(20, &address.concat());
    let table: Vec<u8> = [0u32, 1].iter().flat_map(|w| w.to_ne_bytes()).collect();
    vec![
        (Query::Links, link),
        (Query::Addresses, address),
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
        (Query::Qdiscs, qdisc(7, "mq", 0x1_0000, u32::MAX, 0)),
    ]
}

/// A machine with a card, and a reply to each query about it.
pub(super) fn card() -> Fake {
    let fake = replies()
        .into_iter()
        .fold(Fake::default(), |fake, (query, reply)| fake.reply(query, &[&reply]));
    fake.file(&format!("{CLASS}/ifindex"), &["7\n"])
        .file(&format!("{CLASS}/address"), &["02:00:00:00:00:07\n"])
        .list(&format!("{CLASS}/queues"), &["rx-0", "tx-0"])
        .file(&format!("{CLASS}/queues/rx-0/rps_cpus"), &["00000000,00000003\n"])
        .file(&format!("{CLASS}/queues/rx-0/rps_flow_cnt"), &["4096\n"])
        .failing(&format!("{CLASS}/queues/tx-0/xps_cpus"), &[], Errno::NOENT)
        .file("/sys/bus/pci/devices/0000:03:00.0/numa_node", &["1\n"])
}

pub(super) fn only(network: Network) -> Nic {
    let [nic] = <[Nic; 1]>::try_from(network.nics).unwrap();
    nic
}

#[test]
fn a_card_is_described_whole_and_without_a_gap() {
    let network = network(&Replay::new(card().0));
    assert_eq!(network.gaps, []);
    let nic = only(network);
    assert_eq!((nic.driver.as_str(), nic.firmware.as_str()), ("mlx5_core", "16.35.1012"));
    assert_eq!((nic.pci.as_str(), nic.node, nic.is_virtual), ("0000:03:00.0", Some(1), false));
    assert_eq!(nic.link.speed, Some(Rate(100_000_000_000)));
    assert_eq!((nic.up, nic.mtu_max), (true, Some(9000)));
    assert_eq!(nic.fec.unwrap().active, "RS");
    let want = Setting { now: Some(2), most: Some(63) };
    assert_eq!(nic.channels.unwrap().combined, want);
    assert_eq!(nic.rings.unwrap().rx, Setting { now: Some(1024), most: Some(8192) });
    assert_eq!(nic.coalesce.unwrap().rx_usecs, Some(8));
    assert_eq!(nic.pause.unwrap().rx, Some(true));
    assert_eq!(nic.rss.unwrap().table, [0, 1]);
    let counters: Vec<_> = nic.counters.iter().map(|c| (c.name.as_str(), c.value)).collect();
    assert_eq!(counters, [("rx_out_of_buffer", 3), ("bw_in_allowance_exceeded", 0)]);
    let [rx, tx] = &nic.queues[..] else { panic!("{:?}", nic.queues) };
    assert_eq!((rx.napi, rx.irq, rx.flows), (Some(8193), Some(64), Some(4096)));
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
    let gone = network(&Replay::new(asleep().refusing(Query::Link(7), Errno::NODEV).0));
    assert_eq!((gone.nics, gone.gaps.len()), (vec![], 1));
    assert!(gone.gaps[0].why.contains("disappeared"), "{}", gone.gaps[0].why);
    let awake = asleep().reply(Query::Link(7), &[&link(7, "eth0", &[])]);
    let network = network(&Replay::new(awake.0));
    assert_eq!((network.nics.len(), network.gaps.len()), (1, 1));
}

#[test]
fn a_bond_is_made_of_its_members_and_a_pair_of_nothing() {
    let details = [attr(1, &[4]), attr(14, &[1])].concat();
    let kind = |kind: &[u8], details: &[u8]| attr(18, &[attr(1, kind), attr(2, details)].concat());
    let links = [
        link(2, "a", &[word(10, 5)]),
        link(3, "b", &[word(10, 5)]),
        link(5, "bond0", &[kind(b"bond", &details)]),
        link(6, "bond0.7", &[kind(b"vlan", &attr(1, &7u16.to_ne_bytes())), word(5, 5)]),
        link(8, "pair", &[kind(b"veth", &[]), word(5, 2)]),
        link(10, "tunnel", &[kind(b"vxlan", &word(3, 2))]),
        link(9, "inner", &[kind(b"macvlan", &[]), word(5, 2), word(37, 0)]),
    ];
    let fake = Fake::default().reply(Query::Links, &[&links.concat()]);
    let network = network(&Replay::new(fake.0));
    let bond = network.nic(5).unwrap().stack.clone();
    assert_eq!((bond.below, network.nic(2).unwrap().stack.above), (vec![2, 3], Some(5)));
    let bond = bond.bond.unwrap();
    assert_eq!((bond.mode.as_str(), bond.hash.as_str()), ("802.3ad", "layer3+4"));
    assert_eq!(network.nic(6).unwrap().stack.vlan, Some(7));
    assert_eq!(network.leaves(6), [2, 3]);
    assert_eq!(network.leaves(8), [8]);
    assert_eq!(network.leaves(10), [2]);
    let inner = &network.nic(9).unwrap().stack;
    assert_eq!((inner.below.len(), inner.below_hidden), (0, true));
}

#[test]
fn gaps_that_all_ports_share_are_told_once() {
    let links: Vec<u8> = (1..=50).flat_map(|n| link(n, &format!("p{n}"), &[])).collect();
    let network = network(&Replay::new(Fake::default().reply(Query::Links, &[&links]).0));
    assert_eq!(network.nics.len(), 50);
    let whats: Vec<_> = network.gaps.iter().map(|g| g.what.as_str()).collect();
    let facts = ["nic.link", "nic.offloads", "nic.queues", "nic.shapers", "network.addresses"];
    assert_eq!(whats, facts.map(|fact| format!("facts.{fact}")));
}

#[test]
fn a_thousand_ports_cost_a_hundred_times_what_ten_do() {
    let requested = |ports: u32| {
        let links: Vec<u8> = (1..=ports).flat_map(|n| link(n, &format!("p{n}"), &[])).collect();
        let fake = Fake::default().reply(Query::Links, &[&links]);
        let machine = Capture::new(Replay::new(fake.0));
        assert_eq!(network(&machine).nics.len(), ports as usize);
        let captured = machine.captured();
        // Three queries are made once, however many ports there are.
        captured.queries.len() + captured.files.len() + captured.lists.len() - 3
    };
    assert_eq!(requested(1000), 100 * requested(10));
}

#[test]
fn a_port_without_a_link_says_why() {
    let reason = generic(&[attr(5, &[4])]);
    let mut fake = card();
    let links = &mut fake.0.queries[0].1[0];
    let Answer::Reply(reply) = links else { panic!("no reply") };
    // Flags of the link: up, but without a carrier.
    reply[24..28].copy_from_slice(&1u32.to_ne_bytes());
    let fake = fake.reply(Query::Ethtool(Ethtool::LinkState, 7), &[&reason]);
    let network = network(&Replay::new(fake.0));
    assert_eq!(network.gaps, []);
    let nic = only(network);
    assert_eq!((nic.up, nic.down.as_str()), (false, "no cable"));
}

proptest! {
    #[test]
    fn mutated_answers_never_panic(changes: Vec<(prop::sample::Index, prop::sample::Index, u8)>) {
        let mut fake = card();
        for (which, at, byte) in changes {
            let which = which.index(fake.0.queries.len());
            let Answer::Reply(reply) = &mut fake.0.queries[which].1[0] else {
                continue;
            };
            let at = at.index(reply.len());
            reply[at] = byte;
        }
        let network = network(&Replay::new(fake.0));
        for nic in &network.nics {
            let _ = network.leaves(nic.index);
        }
        let _ = odd::find(&Inventory { network, ..Inventory::default() });
    }
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
    assert_eq!((lo.name.as_str(), lo.driver.as_str(), lo.pci.as_str()), ("lo", "loopback", ""));
    assert!(lo.is_virtual && lo.link.speed.is_none() && lo.mtu.is_some());
    assert!(lo.offloads.as_ref().is_some_and(|o| o.on.iter().any(|f| f == "tx-scatter-gather")));
    assert_eq!(network(&Replay::new(machine.captured())), live);
}
