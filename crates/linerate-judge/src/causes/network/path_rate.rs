//! The path between the hosts carries one total rate, however many streams share it.

use crate::causes::network::arp_flux;
use crate::causes::network::burst_credit;
use crate::causes::network::contended;
use crate::causes::network::shared_rate::{self, DECIDED_BY, of_any};
use crate::causes::predict::one_rate;
use crate::causes::prelude::*;
use crate::causes::tcp::segment_size;
use linerate_units::Rate;

pub(crate) static CAUSE: Cause = Cause {
    id: "path-rate",
    name: "the total rate is limited",
    needs: &[Feature::Stack],
    stage: Stage::Net,
    decided_by: DECIDED_BY,
    page: include_str!("../pages/path-rate.md"),
    check,
    is_last: shared_rate::is_last,
    predict: one_rate,
    predict_loss: shared_rate::predict_loss,
    decides: shared_rate::decides,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let small = || base(model, direction).ok().and_then(segment_size::holds);
    if let Some(why) = burst_credit::holds(model, direction).or_else(small) {
        return Err(clear(why));
    }
    let found = of_any(model, direction)?;
    match arp_flux::holds(model, direction) {
        Some(why) => Err(clear(format!("it is another path: {why}"))),
        None => Ok(found),
    }
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let Some(load) = model.direction(direction).map(|d| &d.base) else {
        return Vec::new();
    };
    let rate = Rate(load.goodput.mean as u64);
    let to = if contended::is_shared(load) {
        "what it carries".to_owned()
    } else {
        format!("about {rate} of payload")
    };
    vec![Advice::new(format!(
        "ask the operator of the network what limits it to {to}: a shaper, a slower link or a contract"
    ))]
}
