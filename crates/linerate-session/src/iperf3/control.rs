//! The control connection of a test: sends and receives states and JSON, within deadlines.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use linerate_record::iperf3::{Malformed, State, frame, length};
use linerate_sys::datagram;
use rustix::event::{PollFd, PollFlags, poll};

use crate::net::{timespec, tune};

/// Longest time until a stop is noticed.
const HEED: Duration = Duration::from_millis(100);

/// Why the control connection failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// The other side has closed the connection.
    #[error("it closed the connection")]
    Closed,
    /// The other side sent nothing, or an incomplete message.
    #[error("it did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// A stop was requested on this side.
    #[error("stopped")]
    Stopped,
    /// A system call on the connection failed.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    /// The other side sent an invalid message.
    #[error("{0}")]
    Malformed(#[from] Malformed),
}

/// A control connection.
pub(super) struct Control<'a> {
    stream: TcpStream,
    stopped: Stopped<'a>,
}

/// Callback that returns whether a stop was requested on this side.
pub(super) type Stopped<'a> = Box<dyn Fn() -> bool + Send + Sync + 'a>;

impl<'a> Control<'a> {
    /// Makes a control connection that fails once `stopped` returns true.
    pub(super) fn new(stream: TcpStream, stopped: Stopped<'a>) -> io::Result<Self> {
        // These options detect another side that disappeared without
        // closing the connection. Nothing blocks without a deadline.
        tune(&stream)?;
        Ok(Self { stream, stopped })
    }

    /// Returns the connection in a state that ignores a stop, so that the test ends in order.
    pub(super) fn heedless(self) -> Control<'static> {
        Control { stream: self.stream, stopped: Box::new(|| false) }
    }

    /// Returns whether a stop was requested on this side.
    pub(super) fn stopped(&self) -> bool {
        (self.stopped)()
    }

    /// Returns the payload of the largest datagram that reaches the other side in one packet, as far as the route is
    /// known.
    pub(super) fn fits(&self) -> io::Result<u32> {
        datagram::fits(self.stream.as_fd())
    }

    /// Writes all of `bytes` within `time`.
    pub(super) fn write(&self, mut bytes: &[u8], time: Duration) -> Result<(), Broken> {
        let until = Instant::now() + time;
        while !bytes.is_empty() {
            match (&self.stream).write(bytes) {
                Ok(0) => return Err(Broken::Closed),
                Ok(n) => bytes = &bytes[n..],
                Err(e) => retry(e)?,
            }
            if !bytes.is_empty() {
                self.due(PollFlags::OUT, until, time)?;
            }
        }
        Ok(())
    }

    /// Reads bytes within `time` until `into` is full.
    pub(super) fn read(&self, into: &mut [u8], time: Duration) -> Result<(), Broken> {
        let until = Instant::now() + time;
        let mut have = 0;
        while have < into.len() {
            match (&self.stream).read(&mut into[have..]) {
                Ok(0) => return Err(Broken::Closed),
                Ok(n) => have += n,
                Err(e) => retry(e)?,
            }
            if have < into.len() {
                self.due(PollFlags::IN, until, time)?;
            }
        }
        Ok(())
    }

    pub(super) fn say(&self, state: State, time: Duration) -> Result<(), Broken> {
        self.write(&[state.encode()], time)
    }

    /// Returns the byte that arrives within `time`; `None` if none arrives.
    pub(super) fn glance(&self, time: Duration) -> Result<Option<u8>, Broken> {
        let mut byte = [0];
        if !self.wait(PollFlags::IN, Instant::now() + time)? {
            return Ok(None);
        }
        match (&self.stream).read(&mut byte) {
            Ok(0) => Err(Broken::Closed),
            Ok(_) => Ok(Some(byte[0])),
            Err(e) => retry(e).map(|()| None),
        }
    }

    /// Returns whether data has arrived on the control connection, or the other side has closed it.
    pub(super) fn is_spoken(&self) -> bool {
        let mut fds = [PollFd::new(&self.stream, PollFlags::IN)];
        poll(&mut fds, Some(&timespec(Duration::ZERO))).is_ok_and(|ready| ready > 0)
    }

    pub(super) fn tell(&self, json: &[u8], time: Duration) -> Result<(), Broken> {
        self.write(&frame(json), time)
    }

    /// Receives a JSON message with its length prefix.
    pub(super) fn hear(&self, time: Duration) -> Result<Vec<u8>, Broken> {
        let mut prefix = [0; 4];
        self.read(&mut prefix, time)?;
        let mut json = vec![0; length(prefix)?];
        self.read(&mut json, time)?;
        Ok(json)
    }

    /// Waits until the socket is ready, but at most until the deadline. The deadline is not extended for a peer that
    /// sends or accepts one byte at a time.
    fn due(&self, events: PollFlags, until: Instant, time: Duration) -> Result<(), Broken> {
        if self.wait(events, until)? && Instant::now() < until {
            return Ok(());
        }
        Err(Broken::Silent(time))
    }

    /// Waits until the socket is ready; returns false once the deadline has passed.
    fn wait(&self, events: PollFlags, until: Instant) -> Result<bool, Broken> {
        loop {
            if self.stopped() {
                return Err(Broken::Stopped);
            }
            let left = until.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(&self.stream, events)];
            match poll(&mut fds, Some(&timespec(left.min(HEED)))) {
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(Broken::Io(e.into())),
                Ok(0) if left.is_zero() => return Ok(false),
                Ok(0) => {}
                Ok(_) => return Ok(true),
            }
        }
    }
}

fn retry(e: io::Error) -> Result<(), Broken> {
    match e.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(()),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Err(Broken::Closed),
        _ => Err(Broken::Io(e)),
    }
}
