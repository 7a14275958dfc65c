//! The case of one direction: what every cause answers, and what the trials exclude.
//!
//! Causes of goodput and of latency are heard apart. A trial shows up to three effects: on goodput, on the
//! share of bytes that had to be sent again, and on the round trip beside the load.

use crate::causes::{Answer, Cause, LOCAL_DROPS, moot};
use crate::model::{Model, TrialModel};
use crate::plan::Direction;
use crate::record::TrialPlan;
use crate::stats::{Interval, Range};
use crate::verdict::Measure;

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
    /// In play: neither clear nor excluded, not one that only disturbs, and read where the others depend on it.
    pub(super) fn stands(&self) -> bool {
        let in_play = match self.answer {
            Answer::Finding(_) => !self.cause.only_disturbs(),
            Answer::Clear(_) => false,
            Answer::Unknown(_) => !self.cause.may_be_unread(),
        };
        in_play && self.excluded_by.is_empty()
    }
}

/// Whether an effect of a trial lies outside what a cause predicts of it.
pub(crate) fn excludes(trial: &TrialModel, cause: &dyn Cause, model: &Model) -> bool {
    let expected = Expected::of(cause, model, &trial.plan);
    trial.effect.is_some() && expected.fits(shown(trial)) == Fit::Outside
}

/// What proves a limit.
#[derive(Clone, Copy)]
pub(super) enum Proof<'a> {
    /// A ceiling that was reached.
    Ceiling,
    /// A trial and its effect on goodput.
    Trial(&'a TrialModel, Interval),
}

/// Something for each effect that a trial may show: on goodput, on the share sent again, on the round trip.
pub(super) type Effects<T> = [Option<T>; 3];

/// What a trial showed.
pub(super) fn shown(trial: &TrialModel) -> Effects<Interval> {
    [trial.effect, trial.loss, trial.latency]
}

/// What a cause expects of a trial.
#[derive(Clone, Copy)]
pub(super) struct Expected(Effects<Range>);

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
        Self([
            cause.predict(model, trial),
            cause.predict_loss(model, trial),
            cause.predict_latency(model, trial),
        ])
    }

    /// Whether no outcome could fit both this and `other`.
    pub(super) fn parted_from(self, other: Self) -> bool {
        let both = self.0.into_iter().zip(other.0);
        let mut both = both.filter_map(|(a, b)| a.zip(b));
        both.any(|(a, b)| !a.overlaps(b))
    }

    /// Whether it tells something, and that is not "no change".
    pub(super) fn is_change(self) -> bool {
        let ranges = || self.0.into_iter().flatten();
        ranges().next().is_some() && ranges().all(|r| !r.overlaps(crate::stats::EQUAL))
    }

    /// How the effects of a trial fit it; all must that were expected.
    pub(super) fn fits(self, effects: Effects<Interval>) -> Fit {
        let fit = |(range, effect): (Option<Range>, Option<Interval>)| match range.zip(effect) {
            None => Fit::Silent,
            Some((range, effect)) if range.excludes(effect) => Fit::Outside,
            Some((range, effect)) if range.contains(effect) => Fit::Inside,
            Some(_) => Fit::Cut,
        };
        let fits: Vec<Fit> = self.0.into_iter().zip(effects).map(fit).collect();
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
    direction: Direction,
    /// What is slow.
    metric: Measure,
    /// Whether the load went in datagrams.
    pub(super) datagrams: bool,
    /// Every cause of that which was heard.
    pub(super) parties: Vec<Party>,
    /// Trials of this direction that have an effect.
    pub(super) trials: Vec<(&'a TrialModel, Interval)>,
}

/// What a cause says of a direction.
fn heard(cause: &dyn Cause, model: &Model, direction: Direction) -> Answer {
    if sends_datagrams(model, direction) && cause.is_of_connections() {
        return Answer::Clear("it is of connections, and these were datagrams".to_owned());
    }
    match cause.check(model, direction) {
        Answer::Finding(found) => {
            moot(cause, model, direction, &found).unwrap_or(Answer::Finding(found))
        }
        answer => answer,
    }
}

fn sends_datagrams(model: &Model, direction: Direction) -> bool {
    let base = model.direction(direction).map(|d| &d.base);
    base.is_some_and(|load| load.datagrams.is_some())
}

/// Causes of which the share that came tells, wherever they hold: what a sender's own port drops, or loses on purpose, was
/// sent.
const OF_WHAT_CAME: [&str; 2] = [LOCAL_DROPS, "path-loss"];

/// Whether two findings are of two factors of what came of a load by datagrams: of what its sender sent, and
/// of the share of it that came. Both may hold at once.
fn are_apart(one: &Party, other: &Party, direction: Direction) -> bool {
    let came = |party: &Party| OF_WHAT_CAME.contains(&party.cause.id());
    let of_sender = |party: &Party| match &party.answer {
        Answer::Finding(found) => Some(found.side == direction.sender().into() && !came(party)),
        _ => None,
    };
    of_sender(one)
        .zip(of_sender(other))
        .is_some_and(|(one, other)| one != other)
}

impl<'a> Case<'a> {
    /// Hears those of `causes` that are of `metric`, and applies every trial of `direction`.
    pub(super) fn of(
        model: &'a Model,
        direction: Direction,
        metric: Measure,
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
            .filter(|cause| cause.metric() == metric)
            .map(|cause| Party {
                cause: *cause,
                answer: heard(*cause, model, direction),
                excluded_by: trials
                    .iter()
                    .map(|(t, _)| t)
                    .filter(|t| excludes(t, *cause, model))
                    .map(|t| t.plan.id)
                    .collect(),
            })
            .collect();
        Self {
            model,
            direction,
            metric,
            datagrams: sends_datagrams(model, direction),
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
        let apart = |other: &Party| self.datagrams && are_apart(other, party, self.direction);
        let rival = |other: &Party| is_rival(other, party) && !apart(other);
        let alone = !self.parties.iter().any(rival);
        if !alone || !party.stands() {
            return None;
        }
        self.trials
            .iter()
            .filter(|(trial, _)| {
                let about = party.cause.is_about(self.model, &trial.plan);
                let own = Expected::of(party.cause, self.model, &trial.plan);
                about
                    && self.tells(trial)
                    && own.fits(shown(trial)) == Fit::Inside
                    && (finding.reached || !self.excluded(trial.plan.id).is_empty())
            })
            // The trial that excluded most is the one to show.
            .max_by_key(|(trial, _)| self.excluded(trial.plan.id).len())
            .map(|(trial, effect)| Proof::Trial(trial, *effect))
    }

    /// Whether a finding holds beside one that was proved: it is a reason for it, or about the other factor of
    /// what came of datagrams.
    pub(super) fn is_beside(&self, party: &Party, proved: &Party) -> bool {
        party.cause.explains().contains(&proved.cause.id())
            || (self.datagrams && are_apart(party, proved, self.direction))
    }

    /// Whether a trial showed what becomes of what is slow.
    fn tells(&self, trial: &TrialModel) -> bool {
        self.metric == Measure::Goodput || trial.latency.is_some()
    }

    /// Causes that a trial excluded, the cleared ones included.
    pub(super) fn excluded(&self, trial: u32) -> Vec<&'static str> {
        self.parties
            .iter()
            .filter(|p| !p.cause.only_disturbs() && p.excluded_by.contains(&trial))
            .map(|p| p.cause.id())
            .collect()
    }
}
