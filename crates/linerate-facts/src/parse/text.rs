//! Parses lines, fields and numbers in the kernel's text.

use super::Malformed;

/// Parses a decimal number that is the whole field; `None` if it does not fit u64.
pub(super) fn decimal(field: &[u8]) -> Option<u64> {
    digits(field, 10)
}

/// Parses a hexadecimal number without a prefix that is the whole field; `None` if it does not fit u64.
pub(super) fn hexadecimal(field: &[u8]) -> Option<u64> {
    digits(field, 16)
}

fn digits(field: &[u8], radix: u32) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0u64, |sum, &byte| {
        let digit = char::from(byte).to_digit(radix)?;
        sum.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))
    })
}

/// The fields of a line, which are separated by white space.
pub(super) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty())
}

/// The lines of a text. A last line without a line end is an error: a number in it may have lost digits.
pub(super) fn lines<'a>(
    text: &'a [u8],
    what: &'static str,
) -> impl Iterator<Item = Result<&'a [u8], Malformed>> {
    text.split_inclusive(|&b| b == b'\n')
        .map(move |line| line.strip_suffix(b"\n").ok_or(Malformed::Short(what)))
}

/// The first line of a text, which must have a line end.
pub(super) fn first_line<'a>(text: &'a [u8], what: &'static str) -> Result<&'a [u8], Malformed> {
    lines(text, what).next().unwrap_or(Err(Malformed::Short(what)))
}

/// Parses the next field as a decimal number.
pub(super) fn next_decimal<'a>(
    fields: &mut impl Iterator<Item = &'a [u8]>,
    what: &'static str,
) -> Result<u64, Malformed> {
    let field = fields.next().ok_or(Malformed::Short(what))?;
    decimal(field).ok_or(Malformed::NotANumber(what))
}

/// The text without white space at its ends, and with bytes that are not UTF-8 replaced.
pub(super) fn trimmed(text: &[u8]) -> String {
    String::from_utf8_lossy(text.trim_ascii()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{decimal, hexadecimal};

    #[test]
    fn numbers_fill_the_field_and_fit() {
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(decimal(b"18446744073709551616"), None);
        for bad in [&b""[..], b"-1", b"+1", b"1 ", b"0x1", b"1a"] {
            assert_eq!(decimal(bad), None, "{bad:?}");
        }
        assert_eq!(hexadecimal(b"0000ff0A"), Some(0xff0a));
        assert_eq!(hexadecimal(b"g"), None);
    }
}
