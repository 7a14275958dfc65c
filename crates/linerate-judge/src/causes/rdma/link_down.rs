//! The link of an RDMA port went down during the load.

use crate::causes::predict::bystander;
use crate::causes::prelude::*;
use crate::causes::rdma::verbs::{End, Ends, MATTERS, silent};
use crate::causes::rerun;
use linerate_facts::advice::Step;
use linerate_units::shell::word;

pub(crate) static CAUSE: Cause = Cause {
    id: "rdma-link-down",
    name: "the link of the RDMA port goes down",
    needs: &[Feature::Verbs],
    stage: Stage::Port,
    decided_by: &[],
    explains: &["rdma-loss"],
    page: include_str!("../pages/rdma-link-down.md"),
    check,
    predict: |model, trial| bystander(model, trial),
    advice,
    ..Cause::BASE
};

fn check(model: &Model, direction: Direction) -> Answer {
    let load = base(model, direction)?;
    let ends = Ends::of(model, load, direction)?.both();
    let Some(end) = ends.iter().find(|end| went_down(end)) else {
        let unread: Vec<Gap> = ends.iter().filter_map(unread).collect();
        return Err(if unread.is_empty() {
            clear("both ports stayed active")
        } else {
            NoFinding::Unknown(unread)
        });
    };
    let share = silent(load).ok_or_else(|| {
        NoFinding::Unknown(vec![Gap {
            what: "the time in which nothing arrived".to_owned(),
            why: format!("{}, and requests are too large to see it", words(end)),
            hint: rerun(model, " --size 64KiB"),
        }])
    })?;
    if share < MATTERS {
        return Err(clear(format!(
            "{}, but payload arrived in all but {} of the samples",
            words(end),
            percent(share)
        )));
    }
    let evidence =
        vec![words(end), format!("nothing arrived in {} of the samples", percent(share))];
    Ok(Finding::at(end.side, share, evidence).enough(true))
}

fn advice(model: &Model, direction: Direction) -> Vec<Advice> {
    let load = model.direction(direction).map(|dir| &dir.base);
    let ends = load.and_then(|load| Ends::of(model, load, direction).ok());
    let ends = ends.map(|ends| ends.both()).into_iter().flatten();
    let down = ends.filter(went_down).map(|end| {
        let port = word(&end.verbs.port.id());
        let look = "find why the link goes down: its cable and transceiver, the port of the switch, who sets it down";
        Advice::new(look)
            .step(Step::on(end.side, format!("rdma link show {port}")))
            .step(Step::on(end.side, "sudo dmesg | grep -i link"))
    });
    down.collect()
}

fn went_down(end: &End<'_>) -> bool {
    end.verbs.downs.is_some_and(|downs| downs > 0.0) || end.verbs.active == Some(false)
}

fn words(end: &End<'_>) -> String {
    let name = end.name();
    match end.verbs.downs {
        Some(downs) if downs > 0.0 => {
            format!("the link of {name} went down: link_downed {downs:.0}")
        }
        _ => format!("{name} was not active all the time"),
    }
}

/// The gap for an end whose port state was not read.
fn unread(end: &End<'_>) -> Option<Gap> {
    let port = word(&end.verbs.port.id());
    end.verbs.active.is_none().then(|| Gap {
        what: format!("the state of {}", end.name()),
        why: "it was not read".to_owned(),
        hint: format!("rdma link show {port}"),
    })
}
