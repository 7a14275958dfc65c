//! Readings of the machine, changes of its settings, and its ports for management datagrams.
//!
//! Each source of readings has a file here. Every reading is a file under a root, or a query whose raw reply can be
//! captured and replayed. Readings access the machine only through [`Machine`], and [`linerate_facts::parse`] decodes
//! them. [`change`] changes settings that the user permitted, and undoes the changes; [`fabric`] sends and receives
//! management datagrams of InfiniBand. Payload is moved by another crate, `linerate-load`.
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
mod disk;
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

/// A query to the kernel, other than reading a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Query {
    /// Reads the link with this interface index and its statistics (`RTM_GETLINK`).
    Link(u32),
    /// Reads all links with their statistics (`RTM_GETLINK` dump).
    Links,
    /// Reads all queueing disciplines with their statistics (`RTM_GETQDISC` dump: the kernel has no request for the
    /// disciplines of one port).
    Qdiscs,
    /// Reads the classes of the queueing disciplines of the port with this index, with their statistics
    /// (`RTM_GETTCLASS` dump).
    Classes(u32),
    /// Reads all IP addresses of ports (`RTM_GETADDR` dump).
    Addresses,
    /// Reads the route to an address (`RTM_GETROUTE`).
    Route(Toward),
    /// Reads one property of the port with this index, from the generic netlink family `ethtool`.
    Ethtool(Ethtool, u32),
    /// Reads the queues of the port with this index (family `netdev`, `NETDEV_CMD_QUEUE_GET`).
    Queues(u32),
    /// Reads the pollers (NAPI) of the port with this index (family `netdev`, `NETDEV_CMD_NAPI_GET`).
    Napis(u32),
    /// Reads the driver of the port with this index (`struct ethtool_drvinfo`).
    Driver(u32),
    /// Reads the names and values of the driver's counters of the port with this index (`struct ethtool_gstrings`,
    /// then `struct ethtool_stats`).
    DriverCounters(u32),
    /// Reads all TCP connections of IPv4 sockets that may carry payload, of all programs (`SOCK_DIAG_BY_FAMILY` dump
    /// with `TCP_INFO`, `SO_MEMINFO` and the congestion control).
    ConnectionsV4,
    /// Reads all TCP connections of IPv6 sockets that may carry payload, including those to IPv4 addresses.
    ConnectionsV6,
    /// Reads one TCP connection. It fails if the connection has ended and another one has the same addresses.
    Connection(ConnectionId),
    /// Reads the clock ticks per second (`USER_HZ`), as a decimal number with a line end.
    TicksPerSec,
}

/// A file that stays open between readings, with a buffer: opening a file of /proc takes longer than reading it.
#[derive(Debug, Default)]
pub struct Kept {
    file: Option<OwnedFd>,
    text: Vec<u8>,
}

/// The machine, or a capture of a machine.
pub trait Machine: Send + Sync {
    /// Returns the content of a file by its absolute path, such as `/proc/stat`. A file of more than [`LIMIT`] bytes is
    /// an error, so that a truncated file is never mistaken for a complete one.
    fn file(&self, path: &str) -> io::Result<Vec<u8>>;
    /// Returns the first `most` bytes of a file, or the whole file if it is shorter: the rest of some files is slow to
    /// read.
    fn head(&self, path: &str, most: usize) -> io::Result<Vec<u8>> {
        let mut text = self.file(path)?;
        text.truncate(most);
        Ok(text)
    }
    /// Returns the part of a PCI function's configuration space that `pci_config::parse` uses: each register is slow to
    /// read.
    fn config(&self, path: &str) -> io::Result<Vec<u8>> {
        self.head(path, linerate_facts::parse::pci_config::LENGTH)
    }
    /// Returns the content of a small file that is read at each tick. `kept` keeps the file open; it must be used for
    /// one path only.
    fn reread<'a>(&self, path: &str, kept: &'a mut Kept) -> io::Result<&'a [u8]> {
        kept.text = self.file(path)?;
        Ok(&kept.text)
    }
    /// Returns the names in a directory, sorted.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    /// Returns the raw reply to a query: netlink messages, one after the other. If the kernel refuses the query, that
    /// is an error.
    fn query(&self, query: &Query) -> io::Result<Vec<u8>>;
    /// Passes the raw reply to a query to `each` in parts of whole messages. It is for replies that may be longer than
    /// [`LIMIT`] bytes on a busy host.
    fn parts(&self, query: &Query, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        each(&self.query(query)?);
        Ok(())
    }
    /// Returns the target of a symbolic link as it is written in the link.
    fn target(&self, path: &str) -> io::Result<String> {
        let why = format!("nothing here tells where {path} leads");
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }
    /// Writes the raw reply to a query about the socket `fd` to `into`, and returns its length. Each stream is queried
    /// at each tick, so a real machine must not allocate memory here.
    fn socket(&self, query: &SocketQuery, fd: BorrowedFd<'_>, into: &mut [u8])
    -> io::Result<usize>;
}

/// Makes a gap: what is missing, why, and what would help.
fn gap(what: &str, why: &str, hint: &str) -> Gap {
    Gap { what: what.to_owned(), why: why.to_owned(), hint: hint.to_owned() }
}

/// Makes the gap for `path`, which could not be read. If permission is missing, the hint is how to get it; otherwise it
/// is `hint`.
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

/// Reads the number in a file of `source`; `None` if the file does not exist.
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

// Tests of other crates include `change/tests/place.rs` too, so that it uses this crate by its name.
#[cfg(test)]
extern crate self as linerate_host;
