//! Tests of a CPU clock below its nominal one: both sides of each threshold, and causes that look alike.

use linerate_facts::cpu::{Clock, Clocked};
use linerate_judge::model::Cpu;
use linerate_units::Hertz;

use super::*;

const NOMINAL: u64 = 2_000_000_000;

/// A receiving thread on CPU 3, which is busy for the share `busy` of the time, at `share` of the nominal clock.
fn clocked(busy: f64, share: f64) -> Model {
    let mut base = load();
    base.receivers = vec![Thread { cpu: Some(3), ..thread(busy) }];
    base.cpus.receiver = vec![Cpu {
        number: 3,
        busy,
        clock: Some(Hertz((NOMINAL as f64 * share) as u64)),
        ..Cpu::default()
    }];
    let mut m = model(base);
    m.hosts[1].facts.clocks = Some(vec![Clocked {
        cpus: vec![0, 1, 2, 3],
        clock: Clock {
            nominal: Some(Hertz(NOMINAL)),
            max: Some(Hertz(NOMINAL * 3 / 2)),
            limit: Some(Hertz(NOMINAL * 3 / 2)),
            driver: "acpi-cpufreq".into(),
            governor: "powersave".into(),
            ..Clock::default()
        },
    }]);
    m
}

fn clock(m: &mut Model) -> &mut Clock {
    let clocks = m.hosts[1].facts.clocks.as_mut();
    &mut clocks.expect("clocks")[0].clock
}

#[test]
fn a_low_clock_counts_where_its_cpu_is_wanted() {
    for (busy, share, expected) in [
        (0.96, 0.96, "clear"),
        (0.96, 0.94, "suspect"),
        (0.96, 0.91, "suspect"),
        (0.96, 0.89, "enough"),
        (0.94, 0.5, "suspect"),
        (0.79, 0.5, "clear"),
        (0.96, 1.4, "clear"),
    ] {
        let got = outcome(&clocked(busy, share), "cpu-clock");
        assert_eq!(got, expected, "{busy} busy at {share}");
    }
}

#[test]
fn what_was_not_read_is_unknown_only_where_a_cpu_is_wanted_and_its_clock_is_set() {
    let with = |busy, change: fn(&mut Model)| {
        let mut m = clocked(busy, 0.5);
        change(&mut m);
        outcome(&m, "cpu-clock")
    };
    let unread: fn(&mut Model) = |m| m.directions[0].base.cpus.receiver.clear();
    assert_eq!(with(0.96, unread), "unknown");
    assert_eq!(with(0.79, unread), "clear");
    let none: fn(&mut Model) = |m| m.directions[0].base.cpus.receiver[0].clock = Some(Hertz(0));
    assert_eq!(with(0.96, none), "unknown");
    let guest: fn(&mut Model) = |m| m.hosts[1].facts.clocks = Some(Vec::new());
    assert_eq!(with(0.96, guest), "clear");
    let unseen: fn(&mut Model) = |m| m.hosts[1].facts.clocks = None;
    assert_eq!(with(0.96, unseen), "unknown");
    let moved: fn(&mut Model) = |m| m.directions[0].base.receivers[0].cpu = Some(9);
    assert_eq!(with(0.96, moved), "unknown");
    // Half of the highest clock may be all that the CPU is specified for.
    let unrated: fn(&mut Model) = |m| clock(m).nominal = None;
    assert_eq!(with(0.96, unrated), "unknown");
    let mut fastest = clocked(0.96, 1.45);
    clock(&mut fastest).nominal = None;
    assert_eq!(outcome(&fastest, "cpu-clock"), "clear");
}

#[test]
fn the_advice_is_about_what_holds_the_clock_down_and_can_be_undone() {
    let advice = |change: fn(&mut Clock)| {
        let mut m = clocked(0.97, 0.5);
        change(clock(&mut m));
        let verdict = judge(&m);
        let limit = verdict.limits.into_iter().find(|l| l.cause == "cpu-clock");
        let advice = limit.expect("a limit").advice.remove(0);
        (advice.text(), advice.undo_text())
    };
    let (action, undo) = advice(|_| ());
    assert!(action.ends_with("frequency-set -g performance"), "{action}");
    assert!(undo.ends_with("-g powersave"), "{undo}");
    let (action, undo) = advice(|c| c.limit = Some(Hertz(NOMINAL / 2)));
    assert!(action.ends_with("-u 3000000kHz"), "{action}");
    assert!(undo.ends_with("-u 1000000kHz"), "{undo}");
    let (action, undo) = advice(|c| c.governor = "performance".into());
    assert!(action.contains("turbostat") && undo.is_empty(), "{action}");
}

#[test]
fn a_full_core_is_proved_whatever_its_clock_and_a_low_one_is_named_as_its_reason() {
    let mut m = clocked(0.97, 0.5);
    tried(&mut m, "receiver-work", 0.8);
    let verdict = judge(&m);
    let causes: Vec<_> = verdict.limits.iter().map(|l| (l.cause, l.certainty)).collect();
    let reason = ("cpu-clock", Certainty::Supported);
    assert_eq!(causes, [("receiver-core", Certainty::Proved), reason]);
    // A clock that was not read is no evidence against a full core.
    m.hosts[1].facts.clocks = None;
    assert_eq!(outcome(&m, "cpu-clock"), "unknown");
    let verdict = judge(&m);
    assert_eq!(verdict.limits[0].certainty, Certainty::Proved);
    let mut full = clocked(0.97, 1.0);
    tried(&mut full, "receiver-work", 0.8);
    let verdict = judge(&full);
    assert_eq!(verdict.limits[0].cause, "receiver-core");
    assert_eq!(verdict.limits[0].certainty, Certainty::Proved);
}

#[test]
fn a_thread_that_waits_for_the_network_does_not_care_for_its_clock() {
    let mut m = clocked(0.3, 0.4);
    tried(&mut m, "more-streams", 1.0);
    let verdict = judge(&m);
    assert_eq!(verdict.limits[0].cause, "path-rate");
}
