//! Round trips by message size, for people and for programs.

mod json;
#[cfg(test)]
#[path = "tests/sample.rs"]
pub(super) mod sample;
mod text;

use std::mem::discriminant;

use linerate_ceiling::fingerprint::{Fit, Point, Spread, Timer, fit, tick};
use linerate_facts::Gap;
use linerate_judge::model::{SizeTrips, by_size, hardware, same_machine};
use linerate_plan::Knobs;
use linerate_plan::sweep::trips::may_try;
use linerate_plan::transport::Options;
use linerate_record::Record;
use linerate_units::stats::samples;
use linerate_units::{Bytes, Nanos};

pub use json::json;
pub(super) use json::{Output, output};
pub use text::page;
pub(super) use text::{HEADS, WIDE, WIDTHS, times};

use super::bw::own::broken;
use super::fitted::Agreement;
use super::like::Timed;
use super::refused;
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
    /// What a rate may be compared with.
    agreement: Agreement,
    /// Why the sweep ended early; empty if it did not.
    broken: String,
    rows: Vec<SizeTrips>,
    gaps: Vec<Gap>,
}

/// Why a size was not timed.
#[derive(Debug, Clone, Copy)]
enum Lack {
    /// The sweep ended early.
    Ended,
    /// A round trip takes so long that not enough of them fit.
    TooLong(Nanos),
    /// A round trip may take so long.
    MayBeTooLong(Nanos),
    /// No message was answered.
    Unanswered,
    /// Only some of the sizes fit.
    LeftOut,
    /// The time was over.
    NoTime,
}

impl Lack {
    /// Whether the sweep leaves such sizes out by its rules, on a path whose round trips are long.
    const fn is_planned(self) -> bool {
        matches!(self, Self::TooLong(_) | Self::MayBeTooLong(_) | Self::LeftOut)
    }
}

impl Probe {
    /// Makes the result of the record of such a sweep. `sizes` are those that its transport can carry.
    pub fn of(record: &Record, sizes: &[Bytes]) -> Self {
        let plan = &record.start.plan;
        let knobs = record.sets.first().map(|set| set.plan.knobs.clone());
        let knobs = knobs.unwrap_or_default();
        Self {
            target: plan.peer.clone(),
            engine: plan.engine.clone(),
            options: plan.knobs.options.clone(),
            rows: by_size(record, sizes),
            knobs,
            time: plan.time,
            agreement: Agreement::of(same_machine(record), hardware(&record.hosts)),
            same_machine: same_machine(record),
            broken: broken(record),
            gaps: refused::of_all(record),
        }
    }

    /// Adds the sizes that an end refused.
    pub fn refused(&mut self, left_out: &[Gap]) {
        self.gaps.extend_from_slice(left_out);
    }

    /// Whether everything that fits in the time was timed.
    pub fn complete(&self) -> bool {
        let lacks = self.rows.iter().filter_map(|row| self.lack(row));
        let mut unplanned = lacks.filter(|lack| !lack.is_planned());
        self.broken.is_empty() && unplanned.next().is_none()
    }

    /// What the times show of the path, as times in one direction.
    fn fit(&self) -> Option<Fit> {
        let points: Vec<Point> = self.rows.iter().filter_map(SizeTrips::half).collect();
        fit(&points)
    }

    /// The timer that round trips wait for; not that of a delayed acknowledgement.
    fn timer(&self) -> Option<Timer> {
        if self.rows.iter().any(|row| row.delayed.is_some()) {
            return None;
        }
        let rows: Vec<Spread> = self.rows.iter().filter_map(SizeTrips::spread).collect();
        tick(&rows)
    }

    /// What the rate may be compared with.
    fn agreement(&self) -> &Agreement {
        &self.agreement
    }

    /// Why a size was not timed; `None` if it was.
    fn lack(&self, row: &SizeTrips) -> Option<Lack> {
        if row.times.is_some() {
            return None;
        }
        if !self.broken.is_empty() {
            return Some(Lack::Ended);
        }
        if let Some(first) = row.first {
            return Some(Lack::TooLong(first));
        }
        let reached = self.rows.iter().rposition(|row| row.first.is_some());
        let Some((last, next)) = reached.map(|at| (&self.rows[at], self.rows.get(at + 1))) else {
            return Some(Lack::Unanswered);
        };
        if row.size < last.size {
            return Some(Lack::LeftOut);
        }
        let most = next.and_then(|next| last.longest_of(next.size));
        let too_long = most.filter(|most| !may_try(*most, self.time));
        Some(too_long.map_or(Lack::NoTime, Lack::MayBeTooLong))
    }

    /// The reason in words.
    fn why(&self, lack: Lack) -> String {
        let time = self.time;
        match lack {
            Lack::Ended => "the sweep ended before".to_owned(),
            Lack::TooLong(trip) => {
                format!("a round trip takes {trip} or more, too long for its part of {time}")
            }
            Lack::MayBeTooLong(trip) => {
                format!("a round trip may take {trip} or more, too long for its part of {time}")
            }
            Lack::Unanswered => "no round trip was answered".to_owned(),
            Lack::LeftOut => format!("left out, {time} are too short for all sizes"),
            Lack::NoTime => format!("no time was left of {time}"),
        }
    }

    /// The sizes that were timed, for the form of another tool.
    pub fn timed(&self) -> Vec<Timed<'_>> {
        let whole = words::returns(&self.engine, &self.options);
        let timed = self.rows.iter().filter_map(|row| timed(row, whole));
        timed.collect()
    }

    /// The sizes that were not timed, by the reason in words.
    pub fn lacking(&self) -> Vec<(String, Vec<Bytes>)> {
        let mut all: Vec<(Lack, Vec<Bytes>)> = Vec::new();
        for row in &self.rows {
            let Some(lack) = self.lack(row) else { continue };
            let same = |known: &Lack| discriminant(known) == discriminant(&lack);
            match all.iter_mut().find(|(known, _)| same(known)) {
                Some((_, sizes)) => sizes.push(row.size),
                None => all.push((lack, vec![row.size])),
            }
        }
        let told = all.into_iter().map(|(lack, sizes)| (self.why(lack), sizes));
        told.collect()
    }

    /// Messages of a size without an answer, of an engine that may lose them.
    fn lost(&self, row: &SizeTrips) -> Option<u64> {
        let times = row.times.as_ref().filter(|_| words::may_lose(&self.engine, &self.options));
        times.map(|times| times.lost)
    }
}

fn timed(row: &SizeTrips, whole: bool) -> Option<Timed<'_>> {
    Some(Timed {
        size: row.size,
        times: row.times.as_ref()?,
        lasted: row.lasted,
        washout: row.washout,
        whole,
    })
}

/// Round trips of a size that were timed.
fn number(row: &SizeTrips) -> u64 {
    row.times.as_ref().map_or(0, samples)
}
