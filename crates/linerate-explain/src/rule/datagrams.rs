//! Rules about rates that say little: as asked, or only sent.

use super::super::Explained;
use super::{Remark, Stands, rate};
use linerate_record::reported::{Carrier, Counted, Transfer};

/// Share of the requested rate from which on the request is the limit.
const ASKED: f64 = 0.97;

pub(super) fn as_asked(explained: &Explained<'_>) -> Vec<Remark> {
    let remark = |one: &Transfer| {
        let asked = one.asked?.0 as f64;
        // The judge has a cause for connections and datagrams that keep a pace.
        let judged = matches!(one.carrier, Carrier::Tcp | Carrier::Udp);
        (!judged && one.goodput.0 as f64 >= asked * ASKED).then(|| {
            let what = format!(
                "the transfer kept the rate that was requested, {}: the path may carry more",
                rate(asked)
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
