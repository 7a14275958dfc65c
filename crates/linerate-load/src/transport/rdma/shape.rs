//! The sizes and depths of a load, and where its bytes are in memory.

use linerate_plan::transport::OptionInfo;
use linerate_plan::transport::rdma::{
    DEPTH, DEPTH_DEFAULT, EVENTS, INLINE, INLINE_DEFAULT, Operation, POST_LIST, POST_SEND,
    QUEUE_PAIRS, RECEIVES, SIGNAL_EVERY, Service, VERIFY,
};
use linerate_plan::{Pattern, SetPlan};
use linerate_sys::ibverbs::DATAGRAM;
use linerate_units::Bytes;

/// Payload of a request in bytes if the plan leaves it open, the same as in perftest.
pub(super) const SIZE: u32 = 64 << 10;
/// Payload in bytes from which on each request is signalled: moving it takes much longer than handling a completion.
const LARGE: u32 = 8 << 10;
/// Number of requests with a small payload of which one is signalled, the same as in perftest.
const GROUP: u64 = 100;
/// Most messages of round trips that may be in flight in open loop.
const TRIPS: u32 = 512;
/// Payload of an atomic operation, in bytes.
pub(super) const ATOMIC: u32 = 8;
/// Number of receive requests for each request that may be in flight, and the smallest number of receive requests. A
/// device acknowledges a message before its program has posted a new receive request, so the sender's depth alone is
/// not enough.
const FOR_EACH: u32 = 2;
const RECEIVES_LEAST: u32 = 64;
/// Largest datagram in bytes: the payload of one packet.
const DATAGRAM_MAX: u32 = 4096;
/// Bytes in the queues that a request with its completion needs.
//= rdma-core 65.0, providers/mlx5: 64 B each for a request of one segment and a completion
const QUEUED: u64 = 128;

/// Sizes and depths of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) op: Operation,
    pub(super) service: Service,
    /// Payload of a request in bytes.
    pub size: u32,
    /// Number of queue pairs of a stream.
    pub(super) pairs: u32,
    /// Most requests of each queue pair that may be in flight.
    pub(super) depth: u32,
    /// Number of receive requests that the plan requests; zero leaves it open.
    receives: u32,
    /// Number of requests that one call posts.
    pub(super) list: u32,
    /// Number of requests of which one is signalled, that is has a completion.
    pub(super) signal_every: u32,
    pub(super) inline: u32,
    pub(super) events: bool,
    /// Whether the driver's functions build the requests, if it has such functions.
    pub(super) calls: bool,
    /// Whether received payload is compared with the payload that was sent.
    pub(super) verify: bool,
}

impl Shape {
    pub(super) fn of(plan: &SetPlan) -> Self {
        let options = &plan.knobs.options;
        let number =
            |row: OptionInfo, default: u64| options.number(row.key).unwrap_or(default) as u32;
        let common = Self {
            op: Operation::of(options),
            service: Service::of(options),
            size: 0,
            pairs: 1,
            depth: 2,
            receives: 0,
            list: 1,
            signal_every: 1,
            inline: number(INLINE, INLINE_DEFAULT),
            events: options.is_on(EVENTS.key),
            calls: !options.is_on(POST_SEND.key),
            verify: options.is_on(VERIFY.key),
        };
        if let Pattern::PingPong { size, .. } = plan.pattern {
            return Self {
                size: size.0 as u32,
                depth: if plan.knobs.open_loop { TRIPS } else { 2 },
                ..common
            };
        }
        let size = match plan.knobs.write_size.0 {
            _ if common.op == Operation::Atomic => ATOMIC,
            0 if common.service == Service::Ud => DATAGRAM_MAX,
            0 => SIZE,
            size => size as u32,
        };
        let depth = number(DEPTH, DEPTH_DEFAULT);
        let group = if size < LARGE { GROUP } else { 1 };
        Self {
            size,
            pairs: number(QUEUE_PAIRS, 1),
            depth,
            receives: number(RECEIVES, 0),
            list: number(POST_LIST, 1),
            signal_every: number(SIGNAL_EVERY, group).min((depth / 2).max(1)),
            ..common
        }
    }

    /// Fits the size of datagrams to the packets of the path. If the plan leaves the size open, a datagram fills a
    /// packet; a larger size than a packet is an error. The error is a lowercase fragment.
    pub(super) fn fit(&mut self, plan: &SetPlan, mtu: u32) -> Result<(), String> {
        if self.service != Service::Ud || self.size <= mtu {
            return Ok(());
        }
        let is_stream = !matches!(plan.pattern, Pattern::PingPong { .. });
        if is_stream && plan.knobs.write_size.0 == 0 {
            self.size = mtu;
            return Ok(());
        }
        Err(format!(
            "a datagram of {}: a packet of this path carries {}",
            Bytes(self.size.into()),
            Bytes(mtu.into())
        ))
    }

    /// Returns whether at most one message of round trips is in flight. If messages may be lost, one that was given up
    /// may still arrive.
    pub(super) const fn is_alone(&self) -> bool {
        self.depth < TRIPS && !self.service.is_lossy()
    }

    /// Returns how many receive requests are posted to each queue pair.
    pub(super) const fn receives(&self) -> u32 {
        let by_depth = self.depth * FOR_EACH;
        if self.op.is_one_sided() {
            1
        } else if self.receives > 0 {
            self.receives
        } else if by_depth < RECEIVES_LEAST {
            RECEIVES_LEAST
        } else {
            by_depth
        }
    }

    /// Returns how many bytes a receive request has room for: the payload, and what the device puts in front of it.
    pub(super) const fn received(&self) -> u32 {
        match (self.op, self.service) {
            // The payload is stored at the address in the write request.
            (Operation::WriteWithImmediate, _) => 0,
            (_, Service::Ud) => self.size + DATAGRAM as u32,
            _ => self.size,
        }
    }

    /// Returns the size of a stream's memory in bytes: one half for what is sent, the other for what is received.
    pub(super) const fn memory(&self) -> usize {
        2 * self.half()
    }

    /// Returns how many bytes of memory one end of a stream needs, including its queues.
    pub(super) const fn room(&self) -> u64 {
        let requests = (self.pairs as u64) * (self.depth + self.list + self.receives()) as u64;
        let content = if self.verify { self.size as u64 } else { 0 };
        self.memory() as u64 + content + requests * QUEUED
    }

    /// Returns the offset of the half for received bytes. Both halves begin at a cache line.
    pub(super) const fn half(&self) -> usize {
        (self.size as usize + self.ahead()).next_multiple_of(64)
    }

    /// Returns the offset of the received payload.
    pub(super) const fn landing(&self) -> usize {
        self.half() + self.ahead()
    }

    /// Returns how many bytes the device stores in front of received payload.
    const fn ahead(&self) -> usize {
        match self.service {
            Service::Ud => DATAGRAM,
            Service::Rc | Service::Uc => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_plan::Knobs;
    use linerate_plan::path::Direction;
    use linerate_plan::transport::Setting;
    use linerate_plan::transport::rdma::{OPERATION, SERVICE};
    use linerate_units::{Bytes, Nanos};

    use super::*;

    fn stream(size: u64, numbers: &[(&str, u64)]) -> Shape {
        let mut knobs = Knobs { write_size: Bytes(size), ..Knobs::default() };
        for (key, number) in numbers {
            knobs.options.set(key, Setting::Number(*number));
        }
        let pattern = Pattern::Stream { direction: Direction::Forward };
        Shape::of(&SetPlan { id: 0, pattern, knobs })
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
            assert_eq!(stream(size, numbers).signal_every, every, "{size} {numbers:?}");
        }
    }

    #[test]
    fn receive_requests_are_twice_the_depth_unless_a_number_is_asked_for() {
        for (numbers, receives) in [
            (&[][..], 256),
            (&[(DEPTH.key, 31)], 64),
            (&[(DEPTH.key, 33)], 66),
            (&[(DEPTH.key, 33), (RECEIVES.key, 1)], 1),
            (&[(RECEIVES.key, 16_384)], 16_384),
        ] {
            let mut shape = stream(64, numbers);
            shape.op = Operation::Send;
            assert_eq!(shape.receives(), receives, "{numbers:?}");
            shape.op = Operation::Read;
            assert_eq!(shape.receives(), 1, "{numbers:?}");
        }
    }

    #[test]
    fn datagrams_fit_into_a_packet() {
        let plan = |size, round| {
            let mut knobs = Knobs { write_size: Bytes(size), ..Knobs::default() };
            knobs.options.set(SERVICE.key, Setting::Word("ud".to_owned()));
            let interval = Nanos(0);
            let direction = Direction::Forward;
            let pattern = match round {
                Some(size) => Pattern::PingPong { size: Bytes(size), interval },
                None => Pattern::Stream { direction },
            };
            SetPlan { id: 0, pattern, knobs }
        };
        for (size, round, mtu, fits) in [
            (0, None, 1024, Some(1024)),
            (0, None, 4096, Some(4096)),
            (1024, None, 1024, Some(1024)),
            (1025, None, 1024, None),
            (0, Some(2048), 2048, Some(2048)),
            (0, Some(2049), 2048, None),
        ] {
            let plan = plan(size, round);
            let mut shape = Shape::of(&plan);
            let fit = shape.fit(&plan, mtu).map(|()| shape.size).ok();
            assert_eq!(fit, fits, "{size} {round:?} {mtu}");
            assert_eq!(shape.landing(), shape.half() + 40);
            assert_eq!(shape.received(), shape.size + 40);
            assert!(shape.memory() >= shape.landing() + shape.size as usize);
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
        knobs.options.set(OPERATION.key, Setting::Word("atomic".to_owned()));
        let load = SetPlan {
            id: 0,
            pattern: Pattern::Stream { direction: Direction::Forward },
            knobs: knobs.clone(),
        };
        assert_eq!(Shape::of(&load).size, 8);
        let pattern = Pattern::PingPong { size: Bytes(8), interval: Nanos(0) };
        let trips = SetPlan { id: 0, pattern, knobs };
        let shape = Shape::of(&trips);
        assert_eq!((shape.signal_every, shape.receives()), (1, 1));
    }
}
