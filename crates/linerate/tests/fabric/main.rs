//! The built program on simulated InfiniBand networks: ibsim simulates all nodes, and opensm manages them.
#![expect(clippy::unwrap_used, reason = "clippy does not recognise helpers of tests")]

mod lost;
mod planted;
mod seen;
mod simulated;
mod trap;
