//! Rules that compare runs which differ in one thing: direction, number of streams, or buffer.

use super::super::Explained;
use super::course::median;
use super::streams::{CAPPED, FLOW_CAPS};
use super::transfers::{Of, transfers, way};
use super::{Remark, rate};
use linerate_facts::finding::Stands;
use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Transfer};
use linerate_units::{Bytes, Nanos};

/// Least ratio of the rates of both directions at which the slower one is reported.
const WAYS_DIFFER: f64 = 1.5;

/// Least ratio of the rate of many streams to the rate of one at which something limits each stream.
const FLOWS_DIFFER: f64 = 1.3;

/// Largest share of retransmitted segments at which loss does not limit the rate.
pub(super) const CLEAN: f64 = 2e-4;

/// The fastest TCP transfer in a direction that had no requested rate and loaded this direction alone.
fn best<'a>(explained: &'a Explained<'_>, direction: Direction) -> Option<Of<'a>> {
    let is_one = |one: &Transfer| {
        one.direction == direction
            && one.carrier == Carrier::Tcp
            && !one.both
            && one.requested.is_none()
    };
    transfers(explained).filter(|(_, _, one)| is_one(one)).max_by_key(|(_, _, one)| one.goodput)
}

pub(super) fn ways(explained: &Explained<'_>) -> Vec<Remark> {
    let [forward, reverse] = Direction::ALL.map(|direction| best(explained, direction));
    let Some((forward, reverse)) = forward.zip(reverse) else {
        return Vec::new();
    };
    let (slow, fast) =
        if forward.2.goodput < reverse.2.goodput { (forward, reverse) } else { (reverse, forward) };
    let (source, result, one) = slow;
    let ratio = fast.2.goodput.0 as f64 / (one.goodput.0 as f64).max(1.0);
    if ratio < WAYS_DIFFER || one.goodput.0 == 0 {
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
    let remark = Remark::new(Stands::Found, what)
        .names(causes)
        .of(one.direction)
        .shown_by(source, result)
        .next("see what limits the slow way", "linerate run HOST");
    vec![remark]
}

pub(super) fn flows(explained: &Explained<'_>) -> Vec<Remark> {
    Direction::ALL.into_iter().filter_map(|direction| held(explained, direction)).collect()
}

fn held(explained: &Explained<'_>, direction: Direction) -> Option<Remark> {
    let many =
        best(explained, direction).filter(|(_, _, one)| one.streams.is_some_and(|n| n > 1))?;
    let is_single = |(_, _, one): &Of<'_>| {
        one.direction == direction
            && one.carrier == Carrier::Tcp
            && one.streams == Some(1)
            && one.requested.is_none()
    };
    let single = transfers(explained).filter(is_single).max_by_key(|(_, _, one)| one.goodput)?;
    let (source, result, one) = single;
    let (alone, all) = (one.goodput.0 as f64, many.2.goodput.0 as f64);
    if one.both || alone <= 0.0 || all < alone * FLOWS_DIFFER {
        return None;
    }
    let streams = many.2.streams.unwrap_or(0);
    let what = format!(
        "{}: one stream carries {}, and {streams} streams {}: something holds each stream, and not the path",
        way(direction),
        rate(alone),
        rate(all)
    );
    let cap = FLOW_CAPS.into_iter().find(|cap| CAPPED.contains(&(alone / cap.0 as f64)));
    let remark = Remark::new(Stands::Found, what).of(direction).shown_by(source, result);
    let remark = match (cap, one.repeated()) {
        (_, Some(share)) if share >= CLEAN => remark
            .because(format!(
                "{:.2} % of the segments of the one stream were retransmitted",
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

/// Ratio of the rate of both directions together to that of the faster one alone, below which both share one capacity.
const TOGETHER: f64 = 1.3;

pub(super) fn both(explained: &Explained<'_>) -> Vec<Remark> {
    let rate_of = |of: Option<Of<'_>>| of.map(|(_, _, one)| one.goodput.0 as f64);
    let alone = Direction::ALL.map(|direction| rate_of(best(explained, direction)));
    let together = Direction::ALL.map(|direction| {
        let is_one =
            |one: &Transfer| one.both && one.direction == direction && one.requested.is_none();
        rate_of(transfers(explained).find(|(_, _, one)| is_one(one)))
    });
    let ([Some(forward), Some(reverse)], [Some(one), Some(other)]) = (together, alone) else {
        return Vec::new();
    };
    let (sum, most) = (forward + reverse, one.max(other));
    if most <= 0.0 || sum >= most * TOGETHER {
        return Vec::new();
    }
    let what = format!(
        "both ways together carry {}, and one way alone {}: they share one capacity",
        rate(sum),
        rate(most)
    );
    let remark = Remark::new(Stands::Found, what)
        .because("a port of full duplex carries its rate each way: radio, half duplex, a full processor and memory do not")
        .names(&["duplex", "sender-core", "path-rate"])
        .next("the duplex of the ports of both ends", "ethtool PORT");
    vec![remark]
}

/// Least ratio of the fast to the slow rate at which the larger buffer helped.
const BUFFER_HELPS: f64 = 1.5;

pub(super) fn buffers(explained: &Explained<'_>) -> Vec<Remark> {
    let of = |direction| {
        let is_one = |one: &Transfer| {
            let is_single = one.streams.is_none_or(|n| n == 1);
            one.direction == direction
                && one.carrier == Carrier::Tcp
                && is_single
                && one.requested.is_none()
        };
        let mut all: Vec<Of<'_>> = transfers(explained).filter(|(_, _, one)| is_one(one)).collect();
        all.sort_by_key(|(_, _, one)| one.goodput);
        let (slow, fast) = (all.first()?, all.last()?);
        let requested = fast.2.buffer.filter(|_| fast.2.buffer != slow.2.buffer)?;
        (fast.2.goodput.0 as f64 >= slow.2.goodput.0 as f64 * BUFFER_HELPS).then(|| {
            let before = slow.2.buffer.map_or("the usual one".to_owned(), |bytes| bytes.to_string());
            let what = format!(
                "{}: with a buffer of {requested} the stream carries {}, and with {before} {}: a window holds it",
                way(direction),
                rate(fast.2.goodput.0 as f64),
                rate(slow.2.goodput.0 as f64)
            );
            Remark::new(Stands::Found, what)
                .names(&["receive-window", "send-buffer"])
                .rules_out(&["path-rate", "path-loss"])
                .of(direction)
                .shown_by(slow.0, slow.1)
                .next("see which of both holds it", "linerate run HOST")
        })
    };
    Direction::ALL.into_iter().filter_map(of).collect()
}

/// Range of data in flight over the window at which the window is full. The ratio may be below 1 because an idle ping
/// is the shortest round trip.
const FILLS: std::ops::RangeInclusive<f64> = 0.7..=1.2;

/// Shortest round trip at which a window of the usual size limits a fast path.
const LONG: Nanos = Nanos::from_millis(1);

/// The largest window without window scaling; then the range of data in flight over it at which this window is full.
//= RFC 7323, section 2.1: the window field has 16 bits
const UNSCALED: Bytes = Bytes(65_535);
const AT_UNSCALED: std::ops::RangeInclusive<f64> = 0.95..=1.03;

pub(super) fn window(explained: &Explained<'_>) -> Vec<Remark> {
    let mut pings = explained.tables.iter().filter(|table| table.source.tool.name == "ping");
    let ping = pings.find_map(|table| table.whole(table.smallest()?.time()?));
    let held = |(source, result, one): Of<'_>| {
        let rtt = one.round_trip.mean.or(ping).filter(|rtt| *rtt >= LONG)?;
        let rate_now = if one.ticks.is_empty() { one.goodput.0 as f64 } else { median(&one.ticks) };
        let flight = Bytes((rate_now / 8.0 * rtt.secs()) as u64);
        let is_unscaled = AT_UNSCALED.contains(&(flight.0 as f64 / UNSCALED.0 as f64));
        let report = one.buffer.or(one.window);
        let window = report.or(is_unscaled.then_some(UNSCALED))?;
        let is_clean = one.repeated().is_some_and(|share| share < CLEAN) && one.streams == Some(1);
        let is_full = FILLS.contains(&(flight.0 as f64 / (window.0 as f64).max(1.0)));
        (is_clean && is_full && one.carrier == Carrier::Tcp).then(|| {
            let (as_if, causes): (_, &[&'static str]) = if report.is_some() {
                ("the window holds the stream", &["receive-window", "send-buffer"])
            } else {
                ("as one that is not scaled would hold the stream", &["receive-window", "send-buffer", "path-rate"])
            };
            let what = format!(
                "{}: a window of {window} in each round trip of {rtt} is {}, and nothing was lost: {as_if}",
                way(one.direction),
                rate(rate_now)
            );
            Remark::new(Stands::Found, what)
                .names(causes)
                .rules_out(&["path-loss"])
                .of(one.direction)
                .shown_by(source, result)
                .next("how large the buffers of both ends may grow", "sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem")
        })
    };
    transfers(explained).filter_map(held).collect()
}
