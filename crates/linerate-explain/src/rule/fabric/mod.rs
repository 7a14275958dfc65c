//! Rules that compare rates of messages with what links and slots carry.

pub(super) mod collective;
pub(super) mod counters;
pub(super) mod node;
pub(super) mod packets;
pub(super) mod ports;
pub(super) mod slots;

use super::super::{Explained, facts};
use super::moved::{Moved, runs};
use super::{Remark, rate};
use linerate_ceiling::fingerprint::{self as print, At, Kind};
use linerate_ceiling::{Link, roce};
use linerate_facts::finding::Stands;
use linerate_facts::infiniband::Layer;
use linerate_record::reported::Carrier;
use linerate_units::Rate;
use packets::{GAIN, are_small, wire};

/// Most other hardware with the same ceiling that is named in a remark.
const BESIDE: usize = 2;

/// The hardware whose ceiling equals a rate of messages: by verbs; for a message library over an unknown transport, by
/// sockets if no link fits by verbs.
fn at(run: &Moved<'_>) -> Vec<At> {
    let verbs = hardware(run, print::Carrier::Verbs);
    let is_known = verbs.iter().any(|at| at.link.is_some());
    if run.carrier == Carrier::Rdma || is_known {
        return verbs;
    }
    hardware(run, print::Carrier::Sockets)
}

/// The hardware whose ceiling equals the rate of a run. Of several ways to use the hardware, the nearest that the
/// output does not contradict.
fn hardware(run: &Moved<'_>, carrier: print::Carrier) -> Vec<At> {
    let mut all: Vec<At> = Vec::new();
    for at in print::at(run.each_way(), carrier) {
        if !contradicts(run, &at) && all.iter().all(|known| known.name != at.name) {
            all.push(at);
        }
    }
    all
}

/// A link in words, with its data rate: `100 Gb/s (InfiniBand EDR 4x)`.
fn words(at: &At) -> String {
    match at.link {
        Some(link @ Link::InfiniBand { .. }) => {
            let bits = link.capacity().high() * 8.0;
            format!("{} ({})", Rate((bits / 1e8).round() as u64 * 100_000_000), at.name)
        }
        _ => at.name.clone(),
    }
}

/// Payload of the packets in one way to use a link, in bytes; `None` if the way names no MTU.
pub(super) fn payload(at: &At) -> Option<u32> {
    // For InfiniBand, `RDMA, MTU 4096` is the payload itself; for Ethernet the name has the MTU of Ethernet.
    let (_, named) = at.way.name.rsplit_once("MTU ")?;
    let named = named.parse().ok()?;
    if at.kind == Kind::Ethernet { roce::payload(named) } else { Some(named) }
}

/// Whether a run reports another packet size or another layer than this way to use a link.
fn contradicts(run: &Moved<'_>, at: &At) -> bool {
    let layer = run.setup.layer.is_some_and(|layer| match at.kind {
        Kind::InfiniBand => layer != Layer::InfiniBand,
        Kind::Ethernet => layer != Layer::Ethernet,
        _ => false,
    });
    let other_mtu = run.setup.mtu.is_some_and(|mtu| payload(at).is_some_and(|own| own != mtu));
    layer || other_mtu
}

/// Least ratio by which another run's rate is higher.
const ABOVE: f64 = 1.005;

/// The run with the highest rate in one direction, unless another run of the input that crossed a network is faster.
/// The sum of both directions counts only if there is no run in one direction.
fn top<'a>(explained: &Explained<'_>, all: &'a [Moved<'a>]) -> Option<&'a Moved<'a>> {
    let between = || all.iter().filter(|run| run.setup.only_host().is_none());
    let has_one = between().any(|run| !run.both);
    let counted = between().filter(|run| !(has_one && run.both));
    let top = counted.max_by(|a, b| a.each_way().total_cmp(&b.each_way()))?;
    let transfers = explained.material.transfers().map(|(_, one)| one.goodput.0 as f64);
    let others = transfers.chain(between().map(Moved::each_way));
    let is_above = others.reduce(f64::max).is_some_and(|other| other > top.each_way() * ABOVE);
    (top.is_level && !is_above).then_some(top)
}

/// Remark on a full link, if no other run is faster and both directions together show no fault.
pub(super) fn full(explained: &Explained<'_>) -> Option<Remark> {
    let all = runs(explained);
    let run = top(explained, &all)?;
    // If both directions share a limit, or packets could be larger, the link is not as fast as it can be.
    if super::runs::share(explained) || are_small(explained, run) || collective::is_spread(run) {
        return None;
    }
    let known = facts::links_of(explained.material);
    let is_known = |at: &At| at.link.is_some_and(|link| known.contains(&link));
    let found = at(run);
    let links = || found.iter().filter(|at| at.link.is_some());
    // If the path's links are known, others are ruled out. If only a sum of both directions is known, it may be that of
    // one direction.
    let first = match links().find(|at| is_known(at)) {
        Some(at) => at,
        None if known.is_empty() && !run.both => links().next()?,
        None => return None,
    };
    let each = if run.both { ", each way," } else { "" };
    let end = if is_known(first) {
        "and the path has such a link: it is as fast as it can be"
    } else {
        "if the path has one, it is as fast as it can be"
    };
    let named: Vec<String> =
        links().filter(|at| is_known(first) == is_known(at)).map(words).collect();
    let what = format!(
        "{}{each} is what a full link of {} carries: {end}",
        rate(run.each_way()),
        named.join(" or ")
    );
    let mut remark = Remark::new(Stands::Good, what).because(format!(
        "{}: {}",
        first.way.name,
        rate(first.way.rate)
    ));
    remark = beside(remark, first, &found);
    if let Some(larger) = larger(first) {
        remark = remark.because(larger);
    }
    if let Some(both) = super::runs::sum(&all) {
        remark = remark.because(both);
    }
    if !is_known(first) {
        remark = remark.next("the rate of the port", "ibstat");
    }
    remark = remark.names(&[]).shown_by(run.source, run.outcome);
    Some(match run.direction {
        Some(direction) => remark.of(direction),
        None => remark,
    })
}

/// Largest payload of a packet, in bytes.
const LARGEST: u32 = 4096;

/// The rate that the link would carry with larger packets, in words; `None` if it is hardly more.
fn larger(at: &At) -> Option<String> {
    let layer = match at.kind {
        Kind::InfiniBand => Layer::InfiniBand,
        Kind::Ethernet => Layer::Ethernet,
        _ => return None,
    };
    let (now, most) = (wire(layer, payload(at)?)?, wire(layer, LARGEST)?);
    let more = at.link?.capacity().high() * 8.0 / most;
    (now / most >= GAIN).then(|| format!("packets of {LARGEST} B would carry {}", rate(more)))
}

/// Adds to a remark other hardware with the same ceiling.
fn beside(remark: Remark, first: &At, all: &[At]) -> Remark {
    let others = all.iter().filter(|at| at.name != first.name && at.link.is_none());
    others.take(BESIDE).fold(remark, |remark, at| {
        remark.because(format!(
            "{} carries as much ({}: {})",
            at.name,
            at.way.name,
            rate(at.way.rate)
        ))
    })
}

/// Remark on a slot or USB port whose ceiling equals a rate that several sizes reach, if no link has that ceiling. It
/// is no proof of the limit.
pub(super) fn slot(explained: &Explained<'_>) -> Option<Remark> {
    let all = runs(explained);
    let run = top(explained, &all).filter(|run| !run.both)?;
    let found = at(run);
    let is_one = run.rows.len() == 1 || collective::is_spread(run);
    if found.iter().any(|at| at.link.is_some()) || is_one {
        return None;
    }
    let first = found.first()?;
    let what = format!(
        "{} is at no link's ceiling and at that of {}: it may be what the card sits in",
        rate(run.each_way()),
        first.name
    );
    let remark = Remark::new(Stands::Doubt, what).because(format!(
        "{}: {}",
        first.way.name,
        rate(first.way.rate)
    ));
    Some(remark.next("the slot that the card trained to", "sudo lspci -vv"))
}

/// Remark on messages within one host at the rate of a card: memory carries more.
pub(super) fn one_host(explained: &Explained<'_>) -> Vec<Remark> {
    let all = runs(explained);
    let within = all.iter().filter_map(|run| Some((run, run.setup.only_host()?)));
    let best = within.max_by(|(a, _), (b, _)| a.each_way().total_cmp(&b.each_way()));
    let known = facts::links_of(explained.material);
    best.map(|best| within_one(&known, best)).into_iter().collect()
}

fn within_one(known: &[Link], (run, host): (&Moved<'_>, &str)) -> Remark {
    // Shared memory may by chance be as fast as some Ethernet, so an Ethernet link must be known to be there.
    let is_card =
        |at: &At| at.kind == Kind::InfiniBand || at.link.is_some_and(|link| known.contains(&link));
    let card = at(run).into_iter().find(|at| is_card(at) && run.is_level);
    // Verbs cross the card even between two programs of one host.
    if run.carrier == Carrier::Rdma {
        let what = format!(
            "both ends are on one host, {host}: {} is a rate of its card and slot, and not of the network",
            rate(run.each_way())
        );
        return Remark::new(Stands::Found, what)
            .names(&["not-a-measurement"])
            .shown_by(run.source, run.outcome)
            .next("the same between two hosts", "ib_write_bw HOST");
    }
    let Some(card) = card else {
        let what = format!(
            "all processes ran on one host, {host}: {} is no rate of the network",
            rate(run.each_way())
        );
        return Remark::new(Stands::Doubt, what)
            .next("the same between two hosts", "mpirun -np 2 --host HOST1:1,HOST2:1 ./osu_bw");
    };
    let what = format!(
        "all processes ran on one host, {host}, and {} is what a card of {} carries: the messages cross the card, and shared memory is \
         not used",
        rate(run.each_way()),
        words(&card)
    );
    Remark::new(Stands::Found, what)
        .because("within a host large messages usually move at 10 GB/s and more")
        .because("nothing of it is a rate of the network between hosts")
        .names(&["wrong-route"])
        .shown_by(run.source, run.outcome)
        .next("the transports that UCX has on this host", "ucx_info -d")
        .next(
            "the same through shared memory, with UCX",
            "mpirun -np 2 -x UCX_TLS=self,sm --host HOST:2 ./osu_bw",
        )
        .next(
            "the same through shared memory, with Open MPI alone",
            "mpirun -np 2 --mca pml ob1 --mca btl self,vader --host HOST:2 ./osu_bw",
        )
}
