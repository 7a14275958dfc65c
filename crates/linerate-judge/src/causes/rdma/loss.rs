//! RDMA packets are lost or reordered in the network, and the device retransmits.

use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use crate::causes::rdma::verbs::{
    End, Ends, MATTERS, STALLED, THROUGHOUT, only_reliable, queue_pairs, silent, stack,
};
use crate::causes::rerun;
use crate::model::VerbsCount;
use crate::signs::round_trips::{idle_at_least, median};
use linerate_facts::advice::Step;
use linerate_facts::infiniband::Layer;
use linerate_facts::infiniband::counted::Meaning;
use linerate_plan::transport::rdma::{ACK_WAIT, Operation, TRAFFIC_CLASS};
use linerate_units::Nanos;
use linerate_units::shell::word;
use linerate_units::stats::EQUAL;

/// Minimum number of events in a load: fewer do not matter, unless their timers took time.
const FEW: f64 = 5.0;

/// Share of the events that an end's damaged or discarded packets must explain, for the loss to be at that end.
const MOST: f64 = 0.5;

/// Counters of a requester, each for another reason to retransmit.
const RETRANSMITTED: [Meaning; 3] =
    [Meaning::MissingReported, Meaning::ResponseMissing, Meaning::TimedOut];

/// Counters that prove lost packets by themselves; a timer may also expire for other reasons.
const MISSING: [Meaning; 2] = [Meaning::MissingReported, Meaning::ResponseMissing];

/// Counters that show at which port packets are lost.
const AT_A_PORT: [Meaning; 2] = [Meaning::Damaged, Meaning::Discarded];

const CONGESTION: [Meaning; 3] =
    [Meaning::CongestionMarked, Meaning::CongestionSent, Meaning::CongestionReceived];

pub(crate) static CAUSE: Cause = Cause {
    id: "rdma-loss",
    name: "packets are lost below RDMA",
    needs: &[Feature::Verbs],
    stage: Stage::Net,
    decided_by: &[],
    page: include_str!("../pages/rdma-loss.md"),
    at_an_end: Some(Stage::Port),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    only_reliable(load)?;
    let ends = Ends::of(model, load, direction)?;
    let lost = Lost::of(&ends)?;
    if let Some(gap) = untold(model, load, &ends) {
        return Err(NoFinding::Unknown(vec![gap]));
    }
    let stalls = stalls(load, &lost);
    if lost.count < FEW && stalls < STALLED && lost.waits(load) < MATTERS {
        return Err(clear(format!(
            "{:.0} packets were missed or not acknowledged in time",
            lost.count
        )));
    }
    let [least, most] = cost(model, load, &lost)?;
    let most = most.max(stalls);
    if most < MATTERS {
        return Err(clear(format!(
            "packets were retransmitted {:.0} times a second, which takes {} of the time",
            lost.missing + lost.timed_out,
            percent(most)
        )));
    }
    Ok(Finding::at(
        place(&ends, &lost),
        least.max(MATTERS),
        evidence(model, load, &ends, [least, most]),
    )
    .enough(least >= MATTERS && lost.is_certain()))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        // One stream sends while another one waits, unless both overrun one buffer.
        Factor::MoreStreams => Some(Range { low: EQUAL.low, high: trial.stream_ratio() * 1.1 }),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let load = model.direction(direction).map(|dir| &dir.base);
    let ends = load.and_then(|load| Ends::of(model, load, direction).ok());
    let Some(ends) = ends else {
        return Vec::new();
    };
    if is_infiniband(&ends) {
        vec![cable(&ends)]
    } else {
        vec![counters(model, &ends), lossless(model, &ends)]
    }
}

/// RDMA packets that arrived out of order, or not at all.
#[derive(Default)]
struct Lost {
    /// Gaps in the sequence of packets that an end noticed, per second.
    missing: f64,
    /// Acknowledgements that did not arrive in time, per second.
    timed_out: f64,
    /// Number of missing packets and late acknowledgements.
    count: f64,
    /// Number of quarters of the load's time in which there were any.
    quarters: u8,
}

impl Lost {
    /// The losses of a load by its counters. A requester counts its own losses. That of a software device does not
    /// count all gaps that are reported to it, but its responder counts each gap once; other responders count each
    /// packet behind a gap, or packets that were only reordered. A refusal for want of a receive request leaves a gap
    /// too, since the requests behind it were already sent.
    fn of(ends: &Ends<'_>) -> Result<Self, NoFinding> {
        const WHAT: &str = "retransmissions";
        let Ends { requester, responder } = ends;
        if requester.verbs.port.software {
            requester.counted(&MISSING, WHAT)?;
            responder.counted(&[Meaning::OutOfOrder], WHAT)?;
            let refused = responder.verbs.of(&[Meaning::NotReadySent]).next();
            let reported = requester.verbs.of(&MISSING);
            let reported = reported.map(|reported| Self::noticed(reported, None));
            let gaps = responder.verbs.of(&[Meaning::OutOfOrder]);
            let gaps = gaps.map(|gaps| Self::noticed(gaps, refused));
            let most = reported.chain(gaps).max_by(|a, b| a.count.total_cmp(&b.count));
            return Ok(most.unwrap_or_default());
        }
        requester.counted(&RETRANSMITTED, WHAT)?;
        let all = || requester.verbs.of(&RETRANSMITTED);
        Ok(Self {
            missing: requester.verbs.per_sec(&MISSING).unwrap_or(0.0),
            timed_out: requester.verbs.per_sec(&[Meaning::TimedOut]).unwrap_or(0.0),
            count: all().map(|count| count.count).sum(),
            quarters: all().map(|count| count.quarters).max().unwrap_or(0),
        })
    }

    /// The gaps that a counter shows, without those that refusals leave.
    fn noticed(gaps: &VerbsCount, refused: Option<&VerbsCount>) -> Self {
        let others = |of: fn(&VerbsCount) -> f64| (of(gaps) - refused.map_or(0.0, of)).max(0.0);
        Self {
            missing: others(|counter| counter.per_sec),
            timed_out: 0.0,
            count: others(|counter| counter.count),
            quarters: gaps.quarters,
        }
    }
}

/// The share of the samples in which nothing arrived; 0 if no packets were missing.
fn stalls(load: &Load, lost: &Lost) -> f64 {
    silent(load).filter(|_| lost.count > 0.0).unwrap_or(0.0)
}

/// The gap about reads and atomic operations of a software device that retried often: it counts lost responses together
/// with timers that expired without need.
fn untold(model: &Model, load: &Load, ends: &Ends<'_>) -> Option<Gap> {
    let returns = Operation::of(&load.knobs.options).returns();
    let requested = ends.requester;
    let mut retries = requested.verbs.of(&[Meaning::Retried]);
    let retries = retries.find(|_| returns && requested.verbs.port.software)?;
    let share = retries.per_sec * ACK_WAIT.secs() / queue_pairs(load);
    (retries.count >= FEW && share >= MATTERS).then(|| Gap {
        what: format!("lost responses to {}", requested.name()),
        why: format!(
            "it asked again {:.0} times, and its driver counts timers that expired without need as well",
            retries.count
        ),
        // With writes, the other end counts the gaps between packets.
        hint: rerun(model, " --op write"),
    })
}

impl Lost {
    /// Largest share of the time that timers may have taken. Devices that adapt their timers take less.
    //= NVIDIA, MLNX_OFED documentation, "Adaptive Retransmission": the timeout of the queue pair is the longest one
    fn waits(&self, load: &Load) -> f64 {
        self.timed_out * ACK_WAIT.secs() / queue_pairs(load)
    }

    /// Whether packets were missing again and again.
    fn is_certain(&self) -> bool {
        self.missing > 0.0 && self.count >= FEW && self.quarters >= THROUGHOUT
    }
}

/// The share of the time that the losses cost, at least and at most. All that was sent behind a lost packet is
/// retransmitted: as much as fits into one round trip, the idle one at least and the loaded one at most. A late
/// acknowledgement costs at least a round trip, and at most the duration of the timer.
fn cost(model: &Model, load: &Load, lost: &Lost) -> Result<[f64; 2], NoFinding> {
    let least = idle_at_least(model);
    let most = median(load.latency.as_ref()).max(least);
    let Some((least, most)) = least.zip(most) else {
        return Err(unknown(
            "round trips",
            "none was timed, so the cost of a retransmission is unknown",
        ));
    };
    let repeated = |events: f64, trip: Nanos| events * trip.secs() / queue_pairs(load);
    let least = repeated(lost.missing + lost.timed_out, least);
    let most = repeated(lost.missing, most) + lost.waits(load);
    Ok([least, most.max(least)].map(|share| share.min(1.0)))
}

/// The end whose port lost most of the packets by its own counters; else the path.
fn place(ends: &Ends<'_>, lost: &Lost) -> Place {
    let at = |end: &End<'_>| {
        let own = end.verbs.per_sec(&AT_A_PORT);
        own.is_some_and(|own| own >= (lost.missing + lost.timed_out) * MOST)
    };
    match ends.both().iter().filter(|end| at(end)).collect::<Vec<_>>()[..] {
        [only] => only.side.into(),
        _ => Place::Path,
    }
}

fn is_infiniband(ends: &Ends<'_>) -> bool {
    ends.requester.verbs.port.layer == Some(Layer::InfiniBand)
}

fn evidence(model: &Model, load: &Load, ends: &Ends<'_>, [least, most]: [f64; 2]) -> Vec<String> {
    let Ends { requester, responder } = ends;
    let counted_by = |end: &End<'_>, what: &str, meanings: &[Meaning]| {
        let words = end.verbs.words(meanings)?;
        Some(format!("{} {what}: {words}", end.name()))
    };
    let repeated = counted_by(requester, "had to retransmit", &RETRANSMITTED);
    let gaps = counted_by(responder, "received requests behind a gap", &[Meaning::OutOfOrder]);
    let of_the_time = if percent(least) == percent(most) {
        percent(least)
    } else {
        format!("{} to {}", percent(least), percent(most))
    };
    let takes = format!("retransmitting takes {of_the_time} of the time");
    let at_ports = ends
        .both()
        .into_iter()
        .filter_map(|end| counted_by(&end, "lost or damaged packets", &AT_A_PORT));
    let mut all: Vec<String> = [repeated, gaps, Some(takes)].into_iter().flatten().collect();
    all.extend(at_ports);
    if is_infiniband(ends) {
        let none = "an InfiniBand network loses packets by damage, or discards those that waited too long for a slow \
                    receiver (PortXmitDiscards)";
        all.push(none.to_owned());
    } else {
        all.extend(setup(model, load, ends));
    }
    all
}

/// The settings and counters that keep RoCE from losing packets, as far as they are known.
fn setup(model: &Model, load: &Load, ends: &Ends<'_>) -> Vec<String> {
    let class = load.knobs.options.number(TRAFFIC_CLASS.key).unwrap_or(0);
    let mut all = vec![format!(
        "the load has traffic class {class} (DSCP {}); whether PFC protects its priority, at the ports and in the switches, \
         is not known here",
        class / 4
    )];
    for end in ends.both() {
        let congestion = match (end.verbs.per_sec(&CONGESTION), end.verbs.words(&CONGESTION)) {
            (_, Some(words)) => Some(format!("{} counted congestion: {words}", end.name())),
            (Some(_), None) => Some(format!("{} was told of no congestion (ECN)", end.name())),
            (None, None) => None,
        };
        all.extend(congestion);
        all.extend(pauses(model, &end));
    }
    all
}

/// Whether the network port of an end's RDMA port sends pause frames, and obeys them, in words.
fn pauses(model: &Model, end: &End<'_>) -> Option<String> {
    let route = model.host(end.side)?.facts.route.as_ref()?;
    let netdev = end.verbs.port.netdev_name();
    let nic = route.ports.iter().find(|nic| nic.name == netdev)?;
    let pause = nic.pause?;
    let word = |on: bool| if on { "on" } else { "off" };
    Some(format!(
        "{} {netdev}: global pauses rx {}, tx {}",
        end.side.name(),
        word(pause.rx?),
        word(pause.tx?)
    ))
}

/// The physical network ports of an end, as words of a command: they have the counters and settings, which a VLAN or a
/// bond on top of them does not have.
fn wires(model: &Model, end: &End<'_>) -> Vec<String> {
    let port = &end.verbs.port;
    let below = stack(model, end.side, port).iter();
    let physical = below.filter(|nic| nic.kind.is_empty());
    let mut names: Vec<String> = physical.map(|nic| word(&nic.name)).collect();
    if names.is_empty() {
        names.push(match port.netdev_name() {
            "" => "PORT".to_owned(),
            name => word(name),
        });
    }
    names
}

fn counters(model: &Model, ends: &Ends<'_>) -> Advice {
    let look =
        "find where packets are lost: counters of both ports, and of each switch port between them";
    ends.both().iter().fold(Advice::new(look), |advice, end| {
        let port = word(&end.verbs.port.id());
        let wires = wires(model, end)
            .into_iter()
            .map(|wire| format!("; ethtool -S {wire} | grep -iE 'discard|drop|err|pause|pfc'"));
        let commands = wires.collect::<String>();
        advice.step(Step::on(end.side, format!("rdma statistic show link {port}{commands}")))
    })
}

fn lossless(model: &Model, ends: &Ends<'_>) -> Advice {
    let set = "let the network lose no packets of this priority: PFC or global pauses, and ECN, alike at both ports and in \
               all switches between them";
    ends.both().iter().fold(Advice::new(set), |advice, end| {
        wires(model, end).into_iter().fold(advice, |advice, wire| {
            advice
                .step(Step::on(end.side, format!("mlnx_qos -i {wire} || dcb pfc show dev {wire}")))
        })
    })
}

fn cable(ends: &Ends<'_>) -> Advice {
    let look = "find the port that counts errors: replace its cable or transceiver; where a switch port counts \
                PortXmitDiscards alone, find why the receiver behind it is slow";
    ends.both().iter().fold(Advice::new(look), |advice, end| {
        let device = word(&end.verbs.port.device);
        let port = end.verbs.port.port;
        advice.step(Step::on(end.side, format!("sudo perfquery -C {device} -P {port}")))
    })
}
