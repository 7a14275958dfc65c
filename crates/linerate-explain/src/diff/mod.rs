//! Compares two records: their plans, hosts, measurements and verdicts.
//!
//! This program judges both records anew. A value that is missing in one record is not a change. An interval is valid
//! only within its run: a difference between two runs does not show its reason.

mod basis;
mod disturbances;
mod facts;
mod figures;
mod limits;
mod plan;
mod rows;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Explained, Headline};
use linerate_judge::figure::Summary;
use linerate_judge::model::{Model, derive, is_by_size};
use linerate_judge::study::varied;
use linerate_judge::verdict::{Verdict, judge};
use linerate_plan::path::{Direction, Side};
use linerate_record::{End, Record};

pub use basis::Basis;
pub use disturbances::DisturbanceChange;
pub use figures::{FigureChange, Outcome};
pub use limits::{Fate, LimitChange};
pub use plan::PlanChange;
pub use rows::{RowChange, RowFigure};

/// A record with the verdict that this version of the program gives.
#[derive(Debug)]
pub struct Judged<'a> {
    /// The record that was read.
    pub record: &'a Record,
    /// The model derived from the record.
    pub model: Model,
    /// The figures of the record.
    pub summary: Summary,
    /// The verdict on the record.
    pub verdict: Verdict,
    /// The answer to read first; `None` if there is nothing to judge.
    pub headline: Option<Headline>,
    /// What the figures of the record measure.
    pub basis: Basis,
}

impl<'a> Judged<'a> {
    /// Judges a record.
    pub fn new(record: &'a Record) -> Self {
        let model = derive(record);
        let verdict = judge(&model);
        Self {
            record,
            summary: Summary::of(record, &model),
            headline: Headline::of_run(&model, &verdict),
            model,
            verdict,
            basis: Basis::of_record(record),
        }
    }

    /// Judges an import by what its results show.
    pub fn import(record: &'a Record, explained: &Explained<'_>) -> Self {
        Self {
            record,
            model: explained.material.model(),
            summary: explained.summary.clone(),
            verdict: explained.verdict.clone(),
            headline: explained.headline.clone(),
            basis: Basis::of_import(explained),
        }
    }

    /// Whether the record is an import: another program measured it.
    fn is_import(&self) -> bool {
        self.record.imported.is_some()
    }

    /// Whether the record has a figure of the load in a direction, or, for `None`, of the idle path.
    fn has_figure(&self, of: Option<Direction>) -> bool {
        let mut all = self.summary.entries.iter();
        all.any(|entry| entry.of.direction == of && entry.value.is_ok())
    }

    /// The directions that were measured.
    fn directions(&self) -> Vec<Direction> {
        let all = Direction::ALL.into_iter();
        all.filter(|direction| self.measured(*direction)).collect()
    }

    /// Whether a direction was measured.
    fn measured(&self, direction: Direction) -> bool {
        self.model.direction(direction).is_some() || self.has_figure(Some(direction))
    }
}

/// A fact or setting whose value differs in the second record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// Name of a setting, a version or a property of a port: `kernel`, `net.ipv4.tcp_rmem`.
    pub what: String,
    /// The value in the first record.
    pub before: String,
    /// The value in the second record.
    pub after: String,
}

impl Change {
    /// A change from one value to another; `None` if both values are the same.
    fn of(what: impl Into<String>, before: String, after: String) -> Option<Self> {
        (before != after).then(|| Self { what: what.into(), before, after })
    }
}

/// The changes of a path from one record to another.
#[derive(Debug)]
pub struct Diff {
    /// Notes that a reader needs for the rest: hosts that differ, runs that were cut short.
    pub notes: Vec<String>,
    /// The options that differ.
    pub plan: Vec<PlanChange>,
    /// The facts of each host that differ.
    pub facts: Vec<(Side, Change)>,
    /// The figures that were measured in either record.
    pub figures: Vec<FigureChange>,
    /// The rows that are alike in both records: sizes of messages, operations on a disk, transfers.
    pub rows: Vec<RowChange>,
    /// Limits that were upheld in either record.
    pub limits: Vec<LimitChange>,
    /// The disturbances of the measurement in either record.
    pub disturbances: Vec<DisturbanceChange>,
}

/// Why two records cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiffError {
    /// Both names that were given belong to one run.
    #[error("both are records of the same run")]
    Same,
    /// Nothing was measured in one of the records.
    #[error("nothing was measured in the {0} record")]
    Empty(&'static str),
    /// One of the records is of a sweep, which has no single figures.
    #[error("the {0} record is of a sweep, which has figures for each value and no single one")]
    Sweep(&'static str),
    /// One of the records is an import that has no results.
    #[error(
        "the {0} record is an import without transfers, tables by size and operations on a disk"
    )]
    NoResults(&'static str),
    /// No row of one record measures the same thing as a row of the other record.
    #[error("no row of one record is like a row of the other: {0}")]
    Rows(String),
    /// One record has only loads, and the other only round trips on the idle path.
    #[error("one record has only round trips, and the other only loads")]
    Unlike,
    /// No direction was measured in both records.
    #[error("the records have no direction in common: {before} before, {after} after")]
    Apart {
        /// A direction that was measured in the first record.
        before: &'static str,
        /// A direction that was measured in the second record.
        after: &'static str,
    },
}

/// Most differences that the message of a refusal lists.
const MOST_NAMED: usize = 2;

impl DiffError {
    fn rows(unlike: &[String]) -> Self {
        let named = unlike.iter().take(MOST_NAMED).map(String::as_str);
        let more = (unlike.len() > MOST_NAMED).then_some("and more");
        Self::Rows(named.chain(more).collect::<Vec<_>>().join("; "))
    }
}

/// Compares two records: `before` is the first, `after` the second.
pub fn diff(before: &Judged<'_>, after: &Judged<'_>) -> Result<Diff, DiffError> {
    if before.record == after.record {
        return Err(DiffError::Same);
    }
    let is_import = before.is_import() || after.is_import();
    let plan = if is_import {
        Vec::new()
    } else {
        plan::changes(&before.record.start.plan, &after.record.start.plan)
    };
    let is_varied = varied(before.record).is_some();
    let another = plan.iter().any(|plan| plan.idle || is_varied && plan.load);
    let another = another.then_some(Outcome::OtherPlan);
    let rows = rows::compared(&before.basis.rows, &after.basis.rows, another);
    // A sweep has figures for each size, and its verdict is about none of them.
    let is_swept = is_swept(before.record) || is_swept(after.record);
    let figures = figures::changes(before, after, &plan);
    let figures: Vec<FigureChange> = figures.into_iter().filter(|_| !is_swept).collect();
    let has_both = |change: &FigureChange| change.before.is_some() && change.after.is_some();
    if rows.rows.is_empty() {
        refuse(before, after, &rows.unlike)?;
        if is_import && !rows.unlike.is_empty() && !figures.iter().any(has_both) {
            return Err(DiffError::rows(&rows.unlike));
        }
    }
    let mut notes = notes(before, after);
    notes.extend(rows.notes);
    if is_swept || before.is_import() && after.is_import() {
        let unlike = rows.unlike.iter();
        notes.extend(unlike.map(|what| format!("not compared: {what}")));
    }
    Ok(Diff {
        notes,
        facts: facts::changes(before, after),
        figures,
        rows: rows.rows,
        limits: if is_swept { Vec::new() } else { limits::changes(before, after) },
        disturbances: disturbances::changes(before, after),
        plan,
    })
}

/// Compares two studies, given as their records: the points that are in both studies.
pub fn diff_of_studies(before: &[Judged<'_>], after: &[Judged<'_>]) -> Result<Diff, DiffError> {
    let (a, b) = match (before, after) {
        ([one], [other]) => return diff(one, other),
        ([a, ..], [b, ..]) => (a, b),
        ([], _) => return Err(DiffError::Empty("first")),
        (_, []) => return Err(DiffError::Empty("second")),
    };
    if a.record == b.record {
        return Err(DiffError::Same);
    }
    let plan = plan::changes(&a.record.start.plan, &b.record.start.plan);
    let another = plan.iter().any(|plan| plan.idle || plan.load);
    let another = another.then_some(Outcome::OtherPlan);
    let rows = rows::compared(&rows::of_study(before), &rows::of_study(after), another);
    if rows.rows.is_empty() {
        return Err(DiffError::rows(&rows.unlike));
    }
    let mut notes = notes(a, b);
    if before.len() != after.len() {
        notes.push(format!("{} records before, {} after", before.len(), after.len()));
    }
    notes.extend(rows.notes);
    notes.extend(rows.unlike.iter().map(|what| format!("not compared: {what}")));
    Ok(Diff {
        notes,
        facts: facts::changes(a, b),
        figures: Vec::new(),
        rows: rows.rows,
        // Each point has its own record and verdict, so the limits of a study are not compared.
        limits: Vec::new(),
        disturbances: Vec::new(),
        plan,
    })
}

/// Whether a record varies a factor by itself: it has figures for each value of the factor, and none for the whole.
fn is_swept(record: &Record) -> bool {
    is_by_size(record) || varied(record).is_some()
}

/// Refuses two records that have neither rows alike nor figures in common.
fn refuse(before: &Judged<'_>, after: &Judged<'_>, unlike: &[String]) -> Result<(), DiffError> {
    for (which, judged) in [("first", before), ("second", after)] {
        let has_figures = !judged.directions().is_empty() || judged.has_figure(None);
        let is_sweep = is_swept(judged.record);
        if has_figures && !is_sweep {
            continue;
        }
        return Err(match judged.record.imported {
            _ if !unlike.is_empty() => DiffError::rows(unlike),
            _ if is_sweep => DiffError::Sweep(which),
            None => DiffError::Empty(which),
            Some(_) => DiffError::NoResults(which),
        });
    }
    let [a, b] = [before.directions(), after.directions()];
    match (a.as_slice(), b.as_slice()) {
        (first, second) if first.iter().any(|direction| second.contains(direction)) => Ok(()),
        ([before, ..], [after, ..]) => {
            Err(DiffError::Apart { before: before.name(), after: after.name() })
        }
        _ if before.has_figure(None) && after.has_figure(None) => Ok(()),
        _ => Err(DiffError::Unlike),
    }
}

fn notes(before: &Judged<'_>, after: &Judged<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let import = before.is_import() || after.is_import();
    for side in [Side::Near, Side::Far] {
        // An import gives its hosts' roles, but not their names.
        let host = |judged: &'_ Judged<'_>| judged.model.host(side).filter(|_| !import).cloned();
        let name = |judged: &Judged<'_>| host(judged).map(|h| h.facts.name);
        if let (Some(a), Some(b)) = (name(before), name(after))
            && a != b
        {
            let side = side.name();
            notes.push(format!("the {side} host is another one: {a} before, {b} after"));
        }
    }
    for (which, judged) in [("first", before), ("second", after)] {
        notes.extend(basis::notes(which, &judged.basis));
    }
    if before.model.same_machine != after.model.same_machine && !import {
        let (one, other) =
            if before.model.same_machine { ("before", "after") } else { ("after", "before") };
        notes.push(format!("both ends were one machine {one}, and two {other}"));
    }
    if after.record.start.wall_secs < before.record.start.wall_secs {
        notes.push("the second record is older than the first".to_owned());
    }
    for (which, judged) in [("first", before), ("second", after)] {
        if !matches!(judged.record.end, Some(End::Complete)) {
            notes.push(format!("the {which} run was cut short"));
        }
    }
    for direction in Direction::ALL {
        let name = direction.name();
        match (before.measured(direction), after.measured(direction)) {
            (true, false) => notes.push(format!("{name} was measured in the first record alone")),
            (false, true) => notes.push(format!("{name} was measured in the second record alone")),
            _ => {}
        }
    }
    notes
}

#[cfg(test)]
mod tests;
