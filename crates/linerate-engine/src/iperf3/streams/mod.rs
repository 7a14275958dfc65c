//! Streams of a test: a thread each, which moves payload one way, over a connection or as datagrams.

mod bytes;
mod receiver;
mod sender;
mod tally;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_core::iperf3::Width;
use linerate_core::metric;
use linerate_core::units::Rate;
use linerate_sys::{socket, thread};

use crate::end::placement::Placed;
use crate::host::socket::{of_memory, of_tcp};
use crate::load::application::Role;

use self::bytes::Bytes;
use self::sender::Sender;
use self::tally::Counts;
pub(super) use self::tally::Tally;

/// Longest time that a call may block: within it a stop is heeded.
const BLOCK: Duration = Duration::from_millis(100);
/// Rest of a thread whose socket was told something by the path, or refused something by its host.
const REST: Duration = Duration::from_micros(50);

/// How the streams of a test are moved.
#[derive(Debug, Clone)]
pub(super) struct Manner {
    /// Which way.
    pub(super) role: Role,
    pub(super) load: Load,
    /// Bytes after which senders of bytes stop by themselves, all together, whole blocks of them; `None` for
    /// none.
    pub(super) most: Option<u64>,
    /// Where its threads are kept.
    pub(super) placed: Placed,
}

/// What payload is moved as.
#[derive(Debug, Clone, Copy)]
pub(super) enum Load {
    /// Bare bytes over connections.
    Bytes {
        /// Payload of each call, in bytes; zero lets it follow the rate.
        size: u64,
        /// Its largest, where it follows the rate.
        cap: u32,
        /// A receiver drops payload in the kernel.
        discard: bool,
    },
    Datagrams {
        /// Payload of each, in bytes.
        size: u16,
        /// Bits of their numbers.
        width: Width,
        /// What the sender of each stream keeps to; `None` for as fast as it can.
        pace: Option<Rate>,
        /// How many it hands over at once to keep that; `None` for as few as it can.
        burst: Option<usize>,
    },
}

/// What a stream has moved so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moved {
    /// Payload, in bytes.
    pub(super) bytes: u64,
    /// Datagrams; all zero where there are none.
    pub(super) datagrams: Tally,
}

/// One stream; on cache lines of its own.
#[repr(align(128))]
struct Lane {
    fd: OwnedFd,
    cpu: Option<u32>,
    /// Whether it gives way after each call, since its CPU is that of the other end too.
    gives_way: bool,
    /// What all of them may still send.
    left: Option<Arc<AtomicU64>>,
    work: Work,
    moved: AtomicU64,
    counts: Counts,
    ended: OnceLock<String>,
}

/// What its thread does.
enum Work {
    Bytes(Box<Bytes>),
    Send(Sender),
    Receive(Width),
}

/// All streams of a test, in motion from the start until it is dropped.
pub(super) struct Streams {
    lanes: Vec<Arc<Lane>>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    advised: (Instant, Vec<u64>),
}

impl Streams {
    /// Sets them in motion.
    pub(super) fn start(fds: Vec<OwnedFd>, manner: &Manner) -> io::Result<Self> {
        let mut streams = Self {
            advised: (Instant::now(), vec![0; fds.len()]),
            lanes: Vec::with_capacity(fds.len()),
            threads: Vec::with_capacity(fds.len()),
            stop: Arc::new(AtomicBool::new(false)),
        };
        let left = manner.most.map(|most| Arc::new(AtomicU64::new(most)));
        for (index, fd) in fds.into_iter().enumerate() {
            rustix::io::ioctl_fionbio(&fd, false)?;
            socket::set_timeouts(fd.as_fd(), BLOCK)?;
            let lane = Arc::new(Lane {
                fd,
                cpu: manner.placed.cpus.get(index).copied(),
                gives_way: manner.placed.meets,
                left: left.clone(),
                work: Work::of(manner),
                moved: AtomicU64::new(0),
                counts: Counts::default(),
                ended: OnceLock::new(),
            });
            streams.lanes.push(Arc::clone(&lane));
            let stop = Arc::clone(&streams.stop);
            let thread = std::thread::Builder::new().name(format!("iperf3-{index}"));
            streams.threads.push(thread.spawn(move || lane.run(&stop))?);
        }
        Ok(streams)
    }

    /// What each has moved.
    pub(super) fn each(&self) -> Vec<Moved> {
        let lanes = self.lanes.iter();
        let moved = |lane: &Arc<Lane>| Moved {
            bytes: lane.moved.load(Relaxed),
            datagrams: lane.counts.read(),
        };
        lanes.map(moved).collect()
    }

    /// Payload that all have moved, in bytes.
    pub(super) fn total(&self) -> u64 {
        let lanes = self.lanes.iter();
        lanes.map(|lane| lane.moved.load(Relaxed)).sum()
    }

    /// Why one of them moves no more, where one does not.
    pub(super) fn failed(&self) -> Option<&str> {
        let mut ended = self.lanes.iter().filter_map(|lane| lane.ended.get());
        ended.next().map(String::as_str)
    }

    /// Fits the size of the calls to the rate since the last time.
    pub(super) fn advise(&mut self) {
        let bytes = |lane: &Arc<Lane>| lane.moved.load(Relaxed);
        let now = (Instant::now(), self.lanes.iter().map(bytes).collect());
        let (at, before) = std::mem::replace(&mut self.advised, now);
        let passed = (self.advised.0 - at).as_secs_f64();
        if passed <= 0.0 {
            return;
        }
        for (lane, (new, old)) in self.lanes.iter().zip(self.advised.1.iter().zip(before)) {
            if let Work::Bytes(bytes) = &lane.work {
                bytes.follow(((new - old) as f64 / passed) as u64);
            }
        }
    }

    /// Segments that each has sent again; `None` where the kernel does not tell.
    pub(super) fn retransmits(&self) -> Vec<Option<u64>> {
        self.lanes.iter().map(|lane| lane.retransmits()).collect()
    }

    /// Datagrams that were dropped at the sockets for want of room; `None` where the kernel does not tell.
    pub(super) fn drops(&self) -> Option<u64> {
        self.lanes.iter().map(|lane| lane.drops()).sum()
    }

    /// Ends all motion, which takes no longer than a call may block.
    pub(super) fn halt(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // A panic there was told already, and its stream ended with it.
            let _ = thread.join();
        }
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for lane in &self.lanes {
            // One that is closed already needs no shutdown.
            let _ = socket::shutdown(lane.fd.as_fd());
        }
        self.halt();
    }
}

impl Work {
    fn of(manner: &Manner) -> Self {
        match (manner.load, manner.role) {
            (Load::Bytes { size, cap, discard }, role) => {
                Self::Bytes(Box::new(Bytes::new(role, discard, size, cap)))
            }
            (
                Load::Datagrams {
                    size,
                    width,
                    pace,
                    burst,
                },
                Role::Sender,
            ) => Self::Send(Sender {
                size,
                width,
                pace,
                burst,
            }),
            (Load::Datagrams { width, .. }, Role::Receiver) => Self::Receive(width),
        }
    }
}

impl Lane {
    /// Moves payload until the stop, or until nothing more can be moved.
    fn run(&self, stop: &AtomicBool) {
        if let Some(cpu) = self.cpu {
            // A CPU that went offline meanwhile leaves the thread to the scheduler.
            let _ = thread::pin(cpu);
        }
        let ended = match &self.work {
            Work::Bytes(bytes) => bytes.run(self, stop),
            Work::Send(sender) => sender.run(self, stop),
            Work::Receive(width) => receiver::run(self, *width, stop),
        };
        if let Err(why) = ended {
            let _ = self.ended.set(why);
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// So much payload was moved.
    fn add(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Relaxed);
    }

    /// Takes up to so many bytes of those that may still be sent.
    fn take(&self, bytes: usize) -> usize {
        let Some(left) = &self.left else {
            return bytes;
        };
        let bytes = bytes as u64;
        let before = left.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(bytes)));
        before.unwrap_or_else(|left| left).min(bytes) as usize
    }

    /// After a call of a sender.
    fn give_way(&self) {
        if self.gives_way {
            std::thread::yield_now();
        }
    }

    fn retransmits(&self) -> Option<u64> {
        of_tcp(self.fd(), metric::TCP_RETRANS)
    }

    fn drops(&self) -> Option<u64> {
        of_memory(self.fd(), metric::SOCKET_DROPS)
    }
}
