//! Tests of whole runs on simulated paths: steps, trials and judge together name the limit on the right side, and prove
//! it.

mod beside;
mod latency;
mod lossy;
mod notices;
mod order;
mod properties;
mod queues;
mod study;
mod sweep;
mod uncopied;

use std::collections::BTreeMap;

use linerate_judge::event::{Event, RunControl, Sink};
use linerate_judge::model::derive;
use linerate_judge::verdict::{Answered, Limit, Verdict, judge};
use linerate_plan::path::{Certainty, Direction, Place, Side};
use linerate_plan::{Knobs, Plan, Purpose};
use linerate_record::{Record, Step};
use linerate_session::run::run;
use linerate_sim::noise::{Class, Random};
use linerate_sim::{Congestion, Cost, Sim, SimPath, Span};
use linerate_units::{Bytes, Nanos, Rate};

fn plan(knobs: Knobs) -> Plan {
    Plan {
        engine: "sim".to_owned(),
        peer: None,
        reach: Vec::new(),
        knobs,
        directions: vec![Direction::Forward],
        time: Nanos::from_secs(60),
        sweep: true,
        trials: true,
    }
}

fn verdict_of(path: &SimPath, knobs: Knobs, seed: u64) -> Verdict {
    ran(path, knobs, seed).1
}

/// Runs linerate on a path; returns the record and the verdict.
fn ran(path: &SimPath, knobs: Knobs, seed: u64) -> (Record, Verdict) {
    let mut sim = Sim::new(path.clone(), seed);
    let (record, error) =
        run(&mut sim, plan(knobs), linerate_session::run::Label::default(), &mut ());
    assert!(error.is_none(), "{error:?}");
    let model = derive(&record);
    if std::env::var_os("LINERATE_SHOW").is_some() {
        for t in &model.trials {
            eprintln!("  trial {} {:?} {} slices", t.plan.kind, t.effect, t.slices);
        }
    }
    let verdict = judge(&model);
    (record, verdict)
}

fn gigabits(n: f64) -> Rate {
    Rate((n * 1e9) as u64)
}

/// Plants a limit on a path of 10 Gb/s with a round trip of 1 ms.
type Plant = fn(&mut SimPath, &mut Knobs);

fn explain(verdict: &Verdict) -> String {
    let line = |a: &Answered| format!("  {} {}: {}", a.cause, a.outcome, a.why.join("; "));
    verdict.answers.iter().map(line).collect::<Vec<_>>().join("\n")
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
            let mut path = SimPath { congestion, ..SimPath::default() };
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

#[test]
fn a_direction_that_surely_carries_less_is_looked_into_first() {
    let tried = |share| {
        let mut path = SimPath::default();
        path.forward.rate = gigabits(1.0);
        path.reverse.rate = gigabits(share);
        let plan = Plan { directions: Direction::ALL.to_vec(), ..plan(Knobs::default()) };
        let (record, error) =
            run(&mut Sim::new(path, 3), plan, linerate_session::run::Label::default(), &mut ());
        assert!(error.is_none(), "{error:?}");
        let directions: Vec<Direction> = record.trials.iter().map(|t| t.direction).collect();
        directions
    };
    let slower = tried(0.4);
    assert_eq!(slower.first(), Some(&Direction::Reverse), "{slower:?}");
    assert!(slower.contains(&Direction::Forward), "{slower:?}");
    assert_eq!(tried(0.9).first(), Some(&Direction::Reverse));
    assert_eq!(tried(0.97).first(), Some(&Direction::Forward));
}

#[test]
fn stolen_time_limits_a_thread_that_has_no_other_and_disturbs_one_that_sleeps() {
    let judged = |plant: fn(&mut SimPath)| {
        let mut path = SimPath::default();
        path.forward.noise = (Class::White, 0.01);
        plant(&mut path);
        let verdict = verdict_of(&path, Knobs::default(), 7);
        let limit = first(&verdict).map(|l| (l.cause, l.side, l.certainty));
        let disturbed = verdict.disturbances.iter().map(|d| (d.cause, d.side));
        (limit, disturbed.collect::<Vec<_>>(), explain(&verdict))
    };
    let (limit, disturbed, why) = judged(|path| {
        path.far.receive.user_ps = 4_000;
        path.far.steal = 0.4;
    });
    let steal = ("cpu-steal", Place::Far, Certainty::Proved);
    assert_eq!((limit, disturbed), (Some(steal), vec![]), "{why}");
    let (limit, disturbed, why) = judged(|path| {
        path.forward.rate = gigabits(1.0);
        path.far.steal = 0.36;
    });
    let rate = ("path-rate", Place::Path, Certainty::Proved);
    let beside = vec![("cpu-steal", Place::Far)];
    assert_eq!((limit, disturbed), (Some(rate), beside), "{why}");
}

#[test]
fn what_disturbs_a_run_is_no_limit_of_it() {
    let span = |from, to| Span { from: Nanos::from_millis(from), to: Nanos::from_millis(to) };
    let contended = SimPath { other_session: Some((span(0, 100_000), 0.3)), ..SimPath::default() };
    let interrupted = SimPath { down: Some(span(2_500, 2_900)), ..SimPath::default() };
    for (cause, path) in [("contended", contended), ("interrupted", interrupted)] {
        let verdict = verdict_of(&path, Knobs::default(), 7);
        let all = verdict.disturbances.iter().map(|d| d.cause);
        assert_eq!(all.collect::<Vec<_>>(), [cause], "{}", explain(&verdict));
        let is_limit = verdict.limits.iter().any(|limit| limit.cause == cause);
        assert!(!is_limit, "{}", explain(&verdict));
    }
}
