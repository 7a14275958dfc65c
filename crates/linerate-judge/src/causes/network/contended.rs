//! Another session loaded a host at the same time, or other traffic loaded a port.

use crate::causes::prelude::*;
use crate::causes::{Cost, disturbed};

/// Minimum ratio of other programs' bytes to those of the load, at which they matter. The counters of two ends are read
/// up to one sample apart, which is a twentieth of a short step.
pub(crate) const FOREIGN: f64 = 0.2;

/// Whether other traffic uses the path as well, or may: the goodput of the load is then not the rate of the path.
pub(crate) fn is_shared(load: &Load) -> bool {
    load.contended || load.foreign.is_some_and(|foreign| foreign.share >= FOREIGN)
}

pub(crate) static CAUSE: Cause = Cause {
    id: "contended",
    name: "other traffic shares the path",
    stage: Stage::Net,
    only_disturbs: true,
    may_be_unread: true,
    decided_by: &[],
    page: include_str!("../pages/contended.md"),
    check,
    costs,
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let clear = "no other session was measuring on either host";
    disturbed(&CAUSE, model, direction, clear)
}

fn costs(model: &Model, direction: Direction) -> Vec<Cost> {
    let Some(load) = model.direction(direction).map(|d| &d.base) else {
        return Vec::new();
    };
    let foreign = load.foreign.filter(|f| f.share >= FOREIGN);
    let session = load
        .contended
        .then(|| "another session was measuring on a host at the same time".to_owned());
    let traffic = foreign.map(|foreign| {
        format!(
            "the port of {} carried {} as many bytes of other programs as of this run",
            foreign.side.name(),
            percent(foreign.share)
        )
    });
    let evidence: Vec<String> = session.into_iter().chain(traffic).collect();
    if evidence.is_empty() {
        return Vec::new();
    }
    vec![Cost {
        side: Place::Path,
        // The other traffic's share of all traffic of the port. The CPU time that another session used is unknown.
        share: foreign
            .filter(|_| !load.contended)
            .map(|foreign| foreign.share / (1.0 + foreign.share)),
        evidence,
        advice: advice(model, direction),
    }]
}

fn advice(_: &Model, _: Direction) -> Vec<Advice> {
    vec![Advice::new("wait until the other traffic has ended, then run again")]
}
