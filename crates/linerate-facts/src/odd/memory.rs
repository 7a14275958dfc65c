//! Rules about memory that gives less than it could.

use std::collections::BTreeSet;

use super::Finding;
use crate::Inventory;
use crate::advice::Advice;
use crate::memory::Module;

/// NUMA nodes that have CPUs but no memory, while another node has memory.
pub(super) fn empty_node(inventory: &Inventory) -> Vec<Finding> {
    let nodes = &inventory.processors.nodes;
    let has = |total: Option<linerate_units::Bytes>| total.is_some_and(|t| t.0 > 0);
    if !nodes.iter().any(|n| has(n.total)) {
        return Vec::new();
    }
    let empty =
        nodes.iter().filter(|n| !n.known_cpus().is_empty() && n.total.is_some() && !has(n.total));
    let odd = |node: &crate::cpu::Node| {
        Finding::new(
            "memory-node-empty",
            format!("node {}", node.id),
            format!("it has {} and no memory", super::cpus(node.known_cpus())),
        )
        .why("every access of theirs goes to another node")
        .fix(Advice::new(
            "put modules into the slots of this package, the same number as in the others",
        ))
    };
    empty.map(odd).collect()
}

/// Memory slots that contain a module.
fn filled(inventory: &Inventory) -> Vec<&Module> {
    let modules = inventory.memory.modules.iter().flatten();
    modules.filter(|m| m.size.is_some()).collect()
}

/// Memory channels without a module.
pub(super) fn channels(inventory: &Inventory) -> Vec<Finding> {
    let all: Option<BTreeSet<&str>> =
        inventory.memory.modules.iter().flatten().map(Module::channel).collect();
    let used: BTreeSet<&str> = filled(inventory).iter().filter_map(|m| m.channel()).collect();
    let all = all.unwrap_or_default();
    if used.is_empty() || used.len() == all.len() {
        return Vec::new();
    }
    let free: Vec<&str> = all.difference(&used).copied().collect();
    vec![
        Finding::new(
            "memory-channels",
            "memory",
            format!(
                "{} of {} channels have a module; {} have none",
                used.len(),
                all.len(),
                free.join(", ")
            ),
        )
        .brief(format!("{} of {} channels have a module", used.len(), all.len()))
        .why("each channel adds its own bandwidth; bytes cross memory several times on the path")
        .fix(Advice::new("spread the modules over all channels, or add some")),
    ]
}

/// Memory modules that run below their rated speed.
pub(super) fn speed(inventory: &Inventory) -> Vec<Finding> {
    let filled = filled(inventory);
    let below = |m: &&&Module| m.rated.zip(m.now).is_some_and(|(rated, now)| now < rated);
    let slow: Vec<_> = filled.iter().filter(below).collect();
    let Some((rated, now)) = slow.first().and_then(|m| m.rated.zip(m.now)) else {
        return Vec::new();
    };
    vec![
        Finding::new(
            "memory-speed",
            "memory",
            format!(
                "{} of {} modules run below their rated speed: {} at {}, rated {}",
                slow.len(),
                filled.len(),
                slow[0].locator,
                now.mega(),
                rated.mega()
            ),
        )
        .brief(format!(
            "{} of {} modules run below their rating ({} of {})",
            slow.len(),
            filled.len(),
            now.mega(),
            rated.mega()
        ))
        .why("memory bandwidth falls by the same share")
        .fix(Advice::new(
            "look in the firmware's setup for the memory clock; the processor, or \
             several modules in one channel, may not allow more",
        )),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::ids;
    use super::*;
    use crate::cpu::Node;
    use linerate_units::{Bytes, Transfers};

    fn module(channel: &str, filled: bool, now: u64) -> Module {
        Module {
            bank: channel.to_owned(),
            size: filled.then_some(Bytes(1 << 30)),
            rated: Some(Transfers(3_200_000_000)),
            now: Some(Transfers(now * 1_000_000)),
            ..Module::default()
        }
    }

    fn machine(modules: Vec<Module>) -> Inventory {
        let mut machine = Inventory::default();
        machine.memory.modules = Some(modules);
        machine
    }

    #[test]
    fn a_channel_without_a_module_is_odd() {
        let full = vec![module("CHANNEL A", true, 3200), module("CHANNEL B", true, 3200)];
        assert_eq!(ids(&machine(full.clone())), [""; 0]);
        let half = vec![module("CHANNEL A", true, 3200), module("CHANNEL B", false, 3200)];
        assert_eq!(ids(&machine(half)), ["memory-channels"]);
        // A free slot in a channel that has a module costs nothing. Slots without channel names show nothing.
        let free = [full, vec![module("CHANNEL A", false, 3200)]].concat();
        assert_eq!(ids(&machine(free)), [""; 0]);
        let unnamed = vec![module("A", true, 3200), module("B", false, 3200)];
        assert_eq!(ids(&machine(unnamed)), [""; 0]);
    }

    #[test]
    fn a_module_below_its_rating_is_odd() {
        assert_eq!(ids(&machine(vec![module("", true, 3199)])), ["memory-speed"]);
        assert_eq!(ids(&machine(vec![module("", true, 3200)])), [""; 0]);
        assert_eq!(ids(&machine(vec![module("", false, 3199)])), [""; 0]);
    }

    #[test]
    fn cpus_without_memory_are_odd_and_memory_without_cpus_is_not() {
        let node = |id, cpus: &[u32], bytes| Node {
            id,
            cpus: Some(cpus.to_vec()),
            total: Some(Bytes(bytes)),
            ..Node::default()
        };
        let mut machine = Inventory::default();
        machine.processors.nodes = vec![node(0, &[0], 9), node(1, &[1], 0)];
        assert_eq!(ids(&machine), ["memory-node-empty"]);
        machine.processors.nodes = vec![node(0, &[0], 9), node(1, &[], 9), node(2, &[1], 1)];
        assert_eq!(ids(&machine), [""; 0]);
        machine.processors.nodes = vec![node(0, &[0], 9), node(1, &[1], 0)];
        machine.processors.nodes[1].cpus = None;
        assert_eq!(ids(&machine), [""; 0]);
        machine.processors.nodes = vec![node(0, &[0], 9), node(1, &[1], 1)];
        machine.processors.nodes[1].total = None;
        assert_eq!(ids(&machine), [""; 0]);
    }
}
