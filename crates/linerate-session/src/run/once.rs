//! A run of a single step, for scripts: a load, round trips, or round trips under load.

use linerate_plan::path::Direction;
use linerate_plan::{Knobs, Pattern, Plan, Purpose, SetPlan};
use linerate_record::Record;
use linerate_units::{Bytes, Nanos};

use super::{Label, Run, session, steps};
use crate::link::{Link, LinkError};
use linerate_judge::event::Sink;
use linerate_load::transport::{self, Transport};

/// Settings of the round trips that a step times.
#[derive(Debug, Clone, Copy)]
pub struct RoundTrips {
    /// Payload of each request and of each answer.
    pub size: Bytes,
    /// Time between intended sends (open loop); `None` sends each request when the previous answer has arrived
    /// (closed loop).
    pub interval: Option<Nanos>,
    /// Whether both ends spin on their sockets instead of sleeping.
    pub busy_poll: bool,
    /// Whether Nagle's algorithm stays enabled on the connections.
    pub nagle: bool,
    /// Whether each message is sent in two writes.
    pub two_writes: bool,
}

/// Runs one step: all directions of `plan` at once, together with the round trips of `trips`, or `trips` alone. The
/// first `washout` of the plan's time does not count. Returns the record and the error, as [`super::run`] does.
pub fn once(
    link: &mut dyn Link,
    plan: Plan,
    washout: Nanos,
    trips: Option<RoundTrips>,
    label: Label,
    sink: &mut dyn Sink,
) -> (Record, Option<LinkError>) {
    session(link, plan, label, sink, |run| run.once(washout, trips))
}

impl Run<'_> {
    fn once(&mut self, washout: Nanos, trips: Option<RoundTrips>) -> Result<(), LinkError> {
        let plan = self.record.start.plan.clone();
        let mut sets = Vec::new();
        for direction in &plan.directions {
            sets.push(self.stream(*direction, plan.knobs.clone())?);
        }
        if let Some(trips) = trips {
            sets.push(self.set(trips.pattern(), trips.knobs(&plan))?);
        }
        let (purpose, words) = purpose(&plan.directions, plan.knobs.streams, trips.is_some());
        let measure = Nanos(plan.time.0.saturating_sub(washout.0));
        self.step(purpose, &sets, washout, measure, &words)?;
        for set in sets {
            self.link.release(set)?;
        }
        Ok(())
    }
}

impl RoundTrips {
    pub(super) fn pattern(self) -> Pattern {
        Pattern::PingPong { size: self.size, interval: self.interval.unwrap_or(Nanos(0)) }
    }

    /// Returns the settings of the set that times round trips. It
    /// uses the transport options and the array sizes of the plan.
    pub(super) fn knobs(self, plan: &Plan) -> Knobs {
        let alone = linerate_plan::transport::of(&plan.engine).is_alone();
        let size = |size| if alone { size } else { Bytes(0) };
        Knobs {
            write_size: size(plan.knobs.write_size),
            read_size: size(plan.knobs.read_size),
            options: plan.knobs.options.clone(),
            nodelay: !self.nagle,
            nagle: self.nagle,
            two_writes: self.two_writes,
            open_loop: self.interval.is_some(),
            busy_poll: self.busy_poll,
            ..Knobs::default()
        }
    }
}

/// Checks whether `transport` supports `plan` and `trips`; the
/// error is the reason why it does not. The check needs no far end.
pub fn possible(
    transport: &dyn Transport,
    plan: &Plan,
    trips: Option<RoundTrips>,
) -> Result<(), String> {
    let set = |pattern, knobs| SetPlan::of(&plan.engine, 0, pattern, knobs);
    let loads = plan.directions.iter();
    let loads = loads.map(|&direction| set(plan.load(direction), plan.knobs.clone()));
    let timed = trips.map(|trips| set(trips.pattern(), trips.knobs(plan)));
    let mut sets = loads.chain(timed);
    sets.try_for_each(|set| transport::possible(transport, &set))
}

/// Returns the purpose of the step and a description for the user.
fn purpose(directions: &[Direction], streams: u32, timed: bool) -> (Purpose, String) {
    let (purpose, load) = match directions {
        [] => return (Purpose::IdleLatency, "round trips on the idle path".into()),
        [direction] => {
            let purpose = Purpose::Base { direction: *direction };
            (purpose, direction.name())
        }
        _ => (Purpose::Both, "both directions at once"),
    };
    let beside = if timed { "round trips beside " } else { "" };
    let words = format!("{beside}{load}, {}", steps::streams(streams));
    (purpose, words)
}
