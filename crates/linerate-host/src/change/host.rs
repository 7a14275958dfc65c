//! Reads and writes the settings of this host, and distinguishes this host from others.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use linerate_plan::change::{Access, Entry, Offload, SettingRow};
use linerate_sys::ethtool;
use linerate_sys::socket::network_cookie;

use super::{queue, spread};

/// Longest text of a setting, in bytes: three numbers, or a mask of CPUs.
const TEXT_MAX: u64 = 4096;

/// This host, or a directory tree that represents one.
#[derive(Debug, Clone)]
pub(super) struct Host {
    root: PathBuf,
    /// Boot id of the kernel, which changes at each boot.
    pub(super) boot: String,
    /// Identifier of the network namespace, from its cookie or its inode.
    pub network: String,
}

impl Host {
    /// Makes the host below `root`, which is `/` except in tests.
    pub(super) fn below(root: &Path) -> io::Result<Self> {
        let boot = text(&root.join("proc/sys/kernel/random/boot_id"))?;
        Ok(Self { root: root.to_owned(), boot: boot.trim().to_owned(), network: network()? })
    }

    /// Returns whether an entry belongs to this host, and not to an earlier boot or another network namespace.
    pub(super) fn is_of(&self, entry: &Entry) -> bool {
        entry.boot == self.boot && entry.network == self.network
    }

    /// Checks whether this process may write a setting; if not, returns the error of the system call.
    pub(super) fn may_write(&self, row: &SettingRow) -> io::Result<()> {
        match row.access {
            Access::Sysctl(name, _) => {
                let opened = OpenOptions::new().write(true).open(self.path(name));
                opened.map(drop)
            }
            // Changing the port needs the same privilege as opening this file, and opening it changes nothing.
            Access::Offloads(_) | Access::Limit(_) | Access::Spread => {
                let path = self.path("net.ipv4.tcp_rmem");
                OpenOptions::new().write(true).open(path).map(drop)
            }
        }
    }

    /// Reads the numbers that a setting consists of.
    pub(super) fn read(&self, row: &SettingRow, port: &str) -> io::Result<Vec<u64>> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "not the numbers expected");
        match row.access {
            Access::Sysctl(name, count) => {
                let text = text(&self.path(name))?;
                let numbers: Result<Vec<u64>, _> =
                    text.split_whitespace().map(str::parse).collect();
                let numbers = numbers.map_err(|_| invalid())?;
                (numbers.len() == count).then_some(numbers).ok_or_else(invalid)
            }
            Access::Offloads(offloads) => {
                let socket = socket()?;
                let is_on =
                    |offload: &Offload| ethtool::offload(socket.as_fd(), port, switch(*offload));
                offloads.iter().map(|o| Ok(u64::from(is_on(o)?))).collect()
            }
            Access::Limit(queue) => queue::read(queue, port),
            Access::Spread => spread::read(&spread::folder(&self.root, port)?),
        }
    }

    /// Writes `numbers` to a setting. The kernel may adjust them, so the caller must read the result.
    pub(super) fn write(&self, row: &SettingRow, port: &str, numbers: &[u64]) -> io::Result<()> {
        match row.access {
            Access::Sysctl(name, _) => {
                let mut file =
                    OpenOptions::new().write(true).truncate(true).open(self.path(name))?;
                // The text is written in one call because the kernel treats each write as a whole value.
                file.write_all(format!("{}\n", row.words(numbers)).as_bytes())
            }
            Access::Offloads(offloads) => {
                let socket = socket()?;
                offloads.iter().zip(numbers).try_for_each(|(offload, n)| {
                    ethtool::set_offload(socket.as_fd(), port, switch(*offload), *n != 0)
                })
            }
            Access::Limit(queue) => queue::write(queue, port, numbers),
            Access::Spread => spread::write(&spread::folder(&self.root, port)?, numbers),
        }
    }

    fn path(&self, sysctl: &str) -> PathBuf {
        self.root.join("proc/sys").join(sysctl.replace('.', "/"))
    }
}

pub(super) fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = OpenOptions::new().read(true).open(path)?;
    file.take(TEXT_MAX).read_to_string(&mut text)?;
    Ok(text)
}

pub(super) fn socket() -> io::Result<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .or_else(|_| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))
}

/// Identifies the network namespace of this process: by its cookie or, before Linux 5.14, by its inode number, which a
/// later namespace may reuse.
fn network() -> io::Result<String> {
    let cookie = socket().and_then(|socket| network_cookie(socket.as_fd()));
    match cookie {
        Ok(cookie) => Ok(format!("cookie-{cookie}")),
        Err(_) => Ok(format!("inode-{}", std::fs::metadata("/proc/self/ns/net")?.ino())),
    }
}

fn switch(offload: Offload) -> ethtool::Offload {
    match offload {
        Offload::Tso => ethtool::Offload::Tso,
        Offload::Gso => ethtool::Offload::Gso,
        Offload::Gro => ethtool::Offload::Gro,
    }
}
