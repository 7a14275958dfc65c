//! The `ethtool` ioctl: who drives a port and what its driver counts, which netlink does not have, and
//! the few switches of a port that a trial may turn. Replies are given raw, as linux/ethtool.h
//! describes them.

#![expect(unsafe_code, reason = "an ioctl that rustix does not have")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `SIOCETHTOOL`, linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const GET_DRIVER: u32 = 0x03;
const GET_STRINGS: u32 = 0x1b;
const GET_STATS: u32 = 0x1d;
/// `ETH_SS_STATS`: the names of the driver's counters.
const STATS: u32 = 1;
/// Size of `struct ethtool_drvinfo`, and where it tells how many counters there are.
const DRIVER_BYTES: usize = 196;
const DRIVER_STATS: usize = 180;
/// Bytes of a counter's name (`ETH_GSTRING_LEN`).
const NAME_BYTES: usize = 32;
/// More counters than any driver has; a number above it is not believed.
const MOST: usize = 1 << 14;
/// The kernel writes as many counters as the driver has *now*, whatever was asked for: there is
/// room for that many more than it had a moment ago.
const SPARE: usize = MOST;

/// A switch of a port: the commands that read and set it (`ETHTOOL_GTSO`, `ETHTOOL_STSO` ...).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    get: u32,
    set: u32,
}

impl Switch {
    /// TCP segmentation offload.
    pub const TSO: Self = Self {
        get: 0x1e,
        set: 0x1f,
    };
    /// Generic segmentation offload.
    pub const GSO: Self = Self {
        get: 0x23,
        set: 0x24,
    };
    /// Generic receive offload.
    pub const GRO: Self = Self {
        get: 0x2b,
        set: 0x2c,
    };
}

/// Whether a switch of a port is on.
pub fn is_on(fd: BorrowedFd<'_>, port: &str, switch: Switch) -> io::Result<bool> {
    let mut value = request(&[switch.get], 8);
    ask(fd, port, &mut value)?;
    Ok(word(&value, 4) != 0)
}

/// Turns a switch of a port. The driver may refuse without saying so: read it again.
pub fn turn(fd: BorrowedFd<'_>, port: &str, switch: Switch, on: bool) -> io::Result<()> {
    ask(fd, port, &mut request(&[switch.set, u32::from(on)], 8))
}

/// `struct ethtool_drvinfo` of a port.
pub fn driver(fd: BorrowedFd<'_>, port: &str) -> io::Result<Vec<u8>> {
    let mut reply = request(&[GET_DRIVER], DRIVER_BYTES);
    ask(fd, port, &mut reply)?;
    Ok(reply)
}

/// `struct ethtool_gstrings` with the names of the driver's counters, and `struct ethtool_stats`
/// with their values, one after the other.
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

/// `size` bytes that start with these words.
fn request(words: &[u32], size: usize) -> Vec<u8> {
    let mut buffer: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    buffer.resize(size, 0);
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
    // The last byte stays zero: it ends the name.
    let room = request.ifr_name.len() - 1;
    if port.len() > room {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (into, byte) in request.ifr_name.iter_mut().zip(port.bytes()) {
        *into = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = buffer.as_mut_ptr().cast();
    // SAFETY: the descriptor is open for as long as it is borrowed; `request` and the buffer that
    // it points to live through the call. Each command used here reads or writes a structure of fixed size,
    // or one item for each of the driver's counters: `counters` leaves room for `SPARE` more of
    // them than the driver said that it had, as many as any driver has in all.
    let rc = unsafe { libc::ioctl(fd.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::{Switch, driver, is_on, turn};

    #[test]
    fn a_port_that_is_not_there_is_an_error() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(driver(socket.as_fd(), "no-such-port").is_err());
        assert!(driver(socket.as_fd(), "a-name-that-is-too-long").is_err());
        for switch in [Switch::TSO, Switch::GSO, Switch::GRO] {
            assert!(is_on(socket.as_fd(), "no-such-port", switch).is_err());
            assert!(turn(socket.as_fd(), "no-such-port", switch, true).is_err());
        }
    }
}
