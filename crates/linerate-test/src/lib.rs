//! Helpers that the tests of all crates share.
//!
//! - [`skip()`]: a test that cannot run here reports this, and fails if it is required.
//! - [`ask()`]: a test on a disturbed machine measures again; attempts that could not be decided are counted.
//! - [`turn()`]: only one test of a program loads the machine at a time.
//! - [`free_ports()`]: TCP ports for the servers of a test.
//! - [`kept`]: checks of documents that the program writes and the repository contains.
//! - [`unwrapped()`]: a text with all its words on one line.
//! - [`program`]: test programs that cannot use libtest, because they need a process with one thread.
//!
//! Other crates use this one only in tests, and it depends on no other crate.
#![forbid(unsafe_code)]

pub mod ask;
mod disturbed;
pub mod kept;
mod ports;
pub mod program;
mod skip;
mod turn;
mod unwrapped;

pub use ask::ask;
pub use disturbed::{Disturbance, Watch};
pub use ports::free_ports;
pub use skip::{has, skip};
pub use turn::{Turn, turn};
pub use unwrapped::unwrapped;

/// Writes a line to stdout. The test runner captures what `println!` writes, and shows it only for tests that fail. But
/// `test.sh` must find and count these lines.
fn say(line: &str) {
    use std::io::Write;
    // If the pipe is closed, the error is ignored: this is no reason to fail.
    let _ = writeln!(std::io::stdout(), "\n{line}");
}
