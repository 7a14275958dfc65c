//! InfiniBand networks: the datagrams that manage them, and the network that they show.

pub mod capture;
#[cfg(any(test, feature = "lab-dev"))]
pub mod fake;
pub mod finding;
pub mod mad;
pub mod network;
pub mod walk;
