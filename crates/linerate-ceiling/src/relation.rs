//! How a measured figure compares with a computed one.

use super::Bounds;

/// Share of a ceiling from which on a figure counts as reaching it.
const REACHED: f64 = 0.98;
/// Highest share of a ceiling that a figure may have: more than 1 only because of rounding.
const ROUNDED: f64 = 1.005;
/// Largest difference that still counts as "about", as a share in both directions.
const ABOUT: f64 = 0.10;
/// Share of a ceiling below which the ceiling does not explain a figure.
const FAR_BELOW: f64 = 0.5;
/// Largest ratio of upper to lower end of an interval that counts as one value: TCP timestamps change it by no more.
const NARROW: f64 = 1.02;

/// How a measured figure compares with a computed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// The figure is within 2 % of the ceiling.
    Reached,
    /// The figure is between the two ends of a ceiling that is a wide interval.
    Inside,
    /// Figure and ceiling agree to within 10 %.
    About,
    /// Below the ceiling by more than 10 %, but not below half of it.
    Below,
    /// Below half of the ceiling.
    FarBelow,
    /// Above the ceiling by more than 10 %.
    Above,
    /// At or above a floor, the least possible value.
    AboveFloor,
    /// Below a floor, the least possible value.
    BelowFloor,
}

impl Relation {
    /// Compares a figure with a ceiling.
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

    /// Compares a figure with a floor.
    pub fn to_floor(figure: f64, floor: Bounds) -> Self {
        if figure >= floor.low() { Self::AboveFloor } else { Self::BelowFloor }
    }

    /// Name of the relation in JSON.
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

    /// The relation in words, as the predicate of a sentence about the figure.
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
