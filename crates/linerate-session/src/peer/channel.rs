//! An authenticated, encrypted control connection. It sends and
//! receives whole messages, within deadlines, and needs no thread.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use linerate_record::wire::WireError;
use linerate_record::wire::chunk::{Assembler, CHUNK_MAX, FRAME_MAX, split};
use rustix::event::PollFlags;
use snow::TransportState;

use crate::net::{Stop, WaitError, tune, wait};

/// Error of a control connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    #[error("the connection was closed")]
    Closed,
    #[error("no answer in time")]
    TimedOut,
    #[error("stopped")]
    Stopped,
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Wire(#[from] WireError),
    #[error("a frame was not encrypted with the key of the session")]
    Forged,
}

impl From<WaitError> for ChannelError {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::TimedOut => Self::TimedOut,
            WaitError::Stopped => Self::Stopped,
            WaitError::Io(error) => Self::Io(error),
        }
    }
}

/// Fills `buffer` from a non-blocking socket.
pub(crate) fn read_exact(
    mut stream: &TcpStream,
    buffer: &mut [u8],
    deadline: Instant,
) -> Result<(), ChannelError> {
    let mut have = 0;
    while have < buffer.len() {
        match stream.read(&mut buffer[have..]) {
            Ok(0) => return Err(ChannelError::Closed),
            Ok(n) => have += n,
            Err(e) => retry(e)?,
        }
        if have < buffer.len() {
            wait(&stream, PollFlags::IN, None, deadline)?;
        }
    }
    Ok(())
}

/// Writes all of `bytes` to a non-blocking socket.
pub(crate) fn write_all(
    mut stream: &TcpStream,
    mut bytes: &[u8],
    stop: Option<&Stop>,
    deadline: Instant,
) -> Result<(), ChannelError> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(ChannelError::Closed),
            Ok(n) => bytes = &bytes[n..],
            Err(e) => {
                retry(e)?;
                // The deadline also applies if the other end reads one byte at a time.
                if Instant::now() >= deadline {
                    return Err(ChannelError::TimedOut);
                }
                wait(&stream, PollFlags::OUT, stop, deadline)?;
            }
        }
    }
    Ok(())
}

fn retry(e: io::Error) -> Result<(), ChannelError> {
    match e.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(()),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Err(ChannelError::Closed),
        _ => Err(ChannelError::Io(e)),
    }
}

/// Encrypted messages over one control connection.
pub(crate) struct Channel {
    stream: TcpStream,
    noise: TransportState,
    stop: Option<Stop>,
    assembler: Assembler,
    // Encrypted bytes of a frame that is not complete yet: its length prefix and its body.
    sealed: Vec<u8>,
    plain: Vec<u8>,
    // Time at which the last byte was received.
    heard: Instant,
}

impl Channel {
    /// Makes a channel over a connection whose handshake is complete. Received messages are limited to `limit` bytes. A
    /// request of `stop` ends every wait.
    pub(crate) fn new(
        stream: TcpStream,
        noise: TransportState,
        limit: usize,
        stop: Option<Stop>,
    ) -> io::Result<Self> {
        tune(&stream)?;
        Ok(Self {
            stream,
            noise,
            stop,
            assembler: Assembler::new(limit),
            sealed: Vec::new(),
            plain: vec![0; FRAME_MAX],
            heard: Instant::now(),
        })
    }

    /// Returns the time at which the last byte was received.
    pub(crate) fn heard(&self) -> Instant {
        self.heard
    }

    /// Returns the socket, so that the caller can wait on it together with other sockets.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn send(&mut self, message: &[u8], deadline: Instant) -> Result<(), ChannelError> {
        self.send_through(message, deadline, true)
    }

    /// Sends a last message, even if a stop was requested.
    pub(crate) fn send_last(&mut self, message: &[u8], time: Duration) -> Result<(), ChannelError> {
        self.send_through(message, Instant::now() + time, false)
    }

    fn send_through(
        &mut self,
        message: &[u8],
        deadline: Instant,
        stoppable: bool,
    ) -> Result<(), ChannelError> {
        let mut frame = vec![0; 2 + FRAME_MAX.min(message.len() + 64)];
        let mut plain = Vec::with_capacity(1 + CHUNK_MAX.min(message.len()));
        for (last, part) in split(message) {
            plain.clear();
            plain.push(u8::from(last));
            plain.extend_from_slice(part);
            let sealed = self
                .noise
                .write_message(&plain, &mut frame[2..])
                .map_err(|_| ChannelError::Forged)?;
            frame[..2].copy_from_slice(&(sealed as u16).to_be_bytes());
            let stop = self.stop.as_ref().filter(|_| stoppable);
            write_all(&self.stream, &frame[..2 + sealed], stop, deadline)?;
        }
        Ok(())
    }

    /// Waits for a message until the deadline.
    pub(crate) fn receive(&mut self, deadline: Instant) -> Result<Vec<u8>, ChannelError> {
        loop {
            if let Some(message) = self.try_receive()? {
                return Ok(message);
            }
            // The deadline also applies if the other end never stops sending parts of a message.
            if Instant::now() >= deadline {
                return Err(ChannelError::TimedOut);
            }
            wait(&self.stream, PollFlags::IN, self.stop.as_ref(), deadline)?;
        }
    }

    /// Returns a message if a complete one has arrived, without waiting.
    pub(crate) fn try_receive(&mut self) -> Result<Option<Vec<u8>>, ChannelError> {
        // The loop is bounded: data that arrives during it is read in the next call.
        for _ in 0..64 {
            let need = self.need();
            if self.sealed.len() < need {
                if !self.fill(need)? {
                    return Ok(None);
                }
                continue;
            }
            let n = self
                .noise
                .read_message(&self.sealed[2..need], &mut self.plain)
                .map_err(|_| ChannelError::Forged)?;
            self.sealed.clear();
            if let Some(message) = self.assembler.push(&self.plain[..n])? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Returns the size of the current frame in bytes; while the length prefix is incomplete, the size of the prefix.
    fn need(&self) -> usize {
        match self.sealed[..] {
            [a, b, ..] => 2 + usize::from(u16::from_be_bytes([a, b])),
            _ => 2,
        }
    }

    /// Reads until `need` bytes are buffered; returns false if no data is available.
    fn fill(&mut self, need: usize) -> Result<bool, ChannelError> {
        let have = self.sealed.len();
        self.sealed.resize(need, 0);
        let got = self.stream.read(&mut self.sealed[have..]);
        self.sealed.truncate(have + got.as_ref().map_or(0, |n| *n));
        match got {
            Ok(0) => Err(ChannelError::Closed),
            Ok(_) => {
                self.heard = Instant::now();
                Ok(true)
            }
            Err(e) => retry(e).map(|()| false),
        }
    }
}
