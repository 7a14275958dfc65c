//! Links between network ports, with their capacity.

use std::fmt;
use std::str::FromStr;

use super::infiniband::{self, Speed};
use super::{Bounds, ethernet};
use linerate_units::Rate;

/// A link between two ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Ethernet with this line rate.
    Ethernet(Rate),
    /// InfiniBand with a number of lanes and a speed.
    InfiniBand {
        /// Number of lanes.
        width: u32,
        /// Signalling speed of each lane.
        speed: Speed,
    },
}

impl Link {
    /// Whether the link is InfiniBand.
    pub const fn is_infiniband(self) -> bool {
        matches!(self, Self::InfiniBand { .. })
    }

    /// Bytes per second that the link carries in each direction.
    pub fn capacity(self) -> Bounds {
        match self {
            Self::Ethernet(rate) => ethernet::capacity(rate.0 as f64),
            Self::InfiniBand { width, speed } => infiniband::capacity(speed, width),
        }
    }

    /// The capacity of the link as a formula: `10 Gb/s`, `4 lanes x 13.6364 Gb/s`.
    pub fn words(self) -> String {
        match self {
            Self::Ethernet(rate) => rate.to_string(),
            Self::InfiniBand { width, speed } => {
                let lane = (speed.lane() / 1e5).round() / 1e4;
                let s = if width == 1 { "" } else { "s" };
                format!("{width} lane{s} x {lane} Gb/s")
            }
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ethernet(rate) => write!(f, "{rate}"),
            Self::InfiniBand { width, speed } => write!(f, "{width}x {}", speed.name()),
        }
    }
}

impl FromStr for Link {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((width, speed)) = text.split_once("x ") else {
            let rate: Rate = text.parse().map_err(|e| {
                format!("{e}; a link is a rate, as `10Gb/s`, or InfiniBand, as `4x FDR`")
            })?;
            return match rate {
                Rate(0) => Err("a link of no rate carries nothing".to_owned()),
                rate => Ok(Self::Ethernet(rate)),
            };
        };
        let width = lanes(width, &infiniband::WIDTHS, "InfiniBand")?;
        let speed = named(speed, &Speed::NAMES, "speed of InfiniBand")?;
        Ok(Self::InfiniBand { width, speed })
    }
}

/// Parses a number of lanes; an error if it is not one of `widths`.
pub fn lanes(width: &str, widths: &[u32], what: &str) -> Result<u32, String> {
    let found = widths.iter().find(|w| w.to_string() == width);
    found.copied().ok_or_else(|| {
        let there: Vec<String> = widths.iter().map(|w| format!("x{w}")).collect();
        format!("no link of {what} has {width} lanes: there are {}", there.join(", "))
    })
}

/// The value that belongs to a name in `names`, upper or lower case; an error if there is none.
pub fn named<T: Copy>(text: &str, names: &[(&str, T)], what: &str) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let there: Vec<String> = names.iter().map(|(name, _)| format!("`{name}`")).collect();
        format!("there is no {what} `{text}`: expected {}", there.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_and_formulas_agree() {
        let fdr = |width| Link::InfiniBand { width, speed: Speed::Fdr };
        for (link, gigabits, words) in [
            (Link::Ethernet(Rate(10_000_000_000)), 10.0, "10 Gb/s"),
            (fdr(4), 54.5454, "4 lanes x 13.6364 Gb/s"),
            (fdr(1), 13.6364, "1 lane x 13.6364 Gb/s"),
        ] {
            let got = link.capacity().low() * 8.0 / 1e9;
            assert!((got / gigabits - 1.0).abs() < 1e-5, "{words}: {got}");
            assert_eq!(link.words(), words);
        }
    }

    #[test]
    fn links_are_read_as_they_are_written() {
        assert_eq!("10Gb/s".parse(), Ok(Link::Ethernet(Rate(10_000_000_000))));
        let fdr = Link::InfiniBand { width: 4, speed: Speed::Fdr };
        assert_eq!("4x fdr".parse(), Ok(fdr));
        assert_eq!(fdr.to_string(), "4x FDR");
        for (text, part) in [
            ("3x FDR", "no link of InfiniBand has 3 lanes"),
            ("4x FAST", "there is no speed of InfiniBand"),
            ("0Gb/s", "carries nothing"),
            ("10", "no unit"),
        ] {
            let why = text.parse::<Link>().unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
