//! RDMA verbs: programs post requests to their device, and the devices move payload between the memories of both ends
//! without the kernel.
//!
//! Each stream has queue pairs, and a TCP connection of the session over which its ends exchange hellos and report when
//! a step is over. Goodput of sends is the payload of completions at the receiver. For writes and reads, only one
//! program has completions: it counts them and reports them to the other end. They prove that the other end's device
//! has acknowledged a write, or that read payload is in this end's memory.

mod choice;
mod content;
mod hello;
mod meeting;
mod pair;
mod reason;
mod receiver;
mod requester;
mod shape;
mod trips;
mod witness;

use linerate_plan::path::Side;
use linerate_plan::transport::rdma::{
    DEPTH, INLINE, MTU, Operation, POST_LIST, QUEUE_PAIRS, Service,
};
use linerate_plan::transport::{self, TransportInfo};
use linerate_plan::{Knobs, Pattern, SetPlan};
use linerate_record::SetEnd;
use linerate_record::wire::limits::{OPERATION_MAX, THREADS_MAX};
use linerate_sys::ibverbs::{Request, Verb};
use linerate_units::{Bytes, Nanos};

use self::pair::Pair;
use self::receiver::Receiver;
use self::requester::Requester;
use self::shape::{ATOMIC, Shape};
use self::trips::{ByReceive, ByReturn, ByWrite, RdmaAnswerer, RdmaAsker, Way};
use self::witness::Witness;
use super::{Connected, Lines, Prepared, Transport, abort, refused, streams, unmade};
use crate::pattern::echo::Echo;
use crate::pattern::round_trips;
use crate::{LoadError, Worker};

/// Most requests that a stream may have in flight, over all its queue pairs.
const QUEUED_MAX: u32 = 64 << 10;

/// Transport by RDMA verbs.
pub(super) struct Rdma;

impl Transport for Rdma {
    fn info(&self) -> &'static TransportInfo {
        &transport::RDMA
    }

    fn bounds(&self, plan: &SetPlan) -> Result<(), String> {
        let knobs = &plan.knobs;
        streams(plan, THREADS_MAX)?;
        let size = match plan.pattern {
            Pattern::PingPong { size, .. } => size.0,
            _ => knobs.write_size.0.max(1),
        };
        if !(1..=OPERATION_MAX.0).contains(&size) {
            return Err(format!(
                "a request of {}: allowed are 1 B to {OPERATION_MAX}",
                Bytes(size)
            ));
        }
        let mtu = knobs.options.number(MTU.key);
        if mtu.is_some_and(|mtu| !mtu.is_power_of_two()) {
            return Err("a packet size that is none of 256, 512, 1024, 2048 and 4096".to_owned());
        }
        operation(plan, size)?;
        check_queues(&Shape::of(plan))
    }

    fn room(&self, _: Side, plan: &SetPlan) -> Option<Bytes> {
        Some(Bytes(Shape::of(plan).room()))
    }

    fn prepare(&self, side: Side, plan: &SetPlan) -> Result<Box<dyn Prepared>, LoadError> {
        Ok(unmade(side, plan, connect))
    }
}

/// Refuses an operation that the service, the size or the pattern does not permit.
fn operation(plan: &SetPlan, size: u64) -> Result<(), String> {
    let shape = Shape::of(plan);
    let op = shape.op;
    let is_timed = plan.pattern.kind() != transport::PatternKind::Stream;
    let is_write = op == Operation::Write;
    let is_uncounted = is_write && shape.service == Service::Uc;
    if !is_uncounted && !shape.service.carries(op) {
        return Err(format!("the operation {} by {}", op.name(), shape.service.name()));
    }
    let is_sized = is_timed || plan.knobs.write_size.0 > 0;
    if op == Operation::Atomic && is_sized && size != u64::from(ATOMIC) {
        return Err(format!("an atomic operation of {}: it has 8 B", Bytes(size)));
    }
    let refused = [
        (
            is_uncounted,
            "a write of an unreliable connection, of which no end knows whether it arrived: use the operation write-imm",
        ),
        (
            is_timed && shape.events && is_write,
            "round trips by write whose threads sleep: they wait for bytes in memory. Use the operation send",
        ),
        (
            shape.verify && op == Operation::Atomic,
            "verified atomic operations: they carry no payload",
        ),
        (
            plan.knobs.open_loop && is_write,
            "writes in open loop would overwrite each other: use the operation send or read",
        ),
    ];
    match refused.iter().find(|(is_so, _)| *is_so) {
        Some((_, why)) => Err((*why).to_owned()),
        None => Ok(()),
    }
}

/// Refuses sizes of queues that contradict each other or need too much memory.
fn check_queues(shape: &Shape) -> Result<(), String> {
    if shape.list > (shape.depth / 2).max(1) {
        return Err(format!(
            "{} {} at a {} of {}: allowed is half of it",
            POST_LIST.key, shape.list, DEPTH.key, shape.depth
        ));
    }
    if shape.pairs * shape.depth > QUEUED_MAX {
        return Err(format!(
            "{} {} of {} {}: allowed are {QUEUED_MAX} requests in flight of a stream",
            QUEUE_PAIRS.key, shape.pairs, DEPTH.key, shape.depth
        ));
    }
    Ok(())
}

/// Connects one end of a set.
fn connect(side: Side, plan: &SetPlan, lines: &mut dyn Lines) -> Result<Connected, LoadError> {
    let mut shape = Shape::of(plan);
    let met = meeting::meet(side, plan, &mut shape, lines)?;
    let granted = met.end.inline;
    let requested = plan.knobs.options.number(INLINE.key);
    let mut end = SetEnd {
        write_size: shape.size.into(),
        read_size: shape.size.into(),
        rdma: Some(Box::new(met.end)),
        ..SetEnd::default()
    };
    if let Some(requested) = requested.filter(|requested| u64::from(granted) < *requested) {
        let why = format!("the device grants {granted} B of {requested} B");
        end.gaps.push(refused(INLINE.key, &why));
    }
    let workers = met.pairs.into_iter();
    Ok(Connected { workers: workers.map(|pair| worker(side, plan, shape, pair)).collect(), end })
}

/// Makes the worker of one end of a stream.
fn worker(side: Side, plan: &SetPlan, shape: Shape, pair: Pair) -> Box<dyn Worker> {
    match plan.pattern {
        Pattern::PingPong { interval, .. } => {
            timed(EndOfTrips { side, interval, knobs: &plan.knobs, shape, pair })
        }
        Pattern::Stream { direction } => {
            let sends = direction.sender() == side;
            let verb = match (shape.op, sends) {
                (Operation::Send | Operation::WriteWithImmediate, false) => {
                    return Box::new(Receiver::new(pair, shape));
                }
                (Operation::Write | Operation::Atomic, false) | (Operation::Read, true) => {
                    return Box::new(Witness::new(pair, shape, sends));
                }
                (Operation::Send, true) => Verb::Send,
                (Operation::Write, true) => Verb::Write,
                (Operation::WriteWithImmediate, true) => Verb::WriteWithImmediate,
                (Operation::Atomic, true) => Verb::FetchAndAdd,
                (Operation::Read, false) => Verb::Read,
            };
            let [local, remote] = match verb {
                Verb::Read => [shape.half(), 0],
                _ => [0, shape.half()],
            };
            let request = Request { verb, len: shape.size, local, remote: remote as u64 };
            Box::new(Requester::new(pair, shape, request))
        }
        // Plans with this pattern are refused by `possible`: the transport's row does not list it.
        Pattern::Operations { .. } => Box::new(Witness::new(pair, shape, false)),
    }
}

/// One end of the round trips of a stream.
struct EndOfTrips<'a> {
    side: Side,
    interval: Nanos,
    knobs: &'a Knobs,
    shape: Shape,
    pair: Pair,
}

/// Makes the worker of one end of round trips. If messages may be lost, they carry numbers.
fn timed(end: EndOfTrips<'_>) -> Box<dyn Worker> {
    let shape = end.shape;
    match (shape.op, shape.service.is_lossy()) {
        (Operation::Read, _) => end.returned(Verb::Read),
        (Operation::Atomic, _) => end.returned(Verb::FetchAndAdd),
        (Operation::Write, _) => end.answered(ByWrite::new(shape)),
        (Operation::Send, false) => end.answered(ByReceive::<false>::new(Verb::Send, shape)),
        (Operation::Send, true) => {
            end.answered(ByReceive::<true>::new(Verb::SendWithImmediate, shape))
        }
        (Operation::WriteWithImmediate, false) => {
            end.answered(ByReceive::<false>::new(Verb::WriteWithImmediate, shape))
        }
        (Operation::WriteWithImmediate, true) => {
            end.answered(ByReceive::<true>::new(Verb::WriteWithImmediate, shape))
        }
    }
}

impl EndOfTrips<'_> {
    /// Makes the worker of one end if messages are answered by the far end's program.
    fn answered(self, way: impl Way + 'static) -> Box<dyn Worker> {
        match self.side {
            Side::Near => self.asker(way),
            Side::Far => Box::new(Echo::new(RdmaAnswerer::new(self.pair, self.shape, way))),
        }
    }

    /// Makes the worker of one end if the operation is a whole round trip and needs no answer by a program.
    fn returned(self, verb: Verb) -> Box<dyn Worker> {
        match self.side {
            Side::Near => {
                let way = ByReturn::new(verb, self.shape);
                self.asker(way)
            }
            Side::Far => Box::new(Witness::new(self.pair, self.shape, false)),
        }
    }

    fn asker(self, way: impl Way + 'static) -> Box<dyn Worker> {
        let asker = RdmaAsker::new(self.pair, self.shape, way);
        round_trips(asker, self.interval, self.knobs)
    }
}

#[cfg(test)]
mod tests {
    use linerate_plan::path::Direction;
    use linerate_plan::transport::Setting;

    use super::super::possible;
    use super::*;

    /// Returns why a load with these options (`key=value`) is refused. `trips` is the message size of round trips;
    /// `None` for a stream.
    fn refused(options: &str, trips: Option<u64>) -> Option<String> {
        let mut knobs = Knobs::default();
        for option in options.split_whitespace() {
            let (key, value) = option.split_once('=').unwrap();
            let setting = match (value, value.parse()) {
                ("on", _) => Setting::Switch(true),
                (_, Ok(number)) => Setting::Number(number),
                (word, _) => Setting::Word(word.to_owned()),
            };
            knobs.options.set(key, setting);
        }
        let direction = Direction::Forward;
        let interval = Nanos(0);
        let pattern = match trips {
            Some(size) => Pattern::PingPong { size: Bytes(size), interval },
            None => Pattern::Stream { direction },
        };
        possible(&Rdma, &SetPlan { id: 0, pattern, knobs }).err()
    }

    #[test]
    fn what_does_not_fit_together_is_refused_in_words() {
        for (options, trips, wanted) in [
            ("", None, None),
            ("", Some(1), None),
            ("", Some(0), Some("allowed are 1 B to 64 MiB")),
            ("", Some(64 << 20), None),
            ("", Some((64 << 20) + 1), Some("allowed are 1 B to 64 MiB")),
            ("mtu=300", None, Some("none of 256")),
            ("mtu=512", None, None),
            ("op=atomic", Some(8), None),
            ("op=atomic", Some(9), Some("it has 8 B")),
            ("op=atomic", None, None),
            ("op=atomic verify=on", None, Some("no payload")),
            ("op=write service=uc", None, Some("write-imm")),
            ("op=write-imm service=uc", None, None),
            ("op=read service=uc", None, Some("the operation read by uc")),
            ("op=write-imm service=ud", None, Some("write-imm by ud")),
            ("op=send service=ud", Some(64), None),
            ("events=on", Some(64), Some("Use the operation send")),
            ("events=on", None, None),
            ("op=send events=on", Some(64), None),
            ("depth=16 post-list=8", None, None),
            ("depth=16 post-list=9", None, Some("half of it")),
            ("depth=1 post-list=1", None, None),
            ("depth=1024 qps=64", None, None),
            ("depth=1025 qps=64", None, Some("65536 requests")),
        ] {
            let why = refused(options, trips);
            match wanted {
                None => assert_eq!(why, None, "{options} {trips:?}"),
                Some(wanted) => {
                    let why = why.unwrap_or_default();
                    assert!(why.contains(wanted), "{options} {trips:?}: {why}");
                }
            }
        }
    }
}
