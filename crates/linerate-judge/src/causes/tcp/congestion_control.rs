//! The sender's congestion control sends less than the path and the hosts could carry.

use crate::causes::network::ack_way::held_by_network;
use crate::causes::network::held::{of_each_stream, scales};
use crate::causes::predict::{bystander, per_stream};
use crate::causes::prelude::*;
use crate::causes::rerun;
use crate::signs::bbr;
use crate::signs::lossy::{recovering, retransmitted_share};
use crate::signs::queue::standing_queue;
use linerate_facts::advice::Kept;
use linerate_units::shell::word;
use linerate_units::stats::{EQUAL, Interval};

pub(crate) static CAUSE: Cause = Cause {
    id: "congestion-control",
    name: "congestion control keeps its window small",
    needs: &[Feature::Connections],
    stage: Stage::Socket,
    decided_by: &[Factor::OtherCongestion, Factor::MoreStreams],
    page: include_str!("../pages/congestion-control.md"),
    slowed_by_queue: true,
    check,
    predict,
    decides,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let held = held_by_network(model, direction)?;
    if let Some(queue) = standing_queue(model, held.load) {
        return Err(clear(format!("it has a reason: {queue}")));
    }
    if model.idle.is_none() {
        return Err(unknown("idle latency", "without it a queue on the path cannot be seen"));
    }
    if held.load.tcp.retransmitted.is_none() {
        return Err(lacks(model, "tcp", direction.sender()));
    }
    if let Some(rerun) = retransmitted_share(held.load) {
        return Err(clear(format!(
            "it has a reason: {} of the bytes were retransmitted",
            percent(rerun)
        )));
    }
    let clamped = clamped(model, direction);
    if let Some(gap) = recovers(held.load).filter(|_| clamped.is_none()) {
        return Err(NoFinding::Unknown(vec![gap]));
    }
    let mut evidence = vec![if let Some(stood) = &clamped {
        stood.clone()
    } else if held.lifted {
        held.why
    } else {
        format!(
            "{} held the sender {} of the time, although nothing queued and {}",
            name(model, direction),
            percent(held.share),
            hardly_lost(held.load)
        )
    }];
    let scaled = model.direction(direction).and_then(scales);
    evidence.extend(scaled.map(|(n, gain)| format!("{n} streams carried {gain:.2} times as much")));
    Ok(Finding {
        side: Place::from(direction.sender()),
        share: held.share * of_each_stream(model, direction),
        // A rate limit for each flow that queues nothing looks like this cause, unless the window shows that the path
        // is not fully used.
        enough: clamped.is_some() && scaled.is_some_and(|(_, gain)| gain > GAIN),
        reached: false,
        evidence,
    })
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let clamped = clamped(model, trial.direction).is_some();
    match trial.factor()? {
        // A limit on the congestion window may or may not hold for another congestion control as well.
        Factor::OtherCongestion if clamped => None,
        // Any gain is possible, up to the next limit.
        Factor::OtherCongestion => Some(Range { low: GAIN, high: f64::MAX }),
        Factor::MoreStreams | Factor::Crowd => Some(Range { low: 1.03, ..per_stream(trial) }),
        _ => bystander(model, trial),
    }
}

fn decides(model: &Model, trial: &TrialPlan) -> bool {
    // Each stream has its own window. More streams therefore prove that the window was the limit only if it
    // is clamped.
    match trial.factor() {
        Some(Factor::MoreStreams) => clamped(model, trial.direction).is_some(),
        factor => factor == Some(Factor::OtherCongestion),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    if clamped(model, direction).is_some() {
        return vec![
            Advice::new(
                "find what limits the congestion window: `cwnd lock N` of a route, or parameters of the \
                 congestion control itself",
            )
            .on(direction.sender(), "ip route show"),
        ];
    }
    let Some((other, effect)) = tried(model, direction) else {
        return Vec::new();
    };
    let advice = Advice::new(format!("let the program use {other} as congestion control"));
    let rerun = rerun(model, &format!(" --congestion {other}"));
    vec![advice.on(Side::Near, rerun).gain(Some(effect.mid))]
}

/// Congestion controls whose window grows while it is the limit and no segment is lost.
const GROWS: &[&str] = &["cubic", "reno"];

/// The gap for a sender that may still recover from a loss before the measurement began, or whose losses were too rare
/// to decide.
fn recovers(load: &Load) -> Option<Gap> {
    Some(Gap {
        what: "whether congestion control has a reason to slow down".to_owned(),
        why: format!(
            "{} segments of a stream were retransmitted since it began, and on such a long path one \
             loss slows it down for many seconds",
            recovering(load)?
        ),
        hint: "--congestion bbr does not slow down for single losses: compare".to_owned(),
    })
}

/// Largest share of time that a window or a buffer may limit the sender while its congestion window is judged. A
/// congestion window does not grow while something else limits the sender.
const HELD: f64 = 0.1;

/// Describes a congestion window that stopped growing without a reason. `None` if it grew, had no need to grow,
/// or if another congestion control gained goodput.
pub(crate) fn clamped(model: &Model, direction: Direction) -> Option<String> {
    let load = &model.direction(direction)?.base;
    let size = load.tcp.cwnd_stood?;
    let grows = GROWS.contains(&load.made.sender.congestion.as_str());
    let held = [load.tcp.rwnd_limited?, load.tcp.sndbuf_limited?];
    let alone = held.into_iter().all(|share| share < HELD) && load.knobs.pacing.is_none();
    let gained = tried(model, direction).is_some_and(|(_, effect)| effect.low > EQUAL.high);
    let requested = retransmitted_share(load).is_some() || standing_queue(model, load).is_some();
    (grows && alone && !gained && !requested).then(|| {
        format!(
            "the congestion window grew to {size} and stayed there, full, although nothing queued \
             and nothing was lost"
        )
    })
}

/// The trial of another congestion control: the name of that one, and the effect.
fn tried(model: &Model, direction: Direction) -> Option<(&str, Interval)> {
    let trial = model.tried(direction, Factor::OtherCongestion)?;
    Some((trial.plan.after.congestion.as_deref()?, trial.effect?))
}

/// The share of bytes that was retransmitted, in words, for a load that lost little.
fn hardly_lost(load: &Load) -> String {
    match load.tcp.retransmitted.filter(|share| *share > 0.0) {
        Some(share) => format!("only {} of the bytes were retransmitted", percent(share)),
        None => "nothing was lost".to_owned(),
    }
}

/// The name of the sender's congestion control.
fn name(model: &Model, direction: Direction) -> &str {
    model
        .direction(direction)
        .map(|d| d.base.made.sender.congestion.as_str())
        .filter(|name| !name.is_empty())
        .unwrap_or("congestion control")
}

const SETTING: &str = "net.ipv4.tcp_congestion_control";

/// Advice to use bbr, if the sender may use it, does not, and bbr's window is large enough.
pub(crate) fn use_bbr(model: &Model, load: &Load, side: Side, gain: Option<f64>) -> Option<Advice> {
    let present = &load.made.sender.congestion;
    let host = model.host(side)?;
    let may = &host.facts.congestion_available;
    let could =
        !present.is_empty() && !bbr::sends(load) && may.iter().any(|name| name == bbr::NAME);
    let helps = bbr::outlasted(model, load).is_none() && gain.is_none_or(|gain| gain > 1.0);
    (could && helps).then(|| {
        let advice = if host.facts.congestion_default == bbr::NAME {
            chosen(model, present)
        } else {
            by_default(model, load, side, &host.facts.congestion_default)
        };
        advice.gain(gain)
    })
}

const WHY: &str = "it does not slow down for each loss, and keeps queues short";

/// Advice for a program that chose its own congestion control instead of the host's default.
fn chosen(model: &Model, present: &str) -> Advice {
    let advice = Advice::new(format!(
        "let the program use bbr, as the host does by default, and not {present}: {WHY}"
    ));
    if model.watched {
        return advice;
    }
    advice.on(Side::Near, rerun(model, " --congestion bbr"))
}

/// Advice that makes bbr the default of a host. `default` is empty where it was not read: then the default is the
/// congestion control of a program that chose none.
fn by_default(model: &Model, load: &Load, side: Side, default: &str) -> Advice {
    let set = |name: &str| format!("sudo sysctl -w {SETTING}={}", word(name));
    let advice = Advice::new(format!("use bbr as congestion control: {WHY}"));
    let has_chosen = load.knobs.congestion.is_some() || model.watched;
    let old = match default {
        "" => Some(load.made.sender.congestion.as_str()).filter(|_| !has_chosen),
        default => Some(default),
    };
    match old {
        Some(old) => advice.set(side, set(bbr::NAME)).undo_on(side, set(old)),
        None => advice.keeping(side, Kept::sysctl(SETTING), set(bbr::NAME)),
    }
}
