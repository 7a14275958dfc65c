use super::*;
use crate::mad::node::NodeKind;

/// A star whose hosts have these partition keys, with a manager at `H1`.
fn with(keys: &[&[u16]]) -> Fake {
    let mut fake = Fake::star(keys.len() as u8);
    fake.manage("H1", 1);
    for (n, keys) in keys.iter().enumerate() {
        fake.port((n, 1)).keys = keys.to_vec();
    }
    fake
}

#[test]
fn a_host_that_shares_no_partition_is_found() {
    let found = seen(&with(&[&[0xffff], &[0xffff], &[0x8001]]), "H2");
    assert_eq!(ids(&found), [("wrong-partition", "H3 port 1")]);
    assert_eq!(found[0].certainty, Certainty::Supported);
    assert_eq!(found[0].proof, ["P_KeyTable of H3 port 1: 0x8001"]);
    let found = seen(&with(&[&[0x8001], &[0x8002]]), "H2");
    assert_eq!(ids(&found), [("wrong-partition", "H2 port 1, H1 port 1")]);
}

#[test]
fn a_host_that_is_not_seen_may_be_in_the_same_partition() {
    let keys: &[&[u16]] = &[&[0xffff], &[0xffff], &[0x8001], &[0xffff]];
    let changed = |change: fn(&mut Fake)| {
        let mut fake = with(keys);
        change(&mut fake);
        ids(&seen(&fake, "H2")).iter().any(|(id, _)| *id == "wrong-partition")
    };
    assert!(changed(|_| {}));
    assert!(!changed(|fake| fake.port((3, 1)).states = [2, 5]));
    assert!(!changed(|fake| fake.nodes[3].loss = 100));
    assert!(!changed(|fake| fake.nodes[3].kind = NodeKind::Router));
}

#[test]
fn limited_members_may_not_talk_to_each_other() {
    let found = seen(&with(&[&[0x7fff], &[0x7fff]]), "H2");
    assert_eq!(ids(&found), [("wrong-partition", "H2 port 1, H1 port 1")]);
    assert!(found[0].why.contains("limited members"));
    // A full member may communicate with all limited members.
    assert_eq!(seen(&with(&[&[0xffff], &[0x7fff], &[0x7fff]]), "H2"), []);
}

#[test]
fn groups_that_are_kept_apart_are_meant_to_be() {
    let keys: &[&[u16]] = &[&[0x8001], &[0x8001], &[0x8002], &[0x8002]];
    assert_eq!(seen(&with(keys), "H2"), []);
}

#[test]
fn keys_that_are_unknown_prove_nothing() {
    let mut fake = with(&[&[0xffff], &[0xffff], &[0x8001]]);
    fake.nodes[1].refused = vec![0x16];
    assert_eq!(seen(&fake, "H1"), []);
}
