//! Writes netlink messages: requests to the kernel, and replies of tests.

/// The request flag that every request has.
pub const REQUEST: u16 = 1;
/// Request flag: the kernel answers when the change is made.
pub const ACK: u16 = 4;
/// Request flag: all objects are wanted.
pub const DUMP: u16 = 0x300;

/// A message: its header, then `body`.
pub fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = 16 + body.len() as u32;
    let mut bytes = Vec::with_capacity(length as usize);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    // The kernel fills in the sender's port.
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

/// An attribute with its padding. `value` is at most 65,531 bytes.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len();
    let mut bytes = Vec::with_capacity(length.next_multiple_of(4));
    bytes.extend((length as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

/// A string attribute, which ends with a zero byte.
pub fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, format!("{value}\0").as_bytes())
}

/// An attribute that contains attributes.
pub fn nested(kind: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind, &attributes.concat())
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::{ACK, REQUEST, attribute, message, nested, text};

    #[test]
    fn messages_and_attributes_are_written_as_the_kernel_reads_them() {
        let name = text(3, "eth0");
        assert_eq!(name, b"\x09\0\x03\0eth0\0\0\0\0");
        assert_eq!(attribute(28, &[7, 0, 0, 0]), b"\x08\0\x1c\0\x07\0\0\0");
        assert_eq!(nested(18, std::slice::from_ref(&name))[..4], *b"\x10\0\x12\0");
        let message = message(16, REQUEST | ACK, 9, &name);
        assert_eq!(message[..16], *b"\x1c\0\0\0\x10\0\x05\0\x09\0\0\0\0\0\0\0");
        assert_eq!(message[16..], name);
    }
}
