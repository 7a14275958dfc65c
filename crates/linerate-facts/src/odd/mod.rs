//! Oddities of a machine: facts that make a path slower than the parts of the machine allow.
//!
//! A rule uses only facts that were read. An unknown fact is a gap, not an oddity.

use super::Inventory;
use super::carrier::carriers;
use crate::finding::Finding;
use crate::nic::Nic;

mod affinity;
mod beneath;
mod block;
mod bond;
mod carrier;
mod cpu;
pub mod infiniband;
mod interrupts;
mod memory;
mod nic;
mod offload;
mod overlay;
mod pci;
mod queues;
mod settings;
mod wire;

/// A function that looks for one kind of oddity.
enum Rule {
    /// A rule about the host as a whole.
    Host(fn(&Inventory) -> Vec<Finding>),
    /// A rule about one network port of the host.
    Port(fn(&Inventory, &Nic) -> Option<Finding>),
}

use Rule::{Host, Port};

impl Rule {
    fn find(&self, inventory: &Inventory) -> Vec<Finding> {
        match self {
            Host(find) => find(inventory),
            Port(find) => {
                let nics = inventory.network.nics.iter();
                nics.filter_map(|nic| find(inventory, nic)).collect()
            }
        }
    }
}

/// The rules whose findings are listed first, in this order: the most costly comes first.
const FIRST: &[Rule] = &[
    Port(nic::half_duplex),
    Port(nic::below_common),
    Port(nic::offers_less),
    Port(nic::fixed),
    Port(bond::apart),
    Host(infiniband::not_set_up),
    Host(infiniband::held_down),
    Host(infiniband::narrow),
    Host(infiniband::below_its_like),
];

/// The rules whose findings follow those about slots, links and carriers that may be the limit.
const AFTER_LINKS: &[Rule] = &[
    Port(nic::mtu_above),
    Host(infiniband::small_packets),
    Host(overlay::mtu),
    Port(nic::refused),
    Port(bond::one_way),
    Port(offload::off),
    Host(interrupts::crowded),
    Host(queues::one),
    Port(beneath::no_function),
    Host(settings::full_table),
    Host(settings::switched_off),
    Host(settings::small_buffers),
    Port(wire::wifi),
    Port(wire::drops),
    Host(infiniband::lossy),
    Host(memory::empty_node),
    Host(memory::channels),
    Host(memory::speed),
    Host(cpu::lowest_clock),
    Host(cpu::busy),
    Host(cpu::stolen),
    Host(cpu::quota),
    Host(cpu::capped_clock),
    Host(cpu::turbo_off),
    Host(cpu::clock_source),
    Host(cpu::clock_follows_load),
    Port(nic::damaged),
    Port(wire::flaps),
    Host(infiniband::faults),
    Host(block::failed_paths),
    Host(block::idle_paths),
    Host(nic::remote_interrupts),
    Host(cpu::offline),
    Host(pci::payload),
    Port(beneath::translated),
    Host(pci::unknown_node),
];

/// The rules whose findings follow those about slots and links that suffice.
const LAST: &[Rule] = &[Host(infiniband::no_driver), Host(infiniband::no_link), Port(nic::no_link)];

/// All oddities of a machine, the worst first.
pub fn find(inventory: &Inventory) -> Vec<Finding> {
    let carriers = carriers(inventory);
    let slots = pci::slots(inventory, &carriers);
    let links = pci::below_best(inventory, &carriers);
    let by = |rules: &[Rule]| rules.iter().flat_map(|rule| rule.find(inventory)).collect();
    let all: [Vec<Finding>; 8] = [
        by(FIRST),
        slots.may_bind,
        links.may_bind,
        carrier::beyond(&carriers),
        by(AFTER_LINKS),
        slots.suffice,
        links.suffice,
        by(LAST),
    ];
    all.into_iter().flatten().collect()
}

/// A set of CPUs as the kernel writes it: `0-3,8`.
pub fn ranges(ids: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &id in ids {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(id) => *last = id,
            _ => runs.push((id, id)),
        }
    }
    let text = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    runs.iter().map(text).collect::<Vec<_>>().join(",")
}

/// The first names of a list, and the number of the others: `a, b, c, d and 3 more`.
pub fn few(names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A number with its noun: `1 interrupt`, `3 interrupts`.
fn count(n: usize, what: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {what}{s}")
}

/// Numbers in words: `number 3`, `numbers 8-9`.
fn numbered(ids: &[u32]) -> String {
    let s = if ids.len() == 1 { "" } else { "s" };
    format!("number{s} {}", ranges(ids))
}

/// CPUs in words: `CPU 3`, `CPUs 0-3`.
fn cpus(ids: &[u32]) -> String {
    let s = if ids.len() == 1 { "" } else { "s" };
    format!("CPU{s} {}", ranges(ids))
}

/// A shell loop over numbers: `for cpu in 3 $(seq 8 15); do ...; done`. For one number it is only the body, with the
/// number.
fn for_each(name: &str, numbers: &[u32], body: &str) -> String {
    /// Shortest run of numbers that is written as `seq`. Shorter runs are written out.
    const RUN: usize = 4;
    if let [number] = numbers {
        return body.replace(&format!("${name}"), &number.to_string());
    }
    let run = |run: &[u32]| match run {
        [first, .., last] if run.len() >= RUN => format!("$(seq {first} {last})"),
        run => run.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
    };
    let runs = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let words: Vec<String> = runs.map(run).collect();
    format!("for {name} in {}; do {body}; done", words.join(" "))
}

/// Ids of the findings about an inventory, for the tests of the rules.
#[cfg(test)]
fn ids(inventory: &Inventory) -> Vec<&'static str> {
    find(inventory).iter().map(|o| o.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_known_is_nothing_odd() {
        assert_eq!(find(&Inventory::default()), []);
    }

    #[test]
    fn loops_name_each_number() {
        let text = |numbers: &[u32]| for_each("n", numbers, "x $n");
        assert_eq!(text(&[7]), "x 7");
        assert_eq!(text(&[1, 2, 3]), "for n in 1 2 3; do x $n; done");
        let mixed = text(&[1, 4, 5, 6, 7, 9]);
        assert_eq!(mixed, "for n in 1 $(seq 4 7) 9; do x $n; done");
    }

    #[test]
    fn sets_are_written_as_the_kernel_writes_them() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!((ranges(&[7]), ranges(&[])), ("7".to_owned(), String::new()));
        assert_eq!(ranges(&[u32::MAX, 0]), "4294967295,0");
    }
}
