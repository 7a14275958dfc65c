//! Parses `/proc/pressure/*`: time in which tasks waited for a resource.

use super::{Malformed, text};

const WHAT: &str = "pressure";

/// Microseconds in which at least one task waited for the resource.
pub fn some_us(text: &[u8]) -> Result<u64, Malformed> {
    for line in text::lines(text, WHAT) {
        let mut fields = text::fields(line?);
        if fields.next() == Some(b"some") {
            let total = fields.find_map(|f| f.strip_prefix(b"total="));
            let total = total.ok_or(Malformed::Missing("total of pressure"))?;
            return text::decimal(total).ok_or(Malformed::NotANumber(WHAT));
        }
    }
    Err(Malformed::Missing("line `some` of pressure"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::some_us;

    #[test]
    fn a_real_file_parses_exactly_and_a_cut_one_not_at_all() {
        let real = b"some avg10=10.92 avg60=2.38 avg300=0.94 total=12811204\n\
            full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(some_us(real), Ok(12_811_204));
        let first = real.iter().position(|&b| b == b'\n').unwrap();
        for end in 0..=first {
            assert!(some_us(&real[..end]).is_err(), "cut at {end}");
        }
        assert!(some_us(b"full avg10=0.00 total=7\n").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>) {
            let _ = some_us(&text);
        }
    }
}
