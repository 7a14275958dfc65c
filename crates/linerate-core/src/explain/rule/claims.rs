//! Rules about claims.

use super::super::{Best, Explained, Said, Table};
use super::direction::network;
use super::{Remark, Stands, rate};
use crate::path::Direction;
use crate::reported::{Carrier, Measured, Trip};
use crate::units::Nanos;

/// How many times the rate of TCP files must move at before TCP is excluded.
const BEYOND_TCP: f64 = 1.3;

pub(super) fn headline(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let claims = explained.material.claims.iter();
    let remark = |claim: &super::super::Claim| match claim.said {
        Said::Reaches(claimed) => reaches(explained, &claim.text, claimed.0 as f64, id),
        Said::Within(time) => within(explained, &claim.text, time, id),
        Said::Before(_) | Said::Ceiling(_) | Said::Rdma => None,
    };
    claims.filter_map(remark).collect()
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
        Said::Before(time) => Some(time),
        _ => None,
    });
    befores
        .flat_map(|time| slower(explained, time, id))
        .collect()
}

/// The tables whose small messages take longer than before, sockets named as such: a program that stays with
/// sockets loses by the change. Both the times and the one from before are taken as the program reports them.
fn slower(explained: &Explained<'_>, before: Nanos, id: &'static str) -> Vec<Remark> {
    let tables = explained.tables.iter().filter(|table| table.is_sockets());
    let remark = |table: &Table<'_>| {
        let time = table.smallest()?.time()?;
        (time > before).then(|| {
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
            "files moved at {}, and TCP carried {}",
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
