//! Rules about the course of one transfer: what its intervals show without any ceiling.

use super::super::Explained;
use super::transfers::{Of, transfers, way};
use super::{Remark, connections, counters, rate};
use linerate_facts::finding::Stands;
use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Counted, Transfer};
use linerate_units::{Bytes, Rate};

/// Congestion window, in segments, up to which every segment was lost: after such a loss Linux starts again with one.
//= net/ipv4/tcp_input.c, tcp_enter_loss: snd_cwnd = tcp_packets_in_flight + 1
const FEW_SEGMENTS: u64 = 2;

/// Least payload of a segment in packets of 9000 bytes; then the most payload of one in packets of 1500 bytes.
const JUMBO: Bytes = Bytes(8_900);
const USUAL: Bytes = Bytes(1_460);

pub(super) fn nothing(explained: &Explained<'_>) -> Vec<Remark> {
    let still = transfers(explained).filter(|(_, _, one)| one.goodput.0 == 0);
    still.filter_map(stuck).collect()
}

fn stuck((source, result, one): Of<'_>) -> Option<Remark> {
    let found = |what: &str| {
        let what = format!("{}: nothing arrived; {what}", way(one.direction));
        Remark::new(Stands::Found, what).of(one.direction).shown_by(source, result)
    };
    if one.carrier == Carrier::Udp {
        return Some(
            found("every datagram was lost or refused")
                .names(&["path-loss", "socket-drops"])
                .next("see whether a firewall counts them", "sudo nft list ruleset"),
        );
    }
    let repeated = one.retransmits?;
    let repeats = format!("{repeated} segments were retransmitted");
    if repeated == 0 {
        return Some(found("nothing was retransmitted either, so that nothing was lost: the sender had nothing to send, or was not allowed to")
            .because(repeats)
            .names(&[])
            .next("the same test without -w and other limits", "iperf3 -c HOST"));
    }
    let Some(window) = one.window else {
        return Some(
            found("what was sent was lost")
                .because(repeats)
                .names(&["mtu-black-hole", "path-loss"]),
        );
    };
    let probe = |remark: Remark| {
        remark
            .next(
                "find the largest packet that passes: with 1472, then less",
                "ping -M do -s 8972 HOST",
            )
            .next("the MTU of the ports of both ends", "ip link")
    };
    let held = format!("{repeats}, and the congestion window was {window} at most");
    if (JUMBO.0..JUMBO.0 * FEW_SEGMENTS).contains(&window.0) {
        let what = "the connection opened, and not one packet of 9000 bytes got through: a port between the hosts lets \
                    only smaller ones pass";
        return Some(probe(found(what).because(held).names(&["mtu-black-hole"])));
    }
    let what = "the connection opened, and what was sent then was lost";
    let remark = found(what).because(held);
    Some(if window.0 <= USUAL.0 * FEW_SEGMENTS {
        probe(remark.names(&["mtu-black-hole", "path-loss"]))
    } else {
        remark
            .names(&["path-loss", "mtu-black-hole"])
            .next("see what the path does with the packets", "linerate run HOST")
    })
}

/// Least share of lost segments that is reported; then the least share at which loss itself is the answer.
const SOME: f64 = 0.001;
const LOSES: f64 = 0.01;

/// Least share of lost segments at which a link is faulty and not just full.
const BAD: f64 = 0.1;

/// Largest deviation of a steady rate from its median, as a share of the median.
const STEADY: f64 = 0.05;

/// Least number of intervals that can show a course over time.
const FEWEST: usize = 4;

pub(super) fn loses(explained: &Explained<'_>) -> Vec<Remark> {
    transfers(explained).filter_map(|of| losing(explained, of)).collect()
}

fn losing(explained: &Explained<'_>, of: Of<'_>) -> Option<Remark> {
    let (source, result, one) = of;
    let share = one.repeated().filter(|share| *share >= SOME && one.goodput.0 > 0)?;
    if fell(explained, one) || counters::is_needless(explained) || connections::is_held(one) {
        return None;
    }
    let what = format!(
        "{}: {:.2} % of the segments were retransmitted, and {} arrived",
        way(one.direction),
        share * 100.0,
        rate(one.goodput.0 as f64)
    );
    let mut remark = Remark::new(Stands::Found, what);
    let clean = |other: &Transfer| other.repeated().is_some_and(|share| share < LOSES / 10.0);
    let other = transfers(explained).map(|(_, _, other)| other).find(|other| {
        other.direction != one.direction
            && other.carrier == one.carrier
            && clean(other)
            && other.goodput > one.goodput
    });
    if let Some(other) = other {
        remark = remark.because(format!(
            "{} loses next to nothing, at {}: what both ways share is cleared",
            way(other.direction),
            rate(other.goodput.0 as f64)
        ));
        remark = remark.rules_out(&["sender-core", "receiver-core"]);
    }
    if let Some(requested) = one.requested.filter(|requested| requested.0 > one.goodput.0) {
        remark = remark.because(format!("{requested} were asked for: that is not the limit"));
    }
    // A policer gives a steady rate with loss, and a full queue loses packets too: both causes stay possible.
    let causes: &[&'static str] = if is_flat(&one.ticks) && share < BAD {
        &["path-rate", "path-loss"]
    } else if share < LOSES {
        &["path-loss", "path-rate"]
    } else {
        &["path-loss"]
    };
    let half = "half the rate by UDP: loss that stays a share is the link's, loss that ends is a limit of the rate";
    Some(
        remark
            .names(causes)
            .of(one.direction)
            .shown_by(source, result)
            .next("the counters of the ports of that direction", "ethtool -S PORT")
            .next(half, "iperf3 -c HOST -u -b RATE"),
    )
}

/// Whether the judge found that the rate of a direction fell while it was loaded.
pub(super) fn fell(explained: &Explained<'_>, one: &Transfer) -> bool {
    let model = explained.model.iter();
    model
        .flat_map(|model| &model.directions)
        .any(|of| of.direction == one.direction && of.fell.is_some())
}

/// Whether the rates of all intervals, except the first one, are near their median.
pub(super) fn is_flat(ticks: &[f64]) -> bool {
    let rest = ticks.get(1..).unwrap_or_default();
    let middle = median(rest);
    rest.len() + 1 >= FEWEST && rest.iter().all(|tick| (tick / middle - 1.0).abs() <= STEADY)
}

pub(super) fn median(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Least ratio of the earlier rate to the later one that counts as a step; then that ratio if only the first interval
/// is faster.
const STEP: f64 = 4.0 / 3.0;
const FIRST: f64 = 1.5;

/// Number of intervals that must keep the later rate.
const HOLDS: usize = 3;

pub(super) fn step(explained: &Explained<'_>) -> Vec<Remark> {
    let all =
        transfers(explained).filter(|(_, _, one)| !fell(explained, one) && one.requested.is_none());
    all.filter_map(stepped).collect()
}

/// Most intervals that are compared with all others.
const MOST: usize = 256;

/// The intervals, joined in groups so that at most `MOST` are left: the mean rate of each group, and intervals per
/// group.
fn few(ticks: &[f64]) -> (Vec<f64>, usize) {
    let joined = ticks.len().div_ceil(MOST).max(1);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    (ticks.chunks(joined).map(mean).collect(), joined)
}

fn stepped((source, result, one): Of<'_>) -> Option<Remark> {
    let (ticks, joined) = few(&one.ticks);
    let (at, before, after) = (1..ticks.len()).find_map(|at| {
        let (first, later) = ticks.split_at(at);
        let (before, after) = (median(first), median(later));
        let least = if at == 1 { FIRST } else { STEP };
        let is_apart = first.iter().all(|tick| *tick > after * STEP.sqrt())
            && later.iter().all(|tick| {
                *tick < before / STEP.sqrt() && (tick / after - 1.0).abs() < 1.0 - 1.0 / STEP
            });
        (later.len() >= HOLDS && after > 0.0 && before >= after * least && is_apart)
            .then_some((at, before, after))
    })?;
    let secs = one.tick.unwrap_or(1.0) * (at * joined) as f64;
    let what = format!(
        "{}: {} for {secs:.0} s, then {}, which lasts",
        way(one.direction),
        rate(before),
        rate(after)
    );
    let bytes = Bytes((before / 8.0 * secs) as u64);
    let remark =
        Remark::new(Stands::Found, what).because(format!("{bytes} went at the first rate"));
    // A token bucket is full when a load begins, so its step comes first. A later step may also be other traffic that
    // begins.
    let remark = if at == 1 {
        remark
            .because("a bucket of tokens or a credit that is used up looks so")
            .names(&["path-rate"])
    } else {
        remark
            .because("a credit that is used up looks so, and so does other traffic that began")
            .names(&["path-rate", "contended"])
    };
    Some(remark.of(one.direction).shown_by(source, result).next(
        "see whether the second rate lasts, and what a pause gives back",
        "iperf3 -c HOST -t 60",
    ))
}

pub(super) fn same_host(explained: &Explained<'_>) -> Vec<Remark> {
    let local = transfers(explained).find(|(_, _, one)| one.local == Some(true));
    let remark = local.map(|(source, result, one)| {
        let what = format!(
            "both ends have one address: {} is what this host moves within itself, and says nothing of a network",
            rate(one.goodput.0 as f64)
        );
        Remark::new(Stands::Found, what)
            .names(&["not-a-measurement"])
            .shown_by(source, result)
            .next("run the server on the other host", "iperf3 -c HOST")
    });
    remark.into_iter().collect()
}

/// Largest share of lost datagrams at which the path carried the load; then the least share at which it did not.
const WHOLE: f64 = 0.005;
const LOSSY: f64 = 0.005;

/// Ratio of two offered loads that are far enough apart to tell a faulty link (the same share is lost) from a full one;
/// also the largest ratio of loss shares that are taken for the same.
const APART: f64 = 1.5;

/// Least ratio of two offered rates that count as the same rate.
const SAME: f64 = 0.95;

pub(super) fn ladder(explained: &Explained<'_>) -> Vec<Remark> {
    let of = |direction| {
        let is_counted =
            |one: &Transfer| one.carrier == Carrier::Udp && one.counted == Counted::Receiver;
        let all = transfers(explained)
            .filter(|(_, _, one)| one.direction == direction && is_counted(one));
        let mut runs: Vec<(Of<'_>, f64, f64)> = all
            .filter_map(|of| {
                let lost = of.2.lost()?;
                let offered = of.2.goodput.0 as f64 / (1.0 - lost).max(1e-9);
                Some((of, offered, lost))
            })
            .collect();
        runs.sort_by(|a, b| a.1.total_cmp(&b.1));
        knee(explained, &runs)
    };
    Direction::ALL.into_iter().filter_map(of).collect()
}

/// Largest UDP payload that fits into one packet at an MTU of 1500, with IPv4.
const WHOLE_PACKET: Bytes = Bytes(1_472);

/// Finds large datagrams that are lost while small ones at the same rate are not: a large one needs several packets,
/// and is lost with any of them.
fn split(
    explained: &Explained<'_>,
    runs: &[(Of<'_>, f64, f64)],
    hardest: &(Of<'_>, f64, f64),
) -> Option<Remark> {
    let ((source, result, one), offered, lost) = hardest;
    let large = one.size.filter(|size| *size > WHOLE_PACKET)?;
    // A socket with room for only a few large datagrams drops them as well, so that cause stays possible.
    let fails = counters::as_lost(explained, "IpReasmFails").next().is_some();
    let causes: &[&'static str] =
        if fails { &["fragmentation"] } else { &["fragmentation", "socket-drops"] };
    let is_small =
        |run: &&(Of<'_>, f64, f64)| run.0.2.size.is_some_and(|size| size <= WHOLE_PACKET);
    let whole = runs.iter().rev().filter(|run| run.2 < WHOLE && run.1 >= offered * SAME);
    let small = whole.clone().find(is_small)?;
    let what = format!(
        "{}: {:.1} % of the datagrams of {large} were lost, and next to none of {} at that rate: a large one travels in \
         several packets, and is lost with each of them",
        way(one.direction),
        lost * 100.0,
        small.0.2.size.unwrap_or_default()
    );
    Some(
        Remark::new(Stands::Found, what)
            .of(one.direction)
            .shown_by(source, result)
            .names(causes)
            .rules_out(&["path-rate"])
            .next("datagrams that fit a packet", "iperf3 -c HOST -u -b RATE -l 1400"),
    )
}

/// Compares UDP loads of one direction by their offered rate: either loss begins at a rate, or the same share is lost
/// at each.
fn knee(explained: &Explained<'_>, runs: &[(Of<'_>, f64, f64)]) -> Option<Remark> {
    let gentlest = runs.first()?;
    let hardest = runs.iter().rev().find(|run| run.2 >= LOSSY)?;
    let ((source, result, one), offered, lost) = *hardest;
    let way = way(one.direction);
    let got = Rate(one.goodput.0);
    let found =
        |what: String| Remark::new(Stands::Found, what).of(one.direction).shown_by(source, result);
    let row = |(_, offered, lost): &(Of<'_>, f64, f64)| {
        format!("of {} offered {:.1} % were lost", Rate(*offered as u64), lost * 100.0)
    };
    let shares = || runs.iter().map(|run| run.2);
    let (smallest, largest) = (shares().fold(1.0, f64::min), shares().fold(0.0, f64::max));
    let whole = runs.iter().rev().find(|run| run.2 < WHOLE);
    let remark = if let Some(remark) = split(explained, runs, hardest) {
        remark
    } else if let Some(whole) = whole.filter(|whole| whole.1 >= offered * SAME) {
        found(format!(
            "{way}: {:.1} % of the datagrams were lost, and another run at that rate lost next to none: not the rate loses \
             them, but how they are sent, or something that comes and goes",
            lost * 100.0
        ))
        .names(&["path-loss", "socket-drops"])
        .rules_out(&["path-rate"])
        .because(row(whole))
        .next("the same run again, in turns", "iperf3 -c HOST -u -b RATE")
    } else if let Some(whole) = whole {
        found(format!(
            "{way}: the path carries about {got}: {} arrived whole, and of more a part is lost",
            Rate(whole.1 as u64)
        ))
        .names(&["path-rate"])
        .rules_out(&["path-loss"])
        .because(row(whole))
        .next("rates between both", "iperf3 -c HOST -u -b RATE")
    } else if offered >= gentlest.1 * APART && largest <= smallest * APART {
        found(format!("{way}: {:.0} % of the datagrams are lost at every rate: a link or a port loses them, and no limit of the rate does", lost * 100.0))
            .names(&["path-loss"])
            .rules_out(&["path-rate"])
            .because(row(gentlest))
            .next("the counters of every port of the path", "ethtool -S PORT")
    } else {
        found(format!("{way}: {:.1} % of the datagrams were lost, and {got} arrived", lost * 100.0))
            .names(&["path-rate", "path-loss", "socket-drops"])
            .next("half the rate: loss that stays a share is the link's, loss that ends is a limit of the rate", "iperf3 -c HOST -u -b RATE")
    };
    Some(remark.because(row(hardest)))
}
