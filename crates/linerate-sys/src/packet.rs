//! Whole Ethernet frames of a port: they are received through a ring that is shared with the kernel, or sent.
//!
//! Frames have the kernel's offload header (`PACKET_VNET_HDR`), so that a group of segments is received or sent as one
//! frame, whose checksum is not filled in yet.
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
/// Number of frames in a block.
const FRAMES_PER_BLOCK: usize = 15;
/// Size of the slot for one frame, in bytes: room for a group of 64 KiB with headers, and for the kernel's header.
const SLOT: usize = BLOCK / FRAMES_PER_BLOCK / 16 * 16;
/// Number of blocks in the ring.
const BLOCKS: usize = 32;
/// Number of frames in the ring.
const SLOTS: usize = FRAMES_PER_BLOCK * BLOCKS;

/// A frame that was received.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The offload header, followed by the frame.
    pub bytes: &'a [u8],
    /// Time of arrival since 1970, on the real-time clock.
    pub arrived: Duration,
    /// Whether the frame was truncated.
    pub cut: bool,
}

/// A packet socket on one port.
#[derive(Debug)]
pub struct PacketPort {
    socket: OwnedFd,
    ring: NonNull<u8>,
    /// Index of the slot with the next frame; `None` while that frame is borrowed.
    next: Cell<Option<usize>>,
}

impl PacketPort {
    /// Opens the port with this interface index in the thread's network namespace. This needs `CAP_NET_RAW` in that
    /// namespace. Frames that are sent through the port are not received.
    pub fn open(index: u32) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: the call only creates a descriptor; with protocol 0, it receives nothing until it is bound.
        let raw = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` was just created and has no other owner.
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
        // SAFETY: `address` is a whole `sockaddr_ll` that outlives the call, and its size is passed.
        let bound = unsafe {
            libc::bind(
                self.socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as u32,
            )
        };
        if bound < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Passes every frame in the ring to `take`, oldest first, and then frees its slot. A call from within `take`
    /// returns at once without a frame, because it would free the frame that `take` is reading.
    pub fn receive(&self, mut take: impl FnMut(Frame<'_>)) {
        // One call reads at most as many frames as the ring has slots.
        // So a flood of frames does not keep the caller from its timers.
        for _ in 0..SLOTS {
            let Some(next) = self.next.take() else {
                return;
            };
            let offset = next / FRAMES_PER_BLOCK * BLOCK + next % FRAMES_PER_BLOCK * SLOT;
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
            // SAFETY: the status shows that the slot belongs to this process until the store below. No other call frees
            // it while `next` is taken. The load above orders the kernel's writes before these reads.
            take(unsafe { frame(slot) });
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next.set(Some((next + 1) % SLOTS));
        }
    }

    /// Sends an offload header and a frame, without waiting. Returns
    /// `EAGAIN` while too many earlier frames are not sent yet.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.socket, bytes, SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// Returns the number of frames that were dropped since the last call because the ring was full.
    pub fn take_lost(&self) -> io::Result<u64> {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as u32;
        // SAFETY: `stats` is a whole structure of the size in `length`, and both outlive the call.
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

    /// Clears the error that the port was down, so that polling waits for frames again.
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
        // SAFETY: the mapping belongs to this value and has this size,
        // and nothing borrows from it once the value is dropped.
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
    // Whatever the header contains, the range is limited to the slot, so that no read is outside the mapping.
    let start = usize::from(header.tp_mac).saturating_sub(OFFLOAD_HEADER).min(SLOT);
    let length = (header.tp_snaplen as usize + OFFLOAD_HEADER).min(SLOT - start);
    Frame {
        // SAFETY: start and length were just limited to the slot, which the kernel has filled.
        bytes: unsafe { std::slice::from_raw_parts(slot.add(start).as_ptr(), length) },
        arrived: Duration::new(u64::from(header.tp_sec), header.tp_nsec.min(999_999_999)),
        cut: header.tp_len > header.tp_snaplen,
    }
}

fn set<T>(socket: &OwnedFd, option: i32, value: &T) -> io::Result<()> {
    // SAFETY: `value` is a whole T that outlives the call, and its size
    // is passed; the kernel checks that this size fits the option.
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
    // SAFETY: the call maps new memory of exactly the size of the socket's ring.
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
