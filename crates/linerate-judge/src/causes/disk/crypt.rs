//! Encryption below the file takes the time of the CPUs, while the disk waits for work.

use super::{HOLDS, counted, facts, requests_asked};
use crate::causes::prelude::*;
use crate::model::has_layer;
use linerate_facts::block::Layer;

/// CPU time that other threads than those of the load must use, in CPUs, so that encryption may fill one.
const BUSY: f64 = 0.8;

pub(crate) static CAUSE: Cause = Cause {
    id: "disk-crypt",
    name: "encryption takes longer than the disk",
    needs: &[Feature::Disk],
    stage: Stage::Cpu,
    decided_by: &[],
    page: include_str!("../pages/disk-crypt.md"),
    check,
    predict: |model, trial| match trial.factor()? {
        Factor::MoreDepth | Factor::MoreStreams => None,
        _ => crate::causes::predict::bystander(model, trial),
    },
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    base(model, direction)?;
    if !facts(model).is_some_and(|facts| has_layer(facts, Layer::Crypt)) {
        return Err(clear("nothing below the file is encrypted"));
    }
    let (load, disk) = counted(model, direction)?;
    let asked = requests_asked(load, disk);
    let words = format!(
        "an encrypted volume is below the file; the disk had {:.1} of {asked:.0} requests",
        disk.in_flight
    );
    if disk.in_flight >= asked * HOLDS {
        return Err(clear(words));
    }
    // All CPU time of the host, less that of the load's own threads, in CPUs.
    let busy: f64 = load.cpus.at(direction, Side::Near).iter().map(|cpu| cpu.busy).sum();
    let own = load.senders.iter().chain(&load.receivers).filter_map(|thread| thread.busy);
    let most = (busy - own.sum::<f64>()).max(0.0);
    let used = format!("other threads than those of the load used {most:.1} CPUs");
    Ok(Finding::at(Place::Near, most.clamp(0.0, 1.0), vec![words, used]).enough(most >= BUSY))
}

fn advice(_: &Model, _: Direction) -> Vec<Advice> {
    vec![
        Advice::new(
            "let the CPU that starts an operation encrypt it, without the queues between (cryptsetup refresh \
             --perf-no_read_workqueue --perf-no_write_workqueue)",
        ),
        Advice::new("see what the CPUs can encrypt, and which cipher is fastest")
            .on(Side::Near, "cryptsetup benchmark".to_owned()),
    ]
}
