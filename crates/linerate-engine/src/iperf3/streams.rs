//! Data connections of a test: a thread each, which moves bare bytes one way.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linerate_core::metric;
use linerate_core::parse::tcp_info;
use linerate_sys::{socket, thread};

use crate::load::Advice;
use crate::load::application::Role;
use crate::load::pages::Pages;

/// Longest time that a call may block: within it a stop is heeded.
const BLOCK: Duration = Duration::from_millis(100);

/// How the streams of a test are moved.
#[derive(Debug, Clone)]
pub(super) struct Manner {
    /// Which way.
    pub(super) role: Role,
    /// Payload of each call, in bytes; zero lets it follow the rate.
    pub(super) size: u64,
    /// Its largest, where it follows the rate.
    pub(super) cap: u32,
    /// A receiver drops payload in the kernel.
    pub(super) discard: bool,
    /// The CPU of each thread; empty where they are kept on none.
    pub(super) cpus: Vec<u32>,
}

/// One connection; on cache lines of its own.
#[repr(align(128))]
struct Lane {
    fd: OwnedFd,
    role: Role,
    discard: bool,
    cpu: Option<u32>,
    advice: Advice,
    moved: AtomicU64,
    ended: OnceLock<String>,
}

/// All connections of a test, in motion from the start until it is dropped.
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
        for (index, fd) in fds.into_iter().enumerate() {
            rustix::io::ioctl_fionbio(&fd, false)?;
            socket::set_timeouts(fd.as_fd(), BLOCK)?;
            let lane = Arc::new(Lane {
                fd,
                role: manner.role,
                discard: manner.discard,
                cpu: manner.cpus.get(index).copied(),
                advice: Advice::new(manner.size, manner.cap),
                moved: AtomicU64::new(0),
                ended: OnceLock::new(),
            });
            streams.lanes.push(Arc::clone(&lane));
            let stop = Arc::clone(&streams.stop);
            let thread = std::thread::Builder::new().name(format!("iperf3-{index}"));
            streams.threads.push(thread.spawn(move || lane.run(&stop))?);
        }
        Ok(streams)
    }

    /// Payload that each has moved, in bytes.
    pub(super) fn each(&self) -> Vec<u64> {
        let lanes = self.lanes.iter();
        lanes.map(|lane| lane.moved.load(Relaxed)).collect()
    }

    /// Payload that all have moved, in bytes.
    pub(super) fn total(&self) -> u64 {
        self.each().iter().sum()
    }

    /// Why one of them moves no more, where one does not.
    pub(super) fn failed(&self) -> Option<&str> {
        let mut ended = self.lanes.iter().filter_map(|lane| lane.ended.get());
        ended.next().map(String::as_str)
    }

    /// Fits the size of the calls to the rate since the last time.
    pub(super) fn advise(&mut self) {
        let now = (Instant::now(), self.each());
        let passed = (now.0 - self.advised.0).as_secs_f64();
        if passed > 0.0 {
            for (lane, (new, old)) in self.lanes.iter().zip(now.1.iter().zip(&self.advised.1)) {
                lane.advice.follow(((new - old) as f64 / passed) as u64);
            }
        }
        self.advised = now;
    }

    /// Segments that each has sent again; `None` where the kernel does not tell.
    pub(super) fn retransmits(&self) -> Vec<Option<u64>> {
        self.lanes.iter().map(|lane| lane.retransmits()).collect()
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

impl Lane {
    /// Moves payload until the stop, or until nothing more can be moved.
    fn run(&self, stop: &AtomicBool) {
        if let Some(cpu) = self.cpu {
            // A CPU that went offline meanwhile leaves the thread to the scheduler.
            let _ = thread::pin(cpu);
        }
        let mut pages = Pages::default();
        pages.ensure(self.advice.most() as usize);
        if self.role == Role::Sender
            && let Err(error) = pages.randomize()
        {
            let _ = self.ended.set(format!("no random bytes: {error}"));
            return;
        }
        while !stop.load(Relaxed) {
            match self.step(pages.bytes_mut()) {
                Ok(bytes) => {
                    self.moved.fetch_add(bytes as u64, Relaxed);
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(e) => {
                    let _ = self.ended.set(e.to_string());
                    return;
                }
            }
        }
    }

    /// One call.
    fn step(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let fd = self.fd.as_fd();
        let op = (self.advice.op() as usize).min(buffer.len());
        let got = match self.role {
            Role::Sender => return socket::send(fd, &buffer[..op], false),
            Role::Receiver if self.discard => socket::discard(fd, buffer, true)?,
            Role::Receiver => socket::receive(fd, buffer, true)?,
        };
        if got == 0 {
            return Err(io::Error::other("the other end closed it"));
        }
        Ok(got)
    }

    fn retransmits(&self) -> Option<u64> {
        let mut room = [0; tcp_info::ROOM];
        let got = socket::tcp_info(self.fd.as_fd(), &mut room).ok()?;
        let mut all = tcp_info::values(&room[..got]);
        let (_, value) = all.find(|(m, _)| m.name == metric::TCP_RETRANS.name)?;
        u64::try_from(value?).ok()
    }
}
