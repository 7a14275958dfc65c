//! Returning memory that is no longer needed to the system.
#![expect(
    unsafe_code,
    reason = "glibc's allocator has no other binding, and where a program's code lies is known to nobody else"
)]

use std::fs;
use std::ops::Range;

/// Makes all threads allocate from one arena, so that freed memory can be returned. Otherwise the allocator gives
/// each thread an arena, and keeps its unused part. This is for a program whose threads allocate little and rarely,
/// and which outlives them. Does nothing without glibc.
//= https://man7.org/linux/man-pages/man3/mallopt.3.html, M_ARENA_MAX
pub fn share() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call uses no memory of ours, and locks the data that it changes.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Returns freed memory to the system, which glibc's allocator keeps for each thread that ever ran; other allocators
/// still keep it. Also releases the memory of the program's code: when code runs again, the system finds it in its
/// file cache. Takes about a millisecond.
//= https://man7.org/linux/man-pages/man3/malloc_trim.3.html
//= https://man7.org/linux/man-pages/man2/madvise.2.html, MADV_DONTNEED
pub fn give_back() {
    if let Some(code) = code() {
        // SAFETY: the pages belong to a file, as `code` checked. They are private and were not written by this
        // program, as their mapping does not allow it. When they are next needed, the kernel reads them from
        // the file again, including the pages of this very function. Only changes by a debugger are lost. A
        // failure changes nothing.
        unsafe {
            libc::madvise(code.start as *mut libc::c_void, code.len(), libc::MADV_DONTNEED);
        }
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: the call uses no memory of ours, touches only free memory, and locks the heaps that it walks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the address range of this program's code, if it is mapped from a file. Code that was unpacked into memory
/// could not be read again.
fn code() -> Option<Range<usize>> {
    let here = give_back as *const () as usize;
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let address = |hex| usize::from_str_radix(hex, 16).ok();
        let range = address(from)?..address(to)?;
        let of_code = range.contains(&here) && words.next() == Some("r-xp");
        // In each line, an offset and a device precede the inode of the file.
        (of_code && words.nth(2).is_some_and(|inode| inode != "0")).then_some(range)
    })
}
