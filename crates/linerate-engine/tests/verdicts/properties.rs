//! What holds for every path: limits that do not bind do not matter, the least one does, and the two
//! ends are alike.

use super::*;

/// Lets one stage carry so many Gb/s in one stream.
type Put = fn(&mut SimPath, f64);

/// Round trip of all paths here.
const RTT: Nanos = Nanos::from_millis(2);

/// Payload in flight that carries so many Gb/s.
fn in_flight(gigabits: f64) -> Bytes {
    Bytes((gigabits * 1e9 / 8.0 * RTT.secs()) as u64)
}

/// Picoseconds of the program for each byte at so many Gb/s.
fn work(gigabits: f64) -> u64 {
    let cost = Cost::default();
    (8e3 / gigabits) as u64 - cost.kernel_ps - cost.copy_ps
}

const STAGES: &[(&str, Put)] = &[
    ("path-rate", |p, g| {
        p.forward.rate = gigabits(g * 1538.0 / 1448.0);
    }),
    ("flow-rate-cap", |p, g| {
        p.forward.flow_cap = Some(gigabits(g * 1538.0 / 1448.0));
    }),
    ("receive-window", |p, g| {
        p.forward.receive_window = in_flight(g);
    }),
    ("send-buffer", |p, g| p.forward.send_buffer = in_flight(g)),
    ("receiver-core", |p, g| p.far.receive.user_ps = work(g)),
    ("sender-core", |p, g| p.near.send.user_ps = work(g)),
];

/// A path of which every stage carries `all`, but one.
fn path(all: f64, least: usize, gigabits: f64) -> SimPath {
    let mut path = SimPath {
        rtt: RTT,
        ..SimPath::default()
    };
    for (_, put) in STAGES {
        put(&mut path, all);
    }
    STAGES[least].1(&mut path, gigabits);
    path
}

fn limit(path: &SimPath, seed: u64) -> (Option<(&'static str, Place, Certainty)>, String) {
    let verdict = verdict_of(path, Knobs::default(), seed);
    let limit = first(&verdict).map(|l| (l.cause, l.side, l.certainty));
    (limit, explain(&verdict))
}

#[test]
fn raising_a_limit_that_does_not_bind_changes_no_verdict() {
    let mut random = Random::new(11);
    for (binding, (cause, _)) in STAGES.iter().enumerate() {
        let gigabits = 0.5 + 2.0 * random.uniform();
        let (before, why) = limit(&path(12.0, binding, gigabits), random.bits());
        assert_eq!(before.map(|l| l.0), Some(*cause), "{gigabits}: {why}");
        for (other, (raised, put)) in STAGES.iter().enumerate().filter(|(i, _)| *i != binding) {
            let mut path = path(12.0, binding, gigabits);
            put(&mut path, 12.0 + 20.0 * random.uniform());
            let (after, why) = limit(&path, random.bits());
            assert_eq!(
                after, before,
                "{other} {raised} raised beside {cause} at {gigabits}: {why}"
            );
        }
    }
}

#[test]
fn lowering_a_limit_below_the_binding_one_makes_it_the_verdict() {
    let mut random = Random::new(12);
    for (binding, (before, _)) in STAGES.iter().enumerate() {
        let gigabits = 1.0 + 2.0 * random.uniform();
        for (cause, put) in STAGES.iter().filter(|(cause, _)| cause != before) {
            let mut path = path(12.0, binding, gigabits);
            // Two streams must not meet the limit above.
            put(&mut path, gigabits * (0.25 + 0.2 * random.uniform()));
            let (limit, why) = limit(&path, random.bits());
            assert_eq!(
                limit.map(|l| l.0),
                Some(*cause),
                "below {before} at {gigabits}: {why}"
            );
        }
    }
}

#[test]
fn swapping_near_and_far_swaps_the_sides() {
    for (binding, (cause, _)) in STAGES.iter().enumerate() {
        let forward = path(12.0, binding, 1.5);
        let mut swapped = forward.clone();
        std::mem::swap(&mut swapped.near, &mut swapped.far);
        std::mem::swap(&mut swapped.forward, &mut swapped.reverse);
        let of = |path: &SimPath, direction| {
            let plan = Plan {
                directions: vec![direction],
                ..plan(Knobs::default())
            };
            let (record, error) = run(&mut Sim::new(path.clone(), 13), plan, 0, &mut ());
            assert!(error.is_none(), "{error:?}");
            let verdict = judge(&derive(&record));
            let limit = first(&verdict).map(|l| (l.cause, l.side, l.certainty));
            limit.unwrap_or_else(|| panic!("{cause}: {}", explain(&verdict)))
        };
        let (named, side, certainty) = of(&forward, Direction::Forward);
        assert_eq!(named, *cause);
        let other = match side {
            Place::Near => Place::Far,
            Place::Far => Place::Near,
            Place::Path => Place::Path,
        };
        let back = of(&swapped, Direction::Reverse);
        assert_eq!(back, (named, other, certainty));
    }
}
