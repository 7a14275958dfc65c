//! A network simulated by ibsim, the simulator of Linux's InfiniBand tools, through the simulator's own sockets.
//!
//! The sockets are datagram sockets in the abstract name space: one for control, one for management datagrams. Numbers
//! in control messages are in the byte order of the host.
//= ibsim 0.10: include/ibsim.h, umad2sim/sim_client.c

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use std::{io, process};

use linerate_fabric::mad::{Get, LEN, To, transaction};
use linerate_units::Nanos;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect,
    recv, send, socket_with,
};

use super::{Arrival, MadPort, PortError, polled, since};

/// Name of the simulator's sockets, unless another one is given.
const NAME: &str = "sim";
const MAGIC: u32 = 0xdead_beef;

/// Types of control messages. A reply of type 0 means that the request was refused.
const CONNECT: u32 = 1;
const DISCONNECT: u32 = 2;

/// Length of a control message, and of the data at its end, in bytes.
const CONTROL: usize = 16 + DATA;
const DATA: usize = 64;
/// Length of a node's name with its final zero, in bytes.
const NODE: usize = 32;

/// Length of the header before a management datagram, in bytes.
const HEADER: usize = 32;

/// Most requests without a reply. A socket holds this many datagrams for its reader (`net.unix.max_dgram_qlen`, 10 by
/// default), and the simulator drops replies that find no room.
const WINDOW: usize = 8;

/// Most requests per second: more than the simulator answers, so it never waits for this.
pub(super) const PACE: u32 = 1_000_000;

/// Longest wait for the reply to a control message.
const PATIENCE: Duration = Duration::from_secs(5);

/// A client of the simulator, attached to a node.
#[derive(Debug)]
pub struct Ibsim {
    control: OwnedFd,
    packets: OwnedFd,
    client: u32,
    opened: Instant,
    /// Name of the node that the client is attached to.
    node: String,
}

impl Ibsim {
    /// Attaches to `node` of the simulator whose sockets have the name `name`. `None` means the first node, or the
    /// simulator's usual name.
    pub fn attach(name: Option<&str>, node: Option<&str>) -> Result<Self, PortError> {
        let name = name.unwrap_or(NAME);
        let own = process::id();
        let control = socket(&format!("{name}:ctl{own}"))?;
        to(&control, name, &format!("{name}:ctl"))?;
        let packets = socket(&format!("{name}:in{own}"))?;
        let mut requested = [0; DATA];
        requested[..4].copy_from_slice(&own.to_ne_bytes());
        let wanted = node.unwrap_or_default().as_bytes();
        if wanted.len() >= NODE {
            return Err(refused("a node name of 32 bytes or more", ""));
        }
        requested[12..12 + wanted.len()].copy_from_slice(wanted);
        let reply = ask(&control, CONNECT, 0, &requested)?.ok_or_else(|| {
            let what = format!("to attach to node {:?}", node.unwrap_or_default());
            refused(&what, "the names of nodes are in ibsim's network file; at most 10 clients attach at one time")
        })?;
        let client = u32::from_ne_bytes([reply[0], reply[1], reply[2], reply[3]]);
        let attached = &reply[12..12 + NODE];
        let end = attached.iter().position(|byte| *byte == 0).unwrap_or(NODE);
        let node = String::from_utf8_lossy(&attached[..end]).into_owned();
        to(&packets, name, &format!("{name}:out{client}"))?;
        Ok(Self { control, packets, client, opened: Instant::now(), node })
    }

    /// Returns the name of the node that the client is attached to.
    pub fn node(&self) -> &str {
        &self.node
    }
}

impl Drop for Ibsim {
    fn drop(&mut self) {
        // The simulator keeps the place of a client until it disconnects. If the simulator has ended, there is no
        // reply.
        let _ =
            send(&self.control, &control(DISCONNECT, self.client, &[0; DATA]), SendFlags::DONTWAIT);
    }
}

impl MadPort for Ibsim {
    fn window(&self) -> usize {
        WINDOW
    }

    fn pace(&self) -> u32 {
        PACE
    }

    fn now(&self) -> Nanos {
        since(self.opened)
    }

    fn send(&mut self, transaction: u32, get: &Get) -> Result<(), PortError> {
        let mut packet = [0; HEADER + LEN];
        packet[..2].copy_from_slice(&get.lid().to_be_bytes());
        // A LID of zero means this node.
        if let To::Route(_) = get.to {
            packet[4..6].copy_from_slice(&get.lid().to_be_bytes());
        }
        packet[8..12]
            .copy_from_slice(&u32::from(get.attribute.service().queue_pair()).to_be_bytes());
        packet[24..32].copy_from_slice(&(LEN as u64).to_be_bytes());
        packet[HEADER..].copy_from_slice(&get.encode(transaction));
        match send(&self.packets, &packet, SendFlags::DONTWAIT) {
            // If the simulator does not read, the request is lost, and the walk sends it again.
            Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::INTR) => Ok(()),
            Err(e) => Err(PortError::call("sending to ibsim", e)),
        }
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Arrival>, PortError> {
        if !polled(&self.packets, wait)?.contains(PollFlags::IN) {
            return Ok(None);
        }
        let mut packet = [0; HEADER + LEN];
        let got = match recv(&self.packets, &mut packet[..], RecvFlags::DONTWAIT) {
            Ok((got, _)) => got,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(e) => return Err(PortError::call("receiving from ibsim", e)),
        };
        let mut mad = Box::new([0; LEN]);
        mad.copy_from_slice(&packet[HEADER..]);
        let status = u32::from_be_bytes([packet[16], packet[17], packet[18], packet[19]]);
        if got < packet.len() || status != 0 {
            return Ok(transaction(&mad[..]).map(Arrival::Lost));
        }
        Ok(Some(Arrival::Mad(mad)))
    }
}

fn refused(what: &str, hint: &'static str) -> PortError {
    PortError::Refused { what: what.to_owned(), hint }
}

fn address(name: &str) -> Result<SocketAddrUnix, PortError> {
    // The simulator counts the final zero of the text as a part of the name.
    let name = format!("{name}\0");
    SocketAddrUnix::new_abstract_name(name.as_bytes())
        .map_err(|e| PortError::call("naming a socket", e))
}

fn socket(name: &str) -> Result<OwnedFd, PortError> {
    let made = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let made = made.map_err(|e| PortError::call("socket", e))?;
    bind(&made, &address(name)?).map_err(|e| PortError::call(format!("binding {name}"), e))?;
    Ok(made)
}

fn to(socket: &OwnedFd, name: &str, peer: &str) -> Result<(), PortError> {
    match connect(socket, &address(peer)?) {
        Ok(()) => Ok(()),
        Err(Errno::CONNREFUSED) => Err(PortError::NoSimulator { name: name.to_owned() }),
        Err(e) => Err(PortError::call(format!("connecting to {peer}"), e)),
    }
}

fn control(kind: u32, client: u32, data: &[u8; DATA]) -> [u8; CONTROL] {
    let mut message = [0; CONTROL];
    for (n, number) in [MAGIC, client, kind, DATA as u32].into_iter().enumerate() {
        message[n * 4..n * 4 + 4].copy_from_slice(&number.to_ne_bytes());
    }
    message[16..].copy_from_slice(data);
    message
}

/// Sends a control message and returns the data of the reply; `None` for a refusal.
fn ask(
    socket: &OwnedFd,
    kind: u32,
    client: u32,
    data: &[u8; DATA],
) -> Result<Option<[u8; DATA]>, PortError> {
    const WHAT: &str = "asking ibsim";
    send(socket, &control(kind, client, data), SendFlags::DONTWAIT)
        .map_err(|e| PortError::call(WHAT, e))?;
    if !polled(socket, PATIENCE)?.contains(PollFlags::IN) {
        return Err(PortError::call(WHAT, io::Error::from(io::ErrorKind::TimedOut)));
    }
    let mut reply = [0; CONTROL];
    let (got, _) =
        recv(socket, &mut reply[..], RecvFlags::empty()).map_err(|e| PortError::call(WHAT, e))?;
    let answered = u32::from_ne_bytes([reply[8], reply[9], reply[10], reply[11]]);
    let mut data = [0; DATA];
    data.copy_from_slice(&reply[16..]);
    Ok((got == CONTROL && answered == kind).then_some(data))
}
