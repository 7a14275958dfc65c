//! A rule about layers: the same messages by verbs and by sockets.

use super::super::{Explained, Table};
use super::{Remark, Stands};
use linerate_units::{Bytes, Nanos};

/// Largest messages that are compared: larger ones take the time of their bytes.
const SMALL: Bytes = Bytes(64);

/// How many times as long sockets must take.
const SLOWER: f64 = 2.0;

pub(super) fn sockets(explained: &Explained<'_>) -> Vec<Remark> {
    let timed = || explained.tables.iter().filter_map(timed);
    let verbs = timed().filter(|(table, _)| table.is_verbs());
    let other = timed().filter(|(table, _)| table.is_sockets());
    let shortest = |(_, time): &(&Table<'_>, Nanos)| *time;
    let (Some((verbs, fast)), Some((other, slow))) =
        (verbs.min_by_key(shortest), other.min_by_key(shortest))
    else {
        return Vec::new();
    };
    if (slow.0 as f64) < fast.0 as f64 * SLOWER {
        return Vec::new();
    }
    let what = format!(
        "whole round trips take {slow} through sockets and {fast} by verbs: the shorter time is only for programs \
         that use verbs"
    );
    let named = |table: &Table<'_>| {
        let file = &table.source.file;
        if table.name == *file { file.clone() } else { format!("{} ({file})", table.name) }
    };
    let evidence = format!("by {} and {}", named(other), named(verbs));
    vec![Remark::new(Stands::Found, what).because(evidence)]
}

/// A table with its shortest whole round trip of small messages.
fn timed<'a, 'b>(table: &'b Table<'a>) -> Option<(&'b Table<'a>, Nanos)> {
    Some((table, small(table)?))
}

/// The shortest whole round trip of small messages.
fn small(table: &Table<'_>) -> Option<Nanos> {
    let rows = table.sizes.rows.iter().filter(|row| row.size <= SMALL);
    let times = rows.filter_map(|row| table.whole(row.time()?));
    times.min()
}
