//! A file or a disk of this host: operations at a depth, and the time of each.
//!
//! Goodput is what the kernel says that it moved, by the clock of this host. A write ends when the kernel says so: with
//! O_DIRECT the disk has the data then, perhaps in its own cache. linerate writes to a file of its own, which has no name
//! and is gone when the program ends, and to a disk that the user names twice.

mod caller;
mod data;
mod device;
mod disk;
mod offsets;
mod own;
mod pool;
mod target;
mod trips;
mod way;
mod worker;

use std::sync::Arc;

use linerate_plan::path::{Direction, Side};
use linerate_plan::subject::Subject;
use linerate_plan::transport::TransportInfo;
use linerate_plan::transport::file::{FILE, SYNC, VERIFY, is_random, writes};
use linerate_plan::{Pattern, SetPlan};
use linerate_record::SetEnd;
use linerate_record::wire::limits::THREADS_MAX;
use linerate_sys::thread;
use linerate_sys::uring::Access;

use self::offsets::Offsets;
pub(super) use self::own::forget;
use self::target::Target;
use self::trips::Trips;
use self::way::Way;
use self::worker::Loads;
use super::{Connected, Lines, Prepared, Transport, refused, sizes, streams, unmade};
use crate::pattern::round_trips;
use crate::{LoadError, Worker};

/// Bytes of each operation of a load, if the plan leaves them open: what most programs that copy files use.
const BLOCK: u64 = 1 << 20;
/// Block by which O_DIRECT is possible on every disk in use.
const ALIGNED: u32 = 4096;

/// Transport that reads and writes a file.
pub(super) struct File;

impl Transport for File {
    fn info(&self) -> &'static TransportInfo {
        &FILE
    }

    fn bounds(&self, plan: &SetPlan) -> Result<(), String> {
        streams(plan, THREADS_MAX)?;
        sizes(plan)
    }

    fn descriptors(&self) -> u32 {
        0
    }

    fn prepare(&self, side: Side, plan: &SetPlan) -> Result<Box<dyn Prepared>, LoadError> {
        Ok(unmade(side, plan, connect))
    }
}

/// What the operations of a set have in common.
#[derive(Clone)]
struct Shape {
    target: Arc<Target>,
    access: Access,
    offsets: Offsets,
    /// Bytes of each operation.
    block: u32,
    /// Operations that each thread keeps in flight.
    depth: u32,
    way: Way,
    /// Whether contents are checked.
    verify: bool,
    /// Whether each operation in flight of the set may have a thread.
    may_thread: bool,
    /// The CPUs on which threads of a pool may run.
    cpus: Arc<[u32]>,
}

fn connect(_: Side, plan: &SetPlan, lines: &mut dyn Lines) -> Result<Connected, LoadError> {
    let lines: &dyn Lines = lines;
    let Subject::File(path) = lines.subject() else {
        let what = "the load is aimed at no file".to_owned();
        return Err(LoadError::Unsupported { what });
    };
    let mut shape = shape(path, plan, &|| lines.given_up())?;
    shape.way = way::choose(&shape, plan.knobs.busy_poll)?;
    let gaps = &shape.target.gaps;
    let end = SetEnd {
        write_size: shape.block.into(),
        read_size: shape.block.into(),
        way: shape.way.name().to_owned(),
        gaps: gaps.iter().map(|(what, why)| refused(what, why)).collect(),
        ..SetEnd::default()
    };
    let worker = |stream| -> Box<dyn Worker> {
        let shape = Shape { offsets: shape.offsets.of_thread(stream), ..shape.clone() };
        match plan.pattern {
            Pattern::PingPong { interval, .. } => {
                round_trips(Trips::new(shape, stream), interval, &plan.knobs)
            }
            Pattern::Stream { .. } | Pattern::Operations { .. } => {
                Box::new(Loads::new(shape, stream))
            }
        }
    };
    Ok(Connected { workers: (0..plan.knobs.streams).map(worker).collect(), end })
}

/// Opens the file of a set. How operations reach the kernel is not chosen yet.
fn shape(path: &str, plan: &SetPlan, given_up: &dyn Fn() -> bool) -> Result<Shape, LoadError> {
    let (access, block) = (access_of(plan), block_of(plan));
    let options = &plan.knobs.options;
    let target = Target::open(path, options, access != Access::Read, block, given_up)?;
    let depth = plan.knobs.depth.max(1);
    Ok(Shape {
        offsets: Offsets::new(target.len / u64::from(block), is_random(options)),
        target: Arc::new(target),
        access,
        block,
        depth,
        way: Way::Calls,
        verify: options.is_on(VERIFY.key),
        may_thread: way::may_thread(plan.knobs.streams, depth),
        cpus: thread::allowed_cpus().unwrap_or_default().into(),
    })
}

/// A read is payload from the disk, which is the far end: it is reverse. Round trips name their operation.
fn access_of(plan: &SetPlan) -> Access {
    let writes = match plan.pattern {
        Pattern::Stream { direction } => direction == Direction::Forward,
        Pattern::PingPong { .. } | Pattern::Operations { .. } => writes(&plan.knobs.options),
    };
    let sync = plan.knobs.options.is_on(SYNC.key);
    if writes { Access::Write { sync } } else { Access::Read }
}

fn block_of(plan: &SetPlan) -> u32 {
    let size = match plan.pattern {
        Pattern::PingPong { size, .. } => size.0,
        Pattern::Stream { .. } | Pattern::Operations { .. } => match plan.knobs.write_size.0 {
            0 => BLOCK,
            requested => requested,
        },
    };
    u32::try_from(size).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
