//! Readings of the machine. One source is one file here.
//!
//! Every reading is a file under a root or a query whose raw reply can be captured and replayed:
//! nothing here looks at the machine but through [`Machine`].

use std::io;
use std::net::IpAddr;

/// A question to the kernel that is not a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Query {
    /// All links with their statistics (`RTM_GETLINK` dump).
    Links,
    /// All queueing disciplines with their statistics (`RTM_GETQDISC` dump).
    Qdiscs,
    /// The route to an address (`RTM_GETROUTE`).
    Route(IpAddr),
}

/// The machine, or a capture of one.
pub trait Machine: Send + Sync {
    /// Contents of a file, by its absolute path: `/proc/stat`. At most 4 MiB are read.
    fn file(&self, path: &str) -> io::Result<Vec<u8>>;
    /// Names in a directory, sorted.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    /// The raw reply to a query: netlink messages, one after the other.
    fn query(&self, query: &Query) -> io::Result<Vec<u8>>;
}
