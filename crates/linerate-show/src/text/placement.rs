//! Shows why threads ran on the CPUs they ran on.

use std::collections::{BTreeMap, BTreeSet};

use linerate_facts::HostFacts;
use linerate_facts::odd::ranges;
use linerate_facts::placement::{Seat, seats};
use linerate_judge::model::{Load, Model};
use linerate_plan::path::{Direction, Side};

use super::super::document::Item;
use super::super::{Document, Tone};

/// Writes a line for each group of CPUs of an end with the same reasons; nothing if all CPUs have the same.
pub(super) fn threads(doc: &mut Document, model: &Model) {
    let mut lines = Vec::new();
    for direction in &model.directions {
        for host in &model.hosts {
            let cpus = placed(&direction.base, direction.direction, host.side);
            for (cpus, why) in reasons(&host.facts, cpus) {
                let (side, way) = (host.side.name(), direction.direction.name());
                let s = if cpus.len() == 1 { "" } else { "s" };
                lines.push((format!("{side} CPU{s} {}, {way}:", ranges(&cpus)), why));
            }
        }
    }
    if lines.is_empty() {
        return;
    }
    doc.gap();
    doc.heading("Where threads were placed");
    for (head, why) in lines {
        let item = Item::new(&[(Tone::Plain, &why)]).indent(2, 4);
        doc.item(item.head(Tone::Plain, &[(&head, 0.into())]));
    }
}

/// The CPUs that an end's threads were pinned to.
fn placed(load: &Load, direction: Direction, side: Side) -> &[u32] {
    &load.made.at(direction, side).cpus
}

/// CPUs grouped by their reasons, in the order in which streams used them.
fn reasons(facts: &HostFacts, cpus: &[u32]) -> Vec<(Vec<u32>, String)> {
    let mut all: Vec<(Vec<u32>, String)> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let placed: BTreeSet<&u32> = cpus.iter().collect();
    let port = facts.port.as_ref();
    let near = port.and_then(|port| facts.topology.near(port.node?));
    let homes = near.map(|_| facts.topology.homes());
    let served = port.map_or(String::new(), |port| ranges(&port.served_by));
    let seats = seats(facts, &facts.cpus).into_iter();
    for seat in seats.filter(|seat| placed.contains(&seat.cpu)) {
        let why = reason(facts, homes.as_ref(), &served, seat);
        if why.is_empty() {
            continue;
        }
        let at = *known.entry(why).or_insert_with_key(|why| {
            all.push((Vec::new(), why.clone()));
            all.len() - 1
        });
        all[at].0.push(seat.cpu);
    }
    for (cpus, _) in &mut all {
        cpus.sort_unstable();
    }
    all
}

/// The reasons for and against a CPU; empty if nothing is known. `homes` are the NUMA nodes of all CPUs, if they
/// differ; `served` are the CPUs that receive the port's interrupts.
fn reason(
    facts: &HostFacts,
    homes: Option<&BTreeMap<u32, u32>>,
    served: &str,
    seat: Seat,
) -> String {
    let Some(port) = &facts.port else {
        return String::new();
    };
    let mut parts = Vec::new();
    if let Some(homes) = homes {
        let node = homes.get(&seat.cpu);
        let node = node.map_or("another node".to_owned(), |n| format!("node {n}"));
        let words = if seat.away == 0 { "nearest to" } else { "away from" };
        parts.push(format!("on {node}, {words} {}", port.name));
    }
    if !served.is_empty() {
        let where_to = format!("{} are sent to CPU {served}", port.name);
        parts.push(match (seat.serves, seat.beside) {
            (true, _) => format!("serves its interrupts too: those of {where_to}"),
            (false, true) => format!("shares a core with its interrupts: those of {where_to}"),
            (false, false) => format!("the interrupts of {where_to}"),
        });
    }
    if seat.sibling {
        parts.push("another thread of its core comes first".to_owned());
    }
    if let Some(kind) = facts.topology.kinds.get(seat.kind) {
        parts.push(kind.name.clone());
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use linerate_facts::topology::Node;

    use super::super::super::{Style, sample};
    use super::*;

    fn shown(change: fn(&mut HostFacts)) -> String {
        let (_, mut model, _) = sample::limited();
        change(&mut model.hosts[1].facts);
        model.directions[0].base.made.receiver.cpus = vec![1, 4];
        let mut doc = Document::new();
        threads(&mut doc, &model);
        doc.text(Style::PLAIN)
    }

    #[test]
    fn reasons_are_those_of_the_facts_and_none_are_made_up() {
        let two_nodes = |facts: &mut HostFacts| {
            let node = |id, cpus: [u32; 4]| Node { id, cpus: cpus.to_vec(), distances: Vec::new() };
            facts.topology.nodes = vec![node(0, [0, 1, 2, 3]), node(1, [4, 5, 6, 7])];
            facts.port.as_mut().unwrap().served_by = vec![0];
        };
        assert_eq!(
            shown(two_nodes),
            "Where threads were placed\n  \
             far CPU 1, forward:  on node 0, nearest to eth0; the interrupts of eth0 are\n    \
             sent to CPU 0\n  \
             far CPU 4, forward:  on node 1, away from eth0; the interrupts of eth0 are\n    \
             sent to CPU 0\n"
        );
        assert_eq!(shown(|_| ()), "");
        assert_eq!(shown(|facts| facts.port = None), "");
        let serving = |facts: &mut HostFacts| {
            facts.port.as_mut().unwrap().served_by = vec![1, 2];
            facts.topology.cores = vec![vec![0, 4], vec![1, 5]];
        };
        let text = shown(serving).replace("\n    ", " ");
        assert_eq!(
            text,
            "Where threads were placed\n  \
             far CPU 4, forward:  the interrupts of eth0 are sent to CPU 1-2; another thread of \
             its core comes first\n  \
             far CPU 1, forward:  serves its interrupts too: those of eth0 are sent to CPU 1-2; \
             another thread of its core comes first\n"
        );
    }
}
