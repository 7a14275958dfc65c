//! The acknowledgements of one direction fill the path of the other direction, by which they return.

use crate::causes::network::beyond_hosts::beyond_hosts;
use crate::causes::network::held::{Held, held_back};
use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use crate::signs::queue::standing_queue;
use linerate_ceiling::ethernet::ETHERNET;
use linerate_units::Rate;

/// Minimum share of the reverse path's rate that acknowledgements must need to be the limit. A sender that waits for
/// acknowledgements sends no more than pass, and the rate of the reverse path is known to about a fifth.
const FULL: f64 = 0.8;

/// Minimum share as `FULL`, where no standing queue shows yet: a token bucket may let more pass for a while.
const EXCEEDED: f64 = 1.3;

/// Minimum share of the reverse path's rate at which acknowledgements may be the limit: a line of 24 Mb/s one way and 1
/// Mb/s the other needs half. With cells of ATM, two for an acknowledgement and 33 for a full packet, a full line shows
/// two thirds.
const SUSPECT: f64 = 0.6;

/// Share of its goodput alone below which a direction collapses while both are loaded: ends that share their CPUs still
/// leave each other half of them.
const COLLAPSES: f64 = 0.2;

pub(crate) static CAUSE: Cause = Cause {
    id: "ack-way",
    name: "its acknowledgements fill the way back",
    needs: &[Feature::Connections],
    stage: Stage::Net,
    page: include_str!("../pages/ack-way.md"),
    may_be_unread: true,
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let way = way(model, direction)?;
    if way.used() < SUSPECT {
        let used = percent(way.used());
        return Err(clear(format!("its acknowledgements need {used} of the way back")));
    }
    if !way.queued {
        return Err(unknown("the rate of the way back", "no queue shows how much it carries"));
    }
    let load = base(model, direction)?;
    let enough = way.is_full(model, load);
    let share = match beyond_hosts(model, direction) {
        Ok(held) => held.share,
        // Acknowledgements that exceed the rate of the reverse path will queue there, whatever limits the sender until
        // then.
        Err(_) if enough => 1.0,
        Err(answer) => return Err(answer),
    };
    let queue = standing_queue(model, load);
    Ok(Finding::at(Place::Path, share, std::iter::once(way.words()).chain(queue).collect())
        .enough(enough))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    let way = way(model, trial.direction).ok();
    way.filter(Way::is_suspect)?;
    bystander(model, trial)
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Ok(way) = way(model, direction) else {
        return Vec::new();
    };
    let back = direction.reversed();
    vec![Advice::new(format!(
        "raise the rate of the way from {} to {}, and not that from {} to {}: ask the operator of the network what \
         limits it to about {}. How much more {} then carries is not known before",
        back.sender().name(),
        back.receiver().name(),
        direction.sender().name(),
        direction.receiver().name(),
        way.carries,
        direction.name(),
    ))]
}

/// The evidence that the acknowledgements of a load fill the reverse path; `None` if they do not.
pub(crate) fn holds(model: &Model, direction: Direction) -> Option<String> {
    let way = way(model, direction).ok()?;
    let load = base(model, direction).ok()?;
    way.is_full(model, load).then(|| way.words())
}

/// Whether the acknowledgements of a load may fill the reverse path: a queue that delays them may be on that path.
pub(crate) fn may_hold(model: &Model, direction: Direction) -> bool {
    way(model, direction).is_ok_and(|way| way.is_suspect())
}

/// A remark that a direction carries next to nothing while the other one is loaded as well.
pub(crate) fn collapses(model: &Model, direction: Direction) -> Option<String> {
    let alone = &model.direction(direction)?.base;
    let (_, both) = model.both.iter().find(|(of, _)| *of == direction)?;
    let most = both.interval.map_or(both.mean, |both| both.high);
    let tcp = alone.has(Feature::Connections);
    let back = &model.direction(direction.reversed())?.base;
    standing_queue(model, back)?;
    (tcp && most < alone.goodput.mean * COLLAPSES).then(|| {
        let [alone, both] = [alone.goodput.mean, both.mean].map(|rate| Rate(rate as u64));
        format!(
            "{} -> {} carries {both} while both directions are loaded, and {alone} alone: its acknowledgements then share \
             the way with the other load, and wait in its queue",
            direction.sender().name(),
            direction.receiver().name()
        )
    })
}

/// The reverse path of a load, which carries its acknowledgements.
struct Way {
    /// Acknowledgements per second.
    sent: f64,
    /// Rate that the acknowledgements need, with the headers of each frame.
    needs: Rate,
    /// Rate that the reverse path carries, also with the headers of each frame.
    carries: Rate,
    /// Whether a queue shows that the reverse path carries no more than that.
    queued: bool,
}

impl Way {
    fn used(&self) -> f64 {
        self.needs.0 as f64 / (self.carries.0 as f64).max(1.0)
    }

    /// Whether the reverse path may be full.
    fn is_suspect(&self) -> bool {
        self.queued && self.used() >= SUSPECT
    }

    /// Whether the reverse path is full: it has a standing queue, or needs more than it can carry for long.
    fn is_full(&self, model: &Model, load: &Load) -> bool {
        let queued = standing_queue(model, load).is_some();
        self.queued && self.used() >= if queued { FULL } else { EXCEEDED }
    }

    fn words(&self) -> String {
        format!(
            "{:.0} acknowledgements arrived in a second, which need {} with their headers; the way back carries {}",
            self.sent, self.needs, self.carries
        )
    }
}

/// The reverse path of a direction's load; its rate is known from the load of the other direction.
fn way(model: &Model, direction: Direction) -> Result<Way, NoFinding> {
    let load = base(model, direction)?;
    let sizes = |load: &Load| {
        let sizes = load.packets?;
        let packet = sizes.packet?.0.saturating_add(ETHERNET.into()) as f64;
        (sizes.payload.0 > 0).then_some((sizes.payload.0 as f64, packet))
    };
    let acks = load.acknowledgements.zip(sizes(load));
    let Some((sent, (payload, packet))) = acks else {
        return Err(lacks(model, "tcp", direction.receiver()));
    };
    let back = direction.reversed();
    base(model, back)?;
    let held = held_back(model, back)?;
    let Some((full, frame)) = sizes(held.load) else {
        return Err(lacks(model, "tcp", back.sender()));
    };
    let sweep = model.direction(back).map(|dir| dir.sweep.iter());
    // A short measurement over a slow path varies, so the gain must be certain.
    let more = sweep.into_iter().flatten();
    let more = more.filter(|more| more.over(held.load).low > GAIN);
    let loads = more.chain([held.load]);
    let most = loads.map(|load| load.goodput.mean).fold(0.0, f64::max);
    let bits = |rate: f64| Rate(rate as u64);
    Ok(Way {
        sent,
        needs: bits(sent * (packet - payload) * 8.0),
        carries: bits(most / full * frame),
        queued: standing_queue(model, held.load).is_some(),
    })
}

/// The load of a direction, if the path of its payload may limit it; else the reason why not.
pub(crate) fn held_by_network(model: &Model, direction: Direction) -> Result<Held<'_>, NoFinding> {
    let held = beyond_hosts(model, direction)?;
    holds(model, direction).map_or(Ok(held), |why| Err(clear(why)))
}
