//! Checks the advised commands as a user copies them from a terminal or from a pipe.

mod guest;
mod variants;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use linerate_facts::advice::{Advice, Step};
use linerate_facts::odd;
use linerate_judge::causes::{CAUSES, Cause};
use linerate_judge::verdict::judge;

use super::commands::knows_ports;
use super::machines::machines;
use super::{CELLS, Cell};

/// The commands of an advice, and those that undo it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Advised {
    steps: Vec<String>,
    undo: Vec<String>,
}

impl Advised {
    fn of(advice: &Advice) -> Self {
        let commands = |steps: &[Step]| {
            let all = steps.iter().map(|step| step.command.clone());
            all.filter(|command| !command.is_empty()).collect()
        };
        Self { steps: commands(&advice.steps), undo: commands(&advice.undo) }
    }

    fn commands(&self) -> impl Iterator<Item = &String> {
        self.steps.iter().chain(&self.undo)
    }
}

/// The advice of each cause, found or not, for each cell whose transport the cause is about, and of each oddity. The
/// value is the first cause or oddity with this advice.
fn all() -> BTreeMap<Advised, String> {
    let mut all = BTreeMap::new();
    let mut add = |advice: &Advice, of: String| {
        let advised = Advised::of(advice);
        // The engine `sim` exists only in builds for tests.
        let is_simulated = advised.commands().any(|c| c.contains("--engine sim"));
        if !advised.steps.is_empty() && !is_simulated {
            all.entry(advised).or_insert(of);
        }
    };
    // Models without known ports are left out: their commands have a word in capitals instead of a port.
    let variants = variants::all();
    let cells = CELLS.iter().map(|cell| &cell.model);
    for model in cells.filter(|model| knows_ports(model)).chain(&variants) {
        let directions = model.directions.iter();
        let fits = directions.flat_map(|dir| {
            let is_about = |cause: &&&Cause| dir.base.transport.has_all(cause.needs);
            let causes = CAUSES.iter().filter(is_about);
            causes.map(|cause| (dir.direction, cause))
        });
        for (direction, cause) in fits {
            for advice in cause.advice(model, direction) {
                add(&advice, cause.id.to_owned());
            }
        }
    }
    for odd in machines().iter().flat_map(odd::find) {
        add(&odd.fix, odd.id.to_owned());
    }
    all
}

/// The lines that `linerate show` prints, to a pipe or to a terminal of 80 columns.
fn printed(file: &Path, to_terminal: bool) -> BTreeSet<String> {
    let program = env!("CARGO_BIN_EXE_linerate");
    let output = if to_terminal {
        let line = format!("stty cols 80; '{program}' show '{}'", file.display());
        let script = ["-qec", &line, "/dev/null"];
        Command::new("script").args(script).env("TERM", "xterm").output()
    } else {
        Command::new(program).arg("show").arg(file).output()
    };
    let output = output.unwrap();
    assert!(output.status.success(), "{}: {output:?}", file.display());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| uncoloured(line).trim_end_matches('\r').to_owned()).collect()
}

/// A line without its colour codes, as a terminal copies it.
fn uncoloured(line: &str) -> String {
    let mut parts = line.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once('m').map_or(part, |(_, rest)| rest));
    rest.fold(first, |text, part| text + part)
}

/// The commands that the verdict on a cell advises.
fn advised(cell: &Cell) -> BTreeSet<String> {
    let verdict = judge(&cell.model);
    let limits = verdict.limits.iter().flat_map(|limit| &limit.advice);
    let disturbances = verdict.disturbances.iter().flat_map(|d| &d.advice);
    let all = limits.chain(disturbances).map(Advised::of);
    all.flat_map(|advised| advised.commands().cloned().collect::<Vec<_>>()).collect()
}

#[test]
fn a_command_is_a_line_of_its_own_in_a_terminal_and_in_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cell.lnr");
    let mut seen = BTreeSet::new();
    for cell in CELLS.iter() {
        // A command that was already seen is printed by the same code, so it is not checked again.
        let mut commands = advised(cell);
        commands.retain(|command| !seen.contains(command));
        if commands.is_empty() {
            continue;
        }
        fs::write(&file, &cell.bytes).unwrap();
        for to_terminal in [false, true] {
            let lines = printed(&file, to_terminal);
            for command in &commands {
                assert!(lines.contains(command), "{}: {command}: {lines:?}", cell.name);
            }
        }
        seen.extend(commands);
    }
    assert!(seen.len() > 20, "{seen:?}");
    assert!(seen.iter().any(|command| command.len() > 80), "{seen:?}");
}

#[test]
fn an_interactive_shell_finds_no_history_in_a_command() {
    for command in all().keys().flat_map(Advised::commands) {
        assert!(!command.contains('!') && !command.contains('\t'), "{command}");
    }
}
