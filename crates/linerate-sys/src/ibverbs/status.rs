//! Status of completed requests.

use std::ffi::c_int;
use std::fmt;

/// The status of a completion (`enum ibv_wc_status`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

/// Meaning of each status, by its number.
//= rdma-core 65.0, libibverbs/man/ibv_poll_cq.3.md; InfiniBand Architecture Specification 1.4, section 11.6.2
const MEANINGS: [&str; 24] = [
    "success",
    "a message is longer than the buffer that was posted for it, or than the port allows",
    "the queue pair is in a state or has settings that the device cannot work with",
    "an inconsistent end-to-end context",
    "a local buffer is not registered for this queue pair",
    "the queue pair was in error, so that the request was not carried out",
    "memory could not be bound",
    "the other end sent a response that makes no sense",
    "the other end's data could not be written to the local buffer",
    "the other end received a request that it does not allow or whose size it does not accept",
    "the other end does not allow access to that memory",
    "the other end could not carry out a request",
    "the other end acknowledged nothing, however often the request was sent again",
    "the other end had posted no receive request, however often it was asked again",
    "a datagram of another reliable domain",
    "a request of another reliable domain",
    "the request was aborted",
    "an invalid end-to-end context",
    "an end-to-end context in a wrong state",
    "the device failed",
    "the device did not answer in time",
    "an error that the device does not explain",
    "tag matching failed",
    "tag matching needs software",
];

impl Status {
    /// The request was completed without an error.
    pub const SUCCESS: Self = Self(0);
    /// A message is longer than the receive buffer, or than the port allows.
    pub const LOCAL_LENGTH: Self = Self(1);
    /// The queue pair was already in the error state.
    pub const FLUSHED: Self = Self(5);
    /// The other end refused a request.
    pub const REMOTE_INVALID: Self = Self(9);
    /// The other end refused access to its memory.
    pub const REMOTE_ACCESS: Self = Self(10);
    /// No acknowledgement arrived.
    pub const RETRIES_EXCEEDED: Self = Self(12);
    /// The other end posted no receive request in time.
    pub const RNR_RETRIES_EXCEEDED: Self = Self(13);

    pub(super) const fn new(raw: c_int) -> Self {
        Self(raw.cast_unsigned())
    }

    /// Returns the meaning of the status, as a sentence fragment.
    pub fn meaning(self) -> &'static str {
        MEANINGS.get(self.0 as usize).unwrap_or(&"a status that this version does not know")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status {}: {}", self.0, self.meaning())
    }
}
