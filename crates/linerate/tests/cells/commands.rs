//! What causes say to type names the ports that are known.

use linerate_core::causes::{CAUSES, NoFinding};
use linerate_core::model::Model;

use super::CELLS;

/// Words that stand for a port of which nothing is known.
const PLACEHOLDERS: [&str; 5] = ["PORT", "DEVICE", "IFACE", "NIC", "DEV"];

/// All that any cause says to type, found or not.
fn commands(model: &Model) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for direction in model.directions.iter().map(|dir| dir.direction) {
        for cause in CAUSES {
            let advice = cause.advice(model, direction).into_iter();
            all.extend(advice.flat_map(|a| [(cause.id(), a.text()), (cause.id(), a.undo_text())]));
            if let Err(NoFinding::Unknown(gaps)) = cause.check(model, direction) {
                all.extend(gaps.into_iter().map(|gap| (cause.id(), gap.hint)));
            }
        }
    }
    all
}

#[test]
fn no_command_on_a_record_leaves_out_a_port_that_is_known() {
    let is_known = |model: &Model| model.hosts.iter().all(|host| host.facts.port.is_some());
    let known: Vec<_> = CELLS.iter().filter(|cell| is_known(&cell.model)).collect();
    assert!(!known.is_empty(), "no record knows its ports");
    for cell in known {
        for (cause, text) in commands(&cell.model) {
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
            let left = words.find(|word| PLACEHOLDERS.contains(word));
            assert_eq!(left, None, "{}, {cause}: {text}", cell.name);
        }
    }
}
