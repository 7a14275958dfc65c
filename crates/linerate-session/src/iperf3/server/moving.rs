//! The streams of a test while they move payload. The workers of a run move it, and the client ends the test.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_facts::HostFacts;
use linerate_plan::path::Side;
use linerate_record::iperf3::{Cpu, Refusal, Results};
use linerate_units::Nanos;

use super::terms::Terms;
use crate::end::{LocalEnd, Running};
use crate::iperf3::counted::Streams;
use linerate_host::{Machine, Toward};
use linerate_load::LoadError;
use linerate_load::framing::{Bare, Framing};
use linerate_load::transport::{ConfigureEach, Datagrams, Lines, tcp, udp};
use linerate_plan::application::Role;

/// Time without an arrival after which a receiver stops waiting for the rest of a given number of bytes.
const SETTLED: Duration = Duration::from_secs(1);
/// Longest time that a receiver waits for the rest of a given number of bytes.
const SETTLED_AT_MOST: Duration = Duration::from_secs(5);
/// How long a receiver of datagrams waits without an arrival, and at most. The times are shorter than for TCP because
/// lost datagrams never arrive, and the others arrive close together.
const QUIET: Duration = Duration::from_millis(100);
const QUIET_AT_MOST: Duration = Duration::from_secs(1);

/// The host of a test, and the address of its client.
pub(super) struct Place<'a> {
    pub(super) machine: &'a Arc<dyn Machine>,
    pub(super) facts: &'a HostFacts,
    pub(super) from: IpAddr,
    pub(super) own: Option<IpAddr>,
    /// Time that the test may last beyond its agreed duration.
    pub(super) grace: Duration,
}

/// The streams of a test, in all directions.
pub(super) struct Moving {
    parts: Vec<Part>,
    bare: Arc<Bare>,
    /// Time at which payload began to flow.
    began: Instant,
    /// Payload of the receivers at the end of the omitted part.
    base: Option<u64>,
    omit: Duration,
    pub(super) congestion: Option<String>,
    // This field is last, because it holds the connections.
    _end: LocalEnd,
}

/// The streams of a test in one direction.
struct Part {
    running: Running,
    streams: Streams,
    /// Index of the first stream of this direction among all streams of the test.
    first: usize,
}

/// Source of streams whose connections exist already.
struct There(VecDeque<OwnedFd>);

impl There {
    fn next(&mut self, stream: u32) -> Result<OwnedFd, LoadError> {
        let missing = || LoadError::Call {
            call: "accept",
            stream,
            source: std::io::ErrorKind::NotConnected.into(),
        };
        self.0.pop_front().ok_or_else(missing)
    }
}

impl Lines for There {
    fn lines(
        &mut self,
        _: u32,
        streams: u32,
        configure: ConfigureEach<'_>,
    ) -> Result<Vec<OwnedFd>, LoadError> {
        (0..streams)
            .map(|stream| {
                let fd = self.next(stream)?;
                rustix::io::ioctl_fionbio(&fd, false).map_err(|e| failed("ioctl", stream, e))?;
                configure(stream, &fd)?;
                Ok(fd)
            })
            .collect()
    }

    /// The options of these sockets were set when the client's hello arrived.
    fn datagrams(
        &mut self,
        _: u32,
        stream: u32,
        _: &mut dyn FnMut(&OwnedFd) -> Result<(), LoadError>,
    ) -> Result<Datagrams, LoadError> {
        let fd = self.next(stream)?;
        rustix::io::ioctl_fionbio(&fd, false).map_err(|e| failed("ioctl", stream, e))?;
        Ok(Datagrams { fd, own: 0, other: 0 })
    }
}

fn failed(call: &'static str, stream: u32, error: rustix::io::Errno) -> LoadError {
    LoadError::Call { call, stream, source: error.into() }
}

/// Converts an error to the refusal of a client's streams.
fn refused(error: &LoadError) -> Refusal {
    match error {
        LoadError::Call { source, .. } => Refusal::STREAM.because(source),
        _ => Refusal::STREAM,
    }
}

impl Moving {
    /// Prepares all threads of the test.
    pub(super) fn ready(
        terms: &Terms,
        fds: Vec<OwnedFd>,
        place: &Place<'_>,
    ) -> Result<Self, Refusal> {
        let engine = if terms.is_of_datagrams() { "udp" } else { "tcp" };
        let toward = Toward::of(place.from, place.own);
        let mut end = LocalEnd::new(Side::Far, engine, Arc::clone(place.machine), toward);
        end.know(place.facts.clone());
        end.watch_streams_only();
        let same = |own: IpAddr| own.to_canonical() == place.from.to_canonical();
        end.share_machine(place.own.is_some_and(same));
        let bare = Arc::new(terms.bare());
        let framing = Framing::Bare(Arc::clone(&bare));
        let (mut there, mut congestion, mut parts) = (There(fds.into()), None, Vec::new());
        for (set, role) in (0..).zip(terms.roles().iter().copied()) {
            let plan = terms.plan(set, role);
            let made = if terms.is_of_datagrams() {
                udp::framed(Side::Far, &plan, &mut there, &framing)
            } else {
                tcp::framed(Side::Far, &plan, &mut there, &framing)
            };
            let made = made.and_then(|made| end.seat(&plan, made));
            let got = made.map_err(|error| refused(&error))?;
            terms.met(role, &got)?;
            congestion = Some(got.congestion).filter(|name| !name.is_empty());
            let running = end.arm(&terms.step(vec![set], place.grace));
            parts.push(Part {
                running: running.map_err(|error| refused(&error))?,
                streams: Streams {
                    set,
                    role,
                    datagram: terms.datagram(),
                    omit: Nanos::from_secs(terms.params.omit),
                },
                first: set as usize * terms.params.parallel as usize,
            });
        }
        Ok(Self {
            parts,
            bare,
            began: Instant::now(),
            base: None,
            omit: Duration::from_secs(terms.params.omit),
            congestion,
            _end: end,
        })
    }

    /// Starts the streams.
    pub(super) fn go(&mut self) {
        self.began = Instant::now();
        self.parts.iter_mut().for_each(|part| part.running.go());
    }

    /// Returns how long payload has flowed.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the payload that all streams have moved, in bytes.
    pub(super) fn total(&self) -> u64 {
        self.moved(|_| true)
    }

    fn moved(&self, of: impl Fn(Role) -> bool) -> u64 {
        let parts = self.parts.iter().filter(|part| of(part.streams.role));
        parts.flat_map(|part| part.running.moved()).sum()
    }

    /// Stores the payload of the omitted part, once that part is over.
    pub(super) fn look(&mut self) {
        if self.base.is_none() && self.began.elapsed() >= self.omit {
            let base = self.moved(|role| role == Role::Receiver);
            self.base = Some(if self.omit.is_zero() { 0 } else { base });
        }
    }

    /// Returns why a stream has stopped moving payload; `None` if all continue.
    pub(super) fn failed(&self) -> Option<String> {
        self.parts.iter().find_map(|part| part.running.failed())
    }

    /// Ends the streams once everything in flight has arrived; returns their counts.
    pub(super) fn finish(mut self, terms: &Terms, cpu: Option<Cpu>) -> Results {
        let heard = Instant::now();
        self.bare.say_end();
        let parts = std::mem::take(&mut self.parts);
        let (senders, receivers): (Vec<Part>, Vec<Part>) =
            parts.into_iter().partition(|part| part.streams.role == Role::Sender);
        let mut streams = Vec::new();
        let mut end = |parts: Vec<Part>, until: Option<Instant>| {
            for part in parts {
                part.running.stop();
                let end = part.running.finish();
                // Payload that a sender hands over while it ends counts as sent.
                let until = until.unwrap_or_else(Instant::now);
                let seconds = until.duration_since(self.began).saturating_sub(self.omit);
                let results = part.streams.results(&end, part.first, seconds.as_secs_f64());
                streams.push((part.first, results));
            }
        };
        end(senders, None);
        self.parts = receivers;
        let until = self.settle(terms, heard);
        self.bare.finish();
        end(std::mem::take(&mut self.parts), Some(until));
        streams.sort_by_key(|(first, _)| *first);
        Results {
            cpu,
            congestion: self.congestion.take(),
            streams: streams.into_iter().flat_map(|(_, each)| each).collect(),
        }
    }

    /// Waits for payload that may still be in flight: over connections up to a given number of bytes, with datagrams
    /// in any case. Returns when the last payload arrived. Without a wait, it returns `heard`, the time at which the
    /// client ended the test.
    fn settle(&self, terms: &Terms, heard: Instant) -> Instant {
        let (began, mut until) = (Instant::now(), heard);
        let (wanted, quiet, most) = match (terms.is_of_datagrams(), terms.bytes()) {
            _ if self.parts.is_empty() => return until,
            (true, _) => (u64::MAX, QUIET, QUIET_AT_MOST),
            (false, Some(wanted)) => (wanted, SETTLED, SETTLED_AT_MOST),
            (false, None) => return until,
        };
        let received = || self.moved(|role| role == Role::Receiver);
        let base = self.base.unwrap_or(0);
        let mut total = received();
        // A client may send its last bytes slowly.
        let in_time = |until: Instant| until.max(began).elapsed() < quiet && began.elapsed() < most;
        while total.saturating_sub(base) < wanted && in_time(until) {
            std::thread::sleep(Duration::from_millis(1));
            if received() != total {
                (total, until) = (received(), Instant::now());
            }
        }
        until
    }
}
