//! Shared memory between two processes of one host, with a ring for each stream and direction, and one thread for each
//! end of a stream.
//!
//! Goodput is the payload that the receiving process copied out of the ring, over that process's clock. Both ends know
//! the exact payload of a step: a position counts all bytes that ever passed through a ring.

mod meeting;
mod pipe;
mod probe;
mod region;
mod ring;
mod stream;
#[cfg(test)]
mod tests;
mod trips;

use linerate_facts::{Gap, HostFacts};
use linerate_plan::path::Side;
use linerate_plan::transport::{self, TransportInfo};
use linerate_plan::{Pattern, SetPlan};
use linerate_record::SetEnd;
use linerate_record::wire::limits::THREADS_MAX;
use linerate_sys::memfd::{SharedBytes, SharedMemory};
use linerate_units::Bytes;

use self::meeting::{PATIENCE, Wait};
use self::pipe::{Reader, Writer};
use self::region::{Layout, Region};
use self::stream::{Receiver, Sender};
use self::trips::{ShmAnswerer, ShmAsker};
use super::{Connected, Lines, Notice, Offer, Prepared, Transport, refused, sizes, streams};
use crate::pattern::echo::Echo;
use crate::pattern::round_trips;
use crate::pattern::stream::stream;
use crate::{LoadError, Worker};
use linerate_host::{self as host, Live};

/// Size of a stream's ring in bytes if the plan leaves it open. An end sleeps until half of the ring is full, or free:
/// with smaller rings, the two ends would spend their time waking each other (docs/decisions/transports.md).
const RING: u64 = transport::RING_DEFAULT;
/// Smallest rings of round trips, in bytes. With one message in flight, the ring stays in the first-level caches;
/// several messages need more room.
const RING_OF_ONE: u64 = 4 << 10;
const RING_OF_SEVERAL: u64 = 64 << 10;
/// Reciprocal of the share of the free memory that is kept for other programs.
const SPARED: u64 = 16;

/// Transport through shared memory.
pub(super) struct Shm;

impl Transport for Shm {
    fn info(&self) -> &'static TransportInfo {
        &transport::SHM
    }

    fn check(&self, _: Side, facts: &HostFacts, plan: &SetPlan) -> Vec<Notice> {
        Notice::hints(crowded(facts, plan).into_iter().collect())
    }

    fn room(&self, _: Side, plan: &SetPlan) -> Option<Bytes> {
        let operation = match plan.pattern {
            Pattern::PingPong { size, .. } => size.0.saturating_mul(2),
            _ => plan.knobs.write_size.0.max(plan.knobs.read_size.0).max(1 << 20),
        };
        Some(Bytes(operation.saturating_add(layout(plan).stream() as u64)))
    }

    fn bounds(&self, plan: &SetPlan) -> Result<(), String> {
        streams(plan, THREADS_MAX)?;
        let ring = layout(plan).size;
        if !ring.is_power_of_two() {
            return Err(format!("a ring of {ring} B: it must be a power of two"));
        }
        sizes(plan)
    }

    fn prepare(&self, side: Side, plan: &SetPlan) -> Result<Box<dyn Prepared>, LoadError> {
        let plan = plan.clone();
        Ok(match side {
            Side::Near => Box::new(Guest { plan }),
            Side::Far => {
                let memory = memory(layout(&plan).all(), host::room(&Live::new(), 0).free)?;
                let host = meeting::Host::new()?;
                Box::new(Owner { plan, memory, host })
            }
        })
    }
}

/// Returns how the memory of a set is divided into rings.
fn layout(plan: &SetPlan) -> Layout {
    let knobs = &plan.knobs;
    let (rings, size) = match plan.pattern {
        Pattern::PingPong { size, .. } => (2, ring_of(size.0, knobs.open_loop)),
        _ => (1, RING),
    };
    Layout {
        streams: knobs.streams,
        rings,
        size: knobs.options.number(transport::RING.key).unwrap_or(size),
    }
}

/// Returns the size of a ring that has room for two messages, but at most the size of a stream's ring.
fn ring_of(size: u64, several: bool) -> u64 {
    let least = if several { RING_OF_SEVERAL } else { RING_OF_ONE };
    (2 * size.min(RING)).next_power_of_two().clamp(least, RING)
}

/// Allocates the memory of a set. `free` is the available memory, and the name of the limit that determines it. The
/// check is needed because the kernel grants more memory than exists, and kills some process when it is used.
fn memory(len: usize, free: Option<(Bytes, String)>) -> Result<SharedMemory, LoadError> {
    let none = |why: &str| LoadError::Unsupported {
        what: format!("{} of shared memory cannot be had: {why}", Bytes(len as u64)),
    };
    if let Some((free, bound)) = free
        && len as u64 > free.0 - free.0 / SPARED
    {
        return Err(none(&format!("{free} are free ({bound})")));
    }
    SharedMemory::create(len).map_err(|e| none(&e.to_string()))
}

/// The far end before it is connected: it has made the memory.
struct Owner {
    plan: SetPlan,
    memory: SharedMemory,
    host: meeting::Host,
}

impl Prepared for Owner {
    fn offer(&self) -> Offer {
        self.host.offer()
    }

    fn connect(self: Box<Self>, _: &Offer, lines: &mut dyn Lines) -> Result<Connected, LoadError> {
        self.host.pass(&self.memory, &Wait::new(lines, PATIENCE))?;
        Ok(connected(Side::Far, &self.plan, self.memory))
    }
}

/// The near end before it is connected: it will receive the memory.
struct Guest {
    plan: SetPlan,
}

impl Prepared for Guest {
    fn offer(&self) -> Offer {
        Offer::new()
    }

    fn connect(
        self: Box<Self>,
        offer: &Offer,
        lines: &mut dyn Lines,
    ) -> Result<Connected, LoadError> {
        let memory = meeting::fetch(offer, layout(&self.plan).all(), &Wait::new(lines, PATIENCE))?;
        Ok(connected(Side::Near, &self.plan, memory))
    }
}

fn connected(side: Side, plan: &SetPlan, memory: SharedMemory) -> Connected {
    let (mut memory, layout) = (memory, layout(plan));
    let worker = |stream| {
        let busy = plan.knobs.busy_poll;
        let region = Region::take(&mut memory, &layout, side, plan.id, stream, busy);
        worker(side, plan, region, || layout.ring(&mut memory))
    };
    Connected { workers: (0..plan.knobs.streams).map(worker).collect(), end: SetEnd::default() }
}

/// Makes the worker of one end of a stream, whose rings are the next ones in the memory.
fn worker(
    side: Side,
    plan: &SetPlan,
    region: Region,
    mut ring: impl FnMut() -> SharedBytes,
) -> Box<dyn Worker> {
    match plan.pattern {
        Pattern::Stream { direction } if direction.sender() == side => {
            stream(Sender::new(Writer::new(region, 0, ring())))
        }
        Pattern::PingPong { size, interval } if side == Side::Near => {
            let (rings, several) = ([ring(), ring()], plan.knobs.open_loop);
            let asker = ShmAsker::new(&region, rings, size.0 as u32, several);
            round_trips(asker, interval, &plan.knobs)
        }
        Pattern::PingPong { size, .. } => {
            let rings = [ring(), ring()];
            Box::new(Echo::new(ShmAnswerer::new(&region, rings, size.0 as u32)))
        }
        _ => stream(Receiver::new(Reader::new(region, 0, ring()))),
    }
}

/// Reports that threads must share CPUs: both ends of each stream have a thread on this host.
fn crowded(facts: &HostFacts, plan: &SetPlan) -> Option<Gap> {
    let (threads, cpus) = (2 * plan.knobs.streams as usize, facts.cpus.len());
    (cpus > 0 && threads > cpus).then(|| {
        let why = format!("{threads} threads, one for each end of a stream, share {cpus} CPUs");
        refused("streams", &why)
    })
}
