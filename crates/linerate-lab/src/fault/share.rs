//! Shares of a whole, such as of packets or of CPU time, in steps of a millionth.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A share of a whole, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Share(u32);

/// Why a text is not a share.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a share (expected 0.0001% to 100%, for example 0.1%)")]
pub struct ShareError(String);

impl Share {
    /// The smallest share: a millionth.
    pub const LEAST: Self = Self(1);

    /// The whole, in millionths.
    pub const WHOLE: u32 = 1_000_000;

    /// Makes a share of `number` millionths; `None` for zero, and for more than the whole.
    pub const fn millionths(number: u32) -> Option<Self> {
        if number == 0 || number > Self::WHOLE {
            return None;
        }
        Some(Self(number))
    }

    pub const fn in_millionths(self) -> u32 {
        self.0
    }

    /// Returns the share as a number from 0 to 1.
    pub fn part(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE)
    }
}

/// The text is exact: parsing it returns an equal share.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PERCENT: u32 = Share::WHOLE / 100;
        let text = format!("{}.{:04}", self.0 / PERCENT, self.0 % PERCENT);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        write!(f, "{text}%")
    }
}

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        read(text).ok_or_else(|| ShareError(text.to_owned()))
    }
}

fn read(text: &str) -> Option<Share> {
    let number = text.trim().strip_suffix('%')?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 4 {
        return None;
    }
    let fraction: u32 = format!("{fraction:0<4}").parse().ok()?;
    let percent: u32 = whole.parse().ok()?;
    Share::millionths(percent.checked_mul(10_000)?.checked_add(fraction)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_share_reads_back_as_itself(number in 1..=Share::WHOLE) {
            let share = Share(number);
            prop_assert_eq!(share.to_string().parse(), Ok(share));
        }
    }

    #[test]
    fn what_is_not_a_share_is_refused() {
        assert_eq!("1%".parse(), Ok(Share(10_000)));
        assert_eq!("0.05%".parse(), Ok(Share(500)));
        for text in ["", "%", "1", "0%", "100.0001%", "-1%", "1.%", "0.00001%", "1e1%"] {
            assert!(text.parse::<Share>().is_err(), "`{text}`");
        }
    }
}
