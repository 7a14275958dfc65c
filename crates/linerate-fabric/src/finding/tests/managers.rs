use super::*;

#[test]
fn the_manager_of_the_neighbour_serves_its_other_port() {
    let mut fake = Fake::two_ports();
    fake.manage("SRV", 1);
    let found = seen(&fake, "CLB");
    assert_eq!(ids(&found), [("wrong-port", "CLB port 1")]);
    let [one] = &found[..] else { unreachable!() };
    assert_eq!((one.host.as_str(), one.certainty), ("SRV", Certainty::Proved));
    assert!(one.why.contains("SRV port 2") && one.why.contains("serves port 1 only"));
    let server = fake.node("SRV");
    let guid = fake.port((server, 2)).guid;
    assert!(commands(one).contains(&format!("opensm -B -g {guid:#018x}")));
    // A host on the other network, which has a manager, sees the port that waits.
    let found = seen(&fake, "CLA");
    assert_eq!(ids(&found), [("wrong-port", "SRV port 2")]);
    assert_eq!(found[0].certainty, Certainty::Supported);
    // A manager on the network without one removes the finding.
    fake.manage("CLB", 1);
    assert_eq!(seen(&fake, "CLB"), []);
    assert_eq!(seen(&fake, "CLA"), []);
}

#[test]
fn the_neighbours_other_port_is_served_from_elsewhere() {
    let mut fake = Fake::two_ports();
    fake.manage("CLA", 1);
    let found = seen(&fake, "CLB");
    assert_eq!(ids(&found), [("wrong-port", "CLB port 1")]);
    assert!(!found[0].why.contains("the subnet manager on SRV"), "{}", found[0].why);
    assert!(found[0].fix.what.contains("at one of its ends"));
}

#[test]
fn no_manager_anywhere_is_not_the_wrong_port() {
    let found = seen(&Fake::two_ports(), "CLB");
    assert_eq!(ids(&found), [("no-manager", "CLB port 1")]);
    let found = seen(&Fake::star(4), "H2");
    assert_eq!(ids(&found), [("no-manager", "H2 port 1")]);
    assert!(commands(&found[0]).contains("opensm -B -g"));
}

#[test]
fn a_second_manager_is_not_started_where_one_serves() {
    let mut fake = star();
    let own = at(&fake, "H2");
    let port = fake.port(own);
    (port.lid, port.manager_lid, port.states) = (0, 0, [2, 5]);
    let switch = fake.node("SW");
    fake.port((switch, 2)).states = [2, 5];
    let found = seen(&fake, "H2");
    assert_eq!(ids(&found), [("unserved-port", "H2 port 1")]);
    assert_eq!(found[0].certainty, Certainty::Supported);
    assert!(!commands(&found[0]).contains("opensm -B"));
    // An active port shows that a manager ran, even if the manager does not answer.
    let manager = at(&fake, "H1");
    fake.port(manager).capabilities = 0;
    assert_eq!(ids(&seen(&fake, "H2")), [("unserved-port", "H2 port 1")]);
}

#[test]
fn a_function_without_a_guid_is_not_told_to_start_a_manager() {
    for managed in [true, false] {
        let mut fake = if managed { star() } else { Fake::star(4) };
        let own = at(&fake, "H2");
        let port = fake.port(own);
        (port.guid, port.lid, port.manager_lid) = (0, 0, 0);
        port.states = [2, 5];
        let found = seen(&fake, "H2");
        assert_eq!(ids(&found), [("no-guid", "H2 port 1")]);
        assert!(!commands(&found[0]).contains("opensm"), "{managed}");
    }
}

#[test]
fn a_manager_that_ended_leaves_active_ports() {
    let mut fake = star();
    let ran = at(&fake, "H1");
    let port = fake.port(ran);
    (port.manager, port.capabilities) = (None, 0);
    let found = seen(&fake, "H2");
    assert_eq!(ids(&found), [("manager-gone", "this network")]);
    let [one] = &found[..] else { unreachable!() };
    assert_eq!((one.host.as_str(), one.certainty), ("H1", Certainty::Supported));
    let guid = fake.port(ran).guid;
    assert!(commands(one).contains(&format!("opensm -B -g {guid:#018x}")));
    // Ports still have the LID of a manager whose host is off.
    let hosts: Vec<At> = ["H2", "H3", "H4"].map(|name| at(&fake, name)).into();
    for host in hosts {
        fake.port(host).manager_lid = 77;
    }
    let found = seen(&fake, "H2");
    assert_eq!(ids(&found), [("manager-gone", "this network")]);
    assert!(found[0].why.contains("LID 77, which no port has"), "{}", found[0].why);
}

#[test]
fn a_manager_that_may_run_somewhere_is_not_gone() {
    let ended = || {
        let mut fake = star();
        let ran = at(&fake, "H1");
        let port = fake.port(ran);
        (port.manager, port.capabilities) = (None, 0);
        fake
    };
    let is_gone = |fake: &Fake| ids(&seen(fake, "H2")).iter().any(|(id, _)| *id == "manager-gone");
    assert!(is_gone(&ended()));
    // Another manager took over.
    let mut fake = ended();
    let other = at(&fake, "H3");
    fake.port(other).capabilities |= 1 << 1;
    assert!(!is_gone(&fake));
    // A node that does not support counters may still be known to run no manager.
    let mut fake = ended();
    let other = fake.node("H3");
    fake.nodes[other].mute = vec![0x01];
    assert!(is_gone(&fake));
    // A host that does not answer, or that refuses the request for its port.
    for (loss, refused) in [(100, vec![]), (0, vec![0x15])] {
        let mut fake = ended();
        let silent = fake.node("H3");
        fake.nodes[silent].loss = loss;
        fake.nodes[silent].refused = refused;
        assert!(!is_gone(&fake), "{loss}");
    }
}

#[test]
fn only_two_masters_are_two_managers() {
    for (state, expected) in [(0, 0), (1, 0), (2, 0), (3, 1)] {
        let mut fake = star();
        let second = at(&fake, "H3");
        let port = fake.port(second);
        port.manager = Some((state, 5));
        port.capabilities |= 1 << 1;
        let found = seen(&fake, "H2");
        assert_eq!(found.len(), expected, "{state}: {found:?}");
        if let [one] = &found[..] {
            assert_eq!(one.id, "two-managers");
            assert!(one.proof.iter().any(|p| p.contains("H3 (priority 5")));
        }
    }
}

#[test]
fn where_a_part_did_not_answer_no_manager_is_started() {
    let mut fake = Fake::two_ports();
    let server = fake.node("SRV");
    fake.nodes[server].loss = 100;
    let found = seen(&fake, "CLB");
    let first = &found[0];
    assert_eq!((first.id, first.certainty), ("no-manager", Certainty::Supported));
    assert!(!commands(first).contains("opensm -B"), "{first:?}");
}

#[test]
fn a_sign_of_a_manager_is_enough_to_start_no_other() {
    // The port at the other end of the cable reports that a manager runs there.
    let mut fake = Fake::two_ports();
    let far = (fake.node("SRV"), 2);
    fake.port(far).capabilities |= 2;
    assert_eq!(ids(&seen(&fake, "CLB"))[0].0, "unserved-port");
}

#[test]
fn a_port_that_is_new_after_the_manager_has_ended_needs_one() {
    let mut fake = star();
    let [ran, own] = ["H1", "H2"].map(|name| at(&fake, name));
    let port = fake.port(ran);
    (port.manager, port.capabilities) = (None, 0);
    let switch = fake.node("SW");
    fake.port((switch, 2)).states = [2, 5];
    let port = fake.port(own);
    (port.lid, port.manager_lid, port.states) = (0, 0, [2, 5]);
    let found = seen(&fake, "H2");
    assert_eq!(ids(&found), [("manager-gone", "this network")]);
    assert!(found[0].host == "H1" && commands(&found[0]).contains("opensm -B"));
    // Only this port still has the LID of a manager.
    let mut fake = Fake::two_ports();
    let own = at(&fake, "CLB");
    fake.port(own).manager_lid = 1;
    let found = seen(&fake, "CLB");
    assert_eq!(ids(&found), [("manager-gone", "this network")]);
}

#[test]
fn managers_that_do_not_manage_are_named() {
    // Managers answer, but none of them is the master.
    for state in [0, 1, 2] {
        let mut fake = star();
        let ran = at(&fake, "H1");
        fake.port(ran).manager = Some((state, 0));
        let found = seen(&fake, "H2");
        assert_eq!(ids(&found), [("manager-gone", "this network")]);
        assert!(!commands(&found[0]).contains("opensm -B"), "{state}");
    }
    // A manager that hangs: its node answers all other requests.
    let mut fake = star();
    let ran = fake.node("H1");
    fake.nodes[ran].mute = vec![0x20];
    let found = seen(&fake, "H2");
    assert_eq!(ids(&found), [("manager-gone", "this network")]);
    assert_eq!(
        (found[0].host.as_str(), found[0].what.as_str()),
        ("H1", "the subnet manager does not answer")
    );
    // If another manager is the master, one that hangs does no harm.
    let mut fake = star();
    let other = fake.node("H3");
    fake.port((other, 1)).capabilities |= 1 << 1;
    fake.nodes[other].mute = vec![0x20];
    assert_eq!(seen(&fake, "H2"), []);
}

#[test]
fn a_port_that_is_armed_or_trains_is_a_problem() {
    for (states, id) in [([3, 5], "unserved-port"), ([1, 4], "ib-no-link"), ([1, 6], "ib-no-link")]
    {
        let mut fake = star();
        let own = at(&fake, "H2");
        fake.port(own).states = states;
        let found = seen(&fake, "H2");
        assert_eq!(found[0].id, id, "{states:?}");
        assert!(!commands(&found[0]).contains("opensm"), "{states:?}");
    }
}
