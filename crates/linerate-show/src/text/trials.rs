//! Shows the trials of a run and their results.

use linerate_judge::model::{Model, TrialModel};
use linerate_plan::factor;
use linerate_plan::transport::{OTHER, TransportInfo};
use linerate_units::Rate;

use super::super::document::Item;
use super::super::{Document, Tone, words};

/// Writes a line for each trial, with the number by which causes refer to it; nothing if no trial was made.
pub(super) fn tried(doc: &mut Document, model: &Model) {
    if model.trials.is_empty() {
        return;
    }
    doc.gap();
    doc.heading("Every trial");
    for trial in &model.trials {
        let number = format!("{:>2}", trial.plan.id);
        let direction = trial.plan.direction.name();
        let of = model.direction(trial.plan.direction).map(|d| &d.base);
        let transport = of.map_or(&OTHER, |load| load.transport);
        let item = Item::new(&[(Tone::Plain, &line(trial, transport))]).indent(2, 6);
        doc.item(item.head(Tone::Plain, &[(&number, 0.into()), (direction, 7.into())]));
    }
}

/// The change of a trial, and its effects on goodput, on the share retransmitted or lost, and on round trips.
fn line(trial: &TrialModel, transport: &TransportInfo) -> String {
    let what = factor::kind(&trial.plan.kind).map_or("a change", |kind| kind.change);
    let slices = words::count(u64::from(trial.slices), "slice");
    let Some(effect) = trial.effect else {
        return format!("{what}: too few measurements for a result, {slices}");
    };
    let loss =
        trial.loss.map_or(String::new(), |loss| format!(", {}", words::of_share(loss, transport)));
    let latency = trial
        .latency
        .map_or(String::new(), |latency| format!(", {} of the round trip", words::effect(latency)));
    let [before, after] = trial.goodput.map(|bps| Rate(bps.max(0.0) as u64));
    format!(
        "{what}: {}{loss}{latency}, {slices} ({before} before, {after} after)",
        words::effect(effect)
    )
}
