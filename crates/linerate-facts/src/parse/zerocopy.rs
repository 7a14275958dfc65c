//! Parses the kernel's reports about sends without a copy, which are control messages in a socket's error queue.
//!
//! Each report contains the range of numbers of the completed sends.
//= https://docs.kernel.org/networking/msg_zerocopy.html#notification-parsing

use super::control::{messages, word};

/// Bytes that a reader should provide for the control messages of one reading.
pub const ROOM: usize = 128;

/// Levels and types of error messages: `SOL_IP` with `IP_RECVERR`, `SOL_IPV6` with `IPV6_RECVERR`.
const ERRORS: [(u32, u32); 2] = [(0, 11), (41, 25)];
/// Origin of a report about zero-copy sends: `SO_EE_ORIGIN_ZEROCOPY`, include/uapi/linux/errqueue.h.
const ORIGIN_ZEROCOPY: u8 = 5;
/// Code of a report that the kernel copied: `SO_EE_CODE_ZEROCOPY_COPIED`, include/uapi/linux/errqueue.h.
const CODE_COPIED: u8 = 1;

/// Zero-copy sends that the kernel has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The number of completed sends.
    pub sends: u64,
    /// Whether the kernel copied the payload of these sends after all.
    pub copied: bool,
}

/// The completions in the control messages of one reading. Other messages are skipped.
pub fn completions(control: &[u8]) -> impl Iterator<Item = Completion> + '_ {
    messages(control)
        .filter(|message| ERRORS.contains(&(message.level, message.kind)))
        .filter_map(|message| completion(message.body))
}

/// Decodes a `struct sock_extended_err`; `None` if it is no completion.
//= include/uapi/linux/errqueue.h
fn completion(raw: &[u8]) -> Option<Completion> {
    let (origin, code) = (*raw.get(4)?, *raw.get(6)?);
    let (first, last) = (word(raw, 8)?, word(raw, 12)?);
    (origin == ORIGIN_ZEROCOPY).then(|| Completion {
        // The numbers of sends wrap around at 2^32.
        sends: u64::from(last.wrapping_sub(first)) + 1,
        copied: code == CODE_COPIED,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::control::HEAD;
    use super::*;

    fn control(level: u32, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut raw = (HEAD + body.len()).to_ne_bytes().to_vec();
        raw.extend(level.to_ne_bytes());
        raw.extend(kind.to_ne_bytes());
        raw.extend(body);
        raw.resize(raw.len().next_multiple_of(size_of::<usize>()), 0);
        raw
    }

    fn notice(origin: u8, code: u8, first: u32, last: u32) -> Vec<u8> {
        let mut raw = vec![0, 0, 0, 0, origin, 0, code, 0];
        raw.extend(first.to_ne_bytes());
        raw.extend(last.to_ne_bytes());
        // The address after the struct is not read.
        raw.resize(32, 0);
        raw
    }

    #[test]
    fn ranges_are_counted_over_the_wrap_and_copies_told_apart() {
        let of = |code, first, last| {
            let raw = control(0, 11, &notice(5, code, first, last));
            completions(&raw).next().map(|c| (c.sends, c.copied))
        };
        assert_eq!(of(0, 7, 7), Some((1, false)));
        assert_eq!(of(1, 7, 9), Some((3, true)));
        assert_eq!(of(0, u32::MAX, 1), Some((3, false)));
    }

    #[test]
    fn messages_of_both_families_count_and_others_are_passed_over() {
        let raw = [
            control(1, 29, &[0; 16]),
            control(41, 25, &notice(5, 0, 0, 1)),
            control(0, 11, &notice(2, 1, 0, 8)),
            control(0, 11, &notice(5, 1, 2, 2)),
        ]
        .concat();
        let found: Vec<u64> = completions(&raw).map(|c| c.sends).collect();
        assert_eq!(found, [2, 1]);
        let cut = completions(&raw[..raw.len() - 32]).count();
        assert_eq!(cut, 1, "the last one is cut short");
    }

    #[test]
    fn a_message_that_claims_less_than_its_head_ends_the_reading() {
        for long in 0..HEAD {
            let mut raw = control(0, 11, &notice(5, 0, 0, 0));
            raw[..size_of::<usize>()].copy_from_slice(&long.to_ne_bytes());
            assert_eq!(completions(&raw).count(), 0);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(raw: Vec<u8>) {
            prop_assert!(completions(&raw).count() <= raw.len() / HEAD);
        }
    }
}
