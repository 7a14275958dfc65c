//! Memory that two processes share: a file without a name, whose size cannot change.
#![expect(unsafe_code, reason = "a mapping that another process writes to at the same time")]

use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    memfd_create,
};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// With these seals, no process can remove pages of the file; otherwise an access to the mapping could end with SIGBUS.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// The mapping of the whole file. [`SharedMemory`] divides it, and decides how each part may be accessed.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to no thread. Its parts do not overlap, and each follows the rules of its own type.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Returns the address at an offset in the mapping.
    #[inline]
    fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset <= self.len);
        // SAFETY: the offset is inside the mapping, or at its end, as was just checked.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value and has this size, and no part or borrow outlives it.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.len);
        }
    }
}

/// Memory that another process maps too. That process may write anything to it at any time: its contents can
/// never be trusted.
///
/// The mapping is divided from its start into parts, one after the other. No two parts overlap. A part is
/// either words, which are atomics and may be shared, or bytes, which have one owner. So safe code of this
/// process cannot race: it accesses each byte of the mapping in only one way.
#[derive(Debug)]
pub struct SharedMemory {
    mapping: Arc<Mapping>,
    fd: OwnedFd,
    /// Number of bytes that are already assigned to parts.
    taken: usize,
}

impl SharedMemory {
    /// Makes shared memory of `len` zero bytes. All pages are allocated here, so that a lack of memory is an error of
    /// this call, not a signal later.
    pub fn create(len: usize) -> io::Result<Self> {
        // The kernel would not only refuse a larger file, but also end the process with the signal SIGXFSZ.
        if getrlimit(Resource::Fsize).current.is_some_and(|most| len as u64 > most) {
            return Err(Errno::FBIG.into());
        }
        let fd = file()?;
        rustix::io::retry_on_intr(|| fallocate(&fd, FallocateFlags::empty(), 0, len as u64))?;
        fcntl_add_seals(&fd, SEALS)?;
        Self::map(fd, len)
    }

    /// Maps memory that another process made; fails unless it is sealed and has exactly `len` bytes.
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
        // SAFETY: the call requests a new mapping at an address that the kernel chooses, where nothing is
        // mapped yet.
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
        Ok(Self { mapping: Arc::new(Mapping { start, len }), fd, taken: 0 })
    }

    /// Returns the file descriptor, which is passed to the other process.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Assigns the next `len` bytes to a new part.
    fn take(&mut self, len: usize) -> Range<usize> {
        let start = self.taken;
        let end = start.checked_add(len);
        let end = end.filter(|end| *end <= self.mapping.len);
        let Some(end) = end else {
            panic!("{len} bytes at {start} of {}", self.mapping.len);
        };
        self.taken = end;
        start..end
    }

    /// Makes a part of the next `count` words of type `W`, which is an atomic.
    fn atomics<W>(&mut self, count: usize) -> Words<W> {
        assert!(self.mapping.at(self.taken).cast::<W>().is_aligned());
        let bytes = self.take(count.saturating_mul(size_of::<W>()));
        Words { mapping: Arc::clone(&self.mapping), start: bytes.start, count, word: PhantomData }
    }

    /// Makes a part of the next `count` words of 32 bits. An end can sleep on such words.
    ///
    /// # Panics
    /// If fewer words are left, or if the previous parts do not end at a multiple of four bytes.
    pub fn words(&mut self, count: usize) -> Words<AtomicU32> {
        self.atomics(count)
    }

    /// Makes a part of the next `count` numbers of 64 bits.
    ///
    /// # Panics
    /// If fewer numbers are left, or if the previous parts do not end at a multiple of eight bytes.
    pub fn numbers(&mut self, count: usize) -> Words<AtomicU64> {
        self.atomics(count)
    }

    /// Makes a part of the next `len` bytes.
    ///
    /// # Panics
    /// If fewer bytes are left.
    pub fn bytes(&mut self, len: usize) -> SharedBytes {
        let bytes = self.take(len);
        SharedBytes { mapping: Arc::clone(&self.mapping), start: bytes.start, len }
    }
}

/// Words of shared memory, all of the same size: accesses of different sizes to one word would race even as atomics.
#[derive(Debug)]
pub struct Words<W> {
    mapping: Arc<Mapping>,
    start: usize,
    count: usize,
    word: PhantomData<W>,
}

impl<W> Clone for Words<W> {
    fn clone(&self) -> Self {
        Self { mapping: Arc::clone(&self.mapping), ..*self }
    }
}

impl<W> Words<W> {
    /// Returns all words.
    #[inline]
    pub fn all(&self) -> &[W] {
        let at = self.mapping.at(self.start).cast::<W>();
        // SAFETY: `SharedMemory::atomics` made sure that this many aligned words are within the mapping, which
        // lives as long as `self`, and that no part of the bytes overlaps them. `W` is an atomic, since only
        // atomics have a constructor: any bytes are valid. The other process is expected to access them
        // atomically. If it does not, the value is arbitrary, as is any value of an untrusted process.
        unsafe { slice::from_raw_parts(at.as_ptr(), self.count) }
    }
}

/// Bytes of shared memory. They can only be copied in and out, and no reference to them exists. This type cannot be
/// cloned: writing needs its only owner, so that no other thread of this process accesses the bytes at the same time.
///
/// The other process may write them at the same time, by error or on purpose. Rust has no rule
/// for this, because its model covers only the threads of one program. A copy during such a
/// write is a plain `memcpy`, and results in a mix of old and new bytes. This mix is tolerated
/// since the bytes are never interpreted: no length, index, pointer or type is taken from them.
#[derive(Debug)]
pub struct SharedBytes {
    mapping: Arc<Mapping>,
    start: usize,
    len: usize,
}

impl SharedBytes {
    /// Returns the number of bytes of this part.
    #[inline]
    pub fn size(&self) -> usize {
        self.len
    }

    /// Returns the address of `len` bytes at an offset in this part.
    #[inline]
    fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        let end = offset.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len), "{len} bytes at {offset} of {}", self.len);
        self.mapping.at(self.start + offset)
    }

    /// Copies bytes to an offset in this part.
    ///
    /// # Panics
    /// If the bytes at this offset are not all inside this part.
    #[inline]
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: the range is inside this part, which only this thread can use
        // because of `&mut self`. `bytes` does not overlap it, since no reference to
        // shared bytes exists. Writes of another process are described at the type.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) }
    }

    /// Copies bytes from an offset in this part.
    ///
    /// # Panics
    /// If the bytes at this offset are not all inside this part.
    #[inline]
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.at(offset, into.len());
        // SAFETY: the range is inside this part. No thread of this process writes to it while `self` is borrowed, and
        // `into` does not overlap it. Writes of another process are described at the type.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), into.as_mut_ptr(), into.len()) }
    }
}

/// Makes a new file in memory. The file is in no mounted file system, so a full or missing /dev/shm does not matter.
fn file() -> io::Result<OwnedFd> {
    let memfd = |more| {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | more;
        memfd_create("linerate-shm", flags)
    };
    // Kernels from 6.3 on may be configured to refuse files that
    // could be executed. Older kernels do not know this flag.
    //= https://docs.kernel.org/userspace-api/mfd_noexec.html
    match memfd(MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => Ok(memfd(MemfdFlags::empty())?),
        made => Ok(made?),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use rustix::fs::ftruncate;

    use super::*;

    const LEN: usize = 8192;

    fn duplicate(memory: &SharedMemory) -> OwnedFd {
        memory.fd().try_clone_to_owned().unwrap()
    }

    /// Divides memory into numbers, words, and bytes up to its end.
    fn divide(mut memory: SharedMemory) -> (Words<AtomicU64>, Words<AtomicU32>, SharedBytes) {
        (memory.numbers(16), memory.words(32), memory.bytes(LEN - 256))
    }

    #[test]
    fn both_mappings_show_the_same_bytes_and_words() {
        let one = SharedMemory::create(LEN).unwrap();
        let other = SharedMemory::open(duplicate(&one), LEN).unwrap();
        let (numbers, words, mut bytes) = divide(one);
        let (their_numbers, their_words, their_bytes) = divide(other);
        bytes.write(LEN - 256 - 5, b"hello");
        let mut read = [0; 5];
        their_bytes.read(LEN - 256 - 5, &mut read);
        assert_eq!(&read, b"hello");
        their_numbers.all()[15].store(7, Relaxed);
        their_words.clone().all()[31].store(8, Relaxed);
        assert_eq!(numbers.all()[15].load(Relaxed), 7);
        assert_eq!(words.all()[31].load(Relaxed), 8);
    }

    #[test]
    fn no_part_overlaps_another() {
        let (numbers, words, mut bytes) = divide(SharedMemory::create(LEN).unwrap());
        for word in words.all() {
            word.store(u32::MAX, Relaxed);
        }
        bytes.write(0, &[0xaa; LEN - 256]);
        assert_eq!((numbers.all().len(), words.all().len()), (16, 32));
        assert!(numbers.all().iter().all(|n| n.load(Relaxed) == 0));
        assert!(words.all().iter().all(|w| w.load(Relaxed) == u32::MAX));
        numbers.all()[15].store(u64::MAX, Relaxed);
        words.all()[31].store(1, Relaxed);
        let mut read = [0; LEN - 256];
        bytes.read(0, &mut read);
        assert!(read.iter().all(|byte| *byte == 0xaa));
        assert!(words.all()[..31].iter().all(|w| w.load(Relaxed) == u32::MAX));
    }

    #[test]
    fn parts_outlive_what_they_were_taken_from() {
        let (numbers, _, bytes) = divide(SharedMemory::create(LEN).unwrap());
        drop(bytes);
        assert_eq!(numbers.all()[0].load(Relaxed), 0);
    }

    #[test]
    fn nobody_can_change_its_size() {
        let memory = SharedMemory::create(LEN).unwrap();
        let other = duplicate(&memory);
        for size in [0, 4096, 2 * LEN as u64] {
            assert_eq!(ftruncate(&other, size), Err(Errno::PERM));
        }
        assert_eq!(fcntl_add_seals(&other, SealFlags::WRITE), Err(Errno::PERM));
    }

    #[test]
    fn memory_of_another_size_or_without_seals_is_refused() {
        let memory = SharedMemory::create(LEN).unwrap();
        for size in [LEN - 1, LEN + 1, 0] {
            let why = SharedMemory::open(duplicate(&memory), size).unwrap_err();
            assert!(why.to_string().contains("another size"), "{why}");
        }
        let bare = file().unwrap();
        ftruncate(&bare, LEN as u64).unwrap();
        let why = SharedMemory::open(bare, LEN).unwrap_err();
        assert!(why.to_string().contains("not sealed"), "{why}");
        let (other, _) = io::pipe().unwrap();
        assert!(SharedMemory::open(other.into(), LEN).is_err());
    }

    fn panics<T>(touch: impl FnOnce() -> T) -> bool {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(touch)).is_err()
    }

    #[test]
    fn nothing_outside_is_touched() {
        let mut memory = SharedMemory::create(LEN).unwrap();
        let mut bytes = memory.bytes(100);
        assert_eq!(bytes.size(), 100);
        assert!(!panics(|| bytes.write(99, &[1])));
        assert!(!panics(|| bytes.write(100, &[])));
        assert!(panics(|| bytes.write(100, &[1])));
        assert!(panics(|| bytes.write(usize::MAX, &[1])));
        assert!(!panics(|| bytes.read(98, &mut [0; 2])));
        assert!(panics(|| bytes.read(99, &mut [0; 2])));
    }

    #[test]
    fn no_more_is_taken_than_there_is() {
        let memory = || SharedMemory::create(LEN).unwrap();
        assert!(!panics(|| memory().bytes(LEN)));
        assert!(panics(|| memory().bytes(LEN + 1)));
        assert!(!panics(|| memory().numbers(LEN / 8)));
        assert!(panics(|| memory().numbers(LEN / 8 + 1)));
        assert!(panics(|| memory().words(usize::MAX)));
        let after = |len| {
            let mut memory = memory();
            memory.bytes(len);
            memory
        };
        assert!(panics(|| after(1).bytes(usize::MAX)));
        assert!(panics(|| after(LEN).words(1)));
        assert!(panics(|| after(2).words(1)));
        assert!(!panics(|| after(4).words(1)));
        assert!(panics(|| after(4).numbers(1)));
        assert!(!panics(|| after(8).numbers(1)));
    }
}
