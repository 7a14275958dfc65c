//! Parses `cpu.stat` of a cgroup: how often and how long its quota stopped it.

use super::{Malformed, text};

const WHAT: &str = "cpu.stat";

/// How a cgroup was throttled by its quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttling {
    /// Number of periods in which the cgroup had work.
    pub periods: u64,
    /// Number of periods in which the cgroup used up its quota.
    pub throttled: u64,
    /// Nanoseconds for which the quota stopped the cgroup.
    pub throttled_ns: u64,
}

/// Reads the file of either cgroup version: v1 counts `throttled_time` in nanoseconds, v2 `throttled_usec` in
/// microseconds. `None` if the file is whole but has no line about throttling, as in a v2 group whose CPU controller is
/// off.
pub fn parse(text: &[u8]) -> Result<Option<Throttling>, Malformed> {
    let (mut periods, mut throttled, mut time) = (None, None, None);
    for line in text::lines(text, WHAT) {
        let mut fields = text::fields(line?);
        let Some(key) = fields.next() else { continue };
        let (slot, scale) = match key {
            b"nr_periods" => (&mut periods, 1),
            b"nr_throttled" => (&mut throttled, 1),
            b"throttled_time" => (&mut time, 1),
            b"throttled_usec" => (&mut time, 1000),
            _ => continue,
        };
        *slot = Some(text::next_decimal(&mut fields, WHAT)?.saturating_mul(scale));
    }
    match (periods, throttled, time) {
        (None, None, None) => Ok(None),
        (Some(periods), Some(throttled), Some(throttled_ns)) => {
            Ok(Some(Throttling { periods, throttled, throttled_ns }))
        }
        _ => Err(Malformed::Missing("part of cpu.stat")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Throttling, parse};

    const V1: &[u8] =
        b"nr_periods 12\nnr_throttled 3\nthrottled_time 4500\nnr_bursts 0\nburst_time 0\n";
    const V2: &[u8] = b"usage_usec 91\nuser_usec 60\nsystem_usec 31\nnr_periods 12\n\
        nr_throttled 3\nthrottled_usec 45\nnr_bursts 0\nburst_usec 0\n";

    #[test]
    fn both_versions_give_nanoseconds() {
        let mut want = Throttling { periods: 12, throttled: 3, throttled_ns: 4500 };
        assert_eq!(parse(V1), Ok(Some(want)));
        want.throttled_ns = 45_000;
        assert_eq!(parse(V2), Ok(Some(want)));
        assert_eq!(parse(b"usage_usec 91\nuser_usec 60\nsystem_usec 31\n"), Ok(None));
    }

    #[test]
    fn a_cut_file_never_gives_other_figures() {
        for real in [V1, V2] {
            let whole = parse(real).unwrap();
            for end in 0..real.len() {
                let got = parse(&real[..end]);
                assert!(got.is_err() || got == Ok(None) || got == Ok(whole), "cut at {end}");
            }
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(text: Vec<u8>, n: u64) {
            let _ = parse(&text);
            let _ = parse(format!("throttled_usec {n}\n").as_bytes());
        }
    }
}
