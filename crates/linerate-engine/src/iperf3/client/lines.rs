//! Streams of a test are made: connections, or sockets for datagrams that the server has answered.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use linerate_core::facts::Gap;
use linerate_core::path::{Direction, Side};
use linerate_core::plan::{Handover, Knobs};
use linerate_core::record::SetEnd;
use linerate_sys::{datagram, socket};

use super::session::{DIAL, LAST_WORD, Session, system};
use super::{ClientError, hello};
use crate::iperf3::control::Broken;
use crate::iperf3::streams::{Load, Manner};
use crate::load::LoadError;
use crate::load::transport::tcp::options;
use crate::load::transport::udp;
use crate::peer::client::dial;

impl Session<'_> {
    /// Makes the streams. What the server says of one that fails is better than what the stream
    /// does.
    pub(super) fn connect(&self, manner: &Manner) -> Result<(Vec<OwnedFd>, SetEnd), ClientError> {
        const STAGE: &str = "while the data connections were made";
        let made = match manner.load {
            Load::Datagrams { size, .. } => self.hellos(size),
            Load::Bytes { .. } => self.lines().map_err(ClientError::from),
        };
        made.map_err(|failed| match self.talk.control.glance(LAST_WORD) {
            Ok(Some(byte)) => self.talk.surprise(byte, STAGE),
            Ok(None) | Err(Broken::Io(_)) => failed,
            Err(broken) => ClientError::broken(self.talk.server, STAGE, broken),
        })
    }

    /// The sockets of streams of datagrams.
    fn hellos(&self, size: u16) -> Result<(Vec<OwnedFd>, SetEnd), ClientError> {
        let missing = || system("getsockname", io::ErrorKind::NotConnected.into());
        let own = self.own.ok_or_else(missing)?;
        let (mut fds, mut set) = (Vec::new(), SetEnd::default());
        for _ in 0..self.plan.knobs.streams {
            let mut gaps = Vec::new();
            let dress = |fd: &OwnedFd| gaps = udp::options::buffers(fd, &self.plan.knobs);
            let fd = hello::say(&self.talk.control, own, self.talk.server, dress)?;
            if fds.is_empty() {
                set.gaps = gaps;
                set.send_buffer = socket::send_buffer(fd.as_fd()).ok();
                set.recv_buffer = socket::recv_buffer(fd.as_fd()).ok();
                if self.options.direction == Direction::Forward {
                    let fits = datagram::fits(fd.as_fd()).unwrap_or(u32::MAX);
                    set.write_size = size.into();
                    set.gaps.extend(udp::options::fragments(size, fits));
                }
            }
            fds.push(fd);
        }
        Ok((fds, set))
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
            let taken = socket::send(fd.as_fd(), &self.cookie, false);
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
