//! The built program on this machine, as a user meets it: what it says, what it measures of loopback,
//! what it does where things go wrong.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not take for tests"
)]

mod carriers;
mod cli;
mod diff;
mod document;
mod fabric;
mod host;
mod hostile;

mod schema;
mod single;
mod ssh;
mod stream;
mod turn;
