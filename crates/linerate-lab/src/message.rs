//! Messages between a lab and its agent, over a socket that preserves message boundaries and passes descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::fault::Fault;
use crate::spec::{Forwarded, Host, PortStatus};

/// Longest message, in bytes.
const LONGEST: usize = 128 * 1024;
/// Most descriptors in a message.
const MOST_DESCRIPTORS: usize = 4;

/// Request to start a program. Its descriptors are sent with it: stdin, stdout, stderr, and a pipe for the exit status.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) host: Host,
    pub(crate) argv: Vec<Vec<u8>>,
    pub(crate) env: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) cwd: Vec<u8>,
    pub(crate) cpus: Vec<usize>,
}

/// A request that the lab's owner sends to the agent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    Start(Start),
    Ports(Host),
    Plant(Fault),
    Remove(Fault),
    Link(Host, bool),
    Forwarded,
}

/// The agent's reply to the lab's owner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The lab is ready; the value says whether it has IPv6.
    Built(bool),
    Done,
    /// The program runs; its pidfd is sent with this message.
    Started,
    Ports(Vec<PortStatus>),
    Forwarded(Option<Forwarded>),
    Failed(LabError),
}

/// One end of the socket between a lab and its agent.
#[derive(Debug)]
pub(crate) struct Channel(pub(crate) OwnedFd);

impl Channel {
    /// Makes both ends of a channel.
    pub(crate) fn pair() -> Result<(Self, Self), LabError> {
        let pair = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        );
        let (a, b) = pair.map_err(|e| LabError::step("cannot make a socket pair", &e.into()))?;
        Ok((Self(a), Self(b)))
    }

    /// Sends a message with descriptors.
    pub(crate) fn send(
        &self,
        message: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), LabError> {
        let bytes = serde_json::to_vec(message).map_err(|e| LabError::gone(e.to_string()))?;
        if bytes.len() > LONGEST {
            return Err(LabError::Step {
                what: "message to the lab".to_owned(),
                errno: Errno::MSGSIZE.raw_os_error(),
            });
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        let parts = [IoSlice::new(&bytes)];
        loop {
            match rustix::net::sendmsg(&self.0, &parts, &mut control, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(e) => return Err(LabError::gone(e.to_string())),
            }
        }
    }

    /// Waits for a message. Returns `None` when the other end is closed.
    pub(crate) fn receive<T: DeserializeOwned>(
        &self,
    ) -> Result<Option<(T, Vec<OwnedFd>)>, LabError> {
        let mut bytes = vec![0; LONGEST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let length = loop {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            match rustix::net::recvmsg(&self.0, &mut parts, &mut control, flags) {
                Ok(received) => break received.bytes,
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => break 0,
                Err(e) => return Err(LabError::gone(e.to_string())),
            }
        };
        if length == 0 {
            return Ok(None);
        }
        let descriptors = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect();
        let message =
            serde_json::from_slice(&bytes[..length]).map_err(|e| LabError::gone(e.to_string()))?;
        Ok(Some((message, descriptors)))
    }
}
