//! CPUs that the hypervisor gives to others.

use super::cpu::{cpus, crowded, kept, named};
use super::*;

#[test]
fn steal_invalidates_from_a_tenth_of_a_cpu_in_use() {
    for (steal, busy, expected) in [
        (0.09, 1.0, "clear"),
        (0.11, 1.0, "enough"),
        (0.2, 0.79, "clear"),
        (0.2, 0.81, "enough"),
        // A quarter is not made up for.
        (0.24, 0.5, "clear"),
        (0.26, 0.5, "enough"),
    ] {
        let mut m = crowded(0.6, 0.0, 0.0);
        m.directions[0].base.senders = vec![kept(0.2, 0.0)];
        m.directions[0].base.cpus[0] = cpus(0.2, 0.0);
        let cpu = &mut m.directions[0].base.cpus[1][1];
        (cpu.steal, cpu.busy) = (steal, busy);
        assert_eq!(outcome(&m, "cpu-steal"), expected, "{steal} of {busy}");
        // Of another CPU it is nobody's loss.
        m.directions[0].base.cpus[1][1].steal = 0.0;
        m.directions[0].base.cpus[1][2].steal = steal;
        assert_eq!(outcome(&m, "cpu-steal"), "clear");
    }
    let mut m = crowded(0.7, 0.0, 0.0);
    m.directions[0].base.senders = vec![kept(0.2, 0.0)];
    m.directions[0].base.cpus[0] = cpus(0.2, 0.0);
    m.directions[0].base.cpus[1][1].steal = 0.3;
    tried(&mut m, "more-streams", 1.0);
    let first = named(&m)[0];
    assert_eq!((first.0, first.2), ("cpu-steal", Place::Far));
}

#[test]
fn a_program_that_does_not_come_is_no_more_than_a_suspect_where_others_have_its_cpu() {
    for (others, expected) in [(0.29, "enough"), (0.31, "suspect")] {
        let mut m = crowded(0.5, 0.0, 0.0);
        let base = &mut m.directions[0].base;
        base.senders = vec![kept(0.5, 0.0)];
        base.cpus[0] = cpus(0.5, others);
        base.tcp.starved = Some(0.9);
        assert_eq!(outcome(&m, "sender-app"), expected, "{others}");
    }
}

#[test]
fn a_program_that_does_not_come_is_no_more_than_a_suspect_where_its_cpu_is_stolen() {
    // What is stolen and what the thread used come to four fifths of a CPU.
    for (steal, expected) in [(0.29, "enough"), (0.31, "suspect")] {
        let mut m = crowded(0.5, 0.0, 0.0);
        let base = &mut m.directions[0].base;
        base.senders = vec![kept(0.5, 0.0)];
        base.cpus[0] = cpus(0.5, 0.0);
        (base.cpus[0][1].steal, base.cpus[0][1].busy) = (steal, 0.6);
        base.tcp.starved = Some(0.9);
        assert_eq!(outcome(&m, "sender-app"), expected, "{steal}");
        let base = &mut m.directions[0].base;
        base.cpus[0][1].steal = 0.0;
        (base.cpus[1][1].steal, base.cpus[1][1].busy) = (steal, 0.6);
        base.behind = Some(0.1);
        assert_eq!(outcome(&m, "receiver-app"), expected, "{steal}");
        let base = &mut m.directions[0].base;
        (base.tcp.starved, base.behind) = (Some(0.9), Some(0.0));
        assert_eq!(outcome(&m, "sender-app"), "enough", "another machine's CPU");
        m.same_machine = true;
        assert_eq!(outcome(&m, "sender-app"), expected, "{steal}");
    }
}
