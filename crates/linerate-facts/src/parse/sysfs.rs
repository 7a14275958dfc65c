//! Parses text formats that only sysfs has, not sysctls: masks, choices, numbers with a sign.

use super::{Malformed, text};

/// Largest number of words in a mask. A text with more is no mask of CPUs.
const MOST_WORDS: usize = 2048;

/// Parses a mask of CPUs such as `00000000,00000003` into their numbers, in ascending order.
pub fn mask(text: &[u8]) -> Result<Vec<u32>, Malformed> {
    const WHAT: &str = "mask";
    let line = text::first_line(text, WHAT)?.trim_ascii();
    let words: Vec<&[u8]> = line.split(|&b| b == b',').collect();
    if words.len() > MOST_WORDS {
        return Err(Malformed::NotANumber(WHAT));
    }
    let mut set = Vec::new();
    for (at, word) in words.iter().rev().enumerate() {
        let bits = text::hexadecimal(word).and_then(|bits| u32::try_from(bits).ok());
        let bits = bits.ok_or(Malformed::NotANumber(WHAT))?;
        let base = at as u32 * 32;
        set.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| base + bit));
    }
    Ok(set)
}

/// Writes a hardware address as sysfs does: `02:00:00:00:00:07`.
pub fn hardware_address(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    bytes.join(":")
}

/// The choice in brackets in a line such as `none [mq-deadline] kyber`; the whole line if it has no brackets.
pub fn chosen(text: &[u8]) -> Result<String, Malformed> {
    let line = text::trimmed(text::first_line(text, "choice")?);
    let inside = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    Ok(match inside {
        Some((chosen, _)) => chosen.to_owned(),
        None => line,
    })
}

/// Parses a number; `None` for `-1`, or any other negative number.
pub fn number_or_none(text: &[u8]) -> Result<Option<u64>, Malformed> {
    const WHAT: &str = "value";
    let line = text::first_line(text, WHAT)?.trim_ascii();
    let (negative, digits) = match line.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, line),
    };
    let value = text::decimal(digits).ok_or(Malformed::NotANumber(WHAT))?;
    Ok((!negative).then_some(value))
}

/// Parses a hexadecimal number with the prefix `0x`, or a decimal one: `0x0012`, `18`.
pub fn hexadecimal_or_decimal(text: &[u8]) -> Result<u64, Malformed> {
    const WHAT: &str = "value";
    let line = text::first_line(text, WHAT)?.trim_ascii();
    let value = match line.strip_prefix(b"0x") {
        Some(digits) => text::hexadecimal(digits),
        None => text::decimal(line),
    };
    value.ok_or(Malformed::NotANumber(WHAT))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{chosen, hexadecimal_or_decimal, mask, number_or_none};

    #[test]
    fn masks_are_read_from_the_right() {
        for (text, want) in
            [("3\n", vec![0, 1]), ("00000001,80000000\n", vec![31, 32]), ("0\n", vec![])]
        {
            assert_eq!(mask(text.as_bytes()), Ok(want), "{text:?}");
        }
        for bad in ["", "3", "\n", "1,\n", "100000000\n", "g\n"] {
            assert!(mask(bad.as_bytes()).is_err(), "{bad:?}");
        }
        let words = |n: usize| format!("{}1\n", "0,".repeat(n - 1));
        assert_eq!(mask(words(2048).as_bytes()), Ok(vec![0]));
        assert!(mask(words(2049).as_bytes()).is_err());
    }

    #[test]
    fn choices_and_numbers() {
        assert_eq!(chosen(b"none [mq-deadline] kyber\n").unwrap(), "mq-deadline");
        assert_eq!(chosen(b"none\n").unwrap(), "none");
        assert_eq!(number_or_none(b"-1\n"), Ok(None));
        assert_eq!(number_or_none(b"0\n"), Ok(Some(0)));
        assert!(number_or_none(b"-\n").is_err() && number_or_none(b"1").is_err());
        assert_eq!(hexadecimal_or_decimal(b"0x0012\n"), Ok(18));
        assert_eq!(hexadecimal_or_decimal(b"12\n"), Ok(12));
        assert!(hexadecimal_or_decimal(b"0x\n").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>) {
            let _ = (mask(&text), chosen(&text), number_or_none(&text));
            let _ = hexadecimal_or_decimal(&text);
        }
    }
}
