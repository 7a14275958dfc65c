//! Oddities of a machine: facts that make a path across it slower than its parts allow.
//!
//! A rule uses only facts that were read. An unknown fact is a gap, and no oddity.

use schemars::JsonSchema;
use serde::Serialize;

use super::Inventory;
use super::carrier::carriers;
use crate::advice::{Advice, Step};

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

/// Something that makes a path across this machine slower than its parts could.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(into = "Document")]
#[schemars(with = "Document")]
pub struct Oddity {
    /// Stable id: `pcie-slot`, `clock-lowest`.
    pub id: &'static str,
    /// Its subject: a device, a node, CPUs.
    pub subject: String,
    /// The oddity, with numbers.
    pub what: String,
    /// The same in a few words. Empty where `what` has few words.
    pub brief: String,
    /// Why it matters.
    pub why: &'static str,
    /// Ports that cannot reach their full rate because of it.
    pub limits: Vec<String>,
    /// The remedy.
    pub fix: Advice,
}

impl Oddity {
    /// The oddity in a few words.
    pub fn in_brief(&self) -> &str {
        if self.brief.is_empty() { &self.what } else { &self.brief }
    }

    /// The advice, with its commands and how to undo them, in one line of text.
    pub fn to_do(&self) -> String {
        let mut text = self.fix.what.clone();
        if !self.fix.steps.is_empty() {
            text = format!("{text}: {}", self.fix.text());
        }
        match self.fix.undo_text() {
            undo if undo.is_empty() => text,
            undo => format!("{text} (undo: {undo})"),
        }
    }

    /// Says that the subject itself is a port that it limits.
    fn limiting_itself(mut self) -> Self {
        self.limits = vec![self.subject.clone()];
        self
    }
}

/// An oddity as JSON has it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Oddity")]
struct Document {
    /// Stable id: `pcie-slot`, `clock-lowest`.
    id: &'static str,
    /// Its subject: a device, a node, CPUs.
    subject: String,
    /// The oddity, with numbers.
    what: String,
    /// The oddity in a few words.
    brief: String,
    /// Why it matters.
    why: &'static str,
    /// Ports that cannot reach their full rate because of it.
    limits: Vec<String>,
    /// What to do about it, with commands, in one line of text.
    r#do: String,
    /// What to do about it, as a sentence without commands.
    advice: String,
    /// The steps, in order. Empty if the sentence says all.
    steps: Vec<Step>,
    /// The steps that restore the old state, in order.
    undo_steps: Vec<Step>,
    /// Whether the settings that the steps change are lost at the next boot.
    lost_at_boot: bool,
}

impl From<Oddity> for Document {
    fn from(odd: Oddity) -> Self {
        Self {
            r#do: odd.to_do(),
            brief: odd.in_brief().to_owned(),
            lost_at_boot: odd.fix.is_lost_at_boot(),
            id: odd.id,
            subject: odd.subject,
            what: odd.what,
            why: odd.why,
            limits: odd.limits,
            advice: odd.fix.what,
            steps: odd.fix.steps,
            undo_steps: odd.fix.undo,
        }
    }
}

/// Looks for one sort of oddity.
type Rule = fn(&Inventory) -> Vec<Oddity>;

/// The rules that are shown first, in display order: the most costly comes first.
const FIRST: &[Rule] = &[
    nic::half_duplex,
    nic::below_common,
    nic::offers_less,
    nic::fixed,
    bond::apart,
    infiniband::not_set_up,
    infiniband::held_down,
    infiniband::narrow,
    infiniband::below_its_like,
];

/// Rank of oddities after slots, links and carriers that may be the limit.
const MIDDLE: &[Rule] = &[
    nic::mtu_above,
    infiniband::small_packets,
    overlay::mtu,
    nic::refused,
    bond::one_way,
    offload::off,
    interrupts::crowded,
    queues::one,
    beneath::no_function,
    settings::full_table,
    settings::switched_off,
    settings::small_buffers,
    wire::wifi,
    wire::drops,
    infiniband::lossy,
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
    wire::flaps,
    infiniband::faults,
    block::dead_ways,
    block::idle_ways,
    nic::remote_interrupts,
    cpu::offline,
    pci::payload,
    beneath::translated,
    pci::unknown_node,
];

/// Rank of oddities after slots and links that suffice.
const LAST: &[Rule] = &[infiniband::no_driver, infiniband::no_link, nic::no_link];

/// All oddities of a machine, the worst first.
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
        if first == last { first.to_string() } else { format!("{first}-{last}") }
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

/// `1 interrupt`, `3 interrupts`.
fn count(n: usize, what: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {what}{s}")
}

/// `number 3`, `numbers 8-9`.
fn numbered(ids: &[u32]) -> String {
    let s = if ids.len() == 1 { "" } else { "s" };
    format!("number{s} {}", ranges(ids))
}

/// `CPU 3`, `CPUs 0-3`.
fn cpus(ids: &[u32]) -> String {
    let s = if ids.len() == 1 { "" } else { "s" };
    format!("CPU{s} {}", ranges(ids))
}

/// A loop of a shell over numbers: `for cpu in 3 $(seq 8 15); do ...; done`. For one number it is the body alone.
fn for_each(name: &str, numbers: &[u32], body: &str) -> String {
    /// Runs that are shorter are written out.
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
