//! The sending thread of a stream of datagrams.
//!
//! Each is handed to the kernel on its own, as iperf3 does, several in a call; they are not cut from
//! larger ones, so that a receiver on the same host meets what comes over a network.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use linerate_core::iperf3::{Header, Width};
use linerate_core::units::Rate;
use linerate_sys::{clock, datagram, thread};
use rustix::io::Errno;

use super::{Lane, REST};
use crate::load::pace::{self, Pace};
use crate::load::pages::Pages;
use crate::load::transport::icmp::is_of_the_path;

/// Bytes that are handed to the kernel in one call, at most: they stay in the cache of their core.
const CALL_BYTES: usize = 128 * 1024;
/// Calls with one datagram each after one that took a part of its own only: why it did not take the rest the
/// kernel tells, if it still holds, where a call could take none (sendmmsg(2)).
const SINGLY: u32 = 4;
/// Most datagrams of a burst that nobody asked for.
const BURST: usize = 4096;
/// iperf3 catches up with all that it missed since the start, so what its users ask for is the mean: a thread that shares
/// its CPU is late by some milliseconds again and again. A longer stall is no reason for a flood.
const CREDIT_NANOS: u64 = 100_000_000;
/// Longest sleep until the next may be sent.
const WAIT: Duration = Duration::from_millis(100);

/// How they are sent.
pub(super) struct Sender {
    pub(super) size: u16,
    pub(super) width: Width,
    pub(super) pace: Option<Rate>,
    pub(super) burst: Option<usize>,
}

impl Sender {
    /// Sends until the stop; else why nothing more can be sent.
    pub(super) fn run(&self, lane: &Lane, stop: &AtomicBool) -> Result<(), String> {
        let size = usize::from(self.size).max(self.width.header_len());
        let most = (CALL_BYTES / size).clamp(1, datagram::BATCH);
        let mut pages = Pages::default();
        pages.ensure(most * size);
        let filled = pages.randomize();
        filled.map_err(|error| format!("no random bytes: {error}"))?;
        let mut outlet = Outlet::new(lane, size).map_err(|error| error.to_string())?;
        let mut pace = self.schedule();
        let mut sent = 0;
        while !stop.load(Relaxed) {
            let now = clock::now();
            let count = match pace.as_mut().map(|pace| pace.may(now)) {
                None => most,
                Some(Ok(count)) => count.min(most),
                Some(Err(due)) => {
                    clock::sleep_until(due, WAIT);
                    continue;
                }
            };
            let bytes = &mut pages.bytes_mut()[..count * size];
            for (number, one) in (sent + 1..).zip(bytes.chunks_exact_mut(size)) {
                let micros = now / 1000;
                Header { micros, number }.write(self.width, one);
            }
            let taken = outlet.push(bytes, size)?;
            sent += taken as u64;
            lane.add((taken * size) as u64);
            lane.counts.sent(sent);
            if let Some(pace) = &mut pace {
                pace.sent(taken);
            }
            lane.give_way();
        }
        Ok(())
    }

    fn schedule(&self) -> Option<Pace> {
        let rate = self.pace?;
        // A kernel that refuses only makes bursts later, and those behind them make up for it.
        let _ = thread::exact_timers();
        let fits = || pace::burst(rate, self.size, BURST);
        let burst = self.burst.unwrap_or_else(fits);
        let mut pace = Pace::new(rate, self.size, burst, CREDIT_NANOS);
        pace.begin(clock::now());
        Some(pace)
    }
}

/// The socket of a sender.
struct Outlet<'a> {
    lane: &'a Lane,
    /// Datagrams may travel in fragments.
    fragments: bool,
    /// Calls from here on that hand over one alone.
    singly: u32,
}

impl<'a> Outlet<'a> {
    /// Datagrams that fit a packet of the route are sent whole; what the host does not take is told.
    fn new(lane: &'a Lane, size: usize) -> io::Result<Self> {
        let fits = datagram::fits(lane.fd())? as usize;
        let fragments = size > fits;
        datagram::set_fragments(lane.fd(), fragments)?;
        datagram::set_errors(lane.fd())?;
        Ok(Self {
            lane,
            fragments,
            singly: 0,
        })
    }

    /// Hands datagrams of one size over; how many were taken.
    fn push(&mut self, bytes: &[u8], size: usize) -> Result<usize, String> {
        let all = match self.singly {
            0 => bytes.len() / size,
            _ => 1,
        };
        self.singly = self.singly.saturating_sub(1);
        let each = bytes.chunks(size).take(all);
        let refused = match datagram::send_batch(self.lane.fd(), each) {
            Ok(taken) => {
                if taken < all {
                    self.singly = SINGLY;
                }
                return Ok(taken);
            }
            Err(error) => error,
        };
        match Errno::from_io_error(&refused) {
            Some(Errno::AGAIN | Errno::INTR) => return Ok(0),
            // A queue of the host is full, its port down, or a rule of its own forbids it.
            // The first alone was tried.
            Some(Errno::NOBUFS | Errno::NETDOWN | Errno::PERM) => {
                self.lane.counts.refused(1);
            }
            // The path takes shorter ones than before. It says so of each that was under way, one after the other.
            Some(Errno::MSGSIZE) => {
                let told = datagram::drain_errors(self.lane.fd());
                if self.fragments && told == 0 {
                    return Err(refused.to_string());
                }
                let set = datagram::set_fragments(self.lane.fd(), true);
                set.map_err(|error| error.to_string())?;
                self.fragments = true;
            }
            // A host where nobody listens any more gets nothing more.
            Some(Errno::CONNREFUSED) => return Err("nobody takes datagrams there".to_owned()),
            _ if is_of_the_path(&refused) => {
                datagram::drain_errors(self.lane.fd());
            }
            _ => return Err(refused.to_string()),
        }
        std::thread::sleep(REST);
        Ok(0)
    }
}
