//! The receiver posts its receive requests too late, and its device refuses messages.

use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use crate::causes::rdma::verbs::{
    End, Ends, MATTERS, STALLED, THROUGHOUT, only_reliable, queue_pairs, silent,
};
use linerate_facts::infiniband::counted::Meaning;
use linerate_plan::transport::rdma::{Operation, RECEIVES, RNR_WAIT};
use linerate_units::Nanos;
use linerate_units::stats::EQUAL;

const SENT: [Meaning; 1] = [Meaning::NotReadySent];
const RECEIVED: [Meaning; 1] = [Meaning::NotReadyReceived];

/// Least and longest time that a software device waits after a refusal. Its timer counts ticks of the kernel, of 1 to
/// 10 ms, and ends after one or two of them.
//= torvalds/linux, drivers/infiniband/sw/rxe/rxe_comp.c: rnrnak_jiffies
const SOFTWARE_WAIT: [Nanos; 2] = [Nanos::from_millis(1), Nanos::from_millis(20)];

pub(crate) static CAUSE: Cause = Cause {
    id: "rdma-receiver-not-ready",
    name: "the receiver has no receive request ready",
    needs: &[Feature::Verbs],
    stage: Stage::App,
    explains: &["receiver-core", "shared-core", "cpu-contention"],
    decided_by: &[],
    page: include_str!("../pages/rdma-receiver-not-ready.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    only_reliable(load)?;
    let op = Operation::of(&load.knobs.options);
    if op.is_one_sided() {
        return Err(clear(format!("the operation {} needs no receive request", op.name())));
    }
    let Ends { requester, responder } = Ends::of(model, load, direction)?;
    let (end, meanings) = match requester.verbs.per_sec(&RECEIVED) {
        Some(_) => (requester, &RECEIVED),
        None => (responder, &SENT),
    };
    let per_sec = end.counted(meanings, "refusals for want of a receive request")?;
    let wait = if requester.verbs.port.software { SOFTWARE_WAIT } else { [RNR_WAIT; 2] };
    let [least, most] = wait.map(|wait| per_sec * wait.secs() / queue_pairs(load));
    // A device may wait longer than its timer is set to.
    let stalls = silent(load).filter(|silent| per_sec > 0.0 && *silent >= STALLED);
    if most < MATTERS && stalls.is_none() {
        return Err(clear(format!(
            "senders waited {} of the time for receive requests",
            percent(most)
        )));
    }
    let quarters = end.verbs.of(meanings).map(|count| count.quarters);
    let counted_by = |end: End<'_>, what: &str, meanings: &[Meaning]| {
        let words = end.verbs.words(meanings)?;
        Some(format!("{} {what}: {words}", end.name()))
    };
    let evidence = [
        counted_by(requester, "was told that there is none", &RECEIVED),
        counted_by(responder, "had no receive request", &SENT),
        Some(format!(
            "the sender waits {} or more each time: {} of the time at least",
            wait[0],
            percent(least.min(1.0))
        )),
        stalls.map(|silent| format!("nothing arrived in {} of the samples", percent(silent))),
    ];
    Ok(Finding::at(
        responder.side,
        least.clamp(MATTERS, 1.0),
        evidence.into_iter().flatten().collect(),
    )
    .enough(least >= MATTERS && quarters.max() >= Some(THROUGHOUT)))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        // More queue pairs have more receive requests posted; but the program may be too slow for all of them together.
        Factor::MoreStreams => Some(Range { low: EQUAL.low, high: trial.stream_ratio() * 1.1 }),
        // More sends in flight overrun the receive requests, unless more of these are posted as well.
        Factor::MoreDepth => None,
        // The receiver lacks CPU time.
        Factor::ReceiverWork => Some(Range { low: 0.0, high: EQUAL.high }),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let load = model.direction(direction).map(|dir| &dir.base);
    let few = load.and_then(|load| load.knobs.options.number(RECEIVES.key));
    vec![Advice::new(match few {
        Some(few) => format!("post more receive requests: leave out --receives, or ask for more than {few}"),
        None => "let the receiving program post more receive requests, and post new ones before it works on what \
                 arrived; linerate itself does: see whether its receiving thread gets its CPU"
            .to_owned(),
    })]
}
