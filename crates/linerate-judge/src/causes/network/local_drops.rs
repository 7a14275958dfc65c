//! Packets that the hosts drop themselves: a queue, a ring, a backlog or the table of tracked connections has no room
//! for them, or a filter lets no more of them pass.

use crate::causes::host::cpu_share::is_excluded;
use crate::causes::network::held::held_back;
use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use crate::model::{Local, LocalEvent};
use crate::signs::dropped::{Dropped, Weight, dropped, is_notable, most_of, sent, weigh};
use linerate_facts::advice::Kept;
use linerate_units::shell::word;
use linerate_units::stats::EQUAL;

/// Minimum number of segments in a dropped packet at which their number is reported.
const GROUPS: f64 = 1.5;

pub(crate) static CAUSE: Cause = Cause {
    id: "local-drops",
    name: "the host itself drops packets",
    needs: &[Feature::Stack],
    stage: Stage::Port,
    decided_by: &[Factor::Paced, Factor::HostRoom],
    page: include_str!("../pages/local-drops.md"),
    of_delivery: true,
    check,
    predict,
    predict_loss,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let dropped = dropped(model, load, direction);
    if !is_notable(load, &dropped) {
        let why = "the hosts dropped less than one packet of it in a second";
        return Err(clear(why));
    }
    let held = held(model, load, direction, &dropped)?;
    match weigh(load, &dropped) {
        None => Err(lacks(model, "tcp", direction.sender())),
        Some(Weight::Little) => {
            Err(clear(format!("{}, too few to hold it back", words(load, &dropped))))
        }
        Some(weight) => Ok(finding(direction, load, held, (&dropped, &weight))),
    }
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        // More streams that send through one queue may find it full as well, or use the gaps that the others leave.
        Factor::MoreStreams => Some(Range { low: 0.5, high: trial.stream_ratio() * 1.1 }),
        // Packets that are no longer dropped need no retransmission, and congestion control does not slow
        // down.
        Factor::HostRoom => Some(Range { low: GAIN, high: f64::MAX }),
        // Fewer packets at once, or packets spread over more CPUs, may just fit.
        Factor::HalfWindow | Factor::HalfSendBuffer | Factor::HostSpread => None,
        _ => bystander(model, trial),
    }
}

fn predict_loss(_: &Model, trial: &TrialPlan) -> Option<Range> {
    // At half the pace the queue has room for all packets.
    (trial.factor()? == Factor::Paced).then_some(Range { low: 0.0, high: 0.3 })
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let load = model.direction(direction).map(|d| &d.base);
    let most = load.and_then(|load| most(model, load, direction));
    let gain = lifted(model, direction);
    let advice =
        most.and_then(|most| room(most, direction)).map(|advice| Advice { gain, ..advice });
    advice.into_iter().collect()
}

/// The counter of the hosts' own drops that counted most.
pub(crate) fn most<'a>(model: &Model, load: &'a Load, direction: Direction) -> Option<&'a Local> {
    let counters = dropped(model, load, direction).counters.into_iter();
    counters.max_by(|a, b| a.per_sec.total_cmp(&b.per_sec))
}

/// The gain of a longer queue, if a trial showed one.
fn lifted(model: &Model, direction: Direction) -> Option<f64> {
    let effect = model.tried(direction, Factor::HostRoom)?.effect?;
    (effect.low > EQUAL.high).then_some(effect.mid)
}

/// Why the network is not the limit of a direction: the hosts themselves drop most of the lost packets, and no
/// trial has shown another reason.
pub(crate) fn holds(model: &Model, load: &Load, direction: Direction) -> Option<String> {
    let dropped = dropped(model, load, direction);
    let most = is_notable(load, &dropped) && weigh(load, &dropped) == Some(Weight::Most);
    let stands = most && !is_excluded(&CAUSE, model, direction);
    stands.then(|| words(load, &dropped))
}

/// The share of the time, or of the datagrams, that the drops explain, and the evidence that goodput is low: congestion
/// control limits the sender; for datagrams, the dropped ones are counted.
fn held(
    model: &Model,
    load: &Load,
    direction: Direction,
    dropped: &Dropped<'_>,
) -> Result<(f64, Option<String>), NoFinding> {
    if let Some(reported) = &load.datagrams {
        return Ok((dropped.per_sec / (reported.sent + dropped.per_sec), None));
    }
    held_back(model, direction).map(|held| (held.share, Some(held.why)))
}

/// The drops in words: `900 packets dropped by the queue of near eth0 pfifo 1:, 300 in a second; 280 segments were sent
/// again`.
fn words(load: &Load, dropped: &Dropped<'_>) -> String {
    let all: Vec<String> = dropped.counters.iter().map(|l| l.words()).collect();
    let retransmitted = sent(load).map_or(String::new(), |(_, retransmitted)| {
        let is =
            if load.has(Feature::Datagrams) { "datagrams lost" } else { "segments retransmitted" };
        format!(", and {retransmitted:.0} {is}")
    });
    format!("{}, {:.0} in a second{retransmitted}", all.join("; "), dropped.per_sec)
}

/// The share of segments that were dropped, and how many were dropped as one packet, in words.
fn part(load: &Load, dropped: &Dropped<'_>) -> Option<String> {
    let all = load.tcp.segments?;
    let filtered = dropped.counters.iter().any(|local| local.sees_arrivals());
    let each = dropped.segments / dropped.per_sec;
    let (of, each) = if filtered {
        let most = most_of(load);
        (dropped.per_sec, format!(" at least: a filter drops up to {most:.0} as one"))
    } else if each >= GROUPS {
        (dropped.segments, format!(", about {each:.0} in each of them"))
    } else {
        (dropped.segments, String::new())
    };
    Some(format!("that is {} of the segments sent{each}", percent(of / all)))
}

fn finding(
    direction: Direction,
    load: &Load,
    (share, why): (f64, Option<String>),
    (dropped, weight): (&Dropped<'_>, &Weight),
) -> Finding {
    let of_sender = dropped.by_sender * 2.0 >= dropped.per_sec;
    let lost = part(load, dropped);
    let evidence = why.into_iter().chain([words(load, dropped)]).chain(lost).collect();
    Finding::at(
        Place::from(if of_sender { direction.sender() } else { direction.receiver() }),
        share,
        evidence,
    )
    .enough(*weight == Weight::Most)
}

/// The command that gives more room to the queue, ring or backlog that a counter belongs to.
fn room(local: &Local, direction: Direction) -> Option<Advice> {
    let mut words = local.subject.split(' ');
    let (side, name) = (local.side, words.next()?);
    let port = &word(name);
    Some(match (local.what, words.next()) {
        (LocalEvent::Queue, Some("ingress" | "clsact")) => {
            let hook = if side == direction.sender() { "egress" } else { "ingress" };
            Advice::new("remove the filter that drops, or raise its rate, burst and mtu")
                .on(side, format!("tc -s filter show dev {port} {hook}"))
        }
        (LocalEvent::Queue, Some(kind)) => {
            let what = format!("use fq_codel instead of {kind}, or give {kind} a longer limit");
            Advice::new(what).replacing_queue(side, name, "fq_codel")
        }
        (LocalEvent::Ring, _) => ring(side, name, "rx"),
        (LocalEvent::Backlog, _) => {
            let setting = "net.core.netdev_max_backlog";
            Advice::new("let more received packets wait for a CPU").keeping(
                side,
                Kept::sysctl(setting),
                format!("sudo sysctl -w {setting}=10000"),
            )
        }
        (LocalEvent::Connection, _) => {
            let setting = "net.netfilter.nf_conntrack_max";
            let what = "let the table of tracked connections hold more, at about 320 bytes of memory for each; or let the \
                        firewall not track this traffic";
            let set = format!("sudo sysctl -w {setting}=$(($(sysctl -n {setting}) * 4))");
            Advice::new(what).keeping(side, Kept::sysctl(setting), set)
        }
        (LocalEvent::Departure, Some(_)) => ring(side, name, "tx"),
        (LocalEvent::Departure, None) => {
            let file = "queue-length-before.txt";
            let set = |to: &str| format!("sudo ip link set dev {port} txqueuelen {to}");
            let kept = Kept {
                save: format!("cat /sys/class/net/{port}/tx_queue_len | tee {file}"),
                restore: set(&format!("$(cat {file})")),
            };
            Advice::new(format!("let more packets wait in {name}")).keeping(
                side,
                kept,
                set("10000"),
            )
        }
        _ => Advice::new(format!("find out why {name} drops packets"))
            .on(side, format!("ip -s -s link show dev {port}"))
            .on(side, format!("ethtool -S {port}")),
    })
}

/// The command that makes a ring of a card as long as the card allows. `ethtool -g` shows the maximum first, and then
/// the present length.
fn ring(side: Side, name: &str, way: &str) -> Advice {
    let (port, file) = (word(name), "ring-before.txt");
    let row = way.to_uppercase();
    let set = |to: &str| format!("sudo ethtool -G {port} {way} {to}");
    let kept = Kept {
        save: format!("ethtool -g {port} | tee {file}"),
        restore: set(&format!("$(awk '/^{row}:/ {{n = $2}} END {{print n}}' {file})")),
    };
    let most = format!("$(awk '/^{row}:/ {{print $2; exit}}' {file})");
    let what = format!("give {name} its longest {way} ring");
    Advice::new(what).keeping(side, kept, set(&most))
}
