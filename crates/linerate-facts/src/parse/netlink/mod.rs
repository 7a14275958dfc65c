//! Netlink framing: how a reply is divided into messages, and a message into attributes.
//!
//! No crate is used for netlink. A reply is parsed ten times a second while the path is under load, so only the needed
//! attributes are read, without copies. An unknown attribute of a newer kernel must not make a whole reply an error.

pub mod write;

use std::borrow::Cow;
use std::net::IpAddr;

use super::Malformed;

/// Message type of an error, or of a positive acknowledgement.
const ERROR: u16 = 2;
/// Message type that ends a dump.
const DONE: u16 = 3;
/// Message flag: more messages of this reply follow.
const MULTI: u16 = 2;
/// Message flag: the dumped table changed during the dump, so that parts may be missing.
const DUMP_INTERRUPTED: u16 = 0x10;

/// Mask for the type of an attribute: the two top bits of its number are flags.
const TYPE_MASK: u16 = 0x3fff;

/// One netlink message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Type of the message, such as `RTM_NEWLINK`.
    pub kind: u16,
    /// Flags of the message.
    pub flags: u16,
    /// Sequence number of the request that the message replies to.
    pub sequence: u32,
    /// The bytes after the message's header.
    pub body: &'a [u8],
}

/// What the framing of one part of a reply shows about the whole reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Part {
    /// Whether the reply ends with this part.
    pub last: bool,
    /// Whether the dumped table changed during the dump, so that parts may be missing.
    pub interrupted: bool,
}

/// Why a request has no usable reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The kernel's error number, as a positive number.
    Errno(i32),
    /// The reply cannot be decoded.
    Malformed(Malformed),
}

impl From<Malformed> for Refusal {
    fn from(why: Malformed) -> Self {
        Self::Malformed(why)
    }
}

impl From<Refusal> for std::io::Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Errno(number) => Self::from_raw_os_error(number),
            Refusal::Malformed(why) => Self::new(std::io::ErrorKind::InvalidData, why),
        }
    }
}

/// Checks the messages in the result of one `recv`, for the reply to the request with this sequence number. Messages of
/// other replies are skipped.
pub fn part(bytes: &[u8], sequence: u32) -> Result<Part, Refusal> {
    let mut part = Part::default();
    for message in messages(bytes) {
        let message = message?;
        if message.sequence != sequence {
            continue;
        }
        part.interrupted |= message.flags & DUMP_INTERRUPTED != 0;
        part.last |= match message.kind {
            ERROR => match error_number(message.body)? {
                0 => true,
                number => return Err(Refusal::Errno(number)),
            },
            // The message that ends a dump may contain an error number; some kernels leave the number out.
            DONE => match error_number(message.body) {
                Ok(number) if number > 0 => return Err(Refusal::Errno(number)),
                _ => true,
            },
            // A reply that is a single message has no message to end it.
            _ => message.flags & MULTI == 0,
        };
    }
    Ok(part)
}

/// The messages of a reply. The iteration ends after the first error.
pub fn messages(reply: &[u8]) -> impl Iterator<Item = Result<Message<'_>, Malformed>> {
    Cut { rest: reply, cut: message }
}

/// The attributes after the fixed part of a message. The iteration ends after the first error.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = Result<(u16, &[u8]), Malformed>> {
    Cut { rest: bytes, cut: attribute }
}

/// Calls `change` with the type and the body of each message. Bytes after the last whole message are overwritten.
pub(super) fn change_messages(reply: &mut [u8], mut change: impl FnMut(u16, &mut [u8])) {
    let mut rest = reply;
    while let Some((kind, length)) = message(rest).ok().map(|(m, _)| (m.kind, m.body.len())) {
        rest = change_front(rest, 16, length, |body| change(kind, body));
    }
    rest.fill(0);
}

/// Calls `change` with the type and the value of each attribute. Bytes after the last whole attribute are overwritten.
pub(super) fn change_attributes(bytes: &mut [u8], mut change: impl FnMut(u16, &mut [u8])) {
    let mut rest = bytes;
    while let Some((kind, length)) = attribute(rest).ok().map(|((kind, v), _)| (kind, v.len())) {
        rest = change_front(rest, 4, length, |value| change(kind, value));
    }
    rest.fill(0);
}

/// Calls `change` for the item at the front of the buffer, overwrites its padding, and returns the rest of the buffer.
fn change_front(
    bytes: &mut [u8],
    header: usize,
    length: usize,
    change: impl FnOnce(&mut [u8]),
) -> &mut [u8] {
    let end = header + length;
    let next = end.next_multiple_of(4).min(bytes.len());
    let (front, rest) = bytes.split_at_mut(next);
    change(&mut front[header..end]);
    front[end..].fill(0);
    rest
}

/// The error number in an error message, as a positive number; 0 for an acknowledgement.
fn error_number(body: &[u8]) -> Result<i32, Malformed> {
    Ok(i32::from_ne_bytes(array(body, 0, "netlink error")?).saturating_neg())
}

/// The `u16` at `offset`, in the byte order of the machine.
pub(super) fn u16_at(bytes: &[u8], offset: usize, what: &'static str) -> Result<u16, Malformed> {
    array(bytes, offset, what).map(u16::from_ne_bytes)
}

/// The `u32` at `offset`, in the byte order of the machine.
pub(super) fn u32_at(bytes: &[u8], offset: usize, what: &'static str) -> Result<u32, Malformed> {
    array(bytes, offset, what).map(u32::from_ne_bytes)
}

/// The `u64` at `offset`, in the byte order of the machine.
pub(super) fn u64_at(bytes: &[u8], offset: usize, what: &'static str) -> Result<u64, Malformed> {
    array(bytes, offset, what).map(u64::from_ne_bytes)
}

/// The bytes of a message after its fixed part of `size` bytes.
pub(super) fn after<'a>(
    body: &'a [u8],
    size: usize,
    what: &'static str,
) -> Result<&'a [u8], Malformed> {
    body.get(size..).ok_or(Malformed::Short(what))
}

/// The text of a string attribute, which may or may not end with a zero byte.
pub(super) fn string(value: &[u8]) -> Cow<'_, str> {
    let end = value.iter().position(|&b| b == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end])
}

/// An IPv4 or IPv6 address, depending on its length.
pub(super) fn address(value: &[u8], what: &'static str) -> Result<IpAddr, Malformed> {
    match value.len() {
        4 => array::<4>(value, 0, what).map(IpAddr::from),
        16 => array::<16>(value, 0, what).map(IpAddr::from),
        _ => Err(Malformed::Short(what)),
    }
}

fn array<const N: usize>(
    bytes: &[u8],
    offset: usize,
    what: &'static str,
) -> Result<[u8; N], Malformed> {
    let tail = bytes.get(offset..).ok_or(Malformed::Short(what))?;
    tail.first_chunk().copied().ok_or(Malformed::Short(what))
}

/// An item at the front of a buffer, and the rest of the buffer after it.
type Front<'a, T> = (T, &'a [u8]);

/// An iterator that cuts items off the front of a buffer, one after the other.
struct Cut<'a, T> {
    rest: &'a [u8],
    cut: fn(&'a [u8]) -> Result<Front<'a, T>, Malformed>,
}

impl<T> Iterator for Cut<'_, T> {
    type Item = Result<T, Malformed>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let cut = (self.cut)(self.rest);
        let (item, rest) = match cut {
            Ok((item, rest)) => (Ok(item), rest),
            Err(error) => (Err(error), &[][..]),
        };
        self.rest = rest;
        Some(item)
    }
}

fn message(bytes: &[u8]) -> Result<Front<'_, Message<'_>>, Malformed> {
    const WHAT: &str = "netlink message";
    let length = u32_at(bytes, 0, WHAT)? as usize;
    let whole = bytes.get(..length).ok_or(Malformed::Short(WHAT))?;
    let message = Message {
        kind: u16_at(whole, 4, WHAT)?,
        flags: u16_at(whole, 6, WHAT)?,
        sequence: u32_at(whole, 8, WHAT)?,
        body: after(whole, 16, WHAT)?,
    };
    Ok((message, aligned(bytes, length)))
}

fn attribute(bytes: &[u8]) -> Result<Front<'_, (u16, &[u8])>, Malformed> {
    const WHAT: &str = "netlink attribute";
    let length = usize::from(u16_at(bytes, 0, WHAT)?);
    let whole = bytes.get(..length).ok_or(Malformed::Short(WHAT))?;
    let kind = u16_at(whole, 2, WHAT)? & TYPE_MASK;
    Ok(((kind, after(whole, 4, WHAT)?), aligned(bytes, length)))
}

/// The bytes after an item of `length` bytes and its padding to a multiple of four.
fn aligned(bytes: &[u8], length: usize) -> &[u8] {
    bytes.get(length.next_multiple_of(4)..).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    pub(crate) use super::write::attribute as attr;
    use super::write::message;
    use super::{DONE, ERROR, Part, Refusal, attributes, error_number, messages, part};
    use crate::parse::Malformed;

    /// A message of this kind with its header and its padding.
    pub(crate) fn msg(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = message(kind, 0, 0, body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// One message of the reply to request 7.
    fn of_reply(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        message(kind, flags, 7, body)
    }

    #[test]
    fn a_reply_ends_with_its_answer_acknowledgement_or_end_mark() {
        let (more, last) = (Part::default(), Part { last: true, ..Part::default() });
        let zero = [0; 4];
        for (kind, flags, body, expected) in [
            (16, 2, &zero[..], more),
            (16, 0, &zero, last),
            (DONE, 2, &zero, last),
            (DONE, 2, &[], last),
            (ERROR, 0, &zero, last),
            (16, 0x12, &zero, Part { interrupted: true, ..more }),
        ] {
            let bytes = of_reply(kind, flags, body);
            assert_eq!(part(&bytes, 7), Ok(expected), "{kind} {flags} {body:?}");
            assert_eq!(part(&bytes, 8), Ok(more), "of another reply");
        }
    }

    #[test]
    fn an_error_is_a_refusal_with_its_number() {
        let number = (-19i32).to_ne_bytes();
        for kind in [ERROR, DONE] {
            let bytes = of_reply(kind, 2, &number);
            assert_eq!(part(&bytes, 7), Err(Refusal::Errno(19)));
        }
        let short = Malformed::Short("netlink error");
        assert_eq!(part(&of_reply(ERROR, 0, &[]), 7), Err(short.into()));
        let error = std::io::Error::from(Refusal::Errno(19));
        assert_eq!(error.raw_os_error(), Some(19));
    }

    #[test]
    fn padding_and_flags_are_passed_over() {
        let bytes = [attr(0x8003, b"eth0\0"), attr(4, &[1, 2, 3, 4]), attr(9, b"")].concat();
        let got: Result<Vec<_>, _> = attributes(&bytes).collect();
        assert_eq!(got, Ok(vec![(3, &b"eth0\0"[..]), (4, &[1, 2, 3, 4]), (9, b"")]));
    }

    #[test]
    fn lengths_that_lie_are_errors_and_end_the_walk() {
        for length in [0u32, 1, 15, 17, 4096, u32::MAX] {
            let mut bytes = msg(16, b"");
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            let got: Vec<_> = messages(&bytes).collect();
            assert_eq!(got, [Err(Malformed::Short("netlink message"))], "length {length}");
        }
        for length in [0u16, 3, 9, u16::MAX] {
            let mut bytes = attr(1, &[7; 4]);
            bytes[..2].copy_from_slice(&length.to_ne_bytes());
            let got: Vec<_> = attributes(&bytes).collect();
            assert_eq!(got, [Err(Malformed::Short("netlink attribute"))], "length {length}");
        }
    }

    #[test]
    fn error_numbers_are_positive() {
        assert_eq!(error_number(&(-101i32).to_ne_bytes()), Ok(101));
        assert_eq!(error_number(&i32::MIN.to_ne_bytes()), Ok(i32::MAX));
        assert!(error_number(&[1, 2, 3]).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            prop_assert!(messages(&bytes).count() <= bytes.len());
            prop_assert!(attributes(&bytes).count() <= bytes.len());
        }
    }
}
