//! The path between the hosts carries one total rate, however many streams share it.

use super::buffer_bound::SUSPECT;
use super::core_bound::Role;
use super::cpu_share::stands;
use super::datagrams::{self, on_the_way};
use super::duplex::Duplex;
use super::predict::one_rate;
use super::softirq_core::SoftirqCore;
use super::{
    Answer, BUSY, Cause, CauseInfo, Finding, NoFinding, ack_way, arp_flux, base, burst_credit,
    contended, host_shaping, lacks, local_drops, path_reordering, reached, segment_size,
};
use crate::model::{DirectionModel, Load, Model, TrialModel};
use crate::signs::crowd::GROWS;
use crate::signs::lossy::{
    erratic, filled, lost, lost_in_words, marked, of_a_rate, often_sent_again,
};
use crate::signs::queue::{mostly_queued, standing_queue};
use crate::signs::threads::wanted_at;
use crate::signs::{GAIN, percent};
use linerate_facts::advice::Advice;
use linerate_plan::factor::Factor;
use linerate_plan::path::{Direction, Place, Side, Stage};
use linerate_plan::transport::{Scope, Transport};
use linerate_record::TrialPlan;
use linerate_units::Rate;
use linerate_units::stats::{EQUAL, Interval, Range};

/// Cause `path-rate`.
pub(super) struct PathRate;

/// Share of time that the sender must be held by congestion control alone for the path to be
/// suspected.
const HELD: f64 = 0.5;

/// Gain of goodput below which more streams carry the same.
const SAME: f64 = 1.05;

/// The factors whose trials can prove a rate that all traffic shares.
pub(super) const DECIDED_BY: &[Factor] = &[Factor::MoreStreams, Factor::Paced, Factor::Crowd];

static INFO: CauseInfo = CauseInfo {
    id: "path-rate",
    name: "the total rate is limited",
    scope: Scope::Sockets,
    stage: Stage::Net,
    decided_by: DECIDED_BY,
    page: include_str!("pages/path-rate.md"),
    ..CauseInfo::BASE
};

impl Cause for PathRate {
    fn info(&self) -> &'static CauseInfo {
        &INFO
    }
    fn check(&self, model: &Model, direction: Direction) -> Answer {
        let small = || base(model, direction).ok().and_then(segment_size::holds);
        if let Some(why) = burst_credit::holds(model, direction).or_else(small) {
            return Err(NoFinding::Clear(why));
        }
        let found = of_any(model, direction)?;
        match arp_flux::holds(model, direction) {
            Some(why) => Err(NoFinding::Clear(format!("it is another path: {why}"))),
            None => Ok(found),
        }
    }
    fn is_last(&self, model: &Model, direction: Direction) -> bool {
        // Datagrams have no standing queue to go by: their loss decides.
        let load = model.direction(direction).map(|dir| &dir.base);
        let load = load.filter(|load| load.transport == Transport::Tcp);
        load.is_some_and(|load| standing_queue(model, load).is_some())
    }
    fn predict(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        one_rate(model, trial)
    }
    fn predict_loss(&self, model: &Model, trial: &TrialPlan) -> Option<Range> {
        match trial.factor()? {
            Factor::Crowd => Some(GROWS),
            _ => of_a_rate(model, trial),
        }
    }
    fn is_about(&self, model: &Model, trial: &TrialPlan) -> bool {
        // More streams of datagrams carry no more where their hosts have no time to send more, either.
        let datagrams =
            model.direction(trial.direction).is_some_and(|d| d.base.transport == Transport::Udp);
        match trial.factor() {
            Some(Factor::MoreStreams) => !datagrams,
            factor => matches!(factor, Some(Factor::Paced | Factor::Crowd)),
        }
    }
    fn advice(&self, model: &Model, direction: Direction) -> Vec<Advice> {
        let Some(load) = model.direction(direction).map(|d| &d.base) else {
            return Vec::new();
        };
        let rate = Rate(load.goodput.mean as u64);
        let to = if contended::is_shared(load) {
            "what it carries".to_owned()
        } else {
            format!("about {rate} of payload")
        };
        vec![Advice::new(format!(
            "ask the operator of the network what limits it to {to}: a shaper, a slower link or a contract"
        ))]
    }
}

/// The answer for any load, whether the rate always was the same or not.
pub(super) fn of_any(model: &Model, direction: Direction) -> Answer {
    of_datagrams(model, direction).unwrap_or_else(|| of_connections(model, direction))
}

/// The answer for a load by connections, whatever fills the rate.
pub(super) fn of_connections(model: &Model, direction: Direction) -> Answer {
    let held = held_by_network(model, direction)?;
    path_reordering::alone(model, direction)
        .map_or_else(|| finding(model, direction, &held), |why| Err(NoFinding::Clear(why)))
}

/// A load whose sender is limited by the network, not by a window, a buffer or a CPU.
pub(super) struct Held<'a> {
    /// The load.
    pub load: &'a Load,
    /// Share of time in which the network limits the sender.
    pub(super) share: f64,
    /// How it is known that the network is the limit, for people.
    pub(super) why: String,
    /// Whether a trial removed the sender's limit for a good part of the time, without any gain.
    pub(super) lifted: bool,
}

/// The load of a direction if the way of its payload may limit it; else why not.
pub(super) fn held_by_network(model: &Model, direction: Direction) -> Result<Held<'_>, NoFinding> {
    let held = beyond_hosts(model, direction)?;
    ack_way::holds(model, direction).map_or(Ok(held), |why| Err(NoFinding::Clear(why)))
}

/// The load of a direction if the network may limit it, one way or the other; else why not.
pub(super) fn beyond_hosts(model: &Model, direction: Direction) -> Result<Held<'_>, NoFinding> {
    let held = held_back(model, direction)?;
    if let Some(own) = of_a_host(model, held.load, direction) {
        return Err(NoFinding::Clear(format!("a host does it itself: {own}")));
    }
    if matches!(Duplex.check(model, direction), Ok(f) if f.enough) {
        let why = "packets collide at a port: duplex";
        return Err(NoFinding::Clear(why.to_owned()));
    }
    Ok(held)
}

/// The reason why a host's own port or queue limits a load, and not the network.
pub(super) fn of_a_host(model: &Model, load: &Load, direction: Direction) -> Option<String> {
    host_shaping::holds(load, direction).or_else(|| local_drops::holds(model, load, direction))
}

fn no_rate(silent: f64) -> String {
    format!("no payload arrived in {} of the samples: that is no rate", percent(silent))
}

fn carried(more: &Load, gain: f64) -> String {
    format!("{} streams carried {gain:.2} times as much", more.streams)
}

/// The load of a direction if congestion control limits it, even if the reason is inside the hosts; else why
/// not.
pub(super) fn held_back(model: &Model, direction: Direction) -> Result<Held<'_>, NoFinding> {
    let load = base(model, direction)?;
    if let Some(silent) = load.silent() {
        return Err(NoFinding::Clear(no_rate(silent)));
    }
    let (Some(network), Some(starved)) = (load.tcp.network, load.tcp.starved) else {
        return Err(lacks(model, "tcp", direction.sender()));
    };
    // A window or buffer full of data that waits in a queue on the path is not the limit.
    let queued = mostly_queued(model, load);
    let lifted = lifted(model, direction);
    let share = if queued { 1.0 - starved } else { network + lifted };
    if let Some(why) = on_cpus(model, load, direction) {
        return Err(NoFinding::Clear(why));
    }
    if let Some(ceiling) = reached(model, direction) {
        return Err(NoFinding::Clear(format!(
            "{} itself carries no more than {}",
            ceiling.name, ceiling.rate
        )));
    }
    if share < HELD {
        return Err(NoFinding::Clear(format!(
            "congestion control held the sender only {} of the time",
            percent(share)
        )));
    }
    Ok(Held { load, share, why: why(queued, network, share), lifted: lifted >= SUSPECT })
}

/// A sentence with the evidence that the network limited the sender for `share` of the time. The kernel's
/// clocks show `network` of it.
fn why(queued: bool, network: f64, share: f64) -> String {
    if queued && network < HELD {
        "most of what the sender kept in flight waited in a queue on the path".to_owned()
    } else if network < HELD {
        "more window or buffer, where one held the sender, carried no more".to_owned()
    } else {
        format!(
            "congestion control held the sender {} of the time, no window or buffer did",
            percent(share)
        )
    }
}

/// Share of time that a window or a buffer limited the sender, if a trial enlarged it, or more streams had one
/// each, without a gain. A window slightly larger than the path needs looks like a limit, and is none. It
/// counts up to the growth of the network's share in the enlarged load: a window and a buffer of one size hide
/// each other, and so does a slow reader.
fn lifted(model: &Model, direction: Direction) -> f64 {
    let Some(base) = model.direction(direction).map(|d| &d.base) else {
        return 0.0;
    };
    let each = without_gain(model, direction, &[Factor::MoreStreams]).is_some();
    let of = |factors: &[Factor], held: Option<f64>| {
        if each {
            return held;
        }
        let trial = without_gain(model, direction, factors)?;
        let network = trial.changed.as_ref().and_then(|l| by_network(model, l));
        let before = base.tcp.network.unwrap_or(0.0);
        let more = network.map_or(1.0, |share| (share - before).max(0.0));
        Some(held?.min(more))
    };
    let window = of(&LARGER_WINDOW, base.tcp.rwnd_limited);
    let buffer = of(&[Factor::LargerSendBuffer, Factor::HostSendBuffer], base.tcp.sndbuf_limited);
    window.into_iter().chain(buffer).sum()
}

/// The trials of a larger receive window.
pub(super) const LARGER_WINDOW: [Factor; 2] = [Factor::LargerWindow, Factor::HostWindow];

/// The first trial of one of `factors` that certainly gained nothing.
pub(super) fn without_gain<'a>(
    model: &'a Model,
    direction: Direction,
    factors: &[Factor],
) -> Option<&'a TrialModel> {
    let tried = factors.iter().filter_map(|factor| model.tried(direction, *factor));
    let gained_nothing = |trial: &&TrialModel| {
        let effect = trial.effect;
        effect.is_some_and(|e| e.high < GAIN && e.mid >= EQUAL.low)
    };
    tried.into_iter().find(gained_nothing)
}

/// Share of the time that the network limited a load. If most of the data in flight waits in a queue on the
/// path, this is all the time in which the load had payload.
fn by_network(model: &Model, load: &Load) -> Option<f64> {
    if mostly_queued(model, load) {
        load.tcp.starved.map(|share| 1.0 - share)
    } else {
        load.tcp.network
    }
}

/// Names the part of an end that has no time left: a thread, or a CPU that only handles packets.
pub(super) fn on_cpus(model: &Model, load: &Load, direction: Direction) -> Option<String> {
    [direction.sender(), direction.receiver()].into_iter().find_map(|side| {
        let busy = wanted_at(load, direction, side).filter(|w| *w > BUSY);
        let busy = busy.filter(|_| !had_time(model, direction, side));
        let thread = busy.map(|w| {
            let w = percent(w);
            format!("the {} thread was busy {w} of the time", side.name())
        });
        thread.or_else(|| {
            let full = stands(&SoftirqCore, model, direction, side);
            full.then(|| format!("a CPU of {} is full of packets: softirq-core", side.name()))
        })
    })
}

/// Whether the threads of an end got more work and carried as much: then they only looked busy.
fn had_time(model: &Model, direction: Direction, side: Side) -> bool {
    let work = model.tried(direction, Role::of(side, direction).factor());
    let effect = work.and_then(|trial| trial.effect);
    effect.is_some_and(|effect| effect.low >= EQUAL.low)
}

fn finding(model: &Model, direction: Direction, held: &Held<'_>) -> Answer {
    let load = held.load;
    let mut evidence = vec![held.why.clone()];
    let mut same = false;
    let sweep = model.direction(direction).map(|d| d.sweep.iter());
    let gains = sweep.into_iter().flatten().map(|more| (more, gain(model, direction, load, more)));
    let gains: Vec<(&Load, Interval)> = gains.collect();
    let sure = gains.iter().max_by(|a, b| a.1.low.total_cmp(&b.1.low));
    if let Some((more, gain)) = sure.filter(|g| g.1.low > SAME.max(filled(model, load).high)) {
        return Err(NoFinding::Clear(carried(more, gain.mid)));
    }
    // Where twice the streams carried no more, a short look at even more counts only if it is sure.
    let twice = |more: &Load| Some(more.streams) == load.streams.checked_mul(2);
    let same_in_twice = gains.iter().find(|g| twice(g.0) && g.1.mid <= SAME);
    let most = gains.iter().max_by(|a, b| a.1.mid.total_cmp(&b.1.mid));
    if let Some((more, gain)) = same_in_twice.or(most) {
        let gain = gain.mid;
        evidence.push(if gain > SAME {
            format!(
                "{} streams carried {gain:.2} times as much, which is not clearly more than one rate",
                more.streams
            )
        } else {
            format!(
                "{} streams carried no more than {}: {}",
                more.streams,
                load.streams,
                Rate((load.goodput.mean * gain) as u64)
            )
        });
        same = gain <= SAME;
    }
    let queue = standing_queue(model, load);
    evidence.extend(queue.clone());
    let lossy = lost(load);
    evidence.extend(lossy.map(|share| lost_in_words(load, share)));
    let marked = marked(load);
    evidence.extend(marked.map(|r| format!("a queue marked {} of the segments (ECN)", percent(r))));
    evidence.extend(shared(load));
    Ok(Finding {
        side: Place::Path,
        share: held.share,
        // A queue on the way of its acknowledgements looks like one on its own.
        enough: same
            && !ack_way::may_hold(model, direction)
            && (queue.is_some()
                || held.lifted
                || (lossy.and(often_sent_again(load)).or(marked).is_some() && !erratic(load))),
        reached: false,
        evidence,
    })
}

/// The least factor by which more streams must send more before their goodput says anything about a rate.
const MORE: f64 = 1.2;

/// The answer for a load by datagrams. They are not held back, so the path loses those that exceed its rate.
/// `None` for a load by connections.
fn of_datagrams(model: &Model, direction: Direction) -> Option<Answer> {
    let dir = model.direction(direction)?;
    let told = dir.base.datagrams.as_ref()?;
    let way = match on_the_way(model, direction, (&dir.base, told)) {
        Ok(way) => way,
        Err(answer) => return Some(Err(answer)),
    };
    if let Some(silent) = dir.base.silent() {
        return Some(Err(NoFinding::Clear(no_rate(silent))));
    }
    let gains = || dir.sweep.iter().map(|more| (more, gain(model, direction, &dir.base, more)));
    if let Some((more, gain)) = gains().find(|(_, gain)| gain.low > SAME) {
        return Some(Err(NoFinding::Clear(carried(more, gain.mid))));
    }
    let sent_more = |more: &Load| {
        let told_more = more.datagrams.as_ref();
        told_more.is_some_and(|m| m.sent >= told.sent * MORE && datagrams::surely_on_the_way(m))
    };
    let same = gains().find(|(more, gain)| sent_more(more) && gain.mid <= SAME);
    let more = same.map(|(more, gain)| {
        let sent = more.datagrams.map_or(0.0, |m| m.sent) / told.sent;
        let streams = more.streams;
        format!(
            "{streams} streams sent {sent:.2} times as much, and {:.2} times as much arrived",
            gain.mid
        )
    });
    Some(Ok(Finding {
        side: Place::Path,
        share: way,
        enough: more.is_some() && datagrams::surely_on_the_way(told),
        reached: false,
        evidence: std::iter::once(datagrams::words(told, way, "lost on the path"))
            .chain(more)
            .chain(shared(&dir.base))
            .collect(),
    }))
}

/// Minimum rate of other traffic on a port, as a share of ours, at which the path's rate is reported as more
/// than ours.
const OTHERS: f64 = 0.05;

/// A remark that other traffic uses a part of the rate, if that is too little to invalidate the measurement.
fn shared(load: &Load) -> Option<String> {
    let few = OTHERS..contended::FOREIGN;
    let foreign = load.foreign.filter(|f| few.contains(&f.share))?;
    Some(format!(
        "the port of {} carried {} as many bytes of others",
        foreign.side.name(),
        percent(foreign.share)
    ))
}

/// The ratio of goodput with more streams: from the trial with as many, which alternates with the load, else
/// from one short measurement.
fn gain(model: &Model, direction: Direction, load: &Load, more: &Load) -> Interval {
    let tried = model.tried(direction, Factor::MoreStreams);
    let tried = tried.filter(|t| t.plan.after.streams == more.streams);
    tried.and_then(|t| t.effect).unwrap_or_else(|| more.over(load))
}

/// Factor for the evidence of a limit of each stream that a short look at twice as many streams leaves.
pub(super) fn of_each_stream(model: &Model, direction: Direction) -> f64 {
    let scaled = model.direction(direction).and_then(scales);
    if scaled.is_some_and(|(_, gain)| gain <= SAME) { 0.1 } else { 1.0 }
}

/// Whether more streams carried more, as far as this was measured.
pub(super) fn scales(direction: &DirectionModel) -> Option<(u32, f64)> {
    direction
        .sweep
        .iter()
        .find(|l| Some(l.streams) == direction.base.streams.checked_mul(2))
        .map(|l| (l.streams, l.goodput.mean / direction.base.goodput.mean))
}
