//! The nodes, cores and kinds of CPUs, read at the start of every session from as few files as possible.

use std::collections::BTreeSet;

use linerate_facts::cpu::Cpu;
use linerate_facts::parse::sysctl;
use linerate_facts::topology::Kind;
use linerate_facts::topology::Topology;

use super::Reader;
use super::cpu::CPUS;

impl Reader<'_> {
    pub(super) fn topology(&mut self) -> Topology {
        let online = self.look("topology", &format!("{CPUS}/online"), sysctl::list);
        let online = online.unwrap_or_default();
        Topology {
            nodes: self.node_ids().into_iter().map(|id| self.node_place(id)).collect(),
            cores: self.cores(&online),
            kinds: self.sorts(&online),
        }
    }

    /// Returns the CPUs of each core that has more than one. If SMT is off, no core has, and no CPU's files are read.
    fn cores(&mut self, online: &[u32]) -> Vec<Vec<u32>> {
        let path = format!("{CPUS}/smt/active");
        if online.len() < 2 || self.look("cpu.cores", &path, sysctl::number) == Some(0) {
            return Vec::new();
        }
        let (mut cores, mut seen) = (Vec::new(), BTreeSet::<u32>::new());
        for &cpu in online {
            if seen.contains(&cpu) {
                continue;
            }
            let core = self.siblings(cpu);
            seen.extend(&core);
            if core.len() > 1 {
                cores.push(core);
            }
        }
        cores
    }

    /// Returns the kinds of CPUs, such as performance cores. If the first CPU has no capacity file, no CPU has one.
    fn sorts(&mut self, online: &[u32]) -> Vec<Kind> {
        let Some((&first, rest)) = online.split_first() else {
            return Vec::new();
        };
        let cpu = |id, capacity| Cpu { id, capacity, ..Cpu::default() };
        let capacity = self.capacity(first);
        let mut cpus = vec![cpu(first, capacity)];
        if capacity.is_some() {
            cpus.extend(rest.iter().map(|&id| cpu(id, self.capacity(id))));
        }
        self.kinds(&cpus)
    }
}

#[cfg(test)]
mod tests {
    use linerate_facts::topology::Topology;

    use super::CPUS;
    use crate::testing::{Fake, LOOPBACK};
    use crate::{Replay, facts};

    fn read(fake: Fake) -> Topology {
        facts(&Replay::new(fake.0), LOOPBACK).topology
    }

    fn online(cpus: &str) -> Fake {
        Fake::default().file(&format!("{CPUS}/online"), &[cpus])
    }

    #[test]
    fn each_core_is_asked_once_and_none_without_smt() {
        let siblings = |cpu: u32| format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list");
        let fake = online("0-3\n").file(&siblings(0), &["0,2\n"]).file(&siblings(1), &["1,3\n"]);
        assert_eq!(read(fake).cores, [[0, 2], [1, 3]]);
        let fake = online("0-3\n")
            .file(&format!("{CPUS}/smt/active"), &["0\n"])
            .file(&siblings(0), &["0,2\n"]);
        assert_eq!(read(fake).cores, [[0; 0]; 0]);
    }

    #[test]
    fn nodes_and_kinds_are_those_that_the_kernel_lists() {
        const NODE: &str = "/sys/devices/system/node";
        let fake = online("0-1\n")
            .file(&format!("{CPUS}/cpu0/cpu_capacity"), &["446\n"])
            .file(&format!("{CPUS}/cpu1/cpu_capacity"), &["1024\n"])
            .list(NODE, &["node0", "node3", "online"])
            .file(&format!("{NODE}/node0/cpulist"), &["0-1\n"])
            .file(&format!("{NODE}/node0/distance"), &["10 21\n"])
            .file(&format!("{NODE}/node3/cpulist"), &["\n"]);
        let got = read(fake);
        let nodes: Vec<_> = got.nodes.iter().map(|n| (n.id, n.cpus.len())).collect();
        assert_eq!(nodes, [(0, 2), (3, 0)]);
        assert_eq!(got.nodes[0].distances, [10, 21]);
        let kinds: Vec<_> = got.kinds.iter().map(|k| k.cpus.as_slice()).collect();
        assert_eq!(kinds, [[1], [0]]);
    }
}
