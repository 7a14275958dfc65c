//! The link of the disk is full: the disk itself could do more.

use crate::causes::FULL;
use crate::causes::host::pcie_slot::{origin, remedy};
use crate::causes::predict::one_rate;
use crate::causes::prelude::*;
use crate::model::leaves;
use linerate_facts::crossing::Crossing;
use linerate_units::Rate;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-link",
    name: "the link of the disk is full",
    needs: &[Feature::Disk],
    stage: Stage::Pcie,
    proves_itself: true,
    explains: &["disk-capped"],
    decided_by: &[Factor::MoreDepth],
    page: include_str!("../pages/disk-link.md"),
    ceiling: Some(Stage::Pcie),
    check,
    predict: |model, trial| one_rate(model, trial),
    advice,
    ..Cause::BASE
};

/// Share of the upper end of a link's range, from which on the link may be what limits the disk.
const NEAR: f64 = 0.9;

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let dir = model.direction(direction);
    let Some(ceiling) = dir.and_then(|dir| dir.ceiling_of(Stage::Pcie)) else {
        return Err(clear("the link of the disk has no known limit"));
    };
    let share = ceiling.reached(load);
    let of_least = share * ceiling.rate.0 as f64 / ceiling.least.0.max(1) as f64;
    let words = format!(
        "{} is {} of what {} carries: {} = {}",
        Rate(load.goodput.mean as u64).with_bytes(),
        percent(share),
        ceiling.name,
        ceiling.formula,
        ceiling.words()
    );
    if of_least < NEAR {
        return Err(clear(words));
    }
    let mut evidence = vec![words];
    evidence.extend(narrowest(model).map(|crossing| origin(&crossing)));
    let reached = of_least >= FULL;
    Ok(Finding::at(Place::Far, share.min(1.0), evidence).enough(reached).reached(reached))
}

/// The slowest link between the disk and the processor.
fn narrowest(model: &Model) -> Option<Crossing<'_>> {
    let disks = &super::facts(model)?.disks;
    let links = leaves(disks).flat_map(linerate_facts::block::BlockDevice::crossings);
    links.filter(|link| link.rate().is_some()).min_by_key(Crossing::rate)
}

fn advice(model: &Model, _: Direction) -> Vec<Advice> {
    narrowest(model).map(|link| Advice::new(remedy(&link))).into_iter().collect()
}
