//! Links between network ports, with their capacity.

use std::fmt;

use super::infiniband::{self, Speed};
use super::{Bounds, ethernet};
use crate::units::Rate;

/// A link between two ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Ethernet of a rate.
    Ethernet(Rate),
    /// InfiniBand.
    InfiniBand {
        /// Number of lanes.
        width: u32,
        /// Speed of each lane.
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
}
