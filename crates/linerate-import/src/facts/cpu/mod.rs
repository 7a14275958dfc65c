//! Readers of programs and files that show processors, NUMA nodes and interrupts.

mod interrupts;
mod lscpu;
mod lscpu_list;
mod nproc;
mod numactl;
#[cfg(test)]
mod tests;

pub(crate) use interrupts::INTERRUPTS;
pub(crate) use lscpu::LSCPU;
pub(crate) use lscpu_list::LSCPU_LIST;
pub(crate) use nproc::NPROC;
pub(crate) use numactl::NUMACTL;

use super::entry;
use linerate_facts::cpu::{Cpu, Node, Processors};

/// The NUMA node with this number, added if it is new; `None` if there are too many nodes.
fn node(processors: &mut Processors, id: u32) -> Option<&mut Node> {
    let new = |id| Node { id, ..Node::default() };
    entry(&mut processors.nodes, id, |node| node.id, new)
}

/// CPUs with these numbers, of which nothing else is known.
fn numbered(ids: &[u32]) -> Vec<Cpu> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let cpu = |id| Cpu { id, ..Cpu::default() };
    ids.into_iter().map(cpu).collect()
}
