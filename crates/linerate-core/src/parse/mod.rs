//! Decoders of bytes from outside: replies of the kernel and what other ends send.

pub mod mem_info;
pub mod run;
pub mod tcp_info;
