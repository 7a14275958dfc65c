//! How a measured figure compares with a computed one.

use super::Bounds;

/// Least share of a ceiling at which a figure reaches it.
const REACHED: f64 = 0.98;
/// Highest share of a ceiling that a figure may have because of rounding.
const ROUNDED: f64 = 1.005;
/// The tolerance of "about", in both directions.
const ABOUT: f64 = 0.10;
/// Share of a ceiling below which the ceiling does not explain a figure.
const FAR_BELOW: f64 = 0.5;
/// Upper over lower end up to which an interval is one value: the ends differ by timestamps at most.
const NARROW: f64 = 1.02;

/// How a measured figure compares with a computed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Within 2 % of the ceiling.
    Reached,
    /// Between the two ends of a wide interval.
    Inside,
    /// Both agree to within 10 %.
    About,
    /// Below the ceiling.
    Below,
    /// Below half of the ceiling.
    FarBelow,
    /// Above the ceiling.
    Above,
    /// At or above a floor.
    AboveFloor,
    /// Below a floor.
    BelowFloor,
}

impl Relation {
    /// A figure beside a ceiling.
    pub fn to_ceiling(figure: f64, ceiling: Bounds) -> Self {
        let (low, high) = (ceiling.low(), ceiling.high());
        let is_narrow = high <= low * NARROW;
        match figure {
            f if f > high * (1.0 + ABOUT) => Self::Above,
            f if f > high * ROUNDED => Self::About,
            f if f >= low * REACHED && is_narrow => Self::Reached,
            f if f >= low => Self::Inside,
            f if f >= low * (1.0 - ABOUT) => Self::About,
            f if f >= low * FAR_BELOW => Self::Below,
            _ => Self::FarBelow,
        }
    }

    /// A figure beside a floor.
    pub fn to_floor(figure: f64, floor: Bounds) -> Self {
        if figure >= floor.low() { Self::AboveFloor } else { Self::BelowFloor }
    }

    /// The word used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::Inside => "inside",
            Self::About => "about",
            Self::Below => "below",
            Self::FarBelow => "far-below",
            Self::Above => "above",
            Self::AboveFloor => "above-floor",
            Self::BelowFloor => "below-floor",
        }
    }

    /// The relation as the predicate of a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Reached => "reaches the ceiling",
            Self::Inside => "is inside the range of the ceiling",
            Self::About => "agrees within 10 %",
            Self::Below => "is below the ceiling: something else binds",
            Self::FarBelow => {
                "is below half of the ceiling: the hardware as described is not the limit"
            }
            Self::Above => {
                "is above the ceiling: the path is not as described, or more than payload is counted"
            }
            Self::AboveFloor => "is above the floor",
            Self::BelowFloor => "is below the floor: the path is not as described",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_relation_ends_at_its_threshold() {
        let wide = Bounds::new(100.0, 120.0);
        for (figure, expected) in [
            (132.1, Relation::Above),
            (131.9, Relation::About),
            (120.7, Relation::About),
            (120.5, Relation::Inside),
            (100.0, Relation::Inside),
            (99.9, Relation::About),
            (90.1, Relation::About),
            (89.9, Relation::Below),
            (50.1, Relation::Below),
            (49.9, Relation::FarBelow),
        ] {
            assert_eq!(Relation::to_ceiling(figure, wide), expected, "{figure}");
        }
        let narrow = Bounds::new(100.0, 101.0);
        for (figure, expected) in
            [(101.4, Relation::Reached), (98.1, Relation::Reached), (97.9, Relation::About)]
        {
            assert_eq!(Relation::to_ceiling(figure, narrow), expected, "{figure}");
        }
        let floor = |figure| Relation::to_floor(figure, wide);
        assert_eq!([floor(100.0), floor(99.0)], [Relation::AboveFloor, Relation::BelowFloor]);
    }
}
