//! Rules about the course of one transfer: what its rows say before any ceiling.

use super::super::Explained;
use super::{Remark, Stands, connections, counters, rate};
use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Counted, Measured, Outcome, Source, Transfer};
use linerate_units::{Bytes, Rate};

/// A transfer, and where it stands.
pub(super) type Of<'a> = (&'a Source, &'a Outcome, &'a Transfer);

/// Most runs that are compared with each other: their pairs are many more.
pub(super) const MOST_RUNS: usize = 1_000;

/// The transfers with their place in the input, up to a bound.
pub(super) fn transfers<'a>(explained: &'a Explained<'_>) -> impl Iterator<Item = Of<'a>> {
    let runs = explained.material.runs();
    let all = runs.filter_map(|(source, result)| match &result.measured {
        Measured::Transfer(one) => Some((source, result, &**one)),
        _ => None,
    });
    all.take(MOST_RUNS)
}

/// `client to server`.
pub(super) const fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "client to server",
        Direction::Reverse => "server to client",
    }
}

/// Most segments in a congestion window that each lost segment leaves: Linux begins anew with one.
//= net/ipv4/tcp_input.c, tcp_enter_loss: snd_cwnd = tcp_packets_in_flight + 1
const FEW_SEGMENTS: u64 = 2;

/// Payload of a segment in packets of 9000 bytes, at the least, and in those of 1500, at the most.
const JUMBO: Bytes = Bytes(8_900);
const USUAL: Bytes = Bytes(1_460);

pub(super) fn nothing(explained: &Explained<'_>) -> Vec<Remark> {
    let still = transfers(explained).filter(|(_, _, one)| one.goodput.0 == 0);
    still.filter_map(stuck).collect()
}

fn stuck((source, result, one): Of<'_>) -> Option<Remark> {
    let told = |what: &str| {
        let what = format!("{}: nothing arrived; {what}", way(one.direction));
        Remark::new(Stands::Found, what).of(one.direction).shown_by(source, result)
    };
    if one.carrier == Carrier::Udp {
        return Some(
            told("every datagram was lost or refused")
                .names(&["path-loss", "socket-drops"])
                .next("see whether a firewall counts them", "sudo nft list ruleset"),
        );
    }
    let repeated = one.retransmits?;
    let sent_again = format!("{repeated} segments were sent again");
    if repeated == 0 {
        return Some(told("nothing was sent again either, so that nothing was lost: the sender had nothing to send, or was not allowed to")
            .because(sent_again)
            .names(&[])
            .next("the same test without -w and other limits", "iperf3 -c HOST"));
    }
    let Some(window) = one.window else {
        return Some(
            told("what was sent was lost")
                .because(sent_again)
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
    let held = format!("{sent_again}, and the congestion window was {window} at most");
    if (JUMBO.0..JUMBO.0 * FEW_SEGMENTS).contains(&window.0) {
        let what = "the connection opened, and not one packet of 9000 bytes got through: a port between the hosts lets \
                    only smaller ones pass";
        return Some(probe(told(what).because(held).names(&["mtu-black-hole"])));
    }
    let what = "the connection opened, and what was sent then was lost";
    let remark = told(what).because(held);
    Some(if window.0 <= USUAL.0 * FEW_SEGMENTS {
        probe(remark.names(&["mtu-black-hole", "path-loss"]))
    } else {
        remark
            .names(&["path-loss", "mtu-black-hole"])
            .next("see what the path does with the packets", "linerate run HOST")
    })
}

/// Share of the segments from which loss is worth a word, and from which loss itself is the answer.
const SOME: f64 = 0.001;
const LOSES: f64 = 0.01;

/// Share from which a link is bad rather than full.
const BAD: f64 = 0.1;

/// Variation within which a rate is steady, as a share of its median.
const STEADY: f64 = 0.05;

/// Least number of intervals that show a course.
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
        "{}: {:.2} % of the segments were sent again, and {} arrived",
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
    if let Some(asked) = one.asked.filter(|asked| asked.0 > one.goodput.0) {
        remark = remark.because(format!("{asked} were asked for: that is not the limit"));
    }
    // A policer leaves a steady rate, and a full queue loses as well.
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

/// Whether the judge knows that the rate of a direction fell while it was loaded.
pub(super) fn fell(explained: &Explained<'_>, one: &Transfer) -> bool {
    let model = explained.model.iter();
    model
        .flat_map(|model| &model.directions)
        .any(|of| of.direction == one.direction && of.fell.is_some())
}

/// Whether rates vary little, the first one aside.
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

/// Ratio of the first rate to the one that follows from which the rate has changed, and of a first interval alone.
const STEP: f64 = 4.0 / 3.0;
const FIRST: f64 = 1.5;

/// Intervals for which the later rate must hold.
const HOLDS: usize = 3;

pub(super) fn step(explained: &Explained<'_>) -> Vec<Remark> {
    let all =
        transfers(explained).filter(|(_, _, one)| !fell(explained, one) && one.asked.is_none());
    all.filter_map(stepped).collect()
}

/// Most intervals that are compared with all others.
const MOST: usize = 256;

/// The means of intervals that are joined until they are few enough, and how many of them each has.
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
    // A bucket is full when a load begins. Later on other traffic that begins takes as much.
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

/// Share of the offered datagrams below which the path carried the load, and from which it did not.
const WHOLE: f64 = 0.005;
const LOSSY: f64 = 0.005;

/// Ratio of loads whose shares of loss tell a bad link from a full one, and the ratio within which these are one share.
const APART: f64 = 1.5;

/// Ratio of two offered rates from which they are one.
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

/// Largest datagram that an MTU of 1500 carries in one packet, with the header of IPv4.
const WHOLE_PACKET: Bytes = Bytes(1_472);

/// Large datagrams that are lost, where small ones at that rate are not: each of their packets may be lost.
fn split(
    explained: &Explained<'_>,
    runs: &[(Of<'_>, f64, f64)],
    hardest: &(Of<'_>, f64, f64),
) -> Option<Remark> {
    let ((source, result, one), offered, lost) = hardest;
    let large = one.size.filter(|size| *size > WHOLE_PACKET)?;
    // A socket with room for few of them loses them alike.
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

/// Loads by UDP of one direction, by the rate that was offered: where loss begins, or that it is a share of any load.
fn knee(explained: &Explained<'_>, runs: &[(Of<'_>, f64, f64)]) -> Option<Remark> {
    let gentlest = runs.first()?;
    let hardest = runs.iter().rev().find(|run| run.2 >= LOSSY)?;
    let ((source, result, one), offered, lost) = *hardest;
    let way = way(one.direction);
    let got = Rate(one.goodput.0);
    let told =
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
        told(format!(
            "{way}: {:.1} % of the datagrams were lost, and another run at that rate lost next to none: not the rate loses \
             them, but how they are sent, or something that comes and goes",
            lost * 100.0
        ))
        .names(&["path-loss", "socket-drops"])
        .rules_out(&["path-rate"])
        .because(row(whole))
        .next("the same run again, in turns", "iperf3 -c HOST -u -b RATE")
    } else if let Some(whole) = whole {
        told(format!(
            "{way}: the path carries about {got}: {} arrived whole, and of more a part is lost",
            Rate(whole.1 as u64)
        ))
        .names(&["path-rate"])
        .rules_out(&["path-loss"])
        .because(row(whole))
        .next("rates between both", "iperf3 -c HOST -u -b RATE")
    } else if offered >= gentlest.1 * APART && largest <= smallest * APART {
        told(format!("{way}: {:.0} % of the datagrams are lost at every rate: a link or a port loses them, and no limit of the rate does", lost * 100.0))
            .names(&["path-loss"])
            .rules_out(&["path-rate"])
            .because(row(gentlest))
            .next("the counters of every port of the path", "ethtool -S PORT")
    } else {
        told(format!("{way}: {:.1} % of the datagrams were lost, and {got} arrived", lost * 100.0))
            .names(&["path-rate", "path-loss", "socket-drops"])
            .next("half the rate: loss that stays a share is the link's, loss that ends is a limit of the rate", "iperf3 -c HOST -u -b RATE")
    };
    Some(remark.because(row(hardest)))
}
