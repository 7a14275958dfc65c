//! The results of a sweep: each setting over its rounds, the knee, and which setting costs less CPU time.

use schemars::JsonSchema;
use serde::Serialize;

use super::ends::{receiving, sending};
use super::goodput::slice_goodput;
use super::once::cpu_per_byte;
use super::readings::Window;
use super::workers::threads;
use super::{Estimate, handover, undisturbed};
use linerate_facts::Gap;
use linerate_plan::Knobs;
use linerate_plan::path::{ByRole, Direction};
use linerate_plan::study::{Axis, AxisValue, Pace};
use linerate_plan::transport::{self, Feature, Swept};
use linerate_record::{Record, Set, Step};
use linerate_units::stats::{EQUAL, Interval, is_equal, rounds_ci, rounds_ratio};

/// The settings that a sweep compares, and how it measures them.
#[derive(Debug, Clone)]
pub struct SweepPlan {
    /// The factor that is varied.
    pub swept: Swept,
    /// The settings that are compared.
    pub settings: Vec<Knobs>,
    /// Direction of the payload.
    pub direction: Direction,
    /// Number of rounds, and length of slices.
    pub pace: Pace,
    /// Settings that an end refused, with the reason; filled in during the measurement.
    pub left_out: Vec<Gap>,
}

/// Minimum share of the best setting's goodput, at which another setting counts as equally good.
const KNEE: f64 = 0.95;

/// A sweep of one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// Settings of the sweep, in their order, measured or not.
    pub settings: Vec<Setting>,
    /// Index of the setting with which the others are compared: the one with copies if there is one, else the one with
    /// the highest goodput. `None` if nothing was measured.
    pub reference: Option<usize>,
    /// The knee: larger settings gain little. `None` if it is not requested or unknown.
    pub knee: Option<Knee>,
    /// The falls of the rate as memory arrays grow, in order: at each fall a cache is full. Empty for other sweeps.
    pub falls: Vec<Fall>,
}

/// A fall of the rate between two settings, by index: up to the first, the rate is as good as before; from the second
/// on, it holds again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fall {
    /// Index of the last setting before the fall.
    pub from: usize,
    /// Index of the first setting after the fall.
    pub to: usize,
}

/// A setting of a sweep, and its results.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The settings with which the connections are made.
    pub knobs: Knobs,
    /// Goodput over the rounds of the setting; `None` if no round was measured.
    pub goodput: Option<Estimate>,
    /// CPU time of the threads that move payload, in nanoseconds for each byte, of the sender and of the receiver.
    pub cpu: ByRole<Option<Estimate>>,
    /// The share of the setting's zero-copy sends that the kernel copied anyway.
    pub copied: Option<f64>,
    /// Goodput in multiples of the goodput of the reference setting.
    pub goodput_ratio: Option<Interval>,
    /// The sender's CPU time for each byte, in multiples of that of the reference setting.
    pub cpu_ratio: Option<Interval>,
}

/// The smallest setting whose goodput is within 5 % of the best, so that larger ones gain little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Knee {
    /// Index of that setting by the estimates alone. If it is the last setting measured, goodput may still grow.
    pub at: usize,
    /// Index of the smallest setting that may be within 5 % of the best, by the intervals.
    pub from: usize,
    /// Index of the smallest setting that is certainly within 5 % of the best.
    pub to: usize,
}

/// Whether a setting costs less or more CPU time than another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cost {
    /// It costs less: the whole interval of the ratio is below 0.97.
    Less,
    /// It costs the same: the whole interval of the ratio is within 0.97 to 1.03.
    Same,
    /// It costs more: the whole interval of the ratio is above 1.03.
    More,
    /// The interval of the ratio fits none of these cases.
    Unclear,
}

impl Cost {
    /// Compares two settings by the interval of the ratio of their CPU costs.
    pub fn of(ratio: Interval) -> Self {
        if ratio.high < EQUAL.low {
            Self::Less
        } else if ratio.low > EQUAL.high {
            Self::More
        } else if is_equal(ratio) {
            Self::Same
        } else {
            Self::Unclear
        }
    }
}

impl Setting {
    /// The sender's CPU cost compared with the reference setting. `None` if CPU time is unknown, and for the reference
    /// itself.
    pub fn cost(&self) -> Option<Cost> {
        self.cpu_ratio.map(Cost::of)
    }
}

/// The measured values of one slice of a sweep.
#[derive(Debug, Clone, Copy)]
struct Slice {
    goodput: f64,
    cpu: ByRole<Option<f64>>,
    copied: Option<f64>,
}

/// The sweep of a record over the values of `axis`, in one direction.
pub fn sweep(record: &Record, swept: Swept, axis: &Axis, direction: Direction) -> Sweep {
    let is = |set: &Set, value: &AxisValue| {
        set.plan.pattern.direction() == Some(direction) && swept.value(&set.plan.knobs) == *value
    };
    let made = axis.values.iter().map(|value| record.sets.iter().find(|set| is(set, value)));
    let settings: Vec<&Knobs> =
        made.map(|set| set.map_or(&record.start.plan.knobs, |set| &set.plan.knobs)).collect();
    let values = axis.values.iter();
    let rounds: Vec<Vec<Option<Slice>>> =
        values.map(|value| slices(record, direction, |set| is(set, value))).collect();
    let mut settings: Vec<Setting> =
        settings.iter().zip(&rounds).map(|(knobs, rounds)| setting(knobs, rounds)).collect();
    let reference = reference(swept, &settings);
    if let Some(base) = reference {
        for at in (0..settings.len()).filter(|at| *at != base) {
            let ratio = |of: &dyn Fn(&Slice) -> Option<f64>| {
                rounds_ratio(&pairs(&rounds[at], &rounds[base], of))
            };
            settings[at].goodput_ratio = ratio(&|slice| Some(slice.goodput));
            settings[at].cpu_ratio = ratio(&|slice| slice.cpu.sender);
        }
    }
    let ratios: Vec<_> = settings.iter().map(|s| s.goodput_ratio).collect();
    let sized =
        swept == Swept::Size && transport::of(&record.start.plan.engine).has(Feature::Memory);
    let knee = reference.filter(|_| swept != Swept::Copy && !sized);
    let known: Vec<usize> =
        (0..settings.len()).filter(|at| settings[*at].goodput.is_some()).collect();
    let falls = falls_of(if sized { &known } else { &[] }, |over, under| {
        let pairs = pairs(&rounds[over], &rounds[under], &|slice| Some(slice.goodput));
        rounds_ratio(&pairs)
    });
    Sweep { falls, knee: knee.and_then(|best| knee_of(&ratios, best)), settings, reference }
}

/// The steps with a set that `is` selects, each with the number of the set and whether it counts: the first step of a
/// set only warms its connections up.
pub(super) fn steps_of(record: &Record, is: impl Fn(&Set) -> bool) -> Vec<(&Step, u32, bool)> {
    let mut warm: Vec<u32> = Vec::new();
    let mut found = Vec::new();
    for step in &record.steps {
        let mut sets = record.sets.iter().filter(|set| step.plan.sets.contains(&set.plan.id));
        let Some(id) = sets.find(|set| is(set)).map(|set| set.plan.id) else {
            continue;
        };
        found.push((step, id, warm.contains(&id)));
        warm.push(id);
    }
    found
}

/// The rounds of a setting, whose sets `is` selects; `None` for a disturbed round. Connections that were lost and made
/// again during a round have no value in that round.
fn slices(record: &Record, direction: Direction, is: impl Fn(&Set) -> bool) -> Vec<Option<Slice>> {
    let steps = steps_of(record, is).into_iter();
    let rounds = steps.skip(1).map(|(step, set, counts)| {
        slice(record, step, set, direction).filter(|_| counts && undisturbed(step))
    });
    rounds.collect()
}

fn slice(record: &Record, step: &Step, set: u32, direction: Direction) -> Option<Slice> {
    let sending = sending(record, step, direction)?;
    let receiving = receiving(record, step, direction)?;
    let window = Window::of(step);
    let goodput = slice_goodput(receiving, set, window)?;
    let cpu = |end, way| {
        let threads = threads(end, &format!("s{set}/{way}"), window);
        cpu_per_byte(&threads, goodput / 8.0)
    };
    Some(Slice {
        goodput,
        cpu: ByRole { sender: cpu(sending, "tx"), receiver: cpu(receiving, "rx") },
        copied: handover::copied(sending, set, window),
    })
}

fn setting(knobs: &Knobs, rounds: &[Option<Slice>]) -> Setting {
    let known: Vec<&Slice> = rounds.iter().flatten().collect();
    let estimate = |of: &dyn Fn(&Slice) -> Option<f64>| {
        let values: Vec<f64> = known.iter().filter_map(|slice| of(slice)).collect();
        mean(&values).map(|mean| Estimate {
            mean,
            interval: rounds_ci(&values),
            samples: values.len(),
        })
    };
    let copied: Vec<f64> = known.iter().filter_map(|slice| slice.copied).collect();
    Setting {
        knobs: knobs.clone(),
        goodput: estimate(&|slice| Some(slice.goodput)),
        cpu: ByRole {
            sender: estimate(&|slice| slice.cpu.sender),
            receiver: estimate(&|slice| slice.cpu.receiver),
        },
        copied: mean(&copied),
        goodput_ratio: None,
        cpu_ratio: None,
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn reference(swept: Swept, settings: &[Setting]) -> Option<usize> {
    let goodput = |at: &usize| settings[*at].goodput.map(|goodput| goodput.mean);
    let measured = (0..settings.len()).filter(|at| goodput(at).is_some());
    match swept {
        Swept::Copy => measured.take(1).find(|at| *at == 0),
        Swept::Size | Swept::Streams | Swept::Depth | Swept::Qps => measured.max_by(|a, b| {
            let of = |at| goodput(at).unwrap_or_default();
            of(a).total_cmp(&of(b))
        }),
    }
}

/// The values of two settings, in the rounds that both have.
fn pairs(
    over: &[Option<Slice>],
    under: &[Option<Slice>],
    of: &dyn Fn(&Slice) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let both = over.iter().zip(under);
    let pair = |(over, under): (&Option<Slice>, &Option<Slice>)| {
        Some((of(over.as_ref()?)?, of(under.as_ref()?)?))
    };
    both.filter_map(pair).collect()
}

/// The knee of settings with these goodputs, in multiples of the best setting's; `None` if no setting was compared with
/// the best one.
fn knee_of(ratios: &[Option<Interval>], best: usize) -> Option<Knee> {
    let itself = Interval { low: 1.0, mid: 1.0, high: 1.0 };
    let ratio = |at: usize| {
        if at == best { Some(itself) } else { ratios[at] }
    };
    let known = || (0..ratios.len()).filter_map(|at| Some((at, ratio(at)?)));
    let first = |of: fn(Interval) -> f64| known().find(|(_, r)| of(*r) >= KNEE).map(|(at, _)| at);
    (known().count() > 1).then_some(Knee {
        at: first(|r| r.mid)?,
        from: first(|r| r.high)?,
        to: first(|r| r.low)?,
    })
}

/// Ratio to the earlier rate below which a rate counts as fallen.
const FALLEN: f64 = 0.85;

/// Where rates fall: by more than noise and by more than a seventh, compared with the best setting and with the last
/// one that was about as good. A fall begins at the last setting that was faster by that much, and continues while each
/// setting is slower than the one before. `ratio` is the rate of a setting over the rate of another; it is called only
/// for settings that are `known`.
fn falls_of(known: &[usize], ratio: impl Fn(usize, usize) -> Option<Interval>) -> Vec<Fall> {
    let mut falls: Vec<Fall> = Vec::new();
    let Some((&first, rest)) = known.split_first() else {
        return falls;
    };
    // The best setting since the last fall, the last setting that is about as good, and whether the previous setting
    // was part of a fall.
    let (mut best, mut holds, mut falling) = (first, first, false);
    for &at in rest {
        let (Some(to_best), Some(to_last)) = (ratio(at, best), ratio(at, holds)) else {
            continue;
        };
        let low = to_best.mid < FALLEN;
        let is_fall = |to: &Interval| to.mid < FALLEN && to.high < 1.0;
        let fallen = [to_best, to_last].iter().all(is_fall);
        match falls.last_mut() {
            Some(last) if fallen && falling => last.to = at,
            _ if fallen => {
                // Settings that were only a little slower since then are not part of the fall.
                let between = known.iter().rev().filter(|s| (holds..at).contains(*s));
                let from =
                    between.copied().find(|from| ratio(at, *from).is_some_and(|to| is_fall(&to)));
                falls.push(Fall { from: from.unwrap_or(holds), to: at });
            }
            _ => {}
        }
        // While the rate falls, each setting is compared with the one before it.
        if fallen || to_best.mid > 1.0 {
            best = at;
        }
        if fallen || !low {
            holds = at;
        }
        falling = fallen;
    }
    falls
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_plan::transport::RDMA;
    use linerate_plan::{Pattern, SetPlan};

    #[test]
    fn the_sets_of_a_setting_are_found_although_their_threads_poll() {
        let pattern = Pattern::Stream { direction: Direction::Forward };
        let settings = Swept::Depth.settings(&RDMA, &Knobs::default(), 1);
        for knobs in &settings {
            let set = SetPlan::of("rdma", 0, pattern, knobs.clone());
            assert_ne!(&set.knobs, knobs);
            assert_eq!(Swept::Depth.value(&set.knobs), Swept::Depth.value(knobs));
        }
    }

    #[test]
    fn a_fall_is_beyond_noise_and_goes_on_until_the_rate_holds() {
        let of = |rates: &[f64], half: f64| {
            let known: Vec<usize> = (0..rates.len()).filter(|at| rates[*at] > 0.0).collect();
            let falls = falls_of(&known, |over, under| {
                let mid = rates[over] / rates[under];
                Some(Interval { low: mid * (1.0 - half), mid, high: mid * (1.0 + half) })
            });
            let ends = falls.iter().map(|fall| [fall.from, fall.to]);
            ends.collect::<Vec<_>>()
        };
        let none: [[usize; 2]; 0] = [];
        assert_eq!(of(&[], 0.0), none);
        assert_eq!(of(&[100.0, 90.0, 86.0], 0.01), none);
        assert_eq!(of(&[100.0, 100.0, 84.0, 84.0], 0.01), [[1, 2]]);
        assert_eq!(of(&[100.0, 100.0, 84.0, 84.0], 0.2), none, "within noise");
        // One setting is a little less than a seventh below the best, and others are more: the fall is where the rate
        // drops.
        assert_eq!(of(&[100.0, 89.0, 84.0, 84.0, 83.0, 66.0, 66.0], 0.01), [[4, 5]]);
        // A steady decline is a fall from the last setting that was a seventh faster.
        assert_eq!(of(&[100.0, 90.0, 81.0, 73.0, 70.0], 0.01), [[1, 3]]);
        // Three levels of the rate; the first fall extends over two settings.
        let caches = [90.0, 100.0, 70.0, 50.0, 49.0, 50.0, 20.0, 19.0];
        assert_eq!(of(&caches, 0.01), [[1, 3], [5, 6]]);
        // A setting that was lower before, but not certainly so, is not part of the fall.
        assert_eq!(of(&[100.0, 84.0, 80.0, 50.0], 0.3), [[2, 3]]);
        // A slow decline is a fall once its loss since the last good setting exceeds a seventh.
        assert_eq!(of(&[100.0, 95.0, 90.0, 84.0, 77.0], 0.01), none);
        assert_eq!(of(&[100.0, 95.0, 90.0, 84.0, 76.0], 0.01), [[2, 4]]);
        assert_eq!(of(&[100.0, 0.0, 50.0], 0.01), [[0, 2]], "one was not measured");
    }

    #[test]
    fn the_knee_is_the_first_within_five_percent_and_as_sure_as_the_intervals() {
        let of = |low, mid, high| Some(Interval { low, mid, high });
        let knee = |ratios: &[Option<Interval>], best| {
            knee_of(ratios, best).map(|knee| [knee.from, knee.at, knee.to])
        };
        let low = of(0.4, 0.5, 0.6);
        assert_eq!(knee(&[low, of(0.95, 0.96, 0.97), None], 2), Some([1, 1, 1]));
        assert_eq!(knee(&[low, of(0.93, 0.94, 0.9499), None], 2), Some([2, 2, 2]));
        assert_eq!(knee(&[low, of(0.93, 0.949, 0.95), None], 2), Some([1, 2, 2]));
        assert_eq!(knee(&[low, of(0.94, 0.95, 0.96), None], 2), Some([1, 1, 2]));
        // A lower setting after the best one does not matter.
        assert_eq!(knee(&[low, None, of(0.9, 0.91, 0.92)], 1), Some([1, 1, 1]));
        assert_eq!(knee(&[None, low], 0), Some([0, 0, 0]));
        assert_eq!(knee(&[None, None], 0), None, "nothing to compare with");
        assert_eq!(knee(&[None], 0), None);
    }

    #[test]
    fn a_cost_is_told_where_the_whole_interval_says_so() {
        for (low, high, cost) in [
            (0.5, 0.969, Cost::Less),
            (0.5, 0.97, Cost::Unclear),
            (0.97, 1.03, Cost::Same),
            (0.97, 1.031, Cost::Unclear),
            (1.03, 1.5, Cost::Unclear),
            (1.031, 1.5, Cost::More),
        ] {
            let mid = f64::midpoint(low, high);
            assert_eq!(Cost::of(Interval { low, mid, high }), cost, "{low} to {high}");
        }
    }
}
