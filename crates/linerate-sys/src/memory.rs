//! Memory that nobody needs any more.
#![expect(unsafe_code, reason = "glibc's allocator has no other binding")]

/// Lets all threads take memory from one place, so that what they free can be given back: the allocator gives them places
/// of their own otherwise, and keeps what is left over in each. For a program whose threads take little, seldom, and which
/// goes on after them. Without glibc nothing is done.
//= https://man7.org/linux/man-pages/man3/mallopt.3.html, M_ARENA_MAX
pub fn share() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no memory of ours, and locks what it changes.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Gives memory that was freed back to the system: the allocator keeps it for the next time, of each thread that there
/// ever was. Takes a millisecond or so. Without glibc nothing is done.
//= https://man7.org/linux/man-pages/man3/malloc_trim.3.html
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no memory of ours, touches only what is free, and locks what it walks.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_env = "gnu")]
    fn what_many_threads_freed_is_given_back() {
        let resident = || -> u64 {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("RssAnon"));
            let kib = line.unwrap().split_whitespace().nth(1).unwrap();
            kib.parse().unwrap()
        };
        // Small pieces, which the allocator does not map one by one, with the last one kept on top of them.
        let kept = std::thread::spawn(|| {
            let many: Vec<Vec<u8>> = (0..512).map(|_| vec![1; 100_000]).collect();
            let last = vec![1_u8; 100];
            drop(many);
            last
        });
        let kept = kept.join().unwrap();
        let before = resident();
        super::give_back();
        assert!(resident() + 30_000 < before, "{before} to {}", resident());
        drop(kept);
    }
}
