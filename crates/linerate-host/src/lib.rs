//! The machine: readings of it, settings of it, and its ports for management datagrams.
//!
//! Each source of readings has a file here. Every reading is a file under a root or a query whose raw reply can be
//! captured and replayed: nothing here accesses the machine except through [`Machine`], and nothing here decodes, which
//! is the work of [`linerate_facts::parse`]. [`change`] changes settings that a user allowed and undoes them; [`fabric`]
//! carries management datagrams of InfiniBand. Moves no payload: that is `linerate-load`.
#![forbid(unsafe_code)]

pub mod change;
pub mod fabric;
pub mod rights;
pub mod sheet;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use linerate_facts::Gap;
pub use linerate_plan::subject::{Subject, Toward};
use serde::{Deserialize, Serialize};

mod arrivals;
mod capture;
mod cgroup;
mod clock;
mod conntrack;
mod counters;
mod cpu;
mod driver;
mod facts;
mod flows;
mod fragments;
mod genetlink;
mod live;
mod mask;
mod memory;
mod netlink;
mod netstat;
mod port;
mod psi;
mod qdisc;
mod rdma;
mod route;
mod sheets;
mod sock_diag;
pub mod socket;
mod socket_memory;
mod softnet;
mod source;
mod sources;
#[cfg(test)]
#[path = "tests/testing.rs"]
mod testing;
#[cfg(test)]
mod tests;
mod thread;

pub use capture::{Answer, Capture, Captured, Failure, Replay};
pub use facts::block::storage;
pub use facts::infiniband::{infiniband, rdma_end};
pub use facts::irq::interrupts;
pub use facts::nic::network;
pub use facts::{Room, Watch, facts, inventory, room};
pub use flows::{Flows, Wanted, is_running};
pub use genetlink::Ethtool;
pub use live::Live;
pub use sock_diag::ConnectionId;
pub use socket::{SocketAsk, SocketQuery};
pub use sources::Sources;

/// Maximum size of a file or a reply, in bytes; a larger one is an error.
pub const LIMIT: usize = 4 << 20;

/// A query to the kernel that is not the reading of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Query {
    /// Reads the link with this index and its statistics (`RTM_GETLINK`).
    Link(u32),
    /// Reads all links with their statistics (`RTM_GETLINK` dump).
    Links,
    /// Reads all queueing disciplines with their statistics (`RTM_GETQDISC` dump: the kernel has no request for those
    /// of one port).
    Qdiscs,
    /// Reads the classes of the queueing disciplines of the port with this index, with their statistics
    /// (`RTM_GETTCLASS` dump).
    Classes(u32),
    /// Reads all addresses of ports (`RTM_GETADDR` dump).
    Addresses,
    /// Reads the route to an address (`RTM_GETROUTE`).
    Route(Toward),
    /// Reads one property of the port with this index, from the generic netlink family `ethtool`.
    Ethtool(Ethtool, u32),
    /// Reads the queues of the port with this index (family `netdev`, `NETDEV_CMD_QUEUE_GET`).
    Queues(u32),
    /// Reads the pollers of the port with this index (family `netdev`, `NETDEV_CMD_NAPI_GET`).
    Napis(u32),
    /// Reads the driver of the port with this index (`struct ethtool_drvinfo`).
    Driver(u32),
    /// Reads the names and values of the driver's counters of the port with this index (`struct ethtool_gstrings`,
    /// then `struct ethtool_stats`).
    DriverCounters(u32),
    /// Reads all TCP connections of IPv4 sockets that may carry payload, of all programs (`SOCK_DIAG_BY_FAMILY` dump
    /// with `TCP_INFO`, `SO_MEMINFO` and the congestion control).
    ConnectionsV4,
    /// Reads all TCP connections of IPv6 sockets that may carry payload, including those that speak IPv4.
    ConnectionsV6,
    /// Reads one TCP connection. It fails once another connection has the same addresses.
    Connection(ConnectionId),
    /// Reads the clock ticks per second (`USER_HZ`), as a decimal number and a line end.
    TicksPerSec,
}

/// A file that is kept open between reads, with a buffer: opening a file of /proc takes longer than reading it.
#[derive(Debug, Default)]
pub struct Kept {
    file: Option<OwnedFd>,
    text: Vec<u8>,
}

/// The machine, or a capture of one.
pub trait Machine: Send + Sync {
    /// Returns the contents of a file, by its absolute path: `/proc/stat`. A file of more than [`LIMIT`] bytes is an
    /// error, so that a truncated file is never mistaken for a complete one.
    fn file(&self, path: &str) -> io::Result<Vec<u8>>;
    /// Returns the first `most` bytes of a file, or all if it is shorter: some files are slow to read further.
    fn head(&self, path: &str, most: usize) -> io::Result<Vec<u8>> {
        let mut text = self.file(path)?;
        text.truncate(most);
        Ok(text)
    }
    /// Returns the configuration space of a PCI function, as far as `pci_config::parse` uses it: each register is
    /// slow to read.
    fn config(&self, path: &str) -> io::Result<Vec<u8>> {
        self.head(path, linerate_facts::parse::pci_config::LENGTH)
    }
    /// Returns the contents of a small file that is read at each tick. `kept` holds the open file, for this path
    /// only.
    fn again<'a>(&self, path: &str, kept: &'a mut Kept) -> io::Result<&'a [u8]> {
        kept.text = self.file(path)?;
        Ok(&kept.text)
    }
    /// Returns the names in a directory, sorted.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    /// Returns the raw reply to a query: netlink messages, one after the other. A refusal of the kernel is an error.
    fn query(&self, query: &Query) -> io::Result<Vec<u8>>;
    /// Passes the raw reply to a query to `each` in parts of whole messages. This is for replies that may exceed
    /// [`LIMIT`] bytes on a busy host.
    fn parts(&self, query: &Query, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        each(&self.query(query)?);
        Ok(())
    }
    /// Returns the target of a symbolic link, unresolved.
    fn target(&self, path: &str) -> io::Result<String> {
        let why = format!("nothing here tells where {path} leads");
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }
    /// Writes the raw reply to a query about the socket `fd`, and returns its length. The query is made for each
    /// stream at each tick, so a real machine must not allocate for it.
    fn socket(&self, query: &SocketQuery, fd: BorrowedFd<'_>, into: &mut [u8])
    -> io::Result<usize>;
}

/// Makes a gap for a file or query that could not be read or parsed.
fn gap(what: &str, why: &str, hint: &str) -> Gap {
    Gap { what: what.to_owned(), why: why.to_owned(), hint: hint.to_owned() }
}

/// Makes a gap for `path`. If permission is missing, the hint says how to get it; otherwise it is `hint`.
fn unreadable(what: &str, path: &str, error: &io::Error, hint: &str) -> Gap {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "sudo linerate ...",
        _ => hint,
    };
    gap(what, &format!("cannot read {path}: {error}"), hint)
}

/// Reads and decodes a whole file.
fn read<T>(
    machine: &dyn Machine,
    path: &str,
    decode: impl FnOnce(&[u8]) -> Result<T, linerate_facts::parse::Malformed>,
) -> io::Result<T> {
    let text = machine.file(path)?;
    decode(&text).map_err(invalid)
}

/// Reads the number in a file of `source`; `None` if there is no such file.
fn number(machine: &dyn Machine, source: &str, path: &str) -> Result<Option<u64>, Gap> {
    match read(machine, path, linerate_facts::parse::sysctl::number) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some).map_err(|error| unreadable(source, path, &error, "")),
    }
}

/// Makes an error for bytes that could not be decoded.
pub(crate) fn invalid(error: linerate_facts::parse::Malformed) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

// A tree that stands for a host is compiled here for the tests of this crate, and in those of others.
#[cfg(test)]
extern crate self as linerate_host;
