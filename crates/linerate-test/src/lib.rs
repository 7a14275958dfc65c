//! What the tests of all crates share.
//!
//! - [`skip()`]: a test that cannot run here says so, and fails where it is required.
//! - [`ask()`]: a test on a machine that was disturbed asks again, and counts that it could not tell.
//! - [`program`]: test programs that cannot use libtest, because they need a process with one thread.
//!
//! No other crate depends on this one outside of tests, and it depends on nothing.
#![forbid(unsafe_code)]

pub mod ask;
mod disturbed;
pub mod program;
mod skip;

pub use ask::ask;
pub use disturbed::{Disturbance, Watch};
pub use skip::{has, skip};

/// Writes a line to stdout. The test runner captures what `println!` writes, and shows it only of
/// tests that fail; `test.sh` must find and count these lines.
fn say(line: &str) {
    use std::io::Write;
    // A reader that is gone is no reason to fail.
    let _ = writeln!(std::io::stdout(), "\n{line}");
}
