//! BBR: the congestion control that follows the rate of arrivals instead of loss.

use super::GAIN;
use super::queue::{NOTABLE, burst};
use super::round_trips::idle_at_least;
use crate::model::{Load, Model};
use linerate_plan::factor::Factor;
use linerate_plan::path::Direction;
use linerate_record::TrialPlan;
use linerate_units::Nanos;

/// The kernel's name of this congestion control.
pub(crate) const NAME: &str = "bbr";

/// The data that BBR keeps in flight: `WINDOWS` times the data of one shortest round trip, plus `BURSTS` bursts.
//= Linux, net/ipv4/tcp_bbr.c: bbr_cwnd_gain is 2; bbr_quantization_budget() adds three groups of segments
const WINDOWS: u64 = 2;
const BURSTS: u64 = 3;

/// Whether a load is sent by BBR.
pub(crate) fn sends(load: &Load) -> bool {
    load.made.sender.congestion.starts_with(NAME)
}

/// The shortest and the usual round trip of the idle path, where the usual one is much longer. BBR sizes its
/// window for the shortest one, so the window is empty long before packets arrive, and neither loss nor a rate
/// is the limit. The idle path has no queue but may sleep, so the load's own round trips must be long as well.
pub(crate) fn outlasted(model: &Model, load: &Load) -> Option<(Nanos, Nanos)> {
    let idle = idle_at_least(model)?;
    let usual = load.tcp.rtt.map_or(idle, |loaded| idle.min(loaded));
    is_longer(load, usual).then_some((load.tcp.min_rtt?, usual))
}

/// Whether some round trips of the idle path outlast BBR's window: then BBR may be slowed.
pub(crate) fn may_be_outlasted(model: &Model, load: &Load) -> bool {
    let idle = model.idle.as_ref().and_then(|idle| idle.percentile(90.0));
    let long = idle.is_some_and(|idle| is_longer(load, idle));
    long || outlasted(model, load).is_some()
}

/// Whether a round trip is so long that BBR's window is empty before it ends.
fn is_longer(load: &Load, trip: Nanos) -> bool {
    let bursts = burst(load).0.saturating_mul(BURSTS);
    let lasts = |shortest: Nanos| shortest.0.saturating_mul(WINDOWS).saturating_add(bursts);
    let shortest = load.tcp.min_rtt;
    shortest.is_some_and(|shortest| trip.0 > lasts(shortest).saturating_add(NOTABLE.0))
}

/// Whether the trial `trial` may replace another congestion control by BBR, because BBR's window is large enough. If
/// BBR's own round trips were measured, they show that its window was too small, unless BBR carried more: then they
/// include the queue that BBR itself made.
pub(crate) fn has_room(model: &Model, trial: &TrialPlan) -> bool {
    let by_it = trial.after.congestion.as_deref() == Some(NAME);
    let base = model.direction(trial.direction).map(|dir| &dir.base);
    let empties = base.is_none_or(|base| outlasted(model, base).is_some());
    let measured = model.trials.iter().find(|t| t.plan.id == trial.id);
    let no_more = measured.filter(|t| t.goodput[1] < t.goodput[0] * GAIN);
    let slowed = no_more.and_then(|t| t.changed.as_ref());
    let slowed = slowed.is_some_and(|load| load.tcp.rtt.is_some_and(|own| is_longer(load, own)));
    by_it && !empties && !slowed
}

/// The ratio of BBR's goodput to that of the old congestion control; `None` if no trial changed to BBR.
pub(crate) fn gained(model: &Model, direction: Direction) -> Option<f64> {
    let trial = model.tried(direction, Factor::OtherCongestion)?;
    let by_it = trial.plan.after.congestion.as_deref() == Some(NAME);
    trial.effect.filter(|_| by_it).map(|effect| effect.mid)
}
