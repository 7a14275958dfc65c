//! Rules about links and ports: full, used in part, or slower than they could be.

use super::super::{Explained, facts, side_name};
use super::{Remark, Stands, rate};
use crate::ceiling::Link;
use crate::ceiling::fingerprint::{self as print, Kind, filled};
use crate::facts::odd::Oddity;
use crate::model::Model;
use crate::path::{Direction, Side};
use crate::reported::{Carrier, Transfer};

/// A port of the host that the facts name would make the judge say so; without such facts the rate alone agrees.
pub(super) fn at_one(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let mut seen: Vec<(Direction, String)> = Vec::new();
    let mut all = Vec::new();
    let verbs = explained
        .material
        .transfers()
        .filter(|(_, one)| one.carrier == Carrier::Rdma);
    for (_, one) in verbs {
        let known = |model: &Model| has_ceiling(model, one.direction);
        if explained.model.as_ref().is_some_and(known) {
            continue;
        }
        if let Some((name, remark)) = full(explained, one, id)
            && !seen.contains(&(one.direction, name.clone()))
        {
            seen.push((one.direction, name));
            all.push(remark);
        }
    }
    all
}

fn has_ceiling(model: &Model, direction: Direction) -> bool {
    let found = model.direction(direction);
    found.is_some_and(|found| found.ceiling().is_some())
}

fn full(explained: &Explained<'_>, one: &Transfer, id: &'static str) -> Option<(String, Remark)> {
    let kinds = [Kind::InfiniBand, Kind::Ethernet];
    // A rate that was asked for, or that two directions share, says nothing of a link.
    if one.both || one.asked.is_some() {
        return None;
    }
    let goodput = one.goodput.0 as f64;
    let links = links(explained);
    let of = |kind: &Kind| filled(goodput, *kind, print::Carrier::Verbs);
    let is_known = |name: &str| links.iter().any(|link| name_of(*link) == name);
    let found: Vec<_> = kinds.iter().filter_map(of).collect();
    let known = found.iter().find(|(name, _)| is_known(name));
    // A link that is known to be another one excludes the rest.
    let (name, way) = match known {
        Some(found) => found.clone(),
        None if links.is_empty() => found.into_iter().next()?,
        None => return None,
    };
    let words = rate(goodput);
    let is_known = is_known(&name);
    let what = if is_known {
        format!(
            "{words} is all that {name} carries, and the path has such a link: it is as fast as it can be"
        )
    } else {
        format!(
            "{words} is what a full link of {name} carries: if the path has one, it is as fast as it can be"
        )
    };
    let evidence = format!("{}: {}", way.name, rate(way.rate));
    let remark = Remark::new(id, Stands::Good, what)
        .because(evidence)
        .of(one.direction);
    Some((
        name,
        if is_known {
            remark
        } else {
            remark.next("the speed of each port of the path", "ethtool PORT")
        },
    ))
}

/// The links that the facts of both hosts name.
fn links(explained: &Explained<'_>) -> Vec<Link> {
    facts::links_of(explained.material)
}

/// The name of a link among the standard ceilings.
fn name_of(link: Link) -> String {
    match link {
        Link::Ethernet(rate) => format!("Ethernet {rate}"),
        Link::InfiniBand { width, speed } => format!("InfiniBand {} {width}x", speed.name()),
    }
}

/// Share of its link below which a transfer by verbs leaves much of it unused.
const LEAVES: f64 = 0.9;

/// Transfers by verbs, for which the judge has no causes yet, beside the links that the facts name.
pub(super) fn below(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let links = links(explained).into_iter();
    let least = links.min_by(|a, b| a.capacity().high().total_cmp(&b.capacity().high()));
    let Some(least) = least else {
        return Vec::new();
    };
    let carries = least.capacity().high() * 8.0;
    let remark = |one: &Transfer| {
        let share = one.goodput.0 as f64 / carries;
        let is_one = one.carrier == Carrier::Rdma && !one.both && one.asked.is_none();
        (is_one && share < LEAVES).then(|| {
            let what = format!(
                "{} is {:.0} % of what the link {least} carries: the link is not the limit",
                rate(one.goodput.0 as f64),
                share * 100.0
            );
            Remark::new(id, Stands::Finding, what)
                .because("left are the slot of the card, the size of messages, and the operations in flight")
                .next("the slot that the card trained to", "sudo lspci -vv")
        })
    };
    let all = explained.material.transfers();
    all.filter_map(|(_, one)| remark(one)).collect()
}

/// Oddities of ports that carry nothing: results did not cross them.
const DOWN: [&str; 2] = ["ib-not-set-up", "ib-held-down"];

/// Ports and slots of hosts that are slower than they could be, beside results that may have crossed them.
pub(super) fn host(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let sources = &explained.material.sources;
    // Facts alone have a section of their own.
    if sources.iter().all(|source| source.results.is_empty()) {
        return Vec::new();
    }
    let each = Side::ALL.into_iter().zip(&explained.oddities);
    let all = each.flat_map(|(side, all)| all.iter().map(move |odd| (side, odd)));
    let limiting = all.filter(|(_, odd)| !odd.limits.is_empty() && !DOWN.contains(&odd.id));
    limiting.map(|(side, odd)| slower(side, odd, id)).collect()
}

fn slower(side: Side, odd: &Oddity, id: &'static str) -> Remark {
    let what = format!("{} of the {}: {}", odd.subject, side_name(side), odd.what);
    let remark = Remark::new(id, Stands::Finding, what).because(odd.why);
    if odd.fix.steps.is_empty() {
        return remark.next(&odd.fix.what, "");
    }
    let mut label = odd.fix.what.as_str();
    odd.fix.steps.iter().fold(remark, |remark, step| {
        let about = if step.about.is_empty() {
            std::mem::take(&mut label)
        } else {
            &step.about
        };
        remark.next(about, &step.command)
    })
}
