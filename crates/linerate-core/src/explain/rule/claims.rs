//! Rules about claims.

use super::super::{Best, Claim, Explained, Said, Table};
use super::direction::network;
use super::{Remark, Stands, rate};
use crate::path::Direction;
use crate::reported::{Carrier, Measured, Trip};
use crate::units::Nanos;

/// How many times the rate of TCP files must move at before TCP is excluded.
const BEYOND_TCP: f64 = 1.3;

/// How many times the claimed capacity a rate must be to contradict it: both are rounded.
const ABOVE_CEILING: f64 = 1.02;

/// How many times the time before a change the time after it must be to be longer: runs differ a little.
const LONGER: f64 = 1.05;

pub(super) fn headline(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let claims = explained.material.claims.iter();
    let remark = |claim: &Claim| {
        let found = match claim.said {
            Said::Reaches(claimed) => reaches(explained, &claim.text, claimed.0 as f64, id),
            Said::Within(time) => within(explained, &claim.text, time, id),
            Said::Ceiling(claimed) => ceiling(explained, &claim.text, claimed.0 as f64, id),
            Said::Before(_) | Said::Rdma => return None,
        };
        Some(found.unwrap_or_else(|| alone(&claim.text, id)))
    };
    claims.filter_map(remark).collect()
}

/// A claim that stands beside nothing.
fn alone(claim: &str, id: &'static str) -> Remark {
    let what = format!("no figure that was read can be held against `{claim}`");
    Remark::new(id, Stands::Doubt, what)
}

fn ceiling(
    explained: &Explained<'_>,
    claim: &str,
    claimed: f64,
    id: &'static str,
) -> Option<Remark> {
    let best = Best::of(explained.material)?;
    let words = format!("{} ({})", rate(best.rate), best.file);
    Some(if best.rate > claimed * ABOVE_CEILING {
        let what = format!("a figure is above `{claim}`: {words}");
        Remark::new(id, Stands::Doubt, what)
    } else {
        let share = best.rate / claimed.max(1.0) * 100.0;
        let what = format!("the best figure is {share:.0} % of `{claim}`: {words}");
        Remark::new(id, Stands::Finding, what)
    })
}

fn reaches(
    explained: &Explained<'_>,
    claim: &str,
    claimed: f64,
    id: &'static str,
) -> Option<Remark> {
    let best = Best::of(explained.material)?;
    let words = format!("the best is {} ({})", rate(best.rate), best.file);
    Some(if best.rate >= claimed {
        Remark::new(id, Stands::Good, format!("`{claim}` holds: {words}"))
    } else {
        Remark::new(
            id,
            Stands::Doubt,
            format!("no figure reaches `{claim}`: {words}"),
        )
    })
}

/// A claimed time that only halves of round trips keep is not kept.
fn within(explained: &Explained<'_>, claim: &str, time: Nanos, id: &'static str) -> Option<Remark> {
    let least = |of: &dyn Fn(&Table<'_>, Nanos) -> Option<Nanos>| {
        let tables = explained.tables.iter();
        let times = tables.filter_map(|t| of(t, t.smallest()?.time()?));
        times.min()
    };
    let whole = least(&|table, time| table.whole(time))?;
    let half = least(&|table, time| (table.sizes.trip == Trip::Half).then_some(time));
    Some(match half {
        _ if whole <= time => Remark::new(
            id,
            Stands::Good,
            format!("`{claim}` holds: the shortest whole round trip is {whole}"),
        ),
        Some(half) if half <= time => Remark::new(
            id,
            Stands::Doubt,
            format!(
                "`{claim}` holds only of halves of round trips: {half}, and {whole} for a whole one"
            ),
        ),
        _ => Remark::new(
            id,
            Stands::Doubt,
            format!("no figure keeps `{claim}`: the shortest whole round trip is {whole}"),
        ),
    })
}

pub(super) fn before(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let claims = explained.material.claims.iter();
    let befores = claims.filter_map(|claim| match claim.said {
        Said::Before(time) => Some((claim, time)),
        _ => None,
    });
    let is_known = explained
        .tables
        .iter()
        .any(|t| t.is_sockets() && t.smallest().is_some());
    befores
        .flat_map(|(claim, time)| {
            if is_known {
                slower(explained, time, id)
            } else {
                vec![alone(&claim.text, id)]
            }
        })
        .collect()
}

/// The tables whose small messages take longer than before, sockets named as such: a program that stays with
/// sockets loses by the change. Both the times and the one from before are taken as the program reports them.
fn slower(explained: &Explained<'_>, before: Nanos, id: &'static str) -> Vec<Remark> {
    let tables = explained.tables.iter().filter(|table| table.is_sockets());
    let remark = |table: &Table<'_>| {
        let time = table.smallest()?.time()?;
        (time.0 as f64 > before.0 as f64 * LONGER).then(|| {
            let what = format!(
                "{}: {time} is slower than the {before} before the change, for programs that stay with sockets",
                table.name
            );
            Remark::new(id, Stands::Finding, what)
        })
    };
    tables.filter_map(remark).collect()
}

pub(super) fn transport(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let claimed = explained
        .material
        .claims
        .iter()
        .any(|c| c.said == Said::Rdma);
    if !claimed || shows_rdma(explained) {
        return Vec::new();
    }
    let files = Direction::ALL
        .into_iter()
        .filter_map(|direction| super::direction::files(explained, direction))
        .reduce(f64::max);
    let tcp = Direction::ALL
        .into_iter()
        .filter_map(|d| network(explained, d))
        .reduce(f64::max);
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
        None => format!(
            "files moved at {}, and no figure of TCP stands beside it",
            rate(files)
        ),
    };
    vec![
        Remark::new(id, Stands::Doubt, "that RDMA moved the bytes is not shown")
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
