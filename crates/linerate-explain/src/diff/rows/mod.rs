//! Compares rows of results, such as the sizes of a table, operations on a disk and transfers. Only rows that measure
//! the same thing are compared.
//!
//! Two rows are alike if every trait that is known of both is the same. A trait that is unknown in both may differ, and
//! a note says so.

mod of;
mod swept;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::figures::{Outcome, outcome};
use linerate_judge::figure::{Unit, Value};
use linerate_units::Bytes;

pub(super) use of::of_import;
pub(super) use swept::{of_record, of_study};

/// A kind of figure that a row can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowFigure {
    /// Name of the figure in JSON, with its unit: `mean_ns`. Stable.
    pub key: &'static str,
    /// Name of the figure on screen.
    pub label: &'static str,
    /// Unit of the figure's values.
    pub unit: Unit,
}

/// A property that rows must share to be compared: its name and value; the value is `None` if unknown.
type Trait = (&'static str, Option<String>);

/// A row of results.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// The kind of result that the row belongs to: `transfers`.
    kind: &'static str,
    /// What the row measures, for people: `sequential read, 1 MiB`.
    title: String,
    /// Payload of a message in bytes, in tables by size; `None` for other rows.
    size: Option<Bytes>,
    /// Traits that must be the same in both rows, known or unknown.
    traits: Vec<Trait>,
    /// Traits that must not differ if both rows have a known value.
    soft: Vec<Trait>,
    /// Traits that may differ; a note then names the difference.
    beside: Vec<Trait>,
    /// Names that tell this row from others with the same traits, the best name first.
    names: Vec<String>,
    /// The figures of the row.
    figures: Vec<(RowFigure, Value)>,
    /// Whether the figures of the whole record already show this row.
    is_base: bool,
}

/// A figure in two rows that are alike, one of each record.
#[derive(Debug, Clone, PartialEq)]
pub struct RowChange {
    /// What the two rows measure.
    pub title: String,
    /// Payload of a message in bytes, in tables by size; `None` for other rows.
    pub size: Option<Bytes>,
    /// The figure that is compared.
    pub figure: RowFigure,
    /// The value in the first record.
    pub before: Value,
    /// The value in the second record.
    pub after: Value,
    /// The outcome of the comparison.
    pub outcome: Outcome,
}

/// The rows that are alike in two records, and why the others are not compared.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) rows: Vec<RowChange>,
    /// Notes that a reader needs about the rows that are compared.
    pub(super) notes: Vec<String>,
    /// Why the other rows are not compared: how they differ.
    pub(super) unlike: Vec<String>,
}

/// Most differences or names that are listed; of more only the number is given.
const MOST_LISTED: usize = 4;

/// Most rows of each record that are searched for the nearest row.
const MOST_SEARCHED: usize = 200;

/// Compares the rows of two records. `another` is the outcome of every row if none may be compared.
pub(super) fn compared(before: &[Row], after: &[Row], another: Option<Outcome>) -> Compared {
    let mut all = Compared::default();
    let (pairs, doubled) = pairs(before, after);
    let reported = pairs.iter().map(|pair| (&before[pair.at[0]], &after[pair.at[1]], pair));
    let reported: Vec<_> = reported.filter(|(a, b, _)| !(a.is_base && b.is_base)).collect();
    for (a, b, pair) in &reported {
        all.rows.extend(changes(a, b, &pair.name, another));
    }
    all.notes = notes(&reported);
    all.unlike = few(doubled);
    let free = |which: usize| {
        let (rows, others) = [(before, after), (after, before)][which];
        let used: BTreeSet<usize> = pairs.iter().map(|pair| pair.at[which]).collect();
        // A base row needs no note if the other record has one too: figures of the whole record show both.
        let stands = |row: &Row| {
            let is_base = |other: &Row| other.is_base && other.kind == row.kind;
            row.is_base && others.iter().any(is_base)
        };
        let free = (0..rows.len()).filter(|at| !used.contains(at) && !stands(&rows[*at]));
        free.take(MOST_SEARCHED).collect::<Vec<_>>()
    };
    let free = [free(0), free(1)];
    if !before.is_empty() && !after.is_empty() {
        all.unlike.extend(differences([before, after], &free));
    }
    all
}

/// Two rows that are alike, one of each record.
struct Pair {
    /// Positions of the two rows: in the first record, and in the second.
    at: [usize; 2],
    /// The name that tells the pair from other rows with the same traits; empty if there are no others.
    name: String,
}

/// The pairs of rows that are alike, and messages about rows with the same traits that cannot be told apart.
fn pairs(before: &[Row], after: &[Row]) -> (Vec<Pair>, BTreeSet<String>) {
    let groups = |rows: &[Row]| {
        let mut groups: BTreeMap<(&'static str, Vec<Trait>), Vec<usize>> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            let traits = (row.kind, row.traits.clone());
            groups.entry(traits).or_default().push(at);
        }
        groups
    };
    let (first, second) = (groups(before), groups(after));
    let (mut pairs, mut doubled) = (Vec::new(), BTreeSet::new());
    for (key, a) in &first {
        let Some(b) = second.get(key) else { continue };
        let mut found = told_apart(before, after, a, b);
        if found.is_empty() {
            let title = &before[a[0]].title;
            let (a, b) = (a.len(), b.len());
            doubled.insert(format!("{title}: {a} rows before and {b} after cannot be told apart"));
        }
        found.retain(|pair| {
            let [a, b] = [&before[pair.at[0]], &after[pair.at[1]]];
            changed(&a.soft, &b.soft, true).is_empty()
        });
        pairs.extend(found);
    }
    pairs.sort_unstable_by_key(|pair| pair.at);
    (pairs, doubled)
}

/// Pairs of rows with the same traits. Rows are paired by the first kind of name that only one row in each record has.
fn told_apart(before: &[Row], after: &[Row], a: &[usize], b: &[usize]) -> Vec<Pair> {
    if let ([one], [other]) = (a, b) {
        let at = [*one, *other];
        let name = String::new();
        return vec![Pair { at, name }];
    }
    let by = |which: usize| {
        let (first, second) = (named(before, a, which), named(after, b, which));
        let alone = first.into_iter().filter_map(|(name, at)| {
            let ([one], [other]) = (at.as_slice(), second.get(name)?.as_slice()) else {
                return None;
            };
            let (at, name) = ([*one, *other], name.to_owned());
            Some(Pair { at, name })
        });
        alone.collect::<Vec<_>>()
    };
    let most = a.iter().map(|at| before[*at].names.len()).max();
    let mut each = (0..most.unwrap_or(0)).map(by);
    each.find(|pairs| !pairs.is_empty()).unwrap_or_default()
}

/// Positions of rows, grouped by the name at index `which` of each.
fn named<'a>(rows: &'a [Row], at: &[usize], which: usize) -> BTreeMap<&'a str, Vec<usize>> {
    let mut names: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for at in at {
        if let Some(name) = rows[*at].names.get(which) {
            names.entry(name).or_default().push(*at);
        }
    }
    names
}

/// Compares the figures that two rows have in common.
fn changes(before: &Row, after: &Row, name: &str, another: Option<Outcome>) -> Vec<RowChange> {
    let title =
        if name.is_empty() { before.title.clone() } else { format!("{} ({name})", before.title) };
    let both = before.figures.iter().filter_map(|(figure, a)| {
        let (_, b) = after.figures.iter().find(|(other, _)| other == figure)?;
        Some(RowChange {
            title: title.clone(),
            size: before.size,
            figure: *figure,
            before: a.clone(),
            after: b.clone(),
            outcome: another.unwrap_or_else(|| outcome(Some(a), Some(b))),
        })
    });
    both.collect()
}

/// Notes about rows that are compared: which traits are unknown, and which may-differ traits do differ.
fn notes(pairs: &[(&Row, &Row, &Pair)]) -> Vec<String> {
    let mut unknown = BTreeSet::new();
    let mut beside = BTreeSet::new();
    for (a, b, _) in pairs {
        let open = a.traits.iter().filter(|(_, value)| value.is_none());
        let soft = a.soft.iter().chain(&b.soft).filter(|(_, value)| value.is_none());
        unknown.extend(open.chain(soft).map(|(name, _)| *name));
        beside.extend(changed(&a.beside, &b.beside, true));
        if changes(a, b, "", None).is_empty() {
            let (first, second) = (labels(a), labels(b));
            beside.insert(format!(
                "{}: no figure in common, {first} before and {second} after",
                a.title
            ));
        }
    }
    let unknown = (!unknown.is_empty()).then(|| {
        let names = unknown.into_iter().collect::<Vec<_>>().join(", ");
        format!("not known of all rows, and may differ: {names}")
    });
    unknown.into_iter().chain(few(beside)).collect()
}

fn labels(row: &Row) -> String {
    let all = row.figures.iter().map(|(figure, _)| figure.label);
    all.collect::<Vec<_>>().join(", ")
}

/// The first few of `all` differences, and how many more there are.
fn few(all: BTreeSet<String>) -> Vec<String> {
    let more = all.len().saturating_sub(MOST_LISTED);
    let more = (more > 0).then(|| format!("{more} more differences of rows"));
    all.into_iter().take(MOST_LISTED).chain(more).collect()
}

/// The traits whose values differ, in words: `in flight 32 before, 8 after`.
fn changed(a: &[Trait], b: &[Trait], both_known: bool) -> Vec<String> {
    let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
    let differ = a.iter().filter_map(|(name, before)| {
        let (_, after) = b.iter().find(|(other, _)| other == name)?;
        let is_reported = before != after && (!both_known || before.is_some() && after.is_some());
        is_reported.then(|| format!("{name} {} before, {} after", word(before), word(after)))
    });
    differ.collect()
}

/// For each row without an equal in the other record, how it differs from the nearest row there.
fn differences(rows: [&[Row]; 2], free: &[Vec<usize>; 2]) -> Vec<String> {
    let (mut found, mut alone) = (BTreeSet::new(), Vec::new());
    for which in [0, 1] {
        let mut only: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for at in &free[which] {
            let row = &rows[which][*at];
            let Some(all) = nearest(row, which, rows[1 - which]) else {
                found.insert(format!("{} only {}", row.kind, RECORD_WORDS[which]));
                continue;
            };
            let series = SERIES.iter().find(|name| all.len() == 1 && all[0].starts_with(*name));
            if let Some(name) = series {
                let value = row.traits.iter().find(|(own, _)| own == name);
                let values = only.entry(name).or_default();
                values.extend(value.and_then(|(_, value)| value.clone()));
            } else if !all.is_empty() {
                found.insert(format!("{}: {}", row.kind, all.join("; ")));
            }
        }
        let only = only.into_iter().filter(|(_, values)| !values.is_empty());
        alone.extend(only.map(|(name, values)| listed(name, RECORD_WORDS[which], values)));
    }
    few(found).into_iter().chain(alone).collect()
}

/// The values of a trait that only one record has: `message size only before: 2 B, 4 B`.
fn listed(name: &str, when: &str, mut values: Vec<String>) -> String {
    values.dedup();
    let more = match values.len().saturating_sub(MOST_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    values.truncate(MOST_LISTED);
    format!("{name} only {when}: {}{more}", values.join(", "))
}

/// The fewest differences between a row and a row of the other record; `None` if that record has no such results. If
/// rows differ in more than the size, the size is left out: it is not why they are not compared.
fn nearest(row: &Row, which: usize, others: &[Row]) -> Option<Vec<String>> {
    let alike = others.iter().filter(|other| other.kind == row.kind);
    let differ = |other: &Row| {
        let (a, b) = if which == 0 { (row, other) } else { (other, row) };
        let mut all = changed(&a.traits, &b.traits, false);
        all.extend(changed(&a.soft, &b.soft, true));
        all
    };
    let mut least = alike.take(MOST_SEARCHED).map(differ).min_by_key(Vec::len)?;
    if least.len() > 1 {
        least.retain(|one| !one.starts_with(SIZE));
    }
    Some(least)
}

/// The traits whose values differ between the rows of one series.
const SERIES: [&str; 2] = [SIZE, STREAMS];
const STREAMS: &str = "streams";

/// The trait whose value differs between the rows of one table.
const SIZE: &str = "message size";

/// The words for the first and the second record.
const RECORD_WORDS: [&str; 2] = ["before", "after"];
