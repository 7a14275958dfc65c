//! How operations reach the kernel: which ways are possible for a file, and which of two is faster.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use linerate_sys::uring::{Access, FileRing};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};

use super::disk::Disk;
use super::offsets::Offsets;
use super::{ALIGNED, Shape};
use crate::LoadError;
use crate::pages::Pages;

/// Most threads of all pools of a set.
const THREADS: u32 = 1024;
/// Time for which each way is tried.
const TRY: Duration = Duration::from_millis(50);
/// Longest wait for the read that tells whether a device can be polled.
const PATIENCE: Duration = Duration::from_secs(1);
/// Most operations in flight, and most bytes of them, while a way is tried: the last ones must end soon.
const TRIED: u64 = 64;
const TRIED_BYTES: u64 = 64 << 20;

/// How operations reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// io_uring, which starts operations without waiting for them.
    Ring,
    /// io_uring, whose waits poll the device.
    Polled,
    /// io_uring, where the file cannot be accessed without waiting: the kernel hands each operation to a thread of its
    /// own.
    Workers,
    /// A pool of threads, each of which makes one call after the other.
    Threads,
    /// One call after the other.
    Calls,
}

impl Way {
    /// The name in records.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ring => "io_uring",
            Self::Polled => "io_uring, polled",
            Self::Workers => "io_uring, by kernel workers",
            Self::Threads => "threads",
            Self::Calls => "calls",
        }
    }

    pub(super) const fn is_ring(self) -> bool {
        matches!(self, Self::Ring | Self::Polled | Self::Workers)
    }
}

/// Chooses the way of a set, which polls if it is asked to and can.
pub(super) fn choose(shape: &Shape, poll: bool) -> Result<Way, LoadError> {
    let Shape { target, block, depth, .. } = shape;
    if poll && target.is_direct() && can_poll(shape).unwrap_or(false) {
        return Ok(Way::Polled);
    }
    chosen(shape, FileRing::new(target.file.as_fd(), *depth, *block).map(drop))
}

/// Chooses the way of a set, where a ring of io_uring was made or refused.
pub(super) fn chosen(shape: &Shape, ring: io::Result<()>) -> Result<Way, LoadError> {
    let waits = refuses_nowait(shape, shape.access);
    match ring {
        // Nothing else is in flight: the detour through a thread of the kernel gains nothing.
        Ok(()) if waits && shape.depth == 1 => Ok(Way::Calls),
        Ok(()) if !waits => Ok(Way::Ring),
        Ok(()) if !shape.may_thread => Ok(Way::Workers),
        // Reads do not show what writes do where only writes wait.
        Ok(()) if !refuses_nowait(shape, Access::Read) => Ok(Way::Threads),
        Ok(()) => Ok(faster(shape)),
        Err(_) if shape.depth == 1 => Ok(Way::Calls),
        Err(_) if shape.may_thread => Ok(Way::Threads),
        Err(error) => Err(LoadError::Failed {
            what: format!(
                "io_uring cannot be used ({error}), and more than {THREADS} threads would be needed"
            ),
            hint: "use a smaller --depth or fewer --streams",
        }),
    }
}

/// Whether the device can be polled: the first read tells.
fn can_poll(shape: &Shape) -> io::Result<bool> {
    let mut ring = FileRing::polled(shape.target.file.as_fd(), 1, shape.block)?;
    ring.start(Access::Read, 0, |_, _| ())?;
    let began = Instant::now();
    let mut polled = false;
    while ring.in_flight() > 0 && began.elapsed() < PATIENCE {
        ring.complete(PATIENCE, |one| polled = one.moved.is_ok())?;
    }
    Ok(polled)
}

/// Whether a pool may have a thread for each operation in flight of a set.
pub(super) fn may_thread(streams: u32, depth: u32) -> bool {
    u64::from(streams) * u64::from(depth) <= THREADS.into()
}

/// Whether the file cannot be accessed without waiting (`RWF_NOWAIT`). A write writes again what is there; it is made
/// only where the set writes.
fn refuses_nowait(shape: &Shape, access: Access) -> bool {
    let file = &shape.target.file;
    let mut pages = Pages::default();
    pages.ensure(ALIGNED as usize);
    let block = pages.bytes_mut();
    let flags = ReadWriteFlags::NOWAIT;
    let moved = match access {
        Access::Read => preadv2(file, &mut [IoSliceMut::new(block)], 0, flags),
        Access::Write { .. } => {
            let read = preadv2(file, &mut [IoSliceMut::new(block)], 0, ReadWriteFlags::empty());
            read.and_then(|len| pwritev2(file, &[IoSlice::new(&block[..len])], 0, flags))
        }
    };
    moved == Err(Errno::OPNOTSUPP)
}

/// A file and what is tried on it: device, inode, depth, block and order.
type Tried = (u64, u64, u32, u32, bool);

/// What was faster, for each file that was tried.
static FASTER: Mutex<BTreeMap<Tried, Way>> = Mutex::new(BTreeMap::new());

/// Tries io_uring and a pool of threads by reads, and returns the faster one. It is tried once in a process.
fn faster(shape: &Shape) -> Way {
    let Ok(about) = shape.target.file.metadata() else {
        return Way::Threads;
    };
    let key = (about.dev(), about.ino(), shape.depth, shape.block, shape.offsets.is_random());
    let mut known = FASTER.lock().unwrap_or_else(PoisonError::into_inner);
    *known.entry(key).or_insert_with(|| {
        let [workers, threads] = [Way::Workers, Way::Threads].map(|way| speed(shape, way));
        if workers > threads { Way::Workers } else { Way::Threads }
    })
}

/// How many reads end in a short time; zero if they fail.
fn speed(shape: &Shape, way: Way) -> u64 {
    let depth = TRIED.min(TRIED_BYTES / u64::from(shape.block)).max(2) as u32;
    let blocks = shape.target.len / u64::from(shape.block);
    let shape = Shape {
        access: Access::Read,
        offsets: Offsets::new(blocks, shape.offsets.is_random()).of_thread(0),
        depth: shape.depth.min(depth),
        way,
        may_thread: false,
        ..shape.clone()
    };
    let mut disk = Disk::new(shape, 0);
    let mut ended = 0;
    let mut reads = || -> Result<(), LoadError> {
        disk.begin()?;
        let began = Instant::now();
        while began.elapsed() < TRY {
            while disk.start()? {}
            disk.complete(TRY, |_| ended += 1)?;
        }
        disk.stop();
        Ok(())
    };
    if reads().is_ok() { ended } else { 0 }
}
