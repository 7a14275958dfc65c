//! Rules that compare rates of sockets with what standard links carry: full, nearly full, or more than is possible.

use super::super::{Explained, facts, side_name};
use super::course::{fell, is_flat, median};
use super::streams::{CAPPED, FLOW_CAPS, PATTERN};
use super::transfers::{Of, transfers, way};
use super::{Remark, counters, rate};
use linerate_ceiling::Link;
use linerate_ceiling::fingerprint::{Carrier as By, Kind, Variant, ways};
use linerate_facts::finding::Stands;
use linerate_plan::path::Side;
use linerate_record::reported::{Carrier, Counted, Transfer};
use linerate_units::Rate;

/// Least share of a link's ceiling at which the link is full; then the share by which a clock or a mean may exceed the
/// ceiling.
const FULL: f64 = 0.99;
const OFF: f64 = 0.002;

/// Whether a rate fills a link that carries `carries` bits per second. Programs print rates with three digits.
fn fills(bits: f64, carries: f64) -> bool {
    let third = 10_f64.powf(bits.max(1.0).log10().floor() - 2.0);
    (carries * FULL..=carries * (1.0 + OFF) + third / 2.0).contains(&bits)
}

/// Largest share of retransmitted segments, or of lost datagrams, on a path without a fault.
const CLEAN: f64 = 2e-4;

/// Least ratio by which another run counts as faster.
const FASTER: f64 = 1.02;

/// Least share of intervals that must be within `STEADY` of their median for a rate to last; `STEADY` is a share of the
/// median.
const MOST: f64 = 0.6;
const STEADY: f64 = 0.03;

/// Largest segment, in bytes, that fits into packets of 1500 bytes.
const SMALL: u32 = 1_500;

/// The rate that lasts: the median of the intervals if most are near it, or the mean if there are too few intervals;
/// `None` if the intervals differ too much, or count datagrams that were lost.
fn lasting(one: &Transfer) -> Option<f64> {
    const FEW: usize = 4;
    if one.ticks.len() < FEW {
        return Some(one.goodput.0 as f64);
    }
    let middle = median(&one.ticks);
    let alike = one.ticks.iter().filter(|tick| (*tick / middle - 1.0).abs() <= STEADY).count();
    // The intervals of UDP count what was sent. If datagrams were lost, they do not show the rate that arrived.
    let is_sent = one.carrier == Carrier::Udp && one.lost().is_some_and(|lost| lost > CLEAN);
    (alike as f64 >= one.ticks.len() as f64 * MOST && !is_sent).then_some(middle)
}

/// Whether a transfer lost more than a healthy path does; `false` if its output has no counts.
fn loses(explained: &Explained<'_>, one: &Transfer) -> bool {
    one.repeated().or(one.lost()).is_some_and(|share| share > CLEAN)
        && !(one.carrier == Carrier::Tcp && counters::is_needless(explained))
}

/// The protocols and packet sizes in which a transfer can use a link of Ethernet, each with its rate.
fn usable(one: &Transfer) -> impl Iterator<Item = (String, Variant)> {
    let protocol = if one.carrier == Carrier::Tcp { "TCP" } else { "UDP" };
    let is_small = one.segment.map(|segment| segment <= SMALL);
    ways(Kind::Ethernet, By::Sockets).filter(move |(_, way)| {
        let fits = is_small.is_none_or(|small| way.name.ends_with("MTU 1500") == small);
        way.name.starts_with(protocol) && fits
    })
}

/// The name of the standard link that a rate fills, and the packets with which it does.
fn filled(one: &Transfer, bits: f64) -> Option<(String, Variant)> {
    let off = |way: &Variant| (bits / way.rate - 1.0).abs();
    usable(one)
        .filter(|(_, way)| fills(bits, way.rate))
        .min_by(|(_, a), (_, b)| off(a).total_cmp(&off(b)))
}

/// Whether a transfer can be compared with a link: one direction alone, at full rate, complete, and counted at the
/// receiver.
fn counts(one: &Transfer) -> bool {
    let is_socket = matches!(one.carrier, Carrier::Tcp | Carrier::Udp);
    let is_sent = one.carrier == Carrier::Udp && one.counted == Counted::Sender;
    // A requested rate that was reached shows nothing about the link.
    let is_requested =
        one.requested.is_some_and(|requested| one.goodput.0 as f64 >= requested.0 as f64 * 0.97);
    is_socket
        && !(is_sent || is_requested || one.both || one.local == Some(true))
        && one.error.is_none()
}

/// Whether another run of the input carried more in the same direction.
fn is_beaten(explained: &Explained<'_>, one: &Transfer) -> bool {
    let mut others = transfers(explained).filter(|(_, _, other)| other.direction == one.direction);
    others.any(|(_, _, other)| other.goodput.0 as f64 > one.goodput.0 as f64 * FASTER)
}

pub(super) fn at_one(explained: &Explained<'_>) -> Vec<Remark> {
    let mut all: Vec<Remark> = Vec::new();
    for of in transfers(explained).filter(|(_, _, one)| counts(one) && !fell(explained, one)) {
        let known = explained.model.as_ref().and_then(|model| model.direction(of.2.direction));
        // The judge answers if it knows the host's port.
        if known.is_some_and(|known| known.ceiling().is_some()) || is_beaten(explained, of.2) {
            continue;
        }
        if let Some(remark) = full(explained, of)
            && !all.iter().any(|known| known.finding.what == remark.finding.what)
        {
            all.push(remark);
        }
    }
    all
}

fn full(explained: &Explained<'_>, of: Of<'_>) -> Option<Remark> {
    let (source, result, one) = of;
    if capped(one).is_some() {
        return None;
    }
    let bits = lasting(one).unwrap_or(one.goodput.0 as f64);
    let links = facts::links_of(explained.material);
    let (name, carries) = filled(one, bits)?;
    let is_known = links.iter().any(|link| name_of(*link) == name);
    // A link that is known to be another one rules this standard link out.
    if !links.is_empty() && !is_known {
        return None;
    }
    let words = rate(bits);
    let ceiling = format!("{}: {}", carries.name, rate(carries.rate));
    if loses(explained, one) || lasting(one).is_none() {
        let what = format!(
            "{words} is near what {name} carries, and the run was not steady or lost packets: it may be chance"
        );
        return Some(Remark::new(Stands::Doubt, what).because(ceiling));
    }
    let what = if is_known {
        format!(
            "{words} is all that {name} carries, and the path has such a link: it is as fast as it can be"
        )
    } else {
        format!(
            "{words} is what a full link of {name} carries: if the path has one, it is as fast as it can be"
        )
    };
    let remark =
        Remark::new(Stands::Good, what).because(ceiling).of(one.direction).shown_by(source, result);
    Some(if is_known {
        remark
    } else {
        remark.next("the speed of each port of the path", "ethtool PORT")
    })
}

/// The name of a link as the standard ceilings have it.
fn name_of(link: Link) -> String {
    match link {
        Link::Ethernet(rate) => format!("Ethernet {rate}"),
        Link::InfiniBand { width, speed } => format!("InfiniBand {} {width}x", speed.name()),
    }
}

/// The cap of one flow that every stream of a transfer reached.
fn capped(one: &Transfer) -> Option<Rate> {
    let at = |cap: &Rate| one.each.iter().all(|each| CAPPED.contains(&(each / cap.0 as f64)));
    FLOW_CAPS.into_iter().find(at).filter(|_| one.each.len() >= PATTERN)
}

pub(super) fn each(explained: &Explained<'_>) -> Vec<Remark> {
    let several = transfers(explained)
        .filter(|(_, _, one)| counts(one) && one.each.len() > 1 && !loses(explained, one));
    several.filter_map(ports).collect()
}

/// Remark on several streams that each fill a link: as many links are full.
fn ports((source, result, one): Of<'_>) -> Option<Remark> {
    let names: Option<Vec<String>> =
        one.each.iter().map(|each| Some(filled(one, *each)?.0)).collect();
    let names = names?;
    let name = names.first().filter(|first| names.iter().all(|name| name == *first))?;
    let (count, each) = (one.each.len(), median(&one.each));
    let what = format!(
        "each of {count} streams fills {name}: {count} such ports are full, and one stream never gets more than {} over them",
        rate(each)
    );
    Some(
        Remark::new(Stands::Good, what)
            .because("a bond sends all packets of a stream over one port")
            .of(one.direction)
            .shown_by(source, result)
            .next("the ports of the bond", "cat /proc/net/bonding/bond0"),
    )
}

pub(super) fn small_packets(explained: &Explained<'_>) -> Vec<Remark> {
    let large = transfers(explained)
        .filter(|(_, _, one)| counts(one) && one.segment.is_some_and(|s| s > SMALL));
    large.filter_map(as_small).collect()
}

/// Remark on a transfer whose packets have 9000 bytes, at the rate that a link carries in packets of 1500 bytes.
fn as_small((source, result, one): Of<'_>) -> Option<Remark> {
    let bits = one.goodput.0 as f64;
    let small = Transfer { segment: None, ..one.clone() };
    let (name, _) = filled(&small, bits).filter(|(_, way)| way.name.ends_with("MTU 1500"))?;
    let (_, large) = usable(one).find(|(link, _)| *link == name)?;
    let what = format!(
        "{}: {} is {:.0} % of what {name} carries in packets of 9000 bytes, {}, and what it carries in packets of 1500",
        way(one.direction),
        rate(bits),
        bits / large.rate * 100.0,
        rate(large.rate)
    );
    Some(
        Remark::new(Stands::Found, what)
            .because(format!("its segments had {} bytes", one.segment.unwrap_or(0)))
            .because("a part of the way may carry smaller packets, or a host is just as fast: the rate alone does not tell")
            .names(&["path-rate", "sender-core"])
            .of(one.direction)
            .shown_by(source, result)
            .next("the MTU of every port of the path", "ip link"),
    )
}

/// Rates at which providers set limits, in Gb/s.
const ROUND: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 20.0, 25.0, 50.0, 100.0];

/// Range of goodput over such a limit, as a ratio, at which the limit is reached.
const AT_ROUND: std::ops::RangeInclusive<f64> = 0.99..=1.003;

pub(super) fn round(explained: &Explained<'_>) -> Vec<Remark> {
    let one_flow = transfers(explained).filter(|(_, _, one)| {
        let is_flat = is_flat(&one.ticks) && !loses(explained, one) && one.repeated().is_some();
        counts(one) && one.carrier == Carrier::Tcp && is_flat && !is_beaten(explained, one)
    });
    one_flow.filter_map(limited).collect()
}

fn limited((source, result, one): Of<'_>) -> Option<Remark> {
    let bits = one.goodput.0 as f64;
    let limit = ROUND.into_iter().find(|limit| AT_ROUND.contains(&(bits / (limit * 1e9))))?;
    if filled(one, bits).is_some() {
        return None;
    }
    let limit = Rate((limit * 1e9) as u64);
    let what = format!(
        "{}: {} is flat, loses nothing and is no rate of a port: a limit of {limit} is set somewhere",
        way(one.direction),
        rate(bits)
    );
    let causes: &[&'static str] = if one.streams.is_none_or(|n| n == 1) {
        &["flow-rate-cap", "pacing", "path-rate"]
    } else {
        &["path-rate", "pacing"]
    };
    Some(
        Remark::new(Stands::Found, what)
            .because("TCP leaves less of a port of that speed: headers take their part")
            .names(causes)
            .of(one.direction)
            .shown_by(source, result)
            .next("more streams: a cap of one flow leaves each its own", "iperf3 -c HOST -P 8"),
    )
}

/// Least ratio of a rate to the capacity of its port that is impossible.
const ABOVE: f64 = 1.02;

pub(super) fn impossible(explained: &Explained<'_>) -> Vec<Remark> {
    let all = facts::ports_of(explained.material);
    let ports = Side::ALL.into_iter().filter_map(|side| {
        let own = all.iter().filter(|port| port.side == side);
        let speeds: Vec<f64> = own.map(|port| port.link.capacity().high() * 8.0).collect();
        (!speeds.is_empty()).then(|| (side, speeds.iter().sum::<f64>(), speeds.len()))
    });
    let Some((side, carries, count)) = ports.min_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Vec::new();
    };
    let above = transfers(explained).find(|(_, _, one)| {
        one.local != Some(true)
            && one.counted != Counted::Sender
            && one.goodput.0 as f64 > carries * ABOVE
    });
    let remark = above.map(|(source, result, one)| {
        let ports = if count == 1 { "the port".to_owned() } else { format!("the {count} ports") };
        let what = format!(
            "{} cannot pass {ports} of the {} that the facts show, {}: the test took another way, or the facts are of another host",
            rate(one.goodput.0 as f64),
            side_name(side),
            rate(carries)
        );
        Remark::new(Stands::Contradiction, what)
            .names(&["wrong-route"])
            .of(one.direction)
            .at(side)
            .shown_by(source, result)
            .next("the port that carries the path", "ip route get HOST")
    });
    remark.into_iter().collect()
}
