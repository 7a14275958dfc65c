//! Packets of one direction that the hosts themselves drop, and how much of the loss these drops explain.

use super::{LOSSY, OVERRUN};
use linerate_plan::transport::Feature;
use std::collections::BTreeMap;

use super::lossy::{marked, retransmitted_share};
use super::queue::standing_queue;
use crate::model::{Load, Local, LocalEvent, Model};
use linerate_plan::path::{Direction, Side};

/// Largest number of bytes that a host handles, and drops, as one packet.
//= include/linux/netdevice.h, GSO_LEGACY_MAX_SIZE
const GROUP: f64 = 65_536.0;

/// Share of the loss, or of the retransmissions, that the hosts' drops must explain before they count as its reason.
pub(crate) const MOST: f64 = 0.5;

/// Ratio of a counter's drops per second while the other direction is loaded, to its drops while this direction is
/// loaded. Up to this ratio, the drops belong to this direction.
const ALONE: f64 = 0.5;

/// Minimum drops per second at which a filter enforces a rate. Fewer are stray packets.
const POLICED: f64 = 10.0;

/// Packets of one direction that the hosts dropped.
pub(crate) struct Dropped<'a> {
    pub(crate) counters: Vec<&'a Local>,
    /// Dropped packets per second; each holds one segment or a group of segments.
    pub(crate) per_sec: f64,
    /// Dropped packets per second at the sending host.
    pub(crate) by_sender: f64,
    /// Estimated segments (datagrams) per second in the dropped packets: one in each packet if the number is unknown.
    pub(crate) segments: f64,
}

/// How much of the losses the hosts' drops explain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Most of the losses, as far as the number of segments in each dropped packet is known.
    Most,
    /// Too few of the losses to matter, even with the largest possible number of segments in each dropped
    /// packet.
    Little,
    /// Most or little of the losses: it depends on the number of segments in each dropped packet.
    Open,
}

impl<'a> Dropped<'a> {
    fn of(counters: Vec<&'a Local>, load: &Load, sender: Side) -> Self {
        let of_sender = counters.iter().filter(|local| local.side == sender);
        Self {
            per_sec: counters.iter().map(|local| local.per_sec).sum(),
            by_sender: of_sender.map(|local| local.per_sec).sum(),
            segments: counters.iter().map(|local| segments(load, local)).sum(),
            counters,
        }
    }
}

/// The drops along the payload's path: those of departing packets at the sender, and of arriving packets at the
/// receiver. Nested queueing disciplines of one port count each other's drops, and a CPU's backlog counts those of
/// its ports: only the larger count is used.
pub(crate) fn dropped<'a>(model: &Model, load: &'a Load, direction: Direction) -> Dropped<'a> {
    let (sender, receiver) = (direction.sender(), direction.receiver());
    let mut queues: BTreeMap<(bool, bool, &str), &Local> = BTreeMap::new();
    let (mut counters, mut backlog, mut arrival) = (Vec::new(), Vec::new(), Vec::new());
    for local in &load.local {
        match local.what {
            LocalEvent::Queue if handles(model, load, direction, local) => {
                let sends = local.side == sender;
                let tree = queues.entry((sends, local.sees_arrivals(), local.port()));
                let most = tree.or_insert(local);
                if local.per_sec > most.per_sec {
                    *most = local;
                }
            }
            LocalEvent::Departure if local.side == sender => counters.push(local),
            // A full table drops packets of connections without an entry. The connections of a TCP load are
            // established, and have entries.
            LocalEvent::Connection if load.has(Feature::Datagrams) => counters.push(local),
            LocalEvent::Ring if local.side == receiver => counters.push(local),
            LocalEvent::Backlog if local.side == receiver => backlog.push(local),
            LocalEvent::Arrival if local.side == receiver => arrival.push(local),
            _ => {}
        }
    }
    counters.extend(queues.into_values());
    let sum = |all: &[&Local]| all.iter().map(|l| l.per_sec).sum::<f64>();
    counters.extend(if sum(&backlog) >= sum(&arrival) { backlog } else { arrival });
    Dropped::of(counters, load, sender)
}

/// Whether a queueing discipline drops payload of a direction. Departing packets pass a queue; arriving packets pass
/// an ingress filter. `clsact` filters departing and arriving packets with one counter.
fn handles(model: &Model, load: &Load, direction: Direction, local: &Local) -> bool {
    let sends = local.side == direction.sender();
    match local.kind() {
        Some("clsact") if sends => drops_what_leaves(model, load, direction, local),
        Some("ingress" | "clsact") => !sends,
        _ => sends,
    }
}

/// Whether a sender's `clsact` drops departing payload rather than arriving acknowledgements. This holds if it drops
/// less while the port receives payload instead. It also holds if its drops are the only reason for congestion
/// control to slow down: a packet that is refused on departure slows it down without a retransmission.
fn drops_what_leaves(model: &Model, load: &Load, direction: Direction, local: &Local) -> bool {
    let others = model.directions.iter();
    let mut others = others.filter(|other| other.direction != direction);
    let same = |other: &&Local| {
        (other.side, other.what, &other.subject) == (local.side, local.what, &local.subject)
    };
    let as_many = others.any(|other| {
        let found = other.base.local.iter().find(same);
        found.is_some_and(|found| found.per_sec > local.per_sec * ALONE)
    });
    let lossy = || retransmitted_share(load).or_else(|| marked(load)).is_some();
    !as_many || !(lossy() || standing_queue(model, load).is_some())
}

/// Estimate of the load's segments per second in the packets that a counter counts. A filter drops the packets that
/// exceed its rate, the largest first, so the size of the packets that passed says nothing about the dropped ones. A
/// few drops have another reason, and count as one segment each.
pub(crate) fn segments(load: &Load, local: &Local) -> f64 {
    if local.sees_arrivals() {
        let exceeds = local.per_sec >= POLICED;
        return local.per_sec * if exceeds { most_of(load) } else { 1.0 };
    }
    let full = load.packets.map(|sizes| sizes.packet.unwrap_or(sizes.payload));
    let each = local.bytes.zip(full).map(|(bytes, full)| bytes / full.0 as f64);
    local.per_sec * each.unwrap_or(1.0).clamp(1.0, most_of(load))
}

/// Largest number of segments that a host handles as one packet.
pub(crate) fn most_of(load: &Load) -> f64 {
    (GROUP / load.packets.map_or(1.0, |sizes| sizes.payload.0 as f64)).max(1.0)
}

/// Segments sent and segments retransmitted per second; for datagrams, those sent and those lost. `None` if the
/// sender did not count them.
pub(crate) fn sent(load: &Load) -> Option<(f64, f64)> {
    let datagrams = load.datagrams.as_ref();
    let datagrams = datagrams.map(|reported| (reported.sent, reported.sent * reported.lost));
    datagrams.or(load.tcp.segments.zip(load.tcp.repeated))
}

/// Whether only few segments are retransmitted: a share that matters on this path, but not on every path.
fn is_rare(load: &Load) -> bool {
    load.has(Feature::Connections) && retransmitted_share(load).is_some_and(|share| share <= LOSSY)
}

/// Whether the hosts dropped at least one packet per second, or any packet if little was retransmitted.
pub(crate) fn is_notable(load: &Load, dropped: &Dropped<'_>) -> bool {
    dropped.per_sec >= 1.0 || (is_rare(load) && dropped.per_sec > 0.0)
}

pub(crate) fn weigh(load: &Load, dropped: &Dropped<'_>) -> Option<Weight> {
    let (segments, repeated) = sent(load)?;
    // No sender slows down for a lost datagram, and those that a full queue refused are sent later. Only loss
    // counts.
    let least = if load.has(Feature::Datagrams) {
        OVERRUN
    } else if is_rare(load) {
        0.0
    } else {
        LOSSY
    };
    if load.has(Feature::Datagrams) && repeated < segments * least {
        return Some(Weight::Little);
    }
    let matters = |drops: f64| drops >= segments * least && drops >= repeated * MOST;
    Some(if matters(dropped.segments) {
        Weight::Most
    } else if matters(dropped.per_sec * most_of(load)) {
        Weight::Open
    } else {
        Weight::Little
    })
}
