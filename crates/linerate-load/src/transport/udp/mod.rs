//! UDP: each stream has a connected socket and a blocking thread at each end.
//!
//! Goodput is the UDP payload that the receiving program read, over the receiver's clock; each datagram counts once.
//! The payload that was sent does not count, since datagrams may be lost. The payload includes the header that
//! identifies datagrams ([`linerate_facts::parse::datagram`]), as in other tools.

mod answerer;
mod asker;
mod bare;
mod farewell;
mod line;
pub mod options;
mod probe;
mod receiver;
mod sender;

use linerate_facts::parse::datagram::{DATAGRAM_MAX, HEADER_LEN};
use linerate_facts::{Gap, HostFacts};
use linerate_plan::path::Side;
use linerate_plan::transport::{self, TransportInfo};
use linerate_plan::{Pattern, SetPlan};
use linerate_record::SetEnd;
use linerate_sys::{datagram, socket};
use linerate_units::stats::Arrivals;
use linerate_units::{Bytes, Rate};

use self::answerer::UdpAnswerer;
use self::asker::UdpAsker;
use self::line::Line;
use self::options::{RECV_BUFFER, buffers, fragments, size};
use super::{Connected, Lines, Notice, Prepared, Transport, refused, streams, unmade};
use crate::framing::Framing;
use crate::pace::{self, Pace};
use crate::pattern::echo::Echo;
use crate::pattern::round_trips;
use crate::pattern::stream::stream;
use crate::{LoadError, Worker};

/// Most streams of one set: each receiver allocates 2 MiB for a batch of the largest datagrams.
const STREAMS_MAX: u32 = 64;
/// Longest delay in nanoseconds that a sender makes up for by sending faster than its pace. After a longer stall,
/// making up for it would flood the path.
const CREDIT_NANOS: u64 = 1_000_000;

/// Transport over UDP.
pub(super) struct Udp;

impl Transport for Udp {
    fn info(&self) -> &'static TransportInfo {
        &transport::UDP
    }

    fn check(&self, side: Side, facts: &HostFacts, plan: &SetPlan) -> Vec<Notice> {
        Notice::hints(check(side, facts, plan))
    }

    fn room(&self, side: Side, plan: &SetPlan) -> Option<Bytes> {
        let bytes = match plan.pattern {
            Pattern::Stream { direction } if direction.sender() == side => sender::ROOM as u64,
            Pattern::PingPong { .. } => {
                let numbers = Arrivals::room(asker::remembered(plan));
                asker::ROOM[usize::from(side == Side::Far)] + numbers
            }
            _ => receiver::room(),
        };
        Some(Bytes(bytes))
    }

    fn bounds(&self, plan: &SetPlan) -> Result<(), String> {
        let knobs = &plan.knobs;
        streams(plan, STREAMS_MAX)?;
        let possible = HEADER_LEN as u64..=DATAGRAM_MAX as u64;
        let size = match plan.pattern {
            Pattern::PingPong { size, .. } => size.0,
            _ if knobs.write_size.0 == 0 => *possible.start(),
            _ => knobs.write_size.0,
        };
        if !possible.contains(&size) {
            return Err(format!(
                "a datagram of {size} B: allowed are {HEADER_LEN} B to {DATAGRAM_MAX} B"
            ));
        }
        Ok(())
    }

    fn prepare(&self, side: Side, plan: &SetPlan) -> Result<Box<dyn Prepared>, LoadError> {
        Ok(unmade(side, plan, connect))
    }
}

/// Connects one end of a set.
fn connect(side: Side, plan: &SetPlan, lines: &mut dyn Lines) -> Result<Connected, LoadError> {
    framed(side, plan, lines, &Framing::Marked)
}

/// Opens and connects the sockets of this end, one for each stream of the plan. `framing` determines the header of its datagrams, and how the receiver detects the end.
pub fn framed(
    side: Side,
    plan: &SetPlan,
    lines: &mut dyn Lines,
    framing: &Framing,
) -> Result<Connected, LoadError> {
    let mut end = SetEnd::default();
    let mut workers = Vec::new();
    for stream in 0..plan.knobs.streams {
        let mut gaps = Vec::new();
        let found = lines.datagrams(plan.id, stream, &mut |fd| {
            gaps = buffers(fd, &plan.knobs);
            Ok(())
        })?;
        let line = Line::new(found, plan.id, stream);
        let (worker, more) = match framing {
            Framing::Marked => worker(side, plan, line.clone(), &mut end)?,
            Framing::Bare(bare) => bare::worker(side, plan, line.clone(), bare, &mut end)?,
        };
        gaps.extend(more);
        if stream == 0 {
            end.send_buffer = socket::send_buffer(line.fd()).ok();
            end.recv_buffer = socket::recv_buffer(line.fd()).ok();
            end.gaps.append(&mut gaps);
        }
        workers.push(worker);
    }
    Ok(Connected { workers, end })
}

/// Makes the worker of a stream. The returned gaps are for options that its socket was refused.
fn worker(
    side: Side,
    plan: &SetPlan,
    line: Line,
    end: &mut SetEnd,
) -> Result<(Box<dyn Worker>, Vec<Gap>), LoadError> {
    let knobs = &plan.knobs;
    let mut gaps = Vec::new();
    let worker: Box<dyn Worker> = match plan.pattern {
        Pattern::Stream { direction } if direction.sender() == side => {
            let fits = datagram::fits(line.fd()).map_err(|e| line.failed("getsockopt", e))?;
            let bytes = size(knobs.write_size.0, fits, HEADER_LEN as u64);
            let whole = whole(&line, bytes, fits, &mut gaps)?;
            let mut segments = sender::segments(bytes);
            if !whole || segments > 1 && !cut(&line, bytes, &mut gaps) {
                segments = 1;
            }
            end.write_size = u64::from(bytes);
            let most = sender::most(bytes, segments);
            let burst = |rate| pace::burst(rate, bytes, most);
            let pace = paced(knobs.pacing, bytes, burst, CREDIT_NANOS, end);
            stream(sender::Sender::new(line, bytes, segments, pace))
        }
        Pattern::PingPong { size: message, interval } => {
            let fits = datagram::fits(line.fd()).map_err(|e| line.failed("getsockopt", e))?;
            whole(&line, message.0 as u16, fits, &mut gaps)?;
            if side == Side::Far {
                let pings = Arrivals::over(asker::remembered(plan));
                let answerer = UdpAnswerer::new(line, message.0 as u16, pings, knobs.busy_poll);
                return Ok((Box::new(Echo::new(answerer)), gaps));
            }
            if let Err(e) = datagram::set_stamps(line.fd()) {
                gaps.push(refused("stamps", &format!("SO_TIMESTAMPNS: {e}")));
            }
            let answers = Arrivals::over(asker::remembered(plan));
            let asker = UdpAsker::new(line, message.0 as u16, answers);
            round_trips(asker, interval, knobs)
        }
        _ => {
            if let Err(e) = datagram::set_joined(line.fd()) {
                gaps.push(refused("joined", &format!("UDP_GRO: {e}")));
            }
            end.read_size = DATAGRAM_MAX as u64;
            stream(receiver::Receiver::new(line))
        }
    };
    Ok((worker, gaps))
}

/// Makes the pace of a sender of datagrams of `bytes` bytes, and records its burst in `end`; `None` without `pacing`.
fn paced(
    pacing: Option<Rate>,
    bytes: u16,
    burst: impl Fn(Rate) -> usize,
    credit: u64,
    end: &mut SetEnd,
) -> Option<Pace> {
    let rate = pacing?;
    let burst = burst(rate);
    end.burst = burst as u64;
    Some(Pace::new(rate, bytes, burst, credit))
}

/// Makes the socket send datagrams in one packet each or, if they do not fit, in fragments. Returns true for one packet
/// each.
fn whole(line: &Line, size: u16, fits: u32, gaps: &mut Vec<Gap>) -> Result<bool, LoadError> {
    let whole = u32::from(size) <= fits;
    let set = datagram::set_fragments(line.fd(), !whole);
    set.map_err(|e| line.failed("setsockopt", e))?;
    // From now on, sends also fail if a queue of this host is full.
    let reported = datagram::set_errors(line.fd());
    reported.map_err(|e| line.failed("setsockopt", e))?;
    gaps.extend(fragments(size, fits));
    Ok(whole)
}

/// Makes the kernel segment messages into datagrams; returns false if it cannot.
fn cut(line: &Line, size: u16, gaps: &mut Vec<Gap>) -> bool {
    match datagram::set_segment(line.fd(), size) {
        Ok(()) => true,
        Err(e) => {
            let why = format!("UDP_SEGMENT: {e}; each datagram is sent by a call of its own");
            gaps.push(refused("segmentation", &why));
            false
        }
    }
}

/// Reports settings of `knobs` that this host grants only partly, and datagrams without a pace.
fn check(side: Side, facts: &HostFacts, plan: &SetPlan) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let knobs = &plan.knobs;
    let requested = knobs.recv_buffer.map_or(RECV_BUFFER, |b| b.0);
    if let Some(most) = facts.buffers.rmem_max
        && requested > most
    {
        let why = format!(
            "{requested} bytes were requested, the kernel grants at most {most}: a receiver that waits for \
             its CPU loses datagrams sooner"
        );
        gaps.push(Gap {
            hint: format!("sudo sysctl -w net.core.rmem_max={requested}"),
            ..refused("recv_buffer", &why)
        });
    }
    let direction = plan.pattern.direction();
    let sends = direction.is_some_and(|direction| direction.sender() == side);
    if sends && knobs.pacing.is_none() {
        let why = "datagrams are sent as fast as this program can: losses are not retransmitted, and \
                   other traffic on the path gets only the rest";
        gaps.push(Gap { hint: "--pacing RATE".to_owned(), ..refused("pacing", why) });
    }
    gaps
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;
    use std::sync::Arc;
    use std::time::Duration;

    use linerate_plan::{Handover, Receive};

    use super::super::possible;
    use super::*;
    use crate::transport::Datagrams;
    use crate::transport::tests::{open_loop, pings, plan};
    use crate::{Advice, Op};

    #[test]
    fn plans_are_bounded_on_both_sides_of_each_limit() {
        let (least, most) = (HEADER_LEN as u64, DATAGRAM_MAX as u64);
        for (plan, good) in [
            (plan(|_| ()), true),
            (plan(|p| p.knobs.streams = 0), false),
            (plan(|p| p.knobs.streams = STREAMS_MAX), true),
            (plan(|p| p.knobs.streams = STREAMS_MAX + 1), false),
            (plan(|p| p.knobs.write_size = Bytes(least)), true),
            (plan(|p| p.knobs.write_size = Bytes(least - 1)), false),
            (plan(|p| p.knobs.write_size = Bytes(most)), true),
            (plan(|p| p.knobs.write_size = Bytes(most + 1)), false),
            (plan(|p| p.pattern = pings(least - 1)), false),
            (plan(|p| p.pattern = pings(least)), true),
            (plan(|p| p.pattern = pings(most)), true),
            (plan(|p| p.pattern = pings(most + 1)), false),
            (plan(|p| p.knobs.congestion = Some("bbr".into())), false),
            (plan(|p| p.knobs.mss = Some(536)), false),
            (plan(|p| p.knobs.window_clamp = Some(Bytes(9))), false),
            (plan(|p| p.knobs.receive = Receive::Discard), false),
            (plan(|p| p.knobs.copy = Handover::Sendfile), false),
            (plan(open_loop(0)), false),
            (plan(open_loop(1)), true),
            (plan(|p| p.knobs.nodelay = true), true),
            (plan(|p| p.knobs.two_writes = true), false),
        ] {
            assert_eq!(possible(&Udp, &plan).is_ok(), good, "{plan:?}");
        }
    }

    fn line(fd: OwnedFd) -> Line {
        let datagrams = Datagrams { fd, own: 1, other: 2 };
        Line::new(datagrams, 0, 0)
    }

    /// Returns the burst that a sender with this pace records, and the number of datagrams that its first call sends.
    fn burst(pacing: Rate) -> (u64, u64) {
        let ends = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let [near, far] = ends;
        near.connect(far.local_addr().unwrap()).unwrap();
        let plan = plan(|p| {
            (p.knobs.write_size, p.knobs.pacing) = (Bytes(1472), Some(pacing));
        });
        let mut end = SetEnd::default();
        let made = worker(Side::Near, &plan, line(near.into()), &mut end);
        let (mut sender, gaps) = made.unwrap();
        assert_eq!(gaps, []);
        sender.begin(&Arc::new(Advice::new(1, 1))).unwrap();
        sender.submit(&[Op::Send(0)]).unwrap();
        let mut done = Vec::new();
        sender.reap(1, Duration::ZERO, &mut done).unwrap();
        (end.burst, u64::from(done[0].bytes) / 1472)
    }

    #[test]
    fn what_is_said_of_a_burst_is_what_is_sent() {
        for (megabits, datagrams) in [(1, 1), (1000, 21), (4198, 89), (5000, 89), (40_000, 89)] {
            let reported = burst(Rate(megabits * 1_000_000));
            assert_eq!(reported, (datagrams, datagrams), "{megabits} Mb/s");
        }
    }

    #[test]
    fn a_kernel_that_does_not_cut_is_told_of() {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut gaps = Vec::new();
        assert!(cut(&line(near.into()), 1000, &mut gaps));
        assert_eq!(gaps, []);
        // A socket without the option UDP_SEGMENT, like every socket before Linux 4.18.
        let (near, _far) = UnixDatagram::pair().unwrap();
        assert!(!cut(&line(near.into()), 1000, &mut gaps));
        assert_eq!(gaps[0].what, "set.segmentation");
        assert!(gaps[0].why.contains("a call of its own"), "{}", gaps[0].why);
    }

    #[test]
    fn what_each_thread_makes_is_counted() {
        let of = |side, plan: &SetPlan| Udp.room(side, plan).unwrap().0;
        let forward = plan(|_| ());
        let receiver = of(Side::Far, &forward);
        assert!((2 << 20..3 << 20).contains(&receiver), "{receiver}");
        assert!(of(Side::Near, &forward) < 1 << 20);
        let few = of(Side::Far, &plan(open_loop(1_000_000)));
        let many = of(Side::Far, &plan(open_loop(1000)));
        assert_eq!(few, DATAGRAM_MAX as u64 + 16 * 1024);
        assert_eq!(many, DATAGRAM_MAX as u64 + 128 * 1024);
        assert!(of(Side::Near, &plan(open_loop(1000))) > many);
        let closed = plan(|p| p.pattern = pings(64));
        assert_eq!(of(Side::Far, &closed), few);
    }

    #[test]
    fn what_is_not_held_back_or_not_given_is_told_before() {
        let mut facts = HostFacts::default();
        let result_of = |side, facts: &HostFacts, plan: &SetPlan| {
            let gaps = check(side, facts, plan);
            gaps.into_iter().map(|g| g.what).collect::<Vec<_>>()
        };
        let free = plan(|_| ());
        assert_eq!(result_of(Side::Near, &facts, &free), ["set.pacing"]);
        assert!(result_of(Side::Far, &facts, &free).is_empty());
        let paced = plan(|p| p.knobs.pacing = Some(Rate(1)));
        facts.buffers.rmem_max = Some(RECV_BUFFER);
        assert!(result_of(Side::Near, &facts, &paced).is_empty());
        facts.buffers.rmem_max = Some(RECV_BUFFER - 1);
        assert_eq!(result_of(Side::Near, &facts, &paced), ["set.recv_buffer"]);
    }
}
