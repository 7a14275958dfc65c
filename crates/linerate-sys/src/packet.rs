//! Whole Ethernet frames of a port: received through a ring shared with the kernel, and sent.
//!
//! Frames carry the kernel's offload header (`PACKET_VNET_HDR`), so that a group of segments
//! passes as one, with its checksum still to be filled in.
#![expect(unsafe_code, reason = "packet sockets and their shared ring")]

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::net::SendFlags;

/// Size of the offload header before each frame, in bytes.
pub const OFFLOAD_HEADER: usize = 10;

/// Size of a block of the ring, in bytes; the kernel requires whole pages.
const BLOCK: usize = 1 << 20;
/// Frames in a block.
const IN_BLOCK: usize = 15;
/// Size of a slot for one frame, in bytes: a group of 64 KiB with headers, and the kernel's header.
const SLOT: usize = BLOCK / IN_BLOCK / 16 * 16;
/// Blocks of the ring.
const BLOCKS: usize = 32;
/// Frames in the ring.
const SLOTS: usize = IN_BLOCK * BLOCKS;

/// A frame that was received.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The offload header, followed by the frame.
    pub bytes: &'a [u8],
    /// Time of arrival since 1970, on the real-time clock.
    pub arrived: Duration,
    /// Whether the end of the frame was cut off.
    pub cut: bool,
}

/// A packet socket on one port.
#[derive(Debug)]
pub struct PacketPort {
    socket: OwnedFd,
    ring: NonNull<u8>,
    /// Position of the next frame; `None` while that frame is borrowed.
    next: Cell<Option<usize>>,
}

impl PacketPort {
    /// Opens the port with this number in the thread's network namespace. Needs `CAP_NET_RAW` over that namespace.
    /// Frames that leave through the port are not received.
    pub fn open(index: u32) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: creates a descriptor; protocol 0 makes it receive nothing until it is bound.
        let raw = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` was just made and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        set(&socket, libc::PACKET_VERSION, &libc::tpacket_versions::TPACKET_V2)?;
        set(&socket, libc::PACKET_VNET_HDR, &1_i32)?;
        set(&socket, libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: SLOT as u32,
            tp_frame_nr: SLOTS as u32,
        };
        set(&socket, libc::PACKET_RX_RING, &request)?;
        let ring = map(&socket)?;
        let port = Self { socket, ring, next: Cell::new(Some(0)) };
        port.bind(index)?;
        Ok(port)
    }

    fn bind(&self, index: u32) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        // SAFETY: `address` is a whole `sockaddr_ll` that outlives the call, with its size.
        let bound = unsafe {
            libc::bind(
                self.socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as u32,
            )
        };
        if bound < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Passes every frame in the ring to `take`, oldest first, and frees its slot. A call from inside `take` finds
    /// nothing: it would free the frame that `take` is reading.
    pub fn receive(&self, mut take: impl FnMut(Frame<'_>)) {
        // One call reads at most one round of the ring, so that a flood of frames does not keep the caller from its
        // clock.
        for _ in 0..SLOTS {
            let Some(next) = self.next.take() else {
                return;
            };
            let offset = next / IN_BLOCK * BLOCK + next % IN_BLOCK * SLOT;
            // SAFETY: `next` is below SLOTS, so the slot is inside the mapping, which lives as long as `self`;
            // slots are aligned to 16 bytes.
            let slot = unsafe { self.ring.add(offset) };
            // SAFETY: a slot begins with its status, a u32 that the kernel and this process both
            // access atomically.
            let status = unsafe { AtomicU32::from_ptr(slot.cast::<u32>().as_ptr()) };
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                self.next.set(Some(next));
                return;
            }
            // SAFETY: the status says that the slot belongs to this process until it is given back below. No
            // other call gives it back while `next` is borrowed. The load above orders the kernel's writes
            // before these reads.
            take(unsafe { frame(slot) });
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next.set(Some((next + 1) % SLOTS));
        }
    }

    /// Sends an offload header and a frame, without waiting. Returns `EAGAIN` while too many earlier frames are
    /// unsent.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.socket, bytes, SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// Returns the number of frames that found no room in the ring since the last call.
    pub fn take_lost(&self) -> io::Result<u64> {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as u32;
        // SAFETY: `stats` is a whole structure of the size given in `length`, both outlive the
        // call.
        let got = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut length,
            )
        };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(u64::from(stats.tp_drops))
    }

    /// Clears the error that the port was down, so that polling waits again.
    pub fn clear_error(&self) -> io::Result<()> {
        rustix::net::sockopt::socket_error(&self.socket)?.ok();
        Ok(())
    }

    pub const fn socket(&self) -> &OwnedFd {
        &self.socket
    }
}

impl AsFd for PacketPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for PacketPort {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, made with this size, and nothing borrows from
        // it once the value is dropped.
        unsafe {
            libc::munmap(self.ring.as_ptr().cast(), BLOCK * BLOCKS);
        }
    }
}

/// Reads the header of a slot and finds its frame.
///
/// # Safety
/// `slot` must be a slot of a version 2 ring that belongs to this process for the life of `'a`.
unsafe fn frame<'a>(slot: NonNull<u8>) -> Frame<'a> {
    // SAFETY: the caller's precondition; the kernel wrote a whole header at the slot's start.
    let header = unsafe { slot.cast::<libc::tpacket2_hdr>().read() };
    // The range is limited to the slot, whatever the header says, so that no read leaves the mapping.
    let start = usize::from(header.tp_mac).saturating_sub(OFFLOAD_HEADER).min(SLOT);
    let length = (header.tp_snaplen as usize + OFFLOAD_HEADER).min(SLOT - start);
    Frame {
        // SAFETY: start and length were just bounded by the slot, which the kernel has filled.
        bytes: unsafe { std::slice::from_raw_parts(slot.add(start).as_ptr(), length) },
        arrived: Duration::new(u64::from(header.tp_sec), header.tp_nsec.min(999_999_999)),
        cut: header.tp_len > header.tp_snaplen,
    }
}

fn set<T>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    // SAFETY: `value` is a whole T that outlives the call, with its size; the kernel checks that
    // the size fits the option.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as u32,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn map(socket: &OwnedFd) -> io::Result<NonNull<u8>> {
    // SAFETY: maps new memory of exactly the size of the ring that the socket has.
    let ring = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            BLOCK * BLOCKS,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            socket.as_raw_fd(),
            0,
        )
    };
    if ring == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(ring.cast()).ok_or_else(|| io::Error::other("the ring was mapped at zero"))
}
