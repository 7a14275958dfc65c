//! The devices keep fewer reads in flight than the program posts.

use crate::causes::predict::{bystander, per_stream};
use crate::causes::prelude::*;
use crate::causes::rdma::queues::Queues;
use linerate_plan::transport::rdma::{Operation, READS};
use linerate_units::stats::EQUAL;

/// Range of goodput with twice the reads in flight, or twice the queue pairs.
const TWICE: Range = Range { low: GAIN, high: 2.2 };

pub(crate) static CAUSE: Cause = Cause {
    id: "rdma-read-depth",
    name: "the devices keep too few reads in flight",
    needs: &[Feature::Verbs],
    stage: Stage::Port,
    decided_by: &[Factor::MoreReads],
    page: include_str!("../pages/rdma-read-depth.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let queues = Queues::of(model, direction)?;
    let op = Operation::of(&queues.load.knobs.options);
    if !op.returns() {
        return Err(clear(format!(
            "only reads and atomic operations are limited in number, not the operation {}",
            op.name()
        )));
    }
    let reads = queues.reads.ok_or_else(|| {
        NoFinding::Unknown(vec![Gap {
            what: "how many reads both devices allow in flight".to_owned(),
            why: "the record does not say it".to_owned(),
            hint: "ibv_devinfo -v | grep rd_atom".to_owned(),
        }])
    })?;
    if reads >= queues.depth {
        return Err(clear(format!(
            "the devices allow {reads} in flight, and the program posts {}",
            queues.depth
        )));
    }
    let bound = if requested(queues.load) == Some(reads.into()) {
        "--reads asked for"
    } else {
        "the devices allow"
    };
    let words = format!(
        "{}, with {reads} in flight in each queue pair: {bound} no more of its {}",
        queues.words(reads),
        queues.depth
    );
    if queues.wait(reads) {
        return Err(clear(format!("{words}: reads queue for something else")));
    }
    Ok(Finding::at(queues.place(), queues.share(reads), vec![words]).enough(queues.runs_dry(reads)))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::MoreReads => Some(TWICE),
        // Another queue pair has its own reads in flight, as long as enough are posted.
        Factor::MoreQueuePairs => Some(Range { low: EQUAL.low, ..TWICE }),
        Factor::MoreStreams => Some(per_stream(trial)),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let gain = model.tried(direction, Factor::MoreReads);
    let gain = gain.and_then(|trial| trial.effect).map(|effect| effect.mid);
    let more = Advice::new(
        "let the program ask for more reads in flight when it connects (max_rd_atomic, max_dest_rd_atomic), up to \
         what both devices have; linerate does so without --reads",
    );
    let other = Advice::new("use larger reads, more queue pairs, or writes from the other end");
    let load = model.direction(direction).map(|dir| &dir.base);
    match load.and_then(requested) {
        Some(_) => vec![more.gain(gain), other],
        None => vec![other],
    }
}

/// Reads in flight that the user requested; `None` for as many as both devices support.
fn requested(load: &Load) -> Option<u64> {
    load.knobs.options.number(READS.key)
}
