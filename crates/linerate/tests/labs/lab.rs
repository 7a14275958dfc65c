//! Runs the built program in a lab, for tests.

use std::path::Path;
use std::process::Command;

use linerate_test::{Turn, skip};
use serde_json::Value;

/// Path of the built program; in a lab it is `$PROGRAM`.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

/// Longest time of a lab, in seconds.
const PATIENCE: &str = "240";

/// The result of a command in a lab. `None`, with a message, if no lab can be built; an error if a machine that stood
/// still may explain the result, so that [`linerate_test::ask`] runs it again.
pub(crate) type Given<T> = Result<Option<T>, String>;

/// Runs `linerate lab run ARGS...` with `home` as its home directory; returns its stdout and stderr.
///
/// # Panics
/// If the lab's command fails, or if a lab is required and cannot be built.
pub(crate) fn run(_turn: &Turn, home: &Path, args: &[&str]) -> Given<[String; 2]> {
    let output = Command::new("timeout")
        .env_clear()
        .env("HOME", home)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("PROGRAM", PROGRAM)
        .args([PATIENCE, PROGRAM, "lab", "run"])
        .args(args)
        .output()
        .unwrap();
    let outputs = [output.stdout, output.stderr].map(|b| String::from_utf8(b).unwrap());
    if outputs[1].contains("cannot build the lab") {
        skip("namespaces", outputs[1].trim());
        return Ok(None);
    }
    ended(output.status.code(), outputs).map(Some)
}

/// The outputs of a lab's command by its exit code. A machine that stood still may end a measurement early (3): its
/// document shows that.
fn ended(code: Option<i32>, [out, errors]: [String; 2]) -> Result<[String; 2], String> {
    match code {
        Some(0) => Ok([out, errors]),
        Some(3) if out.contains("\"complete\": false") => Err(errors),
        _ => panic!("{code:?}: {out}{errors}"),
    }
}

/// Runs a command in a lab, and parses the document that it prints.
pub(crate) fn document(turn: &Turn, home: &Path, args: &[&str]) -> Given<Value> {
    let outputs = run(turn, home, args)?;
    Ok(outputs.map(|[out, _]| serde_json::from_str(&out).unwrap()))
}

/// Planted: commands that fail in other ways.
#[test]
fn only_a_measurement_that_ended_early_is_no_answer() {
    use linerate_test::program::{Outcome, outcome_of};

    let ended = |code, complete: &str| {
        let out = format!("{{\n  \"complete\": {complete}\n}}");
        ended(Some(code), [out, String::new()]).map(drop)
    };
    assert_eq!(ended(0, "true"), Ok(()));
    assert!(ended(3, "false").is_err());
    for (code, complete) in [(3, "true"), (1, "false"), (124, "false")] {
        let failed = outcome_of(|| drop(ended(code, complete)));
        assert_eq!(failed, Outcome::Failed, "{code}");
    }
}
