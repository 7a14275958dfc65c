//! Tests of memory that a program returns to the system. They run in their own process, because other tests allocate
//! and free memory at the same time.
#![expect(clippy::unwrap_used, reason = "clippy does not recognise helpers of tests")]

use std::fs;
use std::thread;

use linerate_sys::memory;

/// Returns the number of kB in a line of /proc.
fn kib(line: &str) -> u64 {
    let number = line.split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

/// Returns the resident memory of this process that belongs to no file, in kB.
fn own() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    kib(line.unwrap())
}

/// Returns the resident memory with code of this program, in kB.
fn code() -> u64 {
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = maps.lines();
    let of_code = |line: &str| line.contains(" r-xp ") && line.ends_with(program);
    assert!(lines.any(of_code), "{maps}");
    kib(lines.find(|line| line.starts_with("Rss:")).unwrap())
}

/// Allocates small pieces on a thread, which the allocator does not map
/// one by one, and frees all but the last one, which is above the others.
fn use_much() -> Vec<u8> {
    let user = thread::spawn(|| {
        let many: Vec<Vec<u8>> = (0..512).map(|_| vec![1; 100_000]).collect();
        let last = vec![1_u8; 100];
        drop(many);
        last
    });
    user.join().unwrap()
}

#[test]
fn what_is_not_needed_is_given_back_and_code_runs_on() {
    let kept = use_much();
    let before = (own(), code());
    memory::give_back();
    let after = (own(), code());
    if cfg!(target_env = "gnu") {
        assert!(after.0 + 30_000 < before.0, "{before:?}, {after:?}");
    }
    // The code that runs is loaded again at once, with the pages around it, so some code is resident again.
    assert!(after.1 < before.1, "{before:?}, {after:?}");
    assert_eq!(kept, vec![1_u8; 100]);
}
