//! Rates of messages that verbs or a message library moved, from transfers and from tables.

use std::collections::BTreeMap;

use super::super::{Explained, Table};
use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Measured, Outcome, Setup, Sizes, Source, Transfer};
use linerate_units::Bytes;

/// Most runs that are compared: each run is compared with each other one.
const MOST: usize = 64;

/// Least number of rows of a long table.
const LONG_TABLE: usize = 6;
/// Number of rows of a long table that must be near the highest rate, and their largest distance from it as a share.
const LEVEL_ROWS: usize = 3;
const NEAR_BEST: f64 = 0.01;

/// A run that reports rates of messages.
pub(super) struct Moved<'a> {
    /// The program output that holds the run.
    pub source: &'a Source,
    /// The result of the run.
    pub outcome: &'a Outcome,
    /// The options with which the program ran.
    pub setup: &'a Setup,
    /// The protocol or library that carried the messages.
    pub carrier: Carrier,
    /// The direction of the messages; `None` for a table, which has none.
    pub direction: Option<Direction>,
    /// Whether the rates are the sum of both directions.
    pub both: bool,
    /// The highest rate of each message size, in bits per second, and the number of messages.
    pub rows: BTreeMap<Bytes, (f64, Option<u64>)>,
    /// The highest rate of all sizes, in bits per second.
    pub best: f64,
    /// Whether several sizes are near the highest rate. Also set for a run that has few sizes.
    pub is_level: bool,
}

impl Moved<'_> {
    /// The highest rate of each direction, in bits per second.
    pub(super) fn each_way(&self) -> f64 {
        if self.both { self.best / 2.0 } else { self.best }
    }

    /// Whether two runs are the same test, in one direction or both. Directions are compared only where both runs have
    /// one.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let directions = self.direction.zip(other.direction);
        self.carrier == other.carrier
            && directions.is_none_or(|(own, other)| own == other)
            && self.source.tool.name == other.source.tool.name
            && operation(&self.outcome.title) == operation(&other.outcome.title)
    }

    /// The largest message size that both runs have, with the rate of each run.
    pub(super) fn beside(&self, other: &Self) -> Option<(Bytes, f64, f64)> {
        let mut sizes = self.rows.iter().rev();
        sizes.find_map(|(size, (rate, _))| Some((*size, *rate, other.rows.get(size)?.0)))
    }

    /// The size, rate and number of messages of a run that has only one size.
    pub(super) fn only(&self) -> Option<(Bytes, f64, Option<u64>)> {
        let (size, (rate, messages)) = self.rows.first_key_value()?;
        (self.rows.len() == 1).then_some((*size, *rate, *messages))
    }
}

/// Operations of verbs, as words in the names of tests.
const OPERATIONS: [&str; 4] = ["write", "read", "send", "atomic"];
/// Words in the names of tests that load both directions, each with the word that the one-direction test has instead.
const BOTH: [(&str, &str); 4] =
    [("bidirectional ", ""), ("bi-directional ", ""), ("_bi_", "_"), ("biband", "uniband")];

/// The operation that a test's name gives, without words that tell whether it loads one direction or both.
fn operation(title: &str) -> String {
    let lower = title.to_lowercase();
    let known = OPERATIONS.iter().find(|name| lower.contains(*name));
    let one_way = || BOTH.iter().fold(lower.clone(), |name, (both, one)| name.replace(both, one));
    known.map_or_else(one_way, |name| (*name).to_owned())
}

/// The runs that report rates of messages, in the order of the input.
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

/// The tables of rates, with any protocol, that are not known to have run on a single host.
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
    // A requested rate, or a run that failed, shows nothing about the path.
    let counts = is_messages(one.carrier) && one.requested.is_none() && one.error.is_none();
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
        // A rate computed from a time is that of one message at a time, so rows without a reported rate are skipped.
        let Some(rate) = row.rate.map(|rate| rate.0 as f64) else {
            continue;
        };
        let best = rows.entry(row.size).or_insert((rate, row.samples));
        if rate > best.0 {
            *best = (rate, row.samples);
        }
    }
    let best = rows.values().map(|(rate, _)| *rate).reduce(f64::max)?;
    let level = rows.values().filter(|(rate, _)| *rate >= best * (1.0 - NEAR_BEST)).count();
    Some(Moved {
        source,
        outcome,
        setup: &sizes.setup,
        carrier,
        direction: None,
        both: Table::is_sum(sizes),
        is_level: level >= LEVEL_ROWS || rows.len() < LONG_TABLE,
        rows,
        best,
    })
}
