//! Several streams on one thread: streams whose socket is ready move payload in turn, and one call waits for all of
//! them.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_plan::{Handover, Knobs};
use linerate_record::wire::samples::read_every;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::inflow::Inflow;
use super::outflow::Outflow;
use super::outlet::Outlet;
use super::probe::SocketProbe;
use crate::framing::Framing;
use crate::pages::Pages;
use crate::transport::line::{BLOCK, Line};
use crate::{Advice, Done, LoadError, Op, Probe, Worker};

/// Most streams that move payload between two waits for all streams.
const AT_ONCE: usize = 64;
/// Largest operation in bytes if the plan leaves its size open. A stream moves at most so much before the other streams
/// get their turn.
pub(super) const OP_MOST: u32 = 256 * 1024;
/// Smallest limit of a stream's write in bytes, also used while the rate is unknown. At higher rates the limit is half
/// a second of the stream's payload. At the end of a step each stream must send the rest of its write, and all streams
/// share one path.
const OP_LEAST: u32 = 4 * 1024;
const OPS_PER_SEC: u64 = 2;

/// Pause if none of the ready streams moved any payload.
const REST: Duration = Duration::from_millis(1);

/// One of several streams that a thread serves.
pub(super) trait BundledStream: Send {
    /// Events of the stream's socket that the thread waits for.
    const WANTED: epoll::EventFlags;
    /// Resources that all streams of a thread share.
    type Shared: Send;

    /// Prepares the shared resources for operations of `most` bytes.
    fn share(shared: &mut Self::Shared, most: usize) -> std::io::Result<()>;
    fn line(&self) -> &Line;
    /// Begins a new step.
    fn begin(&mut self, advice: &Advice);
    /// Returns the payload moved in this step, in bytes.
    fn total(&self) -> u64;
    /// Returns whether the step may end without an end mark, because this payload has no marks.
    fn ends_unmarked(&self) -> bool;
    /// Moves payload without waiting. Returns how many bytes were moved, and whether the stream's end mark has passed.
    fn go_on(&mut self, shared: &mut Self::Shared, turn: &Turn) -> Result<(u32, bool), LoadError>;
}

/// Limits of what a stream may do in one turn.
pub(super) struct Turn {
    pub(super) most: u32,
    /// Rate of the stream so far, in bytes per second.
    pub(super) rate: u64,
    /// Whether the step is over, so that the stream must end.
    pub(super) ending: bool,
}

/// Worker that moves the payload of several streams.
pub(super) struct Bundle<F: BundledStream> {
    members: Vec<F>,
    shared: F::Shared,
    advice: Arc<Advice>,
    /// Epoll instance for all streams whose end mark has not passed in this step. Each step makes a new one.
    waiting: Option<OwnedFd>,
    left: usize,
    /// One of so many connections is read by the sampler.
    probe_every: u32,
    /// Whether the plan leaves the size of operations open, that is zero.
    open: bool,
    done: Vec<Done>,
}

/// Makes a worker that sends several streams.
pub(super) fn sender(lines: Vec<Line>, knobs: &Knobs, framing: &Framing) -> Bundle<Outflow> {
    let stream = |line| Outflow::new(line, framing.clone());
    let members = lines.into_iter().map(stream).collect();
    let open = knobs.write_size.0 == 0;
    Bundle::new(members, Outlet::new(Handover::Copy), knobs.streams, open)
}

/// Makes a worker that receives several streams.
pub(super) fn receiver(lines: Vec<Line>, knobs: &Knobs, framing: &Framing) -> Bundle<Inflow> {
    let stream = |line| Inflow::new(line, knobs, framing.clone());
    let members = lines.into_iter().map(stream);
    let open = knobs.read_size.0 == 0;
    Bundle::new(members.collect(), Pages::default(), knobs.streams, open)
}

/// Returns the largest write in bytes of a stream with `rate` bytes per second, if a thread has many streams.
fn write(rate: u64) -> u32 {
    (rate / OPS_PER_SEC).clamp(OP_LEAST.into(), OP_MOST.into()) as u32
}

impl<F: BundledStream> Bundle<F> {
    /// Makes a worker for some of the `streams` streams of a set.
    fn new(members: Vec<F>, shared: F::Shared, streams: u32, open: bool) -> Self {
        Self {
            members,
            shared,
            advice: Arc::new(Advice::new(1, 1)),
            waiting: None,
            left: 0,
            probe_every: read_every(streams),
            open,
            done: Vec::with_capacity(AT_ONCE),
        }
    }

    /// Lets each ready stream move payload, after waiting up to the block time for the first one.
    fn turn(&mut self, op: Op, ending: bool) -> Result<(), LoadError> {
        let rate = self.advice.rate_of_each(self.members.len());
        let most = match op {
            Op::Send(most) if self.open => most.min(write(rate)),
            Op::Receive(most) if self.open => most.min(OP_MOST),
            Op::Send(most) | Op::Receive(most) => most,
            Op::Access(_) => return Ok(()),
        };
        let turn = Turn { most, rate, ending };
        let Some(waiting) = &self.waiting else {
            return Ok(());
        };
        let mut room = [MaybeUninit::uninit(); AT_ONCE];
        let ready = wait(waiting, &mut room);
        let ready = ready.map_err(|e| self.members[0].line().failed("epoll_wait", e.into()))?;
        let mut went_on = ready.is_empty();
        for event in ready {
            let stream = &mut self.members[event.data.u64() as usize];
            let (bytes, ended) = stream.go_on(&mut self.shared, &turn)?;
            self.done.push(Done { op, bytes });
            went_on |= bytes > 0 || ended;
            if ended {
                let deleted = epoll::delete(waiting, stream.line().fd());
                deleted.map_err(|e| stream.line().failed("epoll_ctl", e.into()))?;
                self.left -= 1;
            }
        }
        if !went_on {
            // The kernel may report sockets as ready while it lacks memory for their data.
            std::thread::sleep(REST);
        }
        Ok(())
    }
}

/// Returns the sockets that are ready, after waiting at most for the block time.
fn wait<'a>(
    waiting: &OwnedFd,
    room: &'a mut [MaybeUninit<epoll::Event>],
) -> rustix::io::Result<&'a [epoll::Event]> {
    let most = Timespec { tv_sec: 0, tv_nsec: BLOCK.subsec_nanos().into() };
    match epoll::wait(waiting, room, Some(&most)) {
        Ok((ready, _)) => Ok(ready),
        Err(Errno::INTR) => Ok(&[]),
        Err(e) => Err(e),
    }
}

/// Makes an epoll instance that waits for all streams. Events identify a stream by its index.
fn waiting<F: BundledStream>(members: &[F]) -> rustix::io::Result<OwnedFd> {
    let fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, stream) in members.iter().enumerate() {
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&fd, stream.line().fd(), data, F::WANTED)?;
    }
    Ok(fd)
}

impl<F: BundledStream> Worker for Bundle<F> {
    fn begin(&mut self, advice: &Arc<Advice>) -> Result<(), LoadError> {
        self.advice = Arc::clone(advice);
        let first = self.members[0].line();
        let most = if self.open { advice.most().min(OP_MOST) } else { advice.most() };
        let shared = F::share(&mut self.shared, most as usize);
        shared.map_err(|e| first.failed("making payload", e))?;
        let all = waiting(&self.members).map_err(|e| first.failed("epoll", e.into()))?;
        self.waiting = Some(all);
        self.left = self.members.len();
        self.members.iter_mut().for_each(|stream| stream.begin(advice));
        Ok(())
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize, LoadError> {
        let (Some(op), true) = (ops.first(), self.done.is_empty()) else {
            return Ok(0);
        };
        self.turn(*op, false)?;
        Ok(1)
    }

    fn reap(&mut self, _: usize, _: Duration, done: &mut Vec<Done>) -> Result<(), LoadError> {
        done.append(&mut self.done);
        Ok(())
    }

    fn finish(&mut self) -> Result<bool, LoadError> {
        if self.members.iter().all(BundledStream::ends_unmarked) {
            return Ok(true);
        }
        // A receiver ends its streams when `submit` requests receives, so only a sender is served here.
        if self.left > 0 && F::WANTED.contains(epoll::EventFlags::OUT) {
            self.turn(Op::Send(self.advice.op()), true)?;
        }
        Ok(self.left == 0)
    }

    fn moved(&self) -> Vec<(u32, u64)> {
        let members = self.members.iter();
        members.map(|stream| (stream.line().stream, stream.total())).collect()
    }

    fn probes(&self) -> Vec<Box<dyn Probe>> {
        // Each thread offers the same share of its streams, because one thread may move more payload than another.
        let read = self.members.iter().step_by(self.probe_every as usize);
        read.map(BundledStream::line)
            .cloned()
            .map(|line| Box::new(SocketProbe::new(line)) as Box<dyn Probe>)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn of_very_many_streams_some_are_read() {
        let line = |stream| Line::new(UnixStream::pair().unwrap().0.into(), 0, stream).unwrap();
        for (streams, read) in [(4, 4), (1024, 4), (1025, 2), (3000, 2), (10_000, 1)] {
            let knobs = Knobs { streams, ..Knobs::default() };
            let bundle = sender((0..4).map(line).collect(), &knobs, &Framing::Marked);
            assert_eq!(bundle.probes().len(), read, "{streams}");
        }
    }

    #[test]
    fn writes_are_half_a_second_of_a_stream_within_bounds() {
        for (rate, bytes) in [
            (0, OP_LEAST),
            (2 * u64::from(OP_LEAST) + 2, OP_LEAST + 1),
            (2 * u64::from(OP_MOST) - 2, OP_MOST - 1),
            (u64::MAX, OP_MOST),
        ] {
            assert_eq!(write(rate), bytes, "{rate}");
        }
    }
}
