//! A rule about layers: it compares the same messages by verbs and through sockets.

use super::super::{Explained, Table};
use super::Remark;
use linerate_facts::finding::Stands;
use linerate_units::{Bytes, Nanos};

/// Largest messages that are compared, in bytes: for larger ones the time is that of their bytes.
const SMALL_MESSAGE: Bytes = Bytes(64);

/// Least ratio of the round trip through sockets to that by verbs that is reported.
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

/// A table with its shortest round trip of small messages, there and back.
fn timed<'a, 'b>(table: &'b Table<'a>) -> Option<(&'b Table<'a>, Nanos)> {
    Some((table, small(table)?))
}

/// The shortest round trip of small messages, there and back; `None` if the table has no such time.
fn small(table: &Table<'_>) -> Option<Nanos> {
    let rows = table.sizes.rows.iter().filter(|row| row.size <= SMALL_MESSAGE);
    let times = rows.filter_map(|row| table.whole(row.time()?));
    times.min()
}
