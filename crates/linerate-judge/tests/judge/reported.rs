//! Tests of the order in which the answers of a verdict are shown.

use linerate_judge::verdict::{Entry, entries};

use super::*;

/// A path with both directions loaded: `forward`, and `reverse` in the other direction.
fn both(forward: Load, reverse: Load) -> Model {
    let mut m = model(forward);
    let mut other = model(reverse).directions.remove(0);
    other.direction = Direction::Reverse;
    m.directions.push(other);
    m
}

/// Cause and direction of each answer; `unknown` if no cause is named.
fn read(m: &Model) -> Vec<(&'static str, Direction)> {
    let verdict = judge(m);
    let of = |reported: Entry<'_>| match reported {
        Entry::Limit(limit) => (limit.cause, limit.direction),
        Entry::Unknown(direction) => ("unknown", direction),
    };
    entries(m, &verdict).into_iter().map(of).collect()
}

/// A load with no reading that could explain what limits it.
fn unexplained(rate: f64) -> Load {
    let mut base = load();
    base.goodput.mean = rate;
    base.tcp.network = Some(0.0);
    base.tcp.rtt = UNQUEUED;
    base
}

/// A load that the sender's buffer limits.
fn held(rate: f64) -> Load {
    let mut base = unexplained(rate);
    base.tcp.sndbuf_limited = Some(0.97);
    base
}

#[test]
fn the_unknown_of_a_direction_below_half_of_the_other_precedes_its_limits() {
    use Direction::{Forward, Reverse};
    let m = |share| both(unexplained(share * 1e9), held(1e9));
    let fast = ("send-buffer", Reverse);
    assert_eq!(read(&m(0.1)), [("unknown", Forward), fast]);
    assert_eq!(read(&m(0.49)), [("unknown", Forward), fast]);
    assert_eq!(read(&m(0.51)), [fast, ("unknown", Forward)]);
    let slow = both(held(1e9), unexplained(0.49e9));
    let slow = (read(&slow), judge(&slow).unknown[0].what.clone());
    let expected = vec![("unknown", Reverse), ("send-buffer", Forward)];
    assert_eq!(slow, (expected, "what limits reverse".to_owned()));
}

#[test]
fn a_proved_limit_precedes_a_supported_one_but_not_one_of_a_far_slower_direction() {
    use Direction::{Forward, Reverse};
    let m = |share: f64| {
        let mut m = both(held(share * 1e9), load());
        // In reverse the path's rate is proved: twice the streams carry the same.
        tried(&mut m, "more-streams", 1.0);
        m.trials[0].plan.direction = Reverse;
        m
    };
    let (slow, proved) = (("send-buffer", Forward), ("path-rate", Reverse));
    assert_eq!(read(&m(0.51)), [proved, slow]);
    assert_eq!(read(&m(0.49)), [slow, proved]);
    assert_eq!(judge(&m(0.51)).limits[1].certainty, Certainty::Supported);
}

#[test]
fn an_unknown_of_goodput_precedes_what_makes_round_trips_long() {
    let m = model(load());
    let mut verdict = judge(&m);
    let goodput = entries(&m, &verdict).len();
    verdict.limits[0].metric = Measure::Latency;
    let reported = entries(&m, &verdict);
    assert_eq!((goodput, reported.len()), (1, 2));
    assert_eq!(reported[0], Entry::Unknown(Direction::Forward));
}

#[test]
fn the_headline_is_the_first_answer_and_nothing_where_nothing_was_measured() {
    let mut m = both(unexplained(1e9), unexplained(1e9));
    let verdict = judge(&m);
    assert_eq!(entries(&m, &verdict).first(), Some(&Entry::Unknown(Direction::Forward)));
    m.directions.clear();
    assert_eq!(entries(&m, &judge(&m)), []);
}
