//! Derives the model of a record.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use super::ceilings::of_load;
use super::ends::{end, is_alone, stream_set};
use super::fell::Fall;
use super::goodput::{Sample, samples_of};
use super::interruptions::{Away, outages_beside, stalled};
use super::load::load;
use super::readings::{Window, per_second};
use super::requested::Requested;
use super::trials::{Slice, trial_of};
use super::{DirectionModel, Estimate, Latency, Load, Model, PERCENTILES, TrialModel};
use linerate_facts::Gap;
use linerate_facts::metric as m;
use linerate_plan::path::{Direction, Side};
use linerate_plan::{Knobs, Pattern, Purpose};
use linerate_record::{End, Record, Step, TrialPlan};
use linerate_units::Nanos;
use linerate_units::stats::{Histogram, merge, percentile, samples};

/// Derives the model of a record.
pub fn derive(record: &Record) -> Model {
    Deriver::default().derive(record)
}

/// The model of a trial, as far as it was measured; `None` if the record has no such trial.
pub fn trial(record: &Record, id: u32) -> Option<TrialModel> {
    Deriver::default().trial(record, id)
}

/// Derives the model of a record that still grows; each step is derived only once.
///
/// During a run a record grows: hosts come first, and sets and trials come before the steps that use them. A deriver
/// belongs to one record; it starts again if the record has other hosts, another idle step, or fewer steps.
#[derive(Debug, Default)]
pub struct Deriver {
    basis: Basis,
    steps: Vec<StepModel>,
    /// Models of trials by number, each with the number of slices from which it was derived.
    trials: HashMap<u32, (usize, TrialModel)>,
}

/// What all steps are derived with: if it changes, they are derived again.
#[derive(Debug, Default, PartialEq, Eq)]
struct Basis {
    hosts: usize,
    /// Index of the step that measured the idle path.
    idle: Option<usize>,
}

/// The derived data of one step. Each field is derived when it is first needed.
#[derive(Debug, Default)]
struct StepModel {
    /// The load of the step in each direction.
    loads: [OnceCell<Option<Box<Load>>>; 2],
    /// The samples of payload that arrived in each direction.
    samples: [OnceCell<Vec<Sample>>; 2],
    away: OnceCell<Away>,
    slice: OnceCell<Option<Slice>>,
}

impl Deriver {
    /// Derives the model of the record, equal to what [`derive()`] returns.
    pub fn derive(&mut self, record: &Record) -> Model {
        self.follow(record);
        let idle = self.basis.idle.and_then(|at| record.steps.get(at));
        Model {
            hosts: record.hosts.clone(),
            same_machine: same_machine(record),
            idle: idle.and_then(|step| latency_of(record, step)),
            directions: Direction::ALL
                .into_iter()
                .filter_map(|direction| self.direction(record, direction))
                .collect(),
            both: self.both(record),
            trials: self.trials(record),
            gaps: gaps(record),
            complete: matches!(record.end, Some(End::Complete)),
            watched: false,
            reported: false,
            alone: is_alone(record),
            requested: Requested::of(&record.start.plan),
        }
    }

    /// The models of all trials. If the rate fell for good, trials from before the fall are without effects.
    fn trials(&mut self, record: &Record) -> Vec<TrialModel> {
        let falls = Direction::ALL.map(|direction| self.fall(record, direction));
        let all = record.trials.iter();
        all.filter_map(|t| {
            let trial = self.trial(record, t.id)?;
            Some(match of_direction(&falls, t.direction) {
                Some(fall) => fall.without_old(trial),
                None => trial,
            })
        })
        .collect()
    }

    /// Derives the model of one direction; `None` if no base load was measured.
    pub fn direction(&mut self, record: &Record, direction: Direction) -> Option<DirectionModel> {
        self.follow(record);
        let steps = || record.steps.iter().enumerate();
        let is_base =
            |s: &Step| matches!(s.plan.purpose, Purpose::Base { direction: d } if d == direction);
        let mut bases = steps().filter(|(_, s)| is_base(s));
        let (first, base) =
            bases.find_map(|(at, _)| Some((at, self.load(record, at, direction)?)))?;
        let fall = self.fall(record, direction);
        let mut base = fall.as_ref().map_or_else(
            || base.clone(),
            |fall| {
                let last = Some(fall.last).filter(|last| *last != first);
                let last = last.and_then(|at| self.load(record, at, direction));
                fall.lasting(last.unwrap_or(base))
            },
        );
        let since = fall.as_ref().map_or(0, |fall| fall.step + 1);
        let is_sweep =
            |s: &Step| matches!(s.plan.purpose, Purpose::Sweep { direction: d } if d == direction);
        let sweep = steps().skip(since);
        let sweep = sweep.filter(|(_, s)| is_sweep(s) && has_started(s, base.tcp.min_rtt));
        let sweep = sweep.filter_map(|(at, _)| self.load(record, at, direction));
        let sweep = sweep.filter(|load| fall.as_ref().is_none_or(|fall| fall.is_after(load)));
        let mut sweep: Vec<Load> = sweep.cloned().collect();
        sweep.sort_by_key(|l| l.streams);
        let loaded = steps().filter(|(_, s)| stream_set(record, s, direction).is_some());
        let loaded: Vec<(usize, &Step)> = loaded.collect();
        base.contended |= loaded.iter().any(|(_, s)| contended(s));
        let is_base = |s: &Step| matches!(s.plan.purpose, Purpose::Base { .. });
        let others = loaded.iter().filter(|(_, s)| !is_base(s));
        let others = others.map(|(at, _)| self.away(record, *at));
        base.interruptions.extend(outages_beside(others));
        Some(DirectionModel {
            direction,
            ceilings: of_load(&record.hosts, direction, &base),
            base,
            sweep,
            fell: fall.map(|fall| fall.fell),
        })
    }

    /// The fall for good of a direction's rate, over all steps that loaded only this direction.
    fn fall(&self, record: &Record, direction: Direction) -> Option<Fall> {
        let alone = |step: &Step| !matches!(step.plan.purpose, Purpose::Both);
        // The depth of a set follows from the options of its transport.
        let plan = &record.start.plan.knobs;
        let own = |knobs: &Knobs| Knobs { depth: plan.depth, ..knobs.clone() } == *plan;
        let samples = |at: usize| {
            let cell = of_direction(&self.steps[at].samples, direction);
            cell.get_or_init(|| samples_of(record, at, direction, own))
        };
        let steps = (0..record.steps.len()).filter(|at| alone(&record.steps[*at]));
        let all: Vec<Sample> = steps.flat_map(samples).copied().collect();
        Fall::of(&all)
    }

    fn both(&self, record: &Record) -> Vec<(Direction, Estimate)> {
        let is_both = |s: &Step| matches!(s.plan.purpose, Purpose::Both);
        let Some(at) = record.steps.iter().position(is_both) else {
            return Vec::new();
        };
        let goodput = |direction| Some((direction, self.load(record, at, direction)?.goodput));
        Direction::ALL.into_iter().filter_map(goodput).collect()
    }

    /// The judged rate of each slice of a trial, in order: goodput or operations; true marks slices with the change.
    pub fn slices(&mut self, record: &Record, id: u32) -> Vec<(bool, f64)> {
        self.follow(record);
        let plan = record.trials.iter().find(|t| t.id == id);
        let slices = plan.map(|plan| self.undisturbed_slices(record, plan));
        let slices = slices.unwrap_or_default().into_iter();
        slices.filter_map(|(_, slice)| Some((slice.changed, slice.rate?))).collect()
    }

    /// The model of a trial, as far as it was measured; `None` if the record has no such trial.
    pub fn trial(&mut self, record: &Record, id: u32) -> Option<TrialModel> {
        self.follow(record);
        let plan = record.trials.iter().find(|t| t.id == id)?;
        let taken = slice_steps(record, id).count();
        if let Some((from, known)) = self.trials.get(&id)
            && *from == taken
        {
            return Some(known.clone());
        }
        let places = self.undisturbed_slices(record, plan);
        let last = |changed: bool| {
            let mut latest = places.iter().rev();
            let (at, _) = latest.find(|(_, slice)| slice.changed == changed)?;
            self.load(record, *at, plan.direction)
        };
        let slices: Vec<&Slice> = places.iter().map(|(_, slice)| *slice).collect();
        let derived = trial_of(record, plan, &slices, last);
        self.trials.insert(id, (taken, derived.clone()));
        Some(derived)
    }

    /// The slices of a trial that nothing disturbed, each with the index of its step.
    fn undisturbed_slices<'a>(
        &'a self,
        record: &Record,
        plan: &TrialPlan,
    ) -> Vec<(usize, &'a Slice)> {
        let slice = |(at, step): (usize, &Step)| {
            let cell = &self.steps[at].slice;
            let slice = cell.get_or_init(|| Slice::of(record, step, plan.direction));
            Some((at, slice.as_ref()?))
        };
        slice_steps(record, plan.id).filter_map(slice).collect()
    }

    /// The load of one direction in the step at index `at`.
    fn load(&self, record: &Record, at: usize, direction: Direction) -> Option<&Load> {
        let cell = of_direction(&self.steps[at].loads, direction);
        let derived = || load(record, &record.steps[at], direction).map(Box::new);
        cell.get_or_init(derived).as_deref()
    }

    fn away(&self, record: &Record, at: usize) -> &Away {
        let cell = &self.steps[at].away;
        cell.get_or_init(|| Away::of(&record.steps[at]))
    }

    /// Adds empty entries for new steps, and discards everything if the record is a different one.
    fn follow(&mut self, record: &Record) {
        let basis =
            Basis { hosts: record.hosts.len(), idle: record.steps.iter().position(is_idle) };
        if self.basis != basis || self.steps.len() > record.steps.len() {
            *self = Self { basis, ..Self::default() };
        }
        let steps = record.steps.len();
        self.steps.resize_with(steps, StepModel::default);
    }
}

/// The element that belongs to a direction.
fn of_direction<T>([forward, reverse]: &[T; 2], direction: Direction) -> &T {
    match direction {
        Direction::Forward => forward,
        Direction::Reverse => reverse,
    }
}

/// The steps that are slices of a trial, disturbed or not, each with its index.
fn slice_steps(record: &Record, id: u32) -> impl Iterator<Item = (usize, &Step)> {
    let is_slice =
        move |step: &Step| matches!(step.plan.purpose, Purpose::Slice { trial, .. } if trial == id);
    let steps = record.steps.iter().enumerate();
    steps.filter(move |(_, step)| is_slice(step))
}

fn is_idle(step: &Step) -> bool {
    matches!(step.plan.purpose, Purpose::IdleLatency)
}

pub(super) fn first(record: &Record, is: impl Fn(&Purpose) -> bool) -> Option<&Step> {
    record.steps.iter().find(|s| is(&s.plan.purpose))
}

/// Whether both ends share one machine: their boot ids are equal, or there is no far end.
pub fn same_machine(record: &Record) -> bool {
    match record.hosts.as_slice() {
        [near, far, ..] => {
            !near.facts.boot_id.is_empty() && near.facts.boot_id == far.facts.boot_id
        }
        // If a far end exists and was not read, it is unknown whether the machine is shared.
        _ => is_alone(record),
    }
}

/// All round trips of a step, from its sets that time them.
pub fn round_trips(record: &Record, step: &Step) -> Option<Histogram> {
    times(record, step, |pattern| matches!(pattern, Pattern::PingPong { .. }))
}

/// The times that the sets of these patterns measured in a step.
pub(super) fn times(
    record: &Record,
    step: &Step,
    is: impl Fn(&Pattern) -> bool,
) -> Option<Histogram> {
    let timed = |set: u32| record.sets.iter().any(|s| s.plan.id == set && is(&s.plan.pattern));
    let all = step.ends.iter().flat_map(|e| &e.latencies).filter(|h| timed(h.set));
    merge(all)
}

/// Answered round trips per second in the measured time of a step; `None` if they were not read.
pub fn round_trip_rate(record: &Record, step: &Step) -> Option<f64> {
    let timed = round_trips(record, step)?.set;
    let set = record.sets.iter().find(|set| set.plan.id == timed)?;
    let Pattern::PingPong { size, .. } = set.plan.pattern else {
        return None;
    };
    let subject = format!("s{timed}/tx0");
    let mut workers = end(step, Side::Near)?.about(m::WORKER_BYTES.source, |s| s == subject);
    let bytes = per_second(workers.next()?, m::WORKER_BYTES, Window::of(step))?;
    Some(bytes / size.0.max(1) as f64)
}

/// Percentiles of a step's round trips.
pub fn latency_of(record: &Record, step: &Step) -> Option<Latency> {
    let merged = round_trips(record, step)?;
    let percentiles = PERCENTILES
        .iter()
        .filter_map(|p| Some((*p, Nanos(percentile(&merged, p / 100.0)?))))
        .collect();
    Some(Latency {
        percentiles,
        samples: samples(&merged),
        least: Nanos(match merged.exact {
            Some(exact) => exact.least,
            None => merged.counts.iter().map(|&(value, _)| value).min()?,
        }),
    })
}

/// Number of round trips after which new streams have started up: each round trip doubles the data in flight, from ten
/// segments on, so that after 12 of them it exceeds 50 MB.
//= RFC 6928, section 2; RFC 5681, section 3.1
const BEGIN: u64 = 12;

/// Whether new streams had the time to start up in a step: before that they carry little, whatever the path carries.
fn has_started(step: &Step, rtt: Option<Nanos>) -> bool {
    let took = step.plan.washout.0.saturating_add(step.plan.measure.0);
    took >= rtt.unwrap_or_default().0.saturating_mul(BEGIN)
}

/// Whether nothing interrupted or shared the path during the step; also if no payload arrived at all.
pub fn undisturbed(step: &Step) -> bool {
    (step.trouble.is_none() || stalled(step)) && !contended(step) && Away::of(step).is_empty()
}

/// Whether another session of linerate loaded a host during the step.
pub(super) fn contended(step: &Step) -> bool {
    step.ends.iter().any(|e| e.other_sessions > 0)
}

/// The gaps of facts, sets and steps, each listed once.
fn gaps(record: &Record) -> Vec<(Side, Gap)> {
    let facts = record.hosts.iter().map(|h| (h.side, &h.facts.gaps));
    let sets = record
        .sets
        .iter()
        .flat_map(|s| s.ends.iter().zip([Side::Near, Side::Far]).map(|(e, side)| (side, &e.gaps)));
    let steps = record
        .steps
        .iter()
        .flat_map(|s| s.ends.iter().zip([Side::Near, Side::Far]).map(|(e, side)| (side, &e.gaps)));
    // A peer may report very many gaps, so duplicates are found by hash.
    let mut seen: HashSet<(Side, &Gap)> = HashSet::new();
    let all = facts.chain(sets).chain(steps);
    let each = all.flat_map(|(side, gaps)| gaps.iter().map(move |gap| (side, gap)));
    each.filter(|one| seen.insert(*one)).map(|(side, gap)| (side, gap.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_plan::StepPlan;

    #[test]
    fn streams_have_begun_after_twelve_round_trips() {
        let step = Step {
            plan: StepPlan {
                index: 0,
                purpose: Purpose::Both,
                sets: Vec::new(),
                washout: Nanos::from_millis(200),
                measure: Nanos::from_millis(1_000),
                tick: Nanos::from_millis(100),
            },
            began: Nanos(0),
            ends: Vec::new(),
            clock: None,
            took: Nanos(0),
            trouble: None,
        };
        let after = |millis| has_started(&step, Some(Nanos::from_millis(millis)));
        assert!(after(0) && after(100) && !after(101));
        assert!(has_started(&step, None), "a round trip that nobody read");
    }
}
