//! Causes of datagrams.

pub(crate) mod datagrams;
pub(crate) mod socket_drops;
