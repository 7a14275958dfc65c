//! Splits messages into Noise transport frames, and puts them together again within a bound.
//!
//! The plain text of a frame is one byte (0: more follows, 1: last) and a part of the message.

use super::WireError;

/// Largest Noise message in bytes: also the largest number that its two-byte length prefix can have.
pub const FRAME_MAX: usize = 65_535;
/// Number of bytes that encryption adds to a frame.
pub const FRAME_TAG: usize = 16;
/// Largest part of a message in one frame, in bytes.
pub const CHUNK_MAX: usize = FRAME_MAX - FRAME_TAG - 1;

/// The parts of a message, each with a flag that is true for the last one; an empty message is one empty part.
pub fn split(message: &[u8]) -> impl Iterator<Item = (bool, &[u8])> {
    let count = message.len().div_ceil(CHUNK_MAX).max(1);
    (0..count).map(move |i| {
        let from = i * CHUNK_MAX;
        let to = message.len().min(from + CHUNK_MAX);
        (i + 1 == count, &message[from..to])
    })
}

/// Puts messages together from the decrypted frames.
#[derive(Debug)]
pub struct Assembler {
    limit: usize,
    message: Vec<u8>,
}

impl Assembler {
    /// Makes an assembler for messages of at most `limit` bytes. Memory grows with the bytes received, never
    /// with an announced length.
    pub fn new(limit: usize) -> Self {
        Self { limit, message: Vec::new() }
    }

    /// Takes the decrypted content of a frame. Returns the message if the frame was its last.
    pub fn push(&mut self, plain: &[u8]) -> Result<Option<Vec<u8>>, WireError> {
        let (&flag, part) = plain.split_first().ok_or(WireError::Frame)?;
        if self.message.len() + part.len() > self.limit {
            return Err(WireError::TooLarge { limit: self.limit });
        }
        self.message.extend_from_slice(part);
        match flag {
            1 => Ok(Some(std::mem::take(&mut self.message))),
            // A part that is empty but not the last could be sent for ever.
            0 if !part.is_empty() => Ok(None),
            _ => Err(WireError::Frame),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames(message: &[u8]) -> Vec<Vec<u8>> {
        split(message).map(|(last, part)| [&[u8::from(last)], part].concat()).collect()
    }

    #[test]
    fn messages_round_trip_around_the_size_of_a_frame() {
        for size in [0, 1, CHUNK_MAX - 1, CHUNK_MAX, CHUNK_MAX + 1, 3 * CHUNK_MAX] {
            let message = vec![5; size];
            let mut assembler = Assembler::new(size);
            let frames = frames(&message);
            let (last, before) = frames.split_last().unwrap();
            for frame in before {
                assert!(frame.len() + FRAME_TAG <= FRAME_MAX);
                assert_eq!(assembler.push(frame), Ok(None));
            }
            assert_eq!(assembler.push(last), Ok(Some(message)));
        }
    }

    #[test]
    fn one_byte_over_the_limit_is_refused() {
        let mut assembler = Assembler::new(10);
        assert_eq!(assembler.push(&[0, 1, 2, 3, 4, 5]), Ok(None));
        assert_eq!(assembler.push(&[1, 1, 2, 3, 4, 5, 6]), Err(WireError::TooLarge { limit: 10 }));
    }

    #[test]
    fn a_frame_that_brings_nothing_is_refused() {
        let mut assembler = Assembler::new(10);
        assert_eq!(assembler.push(&[]), Err(WireError::Frame));
        assert_eq!(assembler.push(&[0]), Err(WireError::Frame));
        assert_eq!(assembler.push(&[2, 1]), Err(WireError::Frame));
    }

    proptest! {
        #[test]
        fn any_frames_stay_under_the_limit(
            frames in prop::collection::vec(prop::collection::vec(0u8..3, 0..9), 0..40),
        ) {
            let mut assembler = Assembler::new(16);
            for frame in frames {
                match assembler.push(&frame) {
                    Ok(Some(message)) => prop_assert!(message.len() <= 16),
                    Ok(None) => prop_assert!(assembler.message.len() <= 16),
                    Err(_) => break,
                }
            }
        }
    }
}
