//! Shows round trips with each message size: what the times show of the path, and why a size was not timed.

#[cfg(test)]
#[path = "tests/sizes.rs"]
pub(super) mod sample;

use std::mem::discriminant;

use linerate_ceiling::fingerprint::{self, Fit, Spread, Timer, tick};
use linerate_facts::Gap;
use linerate_judge::figure::{DELAYED, Entry, Subject};
use linerate_judge::model::{SizeTrips, by_size, same_machine};
use linerate_judge::study::Point;
use linerate_plan::Knobs;
use linerate_plan::study::trips::may_try;
use linerate_plan::study::{Axis, AxisValue};
use linerate_record::Record;
use linerate_units::{Bytes, Nanos};

use super::super::bw::own::broken;
use super::super::document::{Document, Item, Tone};
use super::super::fitted;
use super::super::like::Timed;
use super::super::words::{self, count};
use super::super::{one_line, refused};
use super::agreement;
use super::grid::Grid;

/// Round trips measured with each message size, in interleaved rounds.
#[derive(Debug)]
pub struct Sizes<'a> {
    pub(super) record: &'a Record,
    rows: Vec<SizeTrips>,
    /// Message sizes that an end refused, and why.
    left_out: Vec<Gap>,
}

/// Why a message size was not timed.
#[derive(Debug, Clone, Copy)]
enum Lack {
    /// The sweep ended early.
    Ended,
    /// A round trip takes so long that too few of them fit in the time.
    TooLong(Nanos),
    /// A round trip may take so long that too few of them fit in the time.
    MayBeTooLong(Nanos),
    /// No message of this size was answered.
    Unanswered,
    /// Only some of the sizes fit in the time, and this one was left out.
    LeftOut,
    /// The time was over before this size was measured.
    NoTime,
}

impl Lack {
    /// Whether the sweep leaves such a size out by plan, because round trips on the path are long.
    const fn is_planned(self) -> bool {
        matches!(self, Self::TooLong(_) | Self::MayBeTooLong(_) | Self::LeftOut)
    }
}

impl<'a> Sizes<'a> {
    /// Makes the result of a record that varies the message size. `sizes` are those that the transport can carry,
    /// `left_out` those that an end refused.
    pub fn of(record: &'a Record, sizes: &[Bytes], left_out: Vec<Gap>) -> Self {
        Self { record, rows: by_size(record, sizes), left_out }
    }

    pub(super) fn axis(&self) -> Axis {
        let values = self.rows.iter().map(|row| AxisValue::size(row.size)).collect();
        Axis { name: "size".to_owned(), values }
    }

    /// Settings of the connections.
    pub(super) fn knobs(&self) -> Knobs {
        self.record.sets.first().map(|set| set.plan.knobs.clone()).unwrap_or_default()
    }

    /// Planned time for all sizes together.
    pub(super) fn time(&self) -> Nanos {
        self.record.start.plan.time
    }

    pub(super) fn gaps(&self) -> Vec<Gap> {
        refused::of_all(self.record).into_iter().chain(self.left_out.clone()).collect()
    }

    /// Whether all sizes that fit in the time were timed.
    pub(super) fn complete(&self) -> bool {
        let lacks = self.rows.iter().filter_map(|row| self.lack(row));
        let mut unplanned = lacks.filter(|lack| !lack.is_planned());
        broken(self.record).is_empty() && unplanned.next().is_none()
    }

    /// The points of this part. `outer` are its values on the axes that it does not vary.
    pub(super) fn points(&self, outer: &[String]) -> Vec<Point> {
        let plan = &self.record.start.plan;
        let may_lose = words::may_lose(&plan.engine, &plan.knobs.options);
        let point = |row: &SizeTrips| {
            let own = AxisValue::size(row.size).label;
            let values: Vec<String> = outer.iter().cloned().chain([own]).collect();
            let Some(times) = &row.times else {
                let lack = self.lack(row).unwrap_or(Lack::Unanswered);
                return Point::lacking(values, super::gap(self.why(lack)));
            };
            let mut point = Point::of_times(values, times);
            point.lost = may_lose.then_some(times.lost);
            point.summary.entries.extend(
                row.delayed.map(|more| Entry::bare(&DELAYED, Subject::default(), more.0 as f64)),
            );
            point
        };
        self.rows.iter().map(point).collect()
    }

    /// What the times show of the path, computed from halves of round trips.
    pub(super) fn fit(&self) -> Option<Fit> {
        let points: Vec<_> = self.rows.iter().filter_map(SizeTrips::half).collect();
        fingerprint::fit(&points)
    }

    /// The timer that round trips wait for; `None` if there is none, or if the wait is a delayed acknowledgement.
    pub(super) fn timer(&self) -> Option<Timer> {
        if self.rows.iter().any(|row| row.delayed.is_some()) {
            return None;
        }
        let rows: Vec<Spread> = self.rows.iter().filter_map(SizeTrips::spread).collect();
        tick(&rows)
    }

    /// Why a size was not timed; `None` if it was timed.
    fn lack(&self, row: &SizeTrips) -> Option<Lack> {
        if row.times.is_some() {
            return None;
        }
        if !broken(self.record).is_empty() {
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
        let too_long = most.filter(|most| !may_try(*most, self.time()));
        Some(too_long.map_or(Lack::NoTime, Lack::MayBeTooLong))
    }

    /// The reason in words, with its numbers.
    fn why(&self, lack: Lack) -> String {
        let time = self.time();
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

    /// The sizes that were timed, for output in the form of another tool.
    pub fn timed(&self) -> Vec<Timed<'_>> {
        let plan = &self.record.start.plan;
        let whole = words::returns(&plan.engine, &plan.knobs.options);
        let rows = self.rows.iter().filter_map(|row| {
            let times = row.times.as_ref()?;
            Some(Timed { size: row.size, times, lasted: row.lasted, washout: row.washout, whole })
        });
        rows.collect()
    }

    /// The reasons in words, each with the sizes that were not timed for it.
    pub(super) fn lacking(&self) -> Vec<(String, Vec<Bytes>)> {
        let mut all: Vec<(Lack, Vec<Bytes>)> = Vec::new();
        for row in &self.rows {
            let Some(lack) = self.lack(row) else { continue };
            let same = |known: &Lack| discriminant(known) == discriminant(&lack);
            match all.iter_mut().find(|(known, _)| same(known)) {
                Some((_, sizes)) => sizes.push(row.size),
                None => all.push((lack, vec![row.size])),
            }
        }
        let reported = all.into_iter().map(|(lack, sizes)| (self.why(lack), sizes));
        reported.collect()
    }
}

/// The sizes that were not timed, in words: a table in the form of another tool leaves them out.
pub fn not_measured(found: &super::Found<'_>) -> String {
    let super::Found::Sizes(probe) = found else {
        return String::new();
    };
    let lines = probe
        .lacking()
        .into_iter()
        .map(|(why, sizes)| format!("not measured: {}: {}\n", listed(&sizes), one_line(&why)));
    lines.collect()
}

fn listed(sizes: &[Bytes]) -> String {
    let all: Vec<String> = sizes.iter().map(|size| AxisValue::size(*size).label).collect();
    all.join(", ")
}

/// The page: the table, the sizes that were not timed, and what the times show.
pub(super) fn page(probe: &Sizes<'_>) -> Document {
    let mut doc = Document::new();
    doc.heading(if probe.record.start.plan.engine == "connect" {
        "Whole round trips of a connection and a message, by size"
    } else {
        "Whole round trips, there and back, by size of the message and of its answer"
    });
    Grid::of_points("size", &probe.points(&[])).write(&mut doc);
    lost(&mut doc, probe);
    for (why, sizes) in probe.lacking() {
        let text = format!("{}: {why}", listed(&sizes));
        doc.entry("not measured", &[(Tone::Warning, &text)], 2);
    }
    doc.gap();
    doc.heading("What times by size show");
    delays(&mut doc, probe);
    if let Some(timer) = probe.timer() {
        fitted::ticks(&mut doc, "whole round trips", &timer, &agreement(probe.record));
    }
    let what = "each way if both are alike, by halves of typical round trips";
    fitted::rate(&mut doc, what, probe.fit().as_ref(), &agreement(probe.record));
    doc
}

/// Writes how many messages were never answered, by size.
fn lost(doc: &mut Document, probe: &Sizes<'_>) {
    let lossy = probe.points(&[]).into_iter().filter_map(|point| {
        let lost = point.lost.filter(|lost| *lost > 0)?;
        let all = point.samples.saturating_add(lost);
        Some(format!("{} ({lost} of {all}) of {}", words::share(lost, all), point.values[0]))
    });
    let reported: Vec<String> = lossy.collect();
    if !reported.is_empty() {
        let text = format!("{}: never answered, and no samples", reported.join(", "));
        doc.entry("lost", &[(Tone::Warning, &text)], 2);
    }
}

/// Writes how long round trips waited for a delayed acknowledgement, if messages were sent in two writes.
fn delays(doc: &mut Document, probe: &Sizes<'_>) {
    let delayed: Vec<_> = probe.rows.iter().filter(|row| row.delayed.is_some()).collect();
    let most = delayed.iter().filter_map(|row| row.delayed).max();
    let (Some(first), Some(last), Some(most)) = (delayed.first(), delayed.last(), most) else {
        return;
    };
    let sizes = if delayed.len() == 1 {
        first.size.to_string()
    } else {
        format!("{} to {}", first.size, last.size)
    };
    let text = format!("{sizes}: {}", words::delayed(most));
    doc.item(Item::new(&[(Tone::Warning, &text)]).indent(0, 4));
}

/// The last line of the page: what was measured, and how.
pub(super) fn title(probe: &Sizes<'_>) -> String {
    let plan = &probe.record.start.plan;
    let starts = words::starts_far_end(&plan.engine);
    let far = match &plan.peer {
        Some(target) => format!("linerate at {target}"),
        None => "two processes of this host".to_owned(),
    };
    let how = words::how_sent(&probe.knobs());
    let shared =
        if same_machine(probe.record) && !starts { ", both ends on this machine" } else { "" };
    let sizes = count(probe.rows.len() as u64, "size");
    format!(
        "{far}, {}, closed loop{how}, idle path, {sizes} in turn in {}{shared}",
        words::engine(&plan.engine, &plan.knobs.options),
        probe.time()
    )
}
