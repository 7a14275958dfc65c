//! Whole runs on simulated paths: steps, trials and judge together name what binds, on the right
//! side, and prove it.

use std::collections::BTreeMap;

use linerate_core::model::{Model, Resource, derive};
use linerate_core::plan::{Direction, Knobs, Plan, Side};
use linerate_core::units::{Bytes, Nanos, Rate};
use linerate_core::verdict::{Answered, Certainty, Limit, Place, Stage, Verdict, judge};
use linerate_engine::event::{Event, Flow, Sink};
use linerate_engine::load::sim::noise::{Class, Random};
use linerate_engine::load::sim::{Congestion, Cost, Sim, SimPath, Span};
use linerate_engine::run::run;

fn plan(knobs: Knobs) -> Plan {
    Plan {
        engine: "sim".to_owned(),
        peer: None,
        knobs,
        directions: vec![Direction::Forward],
        time: Nanos::from_secs(60),
        sweep: true,
        trials: true,
    }
}

fn verdict_of(path: &SimPath, knobs: Knobs, seed: u64) -> Verdict {
    let mut sim = Sim::new(path.clone(), seed);
    let (record, error) = run(&mut sim, plan(knobs), 0, &mut ());
    assert!(error.is_none(), "{error:?}");
    let model = derive(&record);
    if std::env::var_os("LINERATE_SHOW").is_some() {
        for t in &model.trials {
            eprintln!("  trial {} {:?} {} slices", t.plan.kind, t.effect, t.slices);
        }
    }
    judge(&model)
}

fn gigabits(n: f64) -> Rate {
    Rate((n * 1e9) as u64)
}

/// What is planted, on a path of 10 Gb/s with 1 ms of round trip.
type Plant = fn(&mut SimPath, &mut Knobs);

fn explain(verdict: &Verdict) -> String {
    let line = |a: &Answered| format!("  {} {}: {}", a.cause, a.outcome, a.why.join("; "));
    verdict
        .answers
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

fn first(verdict: &Verdict) -> Option<&Limit> {
    verdict.limits.first()
}

const PLANTED: &[(&str, Place, Plant)] = &[
    ("wire-full", Place::Path, |p, _| {
        p.near.port_speed = Some(gigabits(25.0));
        p.far.port_speed = Some(gigabits(10.0));
    }),
    ("path-rate", Place::Path, |p, _| {
        p.forward.rate = gigabits(1.0);
    }),
    ("flow-rate-cap", Place::Path, |p, _| {
        p.forward.flow_cap = Some(gigabits(1.0));
    }),
    ("receive-window", Place::Far, |p, _| {
        p.rtt = Nanos::from_millis(20);
        p.forward.receive_window = Bytes(256 << 10);
    }),
    ("send-buffer", Place::Near, |p, _| {
        p.rtt = Nanos::from_millis(20);
        p.forward.send_buffer = Bytes(256 << 10);
    }),
    ("receiver-core", Place::Far, |p, _| {
        p.far.receive.user_ps = 4_000;
    }),
    ("sender-core", Place::Near, |p, _| {
        p.near.send.user_ps = 4_000;
    }),
    ("receiver-app", Place::Far, |p, _| {
        p.far.receive.pause = Nanos::from_millis(2);
    }),
    ("sender-app", Place::Near, |p, _| {
        p.near.send.pause = Nanos::from_millis(2);
    }),
    ("pacing", Place::Near, |_, k| k.pacing = Some(gigabits(1.0))),
];

#[test]
fn what_is_planted_is_named_and_proved() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        for (cause, place, plant) in PLANTED {
            let mut path = SimPath {
                congestion,
                ..SimPath::default()
            };
            path.forward.noise = (Class::White, 0.01);
            let mut knobs = Knobs::default();
            plant(&mut path, &mut knobs);
            let verdict = verdict_of(&path, knobs, 7);
            let limit = first(&verdict);
            let found = limit.map(|l| (l.cause, l.side, l.certainty));
            assert_eq!(
                found,
                Some((*cause, *place, Certainty::Proved)),
                "under {}: {}",
                congestion.name(),
                explain(&verdict)
            );
        }
    }
}

/// Payload that a path of 4 Gb/s carries in full segments of 1448 bytes, in bits per second.
const CARRIED: f64 = 4e9 * 1448.0 / 1538.0;

/// Puts a limit at so many times what the path carries.
type Beside = fn(&mut SimPath, &mut Knobs, f64);

/// Bytes in flight that carry so many times `CARRIED` over 2 ms.
fn in_flight(path: &mut SimPath, times: f64) -> Bytes {
    path.rtt = Nanos::from_millis(2);
    Bytes((CARRIED * times / 8.0 * 0.002) as u64)
}

/// Picoseconds of one byte at so many times `CARRIED`, less what a byte costs anyway.
fn work(times: f64) -> u64 {
    let cost = Cost::default();
    (8e12 / (CARRIED * times)) as u64 - cost.kernel_ps - cost.copy_ps
}

/// Pause of one operation for so many times `CARRIED`.
fn pause(times: f64) -> Nanos {
    Nanos(work(times) * Cost::default().op.0 / 1000)
}

const BESIDE: &[(&str, Beside)] = &[
    ("receive-window", |p, _, times| {
        p.forward.receive_window = in_flight(p, times);
    }),
    ("send-buffer", |p, _, times| {
        p.forward.send_buffer = in_flight(p, times);
    }),
    ("receiver-core", |p, _, times| {
        p.far.receive.user_ps = work(times);
    }),
    ("sender-core", |p, _, times| {
        p.near.send.user_ps = work(times);
    }),
    ("receiver-app", |p, _, times| {
        p.far.receive.pause = pause(times);
    }),
    ("sender-app", |p, _, times| {
        p.near.send.pause = pause(times);
    }),
    ("pacing", |_, k, times| {
        k.pacing = Some(Rate((CARRIED * times) as u64));
    }),
];

#[test]
fn a_limit_just_under_the_path_is_named_and_one_just_over_it_is_not() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        for (cause, put) in BESIDE {
            for (times, binds) in [(0.85, true), (1.2, false)] {
                let mut path = SimPath {
                    congestion,
                    ..SimPath::default()
                };
                path.forward.rate = gigabits(4.0);
                let mut knobs = Knobs::default();
                put(&mut path, &mut knobs, times);
                let verdict = verdict_of(&path, knobs, 11);
                let named = first(&verdict).map(|l| l.cause);
                let what = format!(
                    "{cause} at {times} of the path under {}: {}",
                    congestion.name(),
                    explain(&verdict)
                );
                assert_eq!(named == Some(*cause), binds, "{what}");
                assert!(binds || matches!(named, None | Some("path-rate")), "{what}");
            }
        }
    }
}

#[test]
fn a_path_just_under_its_ports_is_not_their_wire() {
    for (share, cause) in [(1.0, "wire-full"), (0.96, "path-rate")] {
        let mut path = SimPath::default();
        path.near.port_speed = Some(gigabits(10.0));
        path.far.port_speed = Some(gigabits(10.0));
        path.forward.rate = gigabits(10.0 * share);
        let verdict = verdict_of(&path, Knobs::default(), 5);
        let named = first(&verdict).map(|l| (l.cause, l.certainty));
        assert_eq!(
            named,
            Some((cause, Certainty::Proved)),
            "{share}: {}",
            explain(&verdict)
        );
    }
}

#[test]
fn what_invalidates_a_run_is_named_first() {
    let path = SimPath {
        other_session: Some((
            Span {
                from: Nanos(0),
                to: Nanos::from_secs(100),
            },
            0.3,
        )),
        ..SimPath::default()
    };
    let verdict = verdict_of(&path, Knobs::default(), 7);
    assert_eq!(
        first(&verdict).map(|l| l.cause),
        Some("contended"),
        "{}",
        explain(&verdict)
    );

    let path = SimPath {
        down: Some(Span {
            from: Nanos::from_millis(2_500),
            to: Nanos::from_millis(2_900),
        }),
        ..SimPath::default()
    };
    let verdict = verdict_of(&path, Knobs::default(), 7);
    assert_eq!(
        first(&verdict).map(|l| l.cause),
        Some("interrupted"),
        "{}",
        explain(&verdict)
    );
}

/// Takes one limit of a path away.
type Relax = fn(&mut SimPath, &mut Knobs);

/// What binds is found without the judge, on the same path without noise.
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

/// Goodput of the base load without noise.
fn clean(path: &SimPath, knobs: &Knobs) -> f64 {
    let mut path = path.clone();
    path.forward.noise = (Class::White, 0.0);
    let mut sim = Sim::new(path, 1);
    let plan = Plan {
        trials: false,
        sweep: false,
        ..plan(knobs.clone())
    };
    let (record, _) = run(&mut sim, plan, 0, &mut ());
    derive(&record).directions[0].base.goodput.mean
}

/// Makes one limit of a path tighter by a tenth.
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

/// Whether a limit holds: to take it away gains more than "nothing" (3 %), or, where two limits
/// stand at the same height and neither alone gains, to tighten it by a tenth loses 5 %.
fn holds(path: &SimPath, knobs: &Knobs, cause: &str) -> bool {
    let before = clean(path, knobs);
    let ratio = |table: &[(&str, Relax)]| {
        let change = table.iter().find(|(id, _)| *id == cause).map(|(_, c)| *c);
        let (mut path, mut knobs) = (path.clone(), knobs.clone());
        change.expect("a limit of the simulation")(&mut path, &mut knobs);
        clean(&path, &knobs) / before
    };
    ratio(RELAX) >= 1.03 || ratio(TIGHTEN) <= 0.95
}

/// A path with one limit of random severity, which may or may not bind, and noise of any class.
fn drawn(draw: &mut Random) -> (SimPath, Knobs, &'static str) {
    let classes = [
        ("white", Class::White),
        (
            "correlated",
            Class::Correlated(draw.pick(&[0.5, 0.8, 0.95, 0.99])),
        ),
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
    // From a tenth of what was planted to three times as much.
    let scale = |d: &mut Random| 0.1 * 30_f64.powf(d.uniform());
    path.forward.rate = Rate((path.forward.rate.0 as f64 * scale(draw).clamp(0.1, 1.5)) as u64);
    let window = path.forward.receive_window.0 as f64 * scale(draw).max(0.3);
    path.forward.receive_window = Bytes(window as u64);
    path.forward.noise = (class, 0.005 * 20_f64.powf(draw.uniform()));
    (path, knobs, name)
}

/// What came of the runs of one class.
#[derive(Default, Clone, Copy)]
struct Score {
    runs: u32,
    proved: u32,
    wrong: u32,
    supported: u32,
    supported_wrong: u32,
    unknown: u32,
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
        let verdict = verdict_of(&path, knobs.clone(), seed.wrapping_mul(1_000_003) + i);
        let named = first(&verdict);
        let right = named.is_some_and(|l| holds(&path, &knobs, l.cause));
        let proved = named.is_some_and(|l| l.certainty == Certainty::Proved);
        for name in [class, "all"] {
            let score = scores.entry(name).or_default();
            score.runs += 1;
            score.unknown += u32::from(named.is_none());
            score.proved += u32::from(proved);
            score.wrong += u32::from(proved && !right);
            score.supported += u32::from(named.is_some() && !proved);
            score.supported_wrong += u32::from(named.is_some() && !proved && !right);
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
        "| class | runs | proved | wrong | supported | wrong | unknown |\n|---|---|---|---|---|---|---|"
    );
    for (name, s) in &scores {
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} |",
            s.runs, s.proved, s.wrong, s.supported, s.supported_wrong, s.unknown
        );
    }
    let all = scores["all"];
    // One in a hundred may be wrong; in a small run that is one by chance.
    assert!(
        all.wrong <= 1 + all.proved / 100,
        "{} of {}",
        all.wrong,
        all.proved
    );
    assert!(all.proved * 2 > all.runs, "most runs end in a proof");
}

/// What was told before the first step: side and text of each notice.
#[derive(Default)]
struct Told {
    notices: Vec<(Side, String)>,
    begun: bool,
}

impl Sink for Told {
    fn event(&mut self, event: &Event<'_>) -> Flow {
        match event {
            Event::StepBegan { .. } => self.begun = true,
            Event::Notice { side, gap, .. } if !self.begun => {
                self.notices.push((*side, gap.what.clone()));
            }
            _ => {}
        }
        Flow::Go
    }
}

#[test]
fn what_the_engine_knows_of_the_hosts_is_told_before_the_first_step() {
    let mut path = SimPath::default();
    path.far.buffer_max = Bytes(1 << 20);
    let told = |bytes| {
        let plan = Plan {
            engine: "tcp".to_owned(),
            trials: false,
            ..plan(Knobs {
                recv_buffer: Some(Bytes(bytes)),
                ..Knobs::default()
            })
        };
        let mut told = Told::default();
        run(&mut Sim::new(path.clone(), 1), plan, 0, &mut told);
        assert!(told.begun);
        told.notices
    };
    assert_eq!(told(1 << 20), []);
    let expected = [(Side::Far, "set.recv_buffer".to_owned())];
    assert_eq!(told((1 << 20) + 1), expected);
}

#[test]
fn ends_on_one_machine_ask_of_the_same_cpus_and_others_of_their_own() {
    let model = |shared_host| {
        let path = SimPath {
            shared_host,
            ..SimPath::default()
        };
        let plan = Plan {
            sweep: false,
            trials: false,
            ..plan(Knobs::default())
        };
        let (record, _) = run(&mut Sim::new(path, 3), plan, 0, &mut ());
        derive(&record)
    };
    let cpus = |model: &Model| -> Vec<(String, f64, f64)> {
        let all = model.resources.iter().filter(|r| r.stage == Stage::Cpu);
        let numbers = |r: &Resource| Some((r.name.clone(), r.capacity?.mid, r.demand[0]?));
        all.map(|r| numbers(r).expect("the simulation reads all"))
            .collect()
    };
    let apart = cpus(&model(false));
    let [(near, 4.0, sends), (far, 4.0, receives)] = apart.as_slice() else {
        panic!("{apart:?}");
    };
    assert_eq!((near.as_str(), far.as_str()), ("near cpu", "far cpu"));
    let one = cpus(&model(true));
    let [(shared, 4.0, both)] = one.as_slice() else {
        panic!("{one:?}");
    };
    assert_eq!(shared, "cpu");
    assert!((both / (sends + receives) - 1.0).abs() < 0.02, "{both}");
    assert!(
        sends.min(*receives) > 0.2 * both,
        "both ends ask for a part"
    );
}
