//! InfiniBand networks: the datagrams that manage them, and the network that they show.

pub mod capture;
pub mod finding;
pub mod mad;
pub mod network;
pub mod walk;
