//! The `ethtool` ioctl: reads a port's driver and counters, which netlink does not report, and switches the few
//! settings of a port that a trial may change. Replies are returned raw, as linux/ethtool.h describes them.

#![expect(unsafe_code, reason = "an ioctl that rustix does not have")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Value of the constant `SIOCETHTOOL`, from linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const GET_DRIVER: u32 = 0x03;
const GET_STRINGS: u32 = 0x1b;
const GET_STATS: u32 = 0x1d;
/// `ETH_SS_STATS`: requests the names of the driver's counters.
const STATS: u32 = 1;
/// Size of `struct ethtool_drvinfo` in bytes, and the offset of the number of counters in it.
const DRIVER_BYTES: usize = 196;
const DRIVER_STATS: usize = 180;
/// Size of a counter's name in bytes (`ETH_GSTRING_LEN`).
const NAME_BYTES: usize = 32;
/// Largest plausible number of counters, more than any driver has. A higher number is rejected.
const MOST: usize = 1 << 14;
/// Additional room for counters: the kernel writes as many as the driver has *now*, whatever number was requested,
/// and there may be more than a moment ago.
const SPARE: usize = MOST;

/// Work on groups of segments: a port does it, or the kernel in place of the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// TCP segmentation offload: the port divides the groups that are sent.
    Tso,
    /// Generic segmentation offload: the kernel divides a large packet into segments just before it passes them to the driver.
    Gso,
    /// Generic receive offload: the kernel joins received segments to groups.
    Gro,
}

impl Offload {
    /// All offloads that this module can switch.
    pub const ALL: [Self; 3] = [Self::Tso, Self::Gso, Self::Gro];

    /// Returns the commands that read and switch the offload: `ETHTOOL_GTSO`, `ETHTOOL_STSO` and so on.
    const fn commands(self) -> (u32, u32) {
        match self {
            Self::Tso => (0x1e, 0x1f),
            Self::Gso => (0x23, 0x24),
            Self::Gro => (0x2b, 0x2c),
        }
    }
}

/// Returns whether an offload of a port is enabled.
pub fn offload(fd: BorrowedFd<'_>, port: &str, which: Offload) -> io::Result<bool> {
    // The request is struct ethtool_value: the command, and the value.
    let mut reply = request(&[which.commands().0], 8);
    ask(fd, port, &mut reply)?;
    Ok(word(&reply, 4) != 0)
}

/// Switches an offload of a port. This needs `CAP_NET_ADMIN` in the port's network namespace. The driver may refuse
/// without an error, so the caller must read the offload again.
pub fn set_offload(fd: BorrowedFd<'_>, port: &str, which: Offload, on: bool) -> io::Result<()> {
    ask(fd, port, &mut request(&[which.commands().1, u32::from(on)], 8))
}

/// Returns the bytes of `struct ethtool_drvinfo` for a port.
pub fn driver(fd: BorrowedFd<'_>, port: &str) -> io::Result<Vec<u8>> {
    let mut reply = request(&[GET_DRIVER], DRIVER_BYTES);
    ask(fd, port, &mut reply)?;
    Ok(reply)
}

/// Returns the bytes of `struct ethtool_gstrings` with the names of the driver's counters, followed by those of
/// `struct ethtool_stats` with their values.
pub fn counters(fd: BorrowedFd<'_>, port: &str) -> io::Result<Vec<u8>> {
    let count = word(&driver(fd, port)?, DRIVER_STATS);
    if count > MOST {
        let why = format!("the driver claims to have {count} counters");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut reply = request(&[GET_STRINGS, STATS], 12 + (count + SPARE) * NAME_BYTES);
    ask(fd, port, &mut reply)?;
    reply.truncate(12 + word(&reply, 8).saturating_mul(NAME_BYTES));
    let mut values = request(&[GET_STATS], 8 + (count + SPARE) * 8);
    ask(fd, port, &mut values)?;
    values.truncate(8 + word(&values, 4).saturating_mul(8));
    reply.append(&mut values);
    Ok(reply)
}

/// Makes a request of `size` bytes that starts with `words`. The other bytes are zero. The allocator gets them from the
/// kernel as zero pages, so that unused pages of a large buffer are never accessed.
fn request(words: &[u32], size: usize) -> Vec<u8> {
    let mut buffer = vec![0; size];
    for (bytes, word) in buffer.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
    buffer
}

fn word(bytes: &[u8], offset: usize) -> usize {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_ne_bytes(word) as usize
}

fn ask(fd: BorrowedFd<'_>, port: &str, buffer: &mut [u8]) -> io::Result<()> {
    // SAFETY: all zeros are a valid `ifreq`: an empty name and a null pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte of the name stays zero, because it ends the name.
    let room = request.ifr_name.len() - 1;
    if port.len() > room {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (into, byte) in request.ifr_name.iter_mut().zip(port.bytes()) {
        *into = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = buffer.as_mut_ptr().cast();
    // SAFETY: the descriptor is open for as long as it is borrowed; `request` and the buffer that it points to
    // live through the call. Each command used here reads or writes a structure of fixed size, or one item for
    // each of the driver's counters: `counters` leaves room for `SPARE` more counters than the driver reported,
    // more than any driver has.
    let rc = unsafe { libc::ioctl(fd.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::{Offload, driver, offload, set_offload};

    #[test]
    fn a_port_that_is_not_there_is_an_error() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(driver(socket.as_fd(), "no-such-port").is_err());
        assert!(driver(socket.as_fd(), "a-name-that-is-too-long").is_err());
        for which in Offload::ALL {
            assert!(offload(socket.as_fd(), "no-such-port", which).is_err());
            assert!(set_offload(socket.as_fd(), "no-such-port", which, true).is_err());
        }
    }
}
