//! How a data connection names its session, and proves that it belongs to that session.
//!
//! The keyed hash is computed elsewhere; this module defines the layout and the exact bytes that the hash covers.

use super::preamble::{HELLO_LEN, REPLY_LEN};

/// Number of bytes of a [`Claim`].
pub const CLAIM_LEN: usize = 72;
/// Number of bytes of a proof: that in a [`Claim`], and the server's, which answers the claim.
pub const PROOF_LEN: usize = 32;

/// The message of the near end after the preamble of a data connection: its session, set and stream, with a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Public name of the session.
    pub session: [u8; 16],
    /// Number of the set in the session.
    pub set: u32,
    /// Number of the stream in the set.
    pub stream: u32,
    /// Random bytes, new on every connection.
    pub nonce: [u8; 16],
    /// HMAC-SHA256 of the [`transcript`] for [`Prover::Near`], keyed with the session's secret.
    pub proof: [u8; PROOF_LEN],
}

/// The end that proves that it knows the session's secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prover {
    /// The near end, which opens the connection.
    Near,
    /// The far end, which is the server.
    Far,
}

impl Claim {
    /// Encodes the claim for the wire.
    pub fn encode(&self) -> [u8; CLAIM_LEN] {
        let mut bytes = [0; CLAIM_LEN];
        bytes[..16].copy_from_slice(&self.session);
        bytes[16..20].copy_from_slice(&self.set.to_be_bytes());
        bytes[20..24].copy_from_slice(&self.stream.to_be_bytes());
        bytes[24..40].copy_from_slice(&self.nonce);
        bytes[40..].copy_from_slice(&self.proof);
        bytes
    }

    /// Decodes the claim of a near end. All bytes decode to a claim; its proof must be checked afterwards.
    pub fn decode(bytes: &[u8; CLAIM_LEN]) -> Self {
        let word = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let mut claim = Self {
            session: [0; 16],
            set: word(16),
            stream: word(20),
            nonce: [0; 16],
            proof: [0; PROOF_LEN],
        };
        claim.session.copy_from_slice(&bytes[..16]);
        claim.nonce.copy_from_slice(&bytes[24..40]);
        claim.proof.copy_from_slice(&bytes[40..]);
        claim
    }
}

/// The bytes that a proof covers: which end proves, the whole preamble (with the server's nonce), and the claim
/// without its proof (with the client's nonce). A proof is thus valid for one connection, one stream and one
/// direction.
pub fn transcript(
    prover: Prover,
    hello: &[u8; HELLO_LEN],
    reply: &[u8; REPLY_LEN],
    claim: &Claim,
) -> Vec<u8> {
    let label: &[u8] = match prover {
        Prover::Near => b"linerate data, near\0",
        Prover::Far => b"linerate data, far\0\0",
    };
    [label, hello, reply, &claim.encode()[..CLAIM_LEN - PROOF_LEN]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn claims_round_trip(a in any::<[u8; 32]>(), b in any::<[u8; 32]>(), c in any::<u64>()) {
            let mut bytes = [0; CLAIM_LEN];
            bytes[..32].copy_from_slice(&a);
            bytes[32..64].copy_from_slice(&b);
            bytes[64..].copy_from_slice(&c.to_be_bytes());
            prop_assert_eq!(Claim::decode(&bytes).encode(), bytes);
        }

        #[test]
        fn no_two_transcripts_are_alike(at in 0usize..(HELLO_LEN + REPLY_LEN + 40)) {
            let claim = |bytes: &[u8]| {
                let mut all = [0; CLAIM_LEN];
                all[..40].copy_from_slice(bytes);
                Claim::decode(&all)
            };
            let make = |parts: &[u8]| {
                let hello = parts[..HELLO_LEN].try_into().unwrap();
                let reply = parts[HELLO_LEN..HELLO_LEN + REPLY_LEN].try_into().unwrap();
                let claim = claim(&parts[HELLO_LEN + REPLY_LEN..]);
                transcript(Prover::Near, hello, reply, &claim)
            };
            let mut parts = [7; HELLO_LEN + REPLY_LEN + 40];
            let before = make(&parts);
            parts[at] ^= 1;
            prop_assert_ne!(before, make(&parts));
        }
    }

    #[test]
    fn the_two_directions_differ() {
        let claim = Claim::decode(&[1; CLAIM_LEN]);
        let one = |prover| transcript(prover, &[2; HELLO_LEN], &[3; REPLY_LEN], &claim);
        assert_ne!(one(Prover::Near), one(Prover::Far));
    }
}
