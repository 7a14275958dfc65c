//! Tests of causes in the hosts' own ports: shapers, drops.

use linerate_judge::model::{Local, LocalEvent, Shaping};

use super::*;

/// Payload of a port of 1 Gb/s with packets of 1500 bytes, in bits per second.
const CEILING: f64 = 1e9 * 1448.0 / 1514.0;

fn full_packets(mut load: Load) -> Load {
    load.packets = Some(FULL);
    load
}

fn tbf() -> Shaping {
    Shaping {
        subject: "eth0 tbf 1:".to_owned(),
        rate: Some(Rate(1_000_000_000)),
        flow_rate: None,
        frame: 14.0,
        waiting: Some(1.0),
        held: Some(5_000.0),
    }
}

fn fq(rate: u64) -> Shaping {
    Shaping {
        subject: "eth0 fq 8001:".to_owned(),
        rate: None,
        flow_rate: Some(Rate(rate)),
        held: Some(0.0),
        ..tbf()
    }
}

/// A load that passed a shaper, with a goodput of `share` of the shaper's ceiling.
fn shaped(shaper: Shaping, share: f64) -> Model {
    let mut load = full_packets(load());
    load.goodput.mean = CEILING * share;
    load.shapers = Some(vec![shaper]);
    model(load)
}

#[test]
fn a_shaper_is_reached_from_98_per_cent_and_holds_below_where_it_is_often_out_of_tokens() {
    let held = |held| Shaping { held: Some(held), ..tbf() };
    let idle = || Shaping { waiting: Some(0.89), ..tbf() };
    for (shaper, share, answer) in [
        (held(99.0), 0.899, "clear"),
        (held(101.0), 0.5, "enough"),
        (idle(), 0.899, "clear"),
        (tbf(), 0.901, "enough"),
        (idle(), 0.979, "suspect"),
        (idle(), 0.981, "enough"),
        (held(0.5), 0.979, "suspect"),
        (fq(1_000_000_000), 0.899, "clear"),
        (fq(1_000_000_000), 0.901, "enough"),
    ] {
        let words = format!("{shaper:?} at {share}");
        assert_eq!(outcome(&shaped(shaper, share), "host-shaping"), answer, "{words}");
    }
    let reached = judge(&shaped(idle(), 0.981));
    let limit = &reached.limits[0];
    assert_eq!(
        (limit.cause, limit.certainty, limit.side),
        ("host-shaping", Certainty::Proved, Place::Near)
    );
    assert!(limit.trial.is_none(), "a ceiling needs none");
}

#[test]
fn what_a_shaper_holds_the_network_does_not() {
    for (share, waiting, held, path) in [
        (0.981, 0.0, 1.0, "clear"),
        (0.979, 0.89, 1.0, "enough"),
        (0.979, 0.91, 1.0, "clear"),
        (0.899, 1.0, 99.0, "enough"),
        (0.899, 1.0, 101.0, "clear"),
    ] {
        let shaper = Shaping { waiting: Some(waiting), held: Some(held), ..tbf() };
        let m = shaped(shaper, share);
        assert_eq!(outcome(&m, "path-rate"), path, "{share} {waiting}");
    }
}

#[test]
fn a_rate_of_each_flow_grows_with_the_flows() {
    let half = || shaped(fq(500_000_000), 0.99);
    let mut two = half();
    two.directions[0].base.streams = 2;
    assert_eq!(outcome(&two, "host-shaping"), "enough", "2 x 500 Mb/s");
    two.directions[0].base.streams = 3;
    assert_eq!(outcome(&two, "host-shaping"), "clear", "3 x 500 Mb/s");
    let limit = |shaper| {
        let mut m = shaped(shaper, 0.95);
        tried(&mut m, "more-streams", 1.97);
        let verdict = judge(&m);
        let found = verdict.limits.iter().find(|l| l.cause == "host-shaping");
        found.map(|l| l.certainty)
    };
    assert_eq!(limit(fq(1_000_000_000)), Some(Certainty::Proved));
    assert_eq!(limit(tbf()), None, "a rate of all does not");
}

#[test]
fn a_shaper_that_nobody_read_is_unknown_only_where_something_was_held_back() {
    let held = |per_sec| {
        let mut load = load();
        load.local = vec![count(Side::Near, LocalEvent::Held, "eth0 htb 1:", per_sec)];
        model(load)
    };
    assert_eq!(outcome(&held(0.9), "host-shaping"), "clear");
    assert_eq!(outcome(&held(1.1), "host-shaping"), "unknown");
    let mut far = held(1.1);
    far.directions[0].base.local[0].side = Side::Far;
    assert_eq!(outcome(&far, "host-shaping"), "clear", "not the sender");
    let mut m = held(0.0);
    let gap = linerate_facts::Gap {
        what: "qdisc".to_owned(),
        why: "refused".to_owned(),
        hint: String::new(),
    };
    m.gaps = vec![(Side::Far, gap.clone())];
    assert_eq!(outcome(&m, "host-shaping"), "clear");
    m.gaps = vec![(Side::Near, gap)];
    assert_eq!(outcome(&m, "host-shaping"), "unknown");
    m.directions[0].base.shapers = Some(Vec::new());
    assert_eq!(outcome(&m, "host-shaping"), "clear", "they were read all the same");
    let mut m = shaped(tbf(), 1.0);
    m.directions[0].base.packets = None;
    assert_eq!(outcome(&m, "host-shaping"), "unknown", "how much is payload?");
}

#[test]
fn what_to_do_with_a_shaper_is_an_exact_command() {
    let result_of = |subject: &str, shaper: Shaping| {
        let shaper = Shaping { subject: subject.to_owned(), ..shaper };
        let limit = judge(&shaped(shaper, 0.99)).limits.remove(0);
        limit.advice[0].clone()
    };
    let advice = result_of("eth0 fq 8001:", fq(1_000_000_000));
    assert_eq!(
        advice.text(),
        "on near: sudo tc qdisc change dev eth0 handle 8001: fq maxrate 34gbit"
    );
    assert_eq!(
        advice.undo_text(),
        "on near: sudo tc qdisc change dev eth0 handle 8001: fq maxrate 1000000000bit"
    );
    let advice = result_of("eth0 htb 1:10", tbf());
    assert!(advice.what.contains("class 1:10 (htb)"), "{advice:?}");
    assert_eq!(advice.text(), "on near: tc -d class show dev eth0");
    let advice = result_of("eth0 tbf 1:", tbf());
    assert!(advice.what.contains("queue 1: (tbf)"), "{advice:?}");
    assert!(advice.undo.is_empty(), "it only looks: {advice:?}");
}

#[test]
fn all_queues_of_a_port_with_one_limit_of_flows_are_raised() {
    let mut m = shaped(fq(1_000_000_000), 0.99);
    let second = Shaping { subject: "eth0 fq 8002:".to_owned(), ..fq(1_000_000_000) };
    let shapers = m.directions[0].base.shapers.as_mut();
    shapers.expect("one").push(second);
    assert_eq!(
        judge(&m).limits[0].advice[0].text(),
        "on near: for h in 8001: 8002:; do sudo tc qdisc change dev eth0 handle $h fq maxrate 34gbit; done"
    );
}

fn count(side: Side, what: LocalEvent, subject: &str, per_sec: f64) -> Local {
    Local {
        side,
        what,
        subject: subject.to_owned(),
        count: per_sec * 3.0,
        per_sec,
        bytes: None,
        meant: None,
    }
}

/// A load of 100,000 segments per second, of which `repeated` were retransmitted, with these drops of the hosts.
fn dropping(local: Vec<Local>, repeated: f64) -> Model {
    let mut load = full_packets(load());
    load.tcp.segments = Some(100_000.0);
    load.tcp.repeated = Some(repeated);
    load.tcp.retransmitted = Some(repeated / 100_000.0);
    load.local = local;
    model(load)
}

fn ring(per_sec: f64) -> Vec<Local> {
    vec![count(Side::Far, LocalEvent::Ring, "eth0", per_sec)]
}

#[test]
fn drops_count_where_they_explain_what_was_sent_again() {
    for (drops, repeated, answer, path) in [
        // If each drop were a group of 45 segments, 1.1 drops per second would be enough.
        (1.05, 0.0, "clear", "enough"),
        (1.2, 0.0, "suspect", "enough"),
        (49.0, 0.0, "suspect", "enough"),
        (51.0, 0.0, "enough", "clear"),
        (51.0, 101.0, "enough", "clear"),
        (51.0, 103.0, "suspect", "enough"),
        // Even as groups of 45, the drops would be less than half of the loss.
        (51.0, 4_700.0, "clear", "enough"),
    ] {
        let m = dropping(ring(drops), repeated);
        assert_eq!(outcome(&m, "local-drops"), answer, "{drops} of {repeated}");
        assert_eq!(outcome(&m, "path-rate"), path, "{drops} of {repeated}");
    }
    let mut m = dropping(ring(51.0), 0.0);
    m.directions[0].base.tcp.segments = None;
    assert_eq!(outcome(&m, "local-drops"), "unknown");
    m.directions[0].base.tcp.network = Some(0.4);
    m.directions[0].base.tcp.rtt = UNQUEUED;
    assert_eq!(outcome(&m, "local-drops"), "clear", "a window holds it");
}

#[test]
fn drops_count_on_the_way_of_the_payload_and_once() {
    use LocalEvent::{Arrival, Backlog, Departure, Queue, Ring};
    let answer = |local: Vec<Local>| outcome(&dropping(local, 100.0), "local-drops");
    let one = |side, what, subject: &str| answer(vec![count(side, what, subject, 60.0)]);
    assert_eq!(one(Side::Near, Queue, "eth0 tbf 1:"), "enough");
    assert_eq!(one(Side::Far, Queue, "eth0 tbf 1:"), "clear", "acknowledgements");
    assert_eq!(one(Side::Far, Queue, "eth0 ingress ffff:"), "enough");
    assert_eq!(one(Side::Near, Queue, "eth0 ingress ffff:"), "clear");
    assert_eq!(one(Side::Near, Departure, "eth0"), "enough");
    assert_eq!(one(Side::Near, Ring, "eth0"), "clear");
    assert_eq!(one(Side::Far, Backlog, "1"), "enough");
    assert_eq!(one(Side::Far, Arrival, "eth0"), "enough");
    // A discipline and its child may count the same drops, and so may a CPU and a port.
    let both = |a: Local, b: Local| answer(vec![a, b]);
    let queue = |subject: &str| count(Side::Near, Queue, subject, 30.0);
    assert_eq!(both(queue("eth0 htb 1:"), queue("eth0 pfifo 2:")), "suspect");
    assert_eq!(both(queue("eth0 htb 1:"), queue("eth1 pfifo 2:")), "enough");
    let arrival = |what, subject| count(Side::Far, what, subject, 30.0);
    assert_eq!(both(arrival(Backlog, "1"), arrival(Arrival, "eth0")), "suspect");
    assert_eq!(both(arrival(Ring, "eth0"), arrival(Arrival, "eth0")), "enough");
}

#[test]
fn drops_that_a_trial_has_excluded_leave_the_path_in_play() {
    let at = |ratio| {
        let mut m = dropping(ring(60.0), 100.0);
        tried(&mut m, "larger-send-buffer", ratio);
        (outcome(&m, "local-drops"), outcome(&m, "path-rate"))
    };
    assert_eq!(at(1.0), ("enough", "clear"));
    assert_eq!(at(1.3).1, "enough", "a buffer held it, no drops");
}

#[test]
fn drops_are_named_with_the_command_that_makes_room() {
    let verdict = judge(&dropping(ring(60.0), 100.0));
    let limit = &verdict.limits[0];
    assert_eq!(
        (limit.cause, limit.certainty, limit.side),
        ("local-drops", Certainty::Supported, Place::Far)
    );
    let [save, set] = &limit.advice[0].steps[..] else {
        panic!("{limit:?}");
    };
    assert_eq!(save.command, "ethtool -g eth0 | tee ring-before.txt");
    assert_eq!(
        set.command,
        "sudo ethtool -G eth0 rx $(awk '/^RX:/ {print $2; exit}' ring-before.txt)"
    );
    // If a CPU is full, it is the reason for the drops.
    let mut m = dropping(ring(60.0), 100.0);
    let cpu = |softirq| linerate_judge::model::Cpu { softirq, ..Default::default() };
    m.directions[0].base.cpus.receiver = vec![cpu(0.89)];
    assert_eq!(outcome(&m, "local-drops"), "enough");
    m.directions[0].base.cpus.receiver = vec![cpu(0.91)];
    assert_eq!(outcome(&m, "local-drops"), "clear");
}
