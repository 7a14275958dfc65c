//! The topology of a host's CPUs: their NUMA nodes, cores and kinds, and their distances from memory.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounded::{CPUS, FEW, NODES, at_most, cores};

/// CPUs of one kind, on a machine with several kinds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kind {
    /// What distinguishes this kind: `performance`, `efficiency`, `nominal 1.9 GHz`.
    pub name: String,
    /// Numbers of the CPUs of this kind.
    #[serde(deserialize_with = "at_most::<_, _, CPUS>")]
    pub cpus: Vec<u32>,
}

/// The facts by which threads are placed on CPUs. Unknown facts are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Topology {
    /// NUMA nodes, in ascending order; empty if the kernel was built without NUMA.
    #[serde(deserialize_with = "at_most::<_, _, NODES>")]
    pub nodes: Vec<Node>,
    /// The cores with more than one CPU, each as a list of its CPUs.
    #[serde(deserialize_with = "cores")]
    pub cores: Vec<Vec<u32>>,
    /// CPUs grouped by computing power, the strongest first; empty if all are alike.
    #[serde(deserialize_with = "at_most::<_, _, FEW>")]
    pub kinds: Vec<Kind>,
}

/// A NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Number of the node.
    pub id: u32,
    /// CPUs of the node; a node may have none.
    #[serde(deserialize_with = "at_most::<_, _, CPUS>")]
    pub cpus: Vec<u32>,
    /// Distances to all nodes, in the order of their numbers. A node has the distance 10 to itself.
    #[serde(deserialize_with = "at_most::<_, _, NODES>")]
    pub distances: Vec<u32>,
}

/// Distance to another node, if the firmware does not give it.
//= ACPI 6.5, 5.2.17: 10 is local; Linux takes 20 for remote (include/linux/topology.h)
const REMOTE: u32 = 20;

/// A node is remote if its distance is at least this multiple of the nearest distance. If the firmware divides a
/// package into nodes (sub-NUMA clustering, nodes per socket), they have distances of 11 or 12 to each other. Nodes of
/// other packages have 20 and more.
//= ACPI 6.5, 5.2.17 (SLIT): 12 is 1.2 times the latency of local memory
const APART: f64 = 1.5;

impl Topology {
    /// Each CPU with its distance from `node`, as the firmware reports it; `None` if there is no such node, or if fewer
    /// than two nodes have CPUs.
    pub fn distances_from(&self, node: u32) -> Option<Vec<(u32, u32)>> {
        let home = self.nodes.iter().find(|n| n.id == node)?;
        if !self.several() {
            return None;
        }
        let reported = home.distances.len() == self.nodes.len();
        let distance = |at: usize| match home.distances.get(at) {
            Some(&distance) if reported => distance,
            _ if self.nodes[at].id == node => 10,
            _ => REMOTE,
        };
        let all = self.nodes.iter().enumerate();
        let all = all.flat_map(|(at, n)| n.cpus.iter().map(move |&cpu| (cpu, distance(at))));
        Some(all.collect())
    }

    /// The CPUs nearest to `node`, ascending: the CPUs of the node, or those of the nearest node if it has none. `None`
    /// as in [`Topology::distances_from`].
    pub fn near(&self, node: u32) -> Option<Vec<u32>> {
        let all = self.distances_from(node)?;
        let least = all.iter().map(|(_, distance)| *distance).min()?;
        let near = all.into_iter().filter(|(_, distance)| *distance == least);
        let mut near: Vec<u32> = near.map(|(cpu, _)| cpu).collect();
        near.sort_unstable();
        Some(near)
    }

    /// The CPUs that are not much farther from `node` than the nearest ones, ascending: the CPUs of the node's package,
    /// if the firmware divides packages into nodes. `None` as in [`Topology::distances_from`].
    pub fn close_to(&self, node: u32) -> Option<Vec<u32>> {
        let all = self.distances_from(node)?;
        let least = all.iter().map(|(_, distance)| *distance).min()?;
        let close = |distance: u32| f64::from(distance) < f64::from(least) * APART;
        let close = all.into_iter().filter(|(_, distance)| close(*distance));
        let mut close: Vec<u32> = close.map(|(cpu, _)| cpu).collect();
        close.sort_unstable();
        Some(close)
    }

    /// Whether more than one node has CPUs.
    pub fn several(&self) -> bool {
        self.nodes.iter().filter(|n| !n.cpus.is_empty()).count() > 1
    }

    /// The number of the node to which each CPU belongs, by the number of the CPU.
    pub fn homes(&self) -> BTreeMap<u32, u32> {
        let all = self.nodes.iter();
        all.flat_map(|n| n.cpus.iter().map(|&cpu| (cpu, n.id))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(all: &[(u32, &[u32], &[u32])]) -> Topology {
        let node = |(id, cpus, distances): &(u32, &[u32], &[u32])| Node {
            id: *id,
            cpus: cpus.to_vec(),
            distances: distances.to_vec(),
        };
        Topology { nodes: all.iter().map(node).collect(), ..Topology::default() }
    }

    #[test]
    fn near_cpus_are_those_of_the_node_or_of_the_nearest_where_it_has_none() {
        let two = nodes(&[(0, &[0, 1], &[10, 21]), (1, &[2, 3], &[21, 10])]);
        assert_eq!(two.near(1), Some(vec![2, 3]));
        assert_eq!((two.homes().get(&3), two.homes().get(&4)), (Some(&1), None));
        let memory_only = nodes(&[
            (0, &[0, 1], &[10, 21, 17]),
            (1, &[2, 3], &[21, 10, 28]),
            (8, &[], &[17, 28, 10]),
        ]);
        assert_eq!(memory_only.near(8), Some(vec![0, 1]));
    }

    #[test]
    fn the_halves_of_a_package_are_close_and_packages_are_apart() {
        let at = |other: u32| {
            let two = nodes(&[(0, &[0, 1], &[10, other]), (1, &[2, 3], &[other, 10])]);
            two.close_to(0).unwrap()
        };
        assert_eq!(at(12), [0, 1, 2, 3]);
        assert_eq!(at(14), [0, 1, 2, 3]);
        assert_eq!(at(15), [0, 1]);
        let untold = nodes(&[(0, &[0], &[]), (1, &[1], &[])]);
        assert_eq!(untold.close_to(0), Some(vec![0]), "20 is remote");
        assert_eq!(untold.close_to(5), None);
    }

    #[test]
    fn distances_that_do_not_fit_the_nodes_are_not_used() {
        let odd = nodes(&[(0, &[0], &[10]), (2, &[1], &[5, 5, 5])]);
        assert_eq!(odd.distances_from(0), Some(vec![(0, 10), (1, 20)]));
        assert_eq!(odd.near(2), Some(vec![1]));
    }

    #[test]
    fn one_node_with_cpus_has_no_near_side() {
        assert_eq!(nodes(&[(0, &[0, 1], &[10])]).near(0), None);
        let memory = nodes(&[(0, &[0, 1], &[10, 20]), (1, &[], &[20, 10])]);
        assert_eq!((memory.near(0), memory.near(7)), (None, None));
        assert_eq!(Topology::default().near(0), None);
    }
}
