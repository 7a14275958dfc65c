//! Parses `/proc/PID/task/TID/schedstat`: time on a CPU, and time waiting for one.

use super::{Malformed, text};

const WHAT: &str = "schedstat";

/// The scheduler's counters for one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedStat {
    /// Nanoseconds that the thread ran on a CPU.
    pub run_ns: u64,
    /// Nanoseconds that the thread was ready to run but waited for a CPU.
    pub wait_ns: u64,
    /// Number of times that the thread was put on a CPU.
    pub slices: u64,
}

impl SchedStat {
    /// Whether nothing was counted: the thread never ran, or the kernel has no scheduler statistics and prints zeros.
    pub fn is_blank(self) -> bool {
        (self.run_ns, self.wait_ns, self.slices) == (0, 0, 0)
    }
}

/// Parses the only line of the file.
pub fn parse(text: &[u8]) -> Result<SchedStat, Malformed> {
    let mut fields = text::fields(text::first_line(text, WHAT)?);
    Ok(SchedStat {
        run_ns: text::next_decimal(&mut fields, WHAT)?,
        wait_ns: text::next_decimal(&mut fields, WHAT)?,
        slices: text::next_decimal(&mut fields, WHAT)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse;

    #[test]
    fn a_real_file_parses_exactly_and_a_cut_one_not_at_all() {
        let real = b"965451 2247208 2\n";
        let got = parse(real).unwrap();
        assert_eq!((got.run_ns, got.wait_ns, got.slices), (965_451, 2_247_208, 2));
        assert!(!got.is_blank());
        assert!(parse(b"0 0 0\n").unwrap().is_blank());
        for end in 0..real.len() {
            assert!(parse(&real[..end]).is_err(), "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>) {
            let _ = parse(&text);
        }
    }
}
