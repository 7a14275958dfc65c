//! The first bytes of every connection, in both directions. Their size and layout never change, so that each version
//! can read which versions the other end supports.

use super::WireError;
use linerate_plan::transport::{BIND, DSCP};
use linerate_plan::{Handover, SetPlan};

/// Number of bytes of a [`Hello`].
pub const HELLO_LEN: usize = 32;
/// Number of bytes of a [`Reply`].
pub const REPLY_LEN: usize = 96;
/// The versions of the protocol that this build supports: lowest and highest. Since version 2 a plan may request
/// io_uring; since [`BEATS`] a far end also answers during a step.
pub const VERSIONS: Versions = Versions { low: 1, high: 3 };
/// The first version in which a far end answers [`super::message::Ask::Ping`] during a step.
pub const BEATS: u16 = 3;

const HELLO_MAGIC: &[u8; 8] = b"LINERATE";
// Different from `HELLO_MAGIC`: otherwise a service that echoes would look like a server.
const REPLY_MAGIC: &[u8; 8] = b"linerate";
const WORDS_AT: usize = 48;

/// A range of protocol versions, with its lowest and highest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// Lowest version.
    pub low: u16,
    /// Highest version.
    pub high: u16,
}

impl Versions {
    /// The highest version that both ranges contain.
    pub fn common(self, other: Self) -> Option<u16> {
        let high = self.high.min(other.high);
        (high >= self.low.max(other.low)).then_some(high)
    }
}

/// The first version in which a far end can decode this plan. An older version would take the message for malformed.
pub fn since(plan: &SetPlan) -> u16 {
    let options = &plan.knobs.options;
    if [BIND.key, DSCP.key].iter().any(|key| options.get(key).is_some()) {
        return 3;
    }
    match plan.knobs.copy {
        Handover::IoUring => 2,
        Handover::Copy | Handover::Zerocopy | Handover::Sendfile => 1,
    }
}

/// What a connection is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The control connection of a new session.
    Control,
    /// A data connection of a session.
    Data,
}

/// The first message of the end that opens the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Versions that this end supports.
    pub versions: Versions,
    /// The purpose of the connection.
    pub kind: Kind,
}

/// Whether a server requires a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A client must prove that it has the pre-shared key.
    Key,
    /// Anyone may measure; the encryption hides nothing, because its key is public.
    Open,
}

/// The server's answer to a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Versions that the server supports. If the client supports none of them, the server closes after this reply.
    pub versions: Versions,
    /// Whether the server requires a key.
    pub access: Access,
    /// Random bytes, new on every connection: proofs over them are valid on this connection only.
    pub nonce: [u8; 32],
}

fn versions(bytes: &[u8]) -> Result<Versions, WireError> {
    let low = u16::from_be_bytes([bytes[0], bytes[1]]);
    let high = u16::from_be_bytes([bytes[2], bytes[3]]);
    if low == 0 || low > high {
        return Err(WireError::Preamble { what: "versions" });
    }
    Ok(Versions { low, high })
}

fn put_versions(bytes: &mut [u8], versions: Versions) {
    bytes[..2].copy_from_slice(&versions.low.to_be_bytes());
    bytes[2..4].copy_from_slice(&versions.high.to_be_bytes());
}

impl Hello {
    /// Encodes the hello. Unused bytes are zero, and readers ignore them.
    pub fn encode(&self) -> [u8; HELLO_LEN] {
        let mut bytes = [0; HELLO_LEN];
        bytes[..8].copy_from_slice(HELLO_MAGIC);
        put_versions(&mut bytes[8..12], self.versions);
        bytes[12] = match self.kind {
            Kind::Control => 1,
            Kind::Data => 2,
        };
        bytes
    }

    /// Decodes the hello of the end that opened the connection.
    pub fn decode(bytes: &[u8; HELLO_LEN]) -> Result<Self, WireError> {
        if &bytes[..8] != HELLO_MAGIC {
            return Err(WireError::NotLinerate);
        }
        let kind = match bytes[12] {
            1 => Kind::Control,
            2 => Kind::Data,
            _ => return Err(WireError::Preamble { what: "kind" }),
        };
        Ok(Self { versions: versions(&bytes[8..12])?, kind })
    }
}

impl Reply {
    /// Encodes the reply. It ends with a text for people who connect with other tools.
    pub fn encode(&self) -> [u8; REPLY_LEN] {
        let mut bytes = [0; REPLY_LEN];
        bytes[..8].copy_from_slice(REPLY_MAGIC);
        put_versions(&mut bytes[8..12], self.versions);
        let words: &[u8] = match self.access {
            Access::Key => {
                bytes[12] = 1;
                b"a linerate server; it requires a key\n"
            }
            Access::Open => {
                bytes[12] = 2;
                b"a linerate server, open to anyone: no key\n"
            }
        };
        bytes[16..WORDS_AT].copy_from_slice(&self.nonce);
        bytes[WORDS_AT..WORDS_AT + words.len()].copy_from_slice(words);
        bytes
    }

    /// Decodes the reply of a server.
    pub fn decode(bytes: &[u8; REPLY_LEN]) -> Result<Self, WireError> {
        if !Self::may_begin(&bytes[..8]) {
            return Err(WireError::NotLinerate);
        }
        let access = match bytes[12] {
            1 => Access::Key,
            2 => Access::Open,
            _ => return Err(WireError::Preamble { what: "access" }),
        };
        let mut nonce = [0; 32];
        nonce.copy_from_slice(&bytes[16..WORDS_AT]);
        Ok(Self { versions: versions(&bytes[8..12])?, access, nonce })
    }

    /// Whether a reply of linerate can begin with these bytes. Another service is recognised so without waiting for a
    /// full reply.
    pub fn may_begin(bytes: &[u8]) -> bool {
        let n = bytes.len().min(REPLY_MAGIC.len());
        bytes[..n] == REPLY_MAGIC[..n]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_meet_only_where_they_overlap() {
        let range = |low, high| Versions { low, high };
        assert_eq!(range(1, 3).common(range(3, 5)), Some(3));
        assert_eq!(range(1, 3).common(range(4, 5)), None);
        assert_eq!(range(2, 9).common(range(1, 4)), Some(4));
    }

    #[test]
    fn an_echo_is_not_a_reply() {
        let hello = Hello { versions: VERSIONS, kind: Kind::Control };
        assert!(!Reply::may_begin(&hello.encode()));
        assert!(Reply::may_begin(b"line"));
        assert!(!Reply::may_begin(b"HTTP/1.1"));
    }

    proptest! {
        #[test]
        fn hello_round_trips(low in 1u16.., more in 0u16..9, data in any::<bool>()) {
            let hello = Hello {
                versions: Versions { low, high: low.saturating_add(more) },
                kind: if data { Kind::Data } else { Kind::Control },
            };
            prop_assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }

        #[test]
        fn reply_round_trips(low in 1u16.., open in any::<bool>(), nonce in any::<[u8; 32]>()) {
            let reply = Reply {
                versions: Versions { low, high: u16::MAX },
                access: if open { Access::Open } else { Access::Key },
                nonce,
            };
            prop_assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
        }

        #[test]
        fn any_bytes_are_a_preamble_or_an_error(
            hello in any::<[u8; HELLO_LEN]>(), tail in any::<[u8; HELLO_LEN - 8]>(),
        ) {
            let _ = Hello::decode(&hello);
            let mut bytes = hello;
            bytes[..8].copy_from_slice(HELLO_MAGIC);
            bytes[8..].copy_from_slice(&tail);
            let _ = Hello::decode(&bytes);
        }
    }
}
