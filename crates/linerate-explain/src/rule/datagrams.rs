//! Rules about rates that show little of the path: as high as requested, or counted only by the sender.

use super::super::Explained;
use super::{Remark, rate};
use linerate_facts::finding::Stands;
use linerate_record::reported::{Carrier, Counted, Transfer};

/// Least share of the requested rate at which the request itself is the limit.
const AS_REQUESTED: f64 = 0.97;

pub(super) fn as_requested(explained: &Explained<'_>) -> Vec<Remark> {
    let remark = |one: &Transfer| {
        let requested = one.requested?.0 as f64;
        // For TCP and UDP the judge has its own cause for a requested rate.
        let judged = matches!(one.carrier, Carrier::Tcp | Carrier::Udp);
        (!judged && one.goodput.0 as f64 >= requested * AS_REQUESTED).then(|| {
            let what = format!(
                "the transfer kept the rate that was requested, {}: the path may carry more",
                rate(requested)
            );
            Remark::new(Stands::Doubt, what)
        })
    };
    let all = explained.material.transfers();
    all.filter_map(|(_, one)| remark(one)).collect()
}

pub(super) fn sent(explained: &Explained<'_>) -> Vec<Remark> {
    let only_sent = |one: &Transfer| one.counted == Counted::Sender && one.carrier == Carrier::Udp;
    let all = explained.material.transfers().filter(|(_, one)| only_sent(one));
    all.map(|(source, one)| {
        let what = format!(
            "{}: {} is what the sender handed to its kernel; how much of it arrived is not known",
            source.file,
            rate(one.goodput.0 as f64)
        );
        Remark::new(Stands::Doubt, what)
            .next("count at the receiver", "linerate bw HOST --engine udp")
    })
    .collect()
}
