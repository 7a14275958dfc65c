//! The queue pairs are too few: each carries no more, and more of them would carry more.

use crate::causes::predict::{bystander, per_stream};
use crate::causes::prelude::*;
use crate::causes::rdma::port::is_software;
use crate::causes::rdma::queues::Queues;

/// Number of queue pairs from which they are not too few: devices work on few at the same time.
const SEVERAL: u32 = 8;

/// Range of goodput with twice as many queue pairs.
const TWICE: Range = Range { low: GAIN, high: 2.2 };

pub(crate) static CAUSE: Cause = Cause {
    id: "rdma-one-qp",
    name: "the queue pairs are too few for the device",
    needs: &[Feature::Verbs],
    stage: Stage::Port,
    decided_by: &[Factor::MoreQueuePairs],
    page: include_str!("../pages/rdma-one-qp.md"),
    check,
    predict,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let queues = Queues::of(model, direction)?;
    let pairs = queues.pairs;
    if pairs >= SEVERAL {
        return Err(clear(format!("{pairs} queue pairs carried it")));
    }
    if queues.fills_wire() {
        return Err(clear("its queue pairs fill a port or a slot"));
    }
    if is_software(queues.load, direction) {
        return Err(clear("a software device works on queue pairs with the CPUs of its host"));
    }
    if !queues.wait(queues.in_flight()) {
        return Err(clear("requests do not queue for the device"));
    }
    let which =
        if pairs == 1 { "one queue pair".to_owned() } else { format!("{pairs} queue pairs") };
    let evidence = vec![format!("{which} carried all of it, with requests waiting in the queue")];
    Ok(Finding::at(queues.place(), 1.0 / f64::from(pairs), evidence))
}

fn predict(model: &Model, trial: &TrialPlan) -> Option<Range> {
    match trial.factor()? {
        Factor::MoreQueuePairs => Some(TWICE),
        Factor::MoreStreams => Some(per_stream(trial)),
        _ => bystander(model, trial),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let gain = model.tried(direction, Factor::MoreQueuePairs);
    let advice = Advice::new(
        "let the program use more queue pairs to the same end; both ports of a bond carry only different ones",
    );
    vec![advice.gain(gain.and_then(|trial| trial.effect).map(|effect| effect.mid))]
}
