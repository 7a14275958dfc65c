//! Round trips by message size, for people and for programs.

mod json;
mod text;

use linerate_core::ceiling::fingerprint::{Fit, Point, Timer, fit, timer};
use linerate_core::facts::Gap;
use linerate_core::model::{SizeTrips, by_size, same_machine};
use linerate_core::plan::{Knobs, Plan};
use linerate_core::record::Record;
use linerate_core::stats::samples;
use linerate_core::sweep::trips::may_try;
use linerate_core::transport::Options;
use linerate_core::units::{Bytes, Nanos};
use linerate_engine::load::transport::transport;
use linerate_engine::run::{RoundTrips, trip_sizes};

pub use json::{FORMAT, SCHEMA, json};
pub(super) use json::{Output, output};
pub(crate) use text::page;

use super::bw::own::{broken, refused};
use super::fitted::Agreement;
use super::like::Timed;
use super::words;

/// The result of a sweep of round trips over message sizes.
#[derive(Debug)]
pub struct Probe {
    /// The far end as it was typed; `None` for engines within this host.
    target: Option<String>,
    engine: String,
    options: Options,
    /// Settings of the connections.
    knobs: Knobs,
    /// Time of the whole sweep, as planned.
    time: Nanos,
    same_machine: bool,
    /// Why the sweep ended early; empty if it did not.
    broken: String,
    rows: Vec<SizeTrips>,
    gaps: Vec<Gap>,
}

impl Probe {
    /// Makes the result of the record of such a sweep.
    pub fn of(record: &Record) -> Self {
        let plan = &record.start.plan;
        let knobs = record.sets.first().map(|set| set.plan.knobs.clone());
        let knobs = knobs.unwrap_or_default();
        Self {
            target: plan.peer.clone(),
            engine: plan.engine.clone(),
            options: plan.knobs.options.clone(),
            rows: by_size(record, &sizes(plan, &knobs)),
            knobs,
            time: plan.time,
            same_machine: same_machine(record),
            broken: broken(record),
            gaps: refused(record),
        }
    }

    /// Adds the sizes that an end refused.
    pub fn refused(&mut self, left_out: &[Gap]) {
        self.gaps.extend_from_slice(left_out);
    }

    /// Whether every size was timed.
    pub fn complete(&self) -> bool {
        self.broken.is_empty() && self.rows.iter().all(|row| row.times.is_some())
    }

    /// What the times show of the path, as times in one direction.
    fn fit(&self) -> Option<Fit> {
        let points: Vec<Point> = self.rows.iter().filter_map(SizeTrips::half).collect();
        fit(&points)
    }

    /// The timer that sets round trips.
    fn timer(&self) -> Option<Timer> {
        let points: Vec<Point> = self.rows.iter().filter_map(SizeTrips::whole).collect();
        timer(&points)
    }

    /// What the rate may be compared with.
    fn agreement(&self) -> Agreement {
        Agreement::of(self.same_machine)
    }

    /// Why a size was not timed; `None` if it was.
    fn lack(&self, row: &SizeTrips) -> Option<String> {
        if row.times.is_some() {
            return None;
        }
        if let Some(first) = row.first {
            return Some(format!(
                "a round trip takes {first}: too long for its part of {}",
                self.time
            ));
        }
        let reached = self
            .rows
            .iter()
            .rev()
            .find_map(|row| Some((row.size, row.first?)));
        match reached {
            Some((size, first)) if size < row.size => {
                let most = Nanos(first.0.saturating_mul(row.size.0.div_ceil(size.0.max(1))));
                let too_long = !may_try(most, self.time);
                Some(if too_long {
                    format!(
                        "a round trip may take {most}: too long for its part of {}",
                        self.time
                    )
                } else {
                    format!("no time was left of {}", self.time)
                })
            }
            Some(_) => Some(format!(
                "left out: {} are too short for all sizes",
                self.time
            )),
            None => Some("no round trip was answered".to_owned()),
        }
    }

    /// The sizes that were timed, for the form of another tool.
    pub fn timed(&self) -> Vec<Timed<'_>> {
        self.rows.iter().filter_map(timed).collect()
    }

    /// The sizes that were not timed, by the reason.
    pub fn lacking(&self) -> Vec<(String, Vec<Bytes>)> {
        let mut all: Vec<(String, Vec<Bytes>)> = Vec::new();
        for row in &self.rows {
            let Some(why) = self.lack(row) else { continue };
            match all.iter_mut().find(|(known, _)| *known == why) {
                Some((_, sizes)) => sizes.push(row.size),
                None => all.push((why, vec![row.size])),
            }
        }
        all
    }

    /// Messages of a size without an answer, of an engine that may lose them.
    fn lost(&self, row: &SizeTrips) -> Option<u64> {
        let times = row.times.as_ref().filter(|_| words::may_lose(&self.engine));
        times.map(|times| times.lost)
    }
}

fn timed(row: &SizeTrips) -> Option<Timed<'_>> {
    Some(Timed {
        size: row.size,
        times: row.times.as_ref()?,
        lasted: row.lasted,
        washout: row.washout,
    })
}

/// Round trips of a size that were timed.
fn number(row: &SizeTrips) -> u64 {
    row.times.as_ref().map_or(0, samples)
}

/// The sizes of the sweep of a plan.
fn sizes(plan: &Plan, knobs: &Knobs) -> Vec<Bytes> {
    let trips = RoundTrips {
        size: Bytes(0),
        interval: None,
        busy_poll: knobs.busy_poll,
        nagle: knobs.nagle,
        two_writes: knobs.two_writes,
    };
    transport(&plan.engine).map_or_else(Vec::new, |engine| trip_sizes(engine, plan, trips))
}
