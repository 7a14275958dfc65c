//! Commands that send interrupts to other CPUs.

use super::{for_each, ranges};
use crate::advice::{Advice, Kept, Step};
use crate::irq::Irq;

/// The longest line that a terminal accepts, in bytes.
//= torvalds/linux, drivers/tty/n_tty.c, N_TTY_BUF_SIZE
const LINE: usize = 4096;
/// Largest number of interrupts in one command, so that the command fits a line.
pub(super) const MOST: usize = 256;

/// Adds a command that sends each interrupt to its CPUs, and a command that restores the old CPUs.
pub(super) fn send(advice: Advice, irqs: &[&Irq], cpus: &[String], about: &str) -> Advice {
    let irqs = &irqs[..irqs.len().min(MOST)];
    let step = Step::set(None, command(irqs, cpus)).about(about);
    let old: Vec<String> = irqs.iter().map(|irq| ranges(&irq.allowed)).collect();
    let undo = command(irqs, &old);
    if old.iter().all(|list| !list.is_empty()) && undo.len() < LINE {
        return advice.step(step).undo_on(None, undo);
    }
    let show = "grep -H . /proc/irq/$irq/smp_affinity_list";
    let kept = Kept::lines(&for_each("irq", &numbers(irqs), show), "irq-before.txt");
    let advice = advice.step(Step::on(None, kept.save).about("save the old values"));
    let undo = Step::set(None, kept.restore).about("in the same directory");
    advice.step(step).undo(undo)
}

fn numbers(irqs: &[&Irq]) -> Vec<u32> {
    irqs.iter().map(|irq| irq.number).collect()
}

/// The command that sends each of the interrupts to its own list of CPUs.
fn command(irqs: &[&Irq], cpus: &[String]) -> String {
    let first = cpus.first().map_or("", String::as_str);
    if cpus.iter().all(|list| list == first) {
        let set = format!("echo {first} | sudo tee /proc/irq/$irq/smp_affinity_list");
        return for_each("irq", &numbers(irqs), &set);
    }
    let pairs = irqs.iter().zip(cpus);
    let pairs = pairs.map(|(irq, list)| format!("{}:{list}", irq.number));
    let pairs = pairs.collect::<Vec<_>>().join(" ");
    let set = "echo ${pair#*:} | sudo tee /proc/irq/${pair%:*}/smp_affinity_list";
    format!("for pair in {pairs}; do {set}; done")
}
