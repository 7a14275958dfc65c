//! Parsers of numbers, and look-ups in tables of names.

use linerate_units::EXACT;

use super::MOST;

/// Reads a finite number that is not negative.
pub(crate) fn number(text: &str) -> Option<f64> {
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let value: f64 = text.parse().ok().filter(|_| is_plain)?;
    value.is_finite().then_some(value)
}

/// Reads a whole number; `None` if a double could not hold it exactly.
pub(crate) fn count(text: &str) -> Option<u64> {
    text.parse().ok().filter(|count| *count <= EXACT)
}

/// Reads a number in hexadecimal digits after `0x`.
pub(crate) fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let is_hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Reads a number that has only decimal digits: a sign is refused.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    is_digits(text).then(|| text.parse().ok())?
}

/// Whether a text has decimal digits, and nothing else.
pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Reads a number of 32 bits that has only decimal digits.
pub(crate) fn small(text: &str) -> Option<u32> {
    decimal(text).and_then(|n| u32::try_from(n).ok())
}

/// Reads a list of numbers such as `0-3,8`; `None` if there are [`MOST`] or more.
pub(crate) fn list(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (small(first)?, small(last)?);
        if last < first || (last - first) as usize >= MOST - all.len() {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// Reads a number with at most nine digits after the point; the result is in billionths.
fn billionths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if part.len() > 9 {
        return None;
    }
    let part = decimal(part)?.checked_mul(10u64.pow(9 - part.len() as u32))?;
    decimal(whole)?.checked_mul(1_000_000_000)?.checked_add(part)
}

/// Reads a decimal number and multiplies it by `unit`: `2.5` with a unit of a billion is 2,500,000,000.
pub(crate) fn scaled(text: &str, unit: u64) -> Option<u64> {
    let product = u128::from(billionths(text)?) * u128::from(unit) / 1_000_000_000;
    u64::try_from(product).ok()
}

/// The value of a name in a table.
pub(crate) fn lookup<N: PartialEq + Copy, T: Copy>(table: &[(N, T)], name: N) -> Option<T> {
    let found = table.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value)
}

/// Whether a word is one of those in `words`, which are separated by blanks.
pub(crate) fn is_one_of(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// The value of a name in a table in which each entry has several names, separated by blanks.
pub(crate) fn named<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    let found = table.iter().find(|(names, _)| is_one_of(names, name));
    found.map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_alone() {
        assert_eq!(hexadecimal("0x1f"), Some(31));
        assert_eq!(hexadecimal("1f"), None);
        assert_eq!(hexadecimal("0x"), None);
        assert_eq!(decimal("+1"), None);
        assert_eq!(decimal("18446744073709551616"), None);
        assert_eq!(scaled("2.5", 1_000_000_000), Some(2_500_000_000));
        assert_eq!(scaled("252.048", 1_000_000_000), Some(252_048_000_000));
        assert_eq!(scaled("99999999999999", 1_000_000), None);
        assert_eq!(scaled("1,5", 10), None);
    }

    #[test]
    fn lists_are_bounded() {
        assert_eq!(list("0-2,8"), Some(vec![0, 1, 2, 8]));
        assert_eq!(list(""), Some(vec![]));
        assert_eq!(list("3-1"), None);
        assert_eq!(list("a"), None);
        assert_eq!(list("0-8191").map(|all| all.len()), Some(MOST));
        assert_eq!(list("0-8192"), None);
        assert_eq!(list("0-8191,9000"), None);
        assert_eq!(list("0-4294967295"), None);
    }
}
