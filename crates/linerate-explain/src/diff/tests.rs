//! Tests which hosts and limits count as changed, and which records cannot be compared.

use super::*;
use linerate_facts::{HostFacts, Port};
use linerate_judge::figure::{Entry, GOODPUT, Subject};
use linerate_judge::model::{DirectionModel, Estimate, Load};
use linerate_judge::verdict::{Answered, Disturbance, Limit};
use linerate_plan::path::{Certainty, Measure, Place, Stage};
use linerate_plan::{Knobs, Plan};
use linerate_record::{FORMAT, Host, Start};
use linerate_units::Nanos;

fn record(wall_secs: u64) -> Record {
    Record {
        start: Start {
            format: FORMAT,
            linerate: "0.1.0".into(),
            wall_secs,
            plan: Plan {
                engine: "tcp".into(),
                peer: Some("brook".into()),
                reach: Vec::new(),
                knobs: Knobs::default(),
                directions: Direction::ALL.to_vec(),
                time: Nanos::from_secs(60),
                sweep: true,
                trials: true,
            },
            made: linerate_record::Made::default(),
            note: String::new(),
            study: None,
        },
        hosts: Vec::new(),
        sets: Vec::new(),
        trials: Vec::new(),
        steps: Vec::new(),
        imported: None,
        end: Some(End::Complete),
    }
}

fn host(change: impl FnOnce(&mut HostFacts)) -> Host {
    let mut facts = HostFacts {
        name: "brook".into(),
        kernel: "6.12.0".into(),
        port: Some(Port { name: "eth0".into(), mtu: Some(1500), ..Port::default() }),
        ..HostFacts::default()
    };
    change(&mut facts);
    Host { side: Side::Far, facts }
}

/// A record in which `directions` were measured, with `verdict` as its verdict.
fn judged<'a>(record: &'a Record, directions: &[Direction], verdict: Verdict) -> Judged<'a> {
    let mut judged = Judged::new(record);
    let model = |direction: &Direction| DirectionModel {
        direction: *direction,
        base: load(),
        sweep: Vec::new(),
        ceilings: Vec::new(),
        fell: None,
    };
    judged.model.directions = directions.iter().map(model).collect();
    judged.verdict = verdict;
    judged
}

fn load() -> Load {
    let goodput = Estimate { mean: 1e9, interval: None, samples: 30 };
    Load {
        ticks: vec![1e9; 30],
        steady: true,
        ..Load::bare(&linerate_plan::transport::TCP, 1, goodput)
    }
}

fn limited(cause: &'static str) -> Verdict {
    Verdict {
        limits: vec![Limit {
            metric: Measure::Goodput,
            cause,
            stage: Stage::Socket,
            side: Place::Far,
            direction: Direction::Forward,
            certainty: Certainty::Proved,
            evidence: Vec::new(),
            trial: None,
            advice: Vec::new(),
        }],
        ..Verdict::default()
    }
}

fn answered(cause: &'static str, outcome: &'static str) -> Verdict {
    Verdict {
        answers: vec![Answered {
            cause,
            direction: Direction::Forward,
            outcome,
            why: vec!["for a reason".into()],
        }],
        ..Verdict::default()
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let (a, b) = (record(1), record(2));
    let of = |record, directions: &[Direction]| judged(record, directions, Verdict::default());
    let both = Direction::ALL;
    let refused = |a: &Judged<'_>, b: &Judged<'_>| diff(a, b).err();
    assert_eq!(refused(&of(&a, &both), &of(&b, &both)), None);
    assert_eq!(refused(&of(&a, &both), &of(&a, &both)), Some(DiffError::Same));
    let second = refused(&of(&a, &both), &of(&b, &[]));
    assert_eq!(second, Some(DiffError::Empty("second")));
    let apart = refused(&of(&a, &[both[0]]), &of(&b, &[both[1]]));
    let want = DiffError::Apart { before: "forward", after: "reverse" };
    assert_eq!(apart, Some(want));
}

#[test]
fn one_must_know_of_other_hosts_other_directions_and_runs_that_were_cut_short() {
    let (mut a, mut b) = (record(2), record(1));
    a.hosts = vec![host(|_| ())];
    b.hosts = vec![host(|facts| facts.name = "delta".into())];
    b.end = None;
    let before = judged(&a, &Direction::ALL, Verdict::default());
    let after = judged(&b, &[Direction::Forward], Verdict::default());
    assert_eq!(
        diff(&before, &after).unwrap().notes,
        [
            "the far host is another one: brook before, delta after",
            "the second record is older than the first",
            "the second run was cut short",
            "reverse was measured in the first record alone",
        ]
    );
    b = record(3);
    b.hosts.clone_from(&a.hosts);
    let after = judged(&b, &Direction::ALL, Verdict::default());
    assert_eq!(diff(&before, &after).unwrap().notes, [""; 0]);
}

#[test]
fn rows_of_studies_under_different_loads_are_not_compared() {
    let of = |seconds: u64, streams: u32| {
        [seconds, seconds + 1].map(|at| {
            let mut record = record(at);
            record.start.plan.knobs.streams = streams;
            record
        })
    };
    let compared = |streams: u32| {
        let (before, after) = (of(1, 1), of(9, streams));
        let sides = [(&before, 1e9), (&after, 2e9)].map(|(records, rate)| {
            let each = records.iter().map(|record| {
                let mut judged = Judged::new(record);
                let entry = Entry::bare(&GOODPUT, Subject::load(Direction::Forward), rate);
                judged.summary = Summary { entries: vec![entry] };
                judged
            });
            each.collect::<Vec<_>>()
        });
        let diff = diff_of_studies(&sides[0], &sides[1]).unwrap();
        assert_eq!(diff.rows.len(), 1, "{:?}", diff.rows);
        (diff.rows[0].figure.key, diff.rows[0].outcome)
    };
    assert_eq!(compared(8), ("goodput_bps", Outcome::OtherPlan));
    assert_ne!(compared(1).1, Outcome::OtherPlan);
}

#[test]
fn only_what_both_records_know_can_differ() {
    let (mut a, mut b) = (record(1), record(2));
    a.hosts = vec![host(|facts| facts.buffers.tcp_rmem = Some([4096, 1, 2]))];
    b.hosts = vec![host(|facts| {
        facts.kernel = "6.13.1".into();
        facts.port.as_mut().unwrap().mtu = Some(9000);
        facts.buffers.tcp_wmem = Some([4096, 1, 2]);
    })];
    let of = |record| judged(record, &Direction::ALL, Verdict::default());
    let reported = diff(&of(&a), &of(&b)).unwrap().facts;
    let reported: Vec<String> = reported
        .iter()
        .map(|(side, c)| format!("{} {}: {} -> {}", side.name(), c.what, c.before, c.after))
        .collect();
    assert_eq!(reported, ["far kernel: 6.12.0 -> 6.13.1", "far MTU: 1500 -> 9000"]);
}

/// The changes of limits from one verdict to another, where both records measured both directions.
fn fates(before: Verdict, after: Verdict) -> Vec<(Fate, String)> {
    let (a, b) = (record(1), record(2));
    let of = |record, verdict| judged(record, &Direction::ALL, verdict);
    let limits = diff(&of(&a, before), &of(&b, after)).unwrap().limits;
    limits.into_iter().map(|l| (l.fate, l.why)).collect()
}

#[test]
fn a_limit_stays_comes_and_goes_only_where_both_records_are_sure() {
    const WINDOW: &str = "receive-window";
    let stayed = fates(limited(WINDOW), limited(WINDOW));
    assert_eq!(stayed, [(Fate::Still, String::new())]);
    for (outcome, sure) in
        [("clear", true), ("excluded", true), ("unknown", false), ("finding", false)]
    {
        let fate = |fate| if sure { fate } else { Fate::Unclear };
        let why = match outcome {
            "finding" => "not upheld, with evidence: for a reason".to_owned(),
            other => format!("{other}: for a reason"),
        };
        let went = fates(limited(WINDOW), answered(WINDOW, outcome));
        assert_eq!(went, [(fate(Fate::Gone), why.clone())]);
        let found = fates(answered(WINDOW, outcome), limited(WINDOW));
        assert_eq!(found, [(fate(Fate::New), why)]);
    }
    let unasked = fates(limited(WINDOW), Verdict::default());
    assert_eq!(unasked, [(Fate::Unclear, "not asked".to_owned())]);
}

#[test]
fn a_limit_of_a_direction_that_was_not_measured_again_did_not_go() {
    let (a, b) = (record(1), record(2));
    let before = judged(&a, &Direction::ALL, limited("receive-window"));
    let after = judged(&b, &[Direction::Reverse], Verdict::default());
    let limits = diff(&before, &after).unwrap().limits;
    assert_eq!(limits[0].fate, Fate::Unclear);
    assert_eq!(limits[0].why, "forward was not measured");
}

#[test]
fn what_is_told_once_is_found_under_the_other_direction() {
    const IDLE: &str = "latency-idle-states";
    let (a, b) = (record(1), record(2));
    let mut slow = limited(IDLE);
    slow.limits[0].metric = Measure::Latency;
    slow.limits[0].direction = Direction::Reverse;
    let mut now = slow.clone();
    now.limits[0].direction = Direction::Forward;
    let mut gone = answered(IDLE, "clear");
    let other = gone.answers[0].clone();
    gone.answers.push(Answered {
        direction: Direction::Reverse,
        why: vec!["it is reported for the other direction".into()],
        ..other
    });
    let mut untold = gone.clone();
    untold.answers[0].outcome = "unknown";
    for (after, fate, why) in [
        (now, Fate::Still, ""),
        (gone, Fate::Gone, "clear: for a reason"),
        (untold, Fate::Unclear, "unknown: for a reason"),
    ] {
        let before = judged(&a, &[Direction::Reverse], slow.clone());
        let after = judged(&b, &Direction::ALL, after);
        let limits = diff(&before, &after).unwrap().limits;
        assert_eq!((limits[0].fate, limits[0].why.as_str()), (fate, why));
        assert_eq!(limits.len(), 1);
    }
}

#[test]
fn a_disturbance_comes_and_goes_where_the_other_record_could_tell_of_it() {
    let disturbed = || {
        let mut verdict = answered("cpu-steal", "clear");
        verdict.disturbances = vec![Disturbance {
            cause: "cpu-steal",
            stage: Stage::Cpu,
            side: Place::Far,
            direction: Direction::Forward,
            share: Some(0.2),
            evidence: Vec::new(),
            advice: Vec::new(),
        }];
        verdict
    };
    let fates = |before: Verdict, after: Verdict| -> Vec<Fate> {
        let (a, b) = (record(1), record(2));
        let of = |record, verdict| judged(record, &Direction::ALL, verdict);
        let all = diff(&of(&a, before), &of(&b, after)).unwrap().disturbances;
        all.into_iter().map(|d| d.fate).collect()
    };
    let clear = || answered("cpu-steal", "clear");
    assert_eq!(fates(disturbed(), disturbed()), [Fate::Still]);
    assert_eq!(fates(disturbed(), clear()), [Fate::Gone]);
    assert_eq!(fates(clear(), disturbed()), [Fate::New]);
    assert_eq!(fates(disturbed(), answered("cpu-steal", "unknown")), [Fate::Unclear]);
    assert_eq!(fates(disturbed(), Verdict::default()), [Fate::Unclear]);
    assert_eq!(fates(disturbed(), limited("cpu-steal")), [Fate::Still]);
}
