//! Rules that compare tables by size with each other, and the largest sizes of a table with its smaller ones.

use std::collections::BTreeMap;

use super::super::{Explained, Table};
use super::{Remark, rate};
use linerate_facts::finding::Stands;
use linerate_record::reported::{Carrier, SizeRow};
use linerate_units::{Bytes, Nanos};

/// Range of later rates over the highest rate in which they are a little slower: above it they are equal, below it
/// another rule reports them.
const LATER: std::ops::Range<f64> = 0.8..0.98;
/// Least number of rows before the highest rate that show a rise.
const RISE: usize = 4;

/// Finds the highest rate, if larger messages do not keep it.
pub(super) fn knee(explained: &Explained<'_>) -> Vec<Remark> {
    explained.tables.iter().filter_map(|table| past(table)).collect()
}

fn past(table: &Table<'_>) -> Option<Remark> {
    let rates =
        by_size(table, |row| Table::each_way(table.sizes, row).map(|rate| rate.0 as f64), f64::max);
    let rates: Vec<(Bytes, f64)> = rates.into_iter().collect();
    let (at, (size, best)) = rates.iter().enumerate().max_by(|a, b| a.1.1.total_cmp(&b.1.1))?;
    let later = rates.get(at + 1..)?;
    let (low, high) = (
        later.iter().map(|(_, rate)| *rate).reduce(f64::min)?,
        later.iter().map(|(_, rate)| *rate).reduce(f64::max)?,
    );
    if at < RISE || high >= best * LATER.end || low < best * LATER.start {
        return None;
    }
    let what = format!(
        "{}: {size} moves fastest, at {}; larger messages move at {:.0} to {:.0} % of that",
        table.name,
        rate(*best),
        (low / best * 100.0).floor(),
        (high / best * 100.0).ceil()
    );
    Some(
        Remark::new(Stands::Found, what)
            .because("messages that no longer fit into a cache, or into the table of pages of the card, are such a second limit")
            .next("the same sizes again, in turns, to see whether it holds", ""),
    )
}

/// One value for each message size: `join` combines the values of rows with the same size.
fn by_size(
    table: &Table<'_>,
    of: impl Fn(&SizeRow) -> Option<f64>,
    join: fn(f64, f64) -> f64,
) -> BTreeMap<Bytes, f64> {
    let mut all = BTreeMap::new();
    for row in &table.sizes.rows {
        if let Some(value) = of(row) {
            let own = all.entry(row.size).or_insert(value);
            *own = join(*own, value);
        }
    }
    all
}

/// The shortest round trip of each size, there and back, in nanoseconds.
fn times(table: &Table<'_>) -> BTreeMap<Bytes, f64> {
    by_size(table, |row| table.whole(row.time()?).map(|time| time.0 as f64), f64::min)
}

/// Most tables that are compared with each other.
const MOST: usize = 16;
/// Least number of sizes that two tables must have in common.
const SHARED: usize = 6;
/// Least ratio of two times at which one counts as longer: runs differ a little.
const LONGER: f64 = 1.03;
/// Largest ratio of two times that one disturbed run explains; a larger one is a difference of layers.
const DISTURBED: f64 = 1.08;

/// Finds a size at which one of two tables is faster although it is slower at all others.
pub(super) fn outlier(explained: &Explained<'_>) -> Vec<Remark> {
    let tables: Vec<&Table<'_>> = explained.tables.iter().take(MOST).collect();
    let pairs = tables
        .iter()
        .enumerate()
        .flat_map(|(at, first)| tables[at + 1..].iter().map(move |second| (*first, *second)));
    pairs.filter_map(|pair| turned(pair)).collect()
}

fn turned((first, second): (&Table<'_>, &Table<'_>)) -> Option<Remark> {
    let (one, other) = (times(first), times(second));
    let both: Vec<(Bytes, f64, f64)> =
        one.iter().filter_map(|(size, time)| Some((*size, *time, *other.get(size)?))).collect();
    if both.len() < SHARED {
        return None;
    }
    let ahead: Vec<_> = both.iter().filter(|(_, a, b)| *b > a * LONGER).collect();
    let behind: Vec<_> = both.iter().filter(|(_, a, b)| *a > b * LONGER).collect();
    let (fast, slow, [(size, a, b)]) = match (ahead.as_slice(), behind.as_slice()) {
        ([only], many) if many.len() + 2 >= both.len() => (second, first, [**only]),
        (many, [only]) if many.len() + 2 >= both.len() => (first, second, [**only]),
        _ => return None,
    };
    if a.max(b) > a.min(b) * DISTURBED {
        return None;
    }
    let words = |time: f64| Nanos(time as u64);
    let what = format!(
        "{} is faster than {} at every size but {size} ({} and {}): one run of each does not show that this size differs",
        fast.name,
        slow.name,
        words(a.max(b)),
        words(a.min(b))
    );
    Some(Remark::new(Stands::Doubt, what).next("repeat this size, in turns", ""))
}

/// Size in bytes from which datagrams exceed any Ethernet packet: they are sent in fragments.
const LARGE: Bytes = Bytes(9_000);
/// Least ratio of the time of large datagrams to that of TCP that is reported.
const SLOWER: f64 = 1.05;

pub(super) fn datagrams(explained: &Explained<'_>) -> Vec<Remark> {
    let of = |carrier: Carrier| {
        explained.tables.iter().find(|table| table.sizes.carrier == Some(carrier))
    };
    let named = |word: &str| {
        explained
            .tables
            .iter()
            .find(|table| table.is_sockets() && table.name.to_lowercase().contains(word))
    };
    let pair =
        of(Carrier::Udp).or_else(|| named("udp")).zip(of(Carrier::Tcp).or_else(|| named("tcp")));
    pair.and_then(|(udp, tcp)| fragments(udp, tcp)).into_iter().collect()
}

fn fragments(udp: &Table<'_>, tcp: &Table<'_>) -> Option<Remark> {
    let (own, other) = (times(udp), times(tcp));
    let both: Vec<(Bytes, f64, f64)> =
        own.iter().filter_map(|(size, time)| Some((*size, *time, *other.get(size)?))).collect();
    let (small, large) = (both.first()?, both.last()?);
    let is_turned = small.1 < small.2 && large.0 >= LARGE && large.1 > large.2 * SLOWER;
    is_turned.then(|| {
        let words = |time: f64| Nanos(time as u64);
        let what = format!(
            "{} by UDP take {} and by TCP {}, although small messages are faster by UDP ({} and {})",
            large.0,
            words(large.1),
            words(large.2),
            words(small.1),
            words(small.2)
        );
        Remark::new(Stands::Found, what)
            .because("the card cuts up and joins the segments of TCP, and the processor the fragments of a large datagram")
    })
}
