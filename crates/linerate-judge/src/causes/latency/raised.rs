//! Whether the load makes round trips so long that a cause should be found.

use crate::causes::prelude::*;
use crate::model::Latency;
use crate::signs::round_trips::{FEW, idle_at_least, median};
use linerate_units::Nanos;

/// Minimum ratio of a long round trip under load to the idle round trip. A sender that slows down on loss needs a queue
/// of one round trip to keep the path full. A longer queue adds nothing to goodput.
//= Villamizar, Song, "High performance TCP in ANSNET", CCR 24(5), 1994: one bandwidth-delay product
const TIMES: f64 = 2.0;

/// The least delay that a load must add to count. A well-configured queue adds less than this. So does the queue that
/// Linux lets a stream keep in its own port (1 ms at its pace), and the time that a thread waits for a busy CPU.
//= RFC 8289, section 3.2: a standing queue of 5 ms is acceptable
const ADDED: Nanos = Nanos::from_millis(5);

/// The round trips without and with the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raised {
    /// The round trip on the idle path.
    pub(crate) idle: Nanos,
    /// The round trip under load.
    pub(crate) loaded: Nanos,
    /// Whether `loaded` is only a lower bound: the shortest of too few readings.
    pub(crate) at_least: bool,
}

impl Raised {
    /// The time that the load added to the round trip, in nanoseconds.
    pub(crate) fn added(self) -> f64 {
        self.loaded.0.saturating_sub(self.idle.0) as f64
    }

    /// The share of the loaded round trip that the load added.
    pub(crate) fn share(self) -> f64 {
        self.added() / self.loaded.0.max(1) as f64
    }

    /// Both round trips, in words.
    pub(crate) fn words(self) -> String {
        let Self { idle, loaded, .. } = self;
        let least = if self.at_least { "at least " } else { "" };
        format!("a round trip took {least}{loaded} under load, {idle} on the idle path (p50)")
    }

    fn is_far(self) -> bool {
        self.loaded.0 as f64 >= self.idle.0 as f64 * TIMES && self.added() >= ADDED.0 as f64
    }
}

/// The round trips with and without the load of a direction, if the load adds much; else the reason why not.
pub(crate) fn raised(model: &Model, direction: Direction) -> Result<Raised, NoFinding> {
    let load = base(model, direction)?;
    let least = || idle_at_least(model).max(load.tcp.min_rtt);
    let idle = median(model.idle.as_ref()).or_else(least);
    let idle = idle.ok_or_else(|| untimed("the idle path", model.idle.as_ref()))?;
    let beside = load.latency.as_ref();
    let raised = |loaded, at_least| Raised { idle, loaded, at_least };
    if let Some(loaded) = median(beside) {
        let raised = raised(loaded, false);
        return if raised.is_far() { Ok(raised) } else { Err(clear(raised.words())) };
    }
    let few = beside.filter(|l| l.samples >= FEW);
    let least = few.map(|l| raised(l.least, true)).filter(|r| r.is_far());
    // Too few round trips were timed. If the streams' own round trips were short, the timed ones cannot be long.
    let own = load.tcp.rtt.filter(|own| !raised(*own, false).is_far());
    least.ok_or_else(|| match own {
        Some(own) => {
            clear(format!("the streams' own round trip took {own}, {idle} on the idle path"))
        }
        None => untimed(&format!("{} under load", direction.name()), beside),
    })
}

/// The median round trip of the idle path, for causes that make it long. Both directions share one path, so it is
/// returned for the first direction only ([`crate::causes::Cause::is_once`]). Round trips under load do not count
/// here.
pub(crate) fn idle(model: &Model, direction: Direction) -> Result<Nanos, NoFinding> {
    let first = model.directions.first().map(|dir| dir.direction);
    if first != Some(direction) {
        return Err(clear("it is reported for the other direction"));
    }
    if let Ok(raised) = raised(model, direction) {
        return Err(clear(raised.words()));
    }
    median(model.idle.as_ref()).ok_or_else(|| untimed("the idle path", model.idle.as_ref()))
}

pub(crate) fn untimed(what: &str, latency: Option<&Latency>) -> NoFinding {
    NoFinding::Unknown(vec![Gap {
        what: format!("round trips {what}"),
        why: latency.map_or("none were timed".to_owned(), |l| {
            format!("{} were timed, too few for a median", l.samples)
        }),
        hint: latency.map_or(String::new(), |_| "more time: --thorough".to_owned()),
    }])
}
