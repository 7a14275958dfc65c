//! Limits for lists that another host sends. Lists are cut to the length that a real host can have, since a host must
//! not choose the length of lists that are searched repeatedly.

use serde::{Deserialize, Deserializer};

/// Largest number of CPUs of a host.
//= Linux, arch/x86/Kconfig: NR_CPUS is 8192 at most
pub(super) const CPUS: usize = 8192;
/// Largest number of NUMA nodes of a host.
//= Linux, include/linux/numa.h: NODES_SHIFT is 10 at most
pub(super) const NODES: usize = 1024;
/// Largest number of CPUs of one core.
const THREADS: usize = 64;
/// Largest number of items in short lists of a host: kinds of CPUs, congestion controls.
pub(super) const FEW: usize = 64;
/// Largest number of gaps of a host's facts.
pub(super) const GAPS: usize = 1024;

/// Reads a list and keeps its first `MOST` entries.
pub(super) fn at_most<'de, D, T, const MOST: usize>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut all = Vec::deserialize(from)?;
    all.truncate(MOST);
    Ok(all)
}

/// Reads a list that may be missing, and keeps its first `MOST` entries.
pub(super) fn some_at_most<'de, D, T, const MOST: usize>(
    from: D,
) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut all: Option<Vec<T>> = Option::deserialize(from)?;
    if let Some(all) = &mut all {
        all.truncate(MOST);
    }
    Ok(all)
}

/// Reads the CPUs of each core, and cuts both lists to their limits.
pub(super) fn cores<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<u32>>, D::Error> {
    let mut all = at_most::<_, Vec<u32>, CPUS>(from)?;
    for core in &mut all {
        core.truncate(THREADS);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Clocked;
    use crate::topology::Kind;
    use crate::topology::{Node, Topology};
    use crate::{Gap, HostFacts, Port};

    /// Facts in which every list has `length` entries.
    fn facts(length: usize) -> HostFacts {
        let numbers: Vec<u32> = (0..length as u32).collect();
        let gap = Gap { what: String::new(), why: String::new(), hint: String::new() };
        let port = Port { served_by: numbers.clone(), ..Port::default() };
        let node = Node { id: 0, cpus: numbers.clone(), distances: numbers.clone() };
        let kind = Kind { name: String::new(), cpus: numbers.clone() };
        let mut topology = Topology {
            nodes: vec![Node::default(); length],
            cores: vec![Vec::new(); length],
            kinds: vec![kind; 1],
        };
        topology.nodes[0] = node;
        topology.cores[0].clone_from(&numbers);
        topology.kinds.resize(length, Kind { name: String::new(), cpus: Vec::new() });
        let mut clocks = vec![Clocked::default(); length];
        clocks[0].cpus.clone_from(&numbers);
        HostFacts {
            cpus: numbers,
            topology,
            clocks: Some(clocks),
            port: Some(port),
            congestion_available: vec![String::new(); length],
            gaps: vec![gap; length],
            ..HostFacts::default()
        }
    }

    fn read(facts: &HostFacts) -> HostFacts {
        let mut bytes = Vec::new();
        ciborium::into_writer(facts, &mut bytes).unwrap();
        ciborium::from_reader(&bytes[..]).unwrap()
    }

    #[test]
    fn lists_that_no_host_has_are_cut_when_they_are_read() {
        let got = read(&facts(CPUS + 1));
        let Topology { nodes, cores, kinds } = &got.topology;
        assert_eq!((got.cpus.len(), cores.len(), nodes.len()), (CPUS, CPUS, NODES));
        assert_eq!((cores[0].len(), kinds.len()), (THREADS, FEW));
        assert_eq!((nodes[0].cpus.len(), nodes[0].distances.len()), (CPUS, NODES));
        assert_eq!(kinds[0].cpus.len(), CPUS);
        let clocks = got.clocks.unwrap();
        assert_eq!((clocks.len(), clocks[0].cpus.len()), (CPUS, CPUS));
        assert_eq!(got.port.unwrap().served_by.len(), CPUS);
        assert_eq!((got.congestion_available.len(), got.gaps.len()), (FEW, GAPS));
    }

    #[test]
    fn lists_of_a_host_are_whole() {
        let whole = facts(FEW);
        assert_eq!(read(&whole), whole);
        let none = HostFacts::default();
        assert_eq!(read(&none), none);
    }
}
