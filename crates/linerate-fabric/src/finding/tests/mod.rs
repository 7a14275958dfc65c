//! Tests of each finding on the fake network, and on networks that only look as if they had it.

mod counters;
mod links;
mod managers;
mod partitions;

use super::super::fake::{At, Fake};
use super::*;
use linerate_ceiling::infiniband::Speed;
use linerate_plan::path::Certainty;

/// A star of four hosts with a manager at `H1`.
fn star() -> Fake {
    let mut fake = Fake::star(4);
    fake.manage("H1", 1);
    fake
}

fn at(fake: &Fake, name: &str) -> At {
    (fake.node(name), 1)
}

/// The findings that `host` sees.
fn seen(fake: &Fake, host: &str) -> Vec<Finding> {
    find(&fake.network(host))
}

/// The id and the subject of each finding.
fn ids(found: &[Finding]) -> Vec<(&str, &str)> {
    let of = found.iter();
    of.map(|f| (f.id, f.subject.as_str())).collect()
}

/// The commands that a finding advises, as text.
fn commands(finding: &Finding) -> String {
    finding.fix.text()
}

#[test]
fn clean_networks_are_silent() {
    assert_eq!(seen(&star(), "H2"), []);
    for (leaves, hosts, spines) in [(4, 4, 4), (4, 4, 2), (2, 8, 2), (4, 4, 1)] {
        let mut fake = Fake::fat_tree(leaves, hosts, spines);
        fake.manage("host-1-1", 1);
        assert_eq!(seen(&fake, "host-2-2"), [], "{leaves} {hosts} {spines}");
    }
}

#[test]
fn a_node_that_loses_datagrams_is_named() {
    let mut fake = star();
    let lossy = fake.node("H3");
    fake.nodes[lossy].loss = 50;
    let found = seen(&fake, "H2");
    let [one] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((one.id, one.subject.as_str()), ("lossy-node", "H3"));
    assert_eq!(one.certainty, Certainty::Supported);
    // The node is reported once, even if one of its requests has no reply at all.
    fake.nodes[lossy].loss = 70;
    for seed in 0..20 {
        fake.seed = seed;
        let found = seen(&fake, "H2");
        assert_eq!(found.len(), 1, "{seed}: {found:?}");
        assert!(["lossy-node", "silent-node"].contains(&found[0].id));
    }
    fake.nodes[lossy].loss = 1;
    assert_eq!(seen(&fake, "H2"), []);
}

#[test]
fn losses_are_those_of_the_first_node_on_the_way() {
    let mut fake = Fake::fat_tree(2, 2, 1);
    fake.manage("host-1-1", 1);
    for name in ["spine1", "leaf2", "host-2-1"] {
        let node = fake.node(name);
        fake.nodes[node].loss = 50;
    }
    let found = seen(&fake, "host-1-2");
    assert_eq!(ids(&found), [("lossy-node", "spine1")]);
}

#[test]
fn a_node_without_a_reply_is_named_by_its_cable() {
    let mut fake = star();
    let dead = fake.node("H3");
    fake.nodes[dead].loss = 100;
    let found = seen(&fake, "H2");
    assert_eq!(ids(&found), [("silent-node", "the node across the cable of SW port 3")]);
    assert_eq!(found[0].certainty, Certainty::Supported);
    // A node that refuses a request is not silent.
    fake.nodes[dead].loss = 0;
    fake.nodes[dead].refused = vec![0x01, 0x16];
    assert_eq!(seen(&fake, "H2"), []);
}

#[test]
fn two_nodes_with_one_guid_are_found() {
    let mut fake = star();
    let [a, b] = ["H3", "H4"].map(|name| fake.node(name));
    fake.nodes[b].guid = fake.nodes[a].guid;
    let found = seen(&fake, "H2");
    assert_eq!(ids(&found), [("duplicate-guid", "H3")]);
    assert!(found[0].proof[0].contains("SW port 3") && found[0].proof[0].contains("SW port 4"));
}

#[test]
fn two_ports_with_one_guid_are_found() {
    let mut fake = star();
    let [a, b] = ["H3", "H4"].map(|name| at(&fake, name));
    fake.port(b).guid = fake.port(a).guid;
    let found = seen(&fake, "H2");
    assert_eq!(ids(&found), [("duplicate-guid", "H3 port 1, H4 port 1")]);
    // Two virtual functions without a GUID do not share one.
    for at in [a, b] {
        fake.port(at).guid = 0;
    }
    assert_eq!(seen(&fake, "H2"), []);
}

#[test]
fn two_ports_with_one_lid_are_found() {
    let mut fake = star();
    let [a, b] = ["H3", "H4"].map(|name| at(&fake, name));
    fake.port(b).lid = fake.port(a).lid;
    let found = seen(&fake, "H2");
    assert!(ids(&found).contains(&("duplicate-lid", "H3 port 1, H4 port 1")), "{found:?}");
    // Ports with the LID 0xffff, which some adapters have until a manager gives them one, do not share it.
    for at in [a, b] {
        fake.port(at).lid = 0xffff;
    }
    let found = seen(&fake, "H2");
    assert!(found.iter().all(|found| found.id != "duplicate-lid"), "{found:?}");
}

#[test]
fn nodes_of_the_same_description_have_their_guids_in_their_names() {
    let mut fake = star();
    let slow = at(&fake, "H3");
    let peer = fake.port(slow).peer.unwrap();
    for at in [slow, peer] {
        fake.port(at).runs(1, Speed::Fdr);
    }
    assert_eq!(ids(&seen(&fake, "H2")), [("ib-slow-link", "SW port 3 to H3 port 1")]);
    let [named, other] = ["H3", "H4"].map(|name| fake.node(name));
    for node in [named, other] {
        fake.nodes[node].name = "HCA".to_owned();
    }
    let found = seen(&fake, "H2");
    assert!(found[0].subject.contains("HCA (0x"), "{}", found[0].subject);
    let network = fake.network("H2");
    assert_eq!((network.by_name("HCA").len(), network.by_name("SW").len()), (2, 1));
}

#[test]
fn a_host_is_found_by_the_first_word_of_its_description() {
    let mut fake = star();
    let node = fake.node("H3");
    fake.nodes[node].name = "srv mlx5_0".to_owned();
    let network = fake.network("H2");
    assert_eq!(network.by_name("srv").len(), 1);
    assert_eq!(network.by_name("srv mlx5_0"), network.by_name("srv"));
    assert_eq!(network.by_name("mlx5_0"), [0; 0]);
}
