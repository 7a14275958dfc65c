//! Packets are reordered on the path, and the sender mistakes the late ones for lost.

use crate::causes::host::cpu_share::is_excluded;
use crate::causes::network::ack_way::held_by_network;
use crate::causes::network::held::of_each_stream;
use crate::causes::predict::{bystander, per_stream};
use crate::causes::prelude::*;
use crate::causes::tcp::congestion_control::use_bbr;
use crate::signs::bbr;
use crate::signs::lossy::{
    Late, MOST_LATE, explains, late, long_queue, lost, marked, mostly_late, retransmitted_share,
};
use crate::signs::queue::standing_queue;

pub(crate) static CAUSE: Cause = Cause {
    id: "path-reordering",
    name: "packets arrive out of order",
    needs: &[Feature::Connections],
    stage: Stage::Net,
    decided_by: &[Factor::OtherCongestion],
    page: include_str!("../pages/path-reordering.md"),
    check,
    is_last,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let held = held_by_network(model, direction)?;
    let load = held.load;
    let Some(retransmitted) = load.tcp.retransmitted else {
        return Err(lacks(model, "tcp", direction.sender()));
    };
    if retransmitted_share(load).is_none() {
        return Err(clear(format!(
            "only {} of the bytes were retransmitted",
            percent(retransmitted)
        )));
    }
    if bbr::sends(load) && !bbr::may_be_outlasted(model, load) {
        return Err(clear("bbr does not slow down when packets are reordered"));
    }
    if load.tcp.needless.or(load.tcp.reordered).is_none() {
        return Err(NoFinding::Unknown(vec![Gap {
            what: format!("segments that arrive late {}", direction.name()),
            why: "the sender's kernel does not count them".to_owned(),
            hint: "Linux 4.19 or later".to_owned(),
        }]));
    }
    let Some(late) = late(load) else {
        return Err(clear(seldom(load)));
    };
    if let (Late::Reported(share), Some(lost)) = (late, lost(load))
        && share < MOST_LATE
    {
        return Err(clear(format!(
            "{} of the bytes were really lost, and fewer arrived late",
            percent(lost)
        )));
    }
    if let Some(queue) = long_queue(model, load) {
        return Err(clear(format!("it costs nothing compared with {queue}")));
    }
    Ok(Finding {
        side: Place::Path,
        share: held.share * of_each_stream(model, direction),
        // On any path with several queues some packets are late. Only a trial shows whether that matters.
        enough: false,
        reached: false,
        evidence: std::iter::once(words(late, retransmitted)).chain(empties(model, load)).collect(),
    })
}

fn is_last(model: &Model, direction: Direction) -> bool {
    // Without a second congestion control there is no trial. The receiver's report must then be enough.
    let load = model.direction(direction).map(|dir| &dir.base);
    load.is_some_and(|load| holds(model, load).is_some())
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        // Any gain is possible, up to the next limit: BBR does not mistake reordering for a full path. The effect is
        // unknown for other congestion controls, and for BBR with too small a window.
        Factor::OtherCongestion => {
            bbr::has_room(model, trial).then_some(Range { low: GAIN, high: f64::MAX })
        }
        Factor::MoreStreams => Some(per_stream(trial)),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let gain = bbr::gained(model, direction);
    let load = model.direction(direction).map(|d| &d.base);
    let spread = Advice::new(
        "find what spreads the packets of one connection over several routes: load balancing packet by packet (bond \
         mode balance-rr), queues of one port on several CPUs (RPS), a radio link",
    );
    let other = load.and_then(|load| use_bbr(model, load, direction.sender(), gain));
    std::iter::once(spread).chain(other).collect()
}

/// A sentence that only reordering limits the sender: most retransmitted segments had arrived, all the time. A rate
/// limit, on all streams or on each, queues, drops or marks packets, and does not reorder them. BBR fills a rate limit
/// without any of these signs, but not if its window is empty before packets arrive.
pub(crate) fn alone(model: &Model, direction: Direction) -> Option<String> {
    let load = &model.direction(direction)?.base;
    let late = holds(model, load)?;
    let queues = standing_queue(model, load).is_some() || marked(load).is_some();
    let drops = lost(load).is_some_and(|lost| !bbr::sends(load) && explains(load, lost));
    let found = check(model, direction).is_ok();
    let stands = found && !is_excluded(&CAUSE, model, direction);
    // If each stream has its own limit, more streams carry more.
    let each = of_each_stream(model, direction) >= 1.0;
    (stands && each && !queues && !drops).then(|| {
        format!(
            "{} of the retransmitted segments had arrived, only late: a rate limit queues or drops, but does not reorder",
            percent(late)
        )
    })
}

/// Describes the window that BBR computes from the shortest round trip, compared with the usual round trip.
fn empties(model: &Model, load: &Load) -> Option<String> {
    let outlasted = bbr::outlasted(model, load).filter(|_| bbr::sends(load));
    outlasted.map(|(shortest, usual)| {
        format!(
            "bbr makes its window for a round trip of {shortest}, and the usual one took {usual}"
        )
    })
}

/// The share of retransmitted segments that were only late, if this limits the sender. BBR is limited by late segments
/// only where its window empties before packets arrive; others always are.
fn holds(model: &Model, load: &Load) -> Option<f64> {
    let slowed = !bbr::sends(load) || bbr::outlasted(model, load).is_some();
    mostly_late(load).filter(|_| slowed)
}

/// The reason why late segments do not explain the retransmissions.
fn seldom(load: &Load) -> String {
    let retransmitted = load.tcp.repeated.unwrap_or_default();
    if let Some(twice) = load.tcp.needless {
        if twice > retransmitted {
            return "more segments arrived twice than were retransmitted: the network duplicates packets"
                .to_owned();
        }
        return format!(
            "{} of the retransmitted segments had arrived",
            percent(twice / retransmitted.max(f64::MIN_POSITIVE))
        );
    }
    let events = load.tcp.reordered.unwrap_or_default();
    format!("packets were reordered {events:.1} times a second, too rarely for the retransmissions")
}

fn words(late: Late, retransmitted: f64) -> String {
    let retransmitted = percent(retransmitted);
    match late {
        Late::Reported(_) => format!(
            "{} of the retransmitted segments ({retransmitted} of the bytes) had arrived, only late",
            percent(late.share())
        ),
        Late::Overtook(share) => format!(
            "packets were reordered {} as often as segments were retransmitted ({retransmitted} of the bytes)",
            percent(share)
        ),
    }
}
