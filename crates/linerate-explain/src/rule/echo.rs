//! Rules about round trips of packets: how they change from an idle path to a loaded one.

use std::net::Ipv4Addr;

use super::super::{Explained, Table};
use super::Remark;
use super::transfers::transfers;
use linerate_facts::finding::Stands;
use linerate_plan::path::Direction;
use linerate_record::reported::SizeRow;
use linerate_units::Nanos;

/// Least ratio of the loaded round trip to the idle one at which a queue is full; then the least difference between
/// them. A queue is sized for a round trip or two; a growth of less than 30 ms has the best grade of the usual tests of
/// bufferbloat, and calls survive it.
const GROWS: f64 = 5.0;
const LONGER: Nanos = Nanos::from_millis(30);

/// Least ratio of the shortest loaded round trip to the mean idle one at which a queue delays every packet. Radio and
/// power saving delay only some packets.
const ALL_WAIT: u64 = 2;

/// Least difference between the longest and shortest round trip behind a queue, as a share of their mean.
const QUEUE_VARIES: f64 = 0.1;

/// Most pings that are compared with each other.
const MOST: usize = 64;

/// Whether a round trip grew from idle to loaded as much as behind a full queue.
fn has_grown(idle: Nanos, loaded: Nanos) -> bool {
    idle.0 > 0
        && loaded.0 as f64 >= idle.0 as f64 * GROWS
        && loaded.0.saturating_sub(idle.0) >= LONGER.0
}

pub(super) fn queue(explained: &Explained<'_>) -> Vec<Remark> {
    let mut all = loaded(explained);
    if all.is_empty() {
        all.extend(pings(explained));
    }
    all
}

fn found(what: String) -> Remark {
    Remark::new(Stands::Found, what)
        .because("packets wait: a buffer on the path is far too long, often that of a modem")
        .next(
            "limit that direction to 95 % of its rate where a shaper keeps its queue short, at the router",
            "sudo tc qdisc replace dev PORT root cake bandwidth RATE",
        )
}

/// Remarks on transfers whose program also measured the round trip without load.
fn loaded(explained: &Explained<'_>) -> Vec<Remark> {
    let all = transfers(explained).filter(|(source, ..)| source.tool.name == "networkQuality");
    let remark = |(source, result, one): super::transfers::Of<'_>| {
        let (idle, loaded) = (one.round_trip.least?, one.round_trip.mean?);
        has_grown(idle, loaded).then(|| {
            let way = match one.direction {
                _ if one.both => "both directions are",
                Direction::Forward => "the upload is",
                Direction::Reverse => "the download is",
            };
            let what = format!(
                "the queue of the path fills: a round trip takes {idle} on the idle path, and {loaded} while {way} loaded"
            );
            let remark = found(what).names(&["latency-queue"]).shown_by(source, result);
            if one.both {
                remark
            } else {
                remark.of(one.direction)
            }
        })
    };
    let mut remarks: Vec<Remark> = all.filter_map(remark).collect();
    // Transfers in both directions at once share one round trip, so the second remark repeats the first.
    remarks.dedup_by(|a, b| a.finding.what == b.finding.what);
    remarks
}

/// Compares pings to one host, with packets of one size, none of which was lost: an idle round trip with a longer one.
fn pings(explained: &Explained<'_>) -> Option<Remark> {
    let all: Vec<(&Table<'_>, &SizeRow, Nanos)> = explained
        .tables
        .iter()
        .filter(|table| table.source.tool.name == "ping" && !table.outcome.title.is_empty())
        .filter_map(|table| {
            let row = table.sizes.rows.first()?;
            let mean = row.mean.filter(|_| row.lost == Some(0))?;
            Some((table, row, mean))
        })
        .take(MOST)
        .collect();
    let has_load = transfers(explained).next().is_some();
    let is_pair = |a: &(&Table<'_>, &SizeRow, Nanos), b: &(&Table<'_>, &SizeRow, Nanos)| {
        // If the number of routers differs, the paths differ.
        let is_same_path = match a.1.ttl.zip(b.1.ttl) {
            Some((a, b)) => a == b,
            None => has_load,
        };
        let same = a.0.outcome.title == b.0.outcome.title && a.1.size == b.1.size;
        same && is_same_path && has_grown(a.2, b.2)
    };
    let pair = |a| Some((a, all.iter().filter(|b| is_pair(a, b)).max_by_key(|b| b.2)?));
    let ((_, _, idle), (table, row, mean)) = all.iter().find_map(pair)?;
    let times = format!("round trips to one host took {idle}, and {mean} another time");
    // A longer distance gives constant round trips; behind a queue they vary.
    let varies = row.least.zip(row.most).is_some_and(|(least, most)| {
        most.0.saturating_sub(least.0) as f64 >= mean.0 as f64 * QUEUE_VARIES
    });
    let all_wait =
        varies && row.least.is_some_and(|least| least.0 >= idle.0.saturating_mul(ALL_WAIT));
    Some(if all_wait {
        let what = format!("the queue of the path fills: {times}, as under load");
        let remark = found(what)
            .names(&["latency-queue"])
            .shown_by(table.source, table.outcome);
        match direction(explained) {
            Some(direction) => remark.of(direction),
            None => remark.next("load one direction at a time, and ping", "iperf3 -c HOST; iperf3 -c HOST -R"),
        }
    } else {
        let least = row.least.map_or("unknown".to_owned(), |least| least.to_string());
        let what = format!("{times}, but not all of them waited: a queue that fills at times, radio, or a busy host");
        Remark::new(Stands::Found, what)
            .because(format!("the shortest of the long ones: {least}"))
            .names(&[])
            .next("by cable, and under a steady load", "linerate run HOST")
    })
    .map(|remark| remark.because("no packet of either was lost"))
}

/// The direction that the transfers of the input load; `None` if they load both directions.
fn direction(explained: &Explained<'_>) -> Option<Direction> {
    let mut all = transfers(explained).map(|(_, _, one)| one);
    let first = all.next().filter(|one| !one.both)?.direction;
    all.all(|one| one.direction == first && !one.both).then_some(first)
}

/// Time to live with which systems send packets: an answer that arrives with one of these values crossed no router.
//= Linux and macOS send 64, Windows 128, routers and small devices 255
const FRESH: [u8; 3] = [64, 128, 255];

/// Least ratio of the longest to the shortest round trip at which something delays packets at times.
const VARIES: f64 = 5.0;

/// Least number of answers that can show how round trips vary.
const FEWEST: u64 = 4;

pub(super) fn held(explained: &Explained<'_>) -> Vec<Remark> {
    let all = explained.tables.iter().take(MOST);
    all.filter(|table| table.source.tool.name == "ping")
        .filter_map(|table| held_near(table))
        .collect()
}

/// Finds long round trips to a host that no router separates, without loss: distance cannot explain them.
fn held_near(table: &Table<'_>) -> Option<Remark> {
    let row = table.sizes.rows.first()?;
    let address = table.outcome.title.parse::<Ipv4Addr>();
    let (host, why) = match row.ttl {
        Some(ttl) if FRESH.contains(&ttl) => (
            "a host without a router between",
            format!("with a time to live of {ttl}, as hosts send them"),
        ),
        None if address.is_ok_and(|address| address.is_private()) => (
            "a private address",
            "from a private address; without a tunnel it is nearby".to_owned(),
        ),
        _ => return None,
    };
    let samples = row.samples.filter(|samples| *samples >= FEWEST)?;
    let (mean, most) = (row.mean.filter(|mean| *mean >= LONGER)?, row.most?);
    // If the shortest time is unknown, it is below what the program can show.
    let varies = row.least.is_none_or(|least| most.0 as f64 >= least.0 as f64 * VARIES);
    let least = row.least.map_or("less than 1 ms".to_owned(), |least| least.to_string());
    let loss = match row.lost {
        Some(0) => "no packet was lost, but ",
        Some(_) => return None,
        None => "",
    };
    varies.then(|| {
        let what = format!(
            "{loss}round trips to {host} take {least} to {most}, {mean} in the mean: far too long for a local network; \
             only through a tunnel it would be distance"
        );
        Remark::new(Stands::Found, what)
            .because(format!("{samples} answers {why}"))
            .because("Wi-Fi (its power save, a weak signal, a busy channel) and a busy device look alike; a ping says nothing of the rate")
            .names(&[])
            .next("the same with power save off, then by cable", "sudo iw dev PORT set power_save off")
    })
}
