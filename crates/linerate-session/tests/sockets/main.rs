//! Tests of steps over real sockets on loopback.
#![expect(clippy::unwrap_used, reason = "clippy does not recognise helpers of tests")]

mod handover;
mod held;
mod loopback;
mod shm;
mod support;
mod udp;
mod uring;
