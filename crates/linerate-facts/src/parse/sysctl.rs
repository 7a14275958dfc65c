//! Parses small files with one value or one line: sysctls, ids, lists of CPUs, sizes of caches.

use super::{Malformed, text};

/// Upper bound of the numbers in a list of CPUs or nodes. A text with more is no such list.
const MOST: u32 = 1 << 16;

/// The first line as text, without spaces around it.
pub fn line(text: &[u8]) -> String {
    text::trimmed(text.split(|&b| b == b'\n').next().unwrap_or_default())
}

/// The words of the first line.
pub fn words(text: &[u8]) -> Vec<String> {
    line(text).split_whitespace().map(str::to_owned).collect()
}

/// Parses a file that has exactly one whole number.
pub fn number(text: &[u8]) -> Result<u64, Malformed> {
    let [value] = numbers(text)?;
    Ok(value)
}

/// Parses the number of an owner; `None` for -1, which means that there is no owner.
pub fn id(text: &[u8]) -> Result<Option<u32>, Malformed> {
    if line(text) == "-1" {
        return Ok(None);
    }
    let id = u32::try_from(number(text)?);
    id.map(Some).map_err(|_| Malformed::NotANumber("value"))
}

/// Parses a file that has exactly `N` numbers on one line.
pub fn numbers<const N: usize>(text: &[u8]) -> Result<[u64; N], Malformed> {
    const WHAT: &str = "value";
    let mut fields = text::fields(text::first_line(text, WHAT)?);
    let mut values = [0; N];
    for value in &mut values {
        *value = text::next_decimal(&mut fields, WHAT)?;
    }
    match fields.next() {
        None => Ok(values),
        Some(_) => Err(Malformed::NotANumber(WHAT)),
    }
}

/// Parses a list such as `0-3,8,10-11`, as the kernel writes sets of CPUs and nodes. The list may be empty.
pub fn list(text: &[u8]) -> Result<Vec<u32>, Malformed> {
    const WHAT: &str = "list of numbers";
    let line = text::first_line(text, WHAT)?.trim_ascii();
    let mut all = Vec::new();
    if line.is_empty() {
        return Ok(all);
    }
    for part in line.split(|&b| b == b',') {
        let mut ends = part.splitn(2, |&b| b == b'-').map(|end| {
            let value = text::decimal(end).and_then(|v| u32::try_from(v).ok());
            value.filter(|&v| v < MOST).ok_or(Malformed::NotANumber(WHAT))
        });
        let first = ends.next().ok_or(Malformed::Missing(WHAT))??;
        let last = ends.next().transpose()?.unwrap_or(first);
        // Numbers must ascend, as the kernel writes them. This also bounds the work for a hostile list.
        if last < first || all.last().is_some_and(|&previous| previous >= first) {
            return Err(Malformed::NotANumber(WHAT));
        }
        all.extend(first..=last);
    }
    Ok(all)
}

/// Parses a size such as `1280K`, as sysfs writes the sizes of caches, into bytes.
pub fn size(text: &[u8]) -> Result<u64, Malformed> {
    const WHAT: &str = "size";
    let line = text::first_line(text, WHAT)?.trim_ascii();
    let (digits, scale) = match line.split_last() {
        Some((b'K', digits)) => (digits, 1 << 10),
        Some((b'M', digits)) => (digits, 1 << 20),
        _ => (line, 1),
    };
    text::decimal(digits).and_then(|n| n.checked_mul(scale)).ok_or(Malformed::NotANumber(WHAT))
}

/// The value of `key` in a file with lines `key: value`, `key = value` or `KEY=value`, without spaces around it.
pub fn value<'a>(text: &'a [u8], key: &str) -> Option<&'a [u8]> {
    text.split(|&b| b == b'\n').find_map(|line| {
        let rest = line.strip_prefix(key.as_bytes())?.trim_ascii_start();
        Some(rest.strip_prefix(b":").or(rest.strip_prefix(b"="))?.trim_ascii())
    })
}

/// The value of `key`, as for [`value`], as text.
pub fn value_text(text: &[u8], key: &str) -> Option<String> {
    value(text, key).map(text::trimmed)
}

/// The value of `key`, as for [`value`], as a hexadecimal number without a prefix.
pub fn value_hexadecimal(text: &[u8], key: &str) -> Option<u64> {
    value(text, key).and_then(text::hexadecimal)
}

/// The value of `key`, as for [`value`], as a list of CPUs.
pub fn value_list(text: &[u8], key: &str) -> Result<Vec<u32>, Malformed> {
    let found = value(text, key).ok_or(Malformed::Missing("list of numbers"))?;
    list(&[found, b"\n"].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_of_cpus() {
        for (text, want) in [
            ("0-1\n", vec![0, 1]),
            ("0-3,8,10-11\n", vec![0, 1, 2, 3, 8, 10, 11]),
            ("7\n", vec![7]),
            ("\n", vec![]),
        ] {
            assert_eq!(list(text.as_bytes()), Ok(want), "{text:?}");
        }
        for bad in ["", "0-1", "3-1\n", "0,0\n", "5,1\n", "0-\n", "-1\n", "a\n", "0-4294967295\n"] {
            assert!(list(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert_eq!(list(b"65535\n"), Ok(vec![65_535]));
        assert!(list(b"65536\n").is_err());
    }

    #[test]
    fn numbers_are_exactly_as_many_as_asked_for() {
        assert_eq!(numbers(b"4096\t131072\t6291456\n"), Ok([4096, 131_072, 6_291_456]));
        assert!(numbers::<3>(b"4096\t131072\n").is_err());
        assert!(numbers::<3>(b"1 2 3 4\n").is_err());
        assert!(numbers::<3>(b"1 2 3").is_err(), "the last may lack digits");
        assert_eq!(number(b"212992\n"), Ok(212_992));
        assert!(number(b"-1\n").is_err());
        assert_eq!((id(b"-1\n"), id(b"7\n")), (Ok(None), Ok(Some(7))));
        assert!(id(b"4294967296\n").is_err() && id(b"-2\n").is_err());
    }

    #[test]
    fn sizes_and_values() {
        assert_eq!(size(b"1280K\n"), Ok(1_310_720));
        assert_eq!(size(b"2M\n"), Ok(2_097_152));
        assert!(size(b"K\n").is_err());
        assert!(size(b"18446744073709551615K\n").is_err());
        let status =
            b"Name:\tcat\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\nCapEff:\t000001ffffffffff\n";
        assert_eq!(value_list(status, "Cpus_allowed_list"), Ok(vec![0, 1]));
        assert_eq!(value_hexadecimal(status, "CapEff"), Some(0x1ff_ffff_ffff));
        assert_eq!(value_text(b"DRIVER=virtio_net\n", "DRIVER").unwrap(), "virtio_net");
        assert_eq!(value(status, "Cap"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>) {
            let _ = (line(&text), words(&text), number(&text), list(&text), size(&text));
            let _ = (value_list(&text, "a"), id(&text));
        }

        #[test]
        fn a_list_reads_back(set in proptest::collection::btree_set(0u32..MOST, 0..40)) {
            let want: Vec<u32> = set.into_iter().collect();
            let text: Vec<String> = want.iter().map(u32::to_string).collect();
            prop_assert_eq!(list(format!("{}\n", text.join(",")).as_bytes()), Ok(want));
        }
    }
}
