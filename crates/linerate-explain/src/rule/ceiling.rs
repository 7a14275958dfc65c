//! Rules about links, ports and slots: full, used only in part, or slower than they could be.

use super::super::Explained;
use super::fabric::ports;
use super::{Remark, fabric, full};
use linerate_facts::finding::Finding;
use linerate_plan::path::Side;

/// Remarks on full links and slots: of transfers through sockets, and of messages by verbs.
pub(super) fn at_one(explained: &Explained<'_>) -> Vec<Remark> {
    let mut all = full::at_one(explained);
    all.extend(fabric::full(explained));
    all.extend(fabric::slot(explained));
    all
}

/// Remarks on ports and slots of hosts that are slower than they could be, if there are results that may have crossed
/// them.
pub(super) fn host(explained: &Explained<'_>) -> Vec<Remark> {
    // Without results, a section of its own lists the facts of each host.
    if !explained.material.has_results() {
        return Vec::new();
    }
    let each = Side::ALL.into_iter().zip(&explained.oddities);
    let all = each.flat_map(|(side, all)| all.iter().map(move |odd| (side, odd)));
    // A port that carries no traffic is left out: the results did not cross it.
    let limiting =
        all.filter(|(_, odd)| !odd.limits.is_empty() && !ports::WAITING.contains(&odd.id));
    let remark = |(side, odd): (Side, &Finding)| {
        let remark = Remark::of_oddity(side, odd);
        if ports::is_filled(explained, side, odd) {
            remark.names(&["wire-full"]).at(side)
        } else {
            remark
        }
    };
    let mut remarks: Vec<Remark> = limiting.map(remark).collect();
    remarks.extend(ports::below_modes(explained));
    remarks
}
