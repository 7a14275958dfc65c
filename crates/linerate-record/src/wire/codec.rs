//! Messages as CBOR, checked before they are decoded.
//!
//! The check reads the header of each item without allocating memory. Only the subset of CBOR that linerate writes
//! passes (definite lengths, no tags), within bounds of depth and items. The decoder can then allocate only in
//! proportion to the received bytes.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::WireError;
use crate::cbor;

/// Largest size of one message.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Largest size in bytes.
    pub bytes: usize,
    /// Largest number of items: numbers, texts, lists and maps.
    pub items: usize,
}

/// Deepest nesting of lists and maps.
pub const DEPTH_MAX: usize = 16;

impl Bounds {
    /// The bounds of messages that a server reads, such as plans and offers.
    pub const ASK: Self = Self { bytes: 64 * 1024, items: 16 * 1024 };
    /// The bounds of messages that a client reads, such as the readings of a step.
    pub const ANSWER: Self = Self { bytes: 32 * 1024 * 1024, items: 16 * 1024 * 1024 };
}

/// Encodes a message, within the bounds that its reader will apply.
pub fn encode<T: Serialize>(message: &T, bounds: Bounds) -> Result<Vec<u8>, WireError> {
    let mut bytes = Vec::new();
    ciborium::into_writer(message, &mut bytes)
        .map_err(|e| WireError::Encode { why: e.to_string() })?;
    check(&bytes, bounds)?;
    Ok(bytes)
}

/// Decodes a message from a peer. Control characters in its texts are replaced, since a text may be shown on a
/// terminal.
pub fn decode<T: DeserializeOwned>(bytes: &[u8], bounds: Bounds) -> Result<T, WireError> {
    let texts = check(bytes, bounds)?;
    let clean = without_controls(bytes, &texts);
    let (message, rest) =
        cbor::read(&clean).map_err(|e| WireError::Unknown { why: e.to_string() })?;
    if rest.is_empty() {
        Ok(message)
    } else {
        Err(WireError::Malformed { at: bytes.len() - rest.len() })
    }
}

/// The places in a message of texts that have control characters.
type Texts = Vec<std::ops::Range<usize>>;

/// Checks one CBOR item and all items in it; returns the places of texts with control characters.
fn check(bytes: &[u8], bounds: Bounds) -> Result<Texts, WireError> {
    if bytes.len() > bounds.bytes {
        return Err(WireError::TooLarge { limit: bounds.bytes });
    }
    let mut texts = Texts::new();
    let mut open = [0_u64; DEPTH_MAX];
    let (mut depth, mut at, mut items) = (0, 0, 0);
    loop {
        items += 1;
        if items > bounds.items {
            return Err(WireError::TooComplex { what: "items", limit: bounds.items });
        }
        let header = Header::read(bytes, at)?;
        at = header.end;
        match header.major {
            0 | 1 | 7 => {}
            2 | 3 => {
                let len = within(header.value, bytes.len() - at, header.start)? as usize;
                if header.major == 3 && has_controls(&bytes[at..at + len]) {
                    texts.push(at..at + len);
                }
                at += len;
            }
            4 | 5 => {
                let per_entry = u64::from(header.major) - 3;
                let count = header.value.saturating_mul(per_entry);
                // Every item uses at least one byte.
                let count = within(count, bytes.len() - at, header.start)?;
                if depth == DEPTH_MAX {
                    return Err(WireError::TooComplex { what: "levels", limit: DEPTH_MAX });
                }
                // One more than the number of items in the list, because the loop below also subtracts the list
                // itself.
                open[depth] = count + 1;
                depth += 1;
            }
            _ => return Err(WireError::Malformed { at: header.start }),
        }
        while depth > 0 {
            open[depth - 1] -= 1;
            if open[depth - 1] > 0 {
                break;
            }
            depth -= 1;
        }
        if depth == 0 {
            break;
        }
    }
    if at == bytes.len() { Ok(texts) } else { Err(WireError::Malformed { at }) }
}

fn within(value: u64, left: usize, at: usize) -> Result<u64, WireError> {
    if value <= left as u64 { Ok(value) } else { Err(WireError::Malformed { at }) }
}

/// A CBOR header. //= RFC 8949, section 3
struct Header {
    start: usize,
    end: usize,
    major: u8,
    value: u64,
}

impl Header {
    fn read(bytes: &[u8], start: usize) -> Result<Self, WireError> {
        let wrong = WireError::Malformed { at: start };
        let first = *bytes.get(start).ok_or(wrong.clone())?;
        let (major, info) = (first >> 5, first & 31);
        let extra = match info {
            0..=23 => 0,
            24..=27 => 1_usize << (info - 24),
            _ => return Err(wrong),
        };
        let end = start + 1 + extra;
        let tail = bytes.get(start + 1..end).ok_or(wrong)?;
        let value = if extra == 0 {
            u64::from(info)
        } else {
            tail.iter().fold(0, |v, b| v << 8 | u64::from(*b))
        };
        Ok(Self { start, end, major, value })
    }
}

/// Whether a UTF-8 text has bytes of control characters: C0, DEL, or C1 (0xC2 0x80 to 0xC2 0x9F).
fn has_controls(text: &[u8]) -> bool {
    text.iter().any(|b| *b < 0x20 || *b == 0x7F)
        || text.windows(2).any(|w| w[0] == 0xC2 && (0x80..0xA0).contains(&w[1]))
}

fn without_controls<'a>(bytes: &'a [u8], texts: &Texts) -> Cow<'a, [u8]> {
    if texts.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let mut clean = bytes.to_vec();
    for range in texts {
        let text = &mut clean[range.clone()];
        for i in 0..text.len() {
            if text[i] < 0x20 || text[i] == 0x7F {
                text[i] = b' ';
            } else if text[i] == 0xC2 && text.get(i + 1).is_some_and(|b| *b < 0xA0) {
                text[i] = b' ';
                text[i + 1] = b' ';
            }
        }
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: Bounds = Bounds { bytes: 64, items: 8 };

    #[test]
    fn bounds_hold_on_both_sides() {
        let seven = vec![1_u8; 7];
        assert_eq!(decode::<Vec<u8>>(&encode(&seven, SMALL).unwrap(), SMALL), Ok(seven));
        assert!(matches!(
            encode(&vec![1_u8; 8], SMALL),
            Err(WireError::TooComplex { limit: 8, .. })
        ));
        assert!(encode(&"x".repeat(62), SMALL).is_ok());
        assert!(matches!(encode(&"x".repeat(63), SMALL), Err(WireError::TooLarge { limit: 64 })));
    }

    #[test]
    fn nesting_is_bounded_on_both_sides() {
        let bounds = Bounds { bytes: 100, items: 100 };
        let deep = |n: usize| [vec![0x81; n], vec![0]].concat();
        assert!(check(&deep(DEPTH_MAX), bounds).is_ok());
        assert!(matches!(
            check(&deep(DEPTH_MAX + 1), bounds),
            Err(WireError::TooComplex { what: "levels", .. })
        ));
    }

    #[test]
    fn announced_sizes_are_not_believed() {
        for huge in [0x5B, 0x7B, 0x9B, 0xBB] {
            let bytes = [&[huge], u64::MAX.to_be_bytes().as_slice()].concat();
            assert_eq!(check(&bytes, SMALL), Err(WireError::Malformed { at: 0 }));
        }
    }

    #[test]
    fn only_the_plain_subset_passes() {
        // Invalid: indefinite list, indefinite text, tag, reserved length, no item, two items.
        for bytes in [&[0x9F, 0xFF][..], &[0x7F, 0xFF], &[0xC0, 0x00], &[0x1C], &[], &[0, 0]] {
            assert!(check(bytes, SMALL).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn control_characters_do_not_come_through() {
        let text = "a\u{1b}[2Jb\u{9b}c\u{7f}é".to_owned();
        let got: String = decode(&encode(&text, SMALL).unwrap(), SMALL).unwrap();
        assert_eq!(got, "a [2Jb  c é");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_value_that_passes_the_check_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let passes = check(&bytes, SMALL).is_ok();
            prop_assert!(passes || decode::<ciborium::Value>(&bytes, SMALL).is_err());
            prop_assert!(passes || decode::<Vec<Option<String>>>(&bytes, SMALL).is_err());
        }

        #[test]
        fn text_stays_text(text in any::<String>()) {
            let bounds = Bounds { bytes: 4096, items: 4 };
            let got: String = decode(&encode(&text, bounds).unwrap(), bounds).unwrap();
            prop_assert!(!got.chars().any(char::is_control));
        }
    }
}
