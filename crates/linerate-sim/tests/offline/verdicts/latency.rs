//! Tests of round trips under load: a standing queue is found and proved, a short queue is not named.

use super::*;
use linerate_plan::path::Measure;

/// Makes a path of 50 Mb/s with a round trip of 1 ms, whose queue has room for `room` milliseconds of payload.
fn path(congestion: Congestion, room: u64) -> SimPath {
    let mut path = SimPath { congestion, rtt: Nanos::from_millis(1), ..SimPath::default() };
    path.forward.rate = Rate(50_000_000);
    path.forward.buffer = Bytes(50_000_000 / 8 * room / 1000);
    path
}

#[test]
fn a_queue_is_proved_where_it_is_deep_and_filled() {
    let proved = Some(("latency-queue", Place::Path, Certainty::Proved));
    for (congestion, room, expected) in [
        (Congestion::Cubic, 100, proved),
        (Congestion::Cubic, 4, None),
        (Congestion::Bbr, 100, None),
    ] {
        let verdict = verdict_of(&path(congestion, room), Knobs::default(), 5);
        let mut limits = verdict.limits.iter();
        let found = limits.find(|l| l.metric == Measure::Latency);
        let found = found.map(|l| (l.cause, l.side, l.certainty));
        let why = explain(&verdict);
        assert_eq!(found, expected, "{} {room} ms: {why}", congestion.name());
        let goodput = first(&verdict).map(|l| (l.cause, l.certainty));
        assert_eq!(goodput, Some(("path-rate", Certainty::Proved)), "{why}");
        assert_eq!(verdict.unknown, [], "{why}");
    }
}

#[test]
fn without_time_for_a_trial_a_queue_is_supported() {
    let plan = Plan { trials: false, ..plan(Knobs::default()) };
    let mut sim = Sim::new(path(Congestion::Cubic, 100), 5);
    let (record, _) = run(&mut sim, plan, linerate_session::run::Label::default(), &mut ());
    let verdict = judge(&derive(&record));
    let mut limits = verdict.limits.iter();
    let queue = limits.find(|l| l.cause == "latency-queue");
    assert_eq!(queue.map(|l| l.certainty), Some(Certainty::Supported));
}
