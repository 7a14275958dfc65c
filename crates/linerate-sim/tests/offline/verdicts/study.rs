//! A study of random paths: how often a proof is wrong.

use linerate_judge::model::Load;

use super::*;

/// Removes or raises one limit of a path.
type Relax = fn(&mut SimPath, &mut Knobs);

/// For each cause, a change that removes its limit. A limit is the true one if goodput without noise then grows.
const RELAX: &[(&str, Relax)] = &[
    ("wire-full", |p, _| p.forward.rate.0 *= 2),
    ("path-rate", |p, _| p.forward.rate.0 *= 2),
    ("flow-rate-cap", |p, _| p.forward.flow_cap = None),
    ("receive-window", |p, _| p.forward.receive_window.0 *= 4),
    ("send-buffer", |p, _| p.forward.send_buffer.0 *= 4),
    ("receiver-core", |p, _| {
        let c = &mut p.far.receive;
        (c.user_ps, c.kernel_ps, c.copy_ps) = (c.user_ps / 2, c.kernel_ps / 2, c.copy_ps / 2);
    }),
    ("sender-core", |p, _| {
        let c = &mut p.near.send;
        (c.user_ps, c.kernel_ps, c.copy_ps) = (c.user_ps / 2, c.kernel_ps / 2, c.copy_ps / 2);
    }),
    ("receiver-app", |p, _| p.far.receive.pause.0 /= 2),
    ("sender-app", |p, _| p.near.send.pause.0 /= 2),
    ("pacing", |_, k| k.pacing = None),
];

/// Returns the goodput of the base load without noise.
fn clean(path: &SimPath, knobs: &Knobs) -> f64 {
    base(path, knobs).goodput.mean
}

/// Returns whether the base load without noise lengthens the round trip so much that `latency-queue` applies: to twice
/// that of the idle path, and by at least 5 ms.
fn queues(path: &SimPath, knobs: &Knobs) -> bool {
    let loaded = base(path, knobs).tcp.rtt.unwrap_or_default();
    let added = loaded.0.saturating_sub(path.rtt.0);
    loaded.0 >= 2 * path.rtt.0 && added >= Nanos::from_millis(5).0
}

/// Runs the base load without noise.
fn base(path: &SimPath, knobs: &Knobs) -> Load {
    let mut path = path.clone();
    path.forward.noise = (Class::White, 0.0);
    let mut sim = Sim::new(path, 1);
    let plan = Plan { trials: false, sweep: false, ..plan(knobs.clone()) };
    let (record, _) = run(&mut sim, plan, linerate_session::run::Label::default(), &mut ());
    derive(&record).directions.remove(0).base
}

/// Lowers one limit of a path by a tenth.
type Tighten = fn(&mut SimPath, &mut Knobs);

const TIGHTEN: &[(&str, Tighten)] = &[
    ("wire-full", |p, _| {
        p.forward.rate.0 = p.forward.rate.0 * 9 / 10;
    }),
    ("path-rate", |p, _| {
        p.forward.rate.0 = p.forward.rate.0 * 9 / 10;
    }),
    ("flow-rate-cap", |p, _| {
        p.forward.flow_cap = p.forward.flow_cap.map(|r| Rate(r.0 * 9 / 10));
    }),
    ("receive-window", |p, _| {
        p.forward.receive_window.0 = p.forward.receive_window.0 * 9 / 10;
    }),
    ("send-buffer", |p, _| {
        p.forward.send_buffer.0 = p.forward.send_buffer.0 * 9 / 10;
    }),
    ("receiver-core", |p, _| {
        p.far.receive.user_ps = p.far.receive.user_ps * 11 / 10;
    }),
    ("sender-core", |p, _| {
        p.near.send.user_ps = p.near.send.user_ps * 11 / 10;
    }),
    ("receiver-app", |p, _| {
        p.far.receive.pause.0 = p.far.receive.pause.0 * 11 / 10;
    }),
    ("sender-app", |p, _| {
        p.near.send.pause.0 = p.near.send.pause.0 * 11 / 10;
    }),
    ("pacing", |_, k| {
        k.pacing = k.pacing.map(|r| Rate(r.0 * 9 / 10));
    }),
];

/// Returns whether a cause is a true limit: removing the limit increases goodput by more than 3 %, which counts as
/// nothing. If two limits are equally low, removing one gains nothing; then lowering it by a tenth must reduce goodput
/// by 5 %.
///
/// A cause that the simulation lacks cannot be a true limit. A queue is a limit of the round trip; it exists if the
/// simulated path is full.
fn holds(path: &SimPath, knobs: &Knobs, cause: &str) -> bool {
    if cause == "latency-queue" {
        return queues(path, knobs);
    }
    let before = clean(path, knobs);
    let ratio = |table: &[(&str, Relax)]| {
        let (_, change) = table.iter().find(|(id, _)| *id == cause)?;
        let (mut path, mut knobs) = (path.clone(), knobs.clone());
        change(&mut path, &mut knobs);
        Some(clean(&path, &knobs) / before)
    };
    ratio(RELAX).is_some_and(|gain| gain >= 1.03) || ratio(TIGHTEN).is_some_and(|gain| gain <= 0.95)
}

/// Returns how many of the trials' intervals contain the true effect, and the number of all trials with an interval.
/// The true effect is that without noise.
fn covered(path: &SimPath, record: &Record) -> [u32; 2] {
    let model = derive(record);
    let forward = model.trials.iter().filter(|t| t.plan.direction == Direction::Forward);
    let mut counts = [0, 0];
    for trial in forward {
        let Some(effect) = trial.effect else { continue };
        let truth = clean(path, &trial.plan.after) / clean(path, &trial.plan.before);
        counts[0] += u32::from((effect.low..=effect.high).contains(&truth));
        counts[1] += 1;
    }
    counts
}

/// Draws a path with noise of a random class, and with one limit of random severity, which need not be the lowest.
fn drawn(draw: &mut Random) -> (SimPath, Knobs, &'static str) {
    let classes = [
        ("white", Class::White),
        ("correlated", Class::Correlated(draw.pick(&[0.5, 0.8, 0.95, 0.99]))),
        ("steps", Class::Steps(0.003 * 30_f64.powf(draw.uniform()))),
        ("heavy tails", Class::HeavyTails),
    ];
    let (name, class) = draw.pick(&classes);
    let mut path = SimPath {
        congestion: draw.pick(&[Congestion::Cubic, Congestion::Bbr]),
        rtt: Nanos::from_micros(draw.pick(&[200, 1_000, 5_000, 20_000])),
        ..SimPath::default()
    };
    let mut knobs = Knobs::default();
    if draw.uniform() > 0.1 {
        let (_, _, plant) = draw.pick(PLANTED);
        plant(&mut path, &mut knobs);
    }
    // Factors from a tenth to three times the planted value.
    let scale = |d: &mut Random| 0.1 * 30_f64.powf(d.uniform());
    path.forward.rate = Rate((path.forward.rate.0 as f64 * scale(draw).clamp(0.1, 1.5)) as u64);
    let window = path.forward.receive_window.0 as f64 * scale(draw).max(0.3);
    path.forward.receive_window = Bytes(window as u64);
    path.forward.noise = (class, 0.005 * 20_f64.powf(draw.uniform()));
    (path, knobs, name)
}

/// The results of all runs with one class of noise.
#[derive(Default)]
struct Score {
    runs: u32,
    proved: u32,
    wrong: u32,
    supported: u32,
    supported_wrong: u32,
    unknown: u32,
    /// Number of effects whose interval contains the true effect, and number of all effects.
    covered: [u32; 2],
    /// Seconds until the first limit was proved.
    times: Vec<f64>,
}

/// The result of one run.
struct Outcome<'a> {
    record: &'a Record,
    named: Option<&'a Limit>,
    /// Whether the named limit is a true limit.
    right: bool,
    covered: [u32; 2],
}

impl Score {
    fn add(&mut self, run: &Outcome<'_>) {
        self.runs += 1;
        for (sum, count) in self.covered.iter_mut().zip(run.covered) {
            *sum += count;
        }
        let wrong = u32::from(!run.right);
        match run.named {
            None => self.unknown += 1,
            Some(limit) if limit.certainty == Certainty::Proved => {
                self.proved += 1;
                self.wrong += wrong;
                self.times.push(proved_after(run.record, limit));
            }
            Some(_) => {
                self.supported += 1;
                self.supported_wrong += wrong;
            }
        }
    }

    /// Returns the median of the times until the first proof.
    fn median(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// Returns when a limit was proved, in seconds: at the end of its trial or, if it needs no trial, of the base load.
fn proved_after(record: &Record, limit: &Limit) -> f64 {
    let trial = limit.trial.as_ref().map(|decided| decided.id);
    let of_it = |step: &&Step| match step.plan.purpose {
        Purpose::Slice { trial: id, .. } => Some(id) == trial,
        Purpose::Base { .. } => trial.is_none(),
        _ => false,
    };
    let last = record.steps.iter().rfind(of_it);
    last.map_or(0.0, |step| step.ended().secs())
}

/// `LINERATE_RUNS` sets the number of runs (100), `LINERATE_SEED` the seed.
#[test]
fn proved_is_seldom_wrong_on_simulated_paths() {
    let number = |name: &str, otherwise: u64| {
        let text = std::env::var(name).ok();
        text.map_or(otherwise, |t| t.parse().expect("a whole number"))
    };
    let (runs, seed) = (number("LINERATE_RUNS", 100), number("LINERATE_SEED", 1));
    let mut draw = Random::new(seed);
    let mut scores: BTreeMap<&str, Score> = BTreeMap::new();
    for i in 0..runs {
        let (path, knobs, class) = drawn(&mut draw);
        let (record, verdict) = ran(&path, knobs.clone(), seed.wrapping_mul(1_000_003) + i);
        let named = first(&verdict);
        let right = named.is_some_and(|l| holds(&path, &knobs, l.cause));
        let outcome = Outcome { record: &record, named, right, covered: covered(&path, &record) };
        for name in [class, "all"] {
            scores.entry(name).or_default().add(&outcome);
        }
        if named.is_some() && !right {
            println!(
                "{class}: {:?} named wrongly: {}",
                named.map(|l| (l.cause, l.certainty)),
                explain(&verdict)
            );
        }
    }
    println!(
        "| class | runs | proved | wrong | supported | wrong | unknown | effects covered | seconds to a proof, median |\n|---|---|---|---|---|---|---|---|---|"
    );
    for (name, s) in &scores {
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} of {} | {:.1} |",
            s.runs,
            s.proved,
            s.wrong,
            s.supported,
            s.supported_wrong,
            s.unknown,
            s.covered[0],
            s.covered[1],
            s.median()
        );
    }
    let all = &scores["all"];
    // In a study, 3 of 1870 proofs were wrong, all of limits that are nearly equal. In a small study, one may occur by
    // chance.
    assert!(all.wrong <= 1 + all.proved / 500, "{} of {}", all.wrong, all.proved);
    assert!(all.proved * 2 > all.runs, "most runs end in a proof");
}
