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

#[cfg(test)]
mod tests {
    use linerate_core::path::Direction;
    use linerate_core::plan::Knobs;
    use linerate_core::transport::Setting;
    use linerate_core::transport::rdma::OPERATION;
    use linerate_core::units::{Bytes, Nanos};

    use super::*;

    fn stream(size: u64, numbers: &[(&str, u64)]) -> Shape {
        let mut knobs = Knobs {
            write_size: Bytes(size),
            ..Knobs::default()
        };
        for (key, number) in numbers {
            knobs.options.set(key, Setting::Number(*number));
        }
        let pattern = Pattern::Stream {
            direction: Direction::Forward,
        };
        Shape::of(&SetPlan {
            id: 0,
            pattern,
            knobs,
        })
    }

    #[test]
    fn small_requests_complete_in_groups_of_at_most_half_the_depth() {
        for (size, numbers, every) in [
            (8191, &[][..], 64),
            (8192, &[], 1),
            (0, &[], 1),
            (64, &[(DEPTH.key, 1000)], 100),
            (64, &[(DEPTH.key, 2)], 1),
            (64, &[(DEPTH.key, 1)], 1),
            (8192, &[(SIGNAL_EVERY.key, 8)], 8),
            (8192, &[(SIGNAL_EVERY.key, 8), (DEPTH.key, 8)], 4),
        ] {
            assert_eq!(
                stream(size, numbers).signal_every,
                every,
                "{size} {numbers:?}"
            );
        }
    }

    #[test]
    fn what_is_sent_and_what_is_received_do_not_overlap() {
        for size in [1, 63, 64, 65, 1 << 20] {
            let shape = stream(size, &[]);
            assert!(shape.half() >= size as usize && shape.half() < size as usize + 64);
            assert_eq!(shape.memory(), 2 * shape.half());
        }
    }

    #[test]
    fn atomic_operations_have_eight_bytes_and_round_trips_complete_one_by_one() {
        let mut knobs = Knobs::default();
        knobs
            .options
            .set(OPERATION.key, Setting::Word("atomic".to_owned()));
        let load = SetPlan {
            id: 0,
            pattern: Pattern::Stream {
                direction: Direction::Forward,
            },
            knobs: knobs.clone(),
        };
        assert_eq!(Shape::of(&load).size, 8);
        let pattern = Pattern::PingPong {
            size: Bytes(8),
            interval: Nanos(0),
        };
        let trips = SetPlan {
            id: 0,
            pattern,
            knobs,
        };
        let shape = Shape::of(&trips);
        assert_eq!((shape.signal_every, shape.receives()), (1, 1));
    }
}
