//! Rules about claims: which of them the figures support or contradict.

use super::super::{Best, Claim, Explained, Kind, Said, Table};
use super::direction::network;
use super::{Remark, rate};
use linerate_ceiling::Relation;
use linerate_facts::finding::Stands;
use linerate_plan::path::Direction;
use linerate_record::reported::{Carrier, Measured, Trip};
use linerate_units::{Bytes, Nanos, Rate};

/// Least ratio of the rate of files to the network's rate over TCP at which the files cannot have moved by TCP.
const BEYOND_TCP: f64 = 1.3;

/// Least ratio of a measured rate to a claimed ceiling that contradicts the claim: both are rounded.
const ABOVE_CEILING: f64 = 1.02;

/// Least ratio of a round trip after a change to the one before that counts as longer: runs differ a little.
const LONGER: f64 = 1.05;

/// Most tables that are named when a time cannot be compared because it is of another kind.
const FEW: usize = 5;

pub(super) fn headline(explained: &Explained<'_>) -> Vec<Remark> {
    let claims = explained.material.claims.iter();
    let remark = |claim: &Claim| {
        let found = match claim.said {
            Said::Reaches(claimed) => reaches(explained, &claim.text, claimed.0 as f64),
            Said::Within(time) => within(explained, &claim.text, time),
            Said::Ceiling(claimed) => ceiling(explained, &claim.text, claimed.0 as f64),
            Said::Before(..) | Said::Rdma => return None,
        };
        Some(found.unwrap_or_else(|| alone(&claim.text)))
    };
    claims.filter_map(remark).collect()
}

/// The remark on a claim that no figure can be compared with.
fn alone(claim: &str) -> Remark {
    let what = format!("no figure that was read can be held against `{claim}`");
    Remark::new(Stands::Doubt, what)
}

fn ceiling(explained: &Explained<'_>, claim: &str, claimed: f64) -> Option<Remark> {
    let best = Best::of(explained.material)?;
    let words = format!("{} ({})", rate(best.rate), best.file);
    Some(if best.rate > claimed * ABOVE_CEILING {
        let what = format!("a figure is above `{claim}`: {words}");
        Remark::new(Stands::Doubt, what)
    } else {
        let share = best.rate / claimed.max(1.0) * 100.0;
        let what = format!("the best figure is {share:.0} % of `{claim}`: {words}");
        Remark::new(Stands::Found, what)
    })
}

fn reaches(explained: &Explained<'_>, claim: &str, claimed: f64) -> Option<Remark> {
    let best = Best::of(explained.material)?;
    let words = format!("the best is {} ({})", rate(best.rate), best.file);
    if let Some(most) = rounded(explained, &best, claimed) {
        let what = format!(
            "`{claim}` is more than the hardware as described carries, {most}: {words}, which is rounded or counts \
             more than payload"
        );
        return Some(Remark::new(Stands::Doubt, what));
    }
    Some(if best.rate >= claimed {
        Remark::new(Stands::Good, format!("`{claim}` holds: {words}"))
    } else {
        Remark::new(Stands::Doubt, format!("no figure reaches `{claim}`: {words}"))
    })
}

/// The ceiling of the hardware; only if a measured rate slightly above it reaches a claim that no payload can reach.
fn rounded(explained: &Explained<'_>, best: &Best, claimed: f64) -> Option<Rate> {
    let ceiling = explained.material.hardware.goodput()?;
    let is_near = Relation::to_ceiling(best.rate, ceiling) != Relation::Above;
    let reaches = best.rate >= claimed && claimed > ceiling.high();
    (is_near && reaches).then(|| Rate(ceiling.high() as u64))
}

/// Whether the shortest round trip keeps a claimed time. If only a half of a round trip does, the claim does not hold.
fn within(explained: &Explained<'_>, claim: &str, time: Nanos) -> Option<Remark> {
    let least = |of: &dyn Fn(&Table<'_>, Nanos) -> Option<Nanos>| {
        let tables = explained.tables.iter();
        let times = tables.filter_map(|t| of(t, t.smallest()?.time()?));
        times.min()
    };
    let whole = least(&|table, time| table.whole(time))?;
    let half = least(&|table, time| (table.sizes.trip == Trip::Half).then_some(time));
    Some(match half {
        _ if whole <= time => Remark::new(
            Stands::Good,
            format!("`{claim}` holds: the shortest whole round trip is {whole}"),
        ),
        Some(half) if half <= time => Remark::new(
            Stands::Doubt,
            format!(
                "`{claim}` holds only of halves of round trips: {half}, and {whole} for a whole one"
            ),
        ),
        _ => Remark::new(
            Stands::Doubt,
            format!("no figure keeps `{claim}`: the shortest whole round trip is {whole}"),
        ),
    })
}

pub(super) fn before(explained: &Explained<'_>) -> Vec<Remark> {
    let claims = explained.material.claims.iter();
    let now = Trips::all(explained);
    let remark = |claim: &Claim| match claim.said {
        Said::Before(..) if now.is_empty() => Some(alone(&claim.text)),
        Said::Before(kind, before) => held(&now, kind, before, claim),
        _ => None,
    };
    claims.filter_map(remark).collect()
}

/// The round trips of the smallest messages in a table.
struct Trips<'a> {
    table: &'a Table<'a>,
    carrier: Carrier,
    size: Bytes,
    time: Nanos,
}

impl<'a> Trips<'a> {
    /// The round trips of each table that names a protocol and tells whether its times are halves.
    fn all(explained: &'a Explained<'_>) -> Vec<Self> {
        let of = |table: &'a Table<'_>| {
            let row = table.smallest()?;
            Some(Self {
                table,
                carrier: table.sizes.carrier?,
                size: row.size,
                time: table.whole(row.time()?)?,
            })
        };
        explained.tables.iter().filter_map(of).collect()
    }

    fn words(&self) -> String {
        let Self { table, carrier, size, time } = self;
        format!("{}: {time} through {}, whole round trips of {size}", table.name, carrier.words())
    }
}

/// Compares a time before the change with the shortest round trip of the same kind after it.
fn held(now: &[Trips<'_>], kind: Option<Kind>, before: Nanos, claim: &Claim) -> Option<Remark> {
    let is_alike = |trips: &&Trips<'_>| match kind {
        Some(Kind::Test(Carrier::Sockets)) => trips.table.is_sockets(),
        Some(Kind::Test(carrier)) => carrier == trips.carrier,
        Some(Kind::Application) | None => false,
    };
    let Some(best) = now.iter().filter(is_alike).min_by_key(|trips| trips.time) else {
        return Some(unlike(now, kind, before, claim));
    };
    (best.time.0 as f64 > before.0 as f64 * LONGER).then(|| {
        let what = format!(
            "{}: whole round trips of {} take {}, longer than the {before} before the change",
            best.table.name, best.size, best.time
        );
        Remark::new(Stands::Found, what)
    })
}

/// The remark on a time before the change whose kind no table after the change has.
fn unlike(now: &[Trips<'_>], kind: Option<Kind>, before: Nanos, claim: &Claim) -> Remark {
    let what = match kind {
        None => format!(
            "`{}` does not say what took {before}: it is not held against the times that were read",
            claim.text
        ),
        Some(Kind::Application) => format!(
            "the {before} before are of two applications, and no time that was read is: a test program does none of \
             their work"
        ),
        Some(Kind::Test(carrier)) => format!(
            "the {before} before are through {}, and no time that was read is: they are not of one kind",
            carrier.words()
        ),
    };
    let mut remark = Remark::new(Stands::Doubt, what);
    remark.finding.proof = now.iter().take(FEW).map(Trips::words).collect();
    if kind.is_some() {
        return remark;
    }
    remark.next(
        "name the kind: tcp, udp, sockets, verbs, messages or application",
        "linerate import FILE --claim before.KIND.latency=TIME",
    )
}

pub(super) fn transport(explained: &Explained<'_>) -> Vec<Remark> {
    let claimed = explained.material.claims.iter().any(|c| c.said == Said::Rdma);
    if !claimed || shows_rdma(explained) {
        return Vec::new();
    }
    let files = Direction::ALL
        .into_iter()
        .filter_map(|direction| super::direction::files(explained, direction))
        .reduce(f64::max);
    let tcp = Direction::ALL.into_iter().filter_map(|d| network(explained, d)).reduce(f64::max);
    let Some(files) = files else {
        return Vec::new();
    };
    let evidence = match tcp {
        Some(tcp) if files > tcp * BEYOND_TCP => return Vec::new(),
        Some(tcp) => format!(
            "files moved at {}, and the network carried {} without RDMA",
            rate(files),
            rate(tcp)
        ),
        None => format!("files moved at {}, and no figure of TCP stands beside it", rate(files)),
    };
    vec![
        Remark::new(Stands::Doubt, "that RDMA moved the bytes is not shown")
            .because(evidence)
            .next(
                "compare the bytes that the RDMA port counts before and after",
                "cat /sys/class/infiniband/*/ports/*/counters/port_xmit_data",
            ),
    ]
}

fn shows_rdma(explained: &Explained<'_>) -> bool {
    let results = explained.material.sources.iter().flat_map(|s| &s.results);
    let mut carriers = results.map(|result| match &result.measured {
        Measured::Transfer(one) => Some(one.carrier),
        _ => None,
    });
    carriers.any(|carrier| carrier == Some(Carrier::Rdma))
}
