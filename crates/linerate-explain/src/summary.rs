//! The figures of results that other programs reported.

use super::{Material, Table};
use linerate_judge::figure::{
    Entry, Evidence, GOODPUT, LATENCY, LOSS, MESSAGES, RETRANSMITS, Subject, Summary, Value,
};
use linerate_plan::path::Direction;
use linerate_record::reported::{Counted, Transfer};
use linerate_units::Nanos;
use linerate_units::stats::{Count, mean_ci};

/// The figures of results: those of the transfer that represents each direction, and the round trips of the smallest
/// messages in the first table that has times.
pub(super) fn of(material: &Material, tables: &[Table<'_>]) -> Summary {
    let all = Direction::ALL.into_iter();
    let loads = all.filter_map(|direction| material.base(direction));
    let trips = tables.iter().find_map(round_trips).unwrap_or_default();
    Summary::sorted(loads.flat_map(load).chain(trips))
}

/// The figures of one transfer: goodput, messages, loss and retransmissions.
pub(crate) fn load(one: &Transfer) -> Vec<Entry> {
    let subject = Subject::load(one.direction);
    let goodput = (one.counted != Counted::Sender).then(|| Entry {
        figure: &GOODPUT,
        of: subject,
        value: Ok(Value {
            mid: one.goodput.0 as f64,
            evidence: mean_ci(&one.ticks).map_or(Evidence::None, Evidence::Interval),
        }),
    });
    let messages = one.messages.map(|rate| Entry::bare(&MESSAGES, subject, rate));
    let lost = one.datagrams.and_then(|counts| {
        let count = Count { events: counts.lost as f64, of: counts.of as f64 };
        Some(Entry { figure: &LOSS, of: subject, value: Ok(Value::share(vec![count])?) })
    });
    [goodput, messages, retransmits(one, subject), lost].into_iter().flatten().collect()
}

/// The share of retransmitted segments. The number of segments is computed from payload and segment size.
fn retransmits(one: &Transfer, subject: Subject) -> Option<Entry> {
    let bytes = one.goodput.0 as f64 / 8.0 * one.seconds?;
    let segments = bytes / f64::from(one.segment?.max(1));
    let share = one.retransmits? as f64 / segments.max(1.0);
    Some(Entry::bare(&RETRANSMITS, subject, share))
}

fn round_trips(table: &Table<'_>) -> Option<Vec<Entry>> {
    let row = table.smallest()?;
    let entry = |p: f64, time: Option<Nanos>| {
        let subject = Subject { percentile: Some(p), ..Subject::default() };
        let whole = table.whole(time?)?;
        Some(Entry::bare(&LATENCY, subject, whole.0 as f64))
    };
    let all = [entry(50.0, row.typical), entry(99.0, row.p99), entry(99.9, row.p999)];
    let all: Vec<Entry> = all.into_iter().flatten().collect();
    (!all.is_empty()).then_some(all)
}
