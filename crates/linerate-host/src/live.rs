//! The machine that this process runs on, or a directory tree with files of another machine.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use linerate_facts::parse::pci_config;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::net::Protocol;
use rustix::net::netlink::SOCK_DIAG;

use super::genetlink::Generic;
use super::netlink::Socket;
use super::{Kept, LIMIT, Machine, Query, SocketQuery, driver, sock_diag, socket};

/// Size of the buffer for a small file that is kept open, in bytes. A longer file is opened again for each reading.
const KEPT_ROOM: usize = 1024;

/// Files below a root directory and, if the root is `/`, queries to the kernel.
///
/// With another root, only files are read: queries are refused, because the running kernel is not that of the tree, and
/// links that lead out of the tree are not followed.
#[derive(Debug)]
pub struct Live {
    root: Option<OwnedFd>,
    netlink: Mutex<Option<Socket>>,
    generic: Mutex<Generic>,
    sock_diag: Mutex<Option<Socket>>,
}

impl Default for Live {
    fn default() -> Self {
        Self::new()
    }
}

impl Live {
    /// Makes a reader of this machine.
    pub fn new() -> Self {
        Self {
            root: None,
            netlink: Mutex::new(None),
            generic: Mutex::default(),
            sock_diag: Mutex::new(None),
        }
    }

    /// Makes a reader of the machine whose /proc and /sys are below `root`. Fails if `root` is not a directory.
    pub fn under(root: &Path) -> io::Result<Self> {
        if root == Path::new("/") {
            return Ok(Self::new());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(root, flags, Mode::empty())?;
        Ok(Self { root: Some(root), ..Self::new() })
    }

    fn open(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let mut flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
        if !flags.contains(OFlags::PATH) {
            // A directory tree from another machine may contain a pipe instead of a file; opening a pipe must not
            // block.
            flags |= OFlags::NONBLOCK;
        }
        let opened = match &self.root {
            None => rustix::fs::open(path, flags, Mode::empty()),
            Some(root) => {
                let inside = ResolveFlags::IN_ROOT;
                rustix::fs::openat2(root.as_fd(), path, flags, Mode::empty(), inside)
            }
        };
        Ok(opened?)
    }

    /// Opens a symbolic link itself, not its target.
    fn open_link(&self, path: &str) -> io::Result<OwnedFd> {
        self.open(path, OFlags::PATH | OFlags::NOFOLLOW)
    }

    /// Checks that queries are possible. They concern the running kernel, but files below another root belong to
    /// another machine.
    fn is_here(&self) -> io::Result<()> {
        if self.root.is_none() {
            return Ok(());
        }
        let why = "a directory tree contains no replies to kernel queries";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }
}

/// Sends a query through the socket in `slot`, which is opened if it is not open yet.
fn answer<T>(
    slot: &Mutex<Option<Socket>>,
    protocol: Option<Protocol>,
    ask: impl FnOnce(&mut Socket) -> io::Result<T>,
) -> io::Result<T> {
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    let socket = match &mut *slot {
        Some(socket) => socket,
        empty => empty.insert(Socket::open(protocol)?),
    };
    let reply = ask(socket);
    if reply.is_err() {
        // The rest of a failed reply must not be mistaken for the next reply.
        *slot = None;
    }
    reply
}

impl Machine for Live {
    fn file(&self, path: &str) -> io::Result<Vec<u8>> {
        let file = self.open(path, OFlags::empty())?;
        let mut text = Vec::with_capacity(4096);
        loop {
            let read = || rustix::io::read(&file, rustix::buffer::spare_capacity(&mut text));
            if rustix::io::retry_on_intr(read)? == 0 {
                return Ok(text);
            }
            if text.len() > LIMIT {
                let why = format!("more than {LIMIT} bytes");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
            if text.len() == text.capacity() {
                text.reserve(text.len());
            }
        }
    }

    fn reread<'a>(&self, path: &str, kept: &'a mut Kept) -> io::Result<&'a [u8]> {
        let Kept { file, text } = kept;
        let file = match file {
            Some(file) => file,
            closed => closed.insert(self.open(path, OFlags::empty())?),
        };
        text.resize(KEPT_ROOM, 0);
        let read = || rustix::io::pread(&*file, &mut *text, 0);
        let length = rustix::io::retry_on_intr(read)?;
        if length == text.len() {
            // The buffer is full, so the file may be longer; the whole file is read again.
            *text = self.file(path)?;
            return Ok(text);
        }
        Ok(&text[..length])
    }

    fn head(&self, path: &str, most: usize) -> io::Result<Vec<u8>> {
        let file = self.open(path, OFlags::empty())?;
        let mut text = vec![0; most];
        let mut length = 0;
        while length < most {
            let read = || rustix::io::read(&file, &mut text[length..]);
            match rustix::io::retry_on_intr(read)? {
                0 => break,
                more => length += more,
            }
        }
        text.truncate(length);
        Ok(text)
    }

    fn config(&self, path: &str) -> io::Result<Vec<u8>> {
        if self.root.is_some() {
            // In a directory tree, the configuration space is a plain file and may be shorter than a header.
            return self.head(path, pci_config::LENGTH);
        }
        let file = self.open(path, OFlags::empty())?;
        pci_config::gather(|at, into| {
            let read = || rustix::io::pread(&file, &mut *into, at as u64);
            Ok(rustix::io::retry_on_intr(read)?)
        })
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let directory = self.open(path, OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn query(&self, query: &Query) -> io::Result<Vec<u8>> {
        self.is_here()?;
        match query {
            Query::TicksPerSec => {
                let ticks = rustix::param::clock_ticks_per_second();
                return Ok(format!("{ticks}\n").into_bytes());
            }
            Query::Driver(index) => return driver::info(*index),
            Query::DriverCounters(index) => return driver::counters(*index),
            Query::Ethtool(..) | Query::Queues(_) | Query::Napis(_) => {
                let mut generic = self.generic.lock().unwrap_or_else(PoisonError::into_inner);
                return generic.ask(query);
            }
            Query::ConnectionsV4 | Query::ConnectionsV6 | Query::Connection(_) => {
                let request = sock_diag::request(query)?;
                return answer(&self.sock_diag, Some(SOCK_DIAG), |s| s.exchange(&request));
            }
            Query::Link(_)
            | Query::Links
            | Query::Addresses
            | Query::Qdiscs
            | Query::Classes(_)
            | Query::Route(_) => {}
        }
        answer(&self.netlink, None, |socket| socket.ask(query))
    }

    fn parts(&self, query: &Query, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        if !matches!(query, Query::ConnectionsV4 | Query::ConnectionsV6) {
            each(&self.query(query)?);
            return Ok(());
        }
        self.is_here()?;
        let request = sock_diag::request(query)?;
        answer(&self.sock_diag, Some(SOCK_DIAG), |s| s.stream(&request, each))
    }

    fn target(&self, path: &str) -> io::Result<String> {
        let target = match &self.root {
            // Reading a link needs one call here; a host with many connections has tens of thousands of links.
            None => rustix::fs::readlink(path, Vec::new())?,
            Some(_) => rustix::fs::readlinkat(self.open_link(path)?, "", Vec::new())?,
        };
        Ok(target.to_string_lossy().into_owned())
    }

    // Sockets belong to this process, so queries about them work with any root.
    fn socket(
        &self,
        query: &SocketQuery,
        fd: BorrowedFd<'_>,
        into: &mut [u8],
    ) -> io::Result<usize> {
        socket::ask(query.ask, fd, into)
    }
}
