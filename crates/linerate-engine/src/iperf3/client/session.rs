//! The conversation of a test, from the cookie to the results.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_core::iperf3::{
    Cookie, DATAGRAM_MIN, Datagrams as Told, Params, Protocol, Results, STREAMS_MAX, State,
    StreamResult, WRITE_DEFAULT, WRITE_MAX, cookie, stream_id,
};
use linerate_core::path::{Direction, Side};
use linerate_core::plan::{Pattern, Receive, SetPlan};
use linerate_core::record::SetEnd;
use linerate_core::units::{Bytes, Nanos};
use linerate_sys::thread;

use super::datagrams::{self, Datagrams, Near};
use super::talk::{ANSWER, ANSWER_TO_STOP, Talk, WORD};
use super::watch::Watch;
use super::{ClientError, ClientOptions, Outcome};
use crate::end::placement;
use crate::host::{self, Toward};
use crate::iperf3::control::{Broken, Control};
use crate::iperf3::cpu::Used;
use crate::iperf3::streams::{Load, Manner, Moved, Streams};
use crate::load::application::Role;
use crate::load::transport::udp;
use crate::peer::client::dial;

/// Time for a connection to be made.
pub(super) const DIAL: Duration = Duration::from_secs(5);
/// Time for a last word of a server that has closed its data connections.
pub(super) const LAST_WORD: Duration = Duration::from_millis(500);
/// From one look at rates and counters to the next.
const TICK: Duration = Duration::from_millis(50);

/// Runs a test. Fails where nothing was measured; what breaks later stands in the outcome. Ends
/// early, and in order, once `stopped` says so.
pub fn run(options: &ClientOptions, stopped: &dyn Fn() -> bool) -> Result<Outcome, ClientError> {
    let streams = options.knobs.streams;
    if streams > STREAMS_MAX {
        return Err(ClientError::Streams(streams));
    }
    if options.protocol == Protocol::Udp {
        datagrams::bounds(&options.knobs)?;
    }
    let session = Session::open(options, stopped)?;
    // Reading this host takes its time, and the server's clock runs from the last connection on.
    let manner = session.manner();
    session
        .talk
        .agree(&session.cookie, &session.params(&manner))?;
    let (fds, mut set) = session.connect(&manner)?;
    set.cpus.clone_from(&manner.placed.cpus);
    for state in [State::TestStart, State::TestRunning] {
        session.talk.expect(state, "before the test began")?;
    }
    session.measure(fds, set, &manner)
}

pub(super) struct Session<'a> {
    pub(super) options: &'a ClientOptions,
    pub(super) plan: SetPlan,
    pub(super) talk: Talk<'a>,
    pub(super) cookie: Cookie,
    /// Address of this end.
    pub(super) own: Option<SocketAddr>,
}

impl<'a> Session<'a> {
    /// Reaches the first address that takes a connection.
    fn open(
        options: &'a ClientOptions,
        stopped: &'a dyn Fn() -> bool,
    ) -> Result<Self, ClientError> {
        let mut random = [0; 36];
        getrandom::fill(&mut random).map_err(|e| system("getrandom", io::Error::other(e)))?;
        let mut failed = None;
        for server in options.servers.iter().copied() {
            let stream = match reached(server, stopped) {
                Ok(stream) => stream,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                    return Err(ClientError::Interrupted);
                }
                Err(e) => {
                    failed.get_or_insert(ClientError::unreached(server, e));
                    continue;
                }
            };
            let own = stream.local_addr().ok();
            let control = Control::new(stream, stopped);
            let control = control.map_err(|e| system("configuring the connection", e))?;
            return Ok(Self {
                options,
                plan: SetPlan {
                    id: 0,
                    pattern: Pattern::Stream {
                        direction: options.direction,
                    },
                    knobs: options.knobs.clone(),
                },
                talk: Talk {
                    control,
                    server,
                    patience: WORD,
                },
                cookie: cookie(random),
                own,
            });
        }
        let none = || system("resolving", io::ErrorKind::NotFound.into());
        Err(failed.unwrap_or_else(none))
    }

    fn params(&self, manner: &Manner) -> Params {
        let knobs = &self.options.knobs;
        let forward = self.options.direction == Direction::Forward;
        // What concerns the far end alone.
        let (size, buffer, pacing) = if forward {
            (knobs.read_size, knobs.recv_buffer, None)
        } else {
            (knobs.write_size, knobs.send_buffer, knobs.pacing)
        };
        let base = Params {
            protocol: self.options.protocol,
            time: self.seconds(),
            parallel: knobs.streams,
            reverse: !forward,
            window: buffer.map_or(0, |b| b.0),
            ..Params::default()
        };
        if let Load::Datagrams { size, width, .. } = manner.load {
            return Params {
                len: size.into(),
                width,
                // A server with a limit of its own wants to know it of either direction.
                bandwidth: knobs.pacing.map_or(0, |rate| rate.0),
                ..base
            };
        }
        let size = if size.0 == 0 { WRITE_DEFAULT } else { size.0 };
        Params {
            nodelay: knobs.nodelay,
            len: size.min(WRITE_MAX),
            mss: knobs.mss.map_or(0, u64::from),
            // Not every server's kernel keeps to the one; its program keeps to the other.
            fqrate: pacing.map_or(0, |rate| rate.0),
            bandwidth: pacing.map_or(0, |rate| rate.0),
            congestion: knobs.congestion.clone(),
            ..base
        }
    }

    /// How long the server is to expect it to last.
    fn seconds(&self) -> u64 {
        self.options.time.0.div_ceil(1_000_000_000)
    }

    /// How this end moves payload, by the rules of a run.
    fn manner(&self) -> Manner {
        let toward = Toward::of(self.talk.server.ip(), self.own.map(|a| a.ip()));
        let facts = host::facts(&*self.options.machine, toward);
        let end = placement::End {
            side: Side::Near,
            shared: self
                .own
                .is_some_and(|own| own.ip() == self.talk.server.ip()),
        };
        let allowed = thread::allowed_cpus().unwrap_or_default();
        let (role, size) = match self.options.direction {
            Direction::Forward => (Role::Sender, self.plan.knobs.write_size),
            Direction::Reverse => (Role::Receiver, self.plan.knobs.read_size),
        };
        let load = match self.options.protocol {
            Protocol::Udp => self.datagrams(),
            _ => Load::Bytes {
                size: size.0,
                cap: placement::op_cap(
                    facts.l2_cache,
                    self.plan.knobs.streams as usize,
                    allowed.len(),
                ),
                discard: self.discards(),
            },
        };
        Manner {
            role,
            load,
            most: None,
            placed: placement::place(&facts, &allowed, end, &self.plan),
        }
    }

    /// Whether this end receives, and drops payload unread. What a server would make of that wish, it does not tell.
    fn discards(&self) -> bool {
        let receives = self.options.direction == Direction::Reverse;
        receives && self.options.knobs.receive == Receive::Discard
    }

    /// Datagrams as asked for, and as the route of the control connection takes them whole.
    fn datagrams(&self) -> Load {
        let knobs = &self.plan.knobs;
        let fits = self.talk.control.fits().unwrap_or_default();
        Load::Datagrams {
            size: udp::options::size(knobs.write_size.0, fits, DATAGRAM_MIN),
            width: datagrams::width(self.seconds()),
            pace: knobs.pacing,
            burst: None,
        }
    }

    /// Moves payload for the time of the test, and hears what the server counted.
    fn measure(
        self,
        fds: Vec<OwnedFd>,
        mut set: SetEnd,
        manner: &Manner,
    ) -> Result<Outcome, ClientError> {
        let machine = &self.options.machine;
        let ours: Vec<SocketAddr> = fds.iter().filter_map(own).collect();
        let used = Used::now(&**machine);
        let begin = Instant::now();
        let streams = Streams::start(fds, manner);
        let mut streams = streams.map_err(|e| system("starting the streams", e))?;
        // Only connections have counters in the kernel that tell of their path.
        let mut watch = (self.options.protocol == Protocol::Tcp)
            .then(|| Watch::new(Arc::clone(machine), self.talk.server, ours, begin));
        let broken = self.wait(begin, &mut streams, watch.as_mut());
        let mut gaps = std::mem::take(&mut set.gaps);
        let seen = watch.and_then(|watch| watch.finish(&mut gaps));
        let sends = manner.role == Role::Sender;
        if sends {
            // What it hands over while it ends was sent as well.
            streams.halt();
        }
        let moved = streams.each();
        let time = Nanos(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let cpu = used.and_then(|before| Used::now(&**machine)?.since(&before));
        let ours = Results {
            cpu,
            congestion: Some(set.congestion.clone()).filter(|name| !name.is_empty()),
            streams: counted(&moved, &streams.retransmits(), time, sends),
        };
        let mut outcome = Outcome {
            server: self.talk.server,
            protocol: self.options.protocol,
            direction: self.options.direction,
            discarded: self.discards(),
            streams: self.plan.knobs.streams,
            time,
            moved: Bytes(ours.bytes()),
            far: None,
            retransmits: ours.retransmits(),
            datagrams: None,
            cpu,
            set,
            seen,
            gaps,
            broken,
        };
        let near = Near {
            moved: &moved,
            drops: streams.drops(),
        };
        // A receiver goes on meanwhile, or the server could be stuck in its sends.
        self.conclude(&ours, &mut outcome);
        let (direction, far) = (outcome.direction, outcome.far.as_ref());
        outcome.datagrams = Datagrams::of(direction, manner.load, &near, far);
        let lacking = outcome.lacking();
        outcome.gaps.extend(lacking);
        Ok(outcome)
    }

    /// Hears what the server counted, where it is still there to tell.
    fn conclude(self, ours: &Results, outcome: &mut Outcome) {
        let patience = match outcome.broken {
            None => ANSWER,
            Some(ClientError::Interrupted) => ANSWER_TO_STOP,
            Some(_) => return,
        };
        match self.talk.heedless(patience).conclude(ours) {
            Ok(far) => outcome.far = Some(far),
            Err(error) => {
                outcome.broken.get_or_insert(error);
            }
        }
    }

    /// Until the time is up; else why it ended before.
    fn wait(
        &self,
        begin: Instant,
        streams: &mut Streams,
        mut watch: Option<&mut Watch>,
    ) -> Option<ClientError> {
        const STAGE: &str = "in the middle of the test";
        let lost = |broken| Some(ClientError::broken(self.talk.server, STAGE, broken));
        let time = self.options.time.duration();
        loop {
            let left = time.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return None;
            }
            let failed = streams.failed().map(str::to_owned);
            // What the server says of it is better than what a connection does.
            let patience = if failed.is_some() {
                LAST_WORD
            } else {
                left.min(TICK)
            };
            match (self.talk.control.glance(patience), failed) {
                (Ok(Some(byte)), _) => return Some(self.talk.surprise(byte, STAGE)),
                (Ok(None), None) => {}
                (Ok(None), Some(why)) => return lost(Broken::Io(io::Error::other(why))),
                (Err(broken), _) => return lost(broken),
            }
            streams.advise();
            if let Some(watch) = &mut watch {
                watch.tick();
            }
        }
    }
}

/// A connection to the server, in time, and before the user has had enough.
fn reached(server: SocketAddr, stopped: &dyn Fn() -> bool) -> io::Result<TcpStream> {
    let socket = dial::socket(server)?;
    dial::connected_unless(&socket, server, Instant::now() + DIAL, stopped)?;
    Ok(socket.into())
}

/// What this end counted, for the server.
fn counted(moved: &[Moved], again: &[Option<u64>], time: Nanos, sends: bool) -> Vec<StreamResult> {
    let each = moved.iter().zip(again).enumerate();
    let stream = |(at, (moved, again)): (usize, (&Moved, &Option<u64>))| StreamResult {
        id: stream_id(at),
        bytes: moved.bytes,
        retransmits: again.filter(|_| sends),
        seconds: Some(time.secs()),
        datagrams: Told {
            packets: Some(moved.datagrams.packets),
            omitted: 0,
            errors: Some(moved.datagrams.lost),
            jitter: Some(moved.datagrams.jitter as f64 / 1e9),
        },
    };
    each.map(stream).collect()
}

/// This end of a connection.
fn own(fd: &OwnedFd) -> Option<SocketAddr> {
    SocketAddr::try_from(rustix::net::getsockname(fd).ok()?).ok()
}

pub(super) fn system(call: &'static str, source: io::Error) -> ClientError {
    ClientError::System { call, source }
}
