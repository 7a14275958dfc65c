//! The numbers of a load: sizes, depths, and where its bytes lie in memory.

use linerate_core::plan::{Pattern, SetPlan};
use linerate_core::transport::OptionInfo;
use linerate_core::transport::rdma::{
    DEPTH, DEPTH_DEFAULT, EVENTS, INLINE, INLINE_DEFAULT, Operation, SIGNAL_EVERY,
};

/// Payload of a request if the plan leaves it open, as perftest's.
pub(super) const SIZE: u32 = 64 << 10;
/// Largest payload of a request.
pub(super) const SIZE_MAX: u64 = 64 << 20;
/// Size from which on each request completes: the time of its payload exceeds that of a completion many times.
const LARGE: u32 = 8 << 10;
/// Requests of small payload of which one completes, as in perftest.
const GROUP: u64 = 100;
/// Messages of round trips that may be in flight in open loop.
const TRIPS: u32 = 512;
/// Payload of an atomic operation, in bytes.
pub(super) const ATOMIC: u32 = 8;
/// Receive requests for each request that may be in flight, so that the sender never waits for one.
const RECEIVES: u32 = 2;

/// The numbers of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) op: Operation,
    /// Payload of a request, in bytes.
    pub(super) size: u32,
    /// Requests in flight.
    pub(super) depth: u32,
    /// Requests of which one completes.
    pub(super) signal_every: u32,
    pub(super) inline: u32,
    pub(super) events: bool,
    /// Whether round trips are timed.
    pub(super) trips: bool,
}

impl Shape {
    pub(super) fn of(plan: &SetPlan) -> Self {
        let options = &plan.knobs.options;
        let op = Operation::of(options);
        let number =
            |row: OptionInfo, default: u64| options.number(row.key).unwrap_or(default) as u32;
        let inline = number(INLINE, INLINE_DEFAULT);
        let events = options.is_on(EVENTS.key);
        if let Pattern::PingPong { size, .. } = plan.pattern {
            return Self {
                op,
                size: size.0 as u32,
                depth: if plan.knobs.open_loop { TRIPS } else { 2 },
                signal_every: 1,
                inline,
                events,
                trips: true,
            };
        }
        let size = match plan.knobs.write_size.0 {
            _ if op == Operation::Atomic => ATOMIC,
            0 => SIZE,
            size => size as u32,
        };
        let depth = number(DEPTH, DEPTH_DEFAULT);
        let group = if size < LARGE { GROUP } else { 1 };
        let signal_every = number(SIGNAL_EVERY, group).min((depth / 2).max(1));
        Self {
            op,
            size,
            depth,
            signal_every,
            inline,
            events,
            trips: false,
        }
    }

    /// Receive requests that are posted.
    pub(super) const fn receives(&self) -> u32 {
        match self.op {
            Operation::Send => self.depth * RECEIVES,
            Operation::Write | Operation::Read | Operation::Atomic => 1,
        }
    }

    /// Bytes of the memory of each queue pair: what is sent, then what is received.
    pub(super) const fn memory(&self) -> usize {
        2 * self.half()
    }

    /// Where the received bytes begin. Both halves begin at a cache line.
    pub(super) const fn half(&self) -> usize {
        (self.size as usize).next_multiple_of(64)
    }
}
