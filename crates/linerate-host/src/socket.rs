//! Queries to the kernel about a socket of this process.

use std::io;
use std::os::fd::BorrowedFd;

use linerate_facts::metric::Metric;
use linerate_facts::parse::tcp_info;
use linerate_sys::socket;
use serde::{Deserialize, Serialize};

/// Kinds of queries about a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SocketAsk {
    TcpInfo,
    /// Memory of the socket (`SO_MEMINFO`).
    MemInfo,
    /// Number of received bytes that are unread (`SIOCINQ`), as eight bytes.
    Unread,
    /// CPU that received the last packet (`SO_INCOMING_CPU`).
    IncomingCpu,
}

/// A query about the socket of one stream. A capture identifies it by set and stream, because file descriptors differ
/// between runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SocketQuery {
    /// Number of the stream's set.
    pub set: u32,
    /// Number of the stream in the set.
    pub stream: u32,
    /// What is queried.
    pub ask: SocketAsk,
}

/// Returns the current value of one metric of `TCP_INFO`; `None` if the kernel does not report it.
pub fn of_tcp(fd: BorrowedFd<'_>, metric: Metric) -> Option<u64> {
    let mut room = [0; tcp_info::ROOM];
    let got = socket::tcp_info(fd, &mut room).ok()?;
    value(tcp_info::values(&room[..got]), metric)
}

fn value(mut all: impl Iterator<Item = (Metric, Option<i64>)>, metric: Metric) -> Option<u64> {
    let (_, value) = all.find(|(m, _)| m.name == metric.name)?;
    u64::try_from(value?).ok()
}

/// Queries the socket, writes the kernel's raw reply to `into` and returns its length.
pub(super) fn ask(ask: SocketAsk, fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    match ask {
        SocketAsk::TcpInfo => socket::tcp_info(fd, into),
        SocketAsk::MemInfo => socket::mem_info(fd, into),
        SocketAsk::IncomingCpu => socket::incoming_cpu(fd, into),
        SocketAsk::Unread => {
            let raw = socket::unread(fd)?.to_ne_bytes();
            let room = into.first_chunk_mut().ok_or(io::ErrorKind::InvalidInput)?;
            *room = raw;
            Ok(raw.len())
        }
    }
}
