//! A queue on the path grows under load, and all packets wait in it.

use crate::causes::latency::raised::{Raised, raised};
use crate::causes::network::ack_way;
use crate::causes::network::arp_flux;
use crate::causes::network::contended;
use crate::causes::network::held::on_cpus;
use crate::causes::prelude::*;
use crate::causes::tcp::congestion_control::use_bbr;
use crate::model::Queue;
use linerate_plan::path::Slowness;
use linerate_units::Rate;

/// Share of the round trip's increase that must be found at one place to blame that place.
const MOST: f64 = 0.5;

/// Range of the ratio of goodput at half the pace to the goodput before, if goodput followed the pace and nothing else
/// limited it.
const FOLLOWS: Range = Range { low: 0.35, high: 0.75 };

/// Ratio of an advised shaper's rate to the path's rate: the queue then forms at the shaper, where it can be kept
/// short.
const BELOW: f64 = 0.95;

pub(crate) static CAUSE: Cause = Cause {
    id: "latency-queue",
    name: "a long queue delays all packets",
    needs: &[Feature::Stack],
    stage: Stage::Net,
    slows: Slowness::Latency,
    decided_by: &[Factor::Paced],
    page: include_str!("../pages/latency-queue.md"),
    at_an_end: Some(Stage::Port),
    check: queued,
    predict,
    predict_latency,
    advice,
    ..Cause::BASE
};

fn predict(_: &Model, trial: &TrialPlan) -> Option<Range> {
    (trial.factor()? == Factor::Paced).then_some(FOLLOWS)
}

fn predict_latency(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let raised = raised(model, trial.direction).ok()?;
    // At half the rate there is no standing queue: at least half of the added delay disappears.
    (trial.factor()? == Factor::Paced)
        .then(|| Range { low: 0.0, high: 1.0 - raised.share() * MOST })
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Ok(raised) = raised(model, direction) else {
        return Vec::new();
    };
    let Some(load) = model.direction(direction).map(|d| &d.base) else {
        return Vec::new();
    };
    let shorter = match own_queue(load, raised) {
        Some(queue) => fair(load, direction.sender(), queue),
        // With a shaper here, the path would stay as slow as the wrong port is.
        None if arp_flux::holds(model, direction).is_some() => None,
        // The queue may be on the reverse path, where a shaper of this direction has no effect.
        None if ack_way::may_hold(model, direction) => None,
        None => shaped(model, load, direction),
    };
    shorter.into_iter().chain(use_bbr(model, load, direction.sender(), None)).collect()
}

/// The finding of a queue in a direction; else why there is none, or which reading is missing.
fn queued(model: &Model, direction: Direction) -> Result<Finding, NoFinding> {
    let raised = raised(model, direction)?;
    let load = base(model, direction)?;
    // Datagrams are not acknowledged. Round trips measured under load show how long they wait.
    let beside = (load.has(Feature::Datagrams)).then_some(raised.loaded);
    let own = load.tcp.rtt.or(beside);
    let own = own.ok_or_else(|| lacks(model, "tcp", direction.sender()))?;
    if (own.0.saturating_sub(raised.idle.0) as f64) < raised.added() * MOST {
        return Err(clear(format!(
            "the streams' own segments were acknowledged after {own}: {}",
            raised.words()
        )));
    }
    // Packets may wait for a busy CPU just as they wait on a path, and no thread's own wait shows this.
    if let Some(why) = on_cpus(model, load, direction) {
        return Err(NoFinding::Unknown(vec![Gap {
            what: format!("where packets wait {}", direction.name()),
            why: format!("{}, but {why}", raised.words()),
            hint: "less load on that CPU: --pacing with half the rate".to_owned(),
        }]));
    }
    Ok(finding(load, direction, raised))
}

fn finding(load: &Load, direction: Direction, raised: Raised) -> Finding {
    let queue = own_queue(load, raised);
    let sender = direction.sender();
    let standing = match (queue, longest(load)) {
        (Some(Queue { subject, wait }), _) => {
            format!("packets waited {wait} in {subject} of the {} host", sender.name())
        }
        (None, Some(Queue { subject, wait })) if wait.0 == 0 => {
            format!("none of it in the queue of the {} host's own port ({subject})", sender.name())
        }
        (None, Some(Queue { subject, wait })) => format!(
            "only {wait} of it in the queue of the {} host's own port ({subject})",
            sender.name()
        ),
        (None, None) => format!("no queue of the {} host's own port was counted", sender.name()),
    };
    let acknowledged = load.tcp.rtt;
    let acknowledged =
        acknowledged.map(|own| format!("the streams' own segments were acknowledged after {own}"));
    Finding {
        side: queue.map_or(Place::Path, |_| Place::from(sender)),
        share: raised.share(),
        // For datagrams, only separate round trips were timed: a trial must decide.
        enough: load.tcp.rtt.is_some() || queue.is_some(),
        reached: false,
        evidence: std::iter::once(raised.words()).chain(acknowledged).chain([standing]).collect(),
    }
}

/// The queue of the sender's own ports in which the load's packets waited longest.
fn longest(load: &Load) -> Option<&Queue> {
    load.queues.iter().flatten().max_by_key(|queue| queue.wait)
}

/// The queue of the sender's own ports in which packets waited longest, if it explains most of the increase
/// under load.
fn own_queue(load: &Load, raised: Raised) -> Option<&Queue> {
    longest(load).filter(|queue| queue.wait.0 as f64 >= raised.added() * MOST)
}

/// Advice to make the queue of the sender's own port short, with a separate one for each flow.
fn fair(load: &Load, side: Side, queue: &Queue) -> Option<Advice> {
    let port = queue.subject.split(' ').next()?;
    let of_port = |subject: &str| subject.split(' ').next() == Some(port);
    let shapers = load.shapers.iter().flatten();
    let rates: Vec<_> = shapers.filter(|s| of_port(&s.subject)).filter_map(|s| s.rate).collect();
    // With several classes, one queue cannot be replaced at the port.
    if rates.len() > 1 {
        return None;
    }
    let rate = rates.first();
    // The present rate limit would disappear together with its queue.
    let kind = rate.map_or("fq_codel".to_owned(), |rate| format!("cake bandwidth {}bit", rate.0));
    let what = format!("keep the queue of {port} short, and apart for each flow");
    Some(Advice::new(what).replacing_queue(side, port, &kind))
}

/// Advice to shape at the sender's own port, just below the rate of the path, so that the queue forms there. `None` if
/// that rate is unknown: others use the path, the load was interrupted, or more streams carried more.
fn shaped(model: &Model, load: &Load, direction: Direction) -> Option<Advice> {
    let most = model.direction(direction)?.knee().goodput.mean;
    let carried_more = most > load.goodput.mean * GAIN;
    if contended::is_shared(load) || !load.interruptions.is_empty() || carried_more {
        return None;
    }
    let side = direction.sender();
    let port = &model.host(side)?.facts.port.as_ref()?.name;
    let sizes = load.packets?;
    let (packet, payload) = (sizes.packet?.0 as f64, sizes.payload.0.max(1) as f64);
    let rate = Rate((load.goodput.mean * packet / payload * BELOW) as u64);
    let what = format!(
        "limit all traffic that leaves by {port}, to whatever host, to just below the rate of this path, {rate}, so that the \
         queue stands here and is short"
    );
    let kind = format!("cake bandwidth {}kbit", rate.0 / 1000);
    Some(Advice::new(what).replacing_queue(side, port, &kind))
}
