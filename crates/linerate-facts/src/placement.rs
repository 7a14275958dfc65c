//! The order in which threads use the CPUs of a host: near the port, one CPU of each core first, and away from the CPUs
//! that handle the port's interrupts.

use std::collections::{BTreeMap, BTreeSet};

use crate::HostFacts;

/// A CPU with its disadvantages. The CPU with the smaller value is used first: the fields are in the order of their
/// importance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// How much farther from the port's node the CPU is than the nearest CPU of the host, in the firmware's distances;
    /// 0 if all CPUs have the same distance.
    pub away: u32,
    /// Whether another CPU of the same core is better, and is used before this one.
    pub sibling: bool,
    /// Number of kinds of CPUs in the host that are faster than this CPU's kind.
    pub kind: usize,
    /// Whether interrupts of the port's queues are sent to the CPU.
    pub serves: bool,
    /// Whether interrupts of the port's queues are sent to another CPU of the same core.
    pub beside: bool,
    /// Number of the CPU.
    pub cpu: u32,
}

/// The CPUs in `allowed`, the best one first.
pub fn seats(facts: &HostFacts, allowed: &[u32]) -> Vec<Seat> {
    let topology = &facts.topology;
    let port = facts.port.as_ref();
    let serving: BTreeSet<u32> = port.iter().flat_map(|p| &p.served_by).copied().collect();
    let distances = port.and_then(|p| topology.distances_from(p.node?));
    let distances: BTreeMap<u32, u32> = distances.into_iter().flatten().collect();
    let least = distances.values().min().copied().unwrap_or(0);
    let cores = Cores::of(facts, allowed, &serving);
    let kinds = &topology.kinds;
    let kind: BTreeMap<u32, usize> =
        (0..kinds.len()).flat_map(|at| kinds[at].cpus.iter().map(move |&cpu| (cpu, at))).collect();
    let seat = |&cpu: &u32| Seat {
        away: distances.get(&cpu).map_or(0, |distance| distance - least),
        sibling: cores.best.get(&cpu).is_some_and(|best| *best != cpu),
        kind: kind.get(&cpu).copied().unwrap_or(kinds.len()),
        serves: serving.contains(&cpu),
        beside: cores.beside.contains(&cpu),
        cpu,
    };
    let mut seats: Vec<Seat> = allowed.iter().map(seat).collect();
    seats.sort_unstable();
    seats
}

/// What is known of CPUs that share a core.
struct Cores {
    /// The preferred CPU of each CPU's core, by the number of the CPU.
    best: BTreeMap<u32, u32>,
    /// CPUs that share a core with a CPU that serves interrupts.
    beside: BTreeSet<u32>,
}

impl Cores {
    fn of(facts: &HostFacts, allowed: &[u32], serving: &BTreeSet<u32>) -> Self {
        let allowed: BTreeSet<u32> = allowed.iter().copied().collect();
        let (mut best, mut beside) = (BTreeMap::new(), BTreeSet::new());
        for core in &facts.topology.cores {
            let ours = core.iter().filter(|cpu| allowed.contains(cpu));
            let first = ours.min_by_key(|cpu| (serving.contains(cpu), **cpu));
            let served = core.iter().filter(|cpu| serving.contains(cpu)).count();
            for cpu in core {
                if let Some(first) = first {
                    best.insert(*cpu, *first);
                }
                if served > usize::from(serving.contains(cpu)) {
                    beside.insert(*cpu);
                }
            }
        }
        Self { best, beside }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Port;
    use crate::topology::Kind;
    use crate::topology::{Node, Topology};

    /// A host whose NUMA nodes have these CPUs, with a port on `node` whose interrupts go to the CPUs `served`.
    fn host(nodes: &[&[u32]], node: Option<u32>, served: &[u32]) -> HostFacts {
        let of = |(id, cpus): (usize, &&[u32])| Node {
            id: id as u32,
            cpus: cpus.to_vec(),
            distances: Vec::new(),
        };
        HostFacts {
            topology: Topology {
                nodes: nodes.iter().enumerate().map(of).collect(),
                ..Topology::default()
            },
            port: Some(Port { node, served_by: served.to_vec(), ..Port::default() }),
            ..HostFacts::default()
        }
    }

    /// Makes CPU 0 and CPU `n/2` one core, CPU 1 and CPU `n/2 + 1` the next, and so on.
    fn with_cores(mut facts: HostFacts, cpus: u32) -> HostFacts {
        let half = cpus / 2;
        facts.topology.cores = (0..half).map(|cpu| vec![cpu, cpu + half]).collect();
        facts
    }

    fn order(facts: &HostFacts, allowed: &[u32]) -> Vec<u32> {
        seats(facts, allowed).iter().map(|s| s.cpu).collect()
    }

    #[test]
    fn nodes_and_interrupts_give_the_order() {
        let two: &[&[u32]] = &[&[0, 2, 4, 6], &[1, 3, 5, 7]];
        let all: Vec<u32> = (0..8).collect();
        for (what, facts, allowed, want) in [
            ("one CPU", host(&[&[0]], Some(0), &[0]), &[0][..], vec![0]),
            ("nothing known", HostFacts::default(), &[3, 5], vec![3, 5]),
            ("a port without node", host(two, None, &[]), &all, all.clone()),
            ("the port's node first", host(two, Some(1), &[]), &all, vec![1, 3, 5, 7, 0, 2, 4, 6]),
            (
                "its interrupts last on their node",
                host(two, Some(1), &[1, 3]),
                &all,
                vec![5, 7, 1, 3, 0, 2, 4, 6],
            ),
            (
                "interrupts on the other node",
                host(two, Some(1), &[0]),
                &all,
                vec![1, 3, 5, 7, 2, 4, 6, 0],
            ),
            ("interrupts everywhere", host(&[&all], Some(0), &all), &all, all.clone()),
            ("a mask without the node", host(two, Some(1), &[1]), &[0, 2], vec![0, 2]),
        ] {
            assert_eq!(order(&facts, allowed), want, "{what}");
        }
    }

    #[test]
    fn each_core_is_taken_once_before_any_is_shared() {
        let all: Vec<u32> = (0..8).collect();
        let smt = |served| with_cores(host(&[&[0, 1, 2, 3, 4, 5, 6, 7]], Some(0), served), 8);
        for (what, facts, allowed, want) in [
            ("second threads of cores last", smt(&[]), &all[..], all.clone()),
            (
                "of a core the thread without interrupts, and cores without any before it",
                smt(&[0, 1]),
                &all,
                vec![2, 3, 4, 5, 6, 7, 0, 1],
            ),
            ("a core of which one thread is allowed", smt(&[]), &[1, 4, 5], vec![1, 4, 5]),
        ] {
            assert_eq!(order(&facts, allowed), want, "{what}");
        }
    }

    #[test]
    fn a_port_on_a_node_without_cpus_takes_the_nearest() {
        let mut facts = host(&[&[0, 1], &[2, 3], &[]], Some(2), &[]);
        facts.topology.nodes[2].distances = vec![28, 17, 10];
        let seats = seats(&facts, &[0, 1, 2, 3]);
        let got: Vec<_> = seats.iter().map(|s| (s.cpu, s.away)).collect();
        assert_eq!(got, [(2, 0), (3, 0), (0, 11), (1, 11)]);
    }

    #[test]
    fn strong_cores_come_before_weak_ones_and_both_before_second_threads() {
        let mut facts = host(&[], None, &[]);
        facts.topology.cores = vec![vec![0, 1], vec![2, 3]];
        let kind = |cpus: &[u32]| Kind { name: String::new(), cpus: cpus.to_vec() };
        facts.topology.kinds = vec![kind(&[0, 1, 2, 3]), kind(&[4, 5])];
        assert_eq!(order(&facts, &[0, 1, 2, 3, 4, 5]), [0, 2, 4, 5, 1, 3]);
        facts.port.as_mut().unwrap().served_by = vec![0, 2];
        assert_eq!(order(&facts, &[0, 1, 2, 3, 4, 5]), [1, 3, 4, 5, 0, 2]);
    }
}
