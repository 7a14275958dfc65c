//! `linerate run --repeat`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use linerate::show::repeat;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::schema::fits;
use super::{linerate, measured, words};

#[test]
fn repeated_runs_are_kept_each_and_told_together() {
    let home = TempDir::new().unwrap();
    let args = ["--repeat", "2", "--json", "--expect", "goodput>=9000Gbit/s"];
    let output = measured(home.path(), &args);
    let why = words(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{why}");
    assert_eq!(why.matches("expectation failed").count(), 2, "{why}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    fits(repeat::SCHEMA, &told);
    let spread = &told["goodput_bps"]["forward"];
    assert_eq!((&told["asked"], &spread["runs"]), (&2.into(), &2.into()));
    let goodput = |run: &Value| run["result"]["directions"]["forward"]["goodput_bps"].as_u64();
    let runs = told["runs"].as_array().unwrap();
    let mut each: Vec<_> = runs.iter().map(|run| goodput(run).unwrap()).collect();
    each.sort_unstable();
    assert_eq!(
        (&spread["lowest"], &spread["highest"]),
        (&each[0].into(), &each[1].into())
    );
    assert_ne!(runs[0]["record"], runs[1]["record"]);
    for run in runs {
        let name = run["record"].as_str().unwrap();
        let show = linerate(home.path())
            .args(["show", name, "--json"])
            .output();
        let shown: Value = serde_json::from_slice(&show.unwrap().stdout).unwrap();
        assert_eq!(shown, run["result"]);
    }
}

#[test]
fn interrupted_by_ctrl_c_repeated_runs_end_and_what_was_measured_is_told() {
    let home = TempDir::new().unwrap();
    let mut child = linerate(home.path())
        .args(["run", "--time", "30s", "--no-trials", "--repeat", "3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    // Past the first step: something was measured.
    assert!(told.any(|line| line.unwrap().contains("forward, 1 stream")));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let rest: Vec<String> = told.map(Result::unwrap).collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{rest:?}");
    let text = words(&output.stdout);
    assert!(
        text.starts_with("Run 1 of 3") && text.contains("ended early"),
        "{text}"
    );
    assert!(!text.contains("Run 2"), "{text}");
}
