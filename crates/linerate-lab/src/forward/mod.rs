//! The process that acts as the network: it reads whole frames from one port, and sends those that pass out of
//! the other port when they are due.

mod group;
mod passage;
mod queue;

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use linerate_sys::packet::{Frame, OFFLOAD_HEADER, PacketPort};
use linerate_sys::process;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::thread::ClockId;

use crate::spec::Forwarded;
use passage::Passage;
pub(crate) use passage::Treatment;
use queue::DelayQueue;

/// Size of the queue of each direction, in bytes: 100 ms at 5 Gb/s.
const QUEUE: usize = 64 << 20;
/// Longest time in nanoseconds that frames may wait in a port's ring before they are read. The ring holds more than
/// arrives in that time, and each frame has its time of arrival.
const LOOK: u64 = 500_000;
/// Least delay in nanoseconds, in both directions, at which the process waits only for the clock: waking for each
/// arrival would cost CPU time for nothing.
const LONG: u64 = 2 * LOOK;
/// Time in nanoseconds before a frame is due at which it is sent at once, because a sleep would last longer.
const CLOSE: u64 = 10_000;
/// Time in nanoseconds before a tick from which the process spins until the tick, because a sleep may end too late.
const SPIN: u64 = 30_000;
/// Length of this process's scheduler slices, the shortest possible: the shorter they are, the sooner it runs.
const SLICE: Duration = Duration::from_micros(100);
/// Time until a retry after the kernel accepted no more frames, in nanoseconds.
const RETRY: u64 = 100_000;

/// Indices of the counters that the process shares with the agent. Each has two entries, forward first.
const BYTES: usize = 0;
const FRAMES: usize = 2;
const LOST: usize = 4;
const LATEST: usize = 6;
const PACKETS: usize = 8;
const DROPPED: usize = 10;

/// Reads the counters of the process on the wire.
pub(crate) fn read(counters: &[AtomicU64]) -> Forwarded {
    let pair = |at: usize| [at, at + 1].map(|i| counters[i].load(Ordering::Relaxed));
    Forwarded {
        bytes: pair(BYTES),
        frames: pair(FRAMES),
        lost: pair(LOST),
        latest_ns: pair(LATEST),
        packets: pair(PACKETS),
        dropped: pair(DROPPED),
    }
}

/// Forwards frames between two ports until it is killed, or a port fails. The first treatment is for frames that are
/// received at the first port, the second for those that are received at the second.
pub(crate) fn run(
    ports: &[PacketPort; 2],
    treatments: [Treatment; 2],
    counters: &[AtomicU64],
) -> io::Error {
    // Some schedulers share CPU time among sessions. In its own session this process has its own share, which loaded
    // programs cannot use up.
    if let Err(e) = rustix::process::setsid() {
        return e.into();
    }
    // Timers become exact to the nanosecond: the usual slack is 50 us.
    if let Err(e) = rustix::thread::set_current_timer_slack(NonZeroU64::new(1)) {
        return e.into();
    }
    if let Err(e) = process::prefer_short_slices(SLICE) {
        return e;
    }
    let mut forwarder = Forwarder {
        ports,
        patient: treatments.iter().all(|t| t.delay >= LONG),
        leads: treatments.map(Lead::of),
        passages: [Passage::new(treatments[0], 0), Passage::new(treatments[1], 1)],
        queues: [DelayQueue::new(QUEUE), DelayQueue::new(QUEUE)],
        counters,
    };
    loop {
        forwarder.take();
        let next = forwarder.send_due();
        if let Err(e) = forwarder.wait(next) {
            return e;
        }
    }
}

/// Times before a frame is due, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Lead {
    /// Time before the due time from which the frame may be sent.
    send: u64,
    /// Time before the due time at which a sleep for this frame ends.
    wake: u64,
}

impl Lead {
    const fn of(treatment: Treatment) -> Self {
        match treatment.tick {
            Some(_) => Self { send: 0, wake: SPIN },
            None => Self { send: CLOSE, wake: CLOSE / 2 },
        }
    }
}

struct Forwarder<'a> {
    ports: &'a [PacketPort; 2],
    /// Whether every frame is delayed so long that the process need not wake for each arrival.
    patient: bool,
    leads: [Lead; 2],
    passages: [Passage; 2],
    queues: [DelayQueue; 2],
    counters: &'a [AtomicU64],
}

impl Forwarder<'_> {
    fn count(&self, what: usize, direction: usize, more: u64) {
        self.counters[what + direction].fetch_add(more, Ordering::Relaxed);
    }

    /// Reads frames from the ports and puts them into the queues, treated.
    fn take(&mut self) {
        let now = monotonic();
        let real = nanos(rustix::time::clock_gettime(ClockId::Realtime));
        for direction in 0..2 {
            let passage = &mut self.passages[direction];
            let queue = &mut self.queues[direction];
            let (mut lost, mut packets, mut dropped) = (0, 0, 0);
            self.ports[direction].receive(|frame| {
                let age = age(&frame, real);
                let whole = !frame.cut && frame.bytes.len() > OFFLOAD_HEADER;
                if !whole {
                    lost += 1;
                    return;
                }
                let fate = passage.frame(now.saturating_sub(age), frame.bytes, |due, bytes| {
                    lost += u64::from(!queue.push(due, bytes));
                });
                packets += fate.packets;
                dropped += fate.dropped;
            });
            for (what, more) in [(LOST, lost), (PACKETS, packets), (DROPPED, dropped)] {
                if more > 0 {
                    self.count(what, direction, more);
                }
            }
        }
    }

    /// Sends the frames that are due; returns the time to wake up for the next one.
    fn send_due(&mut self) -> Option<u64> {
        let mut next = None;
        for direction in 0..2 {
            let lead = self.leads[direction];
            let mut now = monotonic();
            while let Some((due, frame)) = self.queues[direction].front() {
                if due > now + lead.send {
                    now = monotonic();
                    if due > now + lead.send {
                        next = Some(earlier(next, due.saturating_sub(lead.wake)));
                        break;
                    }
                }
                let bytes = (frame.len() - OFFLOAD_HEADER) as u64;
                match self.ports[1 - direction].send(frame) {
                    Ok(()) => {
                        self.count(BYTES, direction, bytes);
                        self.count(FRAMES, direction, 1);
                        let late = now.saturating_sub(due);
                        self.counters[LATEST + direction].fetch_max(late, Ordering::Relaxed);
                    }
                    Err(e) => match Errno::from_io_error(&e) {
                        Some(Errno::AGAIN | Errno::INTR) => {
                            next = Some(earlier(next, now + RETRY));
                            break;
                        }
                        // If the link is down, its fault causes the loss, not this process.
                        Some(Errno::NETDOWN | Errno::NXIO) => {}
                        _ => self.count(LOST, direction, 1),
                    },
                }
                self.queues[direction].pop();
            }
        }
        next
    }

    /// Sleeps until the time `next` or until a frame may have arrived. Does not sleep if that time has passed.
    fn wait(&self, next: Option<u64>) -> io::Result<()> {
        for direction in 0..2 {
            let lost = self.ports[direction].take_lost()?;
            if lost > 0 {
                self.count(LOST, direction, lost);
            }
        }
        let now = monotonic();
        let left = next.map(|wake| wake.saturating_sub(now));
        if let Some(left) = left
            && self.patient
        {
            let time = timespec(left.min(LOOK));
            // A signal that ends the sleep early does no harm.
            let _ = rustix::thread::nanosleep(&time);
            return Ok(());
        }
        let mut polled =
            [&self.ports[0], &self.ports[1]].map(|port| PollFd::new(port, PollFlags::IN));
        match rustix::event::poll(&mut polled, left.map(timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        for (port, polled) in self.ports.iter().zip(&polled) {
            if polled.revents().contains(PollFlags::ERR) {
                port.clear_error()?;
            }
        }
        Ok(())
    }
}

/// Returns how long ago a frame was received; zero if the clock was set in the meantime.
fn age(frame: &Frame<'_>, real: u64) -> u64 {
    let arrived = u64::try_from(frame.arrived.as_nanos()).unwrap_or(real);
    let age = real.saturating_sub(arrived);
    if age < 1_000_000_000 { age } else { 0 }
}

fn earlier(a: Option<u64>, b: u64) -> u64 {
    a.map_or(b, |a| a.min(b))
}

fn monotonic() -> u64 {
    nanos(rustix::time::clock_gettime(ClockId::Monotonic))
}

fn nanos(time: Timespec) -> u64 {
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32).as_nanos() as u64
}

fn timespec(nanos: u64) -> Timespec {
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
}
