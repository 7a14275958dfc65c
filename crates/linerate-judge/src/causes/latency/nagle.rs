//! A small write waits for the acknowledgement of the previous one, which the receiver delays (Nagle's algorithm).

use crate::causes::network::held::SUSPECT;
use crate::causes::prelude::*;
use crate::causes::tcp::buffer_bound::ENOUGH;

pub(crate) static CAUSE: Cause = Cause {
    id: "latency-nagle",
    name: "Nagle's algorithm delays small writes",
    needs: &[Feature::Connections],
    stage: Stage::App,
    decided_by: &[],
    page: include_str!("../pages/latency-nagle.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    if !model.watched {
        return Err(clear(
            "linerate's own load waits for no answer, and its round trips set TCP_NODELAY"
                .to_owned(),
        ));
    }
    let load = base(model, direction)?;
    let Some(share) = load.tcp.nagle else {
        return Err(lacks(model, "tcp", direction.sender()));
    };
    if share < SUSPECT {
        return Err(clear(format!(
            "less than a segment waited for a late acknowledgement in only {} of the samples",
            percent(share)
        )));
    }
    Ok(Finding::at(direction.sender(), share, evidence(load, share)).enough(share >= ENOUGH))
}

/// Nothing is predicted: the cause is found only on connections of other programs, on which no trial runs.
fn predict(_: &Model, _: &TrialPlan) -> Option<Range> {
    None
}

fn advice(_: &Model, _: Direction) -> Vec<Advice> {
    vec![
        Advice::new(
            "let the sending program set TCP_NODELAY, or write each message with one call (writev, sendmsg)",
        ),
        Advice::new(
            "where it cannot be changed, and the receiver delays acknowledgements: let the receiving program set \
             TCP_QUICKACK after each read",
        ),
    ]
}

fn evidence(load: &Load, share: f64) -> Vec<String> {
    let tcp = &load.tcp;
    let held = format!(
        "in {} of the samples less than a segment waited unsent while one small segment was unacknowledged: \
         Nagle's algorithm",
        percent(share)
    );
    let delayed = tcp.rtt.zip(tcp.min_rtt).map(|(rtt, least)| {
        format!(
            "an acknowledgement took {rtt} on average and at least {least}: the receiver delays it, \
             or there is a queue on the path"
        )
    });
    std::iter::once(held).chain(delayed).collect()
}
