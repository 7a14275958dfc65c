//! Compares the prediction of a cause with the result of a trial.
//!
//! A trial shows up to three effects: on goodput, on the share that was lost or retransmitted, and on the round
//! trip under load.

use super::Cause;
use crate::model::{Model, TrialModel};
use linerate_record::TrialPlan;
use linerate_units::stats::{EQUAL, Interval, Range};

/// One value for each effect that a trial may show: on goodput, on the share retransmitted, on the round trip.
pub(crate) type Effects<T> = [Option<T>; 3];

/// The effects that a trial showed.
pub(crate) fn shown(trial: &TrialModel) -> Effects<Interval> {
    [trial.effect, trial.loss, trial.latency]
}

/// The effects that a cause predicts for a trial.
#[derive(Clone, Copy)]
pub(crate) struct Expected(Effects<Range>);

/// How a measurement agrees with its prediction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// There is no prediction, or no measurement.
    Silent,
    /// The measurement is within the predicted range.
    Inside,
    /// The measurement is partly within the predicted range.
    Cut,
    /// The measurement is outside the predicted range.
    Outside,
}

impl Expected {
    /// The effects that `cause` predicts for a trial.
    pub(crate) fn of(cause: &Cause, model: &Model, trial: &TrialPlan) -> Self {
        Self([
            cause.predict(model, trial),
            (cause.predict_loss)(model, trial),
            (cause.predict_latency)(model, trial),
        ])
    }

    /// Whether no outcome of a trial could fit both this prediction and `other`.
    pub(crate) fn parted_from(self, other: Self) -> bool {
        let both = self.0.into_iter().zip(other.0);
        let mut both = both.filter_map(|(a, b)| a.zip(b));
        both.any(|(a, b)| !a.overlaps(b))
    }

    /// Whether the prediction excludes that nothing changes.
    pub(crate) fn is_change(self) -> bool {
        let ranges = || self.0.into_iter().flatten();
        ranges().next().is_some() && ranges().all(|r| !r.overlaps(EQUAL))
    }

    /// How the measured effects of a trial fit the prediction; every effect that was predicted must fit.
    pub(crate) fn fits(self, effects: Effects<Interval>) -> Fit {
        let fit = |(range, effect): (Option<Range>, Option<Interval>)| match range.zip(effect) {
            None => Fit::Silent,
            Some((range, effect)) if range.excludes(effect) => Fit::Outside,
            Some((range, effect)) if range.contains(effect) => Fit::Inside,
            Some(_) => Fit::Cut,
        };
        let fits: Vec<Fit> = self.0.into_iter().zip(effects).map(fit).collect();
        let order = [Fit::Outside, Fit::Cut, Fit::Inside];
        order.into_iter().find(|f| fits.contains(f)).unwrap_or(Fit::Silent)
    }
}

/// Whether the measured effects of a trial are outside the ranges that a cause predicts.
pub(crate) fn excludes(trial: &TrialModel, cause: &Cause, model: &Model) -> bool {
    let expected = Expected::of(cause, model, &trial.plan);
    trial.effect.is_some() && expected.fits(shown(trial)) == Fit::Outside
}
