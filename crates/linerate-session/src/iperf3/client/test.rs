//! One test with an iperf3 server, from its parameters to the results.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_plan::path::{Direction, Side};
use linerate_plan::{Handover, SetPlan};
use linerate_record::iperf3::{
    Cookie, DATAGRAM_MIN, Params, Protocol, Results, State, WRITE_DEFAULT, WRITE_MAX, cookie,
};
use linerate_units::{Bytes, Nanos};

use super::lines::{Dialler, Held};
use super::talk::{ANSWER, RESULTS, Talk, WORD};
use super::{ClientError, datagrams};
use crate::iperf3::control::{Broken, Control};
use crate::net::{connected_unless, socket};
use linerate_load::framing::{Bare, Framing};
use linerate_load::transport::{Connected, tcp, udp};

/// Time within which the control connection must be established.
pub(super) const DIAL: Duration = Duration::from_secs(5);
/// Time to wait for the server's message after it has closed its data connections.
const LAST_WORD: Duration = Duration::from_millis(500);

/// Settings of the requested test.
pub(crate) struct Wanted<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) direction: Direction,
    pub(crate) plan: &'a SetPlan,
    /// Whole seconds at the start of the test that the server omits.
    pub(crate) omit: u64,
    /// The length of the test after the omitted part.
    pub(crate) time: Nanos,
}

/// A control connection to a server.
pub(crate) struct Opened {
    pub(crate) stream: TcpStream,
    pub(crate) server: SocketAddr,
    pub(crate) own: SocketAddr,
}

/// A test whose streams exist. Only the last one has not sent its cookie or hello, so the test has not begun.
pub(crate) struct Test {
    talk: Talk<'static>,
    cookie: Cookie,
    held: Option<Held>,
    pub(crate) bare: Arc<Bare>,
    pub(crate) direction: Direction,
    /// Payload of a datagram in bytes; `None` for TCP.
    pub(crate) datagram: Option<u16>,
    /// Seconds at the start of the test that the server does not count.
    pub(crate) omit: u64,
    /// Addresses of both ends of each stream, this end first.
    pub(crate) ends: Vec<[SocketAddr; 2]>,
}

/// Opens a control connection to the first of these addresses that accepts one.
pub(crate) fn dialled(
    servers: &[SocketAddr],
    stopped: &dyn Fn() -> bool,
) -> Result<Opened, ClientError> {
    let mut failed = None;
    for server in servers.iter().copied() {
        let made = socket(server).and_then(|socket| {
            connected_unless(&socket, server, Instant::now() + DIAL, stopped)?;
            let stream = TcpStream::from(socket);
            let own = stream.local_addr()?;
            Ok(Opened { stream, server, own })
        });
        match made {
            Ok(opened) => return Ok(opened),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                return Err(ClientError::Interrupted);
            }
            Err(e) => {
                failed.get_or_insert(ClientError::unreached(server, e));
            }
        }
    }
    let none = || system("resolving", io::ErrorKind::NotFound.into());
    Err(failed.unwrap_or_else(none))
}

impl Test {
    /// Agrees with the server on a test and makes its streams. Returns the test and the workers that move the payload.
    pub(crate) fn open(
        opened: Opened,
        wanted: &Wanted<'_>,
        stop: &Arc<AtomicBool>,
    ) -> Result<(Self, Connected), ClientError> {
        const STAGE: &str = "while the data connections were made";
        let (server, own) = (opened.server, opened.own);
        let stop = Arc::clone(stop);
        let stopped = Box::new(move || stop.load(Ordering::Relaxed));
        let control = Control::new(opened.stream, stopped);
        let control = control.map_err(|e| system("configuring the connection", e))?;
        let mut random = [0; 36];
        getrandom::fill(&mut random).map_err(|e| system("getrandom", io::Error::other(e)))?;
        let talk = Talk { control, server, patience: WORD };
        let cookie = cookie(random);
        let datagram = (wanted.protocol == Protocol::Udp).then(|| {
            let fits = talk.control.fits().unwrap_or_default();
            udp::options::size(wanted.plan.knobs.write_size.0, fits, DATAGRAM_MIN)
        });
        talk.agree(&cookie, &wanted.params(datagram))?;
        let bare = Arc::new(Bare::new(wanted.width(), None));
        let mut dialler = Dialler::new(&talk, own, &cookie, wanted.plan.knobs.streams);
        let made = wanted.connect(datagram, &bare, &mut dialler);
        let made = made.map_err(|error| {
            let failed = dialler.failed.take();
            said(&talk, STAGE).unwrap_or_else(|| failed.unwrap_or(error))
        })?;
        let (held, ends) = (dialler.held.take(), std::mem::take(&mut dialler.ends));
        let test = Self {
            held,
            bare,
            ends,
            datagram,
            direction: wanted.direction,
            omit: wanted.omit,
            talk,
            cookie,
        };
        Ok((test, made))
    }

    /// Announces the last stream, now that this end's threads are ready, and waits until the server begins the test.
    pub(crate) fn begin(&mut self) -> Result<(), ClientError> {
        const STAGE: &str = "before the test began";
        if let Some(held) = self.held.take() {
            let announced = held.announce(&self.talk, &self.cookie);
            announced.map_err(|error| said(&self.talk, STAGE).unwrap_or(error))?;
        }
        for state in [State::TestStart, State::TestRunning] {
            self.talk.expect(state, STAGE)?;
        }
        Ok(())
    }

    /// Returns the test in a state that ignores a stop by the user, so that it ends in order.
    pub(crate) fn heedless(self) -> Self {
        Self { talk: self.talk.heedless(), ..self }
    }

    /// Returns why the test cannot continue; `None` if the server sent no
    /// message, and no stream failed. `failed` is the error of a stream.
    pub(crate) fn broken(&self, failed: Option<String>) -> Option<ClientError> {
        const STAGE: &str = "in the middle of the test";
        // The server's own reason is more precise than the error of a connection, so it is waited for.
        let patience = if failed.is_some() { LAST_WORD } else { Duration::ZERO };
        let lost = |broken| Some(ClientError::broken(self.talk.server, STAGE, broken));
        match (self.talk.control.glance(patience), failed) {
            (Ok(Some(byte)), _) => Some(self.talk.surprise(byte, STAGE)),
            (Ok(None), None) => None,
            (Ok(None), Some(why)) => lost(Broken::Io(io::Error::other(why))),
            (Err(broken), _) => lost(broken),
        }
    }

    /// Sends the server the end of the test.
    pub(crate) fn end(&mut self) -> Result<(), ClientError> {
        self.talk.patience = ANSWER;
        self.bare.say_end();
        let said = self.talk.control.say(State::TestEnd, self.talk.patience);
        said.map_err(|broken| ClientError::broken(self.talk.server, RESULTS, broken))
    }

    /// Waits up to `wait` for the server to request results; returns whether the server has requested them.
    pub(crate) fn requested(&self, wait: Duration) -> Result<bool, ClientError> {
        let heard = self.talk.control.glance(wait);
        match heard.map_err(|broken| ClientError::broken(self.talk.server, RESULTS, broken))? {
            None => Ok(false),
            Some(byte) if State::decode(byte) == Some(State::ExchangeResults) => Ok(true),
            Some(byte) => Err(self.talk.surprise(byte, RESULTS)),
        }
    }

    /// Returns the error for a server that has not requested results within `time`.
    pub(crate) fn silent(&self, time: Duration) -> ClientError {
        ClientError::broken(self.talk.server, RESULTS, Broken::Silent(time))
    }

    /// Sends this end's results to the server and receives the server's, with `patience` for each answer.
    pub(crate) fn exchange(
        &mut self,
        ours: &Results,
        patience: Duration,
    ) -> Result<Results, ClientError> {
        self.talk.patience = patience;
        self.talk.exchange(ours)
    }
}

/// Returns the server's reason for a failure; `None` if the server sends none.
fn said(talk: &Talk<'_>, stage: &'static str) -> Option<ClientError> {
    match talk.control.glance(LAST_WORD) {
        Ok(Some(byte)) => Some(talk.surprise(byte, stage)),
        Ok(None) | Err(Broken::Io(_)) => None,
        Err(broken) => Some(ClientError::broken(talk.server, stage, broken)),
    }
}

impl Wanted<'_> {
    fn params(&self, datagram: Option<u16>) -> Params {
        let knobs = &self.plan.knobs;
        let forward = self.direction == Direction::Forward;
        // Settings of the far end only; this end applies its own settings itself.
        let (size, buffer, pacing) = if forward {
            (knobs.read_size, knobs.recv_buffer, None)
        } else {
            (knobs.write_size, knobs.send_buffer, knobs.pacing)
        };
        let base = Params {
            protocol: self.protocol,
            time: self.seconds(),
            omit: self.omit,
            parallel: knobs.streams,
            reverse: !forward,
            window: buffer.map_or(0, |b| b.0),
            ..Params::default()
        };
        if let Some(size) = datagram {
            return Params {
                len: size.into(),
                width: self.width(),
                // The server may have its own limit of the rate, so it gets the pace of either direction.
                bandwidth: knobs.pacing.map_or(0, |rate| rate.0),
                ..base
            };
        }
        let size = if size.0 == 0 { WRITE_DEFAULT } else { size.0 };
        Params {
            nodelay: knobs.nodelay,
            len: size.min(WRITE_MAX),
            mss: knobs.mss.map_or(0, u64::from),
            // Some servers cannot pace in the kernel (`fqrate`); their program then keeps to `bandwidth`.
            fqrate: pacing.map_or(0, |rate| rate.0),
            bandwidth: pacing.map_or(0, |rate| rate.0),
            congestion: knobs.congestion.clone(),
            zerocopy: !forward && knobs.copy == Handover::Sendfile,
            ..base
        }
    }

    fn width(&self) -> linerate_record::iperf3::Width {
        datagrams::width(self.seconds() + self.omit)
    }

    /// Returns the length of the test in whole seconds, as requested from the server.
    fn seconds(&self) -> u64 {
        self.time.0.div_ceil(1_000_000_000).max(1)
    }

    /// Makes the streams of the test, and the workers that move their payload.
    fn connect(
        &self,
        datagram: Option<u16>,
        bare: &Arc<Bare>,
        dialler: &mut Dialler<'_>,
    ) -> Result<Connected, ClientError> {
        let framing = Framing::Bare(Arc::clone(bare));
        let Some(size) = datagram else {
            return Ok(tcp::framed(Side::Near, self.plan, dialler, &framing)?);
        };
        let mut plan = self.plan.clone();
        plan.knobs.write_size = Bytes(size.into());
        Ok(udp::framed(Side::Near, &plan, dialler, &framing)?)
    }
}

pub(super) fn system(call: &'static str, source: io::Error) -> ClientError {
    ClientError::System { call, source }
}
