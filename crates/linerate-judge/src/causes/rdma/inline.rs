//! The device fetches small payload from memory, although it would fit into the request.

use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use crate::causes::rdma::port::is_software;
use crate::causes::rdma::queues::Queues;
use linerate_plan::transport::rdma::{INLINE_DEFAULT, Operation, inline};

/// Range of goodput with inline payload: a fetch costs the device about as much as the rest of a small request.
const INLINED: Range = Range { low: GAIN, high: 3.0 };

pub(crate) static CAUSE: Cause = Cause {
    id: "rdma-inline",
    name: "the device fetches payload that would fit into the request",
    needs: &[Feature::Verbs],
    stage: Stage::Pcie,
    decided_by: &[Factor::MoreInline],
    page: include_str!("../pages/rdma-inline.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let queues = Queues::of(model, direction)?;
    let load = queues.load;
    let op = Operation::of(&load.knobs.options);
    if op.returns() {
        return Err(clear(format!(
            "the operation {} carries no payload in its request",
            op.name()
        )));
    }
    let size = load.made.at(direction, direction.sender()).write_size;
    if size == 0 || size > INLINE_DEFAULT {
        return Err(clear(format!("payload of {size} B is fetched by any device")));
    }
    if is_software(load, direction) {
        return Err(clear("software copies all payload"));
    }
    let end = load.rdma(direction, queues.requester).ok_or_else(|| {
        unknown(
            "how much payload the device takes inside of a request",
            "the record does not say it",
        )
    })?;
    if u64::from(end.inline) >= size {
        return Err(clear(format!(
            "payload of {size} B is inside of the request, which has room for {} B",
            end.inline
        )));
    }
    if inline(&load.knobs.options) >= size {
        return Err(clear(format!(
            "{} takes no more than {} B inside of a request",
            end.device, end.inline
        )));
    }
    let evidence = vec![format!(
        "requests of {size} B had room for {} B, so that {} fetched each payload from memory",
        end.inline, end.device
    )];
    Ok(Finding::at(queues.place(), 0.5, evidence))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::MoreInline => Some(INLINED),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let gain = model.tried(direction, Factor::MoreInline);
    let advice = Advice::new(
        "ask for room for inline payload when the queue pair is made (max_inline_data), and set IBV_SEND_INLINE",
    );
    vec![advice.gain(gain.and_then(|trial| trial.effect).map(|effect| effect.mid))]
}
