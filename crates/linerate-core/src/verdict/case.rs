//! The case of one direction: what every cause answers, and what the trials exclude.
//!
//! A trial shows two effects: on goodput, and on the share of bytes that had to be sent again.

use crate::causes::{Answer, Cause};
use crate::model::{Model, TrialModel};
use crate::plan::Direction;
use crate::record::TrialPlan;
use crate::stats::{Interval, Range};

/// One cause before the judge.
pub(super) struct Party {
    /// The cause.
    pub(super) cause: &'static dyn Cause,
    /// What it says of the base load.
    pub(super) answer: Answer,
    /// Trials (by number) whose effect lies outside what it predicted.
    pub(super) excluded_by: Vec<u32>,
}

impl Party {
    /// In play: neither clear nor excluded, and not one that makes the measurement invalid.
    pub(super) fn stands(&self) -> bool {
        !self.cause.invalidates()
            && !matches!(self.answer, Answer::Clear(_))
            && self.excluded_by.is_empty()
    }
}

/// What proves a limit.
#[derive(Clone, Copy)]
pub(super) enum Proof<'a> {
    /// A ceiling that was reached.
    Ceiling,
    /// A trial and its effect on goodput.
    Trial(&'a TrialModel, Interval),
}

/// What a cause expects of a trial.
#[derive(Clone, Copy)]
pub(super) struct Expected {
    /// Of goodput.
    goodput: Option<Range>,
    /// Of the share of bytes sent again.
    loss: Option<Range>,
}

/// How what was measured fits what was expected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// Nothing was expected, or it was not measured.
    Silent,
    /// Within.
    Inside,
    /// Partly within.
    Cut,
    /// Not at all.
    Outside,
}

impl Expected {
    /// What `cause` expects of a trial.
    pub(super) fn of(cause: &dyn Cause, model: &Model, trial: &TrialPlan) -> Self {
        Self {
            goodput: cause.predict(model, trial),
            loss: cause.predict_loss(model, trial),
        }
    }

    /// Whether no outcome could fit both this and `other`.
    pub(super) fn parted_from(self, other: Self) -> bool {
        let apart =
            |a: Option<Range>, b: Option<Range>| a.zip(b).is_some_and(|(a, b)| !a.overlaps(b));
        apart(self.goodput, other.goodput) || apart(self.loss, other.loss)
    }

    /// Whether it tells something, and that is not "no change".
    pub(super) fn is_change(self) -> bool {
        let ranges = || [self.goodput, self.loss].into_iter().flatten();
        ranges().next().is_some() && ranges().all(|r| !r.overlaps(crate::stats::EQUAL))
    }

    /// How the effects of a trial fit it; both must, where both were expected.
    pub(super) fn fits(self, goodput: Option<Interval>, loss: Option<Interval>) -> Fit {
        let fits = [(self.goodput, goodput), (self.loss, loss)].map(|(range, effect)| match range
            .zip(effect)
        {
            None => Fit::Silent,
            Some((range, effect)) if range.excludes(effect) => Fit::Outside,
            Some((range, effect)) if range.contains(effect) => Fit::Inside,
            Some(_) => Fit::Cut,
        });
        let order = [Fit::Outside, Fit::Cut, Fit::Inside];
        order
            .into_iter()
            .find(|f| fits.contains(f))
            .unwrap_or(Fit::Silent)
    }
}

/// Whether `other` may be the limit in the place of `party`; a reason for it is none.
fn is_rival(other: &Party, party: &Party) -> bool {
    let id = party.cause.id();
    let reason = other.cause.explains().contains(&id)
        && match (&other.answer, &party.answer) {
            (Answer::Finding(a), Answer::Finding(b)) => a.side == b.side,
            _ => true,
        };
    other.cause.id() != id && other.stands() && !reason
}

/// One direction.
pub(super) struct Case<'a> {
    /// The whole model.
    pub(super) model: &'a Model,
    /// Every cause that was heard.
    pub(super) parties: Vec<Party>,
    /// Trials of this direction that have an effect.
    pub(super) trials: Vec<(&'a TrialModel, Interval)>,
}

impl<'a> Case<'a> {
    /// Hears all of `causes` and applies every trial of `direction`.
    pub(super) fn of(
        model: &'a Model,
        direction: Direction,
        causes: &[&'static dyn Cause],
    ) -> Self {
        let trials: Vec<(&TrialModel, Interval)> = model
            .trials
            .iter()
            .filter(|t| t.plan.direction == direction)
            .filter_map(|t| Some((t, t.effect?)))
            .collect();
        let parties = causes
            .iter()
            .map(|cause| Party {
                cause: *cause,
                answer: cause.check(model, direction),
                excluded_by: trials
                    .iter()
                    .map(|(t, _)| t)
                    .filter(|t| {
                        Expected::of(*cause, model, &t.plan).fits(t.effect, t.loss) == Fit::Outside
                    })
                    .map(|t| t.plan.id)
                    .collect(),
            })
            .collect();
        Self {
            model,
            parties,
            trials,
        }
    }

    /// What proves `party`, when something does: a ceiling that was reached, or a trial. The trial
    /// changed what the cause is about, its effects lie inside what the cause predicted, nothing else
    /// is left in play, and the experiment could have come out otherwise: it excluded another cause,
    /// or what the cause is about was used up.
    pub(super) fn proof(&self, party: &Party) -> Option<Proof<'a>> {
        let Answer::Finding(finding) = &party.answer else {
            return None;
        };
        if party.cause.is_ceiling() && finding.reached && party.stands() {
            return Some(Proof::Ceiling);
        }
        let alone = !self.parties.iter().any(|other| is_rival(other, party));
        if !alone || !party.stands() {
            return None;
        }
        self.trials
            .iter()
            .filter(|(trial, _)| {
                let about = party.cause.is_about(self.model, &trial.plan);
                let own = Expected::of(party.cause, self.model, &trial.plan);
                about
                    && own.fits(trial.effect, trial.loss) == Fit::Inside
                    && (finding.reached || !self.excluded(trial.plan.id).is_empty())
            })
            // The trial that excluded most is the one to show.
            .max_by_key(|(trial, _)| self.excluded(trial.plan.id).len())
            .map(|(trial, effect)| Proof::Trial(trial, *effect))
    }

    /// Causes that a trial excluded, the cleared ones included.
    pub(super) fn excluded(&self, trial: u32) -> Vec<&'static str> {
        self.parties
            .iter()
            .filter(|p| !p.cause.invalidates() && p.excluded_by.contains(&trial))
            .map(|p| p.cause.id())
            .collect()
    }
}
