//! TCP: one connection for each stream. Each stream has a blocking thread at each end; if there are many streams,
//! each end has as many threads as CPUs.

mod answerer;
mod asker;
mod bundle;
mod completions;
mod inflow;
mod intake;
pub mod options;
mod outflow;
mod outlet;
mod probe;
mod receiver;
mod sender;
mod uring;

use linerate_facts::{Gap, HostFacts};
use linerate_plan::path::Side;
use linerate_plan::transport::{self, PatternKind, TransportInfo};
use linerate_plan::{Handover, Knobs, Pattern, SetPlan};
use linerate_record::SetEnd;
use linerate_record::wire::limits::THREADS_MAX;
use linerate_record::wire::samples::read_of;
use linerate_sys::thread;

use self::answerer::TcpAnswerer;
use self::asker::TcpAsker;
use self::bundle::OP_MOST;
use super::line::Line;
use super::{Connected, Lines, Notice, Prepared, Transport, sizes, streams, unmade};

use crate::framing::Framing;
use crate::pattern::echo::Echo;
use crate::pattern::round_trips;
use crate::pattern::stream::stream;
use crate::{LoadError, Worker};

/// Most streams of one set.
const STREAMS_MAX: u32 = 10_000;
/// Most connections of a set of round trips: each has its own thread.
const TRIPS_MAX: u32 = 1024;

/// Transport over TCP.
pub struct Tcp;

impl Transport for Tcp {
    fn info(&self) -> &'static TransportInfo {
        &transport::TCP
    }

    fn check(&self, _: Side, facts: &HostFacts, plan: &SetPlan) -> Vec<Notice> {
        Notice::hints(check(facts, &plan.knobs))
    }

    fn bounds(&self, plan: &SetPlan) -> Result<(), String> {
        let knobs = &plan.knobs;
        let is_stream = plan.pattern.kind() == PatternKind::Stream;
        streams(plan, if is_stream { STREAMS_MAX } else { TRIPS_MAX })?;
        sizes(plan)?;
        if knobs.streams > THREADS_MAX && knobs.copy != Handover::Copy {
            return Err(format!(
                "{} streams without a copy: at most {THREADS_MAX}, each with its own thread and pages",
                knobs.streams
            ));
        }
        match plan.pattern {
            Pattern::PingPong { size, .. } if knobs.two_writes && size.0 < 2 => {
                Err(format!("a message of {size} cannot be sent in two writes"))
            }
            _ => Ok(()),
        }
    }

    fn prepare(&self, side: Side, plan: &SetPlan) -> Result<Box<dyn Prepared>, LoadError> {
        Ok(unmade(side, plan, connect))
    }
}

/// Connects one end of a set.
fn connect(side: Side, plan: &SetPlan, lines: &mut dyn Lines) -> Result<Connected, LoadError> {
    framed(side, plan, lines, &Framing::Marked)
}

/// Connects one end of a set. `framing` determines how a receiver detects the end of the payload.
pub fn framed(
    side: Side,
    plan: &SetPlan,
    lines: &mut dyn Lines,
    framing: &Framing,
) -> Result<Connected, LoadError> {
    let mut end = SetEnd::default();
    // All sockets of a set have the same options, so the refusals for the first socket are reported for all.
    let mut gaps = Vec::new();
    let fds = lines.lines(plan.id, plan.knobs.streams, &mut |stream, fd| {
        let refused = options::set(fd, side, plan);
        if stream == 0 {
            gaps = refused;
        }
        Ok(())
    })?;
    let mut all = Vec::new();
    for (stream, fd) in (0..).zip(fds) {
        let refused = options::set_connected(&fd, plan);
        if stream == 0 {
            gaps.extend(refused);
            options::read_back(&fd, side, plan, &mut end);
            end.gaps.append(&mut gaps);
        }
        all.push(Line::new(fd, plan.id, stream)?);
    }
    if is_bundled(plan) {
        // If the plan fixes these sizes, `end` already has them.
        let open = |requested: u64| if requested == 0 { OP_MOST.into() } else { requested };
        end.write_size = open(plan.knobs.write_size.0);
        end.read_size = open(plan.knobs.read_size.0);
    }
    let (handover, refused) = uring::handover(side, plan);
    end.gaps.extend(refused);
    let workers = workers(side, plan, (handover, framing), all);
    Ok(Connected { workers, end })
}

/// Returns whether several streams share a thread.
fn is_bundled(plan: &SetPlan) -> bool {
    matches!(plan.pattern, Pattern::Stream { .. }) && plan.knobs.streams > THREADS_MAX
}

/// Reports that only some connections are read by the sampler, if there are too many.
fn unread(streams: u32) -> Option<Gap> {
    let read = read_of(streams);
    (read < streams).then(|| Gap {
        what: "set.sockets".to_owned(),
        why: format!("only {read} of {streams} connections were read; they represent all"),
        hint: String::new(),
    })
}

/// How an end passes payload to the kernel or gets it, and how the payload is framed.
type TransferMode<'a> = (Handover, &'a Framing);

/// Makes the workers of a set: one for each stream or, if there are many streams, one for each CPU.
fn workers(
    side: Side,
    plan: &SetPlan,
    transfer: TransferMode<'_>,
    lines: Vec<Line>,
) -> Vec<Box<dyn Worker>> {
    match plan.pattern {
        Pattern::Stream { direction } if is_bundled(plan) => {
            let cpus = thread::allowed_cpus().map_or(1, |cpus| cpus.len());
            let threads = cpus.clamp(1, THREADS_MAX as usize);
            let shares = shared_out(lines, threads).into_iter();
            shares
                .map(|lines| bundle(direction.sender() == side, plan, transfer.1, lines))
                .collect()
        }
        _ => {
            let made = lines.into_iter().map(|l| worker(side, plan, transfer, l));
            made.collect()
        }
    }
}

/// Distributes the streams over `threads` threads, one after the other.
fn shared_out(lines: Vec<Line>, threads: usize) -> Vec<Vec<Line>> {
    let mut shares: Vec<Vec<Line>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, line) in lines.into_iter().enumerate() {
        shares[number % threads].push(line);
    }
    shares
}

fn bundle(sends: bool, plan: &SetPlan, framing: &Framing, lines: Vec<Line>) -> Box<dyn Worker> {
    if sends {
        Box::new(bundle::sender(lines, &plan.knobs, framing))
    } else {
        Box::new(bundle::receiver(lines, &plan.knobs, framing))
    }
}

fn worker(side: Side, plan: &SetPlan, transfer: TransferMode<'_>, line: Line) -> Box<dyn Worker> {
    let (handover, framing) = transfer;
    match plan.pattern {
        Pattern::Stream { direction } if direction.sender() == side => {
            stream(sender::Sender::new(line, handover, framing.clone()))
        }
        Pattern::PingPong { size, interval } if side == Side::Near => {
            let asker = TcpAsker::new(line, size.0 as u32, &plan.knobs);
            round_trips(asker, interval, &plan.knobs)
        }
        Pattern::PingPong { size, .. } => {
            let busy = plan.knobs.busy_poll;
            let answerer = TcpAnswerer::new(line, size.0 as u32, busy);
            Box::new(Echo::new(answerer))
        }
        _ => {
            let framing = framing.clone();
            stream(receiver::Receiver::new(line, &plan.knobs, handover, framing))
        }
    }
}

/// Reports options of `knobs` that this host refuses, or grants only partly.
fn check(facts: &HostFacts, knobs: &Knobs) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for (name, requested, most) in [
        ("rmem_max", knobs.recv_buffer, facts.buffers.rmem_max),
        ("wmem_max", knobs.send_buffer, facts.buffers.wmem_max),
    ] {
        if let (Some(requested), Some(most)) = (requested, most)
            && requested.0 > most
        {
            let why =
                format!("{} bytes were requested, the kernel limits them to {most}", requested.0);
            gaps.push(options::buffer_gap(name, requested.0, &why));
        }
    }
    if let Some(name) = &knobs.congestion
        && !facts.congestion_available.is_empty()
        && !facts.congestion_available.contains(name)
    {
        gaps.push(options::congestion_gap(name, "not available on this host"));
    }
    let (streams, cpus) = (knobs.streams as usize, facts.cpus.len());
    if cpus > 0 && streams > cpus {
        let how = if knobs.streams > THREADS_MAX {
            "with one thread for each CPU, and none is pinned"
        } else {
            "and their threads are not pinned"
        };
        gaps.push(Gap {
            what: "set.streams".to_owned(),
            why: format!("{streams} streams share {cpus} CPUs, {how}"),
            hint: format!("--streams {cpus}"),
        });
    }
    gaps.extend(unread(knobs.streams));
    gaps
}

#[cfg(test)]
mod tests {
    use linerate_plan::ExtraWork;
    use linerate_units::Bytes;

    use super::super::{SIZE_MAX, possible};
    use super::*;
    use crate::application::WORK_MAX_PS;
    use crate::transport::tests::{open_loop, pings, plan};

    fn in_two_writes(size: u64) -> impl FnOnce(&mut SetPlan) {
        move |plan| {
            plan.knobs.two_writes = true;
            plan.pattern = pings(size);
        }
    }

    #[test]
    fn plans_are_bounded_on_both_sides_of_each_limit() {
        let work = |ps| ExtraWork { sender_ps_per_byte: 0, receiver_ps_per_byte: ps };
        for (plan, good) in [
            (plan(|_| ()), true),
            (plan(|p| p.knobs.streams = 0), false),
            (plan(in_two_writes(1)), false),
            (plan(in_two_writes(2)), true),
            (plan(|p| p.knobs.streams = STREAMS_MAX), true),
            (plan(|p| p.knobs.streams = STREAMS_MAX + 1), false),
            (plan(|p| p.knobs.write_size = Bytes(SIZE_MAX)), true),
            (plan(|p| p.knobs.read_size = Bytes(SIZE_MAX + 1)), false),
            (plan(|p| p.knobs.extra_work = work(WORK_MAX_PS)), true),
            (plan(|p| p.knobs.extra_work = work(WORK_MAX_PS + 1)), false),
            (plan(|p| p.pattern = pings(0)), false),
            (plan(|p| p.pattern = pings(SIZE_MAX)), true),
            (plan(|p| p.pattern = pings(SIZE_MAX + 1)), false),
            (plan(open_loop(0)), false),
            (plan(open_loop(1)), true),
        ] {
            assert_eq!(possible(&Tcp, &plan).is_ok(), good, "{plan:?}");
        }
    }

    #[test]
    fn streams_that_must_share_cpus_are_told() {
        let facts = HostFacts { cpus: vec![4, 6], ..HostFacts::default() };
        let result_of = |streams| {
            let knobs = Knobs { streams, ..Knobs::default() };
            check(&facts, &knobs).len()
        };
        assert_eq!((result_of(2), result_of(3)), (0, 1));
    }

    #[test]
    fn what_the_host_will_not_give_is_told_before() {
        let mut facts = HostFacts::default();
        let knobs = Knobs {
            recv_buffer: Some(Bytes(1000)),
            congestion: Some("bbr".to_owned()),
            ..Knobs::default()
        };
        assert_eq!(check(&facts, &knobs), []);
        facts.buffers.rmem_max = Some(1000);
        facts.congestion_available = vec!["cubic".to_owned(), "bbr".to_owned()];
        assert_eq!(check(&facts, &knobs), []);
        facts.buffers.rmem_max = Some(999);
        facts.congestion_available.pop();
        let reported = check(&facts, &knobs);
        assert_eq!(reported.len(), 2);
        assert!(reported[0].why.contains("999"), "{reported:?}");
    }
}
