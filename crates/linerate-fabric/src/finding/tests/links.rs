use super::*;
use crate::mad::counters::COUNTERS;
use linerate_ceiling::infiniband::Speed;

#[test]
fn a_port_without_a_link_says_why() {
    for (states, what) in [
        ([1, 2], Some("no cable")),
        ([1, 3], Some("switched off")),
        ([1, 1], Some("its link sleeps")),
        ([1, 5], Some("down, although the wire works")),
        ([4, 5], None),
    ] {
        let mut fake = star();
        let own = at(&fake, "H2");
        fake.port(own).states = states;
        let found = seen(&fake, "H2");
        let ours: Vec<&Finding> =
            found.iter().filter(|f| ["ib-no-link", "ib-held-down"].contains(&f.id)).collect();
        assert_eq!(ours.len(), usize::from(what.is_some()), "{states:?}: {found:?}");
        let said = ours.first().map_or("", |f| f.what.as_str());
        assert!(said.starts_with(what.unwrap_or_default()), "{said}");
        // If the physical state is LinkUp, the port is held down and the cable works.
        let is_held = ours.first().is_some_and(|f| f.id == "ib-held-down");
        assert_eq!(is_held, states == [1, 5], "{states:?}");
    }
}

#[test]
fn a_link_at_the_other_port_of_the_adapter_is_told() {
    let mut fake = Fake::two_ports();
    let server = fake.node("SRV");
    fake.unlink((server, 2));
    let found = find(&fake.network_at("SRV", 2));
    assert_eq!(ids(&found), [("ib-no-link", "SRV port 2")]);
    assert!(found[0].proof[1].contains("port 1 of this adapter has a link"));
    // An empty port is normal if the network was walked from another port.
    assert_eq!(ids(&seen(&fake, "SRV")), [("no-manager", "SRV port 1")]);
}

#[test]
fn a_function_that_is_held_down_is_not_enabled_by_ibportstate() {
    let mut fake = star();
    let own = at(&fake, "H2");
    let port = fake.port(own);
    (port.guid, port.states) = (0, [1, 5]);
    let found = seen(&fake, "H2");
    assert_eq!(found[0].id, "ib-held-down");
    assert!(!commands(&found[0]).contains("ibportstate"));
    // If the port has a GUID, the device id shows whether it is a virtual function.
    fake.port(own).guid = 7;
    for (device, says) in [(0x101c, "virtual function"), (0x101b, "held down")] {
        fake.nodes[own.0].device = device;
        let found = seen(&fake, "H2");
        assert!(found[0].why.contains(says), "{}", found[0].why);
    }
}

/// The findings about a star whose link at `H3` runs with these lanes at this speed.
fn with(lanes: u32, speed: Speed) -> Vec<Finding> {
    let mut fake = star();
    let slow = at(&fake, "H3");
    let peer = fake.port(slow).peer.unwrap();
    for at in [slow, peer] {
        fake.port(at).runs(lanes, speed);
    }
    seen(&fake, "H2")
}

#[test]
fn a_link_below_what_both_ends_may_use_is_slow() {
    assert_eq!(with(4, Speed::Fdr), []);
    for (lanes, speed) in [(1, Speed::Fdr), (4, Speed::Qdr), (1, Speed::Sdr)] {
        let found = with(lanes, speed);
        assert_eq!(ids(&found), [("ib-slow-link", "SW port 3 to H3 port 1")]);
        assert_eq!(found[0].certainty, Certainty::Proved);
        assert!(found[0].why.contains("may use more"), "{}", found[0].why);
        assert!(found[0].what.contains("both ports have 4x FDR"), "{}", found[0].what);
    }
    // An adapter of 100 Gb/s has four lanes of EDR or two lanes of HDR.
    let mut fake = star();
    for node in &mut fake.nodes {
        for port in node.ports.values_mut() {
            // Bits 7: FDR, EDR and HDR are supported and enabled.
            (port.speed[1][0], port.speed[1][1]) = (7, 7);
            port.runs(4, Speed::Hdr);
        }
    }
    let slow = at(&fake, "H3");
    let peer = fake.port(slow).peer.unwrap();
    for (speed, certainty) in [(Speed::Edr, Certainty::Supported), (Speed::Fdr, Certainty::Proved)]
    {
        for at in [slow, peer] {
            fake.port(at).runs(4, speed);
        }
        let found = seen(&fake, "H2");
        assert_eq!(ids(&found), [("ib-slow-link", "SW port 3 to H3 port 1")]);
        assert_eq!(found[0].certainty, certainty, "{}", found[0].what);
    }
    // If no adapter of this kind is faster, the speed is all that it can do.
    for at in [slow, peer] {
        fake.port(at).runs(4, Speed::Edr);
    }
    fake.nodes[slow.0].device = 0x101b;
    assert_eq!(seen(&fake, "H2"), []);
    fake.port(slow).runs(4, Speed::Fdr);
    fake.port(peer).runs(4, Speed::Fdr);
    assert_eq!(ids(&seen(&fake, "H2")), [("ib-slow-link", "SW port 3 to H3 port 1")]);
    // Two lanes may be all that an adapter can use.
    assert_eq!(with(2, Speed::Fdr)[0].certainty, Certainty::Supported);
}

#[test]
fn a_link_that_is_set_to_less_is_slow_where_others_are_not() {
    let mut fake = star();
    let slow = at(&fake, "H3");
    let peer = fake.port(slow).peer.unwrap();
    for at in [slow, peer] {
        let port = fake.port(at);
        port.runs(4, Speed::Qdr);
        port.speed[1][0] = 0;
    }
    let found = seen(&fake, "H2");
    assert_eq!(ids(&found), [("ib-slow-link", "SW port 3 to H3 port 1")]);
    assert!(found[0].why.contains("set to less"), "{}", found[0].why);
    // If all links are configured for the same lower speed, this is on purpose.
    for node in &mut fake.nodes {
        for port in node.ports.values_mut() {
            port.runs(4, Speed::Qdr);
            port.speed[1][0] = 0;
        }
    }
    assert_eq!(seen(&fake, "H2"), []);
}

#[test]
fn an_old_adapter_at_a_new_switch_is_not_slow() {
    let mut fake = star();
    let old = at(&fake, "H3");
    let peer = fake.port(old).peer.unwrap();
    fake.port(old).rate(4, Speed::Qdr);
    fake.port(peer).runs(4, Speed::Qdr);
    assert_eq!(seen(&fake, "H2"), []);
}

/// The findings about two switches with four hosts each, joined by `links` links; with `ring`, also by way of a third
/// switch.
fn cascade(links: u8, ring: bool) -> Vec<Finding> {
    seen(&cascaded(links, ring), "b1")
}

fn cascaded(links: u8, ring: bool) -> Fake {
    let mut fake = Fake::default();
    let [a, b, c] = ["A", "B", "C"].map(|name| fake.switch(name, 12));
    for (switch, name) in [(a, "a"), (b, "b")] {
        for n in 1..=4 {
            let host = fake.host(&format!("{name}{n}"), 1);
            fake.link((host, 1), (switch, n));
        }
    }
    for n in 1..=links {
        fake.link((a, 4 + n), (b, 4 + n));
    }
    if ring {
        fake.link((a, 11), (c, 1));
        fake.link((b, 11), (c, 2));
    }
    fake.manage("a1", 1);
    fake
}

#[test]
fn a_cascade_with_fewer_links_than_hosts_is_found() {
    let found = cascade(3, false);
    assert_eq!(ids(&found), [("cascade", "B to A")]);
    assert_eq!(found[0].what, "3 links join 4 hosts with 4 others");
    assert_eq!(found[0].certainty, Certainty::Supported);
    // Many networks save links on purpose: it does harm only if ports of these links wait or drop packets.
    assert!(!found[0].is_now());
    let mut fake = cascaded(3, false);
    let near = fake.node("A");
    let drops = COUNTERS.iter().position(|c| c.name == "port_xmit_discards").unwrap();
    fake.port((near, 5)).rise[drops] = 1;
    let busy = seen(&fake, "b1");
    assert!(busy.iter().any(|f| f.id == "cascade" && f.is_now()), "{busy:?}");
    assert!(found[0].fix.what.contains("up to 1 more"), "{}", found[0].fix.what);
    assert_eq!(cascade(1, false)[0].what, "1 link joins 4 hosts with 4 others");
    assert_eq!(cascade(4, false), []);
    // Another way leads across, whose capacity is not counted: no finding.
    assert_eq!(cascade(1, true), []);
}

#[test]
fn a_link_that_other_switches_have_is_missing() {
    for spines in [2, 4] {
        let mut fake = Fake::fat_tree(4, 4, spines);
        let leaf = fake.node("leaf3");
        fake.unlink((leaf, 6));
        fake.manage("host-1-1", 1);
        let found = seen(&fake, "host-2-2");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].id, "missing-link");
        assert_eq!(found[0].certainty, Certainty::Supported);
        let words = &found[0].proof[0];
        assert!(words.contains("leaf3 port 6") && words.contains("spine2 port 3"), "{words}");
    }
}

#[test]
fn empty_ports_alone_are_no_missing_links() {
    // Three leaves are joined to one switch each: no other leaf has a second link to compare with.
    let mut fake = Fake::fat_tree(3, 1, 1);
    let leaf = fake.node("leaf3");
    fake.unlink((leaf, 2));
    fake.manage("host-1-1", 1);
    assert_eq!(seen(&fake, "host-2-1"), []);
    // With only two leaves, it is unknown which of them is as it should be.
    let mut fake = Fake::fat_tree(2, 2, 2);
    let leaf = fake.node("leaf2");
    fake.unlink((leaf, 4));
    fake.manage("host-1-1", 1);
    assert_eq!(seen(&fake, "host-2-1"), []);
}
