//! The messages of two peers, and their encoding.
//!
//! A connection opens with the [`preamble`], readable by every version. A control connection goes on with a
//! Noise handshake and then carries [`message`]s: CBOR ([`codec`]), cut into the [`chunk`]s of Noise transport
//! frames. A data connection goes on with the [`proof`] that it belongs to a session, and then carries payload,
//! or the [`knock`] of datagrams. [`limits`] bound what a plan may ask of a server.
//!
//! All of it is hostile until decoded: sizes, depths and counts are bounded before anything is allocated, and
//! no decoder here can panic. This module does no cryptography and no I/O.

pub mod chunk;
pub mod codec;
pub mod knock;
pub mod limits;
pub mod message;
pub mod preamble;
pub mod proof;
pub mod samples;

/// Why bytes from a peer are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes do not begin with the magic of linerate.
    #[error("this is not the linerate protocol")]
    NotLinerate,
    /// A field of the preamble has no meaning.
    #[error("malformed {what} in the preamble")]
    Preamble {
        /// The field that is out of bounds.
        what: &'static str,
    },
    /// A message passes the bound on its size.
    #[error("message of more than {limit} bytes")]
    TooLarge {
        /// The largest allowed size, in bytes.
        limit: usize,
    },
    /// A message nests deeper, or holds more items, than the bound allows.
    #[error("message with more than {limit} {what}")]
    TooComplex {
        /// The kind that is too many: `items` or `levels`.
        what: &'static str,
        /// The largest allowed value.
        limit: usize,
    },
    /// The bytes are not well-formed CBOR of the kind that linerate writes.
    #[error("malformed message at byte {at}")]
    Malformed {
        /// Offset of the first invalid byte.
        at: usize,
    },
    /// Well-formed, but not a message of this protocol.
    #[error("unknown message: {why}")]
    Unknown {
        /// The error that the decoder found.
        why: String,
    },
    /// Impossible readings: a column with another length than the time axis, or a time axis that goes back.
    #[error("malformed readings of {table}")]
    Readings {
        /// Source and subject of the table.
        table: String,
    },
    /// A message could not be written.
    #[error("message cannot be encoded: {why}")]
    Encode {
        /// The error that the encoder found.
        why: String,
    },
    /// A transport frame breaks the rules of chunks.
    #[error("malformed frame")]
    Frame,
}
