//! Rates of messages, by verbs or by a message library: those of transfers and those of tables alike.

use std::collections::BTreeMap;

use super::super::{Explained, Table};
use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Measured, Outcome, Setup, Sizes, Source, Transfer};
use linerate_units::Bytes;

/// Most runs that are compared: each is held against each.
const MOST: usize = 64;

/// Rows of a table that are many.
const MANY: usize = 6;
/// Rows of a long table that the highest rate must hold for, and how near they must be to it.
const LEVEL: usize = 3;
const NEAR: f64 = 0.01;

/// A run that has rates of messages.
pub(super) struct Moved<'a> {
    /// Its output.
    pub source: &'a Source,
    /// Its result.
    pub outcome: &'a Outcome,
    /// How it was set up.
    pub setup: &'a Setup,
    /// What carried it.
    pub carrier: Carrier,
    /// Its direction, where it has one.
    pub direction: Option<Direction>,
    /// Whether the rates are the sum of both ways.
    pub both: bool,
    /// The highest rate of each size, bits per second, with the number of its messages.
    pub rows: BTreeMap<Bytes, (f64, Option<u64>)>,
    /// The highest rate, bits per second.
    pub best: f64,
    /// Whether the highest rate is that of several sizes, or of a run of few.
    pub is_level: bool,
}

impl Moved<'_> {
    /// The highest rate of one way.
    pub(super) fn each_way(&self) -> f64 {
        if self.both { self.best / 2.0 } else { self.best }
    }

    /// Whether two runs do the same, one way or both. A table has no direction.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let directions = self.direction.zip(other.direction);
        self.carrier == other.carrier
            && directions.is_none_or(|(own, other)| own == other)
            && self.source.tool.name == other.source.tool.name
            && operation(&self.outcome.title) == operation(&other.outcome.title)
    }

    /// The largest size that both have, with the rates of both.
    pub(super) fn beside(&self, other: &Self) -> Option<(Bytes, f64, f64)> {
        let mut sizes = self.rows.iter().rev();
        sizes.find_map(|(size, (rate, _))| Some((*size, *rate, other.rows.get(size)?.0)))
    }

    /// The only size, of a run of one.
    pub(super) fn only(&self) -> Option<(Bytes, f64, Option<u64>)> {
        let (size, (rate, messages)) = self.rows.first_key_value()?;
        (self.rows.len() == 1).then_some((*size, *rate, *messages))
    }
}

/// Operations of verbs, by a word of the names of tests.
const OPERATIONS: [&str; 4] = ["write", "read", "send", "atomic"];
/// Words of names that say that a test loads both ways, and the words of a test of one way.
const BOTH: [(&str, &str); 4] =
    [("bidirectional ", ""), ("bi-directional ", ""), ("_bi_", "_"), ("biband", "uniband")];

/// The operation of a test, whether it is one way or both.
fn operation(title: &str) -> String {
    let lower = title.to_lowercase();
    let known = OPERATIONS.iter().find(|name| lower.contains(*name));
    let one_way = || BOTH.iter().fold(lower.clone(), |name, (both, one)| name.replace(both, one));
    known.map_or_else(one_way, |name| (*name).to_owned())
}

/// The runs with rates of messages, in the order of the input.
pub(super) fn runs<'a>(explained: &'a Explained<'_>) -> Vec<Moved<'a>> {
    let all = explained.material.runs();
    let found = all.filter_map(|(source, outcome)| match &outcome.measured {
        Measured::Transfer(one) => of_transfer(source, outcome, one),
        Measured::Sizes(sizes) => {
            of_table(source, outcome, sizes).filter(|run| is_messages(run.carrier))
        }
        Measured::Disk(_) | Measured::Counters(_) | Measured::Cpus(_) | Measured::Hops(_) => None,
    });
    found.take(MOST).collect()
}

/// The tables of rates whose processes did not all run at one host, as far as is known, whatever carries them.
pub(super) fn tables<'a>(explained: &'a Explained<'_>) -> Vec<Moved<'a>> {
    let all = explained.material.runs();
    let found = all.filter_map(|(source, outcome)| match &outcome.measured {
        Measured::Sizes(sizes) if sizes.setup.only_host().is_none() => {
            of_table(source, outcome, sizes)
        }
        _ => None,
    });
    found.take(MOST).collect()
}

fn is_messages(carrier: Carrier) -> bool {
    matches!(carrier, Carrier::Rdma | Carrier::Messages)
}

fn of_transfer<'a>(
    source: &'a Source,
    outcome: &'a Outcome,
    one: &'a Transfer,
) -> Option<Moved<'a>> {
    // A rate that was asked for, or an end of a run that failed, says nothing of the path.
    let counts = is_messages(one.carrier) && one.asked.is_none() && one.error.is_none();
    let rate = one.goodput.0 as f64;
    counts.then(|| Moved {
        source,
        outcome,
        setup: &one.setup,
        carrier: one.carrier,
        direction: Some(one.direction),
        both: false,
        rows: BTreeMap::from([(one.size.unwrap_or_default(), (rate, one.setup.messages))]),
        best: rate,
        is_level: !one.both,
    })
}

fn of_table<'a>(source: &'a Source, outcome: &'a Outcome, sizes: &'a Sizes) -> Option<Moved<'a>> {
    let carrier = sizes.carrier?;
    let mut rows: BTreeMap<Bytes, (f64, Option<u64>)> = BTreeMap::new();
    for row in &sizes.rows {
        // A rate that follows from a time is that of one message at a time.
        let Some(rate) = row.rate.map(|rate| rate.0 as f64) else {
            continue;
        };
        let best = rows.entry(row.size).or_insert((rate, row.samples));
        if rate > best.0 {
            *best = (rate, row.samples);
        }
    }
    let best = rows.values().map(|(rate, _)| *rate).reduce(f64::max)?;
    let level = rows.values().filter(|(rate, _)| *rate >= best * (1.0 - NEAR)).count();
    Some(Moved {
        source,
        outcome,
        setup: &sizes.setup,
        carrier,
        direction: None,
        both: Table::is_sum(sizes),
        is_level: level >= LEVEL || rows.len() < MANY,
        rows,
        best,
    })
}
