//! Sends without a copy: the kernel sends the sender's own pages (`MSG_ZEROCOPY`).
//!
//! The kernel may still send after the call has returned. So these pages are used only to send. If they are unmapped
//! while they are being sent, the kernel keeps them until then.
//= https://docs.kernel.org/networking/msg_zerocopy.html

#![expect(unsafe_code, reason = "memory that the kernel reads later, and its error queue")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

use rustix::net::{SendFlags, send as rustix_send};

use crate::socket;

/// Value of the constant `SO_ZEROCOPY` (Linux 4.14 or later), from asm-generic/socket.h.
const SO_ZEROCOPY: i32 = 60;
/// Value of the constant `MSG_ZEROCOPY`, from linux/socket.h.
const MSG_ZEROCOPY: SendFlags = SendFlags::from_bits_retain(0x0400_0000);

/// Memory for payload that is sent. Its pages contain nothing else.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: this value owns its mapping, as a `Box<[u8]>` owns its bytes.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps `len` zero bytes; `len` must be at least one.
    pub fn new(len: usize) -> io::Result<Self> {
        // SAFETY: maps new anonymous memory; nothing exists at its address.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(memory.cast());
        let start = start.ok_or_else(|| io::Error::other("memory was mapped at zero"))?;
        Ok(Self { start, len })
    }

    /// Returns the address of the first byte, with which the memory is registered with the kernel.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the number of bytes in the memory.
    pub fn size(&self) -> usize {
        self.len
    }

    /// Returns the bytes so that the caller can fill them. Earlier
    /// sends that are still in flight then send the new contents.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `len` zeroed bytes are mapped at `start`, no other borrow of them exists, and the kernel only reads
        // them. Memory to which the kernel may write (`crate::uring`) is never borrowed here.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: as in `bytes_mut`, but with a shared borrow.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value and has this size, and no
        // borrow outlives it. The kernel keeps the pages that it still sends.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Permits sends without a copy on a socket (`SO_ZEROCOPY`). If this is refused, [`send`] copies.
pub fn allow(fd: BorrowedFd<'_>) -> io::Result<()> {
    socket::set(fd, libc::SOL_SOCKET, SO_ZEROCOPY, 1)
}

/// Sends at most `most` bytes of `memory` without a copy. Fails with `ENOBUFS` if the kernel may not hold more pages.
pub fn send(fd: BorrowedFd<'_>, memory: &Memory, most: usize) -> io::Result<usize> {
    let bytes = &memory.bytes()[..most.min(memory.len)];
    Ok(rustix_send(fd, bytes, SendFlags::NOSIGNAL | MSG_ZEROCOPY)?)
}

/// Sends at most `most` bytes of `memory` with an ordinary send, which copies them.
pub fn send_copied(fd: BorrowedFd<'_>, memory: &Memory, most: usize) -> io::Result<usize> {
    socket::send(fd, &memory.bytes()[..most.min(memory.len)], false)
}

/// Reads a message of the socket's error queue; returns the length of its control messages. Fails with
/// [`io::ErrorKind::WouldBlock`] if the queue is empty.
pub fn notice(fd: BorrowedFd<'_>, control: &mut [u8]) -> io::Result<usize> {
    // SAFETY: all zeroes are a valid message header, without a name, buffers or control messages.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    head.msg_control = control.as_mut_ptr().cast();
    head.msg_controllen = control.len() as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the descriptor is open for as long as it is borrowed; the kernel writes at most `msg_controllen`
    // bytes into a slice of that length, and stores the number of bytes there (recvmsg(2)).
    let rc = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut head, flags) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((head.msg_controllen as usize).min(control.len()))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_is_sent_without_a_copy_arrives_though_its_memory_is_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let fd = near.as_fd();
        let mut control = [0; 128];
        let none = notice(fd, &mut control).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        allow(fd).unwrap();
        let mut memory = Memory::new(5000).unwrap();
        memory.bytes_mut().fill(7);
        assert_eq!(send(fd, &memory, usize::MAX).unwrap(), 5000);
        memory.bytes_mut().fill(8);
        assert_eq!(send_copied(fd, &memory, 10).unwrap(), 10);
        drop(memory);
        drop(Memory::new(5000).map(|mut other| other.bytes_mut().fill(9)));
        let mut got = vec![0; 5010];
        far.read_exact(&mut got).unwrap();
        // On loopback, the kernel copies when it delivers the bytes: before or after the memory is filled again.
        assert!(got.iter().all(|b| *b == 7 || *b == 8), "{got:?}");
        assert!(got[5000..].iter().all(|b| *b == 8));
        assert!(notice(fd, &mut control).unwrap() > 0);
    }
}
