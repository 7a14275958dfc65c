//! Placement: the CPU on which each thread is kept, and the size of the largest operations there.

use std::collections::{BTreeMap, BTreeSet};

use linerate_facts::placement::{self, Seat};
use linerate_facts::{Gap, HostFacts};
use linerate_plan::path::{Direction, Side};
use linerate_plan::{Pattern, SetPlan};
use linerate_units::Bytes;

/// Size of the largest operation in bytes if the size of the second-level cache is unknown.
const CAP_UNKNOWN: u32 = 512 * 1024;
/// Bounds of the size of the largest operation, in bytes. Even with second-level caches of 1 and 2 MiB, operations of 1
/// MiB are slower than those of 512 to 768 KiB over a veth pair and a router, and no faster on loopback
/// (benches/peers/2026-11-22-sizes.md).
const CAP_MIN: u32 = 128 * 1024;
const CAP_MAX: u32 = 768 * 1024;
/// Size of the largest operation in bytes if many threads take turns on a CPU, so that each has a smaller share of the
/// CPU's cache. Smaller operations would cost more in system calls than they save in cache misses
/// (benches/peers/2026-11-25-sizes.md).
const CAP_TURNS: u32 = 256 * 1024;

/// Bounds of the payload, in bytes, that gathers in the receive buffer before a thread reads it. Below the minimum,
/// additional wake-ups cost more than the avoided cache misses save.
const GATHER_MIN: u32 = 128 * 1024;
const GATHER_MAX: u32 = 512 * 1024;
/// Payload in bytes that gathers if the size of the second-level cache is unknown. It suits caches of 1 and of 2 MiB.
const GATHER_UNKNOWN: u32 = 256 * 1024;

/// CPUs on which the threads of a set are kept at one end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Placed {
    /// CPU of each stream's thread; empty if the scheduler places the threads.
    pub(crate) cpus: Vec<u32>,
    /// Whether the two ends of each stream run on the same CPU, so that the sender yields after each operation.
    pub(crate) meets: bool,
}

impl Placed {
    /// Makes a placement in which senders do not yield: `meets` is false.
    pub(crate) fn apart(cpus: Vec<u32>) -> Self {
        Self { cpus, meets: false }
    }
}

/// Places the threads of a set. The scheduler places them instead if there are more threads than CPUs, and for round
/// trips, which should not depend on one CPU's state.
///
/// Streams get the CPUs that `seats` ranks first. Reverse streams get the CPUs after those of as many forward
/// streams, if these CPUs are as good, so that both directions can run at once. Ends that share a machine each get
/// every other core. If streams need every CPU, both ends of each stream get the same CPU: the receiver then finds
/// the sender's data in its cache, and packets are not reordered (benches/peers/2026-11-26-placement.md). Sets with
/// equal numbers of streams get the same CPUs, so that trials compare like with like.
pub(crate) fn place(facts: &HostFacts, allowed: &[u32], end: End, plan: &SetPlan) -> Placed {
    let Some(direction) = plan.pattern.direction() else {
        return Placed::default();
    };
    let streams = plan.knobs.streams as usize;
    let mut allowed = allowed.to_vec();
    if let Some(requested) = requested_cpus(end.side, plan) {
        return Placed::apart(kept(requested, &allowed, streams));
    }
    if let Some(node) = requested_node(end.side, plan) {
        let homes = facts.topology.homes();
        allowed.retain(|cpu| homes.get(cpu) == Some(&node));
    }
    if streams > allowed.len() {
        return Placed::default();
    }
    let free = plan.knobs.sender_node.is_none() && plan.knobs.receiver_node.is_none();
    if end.shared && free && streams > 1 && streams == allowed.len() {
        // Both ends use the same CPUs in the same order, whatever their ports. This would not be so if the plan kept
        // one end on a NUMA node. With only one CPU, nothing is placed.
        return Placed { cpus: allowed, meets: true };
    }
    let (ours, others) =
        if end.shared { halves(facts, &allowed, end.side) } else { (allowed, Vec::new()) };
    let seats = placement::seats(facts, &ours);
    let alike = |a: &Seat, b: &Seat| (a.away, a.kind, a.serves) == (b.away, b.kind, b.serves);
    let good = seats.iter().take_while(|seat| alike(seat, &seats[0]));
    let skip = match direction {
        Direction::Reverse if 2 * streams <= good.count() => streams,
        _ => 0,
    };
    // The other end's CPUs are used last, and among them those that it uses first come at the very end.
    let theirs = placement::seats(facts, &others).into_iter().rev();
    let all = seats.iter().copied().chain(theirs);
    Placed::apart(all.skip(skip).take(streams).map(|seat| seat.cpu).collect())
}

/// Returns the NUMA node on which the plan keeps a set's threads on this side.
fn requested_node(side: Side, plan: &SetPlan) -> Option<u32> {
    match plan.pattern {
        Pattern::Stream { direction } if direction.sender() == side => plan.knobs.sender_node,
        Pattern::Stream { .. } => plan.knobs.receiver_node,
        Pattern::Operations { .. } => plan.knobs.sender_node,
        Pattern::PingPong { .. } => None,
    }
}

/// Returns the CPUs on which the plan keeps a set's threads on this side; `None` if the plan does not list CPUs.
fn requested_cpus(side: Side, plan: &SetPlan) -> Option<&[u32]> {
    let cpus = match plan.pattern {
        Pattern::Stream { direction } if direction.sender() == side => &plan.knobs.sender_cpus,
        Pattern::Stream { .. } => &plan.knobs.receiver_cpus,
        Pattern::Operations { .. } => &plan.knobs.sender_cpus,
        Pattern::PingPong { .. } => return None,
    };
    (!cpus.is_empty()).then_some(cpus)
}

/// Returns one of the requested CPUs for each stream. The result is empty
/// if too few were requested, or if this process may not use one of them.
fn kept(requested: &[u32], allowed: &[u32], streams: usize) -> Vec<u32> {
    match requested.get(..streams) {
        Some(cpus) if cpus.iter().all(|cpu| allowed.contains(cpu)) => cpus.to_vec(),
        _ => Vec::new(),
    }
}

/// Returns a gap if CPUs or a NUMA node were requested but the threads could not be kept there.
pub(super) fn refused(side: Side, plan: &SetPlan, cpus: &[u32]) -> Option<Gap> {
    if !cpus.is_empty() {
        return None;
    }
    if requested_cpus(side, plan).is_some() {
        return Some(Gap {
            what: "threads on other CPUs".to_owned(),
            why: format!(
                "not {} of those that were asked for are for this process",
                plan.knobs.streams
            ),
            hint: String::new(),
        });
    }
    let node = requested_node(side, plan)?;
    Some(Gap {
        what: format!("threads on node {node}"),
        why: format!("it has fewer than {} CPUs for this process", plan.knobs.streams),
        hint: String::new(),
    })
}

/// Side of an end, and whether both ends are on the same machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) side: Side,
    pub(crate) shared: bool,
}

/// Returns the CPUs of this end and those of the other end, if they share a machine. Each end gets every second core.
/// Only the numbers of the CPUs decide, because both ends must compute the same halves even if their ports differ.
fn halves(facts: &HostFacts, allowed: &[u32], side: Side) -> (Vec<u32>, Vec<u32>) {
    let mut first = BTreeMap::new();
    for core in &facts.topology.cores {
        for cpu in core {
            first.insert(*cpu, core[0]);
        }
    }
    let core = |cpu: &u32| first.get(cpu).copied().unwrap_or(*cpu);
    let cores: BTreeSet<u32> = allowed.iter().map(core).collect();
    let places: BTreeMap<u32, usize> = cores.into_iter().zip(0..).collect();
    let parity = usize::from(side == Side::Far);
    allowed.iter().partition(|cpu| places[&core(cpu)] % 2 == parity)
}

/// Largest sizes, in bytes, of a thread's operations and reads, used if the plan leaves them open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caps {
    /// Size of the largest operation, in bytes.
    pub(super) op: u32,
    /// Payload, in bytes, that gathers in the receive buffer before the thread reads it.
    pub(super) gather: u32,
}

/// Returns the largest sizes for `threads` threads that take turns on `cpus` CPUs.
pub(super) fn caps(l2_cache: Option<Bytes>, threads: usize, cpus: usize) -> Caps {
    Caps { op: op_cap(l2_cache, threads, cpus), gather: gather_cap(l2_cache) }
}

/// Returns the payload that gathers in the receive buffer before a receiver reads it, in bytes. Together with the
/// buffer of a largest operation, this payload fits the second-level cache. More data would have left the cache before
/// it is read, and its pages would be cold when they are reused (benches/peers/2026-11-26-low-water.md).
fn gather_cap(l2_cache: Option<Bytes>) -> u32 {
    let share =
        |l2: Bytes| (l2.0 / 16 * 3).clamp(u64::from(GATHER_MIN), u64::from(GATHER_MAX)) as u32;
    l2_cache.map_or(GATHER_UNKNOWN, share)
}

/// Returns the size of the largest operation in bytes if the plan leaves it open. The
/// operation's buffer should stay in the second-level cache together with the kernel's
/// data and the buffers of other threads: `threads` threads share `cpus` CPUs.
pub(crate) fn op_cap(l2_cache: Option<Bytes>, threads: usize, cpus: usize) -> u32 {
    let share = |l2: Bytes| (l2.0 / 4 * 3).clamp(u64::from(CAP_MIN), u64::from(CAP_MAX)) as u32;
    let whole = l2_cache.map_or(CAP_UNKNOWN, share);
    let turns = threads.div_ceil(cpus.max(1)).max(1) as u32;
    (whole / turns).max(whole.min(CAP_TURNS))
}

#[cfg(test)]
mod tests {
    use linerate_facts::Port;
    use linerate_facts::topology::Node;
    use linerate_plan::Knobs;

    use super::*;

    fn cpus(facts: &HostFacts, allowed: &[u32], end: End, plan: &SetPlan) -> Vec<u32> {
        place(facts, allowed, end, plan).cpus
    }

    fn plan(direction: Direction, streams: u32) -> SetPlan {
        SetPlan {
            id: 0,
            pattern: Pattern::Stream { direction },
            knobs: Knobs { streams, ..Knobs::default() },
        }
    }

    fn end(side: Side, shared: bool) -> End {
        End { side, shared }
    }

    /// Facts of a host with the CPUs of `cores`, two for each core,
    /// all on one node. Its port is served by the CPUs `served`.
    fn host(served: &[u32], cores: &[[u32; 2]]) -> HostFacts {
        let port = Port { served_by: served.to_vec(), ..Port::default() };
        let mut facts = HostFacts { port: Some(port), ..HostFacts::default() };
        facts.topology.cores = cores.iter().map(|core| core.to_vec()).collect();
        facts
    }

    #[test]
    fn streams_take_cpus_in_order_and_reverse_ones_the_next() {
        let (all, facts) = ([2, 3, 5, 7], HostFacts::default());
        let take = |d, n| cpus(&facts, &all, end(Side::Near, false), &plan(d, n));
        assert_eq!(take(Direction::Forward, 2), [2, 3]);
        assert_eq!(take(Direction::Reverse, 2), [5, 7]);
        assert_eq!(take(Direction::Reverse, 3), [2, 3, 5]);
    }

    #[test]
    fn reverse_streams_share_good_cpus_rather_than_take_worse_ones() {
        let take = |served: &[u32], d| {
            let facts = host(served, &[]);
            cpus(&facts, &[0, 1, 2, 3], end(Side::Near, false), &plan(d, 2))
        };
        assert_eq!(take(&[0], Direction::Forward), [1, 2]);
        assert_eq!(take(&[0], Direction::Reverse), [1, 2]);
        assert_eq!(take(&[0, 1, 2, 3], Direction::Reverse), [2, 3]);
    }

    #[test]
    fn ends_that_share_a_machine_take_every_other_core() {
        let all: Vec<u32> = (0..8).collect();
        let facts = host(&[], &[[0, 4], [1, 5], [2, 6], [3, 7]]);
        let take = |side, d, n| cpus(&facts, &all, end(side, true), &plan(d, n));
        assert_eq!(take(Side::Near, Direction::Forward, 1), [0]);
        assert_eq!(take(Side::Far, Direction::Forward, 1), [1]);
        assert_eq!(take(Side::Near, Direction::Reverse, 1), [2]);
        assert_eq!(take(Side::Far, Direction::Reverse, 1), [3]);
        assert_eq!(take(Side::Near, Direction::Forward, 4), [0, 2, 4, 6]);
        assert_eq!(take(Side::Far, Direction::Forward, 5), [1, 3, 5, 7, 6]);
    }

    #[test]
    fn ends_of_one_machine_share_the_cpu_of_each_stream_where_streams_take_all() {
        let all: Vec<u32> = (0..4).collect();
        let take = |side, served: &[u32], d, n| {
            let facts = host(served, &[[0, 1], [2, 3]]);
            cpus(&facts, &all, end(side, true), &plan(d, n))
        };
        for d in [Direction::Forward, Direction::Reverse] {
            let (near, far) = (take(Side::Near, &[0], d, 4), take(Side::Far, &[3], d, 4));
            assert_eq!(near, all);
            assert_eq!(far, all);
            let (near, far) = (take(Side::Near, &[], d, 3), take(Side::Far, &[], d, 3));
            assert_ne!(near, far);
            assert_eq!(take(Side::Near, &[], d, 5), [] as [u32; 0]);
        }
    }

    #[test]
    fn who_shares_the_cpu_of_a_stream_gives_way() {
        let facts = HostFacts::default();
        let met = |allowed: &[u32], streams, shared, sender_cpus: &[u32]| {
            let mut plan = plan(Direction::Forward, streams);
            plan.knobs.sender_cpus = sender_cpus.to_vec();
            place(&facts, allowed, end(Side::Near, shared), &plan).meets
        };
        assert!(met(&[0, 1], 2, true, &[]));
        assert!(!met(&[0, 1], 2, false, &[]));
        assert!(!met(&[0, 1], 1, true, &[]));
        assert!(!met(&[0, 1], 3, true, &[]));
        assert!(!met(&[0], 1, true, &[]));
        assert!(!met(&[0, 1], 2, true, &[1, 0]), "as was asked");
        let mut facts = HostFacts::default();
        facts.topology.nodes = [(0, [0, 1]), (1, [2, 3])]
            .map(|(id, cpus)| Node { id, cpus: cpus.to_vec(), distances: Vec::new() })
            .to_vec();
        let mut plan = plan(Direction::Forward, 2);
        plan.knobs.sender_node = Some(1);
        let placed = place(&facts, &[0, 1, 2, 3], end(Side::Near, true), &plan);
        assert_eq!((placed.cpus, placed.meets), (vec![2, 3], false));
    }

    #[test]
    fn ends_of_one_machine_take_cpus_apart_though_their_ports_differ() {
        let all: Vec<u32> = (0..6).collect();
        for n in 1..=3 {
            let take = |side, served: &[u32]| {
                let end = end(side, true);
                cpus(&host(served, &[]), &all, end, &plan(Direction::Forward, n))
            };
            let (near, far) = (take(Side::Near, &[0, 1]), take(Side::Far, &[3, 4]));
            assert!(near.iter().all(|cpu| !far.contains(cpu)), "{near:?} {far:?}");
        }
    }

    #[test]
    fn threads_keep_to_the_node_that_is_asked_for_or_are_not_pinned() {
        let mut facts = HostFacts::default();
        let node = |id, cpus: [u32; 2]| Node { id, cpus: cpus.to_vec(), distances: Vec::new() };
        facts.topology.nodes = vec![node(0, [0, 1]), node(1, [2, 3])];
        let take = |side, n| {
            let mut plan = plan(Direction::Forward, n);
            plan.knobs.receiver_node = Some(1);
            cpus(&facts, &[0, 1, 2, 3], end(side, false), &plan)
        };
        assert_eq!(take(Side::Far, 2), [2, 3]);
        assert_eq!(take(Side::Near, 2), [0, 1]);
        assert_eq!(take(Side::Far, 3), [0; 0]);
    }

    #[test]
    fn threads_keep_to_the_cpus_that_are_asked_for_or_are_not_pinned() {
        let take = |side, requested: &[u32], n| {
            let mut plan = plan(Direction::Forward, n);
            plan.knobs.receiver_cpus = requested.to_vec();
            let cpus = cpus(&HostFacts::default(), &[0, 1, 2, 3], end(side, true), &plan);
            let refused = refused(side, &plan, &cpus).is_some();
            (cpus, refused)
        };
        assert_eq!(take(Side::Far, &[3, 0], 2), (vec![3, 0], false));
        assert_eq!(take(Side::Far, &[3, 0], 1), (vec![3], false));
        assert_eq!(take(Side::Near, &[3, 0], 2), (vec![0, 2], false));
        assert_eq!(take(Side::Far, &[3], 2), (vec![], true));
        assert_eq!(take(Side::Far, &[3, 4], 2), (vec![], true), "not allowed");
    }

    #[test]
    fn more_streams_than_cpus_are_not_pinned() {
        let facts = HostFacts::default();
        let take = |n| cpus(&facts, &[0, 1], end(Side::Far, true), &plan(Direction::Forward, n));
        assert_eq!(take(2), [0, 1]);
        assert_eq!(take(3), [] as [u32; 0]);
        assert_eq!(cpus(&facts, &[], end(Side::Near, true), &plan(Direction::Forward, 0)), [0; 0]);
    }

    #[test]
    fn operations_are_bounded_on_both_sides() {
        let alone = |l2| op_cap(l2, 1, 1);
        assert_eq!(alone(None), CAP_UNKNOWN);
        assert_eq!(alone(Some(Bytes(0))), CAP_MIN);
        assert_eq!(alone(Some(Bytes(1 << 20))), 768 * 1024);
        assert_eq!(alone(Some(Bytes(u64::MAX))), CAP_MAX);
    }

    #[test]
    fn what_gathers_stays_in_the_cache_beside_an_operation() {
        let mib = 1 << 20;
        for (l2, gathers) in [(mib, 192 * 1024), (2 * mib, 384 * 1024)] {
            let caps = caps(Some(Bytes(l2)), 1, 1);
            assert_eq!(caps.gather, gathers);
            assert!(u64::from(caps.op + caps.gather) < l2);
        }
        assert_eq!(gather_cap(None), GATHER_UNKNOWN);
        assert_eq!(gather_cap(Some(Bytes(0))), GATHER_MIN);
        assert_eq!(gather_cap(Some(Bytes(u64::MAX))), GATHER_MAX);
    }

    #[test]
    fn threads_that_take_turns_on_a_cpu_share_its_cache() {
        let kib = |l2: u64, threads, cpus| op_cap(Some(Bytes(l2 << 10)), threads, cpus) / 1024;
        assert_eq!([0, 1, 2].map(|threads| kib(1024, threads, 2)), [768; 3]);
        assert_eq!([3, 4].map(|threads| kib(1024, threads, 2)), [384; 2]);
        assert_eq!([5, 6, 64].map(|threads| kib(1024, threads, 2)), [256; 3]);
        assert_eq!(kib(256, 64, 2), 192, "no more than fits alone");
        assert_eq!(kib(1024, 1, 0), 768, "CPUs that are not known");
    }
}
