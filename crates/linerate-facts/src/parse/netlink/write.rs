//! Writes netlink messages: requests to the kernel, and replies of tests.

/// The flag that every request to the kernel has.
pub const REQUEST: u16 = 1;
/// Request flag: the kernel confirms a change when it is made.
pub const ACK: u16 = 4;
/// Request flag: the kernel returns all objects, not a single one.
pub const DUMP: u16 = 0x300;

/// Encodes a message: its header, followed by `body`.
pub fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = 16 + body.len() as u32;
    let mut bytes = Vec::with_capacity(length as usize);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    // The port id of the sender, which the kernel fills in.
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

/// Encodes an attribute with its padding. `value` has at most 65,531 bytes.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len();
    let mut bytes = Vec::with_capacity(length.next_multiple_of(4));
    bytes.extend((length as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

/// Encodes a string attribute, with a zero byte at its end.
pub fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, format!("{value}\0").as_bytes())
}

/// Encodes an attribute that contains other attributes.
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
