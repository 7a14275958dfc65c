//! Faults that are planted in a network: each is named with its place, and a healthy network has no problem.

use linerate_lab::ib::{Manager, Network, Simulator};

use crate::simulated::{network, port, seen_from, started};

/// A tree of sixteen hosts, four leaf switches and two spine switches.
const TREE: &str = "fat-tree:4,4,2";

/// The tree with one port that may use other lanes or another speed than the others.
fn tree_with(at: &str, link: &str) -> Network {
    let mut network = network(TREE);
    network.set(&port(at), link.parse().unwrap()).unwrap();
    network
}

fn served(network: Network) -> Option<Simulator> {
    started(network, &["host-1-1:1"])
}

#[test]
fn a_clean_tree_has_no_problem() {
    let Some(simulator) = served(network(TREE)) else {
        return;
    };
    let seen = seen_from(&simulator, "host-4-4");
    assert_eq!(seen.problems(), []);
    // Sixteen cables lead to hosts, and eight are between switches.
    assert_eq!(seen.size(), (22, 24));
}

#[test]
fn counters_that_do_not_rise_are_past_errors_of_their_port() {
    let Some(mut simulator) = served(network(TREE)) else {
        return;
    };
    for counter in ["SymbolErrorCounter=4242", "LinkDownedCounter=7"] {
        let command = format!("PerformanceSet \"leaf1\"[5] PortCounters.{counter}");
        simulator.command(&command).unwrap();
    }
    let seen = seen_from(&simulator, "host-4-4");
    assert_eq!(seen.problems(), [("link-errors", "leaf1 port 5", false)]);
    let what = seen.problem("link-errors")["what"].as_str().unwrap();
    assert!(what.contains("4242") && what.contains('7'), "{what}");
}

#[test]
fn a_cable_between_switches_that_is_gone_has_no_link() {
    let Some(mut simulator) = served(network(TREE)) else {
        return;
    };
    simulator.command("Unlink \"leaf3\"[6]").unwrap();
    let seen = seen_from(&simulator, "host-4-4");
    for (node, number) in [("leaf3", 6), ("spine2", 3)] {
        let end = seen.port(node, number);
        assert_eq!((&end["state"], &end["physical"]), (&"down".into(), &"polling".into()));
        assert!(end["peer"].is_null(), "{end}");
    }
    assert_eq!(seen.size(), (22, 23));
    assert_eq!(seen.problems(), [("missing-link", "leaf3 port 6", true)]);
}

#[test]
fn a_link_with_one_lane_is_slow() {
    let mut network = tree_with("leaf2:3", "1xEDR");
    network.set(&port("host-2-3:1"), "1xEDR".parse().unwrap()).unwrap();
    let Some(simulator) = served(network) else {
        return;
    };
    let seen = seen_from(&simulator, "host-4-4");
    let what = seen.problem("ib-slow-link")["what"].as_str().unwrap();
    assert!(what.contains("runs at 1x EDR"), "{what}");
    let subject = seen.problem("ib-slow-link")["subject"].as_str().unwrap();
    assert!(subject.contains("leaf2 port 3") && subject.contains("host-2-3 port 1"), "{subject}");
    assert_eq!(seen.problems().len(), 1);
}

#[test]
fn one_link_with_a_lower_speed_than_the_others_is_slow() {
    let Some(simulator) = served(tree_with("host-2-3:1", "4xFDR")) else {
        return;
    };
    let seen = seen_from(&simulator, "host-4-4");
    let problem = seen.problem("ib-slow-link");
    let (what, subject) = (&problem["what"], problem["subject"].as_str().unwrap());
    assert!(what.as_str().unwrap().contains("runs at 4x FDR"), "{what}");
    assert!(subject.contains("host-2-3 port 1") && subject.contains("leaf2 port 3"), "{subject}");
    assert_eq!(seen.problems().len(), 1);
}

#[test]
fn managers_that_do_not_accept_each_other_are_two_masters_and_a_standby_is_none() {
    let Some(mut simulator) = served(network(TREE)) else {
        return;
    };
    let second = |key| Manager { at: port("host-3-2:1"), key };
    simulator.manage(&second(Some(2))).unwrap();
    let seen = seen_from(&simulator, "host-4-4");
    assert_eq!(seen.problems(), [("two-managers", "this network", true)]);
    let proof = seen.problem("two-managers")["proof"].to_string();
    assert!(proof.contains("host-1-1") && proof.contains("host-3-2"), "{proof}");
    // A near miss: the second manager accepts the first, and becomes a standby manager.
    drop(simulator);
    let Some(mut simulator) = served(network(TREE)) else {
        return;
    };
    simulator.manage(&second(None)).unwrap();
    assert_eq!(seen_from(&simulator, "host-4-4").problems(), []);
}

#[test]
fn a_manager_that_has_ended_is_missed_and_counters_are_read_without_it() {
    let Some(mut simulator) = served(network(TREE)) else {
        return;
    };
    let command = "PerformanceSet \"leaf1\"[5] PortCounters.SymbolErrorCounter=99";
    simulator.command(command).unwrap();
    simulator.end_managers();
    let seen = seen_from(&simulator, "host-4-4");
    assert_eq!(
        seen.problems(),
        [("manager-gone", "this network", true), ("link-errors", "leaf1 port 5", false)]
    );
    assert_eq!(seen.problem("manager-gone")["host"], "host-1-1");
}
