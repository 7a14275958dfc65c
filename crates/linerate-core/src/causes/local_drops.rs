//! Packets that the hosts drop themselves: a queue, a ring or a backlog has no room for them.

use std::collections::BTreeMap;

use super::cpu_share::is_excluded;
use super::datagrams::OVERRUN;
use super::lossy::sent_again;
use super::path_rate::held_back;
use super::predict::{GAIN, bystander};
use super::{Answer, Cause, Finding, LOSSY, base, lacks, percent};
use crate::model::{Load, Local, LocalEvent, Model};
use crate::plan::Direction;
use crate::record::TrialPlan;
use crate::stats::{EQUAL, Range};
use crate::trial::Factor;
use crate::verdict::{Advice, Place, Stage};

pub(crate) const ID: &str = "local-drops";

/// Cause `local-drops`.
pub(super) struct LocalDrops;

/// Bytes that a host handles as one packet at most, and drops as one.
//= include/linux/netdevice.h, GSO_LEGACY_MAX_SIZE
const GROUP: f64 = 65_536.0;

/// Part of what was sent again that drops of the hosts must explain to be what it comes of.
const MOST: f64 = 0.5;

/// What the hosts dropped of the payload of one direction.
#[derive(Default)]
struct Dropped<'a> {
    counters: Vec<&'a Local>,
    /// Packets in a second; each holds one segment or a group of them.
    per_sec: f64,
    /// Those of the sending host.
    by_sender: f64,
}

/// How much drops explain.
#[derive(PartialEq, Eq)]
enum Weight {
    /// Most of what was lost, at the least that they can be.
    Most,
    /// Too little to matter, at the most that they can be.
    Little,
    /// That depends on how many segments each of them held.
    Open,
}

impl Cause for LocalDrops {
    fn id(&self) -> &'static str {
        ID
    }
    fn stage(&self) -> Stage {
        Stage::Port
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let load = match base(model, direction) {
            Ok(load) => load,
            Err(answer) => return answer,
        };
        let dropped = dropped(load, direction);
        if !is_notable(load, &dropped) {
            let why = "the hosts dropped less than one packet of it in a second";
            return Answer::Clear(why.to_owned());
        }
        let held = match held(model, load, direction, &dropped) {
            Ok(held) => held,
            Err(answer) => return answer,
        };
        match weigh(load, &dropped) {
            None => lacks(model, "tcp", direction.sender()),
            Some(Weight::Little) => Answer::Clear(format!(
                "{}, too few to hold it back",
                words(load, &dropped)
            )),
            Some(weight) => finding(direction, load, held, (&dropped, &weight)),
        }
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        match trial.factor()? {
            // Others that send through the same queue may find it full as well, or fill the gaps.
            Factor::MoreStreams => Some(Range {
                low: 0.5,
                high: trial.stream_ratio() * 1.1,
            }),
            // What no longer is dropped is not sent again, and congestion control goes on.
            Factor::HostRoom => Some(Range {
                low: GAIN,
                high: f64::MAX,
            }),
            // Less at once, or on more CPUs, may just fit.
            Factor::HalfWindow | Factor::HalfSendBuffer | Factor::HostSpread => None,
            _ => bystander(model, trial),
        }
    }
    fn predict_loss(&self, _: &Model, trial: &TrialPlan) -> Option<Range> {
        // At half the pace there is room for what comes.
        (trial.factor()? == Factor::Paced).then_some(Range {
            low: 0.0,
            high: 0.3,
        })
    }
    fn decided_by(&self) -> &'static [Factor] {
        &[Factor::Paced, Factor::HostRoom]
    }
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        let load = model.direction(direction).map(|d| &d.base);
        let most = load.and_then(|load| most(load, direction));
        let gain = lifted(model, direction);
        let advice = most.and_then(room).map(|advice| Advice { gain, ..advice });
        advice.into_iter().collect()
    }
    fn page(&self) -> &'static str {
        include_str!("pages/local-drops.md")
    }
}

/// The counter of the hosts' own drops that tells most of them.
pub(crate) fn most(load: &Load, direction: Direction) -> Option<&Local> {
    let counters = dropped(load, direction).counters.into_iter();
    counters.max_by(|a, b| a.per_sec.total_cmp(&b.per_sec))
}

/// What more room gained, where that was tried.
fn lifted(model: &Model, direction: Direction) -> Option<f64> {
    let effect = model.tried(direction, Factor::HostRoom)?.effect?;
    (effect.low > EQUAL.high).then_some(effect.mid)
}

/// Why the network does not hold a direction back: the hosts themselves drop most of what is lost, and no trial has
/// shown that it does not come of that.
pub(super) fn holds(model: &Model, load: &Load, direction: Direction) -> Option<String> {
    let dropped = dropped(load, direction);
    let most = is_notable(load, &dropped) && weigh(load, &dropped) == Some(Weight::Most);
    let stands = most && !is_excluded(&LocalDrops, model, direction);
    stands.then(|| words(load, &dropped))
}

/// The drops on the way of the payload: at the sender where it leaves, at the receiver where it comes
/// in. Disciplines of one port count each other's drops, and a CPU's backlog those of its ports.
fn dropped(load: &Load, direction: Direction) -> Dropped<'_> {
    let (sender, receiver) = (direction.sender(), direction.receiver());
    let mut queues: BTreeMap<&str, &Local> = BTreeMap::new();
    let mut found = Dropped::default();
    let (mut backlog, mut arrival) = (Vec::new(), Vec::new());
    for local in &load.local {
        match local.what {
            LocalEvent::Queue if local.side == way(local, direction) => {
                let port = local.subject.split(' ').next().unwrap_or_default();
                let most = queues.entry(port).or_insert(local);
                if local.per_sec > most.per_sec {
                    *most = local;
                }
            }
            LocalEvent::Departure if local.side == sender => found.counters.push(local),
            LocalEvent::Ring if local.side == receiver => found.counters.push(local),
            LocalEvent::Backlog if local.side == receiver => backlog.push(local),
            LocalEvent::Arrival if local.side == receiver => arrival.push(local),
            _ => {}
        }
    }
    found.counters.extend(queues.into_values());
    let sum = |all: &[&Local]| all.iter().map(|l| l.per_sec).sum::<f64>();
    found.counters.extend(if sum(&backlog) >= sum(&arrival) {
        backlog
    } else {
        arrival
    });
    found.per_sec = sum(&found.counters);
    let of_sender = found.counters.iter().filter(|l| l.side == sender);
    found.by_sender = of_sender.map(|l| l.per_sec).sum();
    found
}

/// The end whose payload a discipline handles: that of arrivals stands at the receiver.
fn way(local: &Local, direction: Direction) -> crate::plan::Side {
    let kind = local.subject.split(' ').nth(1);
    match kind {
        Some("ingress" | "clsact") => direction.receiver(),
        _ => direction.sender(),
    }
}

/// What the drops explain of the slowness, and how it is known that something does: congestion control holds
/// the sender back; of datagrams those count that are dropped.
fn held(
    model: &Model,
    load: &Load,
    direction: Direction,
    dropped: &Dropped<'_>,
) -> Result<(f64, Option<String>), Answer> {
    if let Some(told) = &load.datagrams {
        return Ok((dropped.per_sec / (told.sent + dropped.per_sec), None));
    }
    held_back(model, direction).map(|held| (held.share, Some(held.why)))
}

/// Segments sent in a second, and those of them that were sent again; datagrams sent, and lost. `None` where
/// the sender's were not counted.
fn sent(load: &Load) -> Option<(f64, f64)> {
    let datagrams = load.datagrams.as_ref();
    let datagrams = datagrams.map(|told| (told.sent, told.sent * told.lost));
    datagrams.or(load.tcp.segments.zip(load.tcp.repeated))
}

/// Whether less is sent again than matters on every path, and it does on this one.
fn is_rare(load: &Load) -> bool {
    load.datagrams.is_none() && sent_again(load).is_some_and(|share| share <= LOSSY)
}

/// Whether the hosts dropped a packet in a second, or any where so few matter.
fn is_notable(load: &Load, dropped: &Dropped<'_>) -> bool {
    dropped.per_sec >= 1.0 || (is_rare(load) && dropped.per_sec > 0.0)
}

fn weigh(load: &Load, dropped: &Dropped<'_>) -> Option<Weight> {
    let (segments, repeated) = sent(load)?;
    let group = (GROUP / load.tcp.mss.map_or(1.0, |mss| mss.0 as f64)).max(1.0);
    // Nobody slows down for a datagram, and what a full queue refused is sent later: only what is lost counts.
    let least = if load.datagrams.is_some() {
        OVERRUN
    } else if is_rare(load) {
        0.0
    } else {
        LOSSY
    };
    if load.datagrams.is_some() && repeated < segments * least {
        return Some(Weight::Little);
    }
    let matters = |drops: f64| drops >= segments * least && drops >= repeated * MOST;
    Some(match dropped.per_sec {
        least if matters(least) => Weight::Most,
        least if matters(least * group) => Weight::Open,
        _ => Weight::Little,
    })
}

/// `900 packets dropped by the queue of near eth0 pfifo 1:, 300 in a second; 280 segments were sent
/// again`.
fn words(load: &Load, dropped: &Dropped<'_>) -> String {
    let all: Vec<String> = dropped.counters.iter().map(|l| l.words()).collect();
    let again = sent(load).map_or(String::new(), |(_, again)| match load.datagrams {
        Some(_) => format!(", and {again:.0} datagrams lost"),
        None => format!(", and {again:.0} segments sent again"),
    });
    format!(
        "{}, {:.0} in a second{again}",
        all.join("; "),
        dropped.per_sec
    )
}

fn finding(
    direction: Direction,
    load: &Load,
    (share, why): (f64, Option<String>),
    (dropped, weight): (&Dropped<'_>, &Weight),
) -> Answer {
    let of_sender = dropped.by_sender * 2.0 >= dropped.per_sec;
    let of = load.tcp.segments.map(|all| dropped.per_sec / all);
    let lost = of.map(|share| format!("that is {} of the segments sent", percent(share)));
    Answer::Finding(Finding {
        side: Place::from(if of_sender {
            direction.sender()
        } else {
            direction.receiver()
        }),
        share,
        enough: *weight == Weight::Most,
        reached: false,
        evidence: why
            .into_iter()
            .chain([words(load, dropped)])
            .chain(lost)
            .collect(),
    })
}

/// The command that makes room.
fn room(local: &Local) -> Option<Advice> {
    let mut words = local.subject.split(' ');
    let port = words.next()?;
    let before = |what: &str| format!("as it was: note `{what}` before");
    let (action, undo) = match (local.what, words.next()) {
        (LocalEvent::Queue, Some("ingress" | "clsact")) => (
            format!("take the filter away that drops: tc -s filter show dev {port} ingress"),
            String::new(),
        ),
        (LocalEvent::Queue, Some(kind)) => (
            format!(
                "sudo tc qdisc replace dev {port} root fq_codel, or a longer limit for its {kind}"
            ),
            before(&format!("tc -d qdisc show dev {port}")),
        ),
        (LocalEvent::Ring, _) => (
            format!(
                "sudo ethtool -G {port} rx N, N being the maximum that ethtool -g {port} shows"
            ),
            before(&format!("ethtool -g {port}")),
        ),
        (LocalEvent::Backlog, _) => (
            "sudo sysctl -w net.core.netdev_max_backlog=10000".to_owned(),
            before("sysctl net.core.netdev_max_backlog"),
        ),
        (LocalEvent::Departure, _) => (
            format!("sudo ip link set dev {port} txqueuelen 10000"),
            before(&format!("ip link show dev {port}")),
        ),
        _ => (
            format!("find out what {port} drops: ip -s -s link show dev {port}; ethtool -S {port}"),
            String::new(),
        ),
    };
    Some(Advice {
        action: format!("on {}: {action}", local.side.name()),
        undo,
        gain: None,
    })
}
