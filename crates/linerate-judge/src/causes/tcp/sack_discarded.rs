//! Selective acknowledgements arrive damaged. The sender ignores them, and each loss costs it much more time.

use crate::causes::network::ack_way::held_by_network;
use crate::causes::network::loss;
use crate::causes::prelude::*;
use crate::causes::tcp::buffer_bound::WAITS;
use crate::signs::dropped::MOST;
use crate::signs::lossy::retransmitted_share;
use linerate_facts::advice::{Joined, Kept};

/// Least number of ignored blocks per second: reordered acknowledgements may cause a single one.
const OFTEN: f64 = 1.0;

pub(crate) static CAUSE: Cause = Cause {
    id: "sack-discarded",
    name: "selective acknowledgements are damaged",
    needs: &[Feature::Connections],
    stage: Stage::Net,
    decided_by: &[Factor::Paced, Factor::OtherCongestion],
    page: include_str!("../pages/sack-discarded.md"),
    // Records of older versions do not have this counter.
    may_be_unread: true,
    check,
    predict: loss::predict,
    predict_loss: loss::predict_loss,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let Some(retransmitted) = load.tcp.retransmitted else {
        return Err(lacks(model, "tcp", direction.sender()));
    };
    if retransmitted_share(load).is_none() {
        return Err(clear(format!(
            "only {} of the bytes were retransmitted",
            percent(retransmitted)
        )));
    }
    if load.netstat.sender.sacks_discarded.is_none() {
        return Err(lacks(model, "netstat", direction.sender()));
    }
    let Some(ignored) = ignored(load) else {
        let why = "the sender ignored hardly any selective acknowledgement";
        return Err(clear(why));
    };
    // If retransmission timers expire, buffers are full too, and most samples may have no payload.
    let waits = load.tcp.timer_limited.filter(|share| *share >= WAITS);
    let share = match load.silent().or(waits) {
        Some(share) => share,
        None => held_by_network(model, direction)?.share,
    };
    let waits = waits.map(|share| {
        format!(
            "the sender waited for its retransmission timer {} of the time at least",
            percent(share)
        )
    });
    let evidence = [ignored, format!("{} of the bytes were retransmitted", percent(retransmitted))]
        .into_iter()
        .chain(waits)
        .collect();
    Ok(Finding::at(Place::Path, share, evidence).enough(true))
}

fn advice(_: &Model, direction: Direction) -> Vec<Advice> {
    let side = direction.receiver();
    let name = "net.ipv4.tcp_sack";
    let mend = Advice::new(
        "find the firewall that rewrites sequence numbers and not the acknowledgements of parts: let it leave them alone \
         (Cisco ASA: `set connection random-sequence-number disable`), or update it",
    );
    let until = Advice::new(format!(
        "let {} send none, which holds for all its new connections, on every path",
        side.name()
    ));
    let until = until.keeping(side, Kept::sysctl(name), format!("sudo sysctl -w {name}=0"));
    vec![mend, until.joined(Joined::Until)]
}

/// The ignored blocks, in words, if they are at least half as many as the retransmitted segments.
pub(crate) fn ignored(load: &Load) -> Option<String> {
    let (ignored, retransmitted) = load.netstat.sender.sacks_discarded.zip(load.tcp.repeated)?;
    (ignored >= OFTEN && ignored >= retransmitted * MOST).then(|| {
        format!(
            "in a second the sender ignored {ignored:.0} blocks of selective acknowledgements, which name bytes that it had \
             not sent (TCPSACKDiscard); {retransmitted:.0} segments were retransmitted"
        )
    })
}
