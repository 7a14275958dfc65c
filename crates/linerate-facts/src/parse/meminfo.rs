//! Parses `/proc/meminfo`, and `meminfo` of a NUMA node, whose lines begin with `Node 0`.

use super::text;
use linerate_units::Bytes;

/// The amount of memory for `key`, such as `MemTotal`; `None` if no complete line has it.
pub fn bytes(text: &[u8], key: &str) -> Option<Bytes> {
    match field(text, key)? {
        (value, Some(b"kB")) => value.checked_mul(1024).map(Bytes),
        _ => None,
    }
}

/// The count for `key`, such as `HugePages_Total`, which has no unit.
pub fn count(text: &[u8], key: &str) -> Option<u64> {
    match field(text, key)? {
        (value, None) => Some(value),
        _ => None,
    }
}

/// Number and unit in the line of `key`.
fn field<'a>(text: &'a [u8], key: &str) -> Option<(u64, Option<&'a [u8]>)> {
    text::lines(text, "meminfo").find_map(|line| {
        let mut fields = text::fields(line.ok()?);
        let mut name = fields.next()?;
        if name == b"Node" {
            name = fields.nth(1)?;
        }
        if name.strip_suffix(b":")? != key.as_bytes() {
            return None;
        }
        Some((text::decimal(fields.next()?)?, fields.next()))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_machine_and_a_node_write_the_same_lines() {
        let machine = b"MemTotal:       32836008 kB\nHugePages_Total:       4\n";
        let node = b"\nNode 0 MemTotal:       16747124 kB\nNode 0 HugePages_Total:     4\n";
        assert_eq!(bytes(machine, "MemTotal"), Some(Bytes(32_836_008 << 10)));
        assert_eq!(bytes(node, "MemTotal"), Some(Bytes(16_747_124 << 10)));
        assert_eq!(count(machine, "HugePages_Total"), Some(4));
        assert_eq!(count(node, "HugePages_Total"), Some(4));
    }

    #[test]
    fn what_is_cut_off_or_of_another_unit_is_not_there() {
        assert_eq!(bytes(b"MemTotal:       3283", "MemTotal"), None);
        assert_eq!(bytes(b"MemTotal:  3 MB\n", "MemTotal"), None);
        assert_eq!(bytes(b"MemTotal:  3\n", "MemTotal"), None);
        assert_eq!(count(b"MemTotal:  3 kB\n", "MemTotal"), None);
        assert_eq!(bytes(b"MemTotal: 18446744073709551615 kB\n", "MemTotal"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>) {
            let _ = (bytes(&text, ""), count(&text, "a"));
            let _ = bytes(&[b"Node ", &text[..], b"\n"].concat(), "a");
        }
    }
}
