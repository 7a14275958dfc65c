//! One test of a client, from its parameters to the results.

use std::net::{IpAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use linerate_core::iperf3::{Params, Refusal, Results, State, StreamResult, stream_id};
use linerate_core::units::{Bytes, Nanos, Rate};

use super::terms::Terms;
use super::{Server, Slot};
use crate::host::Toward;
use crate::iperf3::control::{Broken, Control};
use crate::iperf3::cpu::Used;
use crate::iperf3::streams::Streams;
use crate::load::application::Role;
use crate::peer::Stop;

/// From one look at rates, stalls and deadlines to the next.
const TICK: Duration = Duration::from_millis(50);
/// The same while data connections are on their way: who gives up makes room for the next at once.
const SEATS: Duration = Duration::from_millis(5);
/// Times that of one word that all data connections may take to come.
const ALL_STREAMS: u32 = 6;
/// A receiver waits for no more of a given number of bytes once none came for this long.
const SETTLED: Duration = Duration::from_secs(1);
/// And for so long in all.
const SETTLED_AT_MOST: Duration = Duration::from_secs(5);

/// A test, on a thread of its own.
pub(super) struct Test<'a> {
    pub(super) stream: TcpStream,
    pub(super) from: IpAddr,
    pub(super) seats: Receiver<TcpStream>,
    pub(super) server: &'a Server,
    pub(super) stop: &'a Stop,
}

/// Why a test ended before its results.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("{0}")]
    Broken(#[from] Broken),
    #[error("refused, {}", .0.words())]
    Refused(Refusal),
    #[error("ended, {0}")]
    Cut(&'static str),
    #[error("ended by the client")]
    Left,
}

/// Gives the place back, even if its thread panics.
struct Seat<'a>(&'a Slot);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// What was counted from the omitted part on.
struct Counted {
    since: Instant,
    base: Vec<u64>,
}

impl Test<'_> {
    /// Serves it, and says how it went.
    pub(super) fn serve(self) {
        let (from, server, stop) = (self.from, self.server, self.stop);
        let stopped = || stop.requested();
        let began = Instant::now();
        let words = match self.run(&stopped, Seat(&server.slot)) {
            Ok(words) => words,
            Err(ended) => {
                let time = Nanos::from(began.elapsed());
                format!("{ended}, after {time}")
            }
        };
        server.lines.say(&format!("{from}: {words}"));
    }

    fn run(self, stopped: &dyn Fn() -> bool, seat: Seat<'_>) -> Result<String, Ended> {
        let word = self.server.options.limits.word;
        let own = self.stream.local_addr().ok().map(|address| address.ip());
        let control = Control::new(self.stream, stopped).map_err(Broken::Io)?;
        let test = Served {
            control,
            word,
            server: self.server,
        };
        let done = test.hold(self.from, own, self.seats);
        match done {
            Ok((ours, words)) => {
                // Who hears that all was told may begin the next test at once.
                drop(seat);
                test.control.tell(&ours.encode(), word)?;
                test.control.say(State::DisplayResults, word)?;
                Ok(words)
            }
            Err(ended) => {
                test.part(&ended);
                Err(ended)
            }
        }
    }
}

/// A test with the conversation about it.
struct Served<'a> {
    control: Control<'a>,
    word: Duration,
    server: &'a Server,
}

impl Served<'_> {
    /// Holds the test, and hears what the client counted. Returns what is to be told.
    fn hold(
        &self,
        from: IpAddr,
        own: Option<IpAddr>,
        seats: Receiver<TcpStream>,
    ) -> Result<(Results, String), Ended> {
        self.control.say(State::ParamExchange, self.word)?;
        let json = self.control.hear(self.word)?;
        let params = Params::decode(&json).map_err(|_| Ended::Refused(Refusal::PARAMETERS))?;
        let terms = Terms::of(params).map_err(Ended::Refused)?;
        self.server.lines.say(&format!("{from}: {}", terms.words()));
        self.control.say(State::CreateStreams, self.word)?;
        let fds = self.streams(&terms, &seats)?;
        drop(seats);
        let machine = &*self.server.options.machine;
        let facts = self.server.facts.toward(machine, Toward::of(from, own));
        let manner = terms.manner(&facts, from, own);
        let congestion = Terms::congestion_of(&fds);
        self.control.say(State::TestStart, self.word)?;
        self.control.say(State::TestRunning, self.word)?;
        let used = Used::now(machine);
        let streams = Streams::start(fds, &manner);
        let mut streams = streams.map_err(|_| Ended::Refused(Refusal::STREAM))?;
        let counted = self.watch(&terms, &mut streams)?;
        if manner.role == Role::Sender {
            // What it hands over while it ends was sent as well.
            streams.halt();
        }
        let until = settle(&terms, &streams, &counted);
        let cpu = used.and_then(|before| Used::now(machine)?.since(&before));
        let mut ours = results(&streams, &counted, until, manner.role);
        (ours.cpu, ours.congestion) = (cpu, congestion);
        // A client that receives goes on until its connections are closed.
        drop(streams);
        self.control.say(State::ExchangeResults, self.word)?;
        let theirs = self.control.hear(self.word)?;
        let theirs = Results::decode(&theirs).map_err(Broken::Malformed)?;
        let words = said(&ours, &theirs, manner.role);
        Ok((ours, words))
    }

    /// The data connections, as the client asked for them.
    fn streams(&self, terms: &Terms, seats: &Receiver<TcpStream>) -> Result<Vec<OwnedFd>, Ended> {
        // A client dials one after the other, each in its time.
        let last = Instant::now() + self.word * ALL_STREAMS;
        let mut until = Instant::now() + self.word;
        let mut fds = Vec::new();
        while fds.len() < terms.params.parallel as usize {
            // Nothing is due on the control connection: what comes is the client's end.
            match self.control.glance(Duration::ZERO)? {
                None => {}
                Some(_) => return Err(Ended::Left),
            }
            match seats.recv_timeout(SEATS) {
                Ok(stream) => {
                    fds.push(terms.dress(stream.into()).map_err(Ended::Refused)?);
                    until = last.min(Instant::now() + self.word);
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
                Err(_) => return Err(Ended::Cut("its data connections did not come")),
            }
        }
        Ok(fds)
    }

    /// Watches over the payload until the client ends the test.
    fn watch(&self, terms: &Terms, streams: &mut Streams) -> Result<Counted, Ended> {
        let begin = Instant::now();
        let limits = &self.server.options.limits;
        let most = terms.longest().saturating_add(limits.grace);
        let omit = Duration::from_secs(terms.params.omit);
        // Where nothing is omitted, the first bytes count too.
        let mut counted = omit.is_zero().then(|| Counted {
            since: begin,
            base: vec![0; terms.params.parallel as usize],
        });
        let (mut total, mut moved) = (0, begin);
        loop {
            if counted.is_none() && begin.elapsed() >= omit {
                counted = Some(Counted {
                    since: Instant::now(),
                    base: streams.each(),
                });
            }
            match self.control.glance(TICK)?.map(State::decode) {
                None => {}
                Some(Some(State::TestEnd)) => break,
                Some(Some(State::ClientTerminate)) => return Err(Ended::Left),
                Some(_) => return Err(Ended::Cut("it said what makes no sense")),
            }
            streams.advise();
            let now = streams.total();
            if now != total {
                (total, moved) = (now, Instant::now());
            }
            if moved.elapsed() >= limits.stall {
                return Err(Ended::Cut("no payload was moved for too long"));
            }
            if begin.elapsed() >= most {
                return Err(Ended::Cut("it lasted longer than it should"));
            }
        }
        Ok(counted.unwrap_or_else(|| Counted {
            since: Instant::now(),
            base: streams.each(),
        }))
    }

    /// Tells the client why the test ends.
    fn part(&self, ended: &Ended) {
        // A client that cannot be told is gone.
        let _ = match ended {
            Ended::Refused(refusal) => {
                let told = self.control.say(State::ServerError, self.word);
                told.and_then(|()| self.control.write(&refusal.encode(), self.word))
            }
            Ended::Broken(Broken::Malformed(_)) => {
                let told = self.control.say(State::ServerError, self.word);
                told.and_then(|()| self.control.write(&Refusal::PARAMETERS.encode(), self.word))
            }
            Ended::Broken(_) | Ended::Cut(_) => self.control.say(State::ServerTerminate, self.word),
            Ended::Left => Ok(()),
        };
    }
}

/// Waits for the rest of a given number of bytes, which may still be on its way; until when the
/// payload came.
fn settle(terms: &Terms, streams: &Streams, counted: &Counted) -> Instant {
    let began = Instant::now();
    let mut until = began;
    let Some(wanted) = terms.wanted() else {
        return until;
    };
    let base: u64 = counted.base.iter().sum();
    let mut total = streams.total();
    // A client may let its last bytes trickle.
    let in_time = |until: Instant| until.elapsed() < SETTLED && began.elapsed() < SETTLED_AT_MOST;
    while total.saturating_sub(base) < wanted && in_time(until) {
        std::thread::sleep(Duration::from_millis(1));
        if streams.total() != total {
            (total, until) = (streams.total(), Instant::now());
        }
    }
    until
}

/// What this end counted, for the client.
fn results(streams: &Streams, counted: &Counted, until: Instant, role: Role) -> Results {
    let seconds = until.duration_since(counted.since).as_secs_f64();
    let again = streams.retransmits().into_iter();
    let each = streams.each().into_iter().zip(&counted.base).zip(again);
    let stream = |(at, ((now, base), again)): (usize, ((u64, &u64), Option<u64>))| StreamResult {
        id: stream_id(at),
        bytes: now.saturating_sub(*base),
        retransmits: again.filter(|_| role == Role::Sender),
        seconds: Some(seconds),
        ..StreamResult::default()
    };
    Results {
        streams: each.enumerate().map(stream).collect(),
        ..Results::default()
    }
}

/// `ended, 9.41 Gb/s received in 10 s`.
fn said(ours: &Results, theirs: &Results, role: Role) -> String {
    // Goodput is the receiver's.
    let (receiver, how) = match role {
        Role::Sender => (theirs, "sent"),
        Role::Receiver => (ours, "received"),
    };
    let Some(seconds) = receiver.seconds() else {
        return "ended".to_owned();
    };
    let time = Nanos((seconds * 1e9) as u64);
    let rate = Rate::of(Bytes(receiver.bytes()), time);
    format!("ended, {rate} {how} in {time}")
}
