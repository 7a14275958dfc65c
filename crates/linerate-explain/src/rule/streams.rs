//! Rules about the number and the rates of the streams of transfers.

use super::super::Explained;
use super::transfers::MOST_RUNS;
use super::{Remark, rate};
use linerate_facts::finding::Stands;
use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Source, Transfer};
use linerate_units::Rate;

/// Largest ratio of the rate's growth to the growth in streams at which the rate is proportional to them.
const PROPORTIONAL: f64 = 1.1;

/// Share of the best rate below which more streams count as slower.
const LESS_THAN_BEST: f64 = 0.9;

/// Share of the fastest stream's rate below which a stream counts as slower than the others.
const STREAMS_DIFFER: f64 = 0.5;

/// Rates to which clouds limit one flow.
//= https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-network-bandwidth.html: 5 Gb/s outside of a
//= cluster placement group, 10 Gb/s within one
pub(super) const FLOW_CAPS: [Rate; 2] = [Rate(5_000_000_000), Rate(10_000_000_000)];

/// Range of a capped flow's goodput over its cap: headers take a part of the cap, and limiters have a margin.
pub(super) const CAPPED: std::ops::RangeInclusive<f64> = 0.93..=1.02;

/// Least share of the hardware's ceiling at which the ceiling limits all streams together.
const FULL: f64 = 0.9;

/// Least number of streams whose equal rates show a cap of each stream.
pub(super) const PATTERN: usize = 3;

/// Rates of standard Ethernet links that several capped streams could fill, in Gb/s.
const LINKS: [f64; 6] = [25.0, 40.0, 50.0, 100.0, 200.0, 400.0];

/// Range of goodput over the speed of a full link: from packets of 1500 bytes, less a little for the start, to packets
/// of 9000 bytes.
const FILLS: std::ops::RangeInclusive<f64> = 0.93..=1.0;

/// Whether two transfers differ in nothing but the number of their streams, as far as their outputs tell.
fn is_alike(one: (&Source, &Transfer), other: (&Source, &Transfer)) -> bool {
    let settings = |(source, t): (&Source, &Transfer)| {
        (source.tool.clone(), t.buffer, t.size, t.congestion.clone())
    };
    settings(one) == settings(other)
}

/// Most groups of transfers that differ only in the number of streams.
const GROUPS: usize = 32;
/// Largest ratio of the rates of two runs with the same number of streams that may be of one path.
const ONE_PATH: f64 = 2.0;

/// Complete TCP transfers in one direction, without a requested rate, which differ only in the number of streams: one
/// for each number, the fewest streams first. Of several such groups, the one with the most numbers. Empty if runs with
/// one number of streams are of several paths.
fn by_streams<'a>(explained: &'a Explained<'_>, direction: Direction) -> Vec<(u32, &'a Transfer)> {
    let is_whole = |one: &Transfer| !one.both && one.requested.is_none() && one.error.is_none();
    let transfers = explained.material.transfers();
    let of = transfers.filter(|(_, one)| {
        one.direction == direction && one.carrier == Carrier::Tcp && is_whole(one)
    });
    let mut groups: Vec<Vec<(&Source, &Transfer)>> = Vec::new();
    for one in of.filter(|(_, one)| one.streams.is_some()) {
        let known = groups.iter().position(|group| is_alike(group[0], one));
        match known {
            Some(at) => groups[at].push(one),
            None if groups.len() < GROUPS => groups.push(vec![one]),
            None => {}
        }
    }
    let numbered = |group: Vec<(&'a Source, &'a Transfer)>| {
        let mut all: Vec<(u32, &Transfer)> =
            group.into_iter().filter_map(|(_, one)| Some((one.streams?, one))).collect();
        all.sort_by_key(|(streams, one)| (*streams, std::cmp::Reverse(one.goodput)));
        let ratio = |pair: &[(u32, &Transfer)]| {
            pair[0].1.goodput.0 as f64 / (pair[1].1.goodput.0 as f64).max(1.0)
        };
        let differ = all.chunk_by(|a, b| a.0 == b.0).any(|same| {
            let ends = [same[0], same[same.len() - 1]];
            ratio(&ends) >= ONE_PATH
        });
        if differ {
            all.clear();
        }
        all.dedup_by_key(|(streams, _)| *streams);
        all
    };
    let all = groups.into_iter().map(numbered);
    // Of several longest groups, the first one.
    all.rev().max_by_key(Vec::len).unwrap_or_default()
}

pub(super) fn jumps(explained: &Explained<'_>) -> Vec<Remark> {
    let of = |direction| {
        let all = by_streams(explained, direction);
        let pairs: Vec<Remark> = all.windows(2).filter_map(jump).collect();
        pairs
    };
    Direction::ALL.into_iter().flat_map(of).collect()
}

fn jump(pair: &[(u32, &Transfer)]) -> Option<Remark> {
    let [(few, before), (many, after)] = *pair else {
        return None;
    };
    let streams = f64::from(many) / f64::from(few);
    let gain = after.goodput.0 as f64 / (before.goodput.0 as f64).max(1.0);
    if gain < streams * PROPORTIONAL {
        return None;
    }
    let what = format!(
        "from {few} to {many} streams the rate grew x{gain:.2}, and the streams only x{streams:.2}: one run of each \
         does not show which is right"
    );
    let evidence =
        format!("{}, then {}", rate(before.goodput.0 as f64), rate(after.goodput.0 as f64));
    Some(
        Remark::new(Stands::Doubt, what)
            .because(evidence)
            .next("repeat each number of streams, in turns", "linerate bw HOST --sweep streams"),
    )
}

pub(super) fn past_best(explained: &Explained<'_>) -> Vec<Remark> {
    let of = |direction| {
        let all = by_streams(explained, direction);
        let (best, most) = all.iter().max_by_key(|(_, one)| one.goodput)?;
        let (streams, last) = all.last()?;
        let share = last.goodput.0 as f64 / (most.goodput.0 as f64).max(1.0);
        (streams > best && share < LESS_THAN_BEST).then(|| {
            let what = format!(
                "{best} streams carried most, and {streams} only {:.0} % of it: more streams did not help",
                share * 100.0
            );
            let evidence = format!("{}, then {}", rate(most.goodput.0 as f64), rate(last.goodput.0 as f64));
            Remark::new(Stands::Found, what)
                .because(evidence)
                .because("streams beyond the best number often take CPU time from each other; a run that was disturbed looks alike")
                .next("see the CPUs of both ends under the load", "linerate run HOST")
        })
    };
    Direction::ALL.into_iter().filter_map(of).collect()
}

pub(super) fn differ(explained: &Explained<'_>) -> Vec<Remark> {
    let remark = |one: &Transfer| {
        let least = one.each.iter().copied().reduce(f64::min)?;
        let most = one.each.iter().copied().reduce(f64::max)?;
        (least < most * STREAMS_DIFFER).then(|| {
            let what = format!(
                "{} streams do not share alike: the slowest carried {}, the fastest {}",
                one.each.len(),
                Rate(least.max(0.0) as u64),
                Rate(most.max(0.0) as u64)
            );
            Remark::new(Stands::Found, what).because(
                "they share a processor, a queue or a link of a bond with different neighbours, or one loses packets",
            )
        })
    };
    let all = explained.material.transfers();
    all.filter_map(|(_, one)| remark(one)).collect()
}

/// Whether a rate is about that of a full standard Ethernet link.
fn fills_link(bits: f64) -> bool {
    LINKS.iter().any(|link| FILLS.contains(&(bits / (link * 1e9))))
}

pub(super) fn capped(explained: &Explained<'_>) -> Vec<Remark> {
    let all = explained.material.transfers();
    all.filter_map(|(_, one)| cap(explained, one)).collect()
}

fn is_at(rate: f64, cap: Rate) -> bool {
    CAPPED.contains(&(rate / cap.0 as f64))
}

/// The cap of one flow that equals the mean rate of the streams. A full link may give each stream that rate too: so the
/// ceiling must be known, or a run with another number of streams must have the same mean.
fn mean_cap(explained: &Explained<'_>, one: &Transfer, is_known: bool) -> Option<Rate> {
    let mean = |one: &Transfer| one.goodput.0 as f64 / f64::from(one.streams.unwrap_or(1).max(1));
    let cap = FLOW_CAPS.into_iter().find(|cap| is_at(mean(one), *cap))?;
    let is_like = |other: &Transfer| {
        let is_more = other.streams.zip(one.streams).is_some_and(|(more, few)| more >= few * 2);
        other.direction == one.direction && is_more && is_at(mean(other), cap)
    };
    let mut others = explained.material.transfers().take(MOST_RUNS);
    (is_known || others.any(|(_, other)| is_like(other))).then_some(cap)
}

fn cap(explained: &Explained<'_>, one: &Transfer) -> Option<Remark> {
    let ceiling = explained.material.hardware.goodput();
    let is_full = |least: f64| one.goodput.0 as f64 >= least * FULL;
    // Streams that share a full link equally, or have a requested rate, are not capped one by one.
    if ceiling.is_some_and(|ceiling| is_full(ceiling.low())) || one.requested.is_some() {
        return None;
    }
    let (streams, how, cap) = if one.each.is_empty() {
        (one.streams? as usize, "on average ", mean_cap(explained, one, ceiling.is_some())?)
    } else {
        let all = |cap: &Rate| one.each.iter().all(|each| is_at(*each, *cap));
        (one.each.len(), "", FLOW_CAPS.into_iter().find(all)?)
    };
    if streams < PATTERN {
        return None;
    }
    let what = format!(
        "each of {streams} streams carried {how}about {cap}: so much a cloud allows one flow; one full processor for \
         all of them would look alike"
    );
    let remark = Remark::new(Stands::Found, what).of(one.direction);
    let total: f64 = one.each.iter().sum();
    // Only the mean of the streams is known: one full processor for all of them is as likely as a cap.
    if one.each.is_empty() {
        return Some(
            remark
                .names(&["flow-rate-cap", "sender-core"])
                .next("tell a cap of each flow from a full processor", "linerate run HOST"),
        );
    }
    Some(if ceiling.is_none() && fills_link(total) {
        remark
            .because(format!(
                "all together carried {}: a full link that they share alike looks the same",
                rate(total)
            ))
            .names(&["flow-rate-cap", "wire-full"])
            .next(
                "fewer streams: a cap leaves each its rate, and a full link gives each more",
                "iperf3 -c HOST -P 2",
            )
    } else {
        remark
            .names(&["flow-rate-cap"])
            .next("tell a cap of each flow from a full processor", "linerate run HOST")
    })
}
