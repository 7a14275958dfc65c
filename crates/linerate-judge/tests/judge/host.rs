//! Tests of causes in the hardware of a host: NUMA nodes, clocks, memory.

use linerate_facts::nic::{Bond, Nic};
use linerate_facts::route::Route;
use linerate_facts::topology::Node;
use linerate_judge::model::Cpu;
use linerate_record::TrialPlan;

use super::*;

/// A physical port on node 0 of two nodes. The receiving thread on CPU `cpu` is busy for the share `busy`.
fn two_nodes(cpu: u32, busy: f64) -> Model {
    let mut base = load();
    base.receivers = vec![Thread { cpu: Some(cpu), ..thread(busy) }];
    base.made.receiver.cpus = vec![cpu];
    let mut m = model(base);
    let facts = &mut m.hosts[1].facts;
    let node = |id: u32| Node { id, cpus: (id * 4..id * 4 + 4).collect(), distances: Vec::new() };
    facts.cpus = (0..8).collect();
    facts.nodes = 2;
    facts.topology.nodes = vec![node(0), node(1)];
    facts.port = Some(Port {
        name: "eth0".into(),
        is_ethernet: true,
        speed_mbps: Some(100_000),
        node: Some(0),
        ..Port::default()
    });
    m
}

/// Sends all interrupts of the far port to `cpus`.
fn served(mut m: Model, cpus: &[u32]) -> Model {
    let port = m.hosts[1].facts.port.as_mut();
    port.expect("a port").served_by = cpus.to_vec();
    m
}

#[test]
fn a_thread_on_another_node_counts_where_its_cpu_is_wanted() {
    for (cpu, busy, expected) in [
        (4, 0.79, "clear"),
        (4, 0.81, "suspect"),
        (4, 0.94, "suspect"),
        (4, 0.96, "enough"),
        (3, 0.96, "clear"),
    ] {
        let got = outcome(&two_nodes(cpu, busy), "numa-remote");
        assert_eq!(got, expected, "CPU {cpu}, {busy} busy");
    }
}

#[test]
fn a_thread_on_the_other_half_of_a_package_does_not_count() {
    for (distance, answer) in [(12, "clear"), (14, "clear"), (15, "enough"), (21, "enough")] {
        let mut m = two_nodes(4, 0.96);
        let nodes = &mut m.hosts[1].facts.topology.nodes;
        nodes[0].distances = vec![10, distance];
        nodes[1].distances = vec![distance, 10];
        assert_eq!(outcome(&m, "numa-remote"), answer, "{distance}");
        m = served(m, &[5, 6]);
        assert_eq!(outcome(&m, "numa-remote"), answer, "{distance}");
    }
}

#[test]
fn interrupts_on_another_node_count_where_none_is_near_and_a_cpu_is_wanted() {
    let at = |cpus: &[u32], busy| {
        let mut m = served(two_nodes(0, 0.5), cpus);
        m.directions[0].base.cpus.receiver = vec![Cpu { number: 5, busy, ..Cpu::default() }];
        outcome(&m, "numa-remote")
    };
    assert_eq!(at(&[5, 6], 0.79), "clear");
    assert_eq!(at(&[5, 6], 0.81), "suspect");
    assert_eq!(at(&[3, 5], 0.81), "clear");
    assert_eq!(at(&[], 0.81), "clear");
}

#[test]
fn nodes_are_alike_or_unknown_where_nothing_sets_them_apart() {
    let with = |change: fn(&mut HostFacts)| {
        let mut m = two_nodes(4, 0.96);
        change(&mut m.hosts[1].facts);
        outcome(&m, "numa-remote")
    };
    assert_eq!(with(|f| f.topology.nodes.truncate(1)), "clear", "one node");
    assert_eq!(with(|f| f.topology.nodes[1].cpus.clear()), "clear", "memory alone");
    assert_eq!(with(|f| f.port.as_mut().expect("a port").node = None), "unknown");
    assert_eq!(with(|f| f.port.as_mut().expect("a port").node = Some(9)), "unknown");
    let veth = |f: &mut HostFacts| {
        f.port = Some(Port { node: None, is_virtual: true, ..Port::default() });
    };
    assert_eq!(with(veth), "clear");
    // A bond of cards on two nodes: a stream may use either card.
    let bond = |f: &mut HostFacts| {
        let port = f.port.as_mut().expect("a port");
        (port.node, port.is_virtual) = (None, true);
        f.route = Some(Route { ports: vec![Nic::default()], ..Route::default() });
    };
    assert_eq!(with(bond), "unknown");
    // The port's node is unknown, but the thread has time left.
    let mut idle = two_nodes(4, 0.5);
    idle.hosts[1].facts.port.as_mut().expect("a port").node = None;
    assert_eq!(outcome(&idle, "numa-remote"), "clear");
}

#[test]
fn threads_that_gain_beside_their_interrupts_prove_the_distance_and_no_others() {
    let m = || served(two_nodes(1, 0.97), &[5, 6]);
    let plan = kind("near-interrupts").expect("a kind");
    let plan = propose(plan, &m(), Direction::Forward, 0).expect("a trial");
    assert_eq!((plan.after.receiver_node, plan.after.sender_node), (Some(1), None));
    let judged = |ratio| {
        let mut m = m();
        tried(&mut m, "near-interrupts", ratio);
        judge(&m)
    };
    let gained = judged(1.3);
    assert_eq!(
        (gained.limits[0].cause, gained.limits[0].certainty),
        ("numa-remote", Certainty::Proved)
    );
    assert_eq!(gained.limits[0].side, Place::Far);
    let advice = gained.limits[0].advice[0].text();
    assert!(advice.contains("echo 0-3 |"), "{advice}");
    assert!(advice.contains("/smp_affinity_list; done | tee affinity-before.txt"), "{advice}");
    // Each interrupt had its own list, and interrupts of other ports stay out of the file.
    assert!(!advice.contains("/proc/irq/*/"), "{advice}");
    let undo = &gained.limits[0].advice[0].undo_text();
    assert!(undo.ends_with("done < affinity-before.txt"), "{undo}");
    // The interrupts of a bond are those of its members.
    let mut bonded = m();
    let [first, second] = ["eth2", "eth3"].map(|name| Nic {
        name: name.into(),
        index: u32::from(name == "eth3"),
        up: true,
        ..Nic::default()
    });
    let mut bond = Nic { kind: "bond".into(), index: 9, is_virtual: true, ..Nic::default() };
    bond.stack.below = vec![0, 1];
    bond.stack.bond = Some(Bond { mode: "802.3ad".into(), ..Bond::default() });
    bonded.hosts[1].facts.route =
        Some(Route { ports: vec![bond, first, second], ..Route::default() });
    tried(&mut bonded, "near-interrupts", 1.3);
    let advice = judge(&bonded).limits[0].advice[0].text();
    let both =
        "for i in /sys/class/net/eth2/device/msi_irqs/* /sys/class/net/eth3/device/msi_irqs/*;";
    assert!(advice.contains(both), "{advice}");
    for same in [1.0, 0.8] {
        let verdict = judged(same);
        assert!(verdict.limits.iter().all(|l| l.cause != "numa-remote"));
        assert_eq!(verdict.limits[0].cause, "receiver-core", "{same}");
    }
}

#[test]
fn a_trial_that_moves_the_other_end_promises_nothing() {
    let m = served(two_nodes(1, 0.97), &[5, 6]);
    let plan = kind("near-interrupts").expect("a kind");
    let mut plan = propose(plan, &m, Direction::Forward, 0).expect("a trial");
    let cause = cause("numa-remote").expect("a cause");
    let gain = |plan: &TrialPlan| cause.predict(&m, plan).expect("a prediction").high;
    assert!(gain(&plan) > 2.0);
    plan.after.sender_node = plan.after.receiver_node.take();
    assert!(gain(&plan) < 1.05);
}

#[test]
fn threads_follow_interrupts_only_where_there_is_room_for_all() {
    let proposed = |served_by: &[u32], streams: u32| {
        let mut m = served(two_nodes(1, 0.97), served_by);
        m.directions[0].base.streams = streams;
        let kind = kind("near-interrupts").expect("a kind");
        propose(kind, &m, Direction::Forward, 0).is_some()
    };
    assert!(proposed(&[5, 6], 2));
    assert!(!proposed(&[5, 6], 3), "two CPUs of the node are free");
    assert!(!proposed(&[3, 5], 1), "on two nodes");
    assert!(!proposed(&[0, 2], 1), "on the threads' own");
    assert!(!proposed(&[], 1), "nobody knows where");
}
