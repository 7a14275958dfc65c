//! What the hosts themselves drop of the payload of one direction, and how much it explains.

use super::{LOSSY, OVERRUN};
use crate::transport::Transport;
use std::collections::BTreeMap;

use super::lossy::{marked, sent_again};
use super::queue::standing_queue;
use crate::model::{Load, Local, LocalEvent, Model};
use crate::path::{Direction, Side};

/// Bytes that a host handles as one packet at most, and drops as one.
//= include/linux/netdevice.h, GSO_LEGACY_MAX_SIZE
const GROUP: f64 = 65_536.0;

/// Part of what was retransmitted, or lost, that drops must explain to be what it comes of.
pub(crate) const MOST: f64 = 0.5;

/// Drops in a second while the other direction is loaded, over those under this one's load, up to which they come of this
/// one's.
const ALONE: f64 = 0.5;

/// Drops in a second from which a filter drops what exceeds it, and not what strays by.
const POLICED: f64 = 10.0;

/// What the hosts dropped of the payload of one direction.
pub(crate) struct Dropped<'a> {
    pub(crate) counters: Vec<&'a Local>,
    /// Packets in a second; each holds one segment or a group of them.
    pub(crate) per_sec: f64,
    /// Those of the sending host.
    pub(crate) by_sender: f64,
    /// Segments (datagrams) in a second that they held, about: one each where nobody knows.
    pub(crate) segments: f64,
}

/// How much drops explain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Most of what was lost, as far as it is known how many segments each held.
    Most,
    /// Too little to matter, at the most that they can be.
    Little,
    /// That depends on how many segments each of them held.
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

/// The drops on the way of the payload: at the sender where it leaves, at the receiver where it comes
/// in. Disciplines of one port that hang together count each other's drops, and a CPU's backlog those of its ports.
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
            LocalEvent::Ring if local.side == receiver => counters.push(local),
            LocalEvent::Backlog if local.side == receiver => backlog.push(local),
            LocalEvent::Arrival if local.side == receiver => arrival.push(local),
            _ => {}
        }
    }
    counters.extend(queues.into_values());
    let sum = |all: &[&Local]| all.iter().map(|l| l.per_sec).sum::<f64>();
    counters.extend(if sum(&backlog) >= sum(&arrival) {
        backlog
    } else {
        arrival
    });
    Dropped::of(counters, load, sender)
}

/// Whether what a discipline drops is payload of a direction: a queue is passed by what leaves, a filter of arrivals by
/// what comes in. `clsact` has filters of both and one counter.
fn handles(model: &Model, load: &Load, direction: Direction, local: &Local) -> bool {
    let sends = local.side == direction.sender();
    match local.kind() {
        Some("clsact") if sends => drops_what_leaves(model, load, direction, local),
        Some("ingress" | "clsact") => !sends,
        _ => sends,
    }
}

/// Whether what a sender's `clsact` drops is payload that leaves, and not the acknowledgements that come in: it drops
/// less while the port takes payload in instead; or it is the only reason for congestion control to slow down, which
/// what is refused on the way out is without being retransmitted.
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
    let lossy = || sent_again(load).or_else(|| marked(load)).is_some();
    !as_many || !(lossy() || standing_queue(model, load).is_some())
}

/// Segments of a load in a second that the packets of a counter held, about. A filter drops what exceeds it, the largest
/// first, and what passes tells nothing of how large they were; the few that it drops for another reason are none.
pub(crate) fn segments(load: &Load, local: &Local) -> f64 {
    if local.sees_arrivals() {
        let exceeds = local.per_sec >= POLICED;
        return local.per_sec * if exceeds { most_of(load) } else { 1.0 };
    }
    let full = load
        .packets
        .map(|sizes| sizes.packet.unwrap_or(sizes.payload));
    let each = local
        .bytes
        .zip(full)
        .map(|(bytes, full)| bytes / full.0 as f64);
    local.per_sec * each.unwrap_or(1.0).clamp(1.0, most_of(load))
}

/// Segments that a host handles as one packet at most.
pub(crate) fn most_of(load: &Load) -> f64 {
    (GROUP / load.packets.map_or(1.0, |sizes| sizes.payload.0 as f64)).max(1.0)
}

/// Segments sent in a second, and those of them that were retransmitted; datagrams sent, and lost. `None` where
/// the sender's were not counted.
pub(crate) fn sent(load: &Load) -> Option<(f64, f64)> {
    let datagrams = load.datagrams.as_ref();
    let datagrams = datagrams.map(|told| (told.sent, told.sent * told.lost));
    datagrams.or(load.tcp.segments.zip(load.tcp.repeated))
}

/// Whether less is retransmitted than matters on every path, and it does on this one.
fn is_rare(load: &Load) -> bool {
    load.transport == Transport::Tcp && sent_again(load).is_some_and(|share| share <= LOSSY)
}

/// Whether the hosts dropped a packet in a second, or any where so few matter.
pub(crate) fn is_notable(load: &Load, dropped: &Dropped<'_>) -> bool {
    dropped.per_sec >= 1.0 || (is_rare(load) && dropped.per_sec > 0.0)
}

pub(crate) fn weigh(load: &Load, dropped: &Dropped<'_>) -> Option<Weight> {
    let (segments, repeated) = sent(load)?;
    // Nobody slows down for a datagram, and what a full queue refused is sent later: only what is lost counts.
    let least = if load.transport == Transport::Udp {
        OVERRUN
    } else if is_rare(load) {
        0.0
    } else {
        LOSSY
    };
    if load.transport == Transport::Udp && repeated < segments * least {
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
