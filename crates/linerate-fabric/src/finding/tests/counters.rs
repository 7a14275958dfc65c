use super::*;
use crate::mad::counters::COUNTERS;

fn index(name: &str) -> usize {
    COUNTERS.iter().position(|c| c.name == name).unwrap()
}

/// The findings about a star in which a counter of `H3` has `value`, and then grows by `rise`.
fn with(name: &str, value: u64, rise: u64) -> Vec<Finding> {
    let mut fake = star();
    let port = at(&fake, "H3");
    let port = fake.port(port);
    port.counters[index(name)] = value;
    port.rise[index(name)] = rise;
    seen(&fake, "H2")
}

#[test]
fn damage_that_goes_on_is_found_at_its_port() {
    for name in ["port_rcv_errors", "local_link_integrity_errors"] {
        let found = with(name, 3, 1);
        assert_eq!(ids(&found), [("link-errors", "H3 port 1")], "{name}");
        assert!(found[0].is_now() && found[0].what.contains(&format!("{name} 1 in 1.0 s")));
        assert!(found[0].why.contains("SW port 3"));
    }
}

#[test]
fn a_link_that_only_went_down_may_have_been_a_neighbour_that_booted() {
    let found = with("link_downed", 3, 1);
    assert_eq!(ids(&found), [("link-errors", "H3 port 1")]);
    assert_eq!(found[0].certainty, Certainty::Supported);
    assert!(found[0].why.contains("started again"), "{}", found[0].why);
    let mut fake = star();
    let port = at(&fake, "H3");
    let port = fake.port(port);
    for name in ["link_downed", "local_link_integrity_errors"] {
        port.rise[index(name)] = 1;
    }
    assert_eq!(seen(&fake, "H2")[0].certainty, Certainty::Proved);
    // Packets that were malformed, or had no room, count as errors as well.
    for (name, certainty) in [
        ("port_rcv_errors", Certainty::Supported),
        ("excessive_buffer_overrun_errors", Certainty::Supported),
        ("local_link_integrity_errors", Certainty::Proved),
    ] {
        assert_eq!(with(name, 0, 1)[0].certainty, certainty, "{name}");
    }
}

#[test]
fn a_full_counter_of_errors_shows_no_new_ones() {
    for (name, value, ports) in [
        ("symbol_error", 0xfffe, 0),
        ("symbol_error", 0xffff, 1),
        ("port_xmit_discards", 0xffff, 1),
        ("port_xmit_wait", 0xffff_ffff, 0),
        ("VL15_dropped", 0xffff, 0),
    ] {
        let mut fake = star();
        let port = at(&fake, "H3");
        fake.port(port).counters[index(name)] = value;
        let network = fake.network("H2");
        assert_eq!(full(&network).len(), ports, "{name} {value:#x}");
    }
}

#[test]
fn a_single_symbol_error_is_within_the_standard() {
    // A link of 54.5 Gb/s may have one damaged bit in 18 s.
    let found = with("symbol_error", 0, 1);
    assert!(found.iter().all(|f| !f.is_now()), "{found:?}");
    let found = with("symbol_error", 0, 2);
    assert_eq!(ids(&found), [("link-errors", "H3 port 1")]);
    assert!(
        found[0].is_now() && found[0].proof[1].contains("may have 0.055"),
        "{:?}",
        found[0].proof
    );
}

#[test]
fn damage_of_the_past_is_told_as_such() {
    let found = with("symbol_error", 4242, 0);
    assert_eq!(ids(&found), [("link-errors", "H3 port 1")]);
    assert!(!found[0].is_now() && found[0].what.contains("symbol_error 4242"));
    let found = with("symbol_error", 0xffff, 0);
    assert!(found[0].what.contains("at least 65535") && found[0].proof.len() == 2);
    // The counter of links that went down also grows when a neighbour boots.
    assert_eq!(with("link_downed", 7, 0), []);
}

#[test]
fn a_counter_that_was_cleared_does_not_wrap() {
    let found = with("port_rcv_errors", 500, u64::MAX - 492);
    // The counter fell from 500 to 7.
    assert!(found[0].is_now() && found[0].what.contains("port_rcv_errors 7 in"), "{found:?}");
    let found = with("port_rcv_errors", 500, u64::MAX - 499);
    assert_eq!(found, []);
}

#[test]
fn counters_that_are_no_damage_are_silent() {
    for name in ["port_rcv_switch_relay_errors", "VL15_dropped", "port_xmit_data"] {
        assert_eq!(with(name, 50, 50), [], "{name}");
    }
    assert_eq!(with("port_rcv_constraint_errors", 50, 0), []);
    for name in ["port_rcv_remote_physical_errors", "port_xmit_discards"] {
        assert_eq!(with(name, 50, 0), [], "{name}");
    }
}

#[test]
fn packets_that_were_damaged_or_dropped_elsewhere_have_findings_of_their_own() {
    let found = with("port_rcv_remote_physical_errors", 0, 1);
    assert_eq!(ids(&found), [("damaged-before", "H3 port 1")]);
    assert_eq!(found[0].certainty, Certainty::Supported);
    assert_eq!(ids(&with("port_rcv_constraint_errors", 0, 1)), [("refused-packets", "H3 port 1")]);
    assert_eq!(ids(&with("port_xmit_discards", 0, 1)), [("drops", "H3 port 1")]);
}

/// Units of the wait counter in one second, on a link of 4x FDR.
const SECOND: f64 = 4.0 * 14.0625e9 * 64.0 / 66.0 / 32.0;

/// The findings about a fat tree whose ports wait for these shares of a second. The link of the port `full` is full.
fn waits(ports: &[(&str, u8, f64)], full: Option<(&str, u8)>) -> Vec<Finding> {
    let mut fake = Fake::fat_tree(2, 2, 2);
    fake.manage("host-1-1", 1);
    for (name, port, share) in ports {
        let node = fake.node(name);
        fake.port((node, *port)).rise[index("port_xmit_wait")] = (share * SECOND) as u64;
    }
    if let Some((name, port)) = full {
        let node = fake.node(name);
        fake.port((node, port)).rise[index("port_xmit_data")] = (0.9 * SECOND) as u64;
    }
    seen(&fake, "host-2-2")
}

#[test]
fn the_slow_receiver_is_the_end_of_the_chain() {
    assert_eq!(waits(&[("leaf1", 1, 0.29)], None), []);
    let found = waits(&[("leaf1", 1, 0.32)], None);
    assert_eq!(ids(&found), [("slow-receiver", "host-1-1")]);
    assert_eq!(found[0].certainty, Certainty::Supported);
    assert!(found[0].what.contains("leaf1 port 1 waits for it"));
    // The ports before the receiver wait because it does not receive.
    let chain = [("leaf1", 1, 0.5), ("spine1", 1, 0.5), ("leaf2", 3, 0.5), ("host-2-1", 1, 0.5)];
    let found = waits(&chain, None);
    assert_eq!(ids(&found), [("slow-receiver", "host-1-1")]);
    assert!(found[0].proof.iter().any(|p| p.contains("4 ports of the network wait")));
}

#[test]
fn a_full_link_is_the_end_of_the_chain_too() {
    let two = [("host-2-1", 1, 0.5), ("host-2-2", 1, 0.6)];
    let found = waits(&two, Some(("leaf2", 3)));
    // A full link is normal use, and no fault.
    assert_eq!(ids(&found), [("full-link", "leaf2 port 3")]);
    assert!(!found[0].is_now() && found[0].what.contains("spine1 port 2"), "{found:?}");
    let found = waits(&two, None);
    assert_eq!(ids(&found), [("slow-receiver", "leaf2")]);
    assert!(found[0].is_now() && found[0].why.contains("unknown"));
    assert!(found[0].what.contains("2 ports wait for it"));
    // With the largest unit, 2 % may be all of the time: the switch itself may wait for another node.
    let [a, b] = two;
    assert_eq!(waits(&[a, b, ("leaf2", 4, 0.02)], None), []);
}

#[test]
fn waits_that_are_not_counted_are_unknown() {
    let mut fake = star();
    let switch = fake.node("SW");
    fake.port((switch, 3)).rise[index("port_xmit_wait")] = SECOND as u64;
    assert_eq!(ids(&seen(&fake, "H2")), [("slow-receiver", "H3")]);
    fake.nodes[switch].counting = [0x0200, 0];
    assert_eq!(seen(&fake, "H2"), []);
    // If it is unknown whether another port of the switch waits, the switch is not known to be the end of the chain.
    let mut tree = Fake::fat_tree(2, 2, 2);
    tree.manage("host-1-1", 1);
    let (host, leaf) = (tree.node("host-2-1"), tree.node("leaf2"));
    tree.port((host, 1)).rise[index("port_xmit_wait")] = (0.5 * SECOND) as u64;
    assert_eq!(ids(&seen(&tree, "host-2-2")), [("slow-receiver", "leaf2")]);
    tree.port((leaf, 3)).counters[index("port_xmit_wait")] = 0xffff_ffff;
    assert_eq!(seen(&tree, "host-2-2"), []);
    // A counter that is full or was cleared does not show how long the port waited.
    fake.nodes[switch].counting = [0x1200, 0];
    fake.port((switch, 3)).counters[index("port_xmit_wait")] = 0xffff_0000;
    assert_eq!(seen(&fake, "H2"), []);
}
