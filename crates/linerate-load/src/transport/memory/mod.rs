//! Transport `memory`: the rate at which threads of this host read, write or copy memory, and the latency of dependent
//! loads.
//!
//! Each thread has its own arrays. It writes to each page first, so that the pages are on the NUMA node of the thread's
//! CPU or on the requested node. Copies use `memcpy` and writes `memset`, as programs do, in pieces of the size that is
//! faster on this processor. A copy has two arrays, but each copied byte counts once.

mod arrays;
mod chase;
mod halt;
mod size;

use std::io;

use linerate_facts::Gap;
use linerate_plan::path::Side;
use linerate_plan::transport::{self, MEMORY_NODE, TransportInfo};
use linerate_plan::{Access, Pattern, SetPlan};
use linerate_record::SetEnd;
use linerate_record::wire::limits::THREADS_MAX;
use linerate_sys::array::{self, Array};
use linerate_sys::thread;
use linerate_units::Bytes;

use self::arrays::Arrays;
use self::chase::Chase;
use self::halt::Halt;
use super::{Connected, Lines, Prepared, Transport, refused, streams, unmade};
use crate::pattern::operations::Operations;
use crate::{LoadError, Worker};
use linerate_host::{self as host, Live, Room};

pub use size::{room_for, sizes};

/// Size of an address, which is what a dependent load reads.
pub const LOAD: Bytes = Bytes(8);
/// Most pages of each array whose NUMA node is checked.
const PAGES: usize = 1 << 16;
/// Number of bytes that are filled between two checks whether the step was aborted: 64 ms at 1 GB/s.
const PIECE: usize = 64 << 20;
/// Interval in bytes at which the content of an array differs: the smallest page size of any processor.
const PAGE: usize = 4096;

/// Transport that accesses the memory of this host.
pub(super) struct Memory;

impl Transport for Memory {
    fn info(&self) -> &'static TransportInfo {
        &transport::MEMORY
    }

    fn bounds(&self, plan: &SetPlan) -> Result<(), String> {
        streams(plan, THREADS_MAX)?;
        size::bounds(plan)
    }

    fn descriptors(&self) -> u32 {
        0
    }

    fn prepare(&self, side: Side, plan: &SetPlan) -> Result<Box<dyn Prepared>, LoadError> {
        Ok(unmade(side, plan, connect))
    }
}

/// Returns how much memory of this host this process may use.
pub fn room() -> Room {
    let allowed = thread::allowed_cpus().unwrap_or_default();
    Room {
        cpus: allowed.len() as u32,
        ..host::room(&Live::new(), allowed.first().copied().unwrap_or(0))
    }
}

fn connect(_: Side, plan: &SetPlan, _: &mut dyn Lines) -> Result<Connected, LoadError> {
    let room = room();
    let node = node_of(plan, &room)?;
    let (size, gap) = size::chosen(plan, &room, node)?;
    let worker = |stream| -> Box<dyn Worker> {
        let place = Place { stream, node, several: room.nodes.len() > 1, halt: Halt::default() };
        match plan.pattern {
            Pattern::Operations { access } => {
                Box::new(Operations::new(Arrays::new(place, size, access)))
            }
            // Plans with streams of payload were refused before.
            Pattern::PingPong { .. } | Pattern::Stream { .. } => Box::new(Chase::new(place, size)),
        }
    };
    Ok(Connected {
        workers: (0..plan.knobs.streams).map(worker).collect(),
        end: SetEnd {
            write_size: size.0,
            read_size: size.0,
            gaps: gap.into_iter().collect(),
            ..SetEnd::default()
        },
    })
}

/// Returns how many arrays each thread of a plan needs.
fn arrays_of(pattern: Pattern) -> u64 {
    match pattern {
        Pattern::Operations { access: Access::Copy } => 2,
        Pattern::Operations { .. } | Pattern::Stream { .. } | Pattern::PingPong { .. } => 1,
    }
}

/// Returns the NUMA node that the plan requests, if that node has memory.
fn node_of(plan: &SetPlan, room: &Room) -> Result<Option<u32>, LoadError> {
    let Some(requested) = plan.knobs.options.number(MEMORY_NODE.key) else {
        return Ok(None);
    };
    // A kernel without NUMA counts as having node 0.
    let known: Vec<u32> = match room.nodes.as_slice() {
        [] => vec![0],
        nodes => nodes.iter().map(|(id, _)| *id).collect(),
    };
    let found = known.iter().find(|id| u64::from(**id) == requested);
    if found.is_none() {
        let list: Vec<String> = known.iter().map(u32::to_string).collect();
        let what = format!(
            "NUMA node {requested} has no memory here; nodes with memory: {}",
            list.join(", ")
        );
        return Err(LoadError::Unsupported { what });
    }
    Ok(found.copied())
}

/// Which stream uses the arrays, and on which node their memory should be.
#[derive(Debug, Clone)]
struct Place {
    stream: u32,
    /// Requested node; `None` for the thread's own node.
    node: Option<u32>,
    /// Whether the host has several NUMA nodes with memory.
    several: bool,
    halt: Halt,
}

impl Place {
    /// Allocates an array and fills its pages. It must be called on the thread that uses the array.
    fn array(&self, size: Bytes) -> Result<Array, LoadError> {
        let call = |call, source| LoadError::Call { call, stream: self.stream, source };
        let len = usize::try_from(size.0).unwrap_or(usize::MAX);
        let mut array = Array::new(len).map_err(|source| call("mmap", source))?;
        // The only node is not requested, because a container may forbid the call.
        if let Some(node) = self.node.filter(|_| self.several) {
            array.prefer(node).map_err(|error| LoadError::Unsupported {
                what: format!(
                    "cannot ask for memory of node {node} (mbind): {error}; a container needs CAP_SYS_NICE for that"
                ),
            })?;
        }
        for piece in array.chunks_mut(PIECE) {
            self.halt.check()?;
            fill(piece);
        }
        Ok(array)
    }

    /// Reports memory that is not on the wanted node, or whose node cannot be read.
    fn astray<'a>(&self, arrays: impl IntoIterator<Item = &'a Array>) -> Option<Gap> {
        let wanted = self.node.or_else(array::node_here)?;
        if !self.several {
            return None;
        }
        let (mut right, mut all) = (0, 0);
        for found in arrays.into_iter().map(|array| array.nodes(PAGES)) {
            let found = match found {
                Ok(found) => found,
                Err(error) => return Some(untold(&error)),
            };
            right += found.get(&wanted).copied().unwrap_or(0);
            all += found.values().sum::<u64>();
        }
        elsewhere(wanted, right, all)
    }
}

/// Writes to every page. Each page begins with its own address: equal pages could be merged by the kernel (KSM) or a
/// hypervisor, and reads of all of them would then access the same memory.
fn fill(piece: &mut [u8]) {
    piece.fill(1);
    for page in piece.chunks_mut(PAGE) {
        let address = (page.as_ptr() as usize).to_ne_bytes();
        page.iter_mut().zip(address).for_each(|(at, byte)| *at = byte);
    }
}

/// Makes the gap that the NUMA node of pages cannot be read.
fn untold(error: &io::Error) -> Gap {
    let why = format!("the NUMA node of its pages cannot be read (move_pages): {error}");
    let mut gap = refused(MEMORY_NODE.key, &why);
    if error.kind() == io::ErrorKind::PermissionDenied {
        "a container needs CAP_SYS_NICE for that".clone_into(&mut gap.hint);
    }
    gap
}

/// Makes the gap that some of the checked pages are not on the wanted node; `None` if all are.
fn elsewhere(wanted: u32, right: u64, all: u64) -> Option<Gap> {
    let others = all.saturating_sub(right);
    let why = format!("{others} of {all} pages that were checked are not on node {wanted}");
    (others > 0).then(|| refused(MEMORY_NODE.key, &why))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::time::Duration;

    use linerate_plan::transport::{Options, Setting};
    use linerate_plan::{Handover, Knobs};
    use linerate_units::Nanos;

    use super::super::{NoLines, possible};
    use super::*;
    use crate::{Advice, Op};
    use linerate_plan::subject::Subject;

    const COPY: Pattern = Pattern::Operations { access: Access::Copy };
    const LOADS: Pattern = Pattern::PingPong { size: LOAD, interval: Nanos(0) };

    fn plan(pattern: Pattern, size: u64) -> SetPlan {
        SetPlan {
            id: 0,
            pattern,
            knobs: Knobs { write_size: Bytes(size), read_size: Bytes(size), ..Knobs::default() },
        }
    }

    #[test]
    fn what_only_packets_have_is_refused_in_words() {
        let refusal = |change: fn(&mut Knobs)| {
            let mut plan = plan(COPY, 4096);
            change(&mut plan.knobs);
            possible(&Memory, &plan).unwrap_err()
        };
        assert!(possible(&Memory, &plan(COPY, 4096)).is_ok());
        for (why, part) in [
            (refusal(|k| k.mss = Some(9)), "memory has no maximum segment size"),
            (refusal(|k| k.copy = Handover::Sendfile), "way but a copy"),
            (refusal(|k| k.streams = 0), "0 streams"),
            (refusal(|k| k.streams = THREADS_MAX + 1), "are possible"),
            (refusal(|k| k.read_size = Bytes(1)), "one size"),
            (refusal(|k| k.options.set("memory-node", Setting::Number(1024))), "0 to 1023"),
        ] {
            assert!(why.contains(part), "{why}");
        }
        let mut timed = plan(LOADS, 4096);
        assert!(possible(&Memory, &timed).is_ok());
        timed.knobs.options.set("access", Setting::Word("read".to_owned()));
        let why = possible(&Memory, &timed).unwrap_err();
        assert!(why.contains("option of another pattern"), "{why}");
    }

    #[test]
    fn a_node_without_memory_is_refused_with_those_that_have_some() {
        let requested = |node: u64, nodes: &[u32]| {
            let mut plan = plan(COPY, 4096);
            plan.knobs.options = Options::default();
            plan.knobs.options.set("memory-node", Setting::Number(node));
            let room =
                Room { nodes: nodes.iter().map(|id| (*id, None)).collect(), ..Room::default() };
            node_of(&plan, &room).map_err(|error| error.to_string())
        };
        assert_eq!(requested(2, &[0, 2]), Ok(Some(2)));
        assert_eq!(requested(0, &[]), Ok(Some(0)));
        assert!(requested(1, &[0, 2]).unwrap_err().ends_with("memory: 0, 2"));
        assert!(requested(1, &[]).is_err());
        let unasked = node_of(&plan(COPY, 1), &Room::default());
        assert_eq!(unasked.unwrap(), None);
    }

    #[test]
    fn pages_elsewhere_are_a_gap_and_none_elsewhere_is_none() {
        assert_eq!(elsewhere(1, 7, 7), None);
        assert_eq!(elsewhere(1, 0, 0), None);
        let gap = elsewhere(1, 6, 7).unwrap();
        assert_eq!(gap.what, "set.memory-node");
        assert!(gap.why.starts_with("1 of 7 pages"), "{}", gap.why);
    }

    #[test]
    fn no_two_pages_are_alike() {
        let place = Place { stream: 0, node: None, several: false, halt: Halt::default() };
        let arrays = [5 * PAGE + 3, PAGE].map(|len| place.array(Bytes(len as u64)).unwrap());
        let pages = || arrays.iter().flat_map(|array| array.chunks(PAGE));
        assert_eq!(pages().collect::<BTreeSet<_>>().len(), 7);
        assert_eq!(pages().count(), 7);
    }

    #[test]
    fn an_abort_ends_the_preparation_of_arrays_and_of_chains() {
        for pattern in [COPY, LOADS] {
            let prepared = Memory.prepare(Side::Near, &plan(pattern, 4096)).unwrap();
            let connected = prepared.connect(&Vec::new(), &mut NoLines(&Subject::Host)).unwrap();
            let mut workers = connected.workers;
            workers[0].probes().iter().for_each(|probe| probe.abort());
            let begun = workers[0].begin(&Arc::new(Advice::new(0, 1)));
            let why = begun.unwrap_err().to_string();
            assert!(why.contains("aborted before"), "{why}");
        }
    }

    /// Makes a worker of a set, ready for operations.
    fn worker(plan: &SetPlan) -> Box<dyn Worker> {
        let prepared = Memory.prepare(Side::Near, plan).unwrap();
        let connected = prepared.connect(&Vec::new(), &mut NoLines(&Subject::Host)).unwrap();
        let mut workers = connected.workers;
        let mut worker = workers.remove(0);
        let advice = Advice::new(0, 1);
        advice.count_from(1);
        worker.begin(&Arc::new(advice)).unwrap();
        worker
    }

    fn moved(worker: &mut dyn Worker, op: Op) -> u64 {
        let mut done = Vec::new();
        assert!(worker.submit(&[op]).unwrap() > 0);
        worker.reap(1, Duration::ZERO, &mut done).unwrap();
        assert!(worker.finish().unwrap());
        done.iter().map(|done| u64::from(done.bytes)).sum()
    }

    #[test]
    fn every_access_moves_bytes_in_arrays_of_any_size() {
        for access in Access::ALL {
            for size in [64, 100, 4096, 65_537, 300_000] {
                let mut worker = worker(&plan(Pattern::Operations { access }, size));
                for _ in 0..3 {
                    let bytes = moved(&mut *worker, Op::Access(access));
                    // Operations access whole arrays, small arrays several times.
                    assert!(bytes >= size.min(256 * 1024), "{access:?} {size}: {bytes}");
                    assert_eq!(bytes % size, 0, "{access:?} {size}: {bytes}");
                }
            }
        }
    }

    #[test]
    fn a_batch_that_began_before_the_time_that_counts_is_not_timed() {
        let mut worker = worker(&plan(LOADS, 4096));
        let advice = Arc::new(Advice::new(0, 1));
        advice.count_from(u64::MAX);
        worker.begin(&advice).unwrap();
        moved(&mut *worker, Op::Send(8));
        assert!(advice.counting() && worker.timed().trips.is_empty());
    }

    #[test]
    fn loads_are_timed_in_batches() {
        let mut worker = worker(&plan(LOADS, 4096));
        let bytes = moved(&mut *worker, Op::Send(8));
        assert_eq!(bytes, 8 * linerate_facts::memory::BATCH as u64);
        let times = worker.timed().trips;
        assert_eq!(times.iter().map(|(_, n)| n).sum::<u64>(), 1);
        assert!(worker.timed().trips.is_empty());
    }
}
