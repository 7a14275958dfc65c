//! Rules about runs that differ in one thing: the direction, or the number of streams.

use super::super::Explained;
use super::course::{Of, transfers, way};
use super::streams::{CAPPED, FLOW_CAPS};
use super::{Remark, Stands, rate};
use crate::path::Direction;
use crate::reported::{Carrier, Transfer};

/// Ratio of the rates of both ways from which one way is slower.
const WAYS: f64 = 1.5;

/// Ratio of the rate of many streams to that of one from which something holds each stream.
const FLOWS: f64 = 1.3;

/// Largest share of segments that are sent again where loss holds nothing.
pub(super) const CLEAN: f64 = 2e-4;

/// The best run of TCP at full rate in a direction.
fn best<'a>(explained: &'a Explained<'_>, direction: Direction) -> Option<Of<'a>> {
    let is_one = |one: &Transfer| {
        one.direction == direction
            && one.carrier == Carrier::Tcp
            && !one.both
            && one.asked.is_none()
    };
    transfers(explained)
        .filter(|(_, _, one)| is_one(one))
        .max_by_key(|(_, _, one)| one.goodput)
}

pub(super) fn ways(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let [forward, reverse] = Direction::ALL.map(|direction| best(explained, direction));
    let Some((forward, reverse)) = forward.zip(reverse) else {
        return Vec::new();
    };
    let (slow, fast) = if forward.2.goodput < reverse.2.goodput {
        (forward, reverse)
    } else {
        (reverse, forward)
    };
    let (source, result, one) = slow;
    let ratio = fast.2.goodput.0 as f64 / (one.goodput.0 as f64).max(1.0);
    if ratio < WAYS || one.goodput.0 == 0 {
        return Vec::new();
    }
    let what = format!(
        "{} carries {}, and {} {}: what both ways share is cleared",
        way(one.direction),
        rate(one.goodput.0 as f64),
        way(fast.2.direction),
        rate(fast.2.goodput.0 as f64)
    );
    let causes: &[&'static str] = match one.repeated() {
        Some(share) if share < CLEAN => &["path-rate", "receiver-core", "sender-core"],
        _ => &["path-loss", "path-rate", "receiver-core"],
    };
    let remark = Remark::new(id, Stands::Finding, what)
        .names(causes)
        .of(one.direction)
        .shown_by(source, result)
        .next("see what limits the slow way", "linerate run HOST");
    vec![remark]
}

pub(super) fn flows(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    Direction::ALL
        .into_iter()
        .filter_map(|direction| held(explained, direction, id))
        .collect()
}

fn held(explained: &Explained<'_>, direction: Direction, id: &'static str) -> Option<Remark> {
    let many =
        best(explained, direction).filter(|(_, _, one)| one.streams.is_some_and(|n| n > 1))?;
    let is_single = |(_, _, one): &Of<'_>| {
        one.direction == direction
            && one.carrier == Carrier::Tcp
            && one.streams == Some(1)
            && one.asked.is_none()
    };
    let single = transfers(explained)
        .filter(is_single)
        .max_by_key(|(_, _, one)| one.goodput)?;
    let (source, result, one) = single;
    let (alone, all) = (one.goodput.0 as f64, many.2.goodput.0 as f64);
    if one.both || alone <= 0.0 || all < alone * FLOWS {
        return None;
    }
    let streams = many.2.streams.unwrap_or(0);
    let what = format!(
        "{}: one stream carries {}, and {streams} streams {}: something holds each stream, and not the path",
        way(direction),
        rate(alone),
        rate(all)
    );
    let cap = FLOW_CAPS
        .into_iter()
        .find(|cap| CAPPED.contains(&(alone / cap.0 as f64)));
    let remark = Remark::new(id, Stands::Finding, what)
        .of(direction)
        .shown_by(source, result);
    let remark = match (cap, one.repeated()) {
        (_, Some(share)) if share >= CLEAN => remark
            .because(format!(
                "{:.2} % of the segments of the one stream were sent again",
                share * 100.0
            ))
            .names(&["path-loss", "receive-window", "flow-rate-cap"]),
        (Some(cap), _) => remark
            .because(format!(
                "{cap} is what a cloud allows one flow; one full processor would look alike"
            ))
            .names(&["flow-rate-cap"])
            .rules_out(&["path-rate", "wire-full"]),
        (None, _) => remark
            .names(&["sender-core", "receive-window", "flow-rate-cap"])
            .rules_out(&["path-rate", "wire-full"]),
    };
    Some(
        remark
            .next("2, 4 and 8 streams", "iperf3 -c HOST -P 4")
            .next("see what holds one stream", "linerate run HOST"),
    )
}
