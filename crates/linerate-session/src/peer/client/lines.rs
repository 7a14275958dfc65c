//! Data connections: the near end opens them, and proves that they belong to the session.
//!
//! Opening one connection takes three round trips. Several connections are opened at the same time; otherwise many
//! streams over a long path would take minutes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_record::wire::message::Secret;
use linerate_record::wire::preamble::{HELLO_LEN, Hello, Kind, REPLY_LEN, Reply, VERSIONS};
use linerate_record::wire::proof::{Claim, PROOF_LEN, Prover};
use linerate_sys::socket::set_device;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::bind;

use super::waiting::{GIVEN_UP, Waiting};
use crate::net::{HEED, begin, hasten, socket, timespec};
use crate::peer::datagrams::{Configure, Meeting};
use crate::peer::handshake::{Preamble, random};
use linerate_load::LoadError;
use linerate_load::transport::{ConfigureEach, Datagrams, Lines};

/// Number of connections that are opened at the same time: a quarter of
/// the unauthenticated connections that a server allows for one address.
const WAVE: u32 = 8;

/// Number of times that a connection is opened again if the server closed it before it was authenticated: other
/// unauthenticated connections may have displaced it.
const TRIES: u32 = 5;

const HELLO: Hello = Hello { versions: VERSIONS, kind: Kind::Data };

/// Time after which a connection is opened again because its first packet, or the answer to it, was probably lost. If
/// `LATE_ROUNDS` round trips of the path are longer, that time is used instead. It doubles with each attempt. The
/// kernel alone would wait for a second. Datagrams can be measured on a path that loses a third of all packets, so
/// their control connections must be possible there too.
const LATE: Duration = Duration::from_millis(200);
/// Smallest number of round trips after which a connection is opened again.
const LATE_ROUNDS: u32 = 3;

/// Opens the data connections of a session.
pub(in crate::peer) struct Dialler {
    pub(in crate::peer) address: SocketAddr,
    /// Round-trip time of the control connection; `None` if the kernel does not report it.
    pub(in crate::peer) round_trip: Option<Duration>,
    pub(in crate::peer) session: [u8; 16],
    pub(in crate::peer) secret: Secret,
    /// Flag that is set once the user wants to stop. Then no more connections are opened.
    pub(in crate::peer) stop: Arc<AtomicBool>,
    /// Local address or device from which connections are opened, if the user chose one.
    pub(in crate::peer) source: Option<String>,
    /// The requests to the server for connections that are being opened, and how long they have been unanswered.
    pub(in crate::peer) waiting: Waiting,
}

/// Size of the longest message from the server, in bytes.
const LONGEST: usize = if REPLY_LEN > PROOF_LEN { REPLY_LEN } else { PROOF_LEN };

/// What a connection that is being opened waits for.
enum Stage {
    /// The TCP handshake is not complete yet.
    Making,
    /// The hello was sent, and the server's reply is awaited.
    Reply,
    /// The claim was sent, and the server's proof is awaited.
    Proof(Preamble, Claim),
    /// The connection is authenticated and ready.
    Proved,
}

/// A data connection that is being opened.
struct Young {
    stream: u32,
    line: TcpStream,
    stage: Stage,
    said: [u8; LONGEST],
    have: usize,
    /// Whether the server has closed the connection.
    closed: bool,
    began: Instant,
    tries: u32,
}

impl Young {
    /// Returns the events to poll for; `None` once the connection is ready.
    fn wanted(&self) -> Option<PollFlags> {
        match self.stage {
            Stage::Making => Some(PollFlags::OUT),
            Stage::Reply | Stage::Proof(..) => Some(PollFlags::IN),
            Stage::Proved => None,
        }
    }

    /// Continues to read a message of N bytes; returns it once it is complete.
    fn hear<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        match (&self.line).read(&mut self.said[self.have..N]) {
            Ok(0) => {
                self.closed = true;
                return Err(ErrorKind::UnexpectedEof.into());
            }
            Ok(n) => self.have += n,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(e) => {
                self.closed = e.kind() == ErrorKind::ConnectionReset;
                return Err(e);
            }
        }
        if self.have < N {
            return Ok(None);
        }
        self.have = 0;
        let mut all = [0; N];
        all.copy_from_slice(&self.said[..N]);
        Ok(Some(all))
    }

    /// Sends a few bytes without waiting. The send buffer of a new connection has room for them.
    fn say(&self, bytes: &[u8]) -> io::Result<()> {
        let said = (&self.line).write(bytes)?;
        (said == bytes.len()).then_some(()).ok_or(ErrorKind::WriteZero.into())
    }
}

impl Dialler {
    /// Returns whether the user wants to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Opens authenticated, non-blocking connections for some streams. Each connection continues as soon as the server
    /// answers it, so one whose packets were lost does not delay the others.
    fn wave(
        &mut self,
        set: u32,
        streams: Range<u32>,
        configure: ConfigureEach<'_>,
    ) -> Result<Vec<TcpStream>, LoadError> {
        let began = Instant::now();
        self.waiting.requested();
        let made = self.made(set, streams, configure, began);
        match made {
            Ok(_) => self.waiting.answered(),
            Err(_) => self.waiting.ended(),
        }
        made
    }

    /// Opens the connections for `streams`, which were begun at `began`, and waits until all are ready.
    fn made(
        &mut self,
        set: u32,
        streams: Range<u32>,
        configure: ConfigureEach<'_>,
        began: Instant,
    ) -> Result<Vec<TcpStream>, LoadError> {
        let mut all = Vec::new();
        for stream in streams {
            all.push(self.begin(stream, configure)?);
        }
        while let Some(late) = all.iter().find(|young| young.wanted().is_some()) {
            if self.is_stopped() {
                return Err(call("connect", late.stream, ErrorKind::Interrupted));
            }
            if self.waiting.is_over(began, GIVEN_UP) {
                let call_of = if matches!(late.stage, Stage::Making) { "connect" } else { "recv" };
                return Err(call(call_of, late.stream, ErrorKind::TimedOut));
            }
            for n in ready(&all)? {
                match self.advance(&mut all[n], set) {
                    Err(_) if all[n].closed && all[n].tries < TRIES => {
                        self.redial(&mut all[n], configure)?;
                    }
                    went => went?,
                }
            }
            for young in &mut all {
                if self.is_late(young) {
                    self.redial(young, configure)?;
                }
            }
        }
        Ok(all.into_iter().map(|young| young.line).collect())
    }

    /// Returns whether the first packet of a connection was probably lost, judging by the path's round-trip time.
    fn is_late(&self, young: &Young) -> bool {
        let Some(round_trip) = self.round_trip else {
            return false;
        };
        let late = LATE.max(round_trip * LATE_ROUNDS) * (1 << (young.tries - 1));
        matches!(young.stage, Stage::Making) && young.tries < TRIES && young.began.elapsed() > late
    }

    /// Opens a connection again from the beginning.
    fn redial(&self, young: &mut Young, configure: ConfigureEach<'_>) -> Result<(), LoadError> {
        let tries = young.tries + 1;
        *young = self.begin(young.stream, configure)?;
        young.tries = tries;
        Ok(())
    }

    fn begin(&self, stream: u32, configure: ConfigureEach<'_>) -> Result<Young, LoadError> {
        let socket = socket(self.address).map_err(|e| call("socket", stream, e))?;
        configure(stream, &socket)?;
        if let Some(source) = &self.source {
            from(&socket, source, self.address).map_err(|e| unbound(source, &e))?;
        }
        begin(&socket, self.address).map_err(|e| call("connect", stream, e))?;
        Ok(Young {
            stream,
            line: socket.into(),
            stage: Stage::Making,
            said: [0; LONGEST],
            have: 0,
            closed: false,
            began: Instant::now(),
            tries: 1,
        })
    }

    /// Continues to open a connection whose socket is ready.
    fn advance(&self, young: &mut Young, set: u32) -> Result<(), LoadError> {
        let stream = young.stream;
        let failed = |e: io::Error| match e.kind() {
            ErrorKind::UnexpectedEof => refused(set, stream, &"the connection was closed"),
            _ => refused(set, stream, &e),
        };
        match &young.stage {
            Stage::Making => {
                let error = young.line.take_error().and_then(|error| error.map_or(Ok(()), Err));
                error.map_err(|e| call("connect", stream, e))?;
                let hello: [u8; HELLO_LEN] = HELLO.encode();
                young.say(&hello).map_err(failed)?;
                young.stage = Stage::Reply;
            }
            Stage::Reply => {
                if let Some(reply) = young.hear::<REPLY_LEN>().map_err(failed)? {
                    Reply::decode(&reply).map_err(|e| refused(set, stream, &e))?;
                    let (preamble, claim) = self.claim(set, stream, reply);
                    young.say(&claim.encode()).map_err(failed)?;
                    young.stage = Stage::Proof(preamble, claim);
                }
            }
            Stage::Proof(preamble, claim) => {
                let (preamble, claim) = (*preamble, *claim);
                if let Some(proof) = young.hear::<PROOF_LEN>().map_err(failed)? {
                    if !preamble.verify(Prover::Far, &self.secret, &claim, &proof) {
                        return Err(refused(set, stream, &"the server's proof is wrong"));
                    }
                    young.stage = Stage::Proved;
                }
            }
            Stage::Proved => {}
        }
        Ok(())
    }

    /// Makes the claim that a connection carries a stream of a set, with a proof over the bytes exchanged so far.
    fn claim(&self, set: u32, stream: u32, reply: [u8; REPLY_LEN]) -> (Preamble, Claim) {
        let preamble = Preamble { hello: HELLO.encode(), reply };
        let mut claim =
            Claim { session: self.session, set, stream, nonce: random(), proof: [0; PROOF_LEN] };
        claim.proof = preamble.prove(Prover::Near, &self.secret, &claim);
        (preamble, claim)
    }
}

/// Waits briefly for connections whose sockets are ready; returns their indices.
fn ready(all: &[Young]) -> Result<Vec<usize>, LoadError> {
    let waiting = all.iter().enumerate();
    let waiting = waiting.filter_map(|(n, young)| Some((n, young, young.wanted()?)));
    let (places, mut fds): (Vec<usize>, Vec<PollFd<'_>>) =
        waiting.map(|(n, young, wanted)| (n, PollFd::new(&young.line, wanted))).unzip();
    match poll(&mut fds, Some(&timespec(HEED))) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(e) => return Err(call("poll", all[places[0]].stream, e)),
    }
    let can = places.into_iter().zip(&fds);
    Ok(can.filter(|(_, fd)| !fd.revents().is_empty()).map(|(n, _)| n).collect())
}

impl Lines for Dialler {
    fn lines(
        &mut self,
        set: u32,
        streams: u32,
        configure: ConfigureEach<'_>,
    ) -> Result<Vec<OwnedFd>, LoadError> {
        let mut all = Vec::new();
        for first in (0..streams).step_by(WAVE as usize) {
            let wave = first..streams.min(first + WAVE);
            for (stream, line) in wave.clone().zip(self.wave(set, wave, &mut *configure)?) {
                line.set_nonblocking(false).map_err(|e| call("fcntl", stream, e))?;
                all.push(line.into());
            }
        }
        Ok(all)
    }

    fn datagrams(
        &mut self,
        set: u32,
        stream: u32,
        configure: Configure<'_>,
    ) -> Result<Datagrams, LoadError> {
        // This connection carries no load. Over it, the two ends of the datagram stream find each other.
        let mut hastened =
            |_, line: &OwnedFd| hasten(line).map_err(|e| call("setsockopt", stream, e));
        let one = self.wave(set, stream..stream + 1, &mut hastened)?;
        let device = self.source.clone().filter(|source| address(source).is_none());
        let mut placed = |fd: &OwnedFd| {
            if let Some(device) = &device {
                set_device(fd.as_fd(), device).map_err(|e| unbound(device, &e))?;
            }
            configure(fd)
        };
        let secret = &self.secret;
        let of = Meeting { secret, set, stream };
        of.dial(&one[0], &mut placed)
    }

    fn given_up(&self) -> bool {
        self.is_stopped()
    }
}

/// Returns the address if the user chose one as the source; `None` if the source is a device.
fn address(source: &str) -> Option<IpAddr> {
    source.parse().ok()
}

/// Makes connections of `socket` to `far` use a local address or device.
fn from(socket: &OwnedFd, source: &str, far: SocketAddr) -> io::Result<()> {
    match address(source) {
        None => set_device(socket.as_fd(), source),
        Some(own) if own.is_ipv4() == far.is_ipv4() => Ok(bind(socket, &SocketAddr::new(own, 0))?),
        Some(_) => Err(ErrorKind::AddrNotAvailable.into()),
    }
}

fn refused(set: u32, stream: u32, why: &dyn std::fmt::Display) -> LoadError {
    LoadError::Protocol {
        what: format!("data connection {stream} of set {set} was not accepted: {why}"),
    }
}

fn call(call: &'static str, stream: u32, source: impl Into<io::Error>) -> LoadError {
    LoadError::Call { call, stream, source: source.into() }
}

fn unbound(source: &str, error: &io::Error) -> LoadError {
    LoadError::Failed { what: format!("cannot send from {source}: {error}"), hint: "ip address" }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;

    use super::*;

    fn dialler(listener: &TcpListener) -> Dialler {
        Dialler {
            address: listener.local_addr().unwrap(),
            round_trip: None,
            session: [1; 16],
            secret: Secret([2; 32]),
            stop: Arc::default(),
            source: None,
            waiting: Waiting::default(),
        }
    }

    #[test]
    fn a_server_that_says_nothing_is_not_waited_for_once_the_user_stops() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut dialler = dialler(&listener);
        let stop = Arc::clone(&dialler.stop);
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
        });
        let error = dialler.lines(0, 20, &mut |_, _| Ok(())).unwrap_err();
        let LoadError::Call { source, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(source.kind(), ErrorKind::Interrupted);
    }

    #[test]
    fn connections_begin_where_the_user_says() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut dialler = dialler(&listener);
        let mut begun = |source: &str| {
            dialler.source = Some(source.to_owned());
            dialler.begin(0, &mut |_, _| Ok(()))
        };
        let made = begun("127.0.0.9").unwrap();
        let own = made.line.local_addr().unwrap().ip();
        assert_eq!(own.to_string(), "127.0.0.9");
        assert!(begun("lo").is_ok());
        for wrong in ["192.0.2.9", "::1", "nosuch0"] {
            let Err(error) = begun(wrong).map(drop) else {
                panic!("{wrong}");
            };
            assert!(error.to_string().starts_with("cannot send from "), "{error}");
        }
    }

    #[test]
    fn a_connection_is_late_after_a_few_round_trips_and_then_after_twice_as_long() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut dialler = dialler(&listener);
        let mut young = dialler.begin(0, &mut |_, _| Ok(())).unwrap();
        let mut late = |dialler: &Dialler, tries, millis| {
            young.tries = tries;
            young.began = Instant::now().checked_sub(Duration::from_millis(millis)).unwrap();
            dialler.is_late(&young)
        };
        assert!(!late(&dialler, 1, 4000), "nothing is known of the path");
        for (round_trip, tries, in_time, too_late) in
            [(1, 1, 100, 201), (1, 2, 300, 401), (300, 1, 800, 901), (300, 2, 1700, 1801)]
        {
            dialler.round_trip = Some(Duration::from_millis(round_trip));
            assert!(!late(&dialler, tries, in_time));
            assert!(late(&dialler, tries, too_late));
        }
        assert!(!late(&dialler, TRIES, 60_000));
        young.stage = Stage::Reply;
        (young.tries, young.began) = (1, Instant::now());
        thread::sleep(Duration::from_millis(2));
        dialler.round_trip = Some(Duration::ZERO);
        assert!(!dialler.is_late(&young));
    }

    #[test]
    fn a_connection_that_is_closed_before_its_proof_is_dialled_again_a_few_times() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut dialler = dialler(&listener);
        let closes = thread::spawn(move || {
            for _ in 0..TRIES {
                drop(listener.accept().unwrap());
            }
            // No second connection was made: otherwise it would wait in this queue.
            listener.set_nonblocking(true).unwrap();
            listener.accept().is_err()
        });
        let error = dialler.lines(0, 1, &mut |_, _| Ok(())).unwrap_err();
        assert!(error.to_string().contains("was not accepted"), "{error}");
        assert!(closes.join().unwrap());
    }
}
