//! Rules about links and ports: full, used in part, or slower than they could be.

use super::super::{Explained, side_name};
use super::fabric::ports;
use super::{Remark, Stands, fabric, full};
use linerate_facts::odd::Oddity;
use linerate_plan::path::Side;

/// Full links and slots, of transfers by sockets and of messages by verbs.
pub(super) fn at_one(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    let mut all = full::at_one(explained, id);
    all.extend(fabric::full(explained, id));
    all.extend(fabric::slot(explained, id));
    all
}

/// Oddities of ports that carry nothing: results did not cross them.
const DOWN: [&str; 2] = ["ib-not-set-up", "ib-held-down"];

/// Ports and slots of hosts that are slower than they could be, beside results that may have crossed them.
pub(super) fn host(explained: &Explained<'_>, id: &'static str) -> Vec<Remark> {
    // Facts alone have a section of their own.
    if !explained.material.has_results() {
        return Vec::new();
    }
    let each = Side::ALL.into_iter().zip(&explained.oddities);
    let all = each.flat_map(|(side, all)| all.iter().map(move |odd| (side, odd)));
    let limiting = all.filter(|(_, odd)| !odd.limits.is_empty() && !DOWN.contains(&odd.id));
    let remark = |(side, odd): (Side, &Oddity)| {
        let remark = slower(side, odd, id);
        if ports::is_filled(explained, side, odd) {
            remark.names(&["wire-full"]).at(side)
        } else {
            remark
        }
    };
    let mut remarks: Vec<Remark> = limiting.map(remark).collect();
    remarks.extend(ports::below_modes(explained, id));
    remarks
}

pub(super) fn slower(side: Side, odd: &Oddity, id: &'static str) -> Remark {
    let what = format!("{} of the {}: {}", odd.subject, side_name(side), odd.what);
    let remark = Remark::new(id, Stands::Finding, what).because(odd.why);
    if odd.fix.steps.is_empty() {
        return remark.next(&odd.fix.what, "");
    }
    let mut label = odd.fix.what.as_str();
    odd.fix.steps.iter().fold(remark, |remark, step| {
        let about = if step.about.is_empty() { std::mem::take(&mut label) } else { &step.about };
        remark.next(about, &step.command)
    })
}
