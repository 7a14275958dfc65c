//! A traffic shaper on the sender's own port: the host itself delays its packets.

use crate::causes::FULL;
use crate::causes::predict::{around, bystander, one_rate};
use crate::causes::prelude::*;
use crate::model::{LocalEvent, Shaping};
use linerate_units::Rate;
use linerate_units::shell::word;
use linerate_units::stats::EQUAL;

/// Minimum share of a shaper's ceiling at which the shaper may be the limit although the ceiling is not reached: token
/// buckets too small for their timer, and recovery from losses, cost the rest.
const NEAR: f64 = 0.9;

/// Minimum share of a shaper's ceiling, and minimum number of times per second without tokens, at which the shaper may
/// be the limit if packets always wait in it. Token buckets far too small for their timer cost up to half of the rate.
/// A shaper that is not full hardly ever runs out of tokens; a full one does for each packet, or for each wake-up of
/// its timer.
const SHORT: f64 = 0.5;
const OFTEN: f64 = 100.0;

/// Minimum share of samples with waiting packets, at which a shaper delays packets all the time.
const WAITING: f64 = 0.9;

/// The tightest shaper that the load passed, and the share of its ceiling that was used.
struct Used<'a> {
    shaper: &'a Shaping,
    ceiling: Rate,
    formula: String,
    share: f64,
    datagrams: bool,
}

impl Used<'_> {
    /// Whether the shaper's own counters show that packets always waited in it because of its limit.
    fn holds(&self) -> bool {
        let waits = self.shaper.waiting.is_some_and(|w| w >= WAITING);
        let held = self.shaper.held.is_some_and(|held| held >= 1.0);
        // Some shapers do not count how often their limit delays packets. For those, waiting packets are
        // enough.
        waits && (held || !self.shaper.counts_held())
    }

    /// How many times per second the shaper runs out of tokens, if this is often enough to pass less than its rate: its
    /// token buckets, or the timer that fills them, are too coarse. `None` for datagrams: fewer also arrive if the path
    /// behind the shaper loses them.
    fn falls_short(&self) -> Option<f64> {
        let connections = !self.datagrams && self.share >= SHORT && self.holds();
        self.shaper.held.filter(|held| connections && *held >= OFTEN)
    }

    /// Whether the shaper may be the limit.
    fn may_bind(&self) -> bool {
        self.share >= NEAR || self.falls_short().is_some()
    }
}

pub(crate) static CAUSE: Cause = Cause {
    id: "host-shaping",
    name: "a shaper of its own port limits the rate",
    needs: &[Feature::Stack],
    stage: Stage::Port,
    proves_itself: true,
    decided_by: &[Factor::MoreStreams],
    page: include_str!("../pages/host-shaping.md"),
    ceiling: Some(Stage::Port),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let Some(used) = used(load) else {
        return Err(without(model, direction, load));
    };
    let reported = format!(
        "goodput was {} of what {} of the {} host leaves, {} = {}",
        percent(used.share),
        used.shaper.subject,
        direction.sender().name(),
        used.formula,
        used.ceiling
    );
    if !used.may_bind() {
        return Err(clear(reported));
    }
    let waited = used
        .shaper
        .waiting
        .map(|w| format!("packets waited in it in {} of the samples", percent(w)));
    let short = used.falls_short().filter(|_| used.share < NEAR);
    let short = short.map(|held| format!("it was out of tokens {held:.0} times a second"));
    let reached = used.share >= FULL;
    Ok(Finding::at(
        direction.sender(),
        used.share.min(1.0),
        std::iter::once(reported).chain(waited).chain(short).collect(),
    )
    .enough(reached || used.holds())
    .reached(reached))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let shaper = tightest(model, trial.direction);
    match trial.factor()? {
        Factor::OtherCongestion => Some(Range { low: 0.3, high: EQUAL.high }),
        Factor::MoreStreams if shaper.is_some_and(|s| s.rate.is_none()) => {
            Some(around(trial.stream_ratio(), 0.12))
        }
        Factor::MoreStreams => one_rate(model, trial),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let load = model.direction(direction).map(|d| &d.base);
    load.and_then(|load| lift(load, direction)).into_iter().collect()
}

/// The reason why the network does not limit a direction: a shaper of the sender's own port does.
pub(crate) fn holds(load: &Load, direction: Direction) -> Option<String> {
    let used = used(load)?;
    let binds = used.share >= FULL || (used.may_bind() && used.holds());
    binds.then(|| {
        format!(
            "{} of the {} host itself lets no more than {} pass",
            used.shaper.subject,
            direction.sender().name(),
            used.ceiling
        )
    })
}

fn used(load: &Load) -> Option<Used<'_>> {
    let (shaper, ceiling, formula) = load.shaped()?;
    Some(Used {
        shaper,
        ceiling,
        formula,
        share: load.goodput.at_most() / (ceiling.0 as f64).max(1.0),
        datagrams: load.has(Feature::Datagrams),
    })
}

fn tightest(model: &Model, direction: Direction) -> Option<&Shaping> {
    let load = &model.direction(direction)?.base;
    load.shaped().map(|(shaper, ..)| shaper)
}

/// The result if the load passed no shaper with a known rate: there is no shaper, or one was not read.
fn without(model: &Model, direction: Direction, load: &Load) -> NoFinding {
    let sender = direction.sender();
    if load.shapers.iter().flatten().next().is_some() {
        return lacks(model, "tcp", sender);
    }
    let unread = |what: String, why: &str, hint: String| {
        NoFinding::Unknown(vec![Gap { what, why: why.to_owned(), hint }])
    };
    let refused = |(side, gap): &&(_, Gap)| *side == sender && gap.what == "qdisc";
    let refused = model.gaps.iter().find(refused);
    if let Some((_, gap)) = refused.filter(|_| load.shapers.is_none()) {
        let what = format!("shapers of the {} port", sender.name());
        return unread(what, &gap.why, gap.hint.clone());
    }
    let mut held = load.local.iter();
    let held = held.find(|l| l.side == sender && l.what == LocalEvent::Held && l.per_sec >= 1.0);
    match held {
        Some(held) => unread(
            format!("the rate of {}", held.subject),
            &held.words(),
            format!("tc -d qdisc show dev {0}; tc -d class show dev {0}", held.port()),
        ),
        None => clear(format!("no shaper of the {} host's own port was passed", sender.name())),
    }
}

/// The command that removes a shaper or raises its rate. A queueing discipline is named by its handle: its parent was
/// not read, and there may be another one at the root.
fn lift(load: &Load, direction: Direction) -> Option<Advice> {
    let (shaper, ..) = load.shaped()?;
    let mut words = shaper.subject.split(' ');
    let (port, kind, id) = (word(words.next()?), words.next()?, words.next()?);
    let side = direction.sender();
    let is_class = !id.ends_with(':');
    let limit = shaper.rate.or(shaper.flow_rate)?;
    if is_class {
        let what = format!(
            "raise the limit of class {id} ({kind}) of {port}, {limit} now, with tc class change and the other \
             parameters that it has"
        );
        return Some(Advice::new(what).on(side, format!("tc -d class show dev {port}")));
    }
    if kind == "fq" {
        let set = |rate: &str| flows_at(load, shaper, &port, rate);
        let advice = Advice::new(format!(
            "raise the limit of each flow in the fq queue of {port}, {limit} now"
        ));
        let advice = advice.set(side, set("34gbit"));
        return Some(advice.undo_on(side, set(&format!("{}bit", limit.0))));
    }
    let what = format!(
        "raise the rate of queue {id} ({kind}) of {port}, {limit} now, with tc qdisc change and the other parameters \
         that it has"
    );
    let look =
        format!("tc -d qdisc show dev {port}; tc class show dev {port}; tc filter show dev {port}");
    Some(Advice::new(what).on(side, look))
}

/// The command that sets the rate of each flow, in all queues of a port with this limit: below `mq` there are several.
fn flows_at(load: &Load, shaper: &Shaping, port: &str, rate: &str) -> String {
    let kind = format!("{port} fq ");
    let alike = load.shapers.iter().flatten();
    let alike = alike.filter(|s| s.flow_rate == shaper.flow_rate);
    let handles = alike.filter_map(|s| s.subject.strip_prefix(&kind));
    let handles: Vec<&str> = handles.collect();
    let set =
        |handle: &str| format!("sudo tc qdisc change dev {port} handle {handle} fq maxrate {rate}");
    match handles[..] {
        [one] => set(one),
        _ => format!("for h in {}; do {}; done", handles.join(" "), set("$h")),
    }
}
