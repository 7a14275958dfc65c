//! What is odd about a machine: what makes a path across it slower than its parts could.
//!
//! A rule speaks only of what was read. What is unknown is a gap, and no oddity.

use schemars::JsonSchema;
use serde::Serialize;

use super::Inventory;
use super::carrier::carriers;

mod block;
mod carrier;
mod cpu;
mod infiniband;
mod interrupts;
mod memory;
mod nic;
mod overlay;
mod pci;

/// Something that makes a path across this machine slower than its parts could.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Oddity {
    /// Stable id: `pcie-slot`, `clock-lowest`.
    pub id: &'static str,
    /// What it is about: a device, a node, CPUs.
    pub subject: String,
    /// What is odd, with numbers.
    pub what: String,
    /// Why it matters.
    pub why: &'static str,
    /// What to do about it.
    #[serde(rename = "do")]
    pub fix: String,
}

/// Looks for one sort of oddity.
type Rule = fn(&Inventory) -> Vec<Oddity>;

/// In the order in which they are shown: what costs most comes first.
const FIRST: &[Rule] = &[
    nic::half_duplex,
    nic::below_common,
    infiniband::not_set_up,
    infiniband::held_down,
    infiniband::narrow,
    infiniband::below_its_like,
];

/// What comes after slots, links and carriers that may bind.
const MIDDLE: &[Rule] = &[
    nic::mtu_above,
    overlay::mtu,
    nic::refused,
    nic::offloads_off,
    interrupts::crowded,
    memory::empty_node,
    memory::channels,
    memory::speed,
    cpu::lowest_clock,
    cpu::busy,
    cpu::stolen,
    cpu::quota,
    cpu::capped_clock,
    cpu::turbo_off,
    cpu::clock_source,
    cpu::clock_follows_load,
    nic::damaged,
    infiniband::faults,
    block::dead_ways,
    block::idle_ways,
    nic::remote_interrupts,
    cpu::offline,
    pci::payload,
    pci::unknown_node,
];

/// What comes after slots and links that suffice.
const LAST: &[Rule] = &[infiniband::no_link, nic::no_link];

/// All that is odd, the worst first.
pub fn find(inventory: &Inventory) -> Vec<Oddity> {
    let carriers = carriers(inventory);
    let slots = pci::slots(inventory, &carriers);
    let links = pci::below_best(inventory, &carriers);
    let by = |rules: &[Rule]| rules.iter().flat_map(|rule| rule(inventory)).collect();
    let all: [Vec<Oddity>; 8] = [
        by(FIRST),
        slots.may_bind,
        links.may_bind,
        carrier::beyond(&carriers),
        by(MIDDLE),
        slots.suffice,
        links.suffice,
        by(LAST),
    ];
    all.into_iter().flatten().collect()
}

/// `0-3,8`: as the kernel writes sets of CPUs.
pub fn ranges(ids: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &id in ids {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(id) => *last = id,
            _ => runs.push((id, id)),
        }
    }
    let text = |(first, last): &(u32, u32)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    };
    runs.iter().map(text).collect::<Vec<_>>().join(",")
}

/// The first of some names, and how many more there are: `a, b, c, d and 3 more`.
pub fn few(names: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 4;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `CPU 3`, `CPUs 0-3`.
fn cpus(ids: &[u32]) -> String {
    let s = if ids.len() == 1 { "" } else { "s" };
    format!("CPU{s} {}", ranges(ids))
}

/// Ids of what is odd about an inventory, for the tests of the rules.
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
    fn sets_are_written_as_the_kernel_writes_them() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!((ranges(&[7]), ranges(&[])), ("7".to_owned(), String::new()));
        assert_eq!(ranges(&[u32::MAX, 0]), "4294967295,0");
    }
}
