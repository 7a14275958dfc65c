//! Steps over real sockets on loopback.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod handover;
mod held;
mod loopback;
mod support;
mod udp;
mod uring;
