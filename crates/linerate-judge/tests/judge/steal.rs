//! Tests of CPUs whose time the hypervisor gives to other machines.

use super::cpu::{cpus, crowded, kept, named};
use super::*;
use linerate_judge::model::Throttled;

/// A receiver on CPU 1 of the far host, with its shares of time running and waiting. The hypervisor took the share
/// `steal` of that CPU, which was idle for `idle`. The kernel does not count stolen time as running.
fn robbed(busy: f64, waiting: f64, steal: f64, idle: f64) -> Model {
    let mut m = crowded(busy, waiting, 0.0);
    let base = &mut m.directions[0].base;
    base.senders = vec![kept(0.2, 0.0)];
    base.cpus.sender = cpus(0.2, 0.0);
    let cpu = &mut base.cpus.receiver[1];
    (cpu.steal, cpu.busy) = (steal, 1.0 - idle);
    let own = busy + waiting;
    base.receivers[0].taken = Some(((own + steal).min(cpu.busy) - own).max(0.0));
    m
}

/// The disturbances: cause, place, and about how many times the goodput would be without each.
pub(super) fn disturbed(m: &Model) -> Vec<(&'static str, Place, Option<f64>)> {
    let verdict = judge(m);
    let all = verdict.disturbances.iter();
    let rounded = |most: f64| (most * 100.0).round() / 100.0;
    all.map(|d| (d.cause, d.side, d.gain().map(rounded))).collect()
}

#[test]
fn steal_limits_a_thread_that_neither_ran_nor_slept() {
    for (busy, waiting, steal, idle, expected) in [
        (0.81, 0.0, 0.16, 0.03, "enough"),
        // Too little is stolen to gain from, so the core is the limit.
        (0.85, 0.0, 0.14, 0.01, "clear"),
        // The thread waits in the queue of a CPU that the hypervisor took.
        (0.5, 0.3, 0.3, 0.03, "enough"),
        // The CPU is idle for some time: nothing needs it then.
        (0.5, 0.0, 0.44, 0.06, "suspect"),
        (0.5, 0.0, 0.31, 0.19, "suspect"),
        (0.5, 0.0, 0.29, 0.21, "clear"),
        (0.05, 0.0, 0.36, 0.59, "clear"),
    ] {
        let m = robbed(busy, waiting, steal, idle);
        let what = format!("{busy} ran, {waiting} waited, {steal} stolen, {idle} idle");
        assert_eq!(outcome(&m, "cpu-steal"), expected, "{what}");
        // Where the time went decides between the two causes: at most one of them applies.
        let core = outcome(&m, "receiver-core");
        assert!(core == "clear" || expected == "clear", "{what}: {core}");
        // Time stolen from a CPU that the thread does not use does not matter.
        let mut other = m.clone();
        let cpus = &mut other.directions[0].base.cpus.receiver;
        (cpus[2].steal, cpus[1].steal) = (steal, 0.0);
        assert_eq!(outcome(&other, "cpu-steal"), "clear", "{what}");
        assert!(disturbed(&other).is_empty());
    }
}

#[test]
fn a_kernel_that_counts_stolen_time_as_time_that_a_thread_ran_shows_it_by_the_sum() {
    for (ran, steal, expected) in [(0.98, 0.18, "enough"), (0.96, 0.18, "clear")] {
        let m = robbed(ran, 0.0, steal, 0.0);
        assert_eq!(outcome(&m, "cpu-steal"), expected, "{ran} {steal}");
    }
}

#[test]
fn a_stolen_cpu_that_handles_packets_limits_as_well() {
    for (softirq, expected) in [(0.66, "enough"), (0.64, "suspect"), (0.49, "clear")] {
        let mut m = robbed(0.3, 0.0, 0.0, 0.0);
        m.hosts[1].facts.port.as_mut().expect("a port").served_by = vec![2];
        let cpu = &mut m.directions[0].base.cpus.receiver[2];
        (cpu.softirq, cpu.steal, cpu.busy) = (softirq, 0.3, softirq + 0.3);
        assert_eq!(outcome(&m, "cpu-steal"), expected, "{softirq}");
        assert_eq!(disturbed(&m).is_empty(), expected == "enough");
    }
}

#[test]
fn steal_is_no_limit_where_the_other_end_visibly_paces_the_flow() {
    for (starved, expected) in [(0.49, "enough"), (0.51, "suspect")] {
        let mut m = robbed(0.6, 0.0, 0.38, 0.02);
        m.directions[0].base.tcp.starved = Some(starved);
        assert_eq!(outcome(&m, "cpu-steal"), expected, "a receiver, {starved}");
        // Now a sender with the same CPU, whose socket runs empty.
        let base = &mut m.directions[0].base;
        std::mem::swap(&mut base.senders, &mut base.receivers);
        let cpus = &mut base.cpus;
        std::mem::swap(&mut cpus.sender, &mut cpus.receiver);
        let of_sender = if expected == "enough" { "suspect" } else { "enough" };
        assert_eq!(outcome(&m, "cpu-steal"), of_sender, "a sender, {starved}");
    }
}

/// A receiver that moved between CPUs and ran for `busy` of the time. The hypervisor took `steal` of each CPU.
fn moved(busy: f64, steal: f64) -> Model {
    let mut m = robbed(busy, 0.0, steal, 0.0);
    let base = &mut m.directions[0].base;
    (base.receivers[0].home, base.receivers[0].taken) = (None, None);
    for cpu in &mut base.cpus.receiver {
        (cpu.steal, cpu.busy) = (steal, 1.0);
    }
    m
}

#[test]
fn steal_of_a_thread_that_moved_stays_in_play_where_it_needed_its_cpus() {
    for (busy, steal, expected) in
        [(0.51, 0.3, "suspect"), (0.49, 0.3, "clear"), (0.7, 0.16, "suspect"), (0.7, 0.14, "clear")]
    {
        let mut m = moved(busy, steal);
        assert_eq!(outcome(&m, "cpu-steal"), expected, "{busy} {steal}");
        // Stolen time may be the limit: nothing else is proved until a trial excludes it.
        tried(&mut m, "more-streams", 1.0);
        let proved = named(&m).iter().any(|l| l.1 == Certainty::Proved);
        assert_eq!(proved, expected == "clear", "{busy} {steal}");
    }
    let gain = disturbed(&moved(0.9, 0.3));
    assert_eq!(gain, [("cpu-steal", Place::Far, Some(1.43))]);
}

#[test]
fn steal_that_was_not_read_stops_no_proof() {
    let mut m = model(load());
    assert_eq!(outcome(&m, "cpu-steal"), "unknown");
    tried(&mut m, "more-streams", 1.0);
    assert_eq!(judge(&m).limits[0].certainty, Certainty::Proved);
    assert!(disturbed(&m).is_empty());
}

#[test]
fn more_work_proves_steal_by_more_than_its_share_and_none_excludes_it() {
    let judged = |ratio| {
        let mut m = robbed(0.58, 0.0, 0.4, 0.02);
        m.directions[0].sweep.clear();
        tried(&mut m, "receiver-work", ratio);
        m
    };
    // Work that adds 25 % to the time of each byte adds 42 % to the CPU time that the thread gets.
    let slowed = judged(0.7);
    let limit = ("cpu-steal", Certainty::Proved, Place::Far);
    assert_eq!(named(&slowed), [limit]);
    assert!(disturbed(&slowed).is_empty(), "it is told once");
    let gain = judge(&slowed).limits[0].advice[0].gain.expect("a gain");
    assert!((gain - 1.0 / (1.0 - 0.4 / 0.98)).abs() < 0.01, "{gain}");
    let unmoved = judged(1.0);
    assert!(named(&unmoved).iter().all(|l| l.0 != "cpu-steal"));
    assert_eq!(disturbed(&unmoved), [("cpu-steal", Place::Far, Some(1.67))]);
    let advice = &judge(&unmoved).disturbances[0].advice;
    assert_eq!(advice[0].gain, None, "a trial showed that it gains nothing");
}

#[test]
fn steal_beside_a_path_that_is_slow_disturbs_from_a_tenth_of_a_cpu_on() {
    for (steal, expected) in
        [(0.09, None), (0.11, Some(1.12)), (0.36, Some(1.56)), (0.7, Some(3.33))]
    {
        let mut m = robbed(0.05, 0.0, steal, 0.95 - steal);
        tried(&mut m, "more-streams", 1.0);
        let path = ("path-rate", Certainty::Proved, Place::Path);
        assert_eq!(named(&m), [path], "{steal}");
        let expected = expected.map(|most| ("cpu-steal", Place::Far, Some(most)));
        assert_eq!(disturbed(&m), Vec::from_iter(expected), "{steal}");
    }
}

#[test]
fn programs_beside_a_load_that_has_time_disturb_from_a_tenth_of_waiting_on() {
    for (waiting, others, expected) in [
        (0.09, 0.5, None),
        (0.11, 0.5, Some(1.12)),
        (0.11, 0.14, None),
        (0.11, 0.16, Some(1.12)),
        // Other threads that ran for less than half of the time that this thread waited do not explain the waiting.
        (0.4, 0.19, None),
        (0.4, 0.21, Some(1.67)),
        (0.4, 0.5, Some(1.67)),
    ] {
        let mut m = crowded(0.05, waiting, others);
        m.directions[0].base.cpus.receiver[1].busy = 0.6;
        tried(&mut m, "more-streams", 1.0);
        let path = ("path-rate", Certainty::Proved, Place::Path);
        assert_eq!(named(&m), [path], "{waiting} {others}");
        let expected = expected.map(|most| ("cpu-contention", Place::Far, Some(most)));
        assert_eq!(disturbed(&m), Vec::from_iter(expected), "{waiting} {others}");
    }
    // A control group that used up its quota waits in the run queue as well.
    let mut m = crowded(0.4, 0.4, 0.5);
    m.directions[0].base.throttled.receiver =
        Some(Throttled { group: "/docker".to_owned(), periods: 0.9, time: 0.4 });
    assert!(disturbed(&m).is_empty());
    // If contention is the limit, it is listed only as the limit.
    let m = crowded(0.5, 0.46, 0.5);
    assert_eq!(named(&m)[0].0, "cpu-contention");
    assert!(disturbed(&m).is_empty());
}

#[test]
fn a_program_that_does_not_come_is_no_more_than_a_suspect_where_others_have_its_cpu() {
    for (others, expected) in [(0.29, "enough"), (0.31, "suspect")] {
        let mut m = crowded(0.5, 0.0, 0.0);
        let base = &mut m.directions[0].base;
        base.senders = vec![kept(0.5, 0.0)];
        base.cpus.sender = cpus(0.5, others);
        base.tcp.starved = Some(0.9);
        assert_eq!(outcome(&m, "sender-app"), expected, "{others}");
    }
}

#[test]
fn a_program_that_does_not_come_is_no_more_than_a_suspect_where_its_cpu_is_stolen() {
    // The threshold: stolen time and the thread's own time are four fifths of a CPU together.
    for (steal, expected) in [(0.29, "enough"), (0.31, "suspect")] {
        let mut m = crowded(0.5, 0.0, 0.0);
        let base = &mut m.directions[0].base;
        base.senders = vec![kept(0.5, 0.0)];
        base.cpus.sender = cpus(0.5, 0.0);
        (base.cpus.sender[1].steal, base.cpus.sender[1].busy) = (steal, 0.6);
        base.tcp.starved = Some(0.9);
        assert_eq!(outcome(&m, "sender-app"), expected, "{steal}");
        let base = &mut m.directions[0].base;
        base.cpus.sender[1].steal = 0.0;
        (base.cpus.receiver[1].steal, base.cpus.receiver[1].busy) = (steal, 0.6);
        base.behind = Some(0.1);
        assert_eq!(outcome(&m, "receiver-app"), expected, "{steal}");
        let base = &mut m.directions[0].base;
        (base.tcp.starved, base.behind) = (Some(0.9), Some(0.0));
        assert_eq!(outcome(&m, "sender-app"), "enough", "another machine's CPU");
        m.same_machine = true;
        assert_eq!(outcome(&m, "sender-app"), expected, "{steal}");
    }
}
