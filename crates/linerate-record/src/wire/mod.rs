//! The messages between two peers, and their encoding.
//!
//! A connection begins with the [`preamble`], which every version can read. On a control connection a Noise handshake
//! follows, and then [`message`]s: CBOR ([`codec`]), split into the [`chunk`]s of Noise transport frames. On a data
//! connection the [`proof`] follows that it belongs to a session, and then payload, or the [`knock`] of datagrams.
//! [`limits`] bound what a plan may request of a server.
//!
//! All input is hostile until decoded: sizes, depths and counts are bounded before memory is allocated, and no
//! decoder here can panic. This module does no cryptography and no I/O.

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
    /// A field of the preamble has an invalid value.
    #[error("malformed {what} in the preamble")]
    Preamble {
        /// Name of the invalid field.
        what: &'static str,
    },
    /// A message exceeds the bound on its size.
    #[error("message of more than {limit} bytes")]
    TooLarge {
        /// The largest allowed size, in bytes.
        limit: usize,
    },
    /// A message nests deeper, or holds more items, than the bound allows.
    #[error("message with more than {limit} {what}")]
    TooComplex {
        /// What there is too much of: `items` or `levels`.
        what: &'static str,
        /// The largest allowed number.
        limit: usize,
    },
    /// The bytes are not well-formed CBOR of the kind that linerate writes.
    #[error("malformed message at byte {at}")]
    Malformed {
        /// Offset of the first invalid byte.
        at: usize,
    },
    /// The bytes are well-formed CBOR, but not a message of this protocol.
    #[error("unknown message: {why}")]
    Unknown {
        /// The error of the decoder.
        why: String,
    },
    /// Readings are impossible: a column has another length than the times, or the times descend.
    #[error("malformed readings of {table}")]
    Readings {
        /// Source and subject of the table.
        table: String,
    },
    /// A message could not be written.
    #[error("message cannot be encoded: {why}")]
    Encode {
        /// The error of the encoder.
        why: String,
    },
    /// A decrypted frame is not a valid part of a message.
    #[error("malformed frame")]
    Frame,
}
