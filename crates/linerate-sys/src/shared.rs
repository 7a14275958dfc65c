//! Counters that a process shares with its forked children.
#![expect(unsafe_code, reason = "memory shared between processes")]

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Number of counters in the shared memory.
const COUNTERS: usize = 64;

/// Counters, zero at first, that this process shares with children that it forks from now on.
#[derive(Debug)]
pub struct SharedCounters {
    counters: NonNull<[AtomicU64; COUNTERS]>,
}

impl SharedCounters {
    /// Maps memory for the counters.
    pub fn new() -> io::Result<Self> {
        // SAFETY: maps new anonymous memory; nothing exists at its address.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<[AtomicU64; COUNTERS]>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let counters = NonNull::new(memory.cast());
        let counters = counters.ok_or_else(|| io::Error::other("memory was mapped at zero"))?;
        Ok(Self { counters })
    }
}

impl Deref for SharedCounters {
    type Target = [AtomicU64; COUNTERS];

    fn deref(&self) -> &Self::Target {
        // SAFETY: the mapping is page-aligned, as large as the array, and zeroed, which is a valid array of atomics. It
        // lives as long as `self`, and other processes access it atomically.
        unsafe { self.counters.as_ref() }
    }
}

impl Drop for SharedCounters {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value and has this size, and no borrow outlives it.
        unsafe {
            libc::munmap(self.counters.as_ptr().cast(), size_of::<[AtomicU64; COUNTERS]>());
        }
    }
}
