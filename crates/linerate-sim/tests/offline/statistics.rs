//! A study of the statistics: how often the intervals of comparisons that stop early contain the true value.
//!
//! Each trial draws a class of noise, its size, a true ratio, and the ranges that two rival causes predict. Slices of 5
//! ticks follow 2 ticks of washout. The comparison stops when the judge would stop it: when the interval is inside one
//! range and outside the other, or far outside of both. `LINERATE_TRIALS` sets the number of trials on noise (10,000),
//! `LINERATE_RUNS` the number of trials on simulated paths (500), `LINERATE_SEED` the seed.

use linerate_facts::metric::WORKER_BYTES;
use linerate_plan::path::Direction;
use linerate_plan::{Knobs, Pattern, Purpose, SetPlan, StepPlan};
use linerate_record::Table;
use linerate_session::link::{Link, StepControl};
use linerate_sim::noise::{Class, Noise, Random};
use linerate_sim::{Sim, SimPath};
use linerate_units::stats::{Comparison, EQUAL, Interval, Range, mean_ci};
use linerate_units::{Bytes, Nanos, Rate};
use statrs::distribution::{Beta, ContinuousCDF};

const TRUTHS: [f64; 10] = [0.5, 0.7, 0.8, 0.95, 0.97, 1.0, 1.03, 1.05, 1.25, 2.0];
const EFFECTS: &[f64] = &[0.5, 0.7, 0.8, 1.25, 2.0];
const CLASSES: &[&str] = &["white", "correlated", "steps", "heavy tails"];
const MAX_BLOCKS: usize = 6;

/// Sums over a group of trials.
#[derive(Default, Clone, Copy)]
struct Tally {
    trials: u32,
    covered: u32,
    decided: u32,
    wrong: u32,
    falsely_proved: u32,
    slices: usize,
    width: f64,
}

impl Tally {
    fn coverage(&self) -> f64 {
        f64::from(self.covered) / f64::from(self.trials)
    }

    fn add(&mut self, trial: &Trial) {
        self.trials += 1;
        self.covered += u32::from(trial.covered);
        self.decided += u32::from(trial.decided);
        self.wrong += u32::from(trial.wrong);
        self.falsely_proved += u32::from(trial.falsely_proved);
        self.slices += trial.slices;
        self.width += trial.width;
    }

    fn row(&self, name: &str) -> String {
        let n = f64::from(self.trials);
        format!(
            "| {name} | {} | {:.1} % | {:.1} % | {} (< {:.2} %) | {} (< {:.2} %) | {:.1} | +-{:.1} % |",
            self.trials,
            100.0 * self.coverage(),
            100.0 * f64::from(self.decided) / n,
            self.wrong,
            100.0 * upper_bound(self.wrong, self.trials),
            self.falsely_proved,
            100.0 * upper_bound(self.falsely_proved, self.trials),
            self.slices as f64 / n,
            100.0 * self.width / n
        )
    }
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of one trial, counted apart")]
/// The outcome of one trial.
struct Trial {
    class: usize,
    truth: f64,
    covered: bool,
    decided: bool,
    wrong: bool,
    falsely_proved: bool,
    slices: usize,
    width: f64,
}

/// Returns the upper 95 % bound of a probability, if an event occurred `hits` times in `n` (Clopper and Pearson).
fn upper_bound(hits: u32, n: u32) -> f64 {
    Beta::new(f64::from(hits) + 1.0, f64::from(n - hits)).map_or(1.0, |beta| beta.inverse_cdf(0.95))
}

fn setting(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|t| t.parse().ok()).unwrap_or(otherwise)
}

fn class(random: &mut Random, index: usize) -> Class {
    match index {
        0 => Class::White,
        1 => Class::Correlated(random.pick(&[0.5, 0.8, 0.9, 0.97, 0.99])),
        2 => Class::Steps(random.pick(&[0.003, 0.01, 0.03, 0.1])),
        _ => Class::HeavyTails,
    }
}

/// Returns the ranges that two causes predict: "no gain", and a range around an effect, which is mostly the true one.
fn ranges(random: &mut Random, truth: f64) -> [Range; 2] {
    let known = EFFECTS.contains(&truth) && random.uniform() < 0.7;
    let effect = if known { truth } else { random.pick(EFFECTS) };
    [EQUAL, Range::new(0.95 * effect, 1.05 * effect)]
}

/// Returns the range that the interval proves: the interval is inside this range, and outside the other one.
fn proved(ranges: &[Range; 2], interval: Interval) -> Option<Range> {
    let [a, b] = *ranges;
    [(a, b), (b, a)]
        .iter()
        .find(|(own, rival)| own.contains(interval) && rival.excludes(interval))
        .map(|&(own, _)| own)
}

fn noise_size(random: &mut Random) -> f64 {
    0.005 * 30.0_f64.powf(random.uniform())
}

/// Runs a trial whose goodput is nothing but noise and the true ratio.
fn trial(random: &mut Random) -> Trial {
    let index = random.pick(&[0, 1, 2, 3]);
    let mut noise = Noise::new(class(random, index), noise_size(random), random.bits());
    let truth = if random.uniform() < 0.1 { 1.0 } else { random.pick(&TRUTHS) };
    let ranges = ranges(random, truth);
    compare(truth, &ranges, index, |changed| {
        let ticks: Vec<f64> = (0..7).map(|_| noise.step()).collect();
        ticks[2..].iter().sum::<f64>() * if changed { truth } else { 1.0 }
    })
}

/// Compares two settings in the same way as the judge.
fn compare(
    truth: f64,
    ranges: &[Range; 2],
    class: usize,
    mut goodput: impl FnMut(bool) -> f64,
) -> Trial {
    let mut comparison = Comparison::new(MAX_BLOCKS);
    let mut last = None;
    while let Some(changed) = comparison.next_changed() {
        comparison.push(changed, goodput(changed)).expect("the order that was asked for");
        last = comparison.interval();
        let hopeless = |i: Interval| ranges.iter().all(|r| r.excludes(i.widened(2.0)));
        if last.is_some_and(|i| proved(ranges, i).is_some() || hopeless(i)) {
            break;
        }
    }
    let interval = last.expect("goodput is never zero here");
    let is_in = |range: &Range| range.low <= truth && truth <= range.high;
    let proof = proved(ranges, interval);
    Trial {
        class,
        truth,
        covered: interval.low <= truth && truth <= interval.high,
        decided: proof.is_some(),
        falsely_proved: proof.is_some_and(|r| !is_in(&r)),
        wrong: ranges
            .iter()
            .any(|r| (r.contains(interval) && !is_in(r)) || (r.excludes(interval) && is_in(r))),
        slices: comparison.slices(),
        width: interval.relative().expect("a ratio is not zero"),
    }
}

#[test]
fn intervals_cover_the_truth_as_often_as_they_say() {
    let mut random = Random::new(setting("LINERATE_SEED", 20_260_101));
    let mut all = Tally::default();
    let mut by_class = [Tally::default(); 4];
    let mut by_truth = [Tally::default(); TRUTHS.len()];
    let mut by_slices = [Tally::default(); MAX_BLOCKS + 1];
    for _ in 0..setting("LINERATE_TRIALS", 10_000) {
        let trial = trial(&mut random);
        all.add(&trial);
        by_class[trial.class].add(&trial);
        by_slices[trial.slices / 4].add(&trial);
        for (tally, name) in by_truth.iter_mut().zip(TRUTHS) {
            if name.to_bits() == trial.truth.to_bits() {
                tally.add(&trial);
            }
        }
    }
    println!(
        "| trials | number | covered | proved | range wrong | proof wrong | slices | interval |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    println!("{}", all.row("all"));
    for (tally, name) in by_class.iter().zip(CLASSES) {
        println!("{}", tally.row(name));
    }
    for (tally, name) in by_truth.iter().zip(TRUTHS) {
        println!("{}", tally.row(&format!("true ratio {name}")));
    }
    for (blocks, tally) in by_slices.iter().enumerate().filter(|(_, t)| t.trials > 0) {
        println!("{}", tally.row(&format!("stopped after {} slices", 4 * blocks)));
    }
    assert!((0.93..=0.97).contains(&all.coverage()), "{}", all.coverage());
    for (tally, name) in by_class.iter().zip(CLASSES) {
        assert!(tally.coverage() >= 0.92, "{name}: {}", tally.coverage());
    }
    assert!(upper_bound(all.wrong, all.trials) < 0.01, "{} wrong", all.wrong);
}

/// Returns a simulated path with a random kind of limit, the changed setting to try, and the true effect of the change.
fn simulated(random: &mut Random) -> (SimPath, Knobs, f64) {
    let mut path = SimPath {
        rtt: Nanos::from_micros(200 + (800.0 * random.uniform()) as u64),
        ..SimPath::default()
    };
    let mut after = Knobs::default();
    let truth = match random.pick(&[0, 1, 2, 3]) {
        0 => {
            path.forward.rate = Rate(100_000_000_000);
            path.forward.receive_window = Bytes(512 << 10);
            after.window_clamp = Some(Bytes(256 << 10));
            0.5
        }
        1 => {
            after.streams = 2;
            1.0
        }
        2 => {
            path.forward.flow_cap = Some(Rate(2_000_000_000));
            after.streams = 2;
            2.0
        }
        _ => {
            path.forward.rate = Rate(100_000_000_000);
            path.far.receive.kernel_ps = 1000;
            after.extra_work.receiver_ps_per_byte = 276;
            0.8
        }
    };
    let index = random.pick(&[0, 1, 2, 3]);
    path.forward.noise = (class(random, index), noise_size(random));
    (path, after, truth)
}

/// Returns the payload of a slice with one set, after the washout as on real paths.
fn slice(sim: &mut Sim, set: u32, measure: u64) -> f64 {
    let plan = StepPlan {
        index: 0,
        purpose: Purpose::Sweep { direction: Direction::Forward },
        sets: vec![set],
        washout: Nanos::from_millis(200),
        measure: Nanos::from_millis(measure),
        tick: Nanos::from_millis(100),
    };
    let step = sim.step(&plan, &mut |_| StepControl::Continue).expect("the step runs");
    let receivers = step.ends[1].tables.iter().filter(|t| t.source == "worker");
    let moved = |t: &Table| {
        let bytes = t.column(WORKER_BYTES).expect("bytes are counted");
        (bytes[bytes.len() - 1] - bytes[2]) as f64
    };
    receivers.map(moved).sum()
}

#[test]
fn comparisons_on_simulated_paths_cover_the_truth() {
    let mut random = Random::new(setting("LINERATE_SEED", 11));
    let mut all = Tally::default();
    for _ in 0..setting("LINERATE_RUNS", 500) {
        let (path, after, truth) = simulated(&mut random);
        let own = Range::new(0.95 * truth, 1.05 * truth);
        let ranges =
            if (truth - 1.0).abs() < 0.03 { [EQUAL, Range::new(1.8, 2.1)] } else { [EQUAL, own] };
        let mut sim = Sim::new(path, random.bits());
        for (id, knobs) in [(0, Knobs::default()), (1, after)] {
            let pattern = Pattern::Stream { direction: Direction::Forward };
            sim.prepare(&SetPlan { id, pattern, knobs }).expect("the set is made");
            slice(&mut sim, id, 500);
        }
        let trial = compare(truth, &ranges, 0, |changed| slice(&mut sim, u32::from(changed), 500));
        all.add(&trial);
    }
    println!(
        "| trials | number | covered | proved | range wrong | proof wrong | slices | interval |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    println!("{}", all.row("simulated paths"));
    assert!((0.92..=0.98).contains(&all.coverage()), "{}", all.coverage());
    assert!(upper_bound(all.wrong, all.trials) < 0.01, "{} wrong", all.wrong);
}

#[test]
fn means_of_short_correlated_series_are_honest() {
    let mut random = Random::new(setting("LINERATE_SEED", 5));
    println!("| r | ticks | answered | covered | interval |");
    println!("|---|---|---|---|---|");
    for (r, honest) in [(0.0, 0.93), (0.3, 0.92), (0.6, 0.88), (0.8, 0.75), (0.9, 0.5)] {
        for ticks in [20, 30, 50] {
            let (mut answered, mut covered, mut width) = (0_u32, 0_u32, 0.0);
            let trials = setting("LINERATE_TRIALS", 1_000) as u32;
            for _ in 0..trials {
                let mut noise = Noise::new(Class::Correlated(r), 0.05, random.bits());
                let values: Vec<f64> = (0..ticks).map(|_| noise.step().ln()).collect();
                if let Some(i) = mean_ci(&values) {
                    answered += 1;
                    covered += u32::from(i.low <= 0.0 && 0.0 <= i.high);
                    width += (i.high - i.low) / 2.0;
                }
            }
            let share = f64::from(covered) / f64::from(answered);
            println!(
                "| {r} | {ticks} | {:.1} % | {:.1} % | +-{:.1} % |",
                100.0 * f64::from(answered) / f64::from(trials),
                100.0 * share,
                100.0 * width / f64::from(answered),
            );
            assert!(share > honest && share < 0.985, "r {r}, {ticks} ticks: {share}");
        }
    }
}
