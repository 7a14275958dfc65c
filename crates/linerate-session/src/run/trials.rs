//! Trials: one factor is changed, and both settings are measured in interleaved slices until the trial decides.

use linerate_facts::Gap;
use linerate_judge::model::{self, Crowd, Load, Model, effect, stalled, undisturbed};
use linerate_judge::trial::{next_slice, washout};
use linerate_judge::verdict::{Limit, decides, judge, next_trials};
use linerate_plan::Purpose;
use linerate_plan::factor::{Class, Factor, kind};
use linerate_plan::path::{Certainty, Direction, Slowness};
use linerate_record::{Step, TrialPlan};
use linerate_units::Nanos;

use super::Run;
use super::budget::Beyond;
use super::steps::BESIDE;
use crate::link::LinkError;
use linerate_judge::event::Event;

/// Returns whether a trial is about a limit of each single stream or thread, which is visible in the load itself.
fn is_of_each_stream(plan: &TrialPlan) -> bool {
    plan.factor().is_some_and(|factor| {
        let class = factor.class();
        matches!(class, Class::LargerBuffer | Class::HalfBuffer | Class::Work)
            || factor == Factor::Unpaced
    })
}

/// Additional time of a slice in which no payload gets through: both ends wait for the payload as long.
const STALL: Nanos = Nanos::from_secs(3);

/// Number of slices in a block (A B B A).
const BLOCK: usize = 4;

/// Smallest number of slices after which a trial has a result: two blocks.
const FEWEST: u64 = 8;

/// Largest number of times that the connections of a setting are opened again, until they
/// share receive queues as required. With four queues, two streams share one in a
/// quarter of all attempts. In 1 % of all cases, they share none in 16 attempts.
const DRAWS: u32 = 16;

/// Length of a short step that shows which CPUs receive the packets of new connections: two samples.
const LOOK: Nanos = Nanos::from_millis(200);

impl Run<'_> {
    /// Runs trials for goodput, then for latency, in all directions. Each round runs the most informative trial for
    /// each direction that is not decided. The direction that carries less is first, and gets all of the time. Ends
    /// when each direction has a proof, no trial is left, or the time is up.
    pub(super) fn trials(&mut self) -> Result<(), LinkError> {
        // Earlier steps with many streams took longer to end than the steps of trials do, so they are not counted.
        self.beyond = Beyond::default();
        // On a slow path, the base loads may use all of the time, because they end only when their payload has arrived.
        while !self.stopped && self.budget.left(self.link.now()).0 > 0 {
            let model = self.deriver.derive(&self.record);
            let first = self.record.trials.len() as u32;
            let mut open = open(&model, &self.record.start.plan.directions, first);
            self.lesser_first(&model, &mut open);
            let mut waiting = open.len() as u64;
            if self.any_doubled(&open)? {
                // The new steps may show that another trial is more informative.
                continue;
            }
            let Some(cheapest) = open.iter().map(|p| self.cost(&model, p)).min() else {
                return Ok(());
            };
            if !self.budget.affords(self.link.now(), cheapest) {
                return Ok(());
            }
            for (i, plan) in open.into_iter().enumerate() {
                // The free time is divided equally among the directions whose trial has not begun.
                let now = self.link.now();
                let until = Nanos(now.0 + self.budget.free(now).0 / waiting);
                waiting -= 1;
                if self.budget.affords(now, self.cost(&model, &plan)) && !self.stopped {
                    let id = first + i as u32;
                    self.trial(&model, &TrialPlan { id, ..plan }, until)?;
                    self.tell_proof(id);
                }
            }
        }
        Ok(())
    }

    /// Measures with twice the streams in the directions of these trials, or in all directions if there are no trials.
    /// Trials about a limit of each stream do not need this. Returns whether a step was measured.
    fn any_doubled(&mut self, open: &[TrialPlan]) -> Result<bool, LinkError> {
        let directions: Vec<Direction> = if open.is_empty() {
            self.record.start.plan.directions.clone()
        } else {
            let unclear = open.iter().filter(|plan| !is_of_each_stream(plan));
            unclear.map(|plan| plan.direction).collect()
        };
        let mut measured = false;
        for direction in directions {
            measured |= self.doubled(direction)?;
        }
        Ok(measured)
    }

    /// Leaves out the trial of the other direction if the time suffices for a trial of the direction that carries less.
    fn lesser_first(&self, model: &Model, open: &mut Vec<TrialPlan>) {
        let now = self.link.now();
        let of = |plan: &TrialPlan| {
            Some(plan.direction) == model.lesser()
                && self.budget.affords(now, self.cost(model, plan))
        };
        if open.iter().any(of) {
            open.retain(of);
        }
    }

    fn trial(&mut self, model: &Model, plan: &TrialPlan, until: Nanos) -> Result<(), LinkError> {
        let what = kind(&plan.kind).map_or("", |k| k.words);
        let words = format!("testing {what} ({})", plan.direction.name());
        self.note(|record| record.trials.push(plan.clone()), &Event::Trial { plan, words: &words });
        let Some(before) = self.offered(plan.direction, &plan.before)? else {
            return Ok(());
        };
        let Some(after) = self.offered(plan.direction, &plan.after)? else {
            return self.link.release(before);
        };
        let [settle, measure] = times(model, plan);
        // At less than the full rate, round trips during the slices show whether packets wait in queues.
        let timed = plan.factor() == Some(Factor::Paced);
        let mut trial = Interleaved {
            model,
            plan,
            sets: [before, after],
            beside: if timed { self.beside()? } else { None },
            settle,
            measure,
            until,
            words: &words,
        };
        self.beyond = Beyond::default();
        let outcome = self.interleave(&mut trial);
        let outcome = self.unless_refused(plan, outcome);
        // If the link is lost, there are no sets to release.
        if !matches!(outcome, Err(LinkError::Lost { .. })) {
            for set in trial.sets.into_iter().chain(trial.beside) {
                self.link.release(set)?;
            }
        }
        outcome
    }

    /// Reports to the user at once that a trial has proved a limit: the user may need nothing else.
    fn tell_proof(&mut self, trial: u32) {
        let after = self.record.steps.last().map_or(Nanos(0), Step::ended);
        let proof = |limit: &&Limit| {
            limit.certainty == Certainty::Proved
                && limit.trial.as_ref().is_some_and(|t| t.id == trial)
        };
        let verdict = judge(&self.deriver.derive(&self.record));
        for limit in verdict.limits.iter().filter(proof) {
            self.note(|_| (), &Event::Proved { limit, after });
        }
    }

    /// Prepares the set that times round trips during the slices.
    /// `None` if an end refuses it: the trial then shows less.
    fn beside(&mut self) -> Result<Option<u32>, LinkError> {
        match self.ping(BESIDE) {
            Ok(set) => Ok(Some(set)),
            Err(LinkError::Refused { .. }) => Ok(None),
            Err(lost) => Err(lost),
        }
    }

    fn interleave(&mut self, trial: &mut Interleaved<'_>) -> Result<(), LinkError> {
        let id = trial.plan.id;
        let mut alive = true;
        for changed in [false, true] {
            if !self.drawn(trial, changed)? {
                return Ok(());
            }
            let set = trial.sets[usize::from(changed)];
            let purpose = Purpose::Warm { trial: id };
            self.step(purpose, &[set], Nanos(0), trial.slice(), trial.words)?;
            if changed && self.copied_all_the_same(trial.plan) {
                return Ok(());
            }
            alive &= self.renewed(trial, changed)?;
        }
        while alive && !self.stopped {
            let Some(changed) = self.goes_on(trial) else {
                return Ok(());
            };
            let purpose = Purpose::Slice { trial: id, changed };
            let sets = trial.of(changed);
            self.step(purpose, &sets, trial.settle, trial.measure, trial.words)?;
            alive = self.renewed(trial, changed)?;
        }
        Ok(())
    }

    /// Returns whether the kernel copied payload in the last step of a
    /// trial that should avoid the copy. If so, reports this to the user.
    fn copied_all_the_same(&mut self, plan: &TrialPlan) -> bool {
        if plan.factor() != Some(Factor::ZeroCopy) {
            return false;
        }
        let step = self.record.steps.last();
        let load = step.and_then(|step| model::load(&self.record, step, plan.direction));
        let copied = load.is_some_and(|load| load.copied.is_some() && !load.uncopied());
        if copied {
            let gap = Gap {
                what: format!("the trial {}", plan.kind),
                why: "the kernel copied the payload all the same, as it does where packets stay on the machine"
                    .to_owned(),
                hint: String::new(),
            };
            self.hint(plan.direction.sender(), &gap);
        }
        copied
    }

    /// If a host no longer permits the setting of a trial, ends only the trial, not the run.
    fn unless_refused(
        &mut self,
        plan: &TrialPlan,
        outcome: Result<(), LinkError>,
    ) -> Result<(), LinkError> {
        match (plan.after.host, outcome) {
            (Some(change), Err(LinkError::Refused { what, hint })) => {
                let what = Gap { what: format!("the trial {}", plan.kind), why: what, hint };
                self.hint(change.side, &what);
                Ok(())
            }
            (_, outcome) => outcome,
        }
    }

    /// Opens the connections of a setting again if no payload got through in the last step. Returns false if this
    /// fails, or if the connections broke for another reason.
    fn renewed(&mut self, trial: &mut Interleaved<'_>, changed: bool) -> Result<bool, LinkError> {
        if !self.broke() {
            return Ok(true);
        }
        if !self.record.steps.last().is_some_and(stalled) {
            return Ok(false);
        }
        if let Some(beside) = trial.beside.take() {
            self.link.release(beside)?;
            trial.beside = self.beside()?;
        }
        self.redialled(trial, changed)
    }

    /// In trials about shared receive queues, opens the connections of a setting again until they share queues as in
    /// the base load, or less if that is the trial's change. Returns false if no attempt succeeds.
    fn drawn(&mut self, trial: &mut Interleaved<'_>, changed: bool) -> Result<bool, LinkError> {
        let Some(base) = trial.shared() else {
            return Ok(true);
        };
        for _ in 0..DRAWS {
            let set = trial.sets[usize::from(changed)];
            let purpose = Purpose::Warm { trial: trial.plan.id };
            self.step(purpose, &[set], Nanos(0), LOOK, trial.words)?;
            let step = self.record.steps.last();
            let drawn = step.and_then(|s| model::crowd(&self.record, s, trial.plan.direction));
            if drawn.is_some_and(|drawn| (drawn.streams < base.streams) == changed) {
                return Ok(true);
            }
            // Two warm-up steps and the smallest number of slices still follow.
            let ends = self.link.now().0 + self.beyond.spent(trial.slice(), FEWEST + 2).0;
            let late = ends > trial.until.0;
            if self.stopped || late || !self.redialled(trial, changed)? {
                return Ok(false);
            }
        }
        let side = trial.plan.direction.receiver();
        self.hint(side, &undrawn(trial.plan, changed));
        Ok(false)
    }

    /// Opens the connections of a setting again; returns false if an end refuses them.
    fn redialled(&mut self, trial: &mut Interleaved<'_>, changed: bool) -> Result<bool, LinkError> {
        let set = &mut trial.sets[usize::from(changed)];
        self.link.release(*set)?;
        let knobs = if changed { &trial.plan.after } else { &trial.plan.before };
        let made = self.offered(trial.plan.direction, knobs)?;
        *set = made.unwrap_or(*set);
        Ok(made.is_some())
    }

    /// Returns the shortest time that a trial with a result takes.
    fn cost(&self, model: &Model, plan: &TrialPlan) -> Nanos {
        let [settle, measure] = times(model, plan);
        let base = model.direction(plan.direction).map(|d| &d.base);
        let all = self.beyond.spent(Nanos(settle.0 + measure.0), FEWEST + 2);
        // In half of the slices, no payload gets through.
        let stalls = base.and_then(Load::silent).map_or(0, |_| STALL.0 * FEWEST.div_ceil(2));
        Nanos(all.0 + stalls)
    }

    /// Returns whether the next slice has the changed setting; `None` if the trial has ended because it is decided, its
    /// time is up, or its connections are lost. A disturbed slice does not count and is repeated.
    fn goes_on(&mut self, trial: &Interleaved<'_>) -> Option<bool> {
        let slice = self.record.steps.last();
        let lost = slice.is_some_and(|s| s.trouble.is_some() && !stalled(s));
        let slices = self.deriver.slices(&self.record, trial.plan.id);
        let so_far = effect(trial.plan, &slices);
        let time = self.budget.affords(self.link.now(), self.beyond.spent(trial.slice(), 1));
        let next = so_far.next_changed().filter(|_| !lost && time)?;
        if slice.is_some_and(|s| !undisturbed(s)) {
            let ends = self.link.now().0 + self.beyond.spent(trial.slice(), 1).0;
            return (ends <= trial.until.0).then_some(next);
        }
        if !so_far.slices().is_multiple_of(BLOCK) || so_far.slices() == 0 {
            return Some(next);
        }
        let tried = self.deriver.trial(&self.record, trial.plan.id);
        let decided = tried.is_some_and(|tried| decides(trial.model, &tried));
        // A trial with fewer than two blocks has no result, so a trial that has begun gets two blocks.
        let begun = (so_far.slices() as u64) < FEWEST;
        let block_ends = self.link.now().0 + self.beyond.spent(trial.slice(), BLOCK as u64).0;
        (begun || (!decided && block_ends <= trial.until.0)).then_some(next)
    }
}

/// A trial and its connections, which stay open between slices.
struct Interleaved<'a> {
    /// The model that was derived before the trial.
    model: &'a Model,
    plan: &'a TrialPlan,
    /// Set with the old setting, and set with the new setting.
    sets: [u32; 2],
    /// Set that times round trips during the slices; `None` if the trial does not measure them.
    beside: Option<u32>,
    /// Washout of a slice.
    settle: Nanos,
    /// Length of the part of a slice that counts.
    measure: Nanos,
    /// Time at which the trial must end, so that the next one can begin.
    until: Nanos,
    words: &'a str,
}

impl Interleaved<'_> {
    /// Returns how the streams of the base load share receive queues; `None` if the trial is not about this.
    fn shared(&self) -> Option<Crowd> {
        let of = |direction| self.model.direction(direction)?.base.crowd();
        (self.plan.factor() == Some(Factor::OtherPorts)).then(|| of(self.plan.direction)).flatten()
    }

    /// Returns the sets that run in a slice.
    fn of(&self, changed: bool) -> Vec<u32> {
        let load = self.sets[usize::from(changed)];
        std::iter::once(load).chain(self.beside).collect()
    }

    /// Returns the length of a slice, including its washout.
    fn slice(&self) -> Nanos {
        Nanos(self.settle.0 + self.measure.0)
    }
}

/// Makes the notice that no attempt gave the connections that a trial with other TCP ports needs.
fn undrawn(plan: &TrialPlan, changed: bool) -> Gap {
    let how = if changed { "as before" } else { "less than before" };
    Gap {
        what: format!("the trial {}", plan.kind),
        why: format!("{DRAWS} times new connections shared receive queues {how}"),
        hint: String::new(),
    }
}

/// Returns the next trials for the limits of goodput in each direction, or, if there are none, for long round trips.
fn open(model: &Model, directions: &[Direction], first: u32) -> Vec<TrialPlan> {
    let limits = next_trials(model, directions, Slowness::Rate, first);
    if limits.is_empty() {
        next_trials(model, directions, Slowness::Latency, first)
    } else {
        limits
    }
}

/// Returns the washout of a slice, and the length of its part that counts.
fn times(model: &Model, plan: &TrialPlan) -> [Nanos; 2] {
    let base = model.direction(plan.direction).map(|d| &d.base);
    let measure = plan.factor().and_then(|factor| next_slice(model, plan.direction, factor));
    let times = base.zip(measure);
    times.map_or_else(Default::default, |(base, measure)| [washout(&base.tcp), measure])
}
