//! Tests of properties that hold on every path: a limit that is not the lowest does not matter, the lowest limit is
//! named, and near and far are symmetric.

use super::*;

/// Sets the limit of one stage so that one stream has this goodput, in Gb/s.
type Put = fn(&mut SimPath, f64);

/// A kind of limit, and how it is set.
struct Kind {
    /// The cause that must be named if this limit is the lowest.
    cause: &'static str,
    /// Factor that is applied to this limit, so that it is clearly the lowest. On a fast path, a low random loss cannot
    /// be distinguished from none.
    part: f64,
    put: Put,
}

/// Round-trip time of all paths in these tests.
const RTT: Nanos = Nanos::from_millis(2);

/// Goodput in Gb/s that all limits permit except the lowest one.
const AMPLE: f64 = 12.0;

/// Returns the payload in flight with which goodput is this many Gb/s.
fn in_flight(gigabits: f64) -> Bytes {
    Bytes((gigabits * 1e9 / 8.0 * RTT.secs()) as u64)
}

/// Returns the program's picoseconds per byte with which goodput is this many Gb/s.
fn work(gigabits: f64) -> u64 {
    let cost = Cost::default();
    (8e3 / gigabits) as u64 - cost.kernel_ps - cost.copy_ps
}

/// Returns the program's pause after each operation with which goodput is this many Gb/s, in addition to the work for
/// `AMPLE`.
fn pause(gigabits: f64) -> Nanos {
    let picoseconds = work(gigabits).saturating_sub(work(AMPLE));
    Nanos(picoseconds * Cost::default().op.0 / 1000)
}

const fn kind(cause: &'static str, put: Put) -> Kind {
    Kind { cause, part: 1.0, put }
}

const KINDS: &[Kind] = &[
    kind("path-rate", |p, g| {
        p.forward.rate = gigabits(g * 1538.0 / 1448.0);
    }),
    kind("flow-rate-cap", |p, g| {
        p.forward.flow_cap = Some(gigabits(g * 1538.0 / 1448.0));
    }),
    kind("receive-window", |p, g| {
        p.forward.receive_window = in_flight(g);
    }),
    kind("send-buffer", |p, g| p.forward.send_buffer = in_flight(g)),
    kind("receiver-core", |p, g| p.far.receive.user_ps = work(g)),
    kind("sender-core", |p, g| p.near.send.user_ps = work(g)),
    kind("receiver-app", |p, g| p.far.receive.pause = pause(g)),
    kind("sender-app", |p, g| p.near.send.pause = pause(g)),
    Kind {
        cause: "path-loss",
        part: 0.1,
        // The simulation uses Mathis's formula too.
        put: |p, g| p.forward.loss = (1.22 * 1448.0 / in_flight(g).0 as f64).powi(2),
    },
];

/// Makes a path on which all limits are ample except `least`. If it `polices`, packets above its rates are dropped.
fn path(least: &Kind, gigabits: f64, polices: bool) -> SimPath {
    let mut path = SimPath { rtt: RTT, ..SimPath::default() };
    if polices {
        path.forward.buffer = Bytes(0);
        path.forward.policed = true;
    }
    for kind in KINDS {
        (kind.put)(&mut path, AMPLE);
    }
    (least.put)(&mut path, gigabits * least.part);
    path
}

/// Returns every kind of limit on a path with queues, and the limits of the network also on a path that polices.
fn binding() -> impl Iterator<Item = (&'static Kind, bool)> {
    let rates = KINDS.iter().take(2);
    let queued = KINDS.iter().map(|kind| (kind, false));
    queued.chain(rates.map(|kind| (kind, true)))
}

/// Returns whether two kinds have the same cause, or limit the same thread. In the second case the thread's work and
/// pause add up, and neither alone is the limit.
fn alike(a: &Kind, b: &Kind) -> bool {
    fn thread(kind: &Kind) -> Option<&str> {
        let work = kind.cause.strip_suffix("-core");
        work.or_else(|| kind.cause.strip_suffix("-app"))
    }
    a.cause == b.cause || (thread(a).is_some() && thread(a) == thread(b))
}

fn limit(path: &SimPath, seed: u64) -> (Option<(&'static str, Place, Certainty)>, String) {
    let verdict = verdict_of(path, Knobs::default(), seed);
    let limit = first(&verdict).map(|l| (l.cause, l.side, l.certainty));
    (limit, explain(&verdict))
}

#[test]
fn raising_a_limit_that_does_not_bind_changes_no_verdict() {
    let mut random = Random::new(11);
    for (least, polices) in binding() {
        let gigabits = 0.5 + 2.0 * random.uniform();
        let (before, why) = limit(&path(least, gigabits, polices), random.bits());
        let what = format!("{} at {gigabits}, policed: {polices}", least.cause);
        assert_eq!(before.map(|l| l.0), Some(least.cause), "{what}: {why}");
        for other in KINDS.iter().filter(|kind| kind.cause != least.cause) {
            let mut path = path(least, gigabits, polices);
            (other.put)(&mut path, AMPLE + 20.0 * random.uniform());
            let (after, why) = limit(&path, random.bits());
            let raised = other.cause;
            assert_eq!(after, before, "{raised} raised beside {what}: {why}");
        }
    }
}

#[test]
fn lowering_a_limit_below_the_binding_one_makes_it_the_verdict() {
    let mut random = Random::new(12);
    for (before, polices) in binding() {
        let gigabits = 1.0 + 2.0 * random.uniform();
        for lowered in KINDS.iter().filter(|kind| !alike(kind, before)) {
            let mut path = path(before, gigabits, polices);
            // Two streams must stay below the higher limit, and so must four streams if excess packets are dropped.
            let most = if polices { 0.23 } else { 0.45 };
            let below = before.part * most * (0.6 + 0.4 * random.uniform());
            (lowered.put)(&mut path, gigabits * below * lowered.part);
            let (limit, why) = limit(&path, random.bits());
            let what = format!("below {} at {gigabits}, policed: {polices}", before.cause);
            assert_eq!(limit.map(|l| l.0), Some(lowered.cause), "{what}: {why}");
        }
    }
}

#[test]
fn swapping_near_and_far_swaps_the_sides() {
    for (least, polices) in binding() {
        let forward = path(least, 1.5, polices);
        let mut swapped = forward.clone();
        std::mem::swap(&mut swapped.near, &mut swapped.far);
        std::mem::swap(&mut swapped.forward, &mut swapped.reverse);
        let of = |path: &SimPath, direction| {
            let plan = Plan { directions: vec![direction], ..plan(Knobs::default()) };
            let (record, error) = run(
                &mut Sim::new(path.clone(), 13),
                plan,
                linerate_session::run::Label::default(),
                &mut (),
            );
            assert!(error.is_none(), "{error:?}");
            let verdict = judge(&derive(&record));
            let limit = first(&verdict).map(|l| (l.cause, l.side, l.certainty));
            limit.unwrap_or_else(|| panic!("{}: {}", least.cause, explain(&verdict)))
        };
        let (named, side, certainty) = of(&forward, Direction::Forward);
        assert_eq!(named, least.cause);
        let other = match side {
            Place::Near => Place::Far,
            Place::Far => Place::Near,
            Place::Path => Place::Path,
        };
        let back = of(&swapped, Direction::Reverse);
        assert_eq!(back, (named, other, certainty));
    }
}
