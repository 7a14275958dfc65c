//! Datagram sockets: functions that send and receive in batches, and socket options that save work in the kernel.
//!
//! Calls return the kernel's result; nothing is retried here.

#![expect(
    unsafe_code,
    reason = "recvmmsg, and recvmsg with any control data, which rustix does not have"
)]

use std::array;
use std::ffi::c_int;
use std::io::{self, IoSlice};
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{
    AddressFamily, MMsgHdr, RecvFlags, SendAncillaryBuffer, SendFlags, getsockname, recv, sendmmsg,
};

use crate::socket::set;

/// Value of the constant `UDP_SEGMENT` (Linux 4.18 or later), from linux/udp.h.
const UDP_SEGMENT: c_int = 103;
/// Value of the constant `UDP_GRO` (Linux 5.0 or later), from linux/udp.h.
const UDP_GRO: c_int = 104;
/// Value of the constant `IP_RECVERR`, from ip(7).
const IP_RECVERR: c_int = 11;
/// Value of the constant `IPV6_RECVERR`, from ipv6(7).
const IPV6_RECVERR: c_int = 25;

/// Largest number of messages that one call sends or receives.
pub const BATCH: usize = 64;
/// Largest number of datagrams into which every kernel with segmentation can segment one message.
//= include/linux/udp.h, UDP_MAX_SEGMENTS: 64, and 128 since 6.9
pub const SEGMENTS: usize = 64;
/// Size of the buffer for each received message, in bytes. No message is longer, even if datagrams were coalesced.
const ROOM: usize = 65_536;
/// Distance between the starts of two buffers, in bytes. With
/// a power of two, all headers would share a few cache lines.
const STRIDE: usize = ROOM + 4096 + 192;

/// Makes the kernel segment each message that is sent into datagrams
/// of `bytes` bytes, as late as possible; zero disables this.
pub fn set_segment(fd: BorrowedFd<'_>, bytes: u16) -> io::Result<()> {
    set(fd, libc::IPPROTO_UDP, UDP_SEGMENT, c_int::from(bytes))
}

/// Permits the kernel to coalesce several datagrams of one sender into one received message.
pub fn set_joined(fd: BorrowedFd<'_>) -> io::Result<()> {
    set(fd, libc::IPPROTO_UDP, UDP_GRO, 1)
}

/// Makes a send fail with ENOBUFS if the queue of this host's port is
/// full. Without this, the kernel drops the datagram and reports success.
pub fn set_errors(fd: BorrowedFd<'_>) -> io::Result<()> {
    if v6(fd)? {
        set(fd, libc::IPPROTO_IPV6, IPV6_RECVERR, 1)
    } else {
        set(fd, libc::IPPROTO_IP, IP_RECVERR, 1)
    }
}

/// Makes the kernel report when it received each datagram (`SO_TIMESTAMPNS`), by the wall clock.
pub fn set_stamps(fd: BorrowedFd<'_>) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Receives a datagram into `into`, truncated if it is longer, and its control messages into `control`. Returns both
/// lengths. Without `wait`, it returns only a datagram that has already arrived.
pub fn receive_reported(
    fd: BorrowedFd<'_>,
    into: &mut [u8],
    control: &mut [u8],
    wait: bool,
) -> io::Result<(usize, usize)> {
    let mut slice = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all zeroes are a valid message header, without a name, buffers or control messages.
    let mut head: libc::msghdr = unsafe { mem::zeroed() };
    head.msg_iov = &raw mut slice;
    head.msg_iovlen = 1;
    head.msg_control = control.as_mut_ptr().cast();
    head.msg_controllen = control.len() as _;
    let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
    // SAFETY: the descriptor is open for as long as it is borrowed. The header points to one slice and to
    // control data, both with the stated lengths and borrowed mutably. The kernel writes no more than that,
    // sets the length of control data to what it wrote, and keeps no reference (recvmsg(2)).
    let got = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut head, flags) };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    let reported = (head.msg_controllen as usize).min(control.len());
    Ok((got.min(into.len()), reported))
}

/// Discards the ICMP errors queued at a socket that receives them ([`set_errors`]), because they occupy the receive
/// buffer.
pub fn drain_errors(fd: BorrowedFd<'_>) -> usize {
    let flags = RecvFlags::ERRQUEUE | RecvFlags::DONTWAIT;
    (0..BATCH).take_while(|_| recv(fd, &mut [0; 8], flags).is_ok()).count()
}

/// Sets whether datagrams may be sent in fragments. If not, the
/// kernel refuses a datagram that is too large for the path.
pub fn set_fragments(fd: BorrowedFd<'_>, may: bool) -> io::Result<()> {
    if v6(fd)? {
        let how = if may { Ipv6PathMtuDiscovery::WANT } else { Ipv6PathMtuDiscovery::DO };
        return Ok(sockopt::set_ipv6_mtu_discover(fd, how)?);
    }
    let how = if may { Ipv4PathMtuDiscovery::WANT } else { Ipv4PathMtuDiscovery::DO };
    Ok(sockopt::set_ip_mtu_discover(fd, how)?)
}

/// Returns the payload of the largest datagram that a connected socket can
/// send in one packet, in bytes, as far as the MTU of its route is known.
pub fn fits(fd: BorrowedFd<'_>) -> io::Result<u32> {
    // Sizes of the IP and the UDP header, without options.
    let (mtu, headers) =
        if v6(fd)? { (sockopt::ipv6_mtu(fd)?, 40 + 8) } else { (sockopt::ip_mtu(fd)?, 20 + 8) };
    Ok(mtu.saturating_sub(headers))
}

fn v6(fd: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(getsockname(fd)?.address_family() == AddressFamily::INET6)
}

/// Sends at most [`BATCH`] messages in one call; returns how many were sent.
#[expect(clippy::missing_panics_doc, reason = "there are as many slices as headers")]
pub fn send_batch<'a>(
    fd: BorrowedFd<'_>,
    messages: impl Iterator<Item = &'a [u8]>,
) -> io::Result<usize> {
    let mut slices = [[IoSlice::new(&[])]; BATCH];
    let mut count = 0;
    for (slot, message) in slices.iter_mut().zip(messages) {
        *slot = [IoSlice::new(message)];
        count += 1;
    }
    let mut controls: [_; BATCH] = array::from_fn(|_| SendAncillaryBuffer::default());
    let mut parts = slices.iter().zip(&mut controls);
    let mut headers: [_; BATCH] = array::from_fn(|_| {
        let (slice, control) = parts.next().expect("as many slices as headers");
        MMsgHdr::new(slice, control)
    });
    Ok(sendmmsg(fd, &mut headers[..count], SendFlags::NOSIGNAL)?)
}

/// Buffers for a batch of received messages. The thread that uses the buffers allocates them.
#[derive(Debug)]
pub struct Inbox {
    rooms: Vec<u8>,
    lengths: [usize; BATCH],
    count: usize,
}

impl Inbox {
    /// Returns the size of the buffers for `messages` messages, at most [`BATCH`], in bytes.
    pub fn room(messages: usize) -> usize {
        messages.clamp(1, BATCH) * STRIDE
    }

    /// Makes buffers for `messages` messages, at most [`BATCH`]. Each page is allocated when it is first used.
    pub fn new(messages: usize) -> Self {
        Self { rooms: vec![0; Self::room(messages)], lengths: [0; BATCH], count: 0 }
    }

    /// Receives the available messages, and returns their number. The call waits only for the first message, and at
    /// most for the socket's `SO_RCVTIMEO`.
    pub fn receive(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        self.count = 0;
        // SAFETY: all bits zero are a valid iovec and a valid mmsghdr: null pointers and lengths of
        // zero, which the kernel does not follow.
        let (mut slices, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { mem::zeroed() };
        let mut rooms = 0;
        for (room, (slice, header)) in
            self.rooms.chunks_exact_mut(STRIDE).zip(slices.iter_mut().zip(&mut headers))
        {
            slice.iov_base = room.as_mut_ptr().cast();
            slice.iov_len = ROOM;
            header.msg_hdr.msg_iov = slice;
            header.msg_hdr.msg_iovlen = 1;
            rooms += 1;
        }
        // SAFETY: the descriptor is open for as long as it is borrowed. Each of the first `rooms` headers
        // points to one slice that outlives the call, and the slice to ROOM bytes of its own room, which is
        // borrowed mutably; names and control data are null. The kernel writes there and into the headers, and
        // keeps no reference (recvmmsg(2)).
        let got = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                headers.as_mut_ptr(),
                rooms,
                libc::MSG_WAITFORONE,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        self.count = count.min(rooms as usize);
        for (length, header) in self.lengths.iter_mut().zip(&headers[..self.count]) {
            *length = (header.msg_len as usize).min(ROOM);
        }
        Ok(self.count)
    }

    /// Returns the messages that the last call received, in order.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        let rooms = self.rooms.chunks_exact(STRIDE);
        let full = rooms.zip(&self.lengths).take(self.count);
        full.map(|(room, length)| &room[..*length])
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;
    use crate::socket;

    fn pair(host: &str) -> (UdpSocket, UdpSocket) {
        let near = UdpSocket::bind((host, 0)).unwrap();
        let far = UdpSocket::bind((host, 0)).unwrap();
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        socket::set_timeouts(far.as_fd(), Duration::from_millis(50)).unwrap();
        (near, far)
    }

    /// Receives messages until the socket has none for its timeout; returns all of them.
    fn drain(far: &UdpSocket, inbox: &mut Inbox) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while inbox.receive(far.as_fd()).is_ok() {
            all.extend(inbox.messages().map(<[u8]>::to_vec));
        }
        all
    }

    #[test]
    fn a_batch_arrives_in_order_however_small_the_inbox() {
        let messages: Vec<Vec<u8>> = (0..100u8).map(|n| vec![n; usize::from(n) * 9]).collect();
        for room in [1, 7, BATCH, BATCH + 9] {
            let (near, far) = pair("127.0.0.1");
            let sent = send_batch(near.as_fd(), messages.iter().map(Vec::as_slice)).unwrap();
            assert_eq!(sent, BATCH, "more than a batch is left to the next call");
            let mut inbox = Inbox::new(room);
            assert_eq!(inbox.rooms.len(), Inbox::room(room));
            assert_eq!(drain(&far, &mut inbox), messages[..BATCH]);
            assert_eq!(inbox.messages().count(), 0, "nothing came last");
        }
    }

    #[test]
    fn one_message_becomes_many_datagrams_and_may_come_joined() {
        let (near, far) = pair("127.0.0.1");
        set_segment(near.as_fd(), 100).unwrap();
        let bytes: Vec<u8> = (0..SEGMENTS * 100).map(|at| (at / 100) as u8).collect();
        let mut inbox = Inbox::new(4);
        assert_eq!(send_batch(near.as_fd(), [&bytes[..]].into_iter()).unwrap(), 1);
        let apart = drain(&far, &mut inbox);
        assert_eq!(apart.len(), SEGMENTS);
        assert!(apart.iter().all(|d| d.len() == 100));
        set_joined(far.as_fd()).unwrap();
        send_batch(near.as_fd(), [&bytes[..]].into_iter()).unwrap();
        assert_eq!(drain(&far, &mut inbox).concat(), bytes);
        set_segment(near.as_fd(), 0).unwrap();
        send_batch(near.as_fd(), [&bytes[..]].into_iter()).unwrap();
        assert_eq!(drain(&far, &mut inbox), [bytes]);
    }

    #[test]
    fn a_datagram_comes_with_the_time_of_its_receipt_where_that_is_asked_for() {
        let (near, far) = pair("127.0.0.1");
        let (mut room, mut control) = ([0; 64], [0; 64]);
        near.send(b"one").unwrap();
        let got = receive_reported(far.as_fd(), &mut room, &mut control, true).unwrap();
        assert_eq!((got, &room[..3]), ((3, 0), &b"one"[..]));
        set_stamps(far.as_fd()).unwrap();
        near.send(&[7; 100]).unwrap();
        let (got, reported) = receive_reported(far.as_fd(), &mut room, &mut control, true).unwrap();
        assert_eq!(got, room.len(), "the rest is gone");
        assert!(reported >= 32, "{reported}");
        let none = receive_reported(far.as_fd(), &mut room, &mut control, false).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn what_the_path_says_is_told_once_and_taken() {
        let (near, far) = pair("127.0.0.1");
        set_errors(near.as_fd()).unwrap();
        assert_eq!(drain_errors(near.as_fd()), 0);
        drop(far);
        near.send(&[1]).unwrap();
        let reported = near.send(&[2]).unwrap_err();
        assert_eq!(reported.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(drain_errors(near.as_fd()), 1);
        assert_eq!(drain_errors(near.as_fd()), 0);
    }

    #[test]
    fn the_longest_datagram_fits_a_room() {
        let (near, far) = pair("127.0.0.1");
        near.send(&vec![7; 65_507]).unwrap();
        let all = drain(&far, &mut Inbox::new(1));
        assert_eq!(all, [vec![7; 65_507]]);
    }

    #[test]
    fn what_fits_goes_in_one_packet_and_more_is_refused_unless_allowed() {
        let mut hosts = vec!["127.0.0.1"];
        // If the kernel has no IPv6, only IPv4 is tested.
        hosts.extend(UdpSocket::bind(("::1", 0)).is_ok().then_some("::1"));
        for host in hosts {
            let (near, _far) = pair(host);
            let fits = fits(near.as_fd()).unwrap() as usize;
            assert!(fits > 1200, "{fits}");
            set_errors(near.as_fd()).unwrap();
            set_fragments(near.as_fd(), false).unwrap();
            let bytes = vec![1; fits + 1];
            let one = |bytes| send_batch(near.as_fd(), [bytes].into_iter());
            // On loopback, a packet may be longer than any datagram.
            if fits < 65_507 {
                let refused = one(&bytes).unwrap_err();
                assert_eq!(refused.raw_os_error(), Some(libc::EMSGSIZE));
            }
            set_fragments(near.as_fd(), true).unwrap();
            assert_eq!(one(&bytes[..fits.min(65_507)]).unwrap(), 1);
        }
    }
}
