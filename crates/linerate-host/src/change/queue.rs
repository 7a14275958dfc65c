//! The limit of the queueing discipline at the root of a port. The limit is the only option of a discipline that can be
//! restored exactly. Changing it keeps the disciplines below it and the queued packets.

use std::io;

use linerate_facts::parse::limit::{limit, with_limit};
use linerate_facts::parse::qdisc::{self, ROOT};
use linerate_plan::change::Queue;
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;

use crate::netlink::{ACK, REQUEST, Request, Socket, attribute};
use crate::{Query, invalid};

/// `RTM_NEWQDISC` of linux/rtnetlink.h: without the create flag it only changes an existing discipline.
const CHANGE: u16 = 36;

/// A queueing discipline of the given kind at the root of a port.
struct Root {
    socket: Socket,
    index: u32,
    handle: u32,
    options: Vec<u8>,
}

impl Root {
    /// Finds the root discipline of the port. One that the kernel made by itself has the handle 0 and cannot be
    /// changed.
    fn find(queue: Queue, port: &str) -> io::Result<Self> {
        let index = name_to_index(super::host::socket()?, port)?;
        let mut socket = Socket::open(None)?;
        let reply = socket.ask(&Query::Qdiscs)?;
        for found in qdisc::parse(&reply) {
            let found = found.map_err(invalid)?;
            let at_root = found.port == index && found.parent == ROOT && found.handle != 0;
            if at_root && found.kind == queue.name() {
                let (handle, options) = (found.handle, found.options.to_vec());
                return Ok(Self { socket, index, handle, options });
            }
        }
        Err(Errno::NODEV.into())
    }
}

/// Reads the handle and the limit of a port's root queueing discipline; fails with `ENODEV` if the discipline has
/// another kind.
pub(super) fn read(queue: Queue, port: &str) -> io::Result<Vec<u64>> {
    let root = Root::find(queue, port)?;
    let limit = limit(queue, &root.options).map_err(invalid)?;
    Ok(vec![root.handle.into(), limit.into()])
}

/// Sets the limit of the root discipline; fails with `ENODEV` if its handle is no longer the given one.
pub(super) fn write(queue: Queue, port: &str, numbers: &[u64]) -> io::Result<()> {
    let mut root = Root::find(queue, port)?;
    let [handle, limit] = numbers else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let limit = u32::try_from(*limit).map_err(|_| io::ErrorKind::InvalidInput)?;
    if u64::from(root.handle) != *handle {
        return Err(Errno::NODEV.into());
    }
    let options = with_limit(queue, &root.options, limit).map_err(invalid)?;
    // The request consists of struct tcmsg, TCA_KIND and TCA_OPTIONS.
    let body = [
        &[0; 4][..],
        &root.index.to_ne_bytes(),
        &root.handle.to_ne_bytes(),
        &ROOT.to_ne_bytes(),
        &[0; 4],
        &attribute(1, format!("{}\0", queue.name()).as_bytes()),
        &attribute(2, &options),
    ];
    let request = Request { kind: CHANGE, flags: REQUEST | ACK, body: body.concat() };
    root.socket.exchange(&request).map(drop)
}
