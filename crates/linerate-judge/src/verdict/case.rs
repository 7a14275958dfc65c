//! The case of one direction: the result of every cause, and the causes that trials exclude.
//!
//! Causes of goodput and of latency are judged separately. A trial shows up to three effects: on goodput, on
//! the share of bytes that were retransmitted, and on the round trip under load.

use crate::causes::{Answer, Cause, Expected, Fit, NoFinding, excludes, moot, shown};
use crate::model::{Model, TrialModel};
use linerate_plan::path::{Direction, Measure, Slowness};
use linerate_plan::transport::{Feature, OTHER, TransportInfo};
use linerate_units::stats::Interval;

/// A cause that is judged in a case.
pub(super) struct Party {
    /// The cause that is judged.
    pub(super) cause: &'static Cause,
    /// The result of checking the cause against the base load.
    pub(super) answer: Answer,
    /// Trials (by number) whose effects are outside of the cause's prediction.
    pub(super) excluded_by: Vec<u32>,
}

impl Party {
    /// Whether the cause is still possible: it is neither clear nor excluded, it does more than disturb, and it was
    /// read if proofs of other causes depend on it.
    pub(super) fn stands(&self) -> bool {
        let in_play = match self.answer {
            Ok(_) => !self.cause.only_disturbs,
            Err(NoFinding::Clear(_)) => false,
            Err(NoFinding::Unknown(_)) => !self.cause.may_be_unread,
        };
        in_play && self.excluded_by.is_empty()
    }
}

/// What proves a limit.
#[derive(Clone, Copy)]
pub(super) enum Proof<'a> {
    /// A ceiling that goodput reached.
    Ceiling,
    /// A trial and its effect on goodput.
    Trial(&'a TrialModel, Interval),
}

/// Whether `other` may be the limit instead of `party`. A cause that explains `party` is no rival.
fn is_rival(other: &Party, party: &Party) -> bool {
    let id = party.cause.id;
    let reason = other.cause.explains.contains(&id)
        && match (&other.answer, &party.answer) {
            (Ok(a), Ok(b)) => a.side == b.side,
            _ => true,
        };
    other.cause.id != id && other.stands() && !reason
}

/// The case of one direction and one kind of slowness.
pub(super) struct Case<'a> {
    /// The whole model that is judged.
    pub(super) model: &'a Model,
    direction: Direction,
    /// Whether the case is about goodput or about latency.
    slowness: Slowness,
    /// The transport that moved the load.
    pub(super) transport: &'static TransportInfo,
    /// The causes that apply to the transport.
    pub(super) parties: Vec<Party>,
    /// Trials of this direction that have an effect on goodput, with that effect.
    pub(super) trials: Vec<(&'a TrialModel, Interval)>,
}

/// The result of a cause for a direction, after a check whether the finding can be the limit at all.
fn heard(cause: &Cause, model: &Model, direction: Direction) -> Answer {
    match cause.check(model, direction) {
        Ok(found) => moot(cause, model, direction, &found).unwrap_or(Ok(found)),
        answer => answer,
    }
}

/// The transport that moved the load of a direction.
fn transport(model: &Model, direction: Direction) -> Option<&'static TransportInfo> {
    model.direction(direction).map(|d| d.base.transport)
}

/// The quantity that a case of this slowness is about: latency, goodput or operations.
fn measure(model: &Model, direction: Direction, slowness: Slowness) -> Measure {
    match slowness {
        Slowness::Latency => Measure::Latency,
        Slowness::Rate => model.direction(direction).map_or(Measure::Goodput, |d| d.base.measure()),
    }
}

/// Whether a cause applies to the load of a direction. Before anything was measured, all causes apply.
fn applies(cause: &Cause, model: &Model, direction: Direction) -> bool {
    let transport = transport(model, direction);
    transport.is_none_or(|transport| transport.has_all(cause.needs))
}

/// Whether, of two findings about a load of datagrams, one affects the rate sent and the other the share delivered.
/// Both may then be true at once.
fn are_apart(one: &Party, other: &Party, direction: Direction) -> bool {
    let of_sender = |party: &Party| match &party.answer {
        Ok(found) => Some(found.side == direction.sender().into() && !party.cause.of_delivery),
        _ => None,
    };
    of_sender(one).zip(of_sender(other)).is_some_and(|(one, other)| one != other)
}

impl<'a> Case<'a> {
    /// Judges the `causes` that make a path slow in this respect, and applies every trial of `direction`.
    pub(super) fn of(
        model: &'a Model,
        direction: Direction,
        slowness: Slowness,
        causes: &[&'static Cause],
    ) -> Self {
        let trials: Vec<(&TrialModel, Interval)> = model
            .trials
            .iter()
            .filter(|t| t.plan.direction == direction)
            .filter_map(|t| Some((t, t.effect?)))
            .collect();
        let parties = causes
            .iter()
            .filter(|cause| cause.slows == slowness && applies(cause, model, direction))
            .map(|cause| Party {
                cause,
                answer: heard(cause, model, direction),
                excluded_by: trials
                    .iter()
                    .map(|(t, _)| t)
                    .filter(|t| excludes(t, cause, model))
                    .map(|t| t.plan.id)
                    .collect(),
            })
            .collect();
        Self {
            model,
            direction,
            slowness,
            transport: transport(model, direction).unwrap_or(&OTHER),
            parties,
            trials,
        }
    }

    /// The proof of `party`: a ceiling that was reached, or a trial. A trial proves a cause if it changed the factor of
    /// that cause, if its effects are inside of the cause's prediction, and if no rival is left. It must also have been
    /// able to refute the cause: it excluded another cause, or the resource of this one was used up.
    pub(super) fn proof(&self, party: &Party) -> Option<Proof<'a>> {
        let Ok(finding) = &party.answer else {
            return None;
        };
        if party.cause.proves_itself && finding.reached && party.stands() {
            return Some(Proof::Ceiling);
        }
        let apart = |other: &Party| self.splits() && are_apart(other, party, self.direction);
        let rivals = self.parties.iter();
        let rivals = rivals.filter(|other| is_rival(other, party) && !apart(other));
        let rivals: Vec<&Party> = rivals.collect();
        if !party.stands() {
            return None;
        }
        // In a trial of the reason alone, the causes that `party` explains are no rivals.
        let explained = |other: &Party, trial: &TrialModel| {
            party.cause.explains.contains(&other.cause.id)
                && !other.cause.is_about(self.model, &trial.plan)
        };
        self.trials
            .iter()
            .filter(|(trial, _)| rivals.iter().all(|other| explained(other, trial)))
            .filter(|(trial, _)| {
                let about = party.cause.is_about(self.model, &trial.plan);
                let own = Expected::of(party.cause, self.model, &trial.plan);
                about
                    && self.tells(trial)
                    && own.fits(shown(trial)) == Fit::Inside
                    && (finding.reached || !self.excluded(trial.plan.id).is_empty())
            })
            // Of several trials that prove the cause, the one that excluded most causes is shown.
            .max_by_key(|(trial, _)| self.excluded(trial.plan.id).len())
            .map(|(trial, effect)| Proof::Trial(trial, *effect))
    }

    /// Whether a finding remains true in addition to a proved one: it explains the proved one, or it concerns the other
    /// factor of a datagram goodput (the rate sent, and the share delivered).
    pub(super) fn is_beside(&self, party: &Party, proved: &Party) -> bool {
        party.cause.explains.contains(&proved.cause.id)
            || (self.splits() && are_apart(party, proved, self.direction))
    }

    /// Whether the rate sent and the share delivered are separate factors of goodput: datagrams are not retransmitted.
    fn splits(&self) -> bool {
        self.transport.has(Feature::Datagrams)
    }

    /// Which figure of the load is judged here: goodput, operations or latency.
    pub(super) fn measure(&self) -> Measure {
        measure(self.model, self.direction, self.slowness)
    }

    /// Whether a trial measured the figure that is judged here.
    fn tells(&self, trial: &TrialModel) -> bool {
        self.slowness == Slowness::Rate || trial.latency.is_some()
    }

    /// Ids of the causes that a trial excluded, including those that are clear anyway.
    pub(super) fn excluded(&self, trial: u32) -> Vec<&'static str> {
        self.parties
            .iter()
            .filter(|p| !p.cause.only_disturbs && p.excluded_by.contains(&trial))
            .map(|p| p.cause.id)
            .collect()
    }
}
