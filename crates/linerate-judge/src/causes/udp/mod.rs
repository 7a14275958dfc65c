//! Causes that limit loads of datagrams (UDP).

pub(crate) mod datagrams;
pub(crate) mod socket_drops;
