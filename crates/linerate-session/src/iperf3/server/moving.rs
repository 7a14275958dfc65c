//! The streams of a test while they move payload. The workers of a run move the payload, and the client ends the test.

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

/// A test can be limited to a number of bytes. Time without an
/// arrival after which a receiver stops waiting for the rest of them.
const SETTLED: Duration = Duration::from_secs(1);
/// Longest time that a receiver waits for the rest of a limited number of bytes.
const SETTLED_AT_MOST: Duration = Duration::from_secs(5);
/// Time without an arrival after which a receiver of datagrams stops waiting, and the longest time that it waits. The
/// times are shorter than for TCP because lost datagrams never arrive, and the others arrive close together.
const QUIET: Duration = Duration::from_millis(100);
const QUIET_AT_MOST: Duration = Duration::from_secs(1);

/// This host as the server of a test, and the address of the client.
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
    /// Payload in bytes that the receivers had at the end of the omitted part; `None` until then.
    base: Option<u64>,
    omit: Duration,
    pub(super) congestion: Option<String>,
    // This field is last, so that the connections close after the streams have ended.
    _end: LocalEnd,
}

/// The streams of a test in one direction.
struct Part {
    running: Running,
    streams: Streams,
    /// Index of the first stream of this direction among all streams of the test.
    first: usize,
}

/// Passes the connections and sockets that the client has already opened to the end's workers.
struct Arrived(VecDeque<OwnedFd>);

impl Arrived {
    fn next(&mut self, stream: u32) -> Result<OwnedFd, LoadError> {
        let missing = || LoadError::Call {
            call: "accept",
            stream,
            source: std::io::ErrorKind::NotConnected.into(),
        };
        self.0.pop_front().ok_or_else(missing)
    }
}

impl Lines for Arrived {
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

    /// Returns the socket of a stream. Its options were already set before the client's hello arrived.
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

/// Converts an error to the refusal that is sent to the client.
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
        let (mut there, mut congestion, mut parts) = (Arrived(fds.into()), None, Vec::new());
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

    /// Starts all streams of the test.
    pub(super) fn go(&mut self) {
        self.began = Instant::now();
        self.parts.iter_mut().for_each(|part| part.running.go());
    }

    /// Returns how long payload has been flowing.
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

    /// Stores the payload received in the omitted part, once that part is over.
    pub(super) fn look(&mut self) {
        if self.base.is_none() && self.began.elapsed() >= self.omit {
            let base = self.moved(|role| role == Role::Receiver);
            self.base = Some(if self.omit.is_zero() { 0 } else { base });
        }
    }

    /// Returns why a stream has stopped moving payload; `None` if all streams continue.
    pub(super) fn failed(&self) -> Option<String> {
        self.parts.iter().find_map(|part| part.running.failed())
    }

    /// Ends the streams once the payload in flight has arrived; returns their results.
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
                // Payload that a sender writes while it ends counts as sent.
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

    /// Waits for payload that may still be in flight: for TCP only if the number of
    /// bytes is limited, for datagrams always. Returns when the last payload arrived.
    /// Without a wait, returns `heard`, the time at which the client ended the test.
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
