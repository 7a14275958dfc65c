//! Functions that return memory which is no longer needed to the system.
#![expect(
    unsafe_code,
    reason = "glibc's allocator has no other binding, and where a program's code lies is known to nobody else"
)]

use std::fs;
use std::ops::Range;

/// Makes all threads allocate from one arena, so that freed memory can be returned. Otherwise the allocator gives each
/// thread its own arena and keeps the unused part of it. This suits a program whose threads allocate little and rarely,
/// and which runs longer than its threads. Without glibc, this does nothing.
//= https://man7.org/linux/man-pages/man3/mallopt.3.html, M_ARENA_MAX
pub fn share() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call uses no memory of this program, and locks the data that it changes.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Returns freed memory to the system. glibc's allocator keeps such memory for each thread that ever ran; other
/// allocators are not affected. Also releases the memory of the program's code: when code runs again, the system finds
/// it in its file cache. Takes about a millisecond.
//= https://man7.org/linux/man-pages/man3/malloc_trim.3.html
//= https://man7.org/linux/man-pages/man2/madvise.2.html, MADV_DONTNEED
pub fn give_back() {
    if let Some(code) = code() {
        // SAFETY: the pages belong to a file, as `code` checked. They are private, and this
        // program has not written to them, as their mapping does not permit this. When they are
        // next needed, the kernel reads them from the file again, including the pages of this
        // function itself. Only changes by a debugger are lost. A failure changes nothing.
        unsafe {
            libc::madvise(code.start as *mut libc::c_void, code.len(), libc::MADV_DONTNEED);
        }
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: the call uses no memory of this program, changes only free memory, and locks the heaps that it reads.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the address range of this program's code if it is mapped from a file; `None` otherwise. Code that was
/// unpacked into memory could not be read again.
fn code() -> Option<Range<usize>> {
    let here = give_back as *const () as usize;
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let address = |hex| usize::from_str_radix(hex, 16).ok();
        let range = address(from)?..address(to)?;
        let of_code = range.contains(&here) && words.next() == Some("r-xp");
        // In each line, the offset and the device precede the inode of the file; inode 0 means that there is no file.
        (of_code && words.nth(2).is_some_and(|inode| inode != "0")).then_some(range)
    })
}
