//! Shows the path that the bytes cross: in one line for each side, or stage by stage.

use linerate_judge::model::{Ceiling, Model, PathStage};
use linerate_plan::path::{Place, Stage};
use linerate_record::Host;

use super::super::document::{Columns, Item, Table};
use super::super::{Document, Tone, verbs};

/// Characters before the name of a host.
const MARGIN: Columns = Columns { wide: 6, narrow: 2 };

/// Characters before the parts of a stage.
const PARTS: Columns = Columns { wide: 15, narrow: 4 };

/// Writes the ports below a host's port and its slot, if there is more than the port itself.
pub(super) fn below(table: &mut Table, stages: &[PathStage], host: &Host) {
    let parts = |stage| {
        let own = |s: &&PathStage| s.stage == stage && s.side == Place::from(host.side);
        let found = stages.iter().find(own);
        found.map_or(&[][..], |s| &s.parts)
    };
    let mut reported = Vec::new();
    if let [_, lower @ ..] = parts(Stage::Port)
        && !lower.is_empty()
    {
        reported.push(format!("over {}", lower.join(", ")));
    }
    let slot = parts(Stage::Pcie);
    let route = host.facts.route.as_ref();
    let has_wire = route.is_some_and(|route| route.wires().is_some());
    if has_wire && !slot.is_empty() {
        reported.push(format!("slot {}", slot.join(", ")));
    }
    for text in reported {
        let item = Item::new(&[(Tone::Plain, &text)]).depth(1);
        table.below(item.indent(MARGIN, MARGIN.plus(2)));
    }
}

/// Writes the port of the RDMA device that carries the load at an end.
pub(super) fn rdma(table: &mut Table, model: &Model, host: &Host) {
    let direction = model.directions.first();
    let end = direction.and_then(|dir| dir.base.rdma(dir.direction, host.side));
    if let Some(end) = end {
        let text = format!("RDMA: {}", verbs::whole(end));
        let item = Item::new(&[(Tone::Plain, &text)]).depth(1);
        table.below(item.indent(MARGIN, MARGIN.plus(2)));
    }
}

/// Writes every stage, from the near program to the far one.
pub(super) fn stages(doc: &mut Document, model: &Model) {
    doc.heading("The path, near to far");
    for stage in linerate_judge::model::stages(model) {
        let side = match stage.side {
            Place::Path => "",
            side => side.name(),
        };
        let head = format!("{side:4} {:6}", stage.stage.name());
        let parts = match stage.parts.as_slice() {
            [] => "not read".to_owned(),
            parts => parts.join(", "),
        };
        let item = Item::new(&[(Tone::Plain, &parts)]).indent(2, PARTS);
        doc.item(item.head(Tone::Strong, &[(&head, 0.into())]));
        for text in carried(&stage.ceilings) {
            let item = Item::new(&[(Tone::Plain, &text)]).depth(1);
            doc.item(item.indent(PARTS, PARTS.plus(2)));
        }
    }
}

/// The ceilings of a stage in words: one text if both directions have the same ceiling.
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
