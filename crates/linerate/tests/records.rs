//! Records of real runs whose limit lies just over or just under what a cause needs, judged by the
//! program as it is now. `benches/truth/edges.sh` makes them, and says what was planted.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not take for tests"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Record, the cause that it must name first (none where it may be unknown), and the neighbour that it
/// must not name.
const EDGES: &[(&str, Option<&str>, &str)] = &[
    ("receive-window-over", Some("receive-window"), "path-rate"),
    ("receive-window-under", Some("path-rate"), "receive-window"),
    ("send-buffer-over", Some("send-buffer"), "path-rate"),
    ("send-buffer-under", Some("path-rate"), "send-buffer"),
    ("receiver-core-over", Some("receiver-core"), "path-rate"),
    ("receiver-core-under", Some("path-rate"), "receiver-core"),
    ("sender-core-over", Some("sender-core"), "path-rate"),
    ("sender-core-under", Some("path-rate"), "sender-core"),
    ("receiver-app-over", Some("receiver-app"), "path-rate"),
    // The same plan in another run, in which the buffer took all: the window never closed.
    ("receiver-app-open", Some("receiver-app"), "path-rate"),
    ("receiver-app-under", Some("path-rate"), "receiver-app"),
    ("sender-app-over", Some("sender-app"), "path-rate"),
    ("sender-app-under", Some("path-rate"), "sender-app"),
    ("pacing-over", Some("pacing"), "path-rate"),
    ("pacing-under", Some("path-rate"), "pacing"),
    ("contended-over", Some("contended"), "interrupted"),
    ("contended-under", Some("path-rate"), "contended"),
    ("interrupted-over", Some("interrupted"), "contended"),
    ("interrupted-under", None, "interrupted"),
];

fn records() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records")
}

/// Causes that are named forward, binding first.
fn named(record: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["show", "--json"])
        .arg(records().join(format!("{record}.lnr")))
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{record}: {words}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let limits = document["verdict"]["limits"].as_array().unwrap();
    let forward = limits.iter().filter(|l| l["direction"] == "forward");
    forward
        .map(|l| l["cause"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn each_names_what_bound_it_and_not_what_nearly_did() {
    for (record, first, not) in EDGES {
        let named = named(record);
        if first.is_some() {
            let got = named.first().map(String::as_str);
            assert_eq!(got, *first, "{record}: {named:?}");
        }
        assert!(!named.iter().any(|n| n == not), "{record}: {named:?}");
    }
}

#[test]
fn every_record_is_judged() {
    let mut kept: Vec<String> = std::fs::read_dir(records())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    kept.sort();
    let mut told: Vec<String> = EDGES.iter().map(|(r, ..)| format!("{r}.lnr")).collect();
    told.sort();
    assert_eq!(kept, told);
}
