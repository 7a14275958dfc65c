//! Parses control messages: data that a socket delivers in addition to the received bytes.

/// Bytes of control messages that a reader should provide for a time stamp.
pub const STAMP_ROOM: usize = 64;

/// Length in bytes of the head of a control message, which has its length, level and type.
//= include/linux/socket.h, struct cmsghdr
pub(super) const HEAD: usize = size_of::<usize>() + 8;
/// Levels and types of messages with a time stamp: `SOL_SOCKET` with `SO_TIMESTAMPNS` (64-bit words) or
/// `SO_TIMESTAMPNS_NEW`.
//= include/uapi/asm-generic/socket.h
const STAMPS: [(u32, u32); 2] = [(1, 35), (1, 64)];

/// A control message.
pub(super) struct Message<'a> {
    pub(super) level: u32,
    pub(super) kind: u32,
    pub(super) body: &'a [u8],
    /// The bytes after the header.
    rest: &'a [u8],
}

impl<'a> Message<'a> {
    fn first(raw: &'a [u8]) -> Option<Self> {
        let long = usize::from_ne_bytes(*raw.first_chunk()?);
        let body = raw.get(HEAD..long)?;
        // Each message begins at a multiple of the machine's word size. The last one need not be padded.
        let next = long.checked_next_multiple_of(size_of::<usize>())?;
        Some(Self {
            level: word(raw, HEAD - 8)?,
            kind: word(raw, HEAD - 4)?,
            body,
            rest: raw.get(next..).unwrap_or_default(),
        })
    }
}

/// The control messages of one receive call, up to the first truncated one.
pub(super) fn messages(control: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let first = Message::first(control);
    std::iter::successors(first, |message| Message::first(message.rest))
}

pub(super) fn word(raw: &[u8], at: usize) -> Option<u32> {
    let found = raw.get(at..at.checked_add(4)?)?;
    found.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

/// The time at which the kernel received the data that `control` belongs to, in nanoseconds of the wall clock. `None`
/// without a time stamp.
#[inline]
pub fn stamp(control: &[u8]) -> Option<u64> {
    let reported = messages(control).find(|m| STAMPS.contains(&(m.level, m.kind)))?;
    let secs = u64::try_from(long(reported.body, 0)?).ok()?;
    let nanos = u64::try_from(long(reported.body, 8)?).ok()?;
    secs.checked_mul(1_000_000_000)?.checked_add(nanos)
}

fn long(raw: &[u8], at: usize) -> Option<i64> {
    let found = raw.get(at..at.checked_add(8)?)?;
    found.first_chunk().map(|word| i64::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(level: u32, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut raw = (HEAD + body.len()).to_ne_bytes().to_vec();
        raw.extend(level.to_ne_bytes());
        raw.extend(kind.to_ne_bytes());
        raw.extend(body);
        raw.resize(raw.len().next_multiple_of(size_of::<usize>()), 0);
        raw
    }

    fn time(secs: i64, nanos: i64) -> Vec<u8> {
        [secs.to_ne_bytes(), nanos.to_ne_bytes()].concat()
    }

    #[test]
    fn a_stamp_is_found_among_others_and_a_half_one_is_none() {
        let other = message(0, 8, &[1; 5]);
        let reported = message(1, 35, &time(1_700_000_000, 5));
        let both = [&other[..], &reported].concat();
        assert_eq!(stamp(&both), Some(1_700_000_000_000_000_005));
        assert_eq!(stamp(&message(1, 64, &time(0, 7))), Some(7));
        assert_eq!(stamp(&other), None);
        assert_eq!(stamp(&both[..both.len() - 1]), None);
        assert_eq!(stamp(&message(1, 35, &time(-1, 0))), None);
        assert_eq!(stamp(&message(1, 35, &time(i64::MAX, 0))), None);
        assert_eq!(stamp(&message(1, 35, &time(1, 0)[..15])), None);
    }

    proptest! {
        #[test]
        fn any_bytes_end(raw in prop::collection::vec(any::<u8>(), 0..STAMP_ROOM)) {
            let _ = stamp(&raw);
        }
    }
}
