//! A program that uses the CPUs of a load over a shaped path, in a lab: the path is the limit, and the program is a
//! disturbance.
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use linerate_test::{Turn, ask, has, skip, turn};
use serde_json::Value;
use tempfile::TempDir;

use crate::disturbed::is_disturbed;
use crate::lab;

/// A program that uses each CPU for 4 ms of every 10 ms, ahead of all ordinary programs: with real-time priority, else
/// with the highest nice priority. Its first line tells whether one of the two was allowed.
const TAKER: &str = r#"
import os, time
parent = os.getpid()
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    print("allowed", flush=True)
except OSError as first:
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        print("allowed", flush=True)
    except OSError as second:
        print(first, second, flush=True)
for cpu in os.sched_getaffinity(0):
    if os.fork() == 0:
        os.sched_setaffinity(0, {cpu})
        while os.getppid() == parent:
            until = time.monotonic() + 0.004
            while time.monotonic() < until:
                pass
            time.sleep(0.006)
        os._exit(0)
time.sleep(600)
"#;

/// The running [`TAKER`], until it is dropped: its child processes end with it.
struct Taker(Child);

impl Taker {
    /// `None`, with a message, if the program cannot be run.
    fn start() -> Option<Self> {
        if !has("python3") {
            return None;
        }
        let mut python = Command::new("python3");
        let python = python.args(["-c", TAKER]).stdout(Stdio::piped());
        let mut child = python.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let taker = Self(child);
        if line.trim() != "allowed" {
            let why = format!("no program may run before others here: {}", line.trim());
            skip("nice", &why);
            return None;
        }
        Some(taker)
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        // Errors are ignored, because the program may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The verdict of a run while [`TAKER`] runs: the path carries 100 Mb/s forward, and is not limited in reverse.
fn verdict(turn: &Turn) -> lab::Given<Value> {
    let home = TempDir::new().unwrap();
    let Some(_taker) = Taker::start() else {
        return Ok(None);
    };
    let lab = ["--congestion", "cubic", "--fault", "path-rate:100Mb/s,deep,forward", "--"];
    let run = [lab::PROGRAM, "run", "FAR", "--open", "--no-save", "--quiet"];
    let rest = ["--time", "40s", "--json"];
    let args = [&lab[..], &run, &rest].concat();
    let result = lab::document(turn, home.path(), &args)?;
    Ok(result.map(|mut result| {
        let mut verdict = result["verdict"].take();
        verdict["headline"] = result["headline"].take();
        verdict
    }))
}

/// Whether a list of a verdict has a cause in a direction.
fn tells(verdict: &Value, list: &str, cause: &str, direction: &str) -> bool {
    let all = verdict[list].as_array().unwrap();
    all.iter().any(|one| one["cause"] == cause && one["direction"] == direction)
}

/// Checks that the path is the headline and the program a disturbance. On a machine with other disturbances the path
/// may be unknown, which is an `Err`; a wrong headline panics.
fn path_first(verdict: &Value) -> Result<(), String> {
    let headline = &verdict["headline"];
    assert_eq!(headline["direction"], "forward", "{verdict:#}");
    let cause = headline["cause"].as_str();
    assert!(matches!(cause, None | Some("path-rate")), "{verdict:#}");
    assert!(!tells(verdict, "limits", "cpu-contention", "forward"), "{verdict:#}");
    let disturbs = tells(verdict, "disturbances", "cpu-contention", "forward");
    if cause.is_none() || !disturbs || is_disturbed(verdict) {
        return Err(format!("{cause:?}, disturbed by the program: {disturbs}"));
    }
    Ok(())
}

mod long {
    use super::*;

    #[test]
    fn a_program_that_takes_the_cpus_disturbs_and_the_path_is_the_headline() {
        let turn = turn();
        ask(&turn, || match verdict(&turn)? {
            Some(verdict) => path_first(&verdict),
            None => Ok(()),
        });
    }
}

/// A verdict about the shaped direction, made by hand.
fn planted(headline: &str, limits: &[&str], disturbances: &[&str]) -> Value {
    let list = |causes: &[&str]| {
        let causes = causes.iter();
        let all = causes.map(|c| serde_json::json!({"cause": c, "direction": "forward"}));
        all.collect::<Vec<_>>()
    };
    serde_json::json!({
        "headline": {"direction": "forward", "cause": headline},
        "limits": list(limits),
        "disturbances": list(disturbances),
    })
}

#[test]
fn a_verdict_that_does_not_name_the_program_is_no_answer() {
    let verdict = |disturbance| planted("path-rate", &["path-rate"], &[disturbance]);
    assert_eq!(path_first(&verdict("cpu-contention")), Ok(()));
    assert!(path_first(&verdict("contended")).is_err());
}

/// Planted: a verdict that names the program as a limit, beside the path.
#[test]
#[should_panic(expected = "cpu-contention")]
fn a_program_that_is_told_as_a_limit_is_refused() {
    let limits = ["path-rate", "cpu-contention"];
    let _ = path_first(&planted("path-rate", &limits, &[]));
}

/// Planted: a verdict with another cause ahead of the path.
#[test]
#[should_panic(expected = "receive-window")]
fn another_headline_is_refused() {
    let named = "receive-window";
    let _ = path_first(&planted(named, &["path-rate"], &["cpu-contention"]));
}
