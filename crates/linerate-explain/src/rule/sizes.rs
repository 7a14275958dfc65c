//! Rules about tables of messages of many sizes.

use std::collections::BTreeMap;

use super::super::{Explained, Table};
use super::{Remark, rate};
use linerate_ceiling::fingerprint::setters;
use linerate_facts::finding::Stands;
use linerate_record::reported::{SizeRow, Trip};
use linerate_units::{Bytes, Nanos};

/// Most possible origins of a timer that a remark names.
const NAMED: usize = 3;

/// Shortest period that may also be the round trip of a path, and not a timer.
const LONG_PERIOD: Nanos = Nanos::from_millis(1);

/// Least ratio of the longest time to the typical one that is a finding.
const LONG_TAIL: f64 = 10.0;

/// Share of the highest rate; larger messages below it are slower.
const RATE_FALLS: f64 = 0.8;

pub(super) fn timer(explained: &Explained<'_>) -> Vec<Remark> {
    let tables = explained.tables.iter();
    tables.filter_map(|table| timed(table)).collect()
}

fn timed(table: &Table<'_>) -> Option<Remark> {
    let timer = table.timer.as_ref()?;
    let what =
        format!("{}: a timer of {} sets the times, whatever the size", table.name, timer.period);
    let at = format!(
        "{} of {} sizes stand at whole multiples of it",
        timer.points,
        table.sizes.rows.len()
    );
    let mut remark = Remark::new(Stands::Found, what)
        .because(at)
        .because("no wire and no processor takes the same time for different sizes");
    if timer.period >= LONG_PERIOD {
        remark = remark.because(
            "a path with a round trip this long, and a window that grows by round trips, would look alike",
        );
    }
    let setters = setters(timer.period, &table.facts);
    let named = setters.iter().take(NAMED);
    Some(named.fold(remark, |remark, setter| {
        let remark = remark.next(&format!("it may be the {}", setter.name), setter.look);
        if setter.off.is_empty() {
            return remark;
        }
        let less = format!(
            "without that each time here is shorter by up to {}; the driver takes it when it is loaded or the port is set",
            timer.period
        );
        remark.next(&less, setter.off)
    }))
}

/// Finds the first size from which all messages move more slowly than smaller ones did.
pub(super) fn falls(explained: &Explained<'_>) -> Vec<Remark> {
    let tables = explained.tables.iter();
    tables.filter_map(|table| fall(explained, table)).collect()
}

fn fall(explained: &Explained<'_>, table: &Table<'_>) -> Option<Remark> {
    let rates = by_size(table);
    let most = |rates: &[(Bytes, f64)]| {
        let of = rates.iter().copied();
        of.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let falls_at = |at: usize| {
        let ((size, fast), (_, later)) = (most(&rates[..at])?, most(&rates[at..])?);
        (later < fast * RATE_FALLS).then_some((at, size, fast))
    };
    let (at, before, fast) = (1..rates.len()).find_map(falls_at)?;
    let (size, slow) = rates[at];
    let larger = if at + 1 < rates.len() { ", and larger messages do not catch up" } else { "" };
    let what = format!(
        "{}: from {before} to {size} the rate falls from {} to {}{larger}",
        table.name,
        rate(fast),
        rate(slow)
    );
    let mut remark = Remark::new(Stands::Found, what);
    if let Some(period) = other_timer(explained) {
        let turn = Nanos(period.0.saturating_mul(2));
        let flight = slow / 8.0 * turn.secs();
        remark = remark.because(format!(
            "another table shows a timer of {period}: this rate is {:.1} kB for each {turn}, there and back",
            flight / 1e3
        ));
    }
    if !table.is_verbs() {
        remark = remark.next(
            "find whether the sender waits for an acknowledgement of each part",
            "linerate flows",
        );
    }
    Some(remark)
}

/// The period of a timer that any table shows.
fn other_timer(explained: &Explained<'_>) -> Option<Nanos> {
    let timers = explained.tables.iter().filter_map(|t| t.timer.as_ref());
    timers.map(|timer| timer.period).next()
}

/// The highest rate of each size in bits per second, the smallest size first.
fn by_size(table: &Table<'_>) -> Vec<(Bytes, f64)> {
    let mut rates = BTreeMap::new();
    for row in &table.sizes.rows {
        if let Some(rate) = Table::rate(table.sizes, row) {
            let best = rates.entry(row.size).or_insert(0.0_f64);
            *best = best.max(rate.0 as f64);
        }
    }
    rates.into_iter().collect()
}

pub(super) fn tail(explained: &Explained<'_>) -> Vec<Remark> {
    let tables = explained.tables.iter();
    tables.filter_map(|table| worst(table)).collect()
}

fn worst(table: &Table<'_>) -> Option<Remark> {
    let times = |row: &SizeRow| {
        let (most, usual) = (row.most?, row.typical.or(row.mean)?);
        // A typical time of zero was rounded, so it has no ratio.
        let ratio = (usual.0 > 0).then(|| most.0 as f64 / usual.0 as f64)?;
        Some((most, usual, ratio))
    };
    let rows = table.sizes.rows.iter();
    let (row, (most, usual, ratio)) = rows
        .filter_map(|row| Some((row, times(row)?)))
        .max_by(|(_, a), (_, b)| a.2.total_cmp(&b.2))?;
    if ratio < LONG_TAIL {
        return None;
    }
    let of = row.samples.map_or(String::new(), |n| format!(" of {n}"));
    let what = format!(
        "{}: the longest{of} at {} took {most}, {ratio:.0} times the typical {usual}",
        table.name, row.size
    );
    Some(
        Remark::new(Stands::Found, what)
            .because("a mean or a median hides it; for a program with a deadline it is what counts")
            .next(
                "time round trips for longer, with the true maximum and what disturbed the hosts",
                "linerate lat HOST --time 60s",
            ),
    )
}

/// Finds small messages whose times one table halves and another one does not.
pub(super) fn halves(explained: &Explained<'_>) -> Vec<Remark> {
    let first = |trip| {
        let mut of = explained.tables.iter().filter(|t| t.sizes.trip == trip);
        of.find_map(|table| Some((table, table.smallest()?.time()?)))
    };
    let (Some((half, one)), Some((whole, both))) = (first(Trip::Half), first(Trip::Whole)) else {
        return Vec::new();
    };
    let what = format!(
        "{} has halves of round trips and {} whole ones: they are compared after doubling the halves",
        half.name, whole.name
    );
    let doubled = Nanos(one.0.saturating_mul(2));
    let evidence = format!("{one} is half of {doubled}, beside {both}");
    vec![Remark::new(Stands::Doubt, what).because(evidence)]
}

pub(super) fn management(explained: &Explained<'_>) -> Vec<Remark> {
    let is_ping = |table: &&Table<'_>| table.source.tool.name == "ibping";
    let tables = explained.tables.iter().filter(is_ping);
    let remark = |table: &Table<'_>| {
        let time = table.smallest()?.time()?;
        let what = format!(
            "ibping took {time} by the management path, through a program at each end: the latency of data is another one"
        );
        let mut remark =
            Remark::new(Stands::Doubt, what).next("time what data takes", "ib_send_lat HOST");
        let row = table.smallest()?;
        if let (Some(least), Some(most)) = (row.least, row.most) {
            remark = remark.because(format!("its times are {least} to {most}"));
        }
        Some(remark)
    };
    tables.filter_map(remark).collect()
}
