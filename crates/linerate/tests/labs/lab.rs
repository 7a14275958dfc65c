//! The built program in a lab, as tests ask for it.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use linerate_test::skip;

/// The built program; `$PROGRAM` in a lab.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

/// Most seconds that a lab may stand.
const PATIENCE: &str = "240";

/// One lab at a time: what another one sends would take the CPUs that this one's needs.
static TURN: Mutex<()> = Mutex::new(());

/// Runs `linerate lab run ARGS...` with a home directory of its own; what it wrote to its two outputs.
/// `None` where there can be no lab, which is said loudly.
///
/// # Panics
/// Where the lab's command fails, and where a lab is required and not to be had.
pub(crate) fn run(home: &Path, args: &[&str]) -> Option<[String; 2]> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new("timeout")
        .env_clear()
        .env("HOME", home)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("PROGRAM", PROGRAM)
        .args([PATIENCE, PROGRAM, "lab", "run"])
        .args(args)
        .output()
        .unwrap();
    let [out, errors] = [output.stdout, output.stderr].map(|b| String::from_utf8(b).unwrap());
    if errors.contains("cannot build the lab") {
        skip("namespaces", errors.trim());
        return None;
    }
    assert!(output.status.success(), "{}: {out}{errors}", output.status);
    Some([out, errors])
}
