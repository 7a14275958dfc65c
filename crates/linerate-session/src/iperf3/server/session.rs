//! One test of an iperf3 client, from its parameters to the results.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use linerate_record::iperf3::{Params, Refusal, Results, State};
use linerate_units::Nanos;

use super::door::Door;
use super::moving::{Moving, Place};
use super::terms::{self, Terms};
use super::{Server, Slot, words};
use crate::guests::Present;
use crate::iperf3::control::{Broken, Control};
use crate::iperf3::cpu::Used;
use crate::net::Stop;
use crate::peer::descriptors;
use linerate_host::Toward;

/// Time between checks of stalls and deadlines while payload flows.
const TICK: Duration = Duration::from_millis(50);
/// Time between checks while data connections are expected. It is
/// short, so that the slot is free at once when a client gives up.
const SEATS: Duration = Duration::from_millis(5);
/// Time within which all data connections must arrive, as a multiple of the time for one message.
const STREAMS_TIME_FACTOR: u32 = 6;

/// Time in which the client can close the connection by itself after the server sent why its test ends.
const LEAVE_TIME: Duration = Duration::from_secs(1);

/// File descriptors that a test needs in addition to those of its streams.
const OTHER_DESCRIPTORS: u64 = 4;

/// A test of one client. It runs in its own thread.
pub(super) struct Test<'a> {
    pub(super) stream: TcpStream,
    pub(super) from: IpAddr,
    pub(super) seats: Receiver<TcpStream>,
    pub(super) server: &'a Server,
    pub(super) stop: &'a Stop,
}

/// Why a test ended before the results were exchanged.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("{0}")]
    Broken(#[from] Broken),
    #[error("refused, {}", refused(*.0))]
    Refused(Refusal),
    #[error("ended, {0}")]
    Cut(&'static str),
    #[error("ended, {0}")]
    Failed(String),
    #[error("ended by the client")]
    Left,
}

/// Describes a refusal for the log, with the system's error text.
fn refused(refusal: Refusal) -> String {
    let words = refusal.words();
    match refusal.errno {
        0 => words,
        errno => format!("{words}: {}", io::Error::from_raw_os_error(errno)),
    }
}

/// Guard that frees the test's slot when it is dropped, even if the test's thread panics.
struct Seat<'a>(&'a Slot);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Test<'_> {
    /// Serves the test until it ends, and logs how it ended.
    pub(super) fn serve(self) {
        let _present = Present::enter();
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

    fn run(self, stopped: &(dyn Fn() -> bool + Sync), seat: Seat<'_>) -> Result<String, Ended> {
        let word = self.server.options.limits.word;
        let own = self.stream.local_addr().ok();
        let control = Control::new(self.stream, Box::new(stopped)).map_err(Broken::Io)?;
        let test = Served { control, word, server: self.server };
        let mut moving = None;
        let done = test.hold(self.from, own, self.seats, &mut moving);
        // Once a client learns that its test has ended, it may begin the next one at once. So the slot is freed here,
        // unless the streams of this test are still moving payload.
        let seat = moving.is_some().then_some(seat);
        match done {
            Ok((ours, words)) => {
                test.control.tell(&ours.encode(), word)?;
                test.control.say(State::DisplayResults, word)?;
                Ok(words)
            }
            Err(ended) => {
                test.part(&ended);
                if moving.is_some() {
                    test.linger(&ended);
                }
                drop(moving);
                drop(seat);
                Err(ended)
            }
        }
    }
}

/// A test whose client is connected: the control connection and its timeout.
struct Served<'a> {
    control: Control<'a>,
    word: Duration,
    server: &'a Server,
}

impl Served<'_> {
    /// Runs the test and receives the client's results. Returns the results to send and a log line. If the test ends
    /// early, its streams are left in `moving`.
    fn hold(
        &self,
        from: IpAddr,
        own: Option<SocketAddr>,
        seats: Receiver<TcpStream>,
        moving: &mut Option<Moving>,
    ) -> Result<(Results, String), Ended> {
        self.control.say(State::ParamExchange, self.word)?;
        let json = self.control.hear(self.word)?;
        let params = Params::decode(&json).map_err(|_| Ended::Refused(Refusal::PARAMETERS))?;
        if let Some(option) = terms::lacking(&params) {
            let lines = &self.server.lines;
            lines.say(&format!("{from}: asks for {option}, which is not implemented here"));
        }
        let terms = Terms::of(params).map_err(Ended::Refused)?;
        if descriptors::left() < u64::from(terms.streams()) + OTHER_DESCRIPTORS {
            let none = io::Error::from(rustix::io::Errno::MFILE);
            return Err(Ended::Refused(Refusal::STREAM.because(&none)));
        }
        self.server.lines.say(&format!("{from}: {}", terms.words()));
        let fds = if terms.is_of_datagrams() {
            // There are no data connections to wait for.
            drop(seats);
            self.hellos(&terms, from, own)?
        } else {
            let fds = self.streams(&terms, &seats)?;
            drop(seats);
            fds
        };
        let options = &self.server.options;
        let machine = &options.machine;
        let own = own.map(|address| address.ip());
        let facts = self.server.facts.toward(&**machine, Toward::of(from, own));
        let place = Place { machine, facts: &facts, from, own, grace: options.limits.grace };
        let ready = Moving::ready(&terms, fds, &place);
        let streams = moving.insert(ready.map_err(Ended::Refused)?);
        self.control.say(State::TestStart, self.word)?;
        self.control.say(State::TestRunning, self.word)?;
        let used = Used::now(&**machine);
        streams.go();
        self.watch(&terms, streams)?;
        let cpu = used.and_then(|before| Used::now(&**machine)?.since(&before));
        // A receiving client continues until its connections are closed.
        let ours = moving.take().map(|streams| streams.finish(&terms, cpu));
        let ours = ours.unwrap_or_default();
        self.control.say(State::ExchangeResults, self.word)?;
        let theirs = self.control.hear(self.word)?;
        let theirs = Results::decode(&theirs).map_err(Broken::Malformed)?;
        let words = words::ended(&terms, &ours, &theirs);
        Ok((ours, words))
    }

    /// Receives the data connections that the client makes.
    fn streams(&self, terms: &Terms, seats: &Receiver<TcpStream>) -> Result<Vec<OwnedFd>, Ended> {
        let mut fds = Vec::new();
        self.gather(terms, "its data connections did not arrive", || {
            match seats.recv_timeout(SEATS) {
                Ok(stream) => {
                    let fd = OwnedFd::from(stream);
                    terms.mark(&fd).map_err(Ended::Refused)?;
                    fds.push(fd);
                    Ok(true)
                }
                Err(RecvTimeoutError::Timeout) => Ok(false),
                Err(RecvTimeoutError::Disconnected) => Err(Ended::Cut("nothing accepts them")),
            }
        })?;
        Ok(fds)
    }

    /// Returns the sockets of the datagram streams, once each stream has sent its hello.
    fn hellos(
        &self,
        terms: &Terms,
        from: IpAddr,
        own: Option<SocketAddr>,
    ) -> Result<Vec<OwnedFd>, Ended> {
        let own = own.ok_or(Ended::Refused(Refusal::LISTEN))?;
        let dress = |fd: &OwnedFd| terms.dress_datagrams(fd);
        let wanted = terms.streams() as usize;
        let door = Door::open(own, from, wanted, &dress);
        let mut door = door.map_err(Ended::Refused)?;
        self.gather(terms, "its datagrams did not arrive", || {
            door.look(SEATS).map_err(Ended::Refused)
        })?;
        Ok(door.lines())
    }

    /// Requests the streams from the client, and waits until `come` has returned true once for each stream.
    fn gather(
        &self,
        terms: &Terms,
        lacking: &'static str,
        mut come: impl FnMut() -> Result<bool, Ended>,
    ) -> Result<(), Ended> {
        self.control.say(State::CreateStreams, self.word)?;
        // A client makes one connection after another, and each may take as long as one message.
        let last = Instant::now() + self.word * STREAMS_TIME_FACTOR;
        let mut until = Instant::now() + self.word;
        let mut there = 0;
        while there < terms.streams() {
            // No message is expected on the control connection, so any byte means that the client ends the test.
            match self.control.glance(Duration::ZERO)? {
                None => {}
                Some(_) => return Err(Ended::Left),
            }
            if come()? {
                there += 1;
                until = last.min(Instant::now() + self.word);
            } else if Instant::now() >= until {
                return Err(Ended::Cut(lacking));
            }
        }
        Ok(())
    }

    /// Monitors the streams until the client ends the test.
    fn watch(&self, terms: &Terms, streams: &mut Moving) -> Result<(), Ended> {
        let limits = &self.server.options.limits;
        let most = terms.longest().saturating_add(limits.grace);
        let (mut total, mut moved) = (0, Instant::now());
        loop {
            streams.look();
            match self.control.glance(TICK)?.map(State::decode) {
                None => {}
                Some(Some(State::TestEnd)) => return Ok(()),
                Some(Some(State::ClientTerminate)) => return Err(Ended::Left),
                Some(_) => return Err(Ended::Cut("it sent an invalid message")),
            }
            // A client notices a broken TCP connection itself, but not a failed datagram stream.
            if let Some(why) = streams.failed().filter(|_| terms.is_of_datagrams()) {
                return Err(Ended::Failed(why));
            }
            let now = streams.total();
            if now != total {
                (total, moved) = (now, Instant::now());
            }
            if moved.elapsed() >= limits.stall {
                return Err(Ended::Cut("no payload moved for too long"));
            }
            if streams.elapsed() >= most {
                return Err(Ended::Cut("it took longer than planned"));
            }
        }
    }

    /// Sends the client the reason why its test ends.
    fn part(&self, ended: &Ended) {
        // Errors are ignored: a client that cannot be reached has gone.
        let _ = match ended {
            Ended::Refused(refusal) => {
                let reported = self.control.say(State::ServerError, self.word);
                reported.and_then(|()| self.control.write(&refusal.encode(), self.word))
            }
            Ended::Broken(Broken::Malformed(_)) => {
                let reported = self.control.say(State::ServerError, self.word);
                reported.and_then(|()| self.control.write(&Refusal::PARAMETERS.encode(), self.word))
            }
            Ended::Broken(_) | Ended::Cut(_) | Ended::Failed(_) => {
                self.control.say(State::ServerTerminate, self.word)
            }
            Ended::Left => Ok(()),
        };
    }

    /// If streams are still moving payload, waits until the client has closed its side of the test. A sending client
    /// reads the server's message only between two writes. If a write failed first, its user would see only that error.
    fn linger(self, ended: &Ended) {
        if !matches!(ended, Ended::Left | Ended::Broken(Broken::Closed)) {
            // The content of the client's answer does not matter, so the result is ignored.
            let _ = self.control.heedless().glance(LEAVE_TIME);
        }
    }
}
