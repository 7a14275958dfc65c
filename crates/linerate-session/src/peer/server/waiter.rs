//! Waits of a session's thread for data connections, until the gate has admitted them.

use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::rooms::Room;
use crate::net::{Stop, timespec};
use crate::peer::datagrams::{Configure, Meeting};
use linerate_load::LoadError;
use linerate_load::transport::{ConfigureEach, Datagrams, Lines};

/// Time within which the next data connection of a set must arrive. The near end opens several at the same time.
const CONNECT: Duration = Duration::from_secs(20);

/// Waits for data connections that the gate admits.
pub(super) struct Waiter<'a> {
    pub(super) control: &'a TcpStream,
    pub(super) room: &'a Arc<Room>,
    pub(super) stop: &'a Stop,
    /// Time at which the session must end.
    pub(super) until: Instant,
}

impl Waiter<'_> {
    fn fetch(&self, set: u32, stream: u32) -> Result<TcpStream, LoadError> {
        self.wait(set, stream).map_err(|why| LoadError::Protocol {
            what: format!("data connection {stream} of set {set} {why}"),
        })
    }

    fn wait(&self, set: u32, stream: u32) -> Result<TcpStream, &'static str> {
        let deadline = self.until.min(Instant::now() + CONNECT);
        loop {
            self.room.clear();
            if let Some(connection) = self.room.fetch(set, stream) {
                return Ok(connection);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("did not arrive in time");
            }
            let mut fds = [
                PollFd::new(self.room, PollFlags::IN),
                PollFd::new(self.control, PollFlags::IN),
                PollFd::new(self.stop, PollFlags::IN),
            ];
            match poll(&mut fds, Some(&timespec(left))) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Err("could not be waited for"),
            }
            if !fds[2].revents().is_empty() {
                return Err("was given up: the server was stopped");
            }
            // While the near end connects, it sends a message only if it cancels, and closes the connection only if
            // it ends. Connections that have arrived by then are still checked.
            if !fds[1].revents().is_empty() && fds[0].revents().is_empty() {
                return Err("was given up by the near end");
            }
        }
    }
}

impl Lines for Waiter<'_> {
    fn lines(
        &mut self,
        set: u32,
        streams: u32,
        configure: ConfigureEach<'_>,
    ) -> Result<Vec<OwnedFd>, LoadError> {
        let mut line = |stream| {
            let line = OwnedFd::from(self.fetch(set, stream)?);
            configure(stream, &line)?;
            Ok(line)
        };
        (0..streams).map(&mut line).collect()
    }

    fn datagrams(
        &mut self,
        set: u32,
        stream: u32,
        configure: Configure<'_>,
    ) -> Result<Datagrams, LoadError> {
        let line = self.fetch(set, stream)?;
        let secret = self.room.secret();
        let of = Meeting { secret, set, stream };
        of.accept(&line, self.stop, configure)
    }

    /// Returns whether the server stops, the near end has cancelled, or the session's time is over. While the near end
    /// connects, it sends a message only if it cancels.
    fn given_up(&self) -> bool {
        let mut fds =
            [PollFd::new(self.control, PollFlags::IN), PollFd::new(self.stop, PollFlags::IN)];
        let said = poll(&mut fds, Some(&timespec(Duration::ZERO)));
        said.is_ok_and(|ready| ready > 0) || Instant::now() >= self.until
    }
}
