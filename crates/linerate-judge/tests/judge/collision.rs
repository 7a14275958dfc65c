//! Tests of streams that fall into one receive queue while other queues are idle.

use linerate_judge::model::Cpu;

use super::*;

/// A far end whose port has queues that CPUs 0 to 3 serve; these spend the shares `softirq` of their time on packets.
/// Stream n is received by CPU `takes_in[n]`. The threads of the streams have time left, on other CPUs.
fn dealt(softirq: [f64; 4], takes_in: &[Option<u32>]) -> Model {
    let mut base = load();
    base.streams = takes_in.len() as u32;
    base.knobs.streams = base.streams;
    base.senders = vec![thread(0.2); takes_in.len()];
    let reader = |(at, takes_in): (usize, &Option<u32>)| Thread {
        cpu: Some(4 + at as u32),
        home: Some(4 + at as u32),
        takes_in: *takes_in,
        ..thread(0.3)
    };
    base.receivers = takes_in.iter().enumerate().map(reader).collect();
    let idle = (4..8).map(|number| (number, 0.0));
    let serving = (0..4).zip(softirq);
    let cpus = serving.chain(idle).map(|(number, softirq)| Cpu {
        number,
        busy: f64::max(softirq, 0.02),
        softirq,
        ours: Some(0.0),
        others: Some(0.0),
        ..Cpu::default()
    });
    base.cpus.receiver = cpus.collect();
    let mut m = model(base);
    m.hosts[1].facts.cpus = (0..8).collect();
    let port = m.hosts[1].facts.port.as_mut();
    port.expect("a port").served_by = vec![0, 1, 2, 3];
    m
}

/// Two streams in one queue, whose CPU spends this share of its time on softirq.
fn two(softirq: f64) -> Model {
    dealt([0.01, softirq, 0.0, 0.02], &[Some(1), Some(1)])
}

#[test]
fn streams_collide_where_their_cpu_is_full_and_that_of_another_queue_is_not() {
    for (softirq, beside, expected) in
        [(0.91, 0.19, "enough"), (0.89, 0.19, "clear"), (0.91, 0.21, "clear")]
    {
        let m = dealt([beside, softirq, 0.8, 0.8], &[Some(1), Some(1)]);
        let what = format!("{softirq}, {beside} beside");
        assert_eq!(outcome(&m, "hash-collision"), expected, "{what}");
    }
}

#[test]
fn one_stream_alone_collides_with_nothing() {
    let of = |takes_in: &[Option<u32>]| {
        let m = dealt([0.0, 0.97, 0.0, 0.0], takes_in);
        // The CPU is full, whatever streams fill it.
        assert_eq!(outcome(&m, "softirq-core"), "enough");
        outcome(&m, "hash-collision")
    };
    assert_eq!(of(&[Some(1)]), "clear");
    assert_eq!(of(&[Some(1), Some(2)]), "clear");
    assert_eq!(of(&[Some(1), Some(2), Some(1)]), "enough");
    assert_eq!(of(&[Some(1), None]), "unknown");
}

#[test]
fn a_port_of_which_one_queue_is_known_cannot_show_it() {
    for served in [&[][..], &[1]] {
        let mut m = two(0.97);
        let port = m.hosts[1].facts.port.as_mut();
        port.expect("a port").served_by = served.to_vec();
        assert_eq!(outcome(&m, "hash-collision"), "clear", "{served:?}");
    }
}

#[test]
fn ports_are_only_changed_where_streams_collide() {
    let proposed = |m: &Model| {
        let kind = kind("other-ports").expect("a kind");
        let plan = propose(kind, m, Direction::Forward, 0);
        plan.map(|plan| (plan.before.other_ports, plan.after.other_ports))
    };
    assert_eq!(proposed(&two(0.97)), Some((false, true)));
    assert_eq!(proposed(&two(0.5)), None);
    let next = next_trial(&two(0.97), Direction::Forward, 0).expect("a trial");
    assert_eq!(next.kind, "other-ports");
}

/// The causes that are named, with their certainty and place.
fn named(model: &Model) -> Vec<(&'static str, Certainty, Place)> {
    let limits = judge(model).limits;
    limits.iter().map(|l| (l.cause, l.certainty, l.side)).collect()
}

#[test]
fn a_gain_by_other_ports_proves_the_collision_and_none_the_full_cpu() {
    let judged = |ratio| {
        let mut m = two(0.97);
        tried(&mut m, "other-ports", ratio);
        m
    };
    let gained = judged(1.8);
    let collision = ("hash-collision", Certainty::Proved, Place::Far);
    assert_eq!(named(&gained), [collision]);
    let advice = &judge(&gained).limits[0].advice;
    assert!(advice.iter().any(|a| a.text().contains("rps_cpus")), "{advice:?}");
    // Two queues cannot carry more than twice as much as one, so the gain has another reason.
    assert!(!named(&judged(2.5)).contains(&collision));
    let mut same = judged(1.0);
    tried(&mut same, "more-streams", 1.0);
    let full = ("softirq-core", Certainty::Proved, Place::Far);
    assert_eq!(named(&same), [full]);
}

#[test]
fn connections_that_collide_again_tell_nothing() {
    let mut m = two(0.97);
    tried(&mut m, "other-ports", 1.0);
    let mut changed = m.directions[0].base.clone();
    m.trials[0].changed = Some(changed.clone());
    let collision = ("hash-collision", Certainty::Supported, Place::Far);
    assert!(named(&m).contains(&collision));
    changed.receivers[1].takes_in = Some(2);
    m.trials[0].changed = Some(changed);
    assert!(!named(&m).contains(&collision), "they were apart");
}
