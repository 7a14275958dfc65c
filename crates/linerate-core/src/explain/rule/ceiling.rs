//! A rule about rates at which a standard link is full.

use super::super::Explained;
use super::{Remark, Stands, rate};
use crate::ceiling::fingerprint::{Kind, filled};
use crate::model::Model;
use crate::path::Direction;
use crate::reported::{Carrier, Transfer};

/// A port of the host that the facts name would make the judge say so; without such facts the rate alone agrees.
pub(super) fn at_one(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let mut seen: Vec<(Direction, String)> = Vec::new();
    let mut all = Vec::new();
    for (_, one) in explained.material.transfers() {
        let known = |model: &Model| has_ceiling(model, one.direction);
        if explained.model.as_ref().is_some_and(known) {
            continue;
        }
        if let Some((name, remark)) = full(one, id)
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

fn full(one: &Transfer, id: &'static str) -> Option<(String, Remark)> {
    let uses_sockets = matches!(one.carrier, Carrier::Tcp | Carrier::Udp);
    // A rate that was asked for, or that two directions share, says nothing of a link.
    if !uses_sockets || one.both || one.asked.is_some() {
        return None;
    }
    let (name, way) = filled(one.goodput.0 as f64, Kind::Ethernet)?;
    let what = format!(
        "{} is what a full link of {name} carries: if the path has one, it is as fast as it can be",
        rate(one.goodput.0 as f64)
    );
    let evidence = format!("{}: {}", way.name, rate(way.rate));
    let remark = Remark::new(id, Stands::Good, what).because(evidence);
    Some((
        name,
        remark.next("the speed of each port of the path", "ethtool PORT"),
    ))
}
