//! Memory that an RDMA device may access.

use std::ffi::{c_int, c_uint};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use super::abi::{Mr, Pd, access};
use super::device::Device;
use super::{Owned, Refused};
use crate::array::Array;

/// Memory of one end that the other end may access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Remote {
    /// Address of the memory in the process that owns it.
    pub address: u64,
    /// Key that permits access to the memory.
    pub key: u32,
    /// Size in bytes.
    pub len: u64,
}

/// Registered memory with its own protection domain.
///
/// The device may read and write this memory at any time, also on request of the other end. No reference to its bytes
/// exists: they are only copied in and out, and compared with expected bytes.
pub struct Region {
    mr: Owned<Mr>,
    pub(super) pd: Owned<Pd>,
    memory: Array,
    /// Keeps the device open.
    pub(super) device: Arc<Device>,
}

impl Region {
    /// Allocates and registers `len` bytes, at least one, near the CPU of the calling thread. The other end can access
    /// them only if it knows their address and key.
    pub fn new(device: &Arc<Device>, len: usize) -> Result<Self, Refused> {
        let library = device.library;
        // SAFETY: the context is open, and the protection domain is deallocated once.
        let pd = unsafe {
            let pd = (library.ibv_alloc_pd)(device.context.as_ptr());
            Owned::take("ibv_alloc_pd", pd, library.ibv_dealloc_pd)
        }?;
        let mut memory = Array::new(len).map_err(|source| Refused { call: "mmap", source })?;
        memory.fill(0);
        let allowed: c_uint = access::LOCAL_WRITE
            | access::REMOTE_WRITE
            | access::REMOTE_READ
            | access::REMOTE_ATOMIC;
        // SAFETY: the memory is the mapping of this value. The fields are dropped in their order, so that the memory is
        // unmapped after the device has lost access to it.
        let mr = unsafe {
            let start = memory.as_mut_ptr().cast();
            let mr = (library.ibv_reg_mr)(pd.as_ptr(), start, len, allowed as c_int);
            Owned::take("ibv_reg_mr", mr, library.ibv_dereg_mr)
        }?;
        Ok(Self { mr, pd, memory, device: Arc::clone(device) })
    }

    /// Returns the number of bytes of the memory.
    pub fn size(&self) -> usize {
        self.memory.size()
    }

    /// Returns the address, key and size that the other end needs to access the memory.
    pub fn remote(&self) -> Remote {
        // SAFETY: the region is registered, and the library does not change the structure any more.
        let key = unsafe { (*self.mr.as_ptr()).rkey };
        Remote { address: self.memory.start() as u64, key, len: self.memory.size() as u64 }
    }

    /// Returns the address of `len` bytes at an offset, and the key that requests of this end need.
    ///
    /// # Panics
    /// If the bytes at this offset are not all inside the memory.
    pub(super) fn local(&self, offset: usize, len: usize) -> (u64, u32) {
        let start = self.at(offset, len) as u64;
        // SAFETY: the region is registered, and the library does not change the structure any more.
        (start, unsafe { (*self.mr.as_ptr()).lkey })
    }

    #[inline]
    fn at(&self, offset: usize, len: usize) -> *const u8 {
        let end = offset.checked_add(len);
        assert!(
            end.is_some_and(|end| end <= self.memory.size()),
            "{len} bytes at {offset} of {}",
            self.memory.size()
        );
        self.memory.start().wrapping_add(offset)
    }

    /// Returns the current value of one byte.
    ///
    /// # Panics
    /// If the byte is outside the memory.
    #[inline]
    pub fn byte(&self, offset: usize) -> u8 {
        // SAFETY: the byte is inside the mapping. The device may write
        // it at the same time, but a single byte is read as a whole.
        let byte = unsafe { ptr::read_volatile(self.at(offset, 1)) };
        fence(Ordering::Acquire);
        byte
    }

    /// Sets one byte of the memory.
    ///
    /// # Panics
    /// If the byte is outside the memory.
    #[inline]
    pub fn set_byte(&mut self, offset: usize, byte: u8) {
        fence(Ordering::Release);
        // SAFETY: the byte is inside the mapping, which no other value of this process accesses.
        unsafe { ptr::write_volatile(self.at(offset, 1).cast_mut(), byte) }
    }

    /// Copies bytes to an offset in the memory.
    ///
    /// # Panics
    /// If the bytes at this offset are not all inside the memory.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len()).cast_mut();
        // SAFETY: the range is inside the mapping, and no reference to it exists. If the device writes at the same
        // time, the memory contains a mix of both, which is tolerated.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    /// Returns whether the memory at an offset contains the bytes `expected`.
    ///
    /// # Panics
    /// If the bytes at this offset are not all inside the memory.
    pub fn holds(&self, offset: usize, expected: &[u8]) -> bool {
        let mut part = [0; 4096];
        let parts = expected.chunks(part.len()).zip((offset..).step_by(4096));
        let mut parts = parts.map(|(expected, at)| {
            let own = &mut part[..expected.len()];
            self.read(at, own);
            *own == *expected
        });
        fence(Ordering::Acquire);
        parts.all(|same| same)
    }

    /// Copies bytes from an offset in the memory to `into`.
    ///
    /// # Panics
    /// If the bytes at this offset are not all inside the memory.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.at(offset, into.len());
        // SAFETY: the range is inside the mapping, and no reference to it exists. The device may write at the same
        // time; a mix of old and new bytes is tolerated.
        unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) }
    }
}
