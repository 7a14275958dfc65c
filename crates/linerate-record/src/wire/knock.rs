//! How the two ends of a session learn each other's UDP address, by datagrams.
//!
//! An authenticated data connection ([`super::proof`]) carries the far end's [`Place`]: a UDP port, and a challenge
//! that is used once. The near end sends its hello (knock) there, and the far end answers to the source address of
//! the knock. From then on each end's socket is connected to the other. The keyed hashes are computed elsewhere; this
//! module defines the layouts and the exact bytes that the hashes cover.

use super::WireError;

/// Number of bytes of a [`Place`].
pub const PLACE_LEN: usize = 18;
/// Number of bytes of a [`Knock`]. The answer has as many, so that a forged knock amplifies nothing.
pub const KNOCK_LEN: usize = 40;
/// Number of bytes of the keyed hash in a [`Knock`].
pub const MAC_LEN: usize = 32;

const MAGIC: &[u8; 8] = b"LRknock\0";

/// The address at which the far end receives the datagrams of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// UDP port, at the address to which the data connection was opened.
    pub port: u16,
    /// Random bytes, new for every stream: a hash over them is valid for this stream only.
    pub challenge: [u8; 16],
}

impl Place {
    /// Encodes the place for the data connection.
    pub fn encode(&self) -> [u8; PLACE_LEN] {
        let mut bytes = [0; PLACE_LEN];
        bytes[..2].copy_from_slice(&self.port.to_be_bytes());
        bytes[2..].copy_from_slice(&self.challenge);
        bytes
    }

    /// Decodes the place that the far end sent.
    pub fn decode(bytes: &[u8; PLACE_LEN]) -> Result<Self, WireError> {
        let [high, low, challenge @ ..] = *bytes;
        match u16::from_be_bytes([high, low]) {
            0 => Err(WireError::Unknown { why: "datagrams for port 0".to_owned() }),
            port => Ok(Self { port, challenge }),
        }
    }
}

/// A datagram that proves who sent it: a knock of the near end, or the far end's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knock {
    /// HMAC-SHA256 of the [`transcript`] with the session's secret.
    pub mac: [u8; MAC_LEN],
}

impl Knock {
    /// Encodes the knock as a datagram.
    pub fn encode(&self) -> [u8; KNOCK_LEN] {
        let mut bytes = [0; KNOCK_LEN];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..].copy_from_slice(&self.mac);
        bytes
    }

    /// Decodes a datagram; `None` if it is not a knock.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; KNOCK_LEN] = bytes.try_into().ok()?;
        let (magic, mac) = bytes.split_at(MAGIC.len());
        (magic == MAGIC).then(|| Self { mac: mac.try_into().unwrap_or_default() })
    }
}

/// What a keyed hash is for, so that none can be used for another purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The near end's knock.
    Knock,
    /// The far end's answer to a knock.
    Answer,
    /// The tag in datagrams that the near end sends.
    NearTag,
    /// The tag in datagrams that the far end sends.
    FarTag,
}

/// The bytes that a keyed hash covers: its purpose, set and stream, and the challenge.
pub fn transcript(purpose: Purpose, set: u32, stream: u32, challenge: &[u8; 16]) -> Vec<u8> {
    let label: &[u8] = match purpose {
        Purpose::Knock => b"linerate datagrams, knock   ",
        Purpose::Answer => b"linerate datagrams, answer  ",
        Purpose::NearTag => b"linerate datagrams, near tag",
        Purpose::FarTag => b"linerate datagrams, far tag ",
    };
    let (set, stream) = (set.to_be_bytes(), stream.to_be_bytes());
    [label, &set, &stream, challenge].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_two_transcripts_are_alike() {
        let purposes = [Purpose::Knock, Purpose::Answer, Purpose::NearTag, Purpose::FarTag];
        let mut all = HashSet::new();
        for purpose in purposes {
            for (set, stream, seed) in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)] {
                all.insert(transcript(purpose, set, stream, &[seed; 16]));
            }
        }
        assert_eq!(all.len(), 16);
        assert!(all.iter().all(|t| t.len() == 28 + 8 + 16));
    }

    #[test]
    fn a_knock_of_another_length_or_magic_is_none() {
        let bytes = Knock { mac: [3; MAC_LEN] }.encode();
        assert!(Knock::decode(&bytes).is_some());
        assert!(Knock::decode(&bytes[..KNOCK_LEN - 1]).is_none());
        assert!(Knock::decode(&[&bytes[..], &[0]].concat()).is_none());
        let mut bent = bytes;
        bent[0] ^= 1;
        assert!(Knock::decode(&bent).is_none());
    }

    proptest! {
        #[test]
        fn places_and_knocks_round_trip(port: u16, challenge: [u8; 16], mac: [u8; MAC_LEN]) {
            let place = Place { port, challenge };
            let read = Place::decode(&place.encode());
            prop_assert_eq!(read.is_ok(), port != 0);
            prop_assert!(read.is_err() || read == Ok(place));
            prop_assert_eq!(Knock::decode(&Knock { mac }.encode()), Some(Knock { mac }));
        }
    }
}
