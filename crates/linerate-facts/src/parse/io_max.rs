//! `io.max` of a control group: how much it may read and write in a second, by device.
//= Linux Documentation/admin-guide/cgroup-v2.rst, io.max

use super::{Malformed, text};
use crate::block::IoLimit;

const WHAT: &str = "io.max";

/// The limits, each without the name of its group. Devices without a limit are left out, as in the file. Newer kernels
/// may append more keys.
pub fn parse(text: &[u8]) -> Result<Vec<IoLimit>, Malformed> {
    text::lines(text, WHAT).map(|line| of(line?)).collect()
}

fn of(line: &[u8]) -> Result<IoLimit, Malformed> {
    let mut fields = text::fields(line);
    let number = text::trimmed(fields.next().ok_or(Malformed::Missing(WHAT))?);
    let mut limit = IoLimit { number, ..IoLimit::default() };
    for field in fields {
        let cut = field.iter().position(|byte| *byte == b'=').ok_or(Malformed::Short(WHAT))?;
        let (key, value) = (&field[..cut], &field[cut + 1..]);
        let slot = match key {
            b"rbps" => &mut limit.read_bytes,
            b"wbps" => &mut limit.written_bytes,
            b"riops" => &mut limit.reads,
            b"wiops" => &mut limit.writes,
            _ => continue,
        };
        *slot = match value {
            b"max" => None,
            digits => Some(text::decimal(digits).ok_or(Malformed::NotANumber(WHAT))?),
        };
    }
    Ok(limit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_device_has_its_limits() {
        let found = parse(b"8:16 rbps=2097152 wbps=max riops=max wiops=120\n259:0 rbps=1 new=x\n");
        let first = IoLimit {
            number: "8:16".to_owned(),
            read_bytes: Some(2_097_152),
            writes: Some(120),
            ..IoLimit::default()
        };
        let second =
            IoLimit { number: "259:0".to_owned(), read_bytes: Some(1), ..IoLimit::default() };
        assert_eq!(found, Ok(vec![first, second]));
        assert_eq!(parse(b""), Ok(Vec::new()));
        for wrong in [&b"8:0 rbps=x\n"[..], b"8:0 rbps\n", b"\n", b"8:0 rbps=-1\n"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>) {
            let _ = parse(&text);
            let _ = parse(&[&b"8:0 rbps="[..], &text].concat());
        }
    }
}
