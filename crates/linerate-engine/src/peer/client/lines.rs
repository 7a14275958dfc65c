//! Data connections: dialled, and proved to belong to the session.
//!
//! Each takes three round trips. Several are on their way at a time, so that many streams over a long path
//! do not take minutes to be made.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_core::wire::message::Secret;
use linerate_core::wire::preamble::{HELLO_LEN, Hello, Kind, REPLY_LEN, Reply, VERSIONS};
use linerate_core::wire::proof::{Claim, PROOF_LEN, Prover};

use super::dial::{PATIENCE, begin, made, socket};
use crate::load::{ConfigureEach, Datagrams, Lines, LoadError};
use crate::peer::channel::{ChannelError, read_exact, write_all};
use crate::peer::datagrams::{Configure, Meeting};
use crate::peer::handshake::{Preamble, random};

/// Connections on their way at a time: a quarter of those without a proof that a server lets one address have.
const WAVE: u32 = 8;

/// Time for all data connections of a set: a thousand over a path of 150 ms.
const PATIENCE_ALL: Duration = Duration::from_secs(60);

const HELLO: Hello = Hello {
    versions: VERSIONS,
    kind: Kind::Data,
};

/// Dials the data connections of a session.
pub(in crate::peer) struct Dialler {
    pub(in crate::peer) address: SocketAddr,
    pub(in crate::peer) session: [u8; 16],
    pub(in crate::peer) secret: Secret,
    /// Set once the user wants to stop: nothing more is dialled.
    pub(in crate::peer) stop: Arc<AtomicBool>,
}

/// A connection on its way.
struct Young {
    stream: u32,
    line: TcpStream,
}

/// One that has to prove itself, and its server.
struct Claimed {
    young: Young,
    preamble: Preamble,
    claim: Claim,
}

impl Dialler {
    /// Whether the user wants to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The connections of some streams, which have proved themselves and do not block.
    fn wave(
        &self,
        set: u32,
        streams: Range<u32>,
        until: Instant,
        configure: ConfigureEach<'_>,
    ) -> Result<Vec<TcpStream>, LoadError> {
        let until = until.min(Instant::now() + PATIENCE);
        let mut all = Vec::new();
        for stream in streams {
            let socket = socket(self.address).map_err(|e| call("socket", stream, e))?;
            configure(stream, &socket)?;
            begin(&socket, self.address).map_err(|e| call("connect", stream, e))?;
            all.push((stream, socket));
        }
        let greeted: Vec<Young> = all
            .into_iter()
            .map(|(stream, socket)| self.greet(stream, socket, set, until))
            .collect::<Result<_, _>>()?;
        let claimed: Vec<Claimed> = greeted
            .into_iter()
            .map(|young| self.claim(young, set, until))
            .collect::<Result<_, _>>()?;
        let proved = claimed.into_iter().map(|one| self.prove(one, set, until));
        proved.collect()
    }

    /// Says hello once the connection is made.
    fn greet(
        &self,
        stream: u32,
        socket: OwnedFd,
        set: u32,
        until: Instant,
    ) -> Result<Young, LoadError> {
        made(&socket, until, &|| self.is_stopped()).map_err(|e| call("connect", stream, e))?;
        let line = TcpStream::from(socket);
        let hello: [u8; HELLO_LEN] = HELLO.encode();
        write_all(&line, &hello, None, until).map_err(|e| refused(set, stream, &e))?;
        Ok(Young { stream, line })
    }

    /// Claims a stream of a set, once the server has answered the hello.
    fn claim(&self, young: Young, set: u32, until: Instant) -> Result<Claimed, LoadError> {
        let stream = young.stream;
        let failed = |e: ChannelError| refused(set, stream, &e);
        let mut reply = [0; REPLY_LEN];
        read_exact(&young.line, &mut reply, until).map_err(failed)?;
        Reply::decode(&reply).map_err(|e| refused(set, stream, &e))?;
        let preamble = Preamble {
            hello: HELLO.encode(),
            reply,
        };
        let mut claim = Claim {
            session: self.session,
            set,
            stream,
            nonce: random(),
            proof: [0; PROOF_LEN],
        };
        claim.proof = preamble.prove(Prover::Near, &self.secret, &claim);
        write_all(&young.line, &claim.encode(), None, until).map_err(failed)?;
        Ok(Claimed {
            young,
            preamble,
            claim,
        })
    }

    /// The connection, once the server has proved itself.
    fn prove(&self, one: Claimed, set: u32, until: Instant) -> Result<TcpStream, LoadError> {
        let Young { stream, line } = one.young;
        let mut proof = [0; PROOF_LEN];
        read_exact(&line, &mut proof, until).map_err(|e| refused(set, stream, &e))?;
        if one
            .preamble
            .verify(Prover::Far, &self.secret, &one.claim, &proof)
        {
            Ok(line)
        } else {
            Err(refused(set, stream, &"the server's proof is wrong"))
        }
    }
}

impl Lines for Dialler {
    fn lines(
        &mut self,
        set: u32,
        streams: u32,
        configure: ConfigureEach<'_>,
    ) -> Result<Vec<OwnedFd>, LoadError> {
        let until = Instant::now() + PATIENCE_ALL;
        let mut all = Vec::new();
        for first in (0..streams).step_by(WAVE as usize) {
            let wave = first..streams.min(first + WAVE);
            if self.is_stopped() {
                return Err(call("connect", first, ErrorKind::Interrupted));
            }
            for (stream, line) in wave
                .clone()
                .zip(self.wave(set, wave, until, &mut *configure)?)
            {
                line.set_nonblocking(false)
                    .map_err(|e| call("fcntl", stream, e))?;
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
        let until = Instant::now() + PATIENCE;
        let one = self.wave(set, stream..stream + 1, until, &mut |_, _| Ok(()))?;
        let secret = &self.secret;
        let of = Meeting {
            secret,
            set,
            stream,
        };
        of.dial(&one[0], configure)
    }
}

fn refused(set: u32, stream: u32, why: &dyn std::fmt::Display) -> LoadError {
    LoadError::Protocol {
        what: format!("data connection {stream} of set {set} was not accepted: {why}"),
    }
}

fn call(call: &'static str, stream: u32, source: impl Into<io::Error>) -> LoadError {
    LoadError::Call {
        call,
        stream,
        source: source.into(),
    }
}
