//! Checks that advised commands contain the names of ports that are known.

use std::collections::BTreeSet;
use std::process::Command;

use linerate_judge::causes::{CAUSES, NoFinding};
use linerate_judge::model::Model;
use linerate_plan::path::Direction;

use super::CELLS;

/// Words that are used instead of a port's name if the port is unknown.
const PLACEHOLDERS: [&str; 5] = ["PORT", "DEVICE", "IFACE", "NIC", "DEV"];

/// All advice, undo and hints of all causes for a model, whether the causes were found or not.
fn commands(model: &Model) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for direction in model.directions.iter().map(|dir| dir.direction) {
        for cause in CAUSES {
            let advice = cause.advice(model, direction).into_iter();
            all.extend(advice.flat_map(|a| [(cause.id, a.text()), (cause.id, a.undo_text())]));
            if let Err(NoFinding::Unknown(gaps)) = cause.check(model, direction) {
                all.extend(gaps.into_iter().map(|gap| (cause.id, gap.hint)));
            }
        }
    }
    all
}

pub(super) fn knows_ports(model: &Model) -> bool {
    model.hosts.iter().all(|host| host.facts.port.is_some())
}

#[test]
fn no_command_on_a_record_leaves_out_a_port_that_is_known() {
    let known: Vec<_> = CELLS.iter().filter(|cell| knows_ports(&cell.model)).collect();
    assert!(!known.is_empty(), "no record knows its ports");
    for cell in known {
        for (cause, text) in commands(&cell.model) {
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
            let left = words.find(|word| PLACEHOLDERS.contains(word));
            assert_eq!(left, None, "{}, {cause}: {text}", cell.name);
        }
    }
}

/// Commands in the advice of all causes for all cells, each with its cause.
fn steps() -> BTreeSet<(&'static str, String)> {
    let directions = |model: &Model| model.directions.iter().map(|dir| dir.direction).collect();
    let mut all = BTreeSet::new();
    for cell in CELLS.iter().filter(|cell| knows_ports(&cell.model)) {
        let directions: Vec<Direction> = directions(&cell.model);
        for (direction, cause) in
            directions.iter().flat_map(|d| CAUSES.iter().map(move |c| (*d, c)))
        {
            for advice in cause.advice(&cell.model, direction) {
                let steps = advice.steps.into_iter().chain(advice.undo);
                all.extend(steps.map(|step| (cause.id, step.command)));
            }
        }
    }
    all.retain(|(_, command)| !command.is_empty());
    all
}

#[test]
fn every_command_is_a_line_that_a_shell_takes_as_it_stands() {
    let all = steps();
    let causes: BTreeSet<_> = all.iter().map(|(cause, _)| cause).collect();
    assert!(causes.len() > 10, "{causes:?}");
    for (cause, command) in &all {
        assert!(!command.contains('\n') && command.trim() == command, "{cause}: {command}");
        // Users would have to replace a word in capitals or between angle brackets.
        let words = command.split([' ', '=', '/']);
        let left = words.filter(|word| {
            PLACEHOLDERS.contains(word) || ["N", "PID", "PEER", "RATE"].contains(word)
        });
        assert_eq!(left.count(), 0, "{cause}: {command}");
        let shell = Command::new("sh").args(["-nc", command]).output().unwrap();
        let errors = String::from_utf8_lossy(&shell.stderr);
        assert!(shell.status.success(), "{cause}: {command}\n{errors}");
    }
}
