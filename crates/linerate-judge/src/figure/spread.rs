//! The spread of a figure over several runs.

use super::{Evidence, Figure, Merge, Value};
use linerate_units::stats::median;

/// The spread of a figure over several runs of one plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The number of runs that have the figure.
    pub runs: usize,
    /// The lowest value of all runs.
    pub low: f64,
    /// The value that merges those of all runs.
    pub middle: f64,
    /// How the runs were merged: as the figure defines, or by the median if a run has no counts.
    pub merge: Merge,
    /// The highest value of all runs.
    pub high: f64,
}

impl Spread {
    /// The spread of these values, one from each run; `None` if there are none.
    pub fn of(figure: &Figure, values: &[&Value]) -> Option<Self> {
        let mut ascending: Vec<f64> = values.iter().map(|value| value.mid).collect();
        ascending.sort_by(f64::total_cmp);
        let (low, high) = (*ascending.first()?, *ascending.last()?);
        let pooled = match figure.merge {
            Merge::Pooled => pooled(values),
            Merge::Median => None,
        };
        Some(Self {
            runs: ascending.len(),
            low,
            middle: pooled.or_else(|| median(&ascending))?,
            merge: pooled.map_or(Merge::Median, |_| Merge::Pooled),
            high,
        })
    }
}

/// The events of all runs over all that could have been one; `None` if a value has no counts.
fn pooled(values: &[&Value]) -> Option<f64> {
    let chances = |value: &&Value| match &value.evidence {
        Evidence::Counts(counts) => Some(counts.iter().map(|count| count.of).sum()),
        _ => None,
    };
    let chances: Vec<f64> = values.iter().map(chances).collect::<Option<_>>()?;
    let all: f64 = chances.iter().sum();
    let events: f64 = values.iter().zip(&chances).map(|(v, of)| v.mid * of).sum();
    (all > 0.0).then(|| events / all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{GOODPUT, LOSS};
    use linerate_units::stats::Count;

    fn spread(figure: &Figure, values: &[Value]) -> Option<Spread> {
        Spread::of(figure, &values.iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        let of = |values: &[f64]| {
            let values: Vec<Value> = values.iter().map(|v| Value::bare(*v)).collect();
            spread(&GOODPUT, &values)
        };
        assert_eq!(of(&[]), None);
        let expected =
            |low, middle, high, runs| Spread { runs, low, middle, merge: Merge::Median, high };
        assert_eq!(of(&[5.0, 1.0, 2.0]), Some(expected(1.0, 2.0, 5.0, 3)));
        assert_eq!(of(&[5.0, 1.0, 2.0, 3.0]), Some(expected(1.0, 2.5, 5.0, 4)));
    }

    #[test]
    fn shares_of_events_are_pooled_where_all_were_counted() {
        let share = |events, of| Value::share(vec![Count { events, of }]).unwrap();
        let counted = [share(0.0, 100.0), share(0.0, 100.0), share(30.0, 100.0)];
        let all = spread(&LOSS, &counted).unwrap();
        assert!((all.middle - 0.1).abs() < 1e-9, "{all:?}");
        assert_eq!((all.low, all.high), (0.0, 0.3));
        let bare = [share(0.0, 100.0), Value::bare(0.2), share(30.0, 100.0)];
        let median = spread(&LOSS, &bare).unwrap();
        assert!((median.middle - 0.2).abs() < 1e-9 && median.merge == Merge::Median);
    }
}
