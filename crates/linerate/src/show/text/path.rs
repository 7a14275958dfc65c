//! The path: what the bytes cross, in a line a side or stage by stage.

use linerate_core::model::{Ceiling, Model, PathStage};
use linerate_core::path::{Place, Stage};
use linerate_core::record::Host;

use super::super::page::{Ink, Page, width_of};

/// Columns before the name of a host.
const MARGIN: usize = 6;

/// What lies below a host's port and in which slot it is, where there is more to tell than the port.
pub(super) fn below(page: &mut Page, stages: &[PathStage], host: &Host) {
    let parts = |stage| {
        let own = |s: &&PathStage| s.stage == stage && s.side == Place::from(host.side);
        let found = stages.iter().find(own);
        found.map_or(&[][..], |s| &s.parts)
    };
    let mut told = Vec::new();
    if let [_, lower @ ..] = parts(Stage::Port)
        && !lower.is_empty()
    {
        told.push(format!("over {}", lower.join(", ")));
    }
    let slot = parts(Stage::Pcie);
    let route = host.facts.route.as_ref();
    let has_wire = route.is_some_and(|route| route.wires().is_some());
    if has_wire && !slot.is_empty() {
        told.push(format!("slot {}", slot.join(", ")));
    }
    for text in told {
        let margin = if page.is_narrow() { 2 } else { MARGIN };
        page.columns(Ink::Plain, &" ".repeat(margin - 2), &text, margin + 2);
    }
}

/// Every stage, from the near program to the far one.
pub(super) fn stages(page: &mut Page, model: &Model) {
    page.line(&[(Ink::Bold, "The path, near to far")], 0);
    for stage in linerate_core::model::stages(model) {
        let side = match stage.side {
            Place::Path => "",
            side => side.name(),
        };
        let head = format!("  {side:4} {:6}", stage.stage.name());
        let indent = if page.is_narrow() {
            4
        } else {
            width_of(&head) + 2
        };
        let parts = match stage.parts.as_slice() {
            [] => "not read".to_owned(),
            parts => parts.join(", "),
        };
        page.columns(Ink::Bold, &head, &parts, indent);
        for text in carried(&stage.ceilings) {
            page.columns(Ink::Plain, &" ".repeat(indent - 2), &text, indent + 2);
        }
    }
}

/// What a stage can carry: once where both directions are the same.
fn carried(ceilings: &[Option<Ceiling>; 2]) -> Vec<String> {
    let words = |c: &Ceiling| format!("carries {} = {}", c.formula, c.words());
    match ceilings {
        [Some(a), Some(b)] if a.formula == b.formula => vec![words(a)],
        both => ["forward", "reverse"]
            .into_iter()
            .zip(both)
            .filter_map(|(way, ceiling)| Some(format!("{way}: {}", words(ceiling.as_ref()?))))
            .collect(),
    }
}
