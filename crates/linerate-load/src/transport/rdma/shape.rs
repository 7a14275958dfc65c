//! The numbers of a load: sizes, depths, and where its bytes lie in memory.

use linerate_plan::transport::OptionInfo;
use linerate_plan::transport::rdma::{
    DEPTH, DEPTH_DEFAULT, EVENTS, INLINE, INLINE_DEFAULT, Operation, POST_LIST, POST_SEND,
    QUEUE_PAIRS, RECEIVES, SIGNAL_EVERY, Service, VERIFY,
};
use linerate_plan::{Pattern, SetPlan};
use linerate_sys::ibverbs::DATAGRAM;
use linerate_units::Bytes;

/// Payload of a request if the plan leaves it open, as perftest's.
pub(super) const SIZE: u32 = 64 << 10;
/// Size from which on each request completes: the time of its payload exceeds that of a completion many times.
const LARGE: u32 = 8 << 10;
/// Requests of small payload of which one completes, as in perftest.
const GROUP: u64 = 100;
/// Messages of round trips that may be in flight in open loop.
const TRIPS: u32 = 512;
/// Payload of an atomic operation, in bytes.
pub(super) const ATOMIC: u32 = 8;
/// Receive requests for each request that may be in flight, and the least number of them. The device acknowledges a
/// message before the program has posted a new receive request, so that the depth of the sender is no bound.
const FOR_EACH: u32 = 2;
const RECEIVES_LEAST: u32 = 64;
/// Largest datagram: one packet.
const DATAGRAM_MAX: u32 = 4096;
/// Bytes that a request, and its completion, take in the queues.
//= rdma-core 65.0, providers/mlx5: 64 B each for a request of one segment and a completion
const QUEUED: u64 = 128;

/// The numbers of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) op: Operation,
    pub(super) service: Service,
    /// Payload of a request, in bytes.
    pub size: u32,
    /// Queue pairs of a stream.
    pub(super) pairs: u32,
    /// Requests in flight, of each queue pair.
    pub(super) depth: u32,
    /// Receive requests that are asked for; zero leaves their number open.
    receives: u32,
    /// Requests that are posted by one call.
    pub(super) list: u32,
    /// Requests of which one completes.
    pub(super) signal_every: u32,
    pub(super) inline: u32,
    pub(super) events: bool,
    /// Whether functions of the driver build requests, if it has them.
    pub(super) calls: bool,
    /// Whether received payload is compared with what was sent.
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

    /// Fits the size of datagrams to the packets of the path: those of a plan that leaves it open fill a packet. The
    /// error is a lowercase fragment.
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

    /// Whether a message of round trips is the only one under way. One that is not waited for any more may still arrive.
    pub(super) const fn is_alone(&self) -> bool {
        self.depth < TRIPS && !self.service.is_lossy()
    }

    /// Receive requests that are posted to each queue pair.
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

    /// Payload for which a receive request has room, with what the device puts in front of it.
    pub(super) const fn received(&self) -> u32 {
        match (self.op, self.service) {
            // The payload is where the request wrote it.
            (Operation::WriteWithImmediate, _) => 0,
            (_, Service::Ud) => self.size + DATAGRAM as u32,
            _ => self.size,
        }
    }

    /// Bytes of the memory of a stream: what is sent, then what is received.
    pub(super) const fn memory(&self) -> usize {
        2 * self.half()
    }

    /// Bytes that an end of a stream takes, with its queues.
    pub(super) const fn room(&self) -> u64 {
        let requests = (self.pairs as u64) * (self.depth + self.list + self.receives()) as u64;
        let content = if self.verify { self.size as u64 } else { 0 };
        self.memory() as u64 + content + requests * QUEUED
    }

    /// Where the bytes begin that the device stores. Both halves begin at a cache line.
    pub(super) const fn half(&self) -> usize {
        (self.size as usize + self.ahead()).next_multiple_of(64)
    }

    /// Where the received payload begins.
    pub(super) const fn landing(&self) -> usize {
        self.half() + self.ahead()
    }

    /// Bytes in front of received payload.
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
