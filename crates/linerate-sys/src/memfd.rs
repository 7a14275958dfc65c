//! Memory that two processes share: a file without a name that can neither shrink nor grow.
#![expect(
    unsafe_code,
    reason = "a mapping that another process writes to at the same time"
)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    memfd_create,
};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// With these no process can take pages away under a mapping: an access could end with SIGBUS then.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// A mapping of memory that another process maps too. That process may write anything to it at any time: nothing that is
/// read from it can be trusted, and no reference to its bytes is handed out.
#[derive(Debug)]
pub struct SharedMemory {
    start: NonNull<u8>,
    len: usize,
    fd: OwnedFd,
}

// SAFETY: a mapping belongs to no thread. Its words are atomics, and its bytes are only copied.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Makes `len` bytes of zeroes. All of it is allocated here, so that a lack of memory is an error of this call and not a
    /// signal later.
    pub fn create(len: usize) -> io::Result<Self> {
        // The kernel would not only refuse a larger file, but also end the process with SIGXFSZ.
        if getrlimit(Resource::Fsize)
            .current
            .is_some_and(|most| len as u64 > most)
        {
            return Err(Errno::FBIG.into());
        }
        let fd = file()?;
        rustix::io::retry_on_intr(|| fallocate(&fd, FallocateFlags::empty(), 0, len as u64))?;
        fcntl_add_seals(&fd, SEALS)?;
        Self::map(fd, len)
    }

    /// Maps memory that another process made; fails unless it has `len` bytes and is sealed.
    pub fn open(fd: OwnedFd, len: usize) -> io::Result<Self> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        if !fcntl_get_seals(&fd)?.contains(SEALS) {
            return Err(invalid("the memory is not sealed"));
        }
        if u64::try_from(fstat(&fd)?.st_size) != Ok(len as u64) {
            return Err(invalid("the memory has another size"));
        }
        Self::map(fd, len)
    }

    fn map(fd: OwnedFd, len: usize) -> io::Result<Self> {
        use std::os::fd::AsRawFd;
        // SAFETY: asks for a new mapping at an address that the kernel chooses, where nothing is yet.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(memory.cast());
        let start = start.ok_or_else(|| io::Error::other("memory was mapped at zero"))?;
        Ok(Self { start, len, fd })
    }

    /// The file, to be passed to the other process.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Bytes of it.
    pub fn size(&self) -> usize {
        self.len
    }

    /// Where `len` bytes at an offset begin. Panics where they are not all inside.
    fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        let end = offset.checked_add(len);
        assert!(
            end.is_some_and(|end| end <= self.len),
            "{len} bytes at {offset} of {}",
            self.len
        );
        // SAFETY: the offset lies within the mapping, as was just checked.
        unsafe { self.start.add(offset) }
    }

    /// The word at an offset, which is a multiple of four.
    ///
    /// # Panics
    /// Where it is not, or lies outside.
    #[inline]
    pub fn word(&self, offset: usize) -> &AtomicU32 {
        let at = self.at(offset, size_of::<AtomicU32>()).cast::<AtomicU32>();
        assert!(at.is_aligned());
        // SAFETY: four aligned bytes of the mapping, which lives as long as `self`. Any bytes are a valid word, and all
        // that access it do so atomically.
        unsafe { at.as_ref() }
    }

    /// The number at an offset, which is a multiple of eight.
    ///
    /// # Panics
    /// Where it is not, or lies outside.
    #[inline]
    pub fn number(&self, offset: usize) -> &AtomicU64 {
        let at = self.at(offset, size_of::<AtomicU64>()).cast::<AtomicU64>();
        assert!(at.is_aligned());
        // SAFETY: as for words.
        unsafe { at.as_ref() }
    }

    /// Copies bytes to an offset.
    ///
    /// # Panics
    /// Where they are not all inside.
    #[inline]
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: the range lies within the mapping, and `bytes` is no part of it: no reference to its bytes exists. Where
        // another process accesses the range at the same time, against what both agreed on, its bytes are arbitrary; they
        // are bytes all the same, and nothing depends on them.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) }
    }

    /// Copies bytes from an offset.
    ///
    /// # Panics
    /// Where they are not all inside.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.at(offset, into.len());
        // SAFETY: as for `write`.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), into.as_mut_ptr(), into.len()) }
    }
}

/// A new file in memory. It lies in no file system that is mounted, so that neither a full /dev/shm nor a missing one matters.
fn file() -> io::Result<OwnedFd> {
    let memfd = |more| {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | more;
        memfd_create("linerate-shm", flags)
    };
    // Kernels from 6.3 on may be set up to refuse files that could be executed; older ones do not know the flag.
    //= https://docs.kernel.org/userspace-api/mfd_noexec.html
    match memfd(MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => Ok(memfd(MemfdFlags::empty())?),
        made => Ok(made?),
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, with this size, and no borrow outlives it.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.len);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use rustix::fs::ftruncate;

    use super::*;

    const LEN: usize = 8192;

    fn again(memory: &SharedMemory) -> OwnedFd {
        memory.fd().try_clone_to_owned().unwrap()
    }

    #[test]
    fn both_mappings_show_the_same_bytes_and_words() {
        let one = SharedMemory::create(LEN).unwrap();
        let other = SharedMemory::open(again(&one), LEN).unwrap();
        one.write(LEN - 5, b"hello");
        let mut read = [0; 5];
        other.read(LEN - 5, &mut read);
        assert_eq!(&read, b"hello");
        other.number(128).store(7, Relaxed);
        assert_eq!(
            (one.number(128).load(Relaxed), one.word(0).load(Relaxed)),
            (7, 0)
        );
    }

    #[test]
    fn nobody_can_change_its_size() {
        let memory = SharedMemory::create(LEN).unwrap();
        let other = again(&memory);
        for size in [0, 4096, 2 * LEN as u64] {
            assert_eq!(ftruncate(&other, size), Err(Errno::PERM));
        }
        assert_eq!(fcntl_add_seals(&other, SealFlags::WRITE), Err(Errno::PERM));
    }

    #[test]
    fn memory_of_another_size_or_without_seals_is_refused() {
        let memory = SharedMemory::create(LEN).unwrap();
        for size in [LEN - 1, LEN + 1, 0] {
            let why = SharedMemory::open(again(&memory), size).unwrap_err();
            assert!(why.to_string().contains("another size"), "{why}");
        }
        let bare = file().unwrap();
        ftruncate(&bare, LEN as u64).unwrap();
        let why = SharedMemory::open(bare, LEN).unwrap_err();
        assert!(why.to_string().contains("not sealed"), "{why}");
        let (other, _) = io::pipe().unwrap();
        assert!(SharedMemory::open(other.into(), LEN).is_err());
    }

    #[test]
    fn nothing_outside_is_touched() {
        let memory = SharedMemory::create(LEN).unwrap();
        let panics = |touch: &dyn Fn()| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(touch)).is_err()
        };
        assert!(!panics(&|| memory.write(LEN - 1, &[1])));
        assert!(panics(&|| memory.write(LEN, &[1])));
        assert!(panics(&|| memory.write(usize::MAX, &[1])));
        assert!(panics(&|| memory.read(LEN - 1, &mut [0; 2])));
        assert!(panics(&|| {
            memory.number(LEN - 4).load(Relaxed);
        }));
        assert!(panics(&|| {
            memory.word(2).load(Relaxed);
        }));
    }
}
