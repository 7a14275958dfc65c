//! Marks inside a stream of payload, which show where payload begins and ends.
//!
//! A sender puts a mark with the length before each *run* of payload. It ends a step with a mark that has the step's
//! total. So both ends count the same bytes, and the connection can be used for the next step.

/// Length of a mark in bytes.
pub const MARK_BYTES: usize = 16;
/// Most payload bytes of a run: 10 ms at 800 Gb/s.
pub const RUN_MAX: u64 = 1 << 30;

const MAGIC: [u8; 4] = *b"lnrt";
const KIND_RUN: u8 = 1;
const KIND_END: u8 = 2;

/// A mark before a run of payload, or at the end of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Payload follows. The number is its length in bytes, 1 to [`RUN_MAX`].
    Run(u64),
    /// The step has ended. The number is the bytes of payload that were sent in the step.
    End(u64),
}

/// Why 16 bytes are not a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// The bytes have another format than a mark.
    #[error("a mark is missing: {0:02x?}")]
    NotAMark([u8; 8]),
    /// The mark announces a run whose length no sender uses.
    #[error("a run of {0} bytes was announced")]
    Length(u64),
}

impl Mark {
    /// Encodes the mark: magic bytes, kind, three zero bytes, and the value in network byte order.
    pub fn encode(self) -> [u8; MARK_BYTES] {
        let (kind, value) = match self {
            Self::Run(length) => (KIND_RUN, length),
            Self::End(total) => (KIND_END, total),
        };
        let mut raw = [0; MARK_BYTES];
        raw[..4].copy_from_slice(&MAGIC);
        raw[4] = kind;
        raw[8..].copy_from_slice(&value.to_be_bytes());
        raw
    }

    /// Decodes what [`Mark::encode`] wrote, and refuses anything else.
    pub fn decode(raw: &[u8; MARK_BYTES]) -> Result<Self, MarkError> {
        let [a, b, c, d, kind, 0, 0, 0, value @ ..] = *raw else {
            return Err(not_a_mark(raw));
        };
        let value = u64::from_be_bytes(value);
        match kind {
            _ if [a, b, c, d] != MAGIC => Err(not_a_mark(raw)),
            KIND_RUN if (1..=RUN_MAX).contains(&value) => Ok(Self::Run(value)),
            KIND_RUN => Err(MarkError::Length(value)),
            KIND_END => Ok(Self::End(value)),
            _ => Err(not_a_mark(raw)),
        }
    }
}

fn not_a_mark(raw: &[u8; MARK_BYTES]) -> MarkError {
    let mut head = [0; 8];
    head.copy_from_slice(&raw[..8]);
    MarkError::NotAMark(head)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_length_of_a_run_is_bounded_on_both_sides() {
        for (length, good) in [(0, false), (1, true), (RUN_MAX, true), (RUN_MAX + 1, false)] {
            assert_eq!(Mark::decode(&Mark::Run(length).encode()).is_ok(), good);
        }
    }

    #[test]
    fn every_byte_of_the_head_counts() {
        let good = Mark::End(7).encode();
        for at in 0..8 {
            let mut bad = good;
            bad[at] ^= 0x40;
            assert!(matches!(Mark::decode(&bad), Err(MarkError::NotAMark(_))));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(length in 1..=RUN_MAX, total: u64) {
            for mark in [Mark::Run(length), Mark::End(total)] {
                prop_assert_eq!(Mark::decode(&mark.encode()), Ok(mark));
            }
        }

        #[test]
        fn what_is_read_is_what_would_be_written(raw: [u8; MARK_BYTES]) {
            if let Ok(mark) = Mark::decode(&raw) {
                prop_assert_eq!(mark.encode(), raw);
            }
        }
    }
}
