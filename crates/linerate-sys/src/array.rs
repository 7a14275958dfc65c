//! Arrays of memory whose NUMA node can be requested and read back, and functions that read them.
#![expect(unsafe_code, reason = "mappings, their NUMA policy, and wide loads have no safe binding")]

use std::collections::BTreeMap;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Largest number of pages whose NUMA node is read in one call.
const PAGES_AT_ONCE: usize = 1024;
/// Number of words in a bit mask of NUMA nodes.
//= Linux include/linux/numa.h: NODES_SHIFT is 10 at most
const NODE_WORDS: usize = 1024 / 64;

/// Memory in its own mapping, zeroed at first. A page is allocated when it is first accessed.
#[derive(Debug)]
pub struct Array {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value, and is accessed only through borrows of it.
unsafe impl Send for Array {}
// SAFETY: as for `Send`.
unsafe impl Sync for Array {}

impl Array {
    /// Maps `len` bytes, at least one. Huge pages are requested: with small pages, a processor spends as much time on
    /// page tables as on memory.
    //= https://man7.org/linux/man-pages/man2/madvise.2.html, MADV_HUGEPAGE
    pub fn new(len: usize) -> io::Result<Self> {
        // SAFETY: maps new anonymous memory; nothing exists at its address.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(memory.cast());
        let start = start.ok_or_else(|| io::Error::other("memory was mapped at zero"))?;
        // SAFETY: it changes no content. If the kernel has no huge pages, it refuses, and small pages are used.
        unsafe {
            libc::madvise(memory, len, libc::MADV_HUGEPAGE);
        }
        Ok(Self { start, len })
    }

    /// Returns the number of bytes. Unlike the length of the slice, this needs no borrow of the bytes.
    pub const fn size(&self) -> usize {
        self.len
    }

    /// Requests that pages which are not allocated yet come from a NUMA node. If that node has no free memory, the
    /// kernel uses other nodes; [`Array::nodes`] returns them.
    //= https://man7.org/linux/man-pages/man2/mbind.2.html, MPOL_PREFERRED
    pub fn prefer(&mut self, node: u32) -> io::Result<()> {
        let mut nodes = [0_u64; NODE_WORDS];
        let word = nodes.get_mut(node as usize / 64);
        *word.ok_or(io::ErrorKind::InvalidInput)? |= 1 << (node % 64);
        // SAFETY: the range is the mapping of this value. The bit mask has the given length, which is one bit less than
        // the number that the kernel expects.
        let done = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.start.as_ptr(),
                self.len,
                libc::MPOL_PREFERRED,
                nodes.as_ptr(),
                NODE_WORDS * 64 + 1,
                0,
            )
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Counts pages by their NUMA node: `most` pages that are evenly distributed over the array, or all pages if it has
    /// no more. Pages that are not allocated are not counted.
    //= https://man7.org/linux/man-pages/man2/move_pages.2.html: without nodes it moves nothing and reports
    //= where pages are
    pub fn nodes(&self, most: usize) -> io::Result<BTreeMap<u32, u64>> {
        let page = rustix::param::page_size();
        let pages = self.len.div_ceil(page);
        let step = pages.div_ceil(most.max(1)).max(1);
        let places: Vec<*mut libc::c_void> = (0..pages)
            .step_by(step)
            .map(|at| self.start.as_ptr().wrapping_add(at * page).cast())
            .collect();
        let mut found = BTreeMap::new();
        for some in places.chunks(PAGES_AT_ONCE) {
            let mut nodes = [0_i32; PAGES_AT_ONCE];
            // SAFETY: both lists have at least the given length; no page is moved or accessed.
            let done = unsafe {
                libc::syscall(
                    libc::SYS_move_pages,
                    0,
                    some.len(),
                    some.as_ptr(),
                    std::ptr::null::<i32>(),
                    nodes.as_mut_ptr(),
                    0,
                )
            };
            if done < 0 {
                return Err(io::Error::last_os_error());
            }
            // Negative values are errors, such as for a page that is not allocated.
            let known = nodes[..some.len()].iter().filter_map(|node| u32::try_from(*node).ok());
            known.for_each(|node| *found.entry(node).or_default() += 1);
        }
        Ok(found)
    }
}

impl Array {
    /// Returns the start of the array. The pointer stays valid while the array's bytes are borrowed.
    pub fn start(&self) -> *const u8 {
        self.start.as_ptr()
    }
}

impl Deref for Array {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping is readable, has `len` bytes, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Array {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is writable, has `len` bytes, lives as long as `self`, and nothing else borrows it.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, has this length, and no borrow outlives it.
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.len);
        }
    }
}

/// Returns the NUMA node of the CPU on which the calling thread runs; `None` if the kernel does not report it.
pub fn node_here() -> Option<u32> {
    let mut node = 0_u32;
    // SAFETY: the call writes one number to `node`; the CPU is not requested.
    let done = unsafe {
        libc::syscall(
            libc::SYS_getcpu,
            std::ptr::null_mut::<u32>(),
            &raw mut node,
            std::ptr::null_mut::<u8>(),
        )
    };
    (done == 0).then_some(node)
}

/// Reads every byte, with the widest loads of the processor. The result depends on all bytes, so no load is left out.
pub fn read(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has these instructions.
        return unsafe { read_wide(bytes) };
    }
    fold(bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn read_wide(bytes: &[u8]) -> u64 {
    fold(bytes)
}

/// Number of bytes that are read in one turn of the loop.
const TURN: usize = 256;

/// Returns the exclusive or of all words. It uses many partial results, so that no load waits for another one. The
/// function is compiled for each instruction set.
#[inline(always)]
fn fold(bytes: &[u8]) -> u64 {
    let mut sums = [0_u64; TURN / 8];
    let (turns, rest) = bytes.as_chunks::<TURN>();
    for turn in turns {
        for (sum, word) in sums.iter_mut().zip(turn.as_chunks::<8>().0) {
            *sum ^= u64::from_ne_bytes(*word);
        }
    }
    let rest = rest.iter().fold(0, |sum, byte| sum ^ u64::from(*byte));
    sums.iter().fold(rest, |sum, one| sum ^ one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_zero_and_keeps_what_is_written() {
        for len in [1, 4095, 4096, 4097, 3 << 20] {
            let mut array = Array::new(len).unwrap();
            assert_eq!(array.len(), len);
            assert!(array.iter().all(|byte| *byte == 0));
            array.fill(7);
            assert!(array.iter().all(|byte| *byte == 7));
        }
        assert!(Array::new(0).is_err());
    }

    #[test]
    fn what_is_read_depends_on_every_byte() {
        let mut bytes = vec![0_u8; 3 * TURN + 13];
        for at in 0..bytes.len() {
            bytes[at] = 0x80;
            assert_ne!(read(&bytes), 0, "{at}");
            assert_eq!(read(&bytes), fold(&bytes));
            bytes[at] = 0;
        }
        assert_eq!(read(&[]), 0);
    }

    #[test]
    fn pages_that_were_touched_are_on_the_node_that_was_asked_for() {
        let Some(here) = node_here() else { return };
        let mut array = Array::new(64 * 4096).unwrap();
        match array.prefer(here) {
            // A kernel without NUMA nodes, or a container in which this call is forbidden.
            Err(error) if cannot(&error) => return,
            done => done.unwrap(),
        }
        array.fill(1);
        let of = |most| match array.nodes(most) {
            Err(error) if cannot(&error) => None,
            found => Some(found.unwrap()),
        };
        let Some(all) = of(usize::MAX) else { return };
        assert_eq!(all.into_iter().collect::<Vec<_>>(), [(here, 64)]);
        assert_eq!(of(10).unwrap().values().sum::<u64>(), 10);
        let untouched = Array::new(4096).unwrap();
        assert!(untouched.nodes(9).unwrap().is_empty());
    }

    fn cannot(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM))
    }

    #[test]
    fn nodes_that_there_are_not_are_refused() {
        let mut array = Array::new(4096).unwrap();
        for node in [1023, 1024, u32::MAX] {
            assert!(array.prefer(node).is_err(), "{node}");
        }
    }
}
