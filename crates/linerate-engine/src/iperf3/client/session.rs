//! The conversation of a test, from the cookie to the results.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_core::facts::Gap;
use linerate_core::iperf3::{
    Cookie, Params, Results, STREAMS_MAX, State, StreamResult, WRITE_DEFAULT, WRITE_MAX, cookie,
    stream_id,
};
use linerate_core::plan::{Direction, Handover, Knobs, Pattern, SetPlan, Side};
use linerate_core::record::SetEnd;
use linerate_core::units::{Bytes, Nanos};
use linerate_sys::thread;

use super::talk::Talk;
use super::watch::Watch;
use super::{ClientError, ClientOptions, Outcome};
use crate::end::placement;
use crate::host::{self, Toward};
use crate::iperf3::control::{Broken, Control};
use crate::iperf3::cpu::Used;
use crate::iperf3::streams::{Manner, Streams};
use crate::load::LoadError;
use crate::load::application::Role;
use crate::load::tcp::options;
use crate::peer::client::dial;

/// Time for a connection to be made.
const DIAL: Duration = Duration::from_secs(5);
/// Time for a last word of a server that has closed its data connections.
const LAST_WORD: Duration = Duration::from_millis(500);
/// From one look at rates and counters to the next.
const TICK: Duration = Duration::from_millis(50);

/// Runs a test. Fails where nothing was measured; what breaks later stands in the outcome. Ends
/// early, and in order, once `stopped` says so.
pub fn run(options: &ClientOptions, stopped: &dyn Fn() -> bool) -> Result<Outcome, ClientError> {
    let streams = options.knobs.streams;
    if streams > STREAMS_MAX {
        return Err(ClientError::Streams(streams));
    }
    let session = Session::open(options, stopped)?;
    // Reading this host takes its time, and the server's clock runs from the last connection on.
    let manner = session.manner();
    session.talk.agree(&session.cookie, &session.params())?;
    let (fds, mut set) = session.connect()?;
    set.cpus.clone_from(&manner.cpus);
    for state in [State::TestStart, State::TestRunning] {
        session.talk.expect(state, "before the test began")?;
    }
    session.measure(fds, set, &manner)
}

struct Session<'a> {
    options: &'a ClientOptions,
    plan: SetPlan,
    talk: Talk<'a>,
    cookie: Cookie,
    /// Address of this end.
    own: Option<SocketAddr>,
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
                talk: Talk { control, server },
                cookie: cookie(random),
                own,
            });
        }
        let none = || system("resolving", io::ErrorKind::NotFound.into());
        Err(failed.unwrap_or_else(none))
    }

    fn params(&self) -> Params {
        let knobs = &self.options.knobs;
        let forward = self.options.direction == Direction::Forward;
        // What concerns the far end alone.
        let (size, buffer, pacing) = if forward {
            (knobs.read_size, knobs.recv_buffer, None)
        } else {
            (knobs.write_size, knobs.send_buffer, knobs.pacing)
        };
        let size = if size.0 == 0 { WRITE_DEFAULT } else { size.0 };
        Params {
            time: self.options.time.0.div_ceil(1_000_000_000),
            parallel: knobs.streams,
            reverse: !forward,
            nodelay: knobs.nodelay,
            window: buffer.map_or(0, |b| b.0),
            len: size.min(WRITE_MAX),
            mss: knobs.mss.map_or(0, u64::from),
            fqrate: pacing.map_or(0, |rate| rate.0),
            congestion: knobs.congestion.clone(),
            ..Params::default()
        }
    }

    /// Makes the data connections. What the server says of one that fails is better than what the
    /// connection does.
    fn connect(&self) -> Result<(Vec<OwnedFd>, SetEnd), ClientError> {
        const STAGE: &str = "while the data connections were made";
        self.lines()
            .map_err(|failed| match self.talk.control.glance(LAST_WORD) {
                Ok(Some(byte)) => self.talk.surprise(byte, STAGE),
                Ok(None) | Err(Broken::Io(_)) => failed.into(),
                Err(broken) => ClientError::broken(self.talk.server, STAGE, broken),
            })
    }

    fn lines(&self) -> Result<(Vec<OwnedFd>, SetEnd), LoadError> {
        let mut fds = Vec::new();
        let mut set = SetEnd::default();
        for stream in 0..self.plan.knobs.streams {
            let call = |call| {
                move |source| LoadError::Call {
                    call,
                    stream,
                    source,
                }
            };
            let fd = dial::socket(self.talk.server).map_err(call("socket"))?;
            let mut gaps = options::set(&fd, Side::Near, &self.plan);
            let stopped = &|| self.talk.control.stopped();
            dial::connected_unless(&fd, self.talk.server, Instant::now() + DIAL, stopped)
                .map_err(call("connect"))?;
            gaps.extend(options::set_connected(&fd, &self.plan));
            // The send buffer of a young connection takes so few bytes at once.
            let taken = linerate_sys::socket::send(fd.as_fd(), &self.cookie, false);
            if taken.map_err(call("send"))? != self.cookie.len() {
                return Err(call("send")(io::ErrorKind::WriteZero.into()));
            }
            if stream == 0 {
                options::read_back(&fd, Side::Near, &self.plan, &mut set);
                set.gaps.append(&mut gaps);
                set.gaps.extend(copied(&self.plan.knobs));
            }
            fds.push(fd);
        }
        Ok((fds, set))
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
        Manner {
            role,
            size: size.0,
            cap: placement::op_cap(facts.l2_cache),
            discard: false,
            cpus: placement::cpus(&facts, &allowed, end, &self.plan),
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
        let mut watch = Watch::new(Arc::clone(machine), self.talk.server, ours, begin);
        let broken = self.wait(begin, &mut streams, &mut watch);
        let mut gaps = std::mem::take(&mut set.gaps);
        let seen = watch.finish(&mut gaps);
        let sends = manner.role == Role::Sender;
        if sends {
            // What it hands over while it ends was sent as well.
            streams.halt();
        }
        let time = Nanos(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let cpu = used.and_then(|before| Used::now(&**machine)?.since(&before));
        let ours = Results {
            cpu,
            congestion: Some(set.congestion.clone()).filter(|name| !name.is_empty()),
            streams: counted(&streams, time, sends),
        };
        let mut outcome = Outcome {
            server: self.talk.server,
            direction: self.options.direction,
            streams: self.plan.knobs.streams,
            time,
            moved: Bytes(ours.bytes()),
            far: None,
            retransmits: ours.retransmits(),
            cpu,
            set,
            seen,
            gaps,
            broken,
        };
        // A receiver goes on meanwhile, or the server could be stuck in its sends.
        self.conclude(&ours, &mut outcome);
        let lacking = outcome.lacking();
        outcome.gaps.extend(lacking);
        Ok(outcome)
    }

    /// Hears what the server counted, where it is still there to tell.
    fn conclude(self, ours: &Results, outcome: &mut Outcome) {
        if !matches!(outcome.broken, None | Some(ClientError::Interrupted)) {
            return;
        }
        match self.talk.heedless().conclude(ours) {
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
        watch: &mut Watch,
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
            watch.tick();
        }
    }
}

/// Tests with iperf3 have streams of their own, which copy: told where something else was asked for.
fn copied(knobs: &Knobs) -> Option<Gap> {
    (knobs.copy != Handover::Copy).then(|| Gap {
        what: "set.copy".to_owned(),
        why: format!(
            "payload is copied in tests with iperf3, not sent by {}",
            knobs.copy.name()
        ),
        hint: "leave out --copy, or measure with `linerate serve` on the far end".to_owned(),
    })
}

/// A connection to the server, in time, and before the user has had enough.
fn reached(server: SocketAddr, stopped: &dyn Fn() -> bool) -> io::Result<TcpStream> {
    let socket = dial::socket(server)?;
    dial::connected_unless(&socket, server, Instant::now() + DIAL, stopped)?;
    Ok(socket.into())
}

/// What this end counted, for the server.
fn counted(streams: &Streams, time: Nanos, sends: bool) -> Vec<StreamResult> {
    let again = streams.retransmits().into_iter();
    let each = streams.each().into_iter().zip(again).enumerate();
    let stream = |(at, (bytes, again)): (usize, (u64, Option<u64>))| StreamResult {
        id: stream_id(at),
        bytes,
        retransmits: again.filter(|_| sends),
        seconds: Some(time.secs()),
        ..StreamResult::default()
    };
    each.map(stream).collect()
}

/// This end of a connection.
fn own(fd: &OwnedFd) -> Option<SocketAddr> {
    SocketAddr::try_from(rustix::net::getsockname(fd).ok()?).ok()
}

fn system(call: &'static str, source: io::Error) -> ClientError {
    ClientError::System { call, source }
}
