//! Rule about ports whose queues all send their interrupts to the same few CPUs.

use std::collections::BTreeSet;

use super::affinity::{MOST, send};
use super::{Finding, count, cpus, few, numbered, ranges};
use crate::Inventory;
use crate::advice::{Advice, Step};
use crate::cpu::{Cpu, Processors};
use crate::irq::{Irq, Served};
use crate::nic::{Nic, QueueDirection};

/// Largest number of CPUs that count as crowded: if three CPUs serve the interrupts, somebody has spread them.
const CROWDED: usize = 2;
/// Spreading interrupts gains little unless this many times as many CPUs as now could serve them.
const GAIN: usize = 4;

/// A fast port whose queues are served by one or two CPUs, although it has more queues and the machine has more CPUs.
pub(super) fn crowded(inventory: &Inventory) -> Vec<Finding> {
    let served = inventory.interrupts.by_port(&inventory.network.nics);
    let odd = |nic: &Nic| {
        let queues = queues(nic, served.get(&nic.index)?);
        let by = served_by(&queues)?;
        let all = &inventory.processors;
        let could = usable(all).len().min(queues.len());
        let is_crowded = by.len() <= CROWDED && by.len() * GAIN <= could;
        (is_crowded && !is_spread_later(nic, &by)).then(|| oddity(nic, &queues, &by, all))
    };
    let ports = inventory.network.nics.iter();
    ports.filter(|nic| is_fast(nic)).filter_map(odd).collect()
}

/// Whether a port is up and fast. The speed of a virtual port is nominal and no ceiling, but its interrupts are real.
fn is_fast(nic: &Nic) -> bool {
    nic.up && !nic.is_software() && nic.has_fast_speed()
}

/// The interrupts of a port's receive queues, as the kernel lists them, or else by their names; if there are no such
/// names, all interrupts of the port.
fn queues<'a>(nic: &Nic, irqs: &[&'a Irq]) -> Vec<&'a Irq> {
    let receive = nic.queues.iter().filter(|q| q.direction == QueueDirection::Rx);
    let numbers: BTreeSet<u32> = receive.filter_map(|q| q.irq).collect();
    let has_names = irqs.iter().any(|irq| irq.queue().is_some());
    let receives = |irq: &&Irq| match (numbers.is_empty(), has_names) {
        (false, _) => numbers.contains(&irq.number),
        (true, true) => irq.queue().is_some_and(Served::receives),
        (true, false) => true,
    };
    irqs.iter().copied().filter(receives).collect()
}

/// The CPUs that serve `irqs`; `None` if the CPUs of one interrupt are unknown. If the effective affinity is unknown,
/// the CPU that served the interrupt most often is used.
fn served_by(irqs: &[&Irq]) -> Option<BTreeSet<u32>> {
    let mut all = BTreeSet::new();
    for irq in irqs {
        if irq.effective.is_empty() {
            all.insert(irq.busiest.filter(|_| irq.total > Some(0))?);
        }
        all.extend(&irq.effective);
    }
    (!all.is_empty()).then_some(all)
}

/// Whether the work that follows an interrupt continues on other CPUs: RPS passes packets to other CPUs, and polling
/// threads run anywhere.
fn is_spread_later(nic: &Nic, by: &BTreeSet<u32>) -> bool {
    nic.threaded == Some(true) || nic.rps_cpus().union(by).count() > CROWDED
}

/// CPUs over which interrupts may be spread. CPUs that are reserved for other work are left out.
pub(super) fn usable(all: &Processors) -> Vec<&Cpu> {
    let kept: BTreeSet<&u32> = all.isolated.iter().chain(&all.tickless).collect();
    let usable = |cpu: &&Cpu| !kept.contains(&cpu.id);
    all.cpus.iter().filter(usable).collect()
}

fn oddity(nic: &Nic, queues: &[&Irq], by: &BTreeSet<u32>, all: &Processors) -> Finding {
    let by: Vec<u32> = by.iter().copied().collect();
    let numbers: Vec<u32> = queues.iter().map(|irq| irq.number).collect();
    let mut allowed: Vec<String> = queues.iter().map(|irq| ranges(&irq.allowed)).collect();
    allowed.sort_unstable();
    allowed.dedup();
    allowed.retain(|list| !list.is_empty());
    let affinity = match allowed.as_slice() {
        [] => String::new(),
        lists => format!(" (allowed: {}, effective: {})", few(lists), ranges(&by)),
    };
    Finding::new(
        "irq-crowded",
        &nic.name,
        format!(
            "the interrupts of its {} queues ({}) all go to {} of {}{affinity}",
            queues.len(),
            numbered(&numbers),
            cpus(&by),
            all.cpus.len()
        ),
    )
    .brief(format!(
        "{} of {} {} all {} receive queues",
        by.len(),
        count(all.cpus.len(), "CPU"),
        if by.len() == 1 { "serves" } else { "serve" },
        queues.len()
    ))
    .why(
        "these CPUs process every packet that the port receives; they saturate \
         before the link does, while other CPUs are idle",
    )
    .limiting_itself()
    .fix(spread(nic, queues, all))
}

/// Advice to give each queue its own CPU, as near to the card as possible.
fn spread(nic: &Nic, queues: &[&Irq], all: &Processors) -> Advice {
    let close = nic.node.and_then(|node| all.topology().close_to(node));
    let usable = usable(all);
    let is_close = |cpu: &&Cpu| close.as_ref().is_none_or(|close| close.contains(&cpu.id));
    let mut near: Vec<&Cpu> = usable.iter().copied().filter(is_close).collect();
    if near.is_empty() {
        near = usable;
    }
    // The first CPU of each core comes before the second one.
    let is_second = |cpu: &Cpu| cpu.siblings.first().is_some_and(|first| *first != cpu.id);
    near.sort_by_key(|cpu| (is_second(cpu), cpu.id));
    let given = near.iter().cycle().take(queues.len());
    let given: Vec<String> = given.map(|cpu| cpu.id.to_string()).collect();
    let about = match queues.len() {
        n if n > MOST => format!("or, where it does not run, the first {MOST} of {n} by hand"),
        _ => "or, where it does not run, by hand".to_owned(),
    };
    let balance = |verb: &str| format!("sudo systemctl {verb} irqbalance");
    let advice = Advice::new("spread them over more CPUs")
        .step(Step::set(None, balance("start")).about("where irqbalance is installed"));
    let undo = Step::set(None, balance("stop")).about("if irqbalance was started");
    send(advice, queues, &given, &about).undo(undo)
}

#[cfg(test)]
mod tests {
    use super::super::{find, ids};
    use super::*;
    use crate::nic::{FAST, Queue};
    use linerate_units::Rate;

    /// A machine with `cpus` CPUs and a port of 10 Gb/s. `by` gives the CPUs of each queue's interrupt.
    fn machine(cpus: u32, by: &[&[u32]]) -> Inventory {
        let mut machine = Inventory::default();
        machine.processors.cpus = (0..cpus).map(|id| Cpu { id, ..Cpu::default() }).collect();
        let mut nic = Nic { name: "eth0".to_owned(), index: 2, up: true, ..Nic::default() };
        nic.link.speed = Some(FAST);
        machine.network.nics = vec![nic];
        let irq = |(at, effective): (usize, &&[u32])| Irq {
            number: 27 + at as u32,
            name: format!("eth0-TxRx-{at}"),
            effective: effective.to_vec(),
            allowed: (0..cpus).collect(),
            ..Irq::default()
        };
        machine.interrupts.irqs = by.iter().enumerate().map(irq).collect();
        machine
    }

    #[test]
    fn all_queues_on_one_cpu_are_odd_with_the_command_that_spreads_them() {
        let machine = machine(32, &[&[0][..]; 16]);
        let found = find(&machine);
        assert_eq!(ids(&machine), ["irq-crowded"]);
        assert_eq!(
            found[0].what,
            "the interrupts of its 16 queues (numbers 27-42) all go to CPU 0 of 32 (allowed: 0-31, effective: 0)"
        );
        assert_eq!(found[0].brief, "1 of 32 CPUs serves all 16 receive queues");
        assert_eq!(found[0].limits, ["eth0"]);
        let (by_hand, undo) = (&found[0].fix.steps[1], &found[0].fix.undo[0]);
        let pairs: Vec<String> = (0..16).map(|n| format!("{}:{n}", 27 + n)).collect();
        assert_eq!(
            by_hand.command,
            format!(
                "for pair in {}; do echo ${{pair#*:}} | sudo tee /proc/irq/${{pair%:*}}/smp_affinity_list; done",
                pairs.join(" ")
            )
        );
        assert_eq!(
            undo.command,
            "for irq in $(seq 27 42); do echo 0-31 | sudo tee /proc/irq/$irq/smp_affinity_list; done"
        );
    }

    /// The CPUs that the command assigns to the queues.
    fn given(advice: &Advice) -> Vec<&str> {
        let command = &advice.steps.last().unwrap().command;
        let words = command.split([' ', ';']);
        let pairs = words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        pairs.filter_map(|pair| Some(pair.split_once(':')?.1)).collect()
    }

    #[test]
    fn one_cpu_of_four_is_too_few_and_two_of_eight_are() {
        let odd = |cpus, by: &[&[u32]]| !ids(&machine(cpus, by)).is_empty();
        assert!(odd(4, &[&[0][..]; 4]));
        assert!(!odd(3, &[&[0][..]; 4]), "CPUs");
        assert!(!odd(4, &[&[0][..]; 3]), "queues");
        assert!(!odd(32, &[&[0]]), "a single queue");
        let two = |count: usize| -> Vec<&[u32]> {
            let halves = [&[0][..], &[1]];
            halves.into_iter().cycle().take(count).collect()
        };
        assert!(odd(8, &two(8)));
        assert!(!odd(7, &two(8)) && !odd(8, &two(7)));
        assert!(!odd(4, &two(8)), "two of four");
        let three: Vec<&[u32]> = [&[0][..], &[1], &[2]].into_iter().cycle().take(32).collect();
        assert!(!odd(32, &three));
        assert!(!odd(32, &[&[0, 1, 2, 3][..]; 16]), "several CPUs each");
    }

    #[test]
    fn a_command_is_for_256_queues_and_fits_a_terminal() {
        let fix = |queues: usize| find(&machine(4096, &vec![&[0][..]; queues]))[0].fix.clone();
        for (queues, commanded) in [(255, 255), (256, 256), (257, 256)] {
            let fix = fix(queues);
            assert_eq!(given(&fix).len(), commanded);
            let step = fix.steps.last().unwrap();
            assert_eq!(step.about.contains("the first 256 of"), queues > 256);
            assert!(step.command.len() < 4096, "{}", step.command.len());
        }
    }

    #[test]
    fn a_list_of_cpus_that_is_not_known_is_saved_first() {
        let mut machine = machine(8, &[&[0][..]; 4]);
        machine.interrupts.irqs[2].allowed.clear();
        let fix = find(&machine)[0].fix.clone();
        assert_eq!(
            fix.steps[1].command,
            "for irq in $(seq 27 30); do grep -H . /proc/irq/$irq/smp_affinity_list; done | tee irq-before.txt"
        );
        assert!(fix.undo[0].command.ends_with("done < irq-before.txt"), "{fix:?}");
        assert_eq!(given(&fix), ["0", "1", "2", "3"]);
        // A command that does not fit a line is not given either.
        let mut machine = self::machine(2048, &vec![&[0][..]; 16]);
        for irq in &mut machine.interrupts.irqs {
            irq.allowed = (0..128).map(|n| 2 * n + irq.number % 2).collect();
        }
        let fix = find(&machine)[0].fix.clone();
        assert!(fix.undo[0].command.ends_with("done < irq-before.txt"), "{fix:?}");
    }

    #[test]
    fn no_command_names_a_cpu_that_is_kept_for_other_work() {
        let mut machine = machine(8, &[&[0][..]; 4]);
        machine.processors.isolated = vec![1, 2];
        machine.processors.tickless = vec![2, 3];
        let fix = find(&machine)[0].fix.clone();
        assert_eq!(given(&fix), ["0", "4", "5", "6"]);
    }

    type Change = fn(&mut Inventory);

    #[test]
    fn slow_ports_ports_that_are_down_and_cpus_kept_for_others_are_not_odd() {
        let base = || machine(32, &[&[0][..]; 16]);
        let with = |change: Change| {
            let mut machine = base();
            change(&mut machine);
            ids(&machine)
        };
        assert_eq!(with(|_| {}), ["irq-crowded"]);
        let silent: [(&str, Change); 8] = [
            ("slow", |m| {
                m.network.nics[0].link.speed = Some(Rate(FAST.0 - 1));
            }),
            ("speed unknown", |m| m.network.nics[0].link.speed = None),
            ("down", |m| m.network.nics[0].up = false),
            ("isolated", |m| m.processors.isolated = (3..32).collect()),
            ("tickless", |m| m.processors.tickless = (3..32).collect()),
            ("both", |m| {
                m.processors.isolated = (3..20).collect();
                m.processors.tickless = (20..32).collect();
            }),
            ("threads", |m| m.network.nics[0].threaded = Some(true)),
            ("CPUs unknown", |m| m.processors.cpus.clear()),
        ];
        for (what, change) in silent {
            assert_eq!(with(change), [""; 0], "{what}");
        }
        for leave_four in [
            (|m| m.processors.isolated = (4..32).collect()) as Change,
            |m| m.processors.tickless = (4..32).collect(),
            |m| {
                m.processors.isolated = (4..20).collect();
                m.processors.tickless = (16..32).collect();
            },
        ] {
            assert_eq!(with(leave_four), ["irq-crowded"]);
        }
        // A port in a cloud: its speed is nominal, but its interrupts are real.
        assert_eq!(with(|m| m.network.nics[0].is_virtual = true), ["irq-crowded"]);
    }

    #[test]
    fn packets_that_others_work_on_are_spread() {
        let with = |cpus: Option<Vec<u32>>| {
            let mut machine = machine(32, &[&[0][..]; 16]);
            machine.network.nics[0].queues = vec![Queue {
                direction: QueueDirection::Rx,
                number: 0,
                napi: None,
                irq: None,
                cpus,
                flows: None,
            }];
            ids(&machine)
        };
        assert_eq!(with(Some(vec![])), ["irq-crowded"]);
        assert_eq!(with(Some(vec![0, 1])), ["irq-crowded"]);
        assert_eq!(with(Some(vec![1, 2])), [""; 0]);
    }

    #[test]
    fn where_the_kernel_tells_no_cpu_the_counts_do() {
        let mut machine = machine(32, &[&[][..]; 16]);
        assert_eq!(ids(&machine), [""; 0], "nothing is known");
        for irq in &mut machine.interrupts.irqs {
            (irq.busiest, irq.total) = (Some(5), Some(1));
        }
        assert_eq!(ids(&machine), ["irq-crowded"]);
        machine.interrupts.irqs[3].total = Some(0);
        assert_eq!(ids(&machine), [""; 0], "one never came");
    }

    #[test]
    fn names_that_tell_no_queue_are_all_of_them_and_others_are_left_out() {
        let mut machine = machine(32, &[&[0][..]; 16]);
        for irq in &mut machine.interrupts.irqs {
            irq.name = "eth0".to_owned();
        }
        assert_eq!(ids(&machine), ["irq-crowded"]);
        machine.interrupts.irqs.truncate(5);
        for (at, irq) in machine.interrupts.irqs.iter_mut().enumerate() {
            irq.name = format!("eth0-rx-{at}");
        }
        machine.interrupts.irqs[4].name = "eth0-tx-0".to_owned();
        machine.interrupts.irqs[4].effective = vec![9];
        assert_eq!(ids(&machine), ["irq-crowded"], "the interrupt of a send queue");
        // The kernel's list of queues takes precedence over the names of interrupts.
        let receive = |number: u32| Queue {
            direction: QueueDirection::Rx,
            number,
            napi: None,
            irq: Some(27 + number),
            cpus: None,
            flows: None,
        };
        machine.network.nics[0].queues = (0..3).map(receive).collect();
        assert_eq!(ids(&machine), [""; 0], "three queues");
        machine.network.nics[0].queues.push(receive(3));
        assert_eq!(ids(&machine), ["irq-crowded"]);
    }

    #[test]
    fn each_queue_gets_a_core_near_the_card() {
        let mut machine = machine(8, &[&[0][..]; 4]);
        for cpu in &mut machine.processors.cpus {
            let first = cpu.id / 2 * 2;
            cpu.siblings = vec![first, first + 1];
        }
        let node = |id: u32| crate::cpu::Node {
            id,
            cpus: Some((id * 4..id * 4 + 4).collect()),
            distances: vec![10, 21],
            ..Default::default()
        };
        machine.processors.nodes = vec![node(0), node(1)];
        machine.processors.nodes[1].distances = vec![21, 10];
        machine.network.nics[0].node = Some(1);
        let found = find(&machine).into_iter().find(|odd| odd.id == "irq-crowded");
        let fix = found.unwrap().fix;
        assert_eq!(given(&fix), ["4", "6", "5", "7"]);
    }
}
