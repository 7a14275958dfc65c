//! Rules about the connections of transfers: windows and retransmissions. The judge needs the kernel's timers to call
//! one of them the limit; these rules only find figures that agree with one.

use super::super::Explained;
use super::{Remark, rate, transfers};
use linerate_facts::finding::Stands;
use linerate_judge::loss_leaves;
use linerate_judge::model::{DirectionModel, Load};
use linerate_record::reported::{Carrier, Transfer};
use linerate_units::{Bytes, Rate};

/// Least share of a window that is in flight when the window is full.
const FULL: f64 = 0.8;

/// Largest ratio of data in flight to the window; more cannot be explained by an error of the round trip.
const MOST: f64 = 1.5;

/// Range of the ratio of goodput to the rate that the loss formula allows, within which the loss explains the goodput.
const EXPLAINED: std::ops::RangeInclusive<f64> = 0.4..=2.5;

/// Least share of retransmitted segments that slows a sender down.
pub(super) const MATTERS: f64 = 1e-5;

fn bases<'a>(explained: &'a Explained<'_>) -> impl Iterator<Item = &'a DirectionModel> {
    let model = explained.model.iter();
    model.flat_map(|model| &model.directions)
}

/// The transfer that a direction's base load was derived from.
fn transfer<'a>(explained: &'a Explained<'_>, of: &DirectionModel) -> Option<&'a Transfer> {
    let alike = |one: &&Transfer| {
        let streams = one.streams.unwrap_or(1);
        let rate = one.goodput.0 as f64;
        one.carrier == Carrier::Tcp
            && one.direction == of.direction
            && streams == of.base.streams
            && (rate - of.base.goodput.mean).abs() < 1.0
    };
    explained.material.transfers().map(|(_, one)| one).find(alike)
}

pub(super) fn window(explained: &Explained<'_>) -> Vec<Remark> {
    let remark = |of: &DirectionModel| {
        let one = transfer(explained, of)?;
        let (flight, rtt) = (of.base.tcp.in_flight?, of.base.tcp.rtt?);
        let (window, name) = narrowest(one)?;
        // Then a smaller congestion window is the limit: if the receiver's window were the limit, it would have grown
        // beyond that.
        if one.window.is_some_and(|congestion| congestion < window) {
            return None;
        }
        let share = flight.0 as f64 / (window.0 as f64).max(1.0);
        (FULL..=MOST).contains(&share).then(|| {
            let what = format!(
                "each stream had {flight} in flight of {name} of {window}: with a round trip of {rtt} that is the rate \
                 it reached, and a larger one may carry more"
            );
            let cause = if one.buffer == Some(window) { "send-buffer" } else { "receive-window" };
            let remark = Remark::new(Stands::Found, what).names(&[cause]).of(of.direction);
            if one.buffer.is_some() {
                remark.next("let the kernel size the buffers: leave out -w", "")
            } else {
                remark.next("see what limits the window", "linerate run HOST")
            }
        })
    };
    bases(explained).filter_map(remark).collect()
}

/// Least share of the time that a window or buffer must hold the sender back to be its limit.
const HOLDS: f64 = 0.5;

/// Whether the receiver's window held the sender back. Retransmissions are then mostly window probes, not loss.
pub(super) fn is_held(one: &Transfer) -> bool {
    one.held.window.is_some_and(|share| share >= HOLDS)
}

pub(super) fn held(explained: &Explained<'_>) -> Vec<Remark> {
    let remark = |(source, result, one): transfers::Of<'_>| {
        let ends = [
            (one.held.window, "receive-window", "the receiver's window", one.direction.receiver()),
            (one.held.buffer, "send-buffer", "the send buffer", one.direction.sender()),
        ];
        let (share, cause, name, side) = ends
            .into_iter()
            .filter_map(|(share, cause, name, side)| {
                Some((share.filter(|share| *share >= HOLDS)?, cause, name, side))
            })
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        let what = format!(
            "{}: {name} held the sender for {:.1} % of the time in which it had data, at {}",
            transfers::way(one.direction),
            share * 100.0,
            rate(one.goodput.0 as f64)
        );
        let flight = one.round_trip.mean.map(|rtt| {
            let bytes = Bytes((one.goodput.0 as f64 / 8.0 * rtt.secs()) as u64);
            format!("with a round trip of {rtt} that is {bytes} in flight")
        });
        let next = match cause {
            "receive-window" => (
                "whether its program reads, and how large its buffer may grow",
                "sysctl net.ipv4.tcp_rmem",
            ),
            _ => ("how large the buffer may grow", "sysctl net.ipv4.tcp_wmem"),
        };
        let remark = Remark::new(Stands::Found, what)
            .names(&[cause])
            .of(one.direction)
            .at(side)
            .shown_by(source, result)
            .next(next.0, next.1);
        Some(flight.into_iter().fold(remark, Remark::because))
    };
    transfers::transfers(explained).filter_map(remark).collect()
}

/// The smallest known bound on the data that a stream has in flight, with its name.
fn narrowest(one: &Transfer) -> Option<(Bytes, &'static str)> {
    let offered = one.offered.map(|bytes| (bytes, "the receiver's window"));
    let buffer = one.buffer.map(|bytes| (bytes, "a requested buffer"));
    [offered, buffer].into_iter().flatten().min_by_key(|(bytes, _)| *bytes)
}

pub(super) fn loss(explained: &Explained<'_>) -> Vec<Remark> {
    let bases = bases(explained);
    bases
        .filter_map(|of| Some(lossy(&of.base)?.names(&["path-loss", "path-rate"]).of(of.direction)))
        .collect()
}

fn lossy(load: &Load) -> Option<Remark> {
    let lost = load.tcp.retransmitted.filter(|share| *share >= MATTERS)?;
    let left = loss_leaves(load, lost)?;
    let ratio = load.goodput.mean / left.max(1.0);
    EXPLAINED.contains(&ratio).then(|| {
        let what = format!(
            "{:.3} % of the segments were retransmitted: loss at random would leave about {}, and {} was reached",
            lost * 100.0,
            Rate(left as u64),
            Rate(load.goodput.mean as u64)
        );
        Remark::new(Stands::Found, what)
            .because("the formula is that of loss-based congestion control; a full queue loses packets as well")
            .next("tell loss at random from a rate that is exceeded", "linerate run HOST")
    })
}
