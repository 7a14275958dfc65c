//! Helpers that the tests of all crates share.
//!
//! - [`skip()`]: a test that cannot run here says so, and fails where it is required.
//! - [`ask()`]: a test on a disturbed machine measures again, and counts when it could not decide.
//! - [`turn()`]: only one test of a program loads the machine at a time.
//! - [`free_ports()`]: ports for the servers of a test.
//! - [`kept`]: documents that the program writes and the repository keeps.
//! - [`unwrapped()`]: a page as one line of words.
//! - [`program`]: test programs that cannot use libtest, because they need a process with one thread.
//!
//! No other crate depends on this one outside of tests, and it depends on nothing.
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

/// Writes a line to stdout. The test runner captures what `println!` writes, and shows it only of
/// tests that fail; `test.sh` must find and count these lines.
fn say(line: &str) {
    use std::io::Write;
    // A closed pipe is no reason to fail.
    let _ = writeln!(std::io::stdout(), "\n{line}");
}
