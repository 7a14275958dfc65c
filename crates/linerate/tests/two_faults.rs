//! Two faults at once, in a lab: the one that binds is named, then the one that would bind next; and once
//! the first is gone the second is the verdict.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not take for tests"
)]

mod disturbed;
mod lab;
mod skip;

use disturbed::is_disturbed;
use serde_json::Value;
use tempfile::TempDir;

/// A run in near whose path has these faults; `None` where there can be no lab.
fn verdict(faults: &[&str]) -> Option<Value> {
    let home = TempDir::new().unwrap();
    let mut args = vec!["--congestion", "cubic"];
    args.extend(faults.iter().flat_map(|fault| ["--fault", fault]));
    args.extend(["--", lab::PROGRAM, "run", "FAR", "--open", "--no-save"]);
    args.extend(["--direction", "forward", "--time", "40s", "--json"]);
    let [out, _] = lab::run(home.path(), &args)?;
    let result: Value = serde_json::from_str(&out).unwrap();
    Some(result["verdict"].clone())
}

/// The first cause of a list of limits of goodput.
fn first<'a>(verdict: &'a Value, list: &str) -> &'a str {
    let all = verdict[list].as_array().unwrap();
    let first = all.iter().find(|limit| limit["metric"] == "goodput");
    first.map_or("", |limit| limit["cause"].as_str().unwrap())
}

/// A verdict whose first causes in these lists are `expected`. A busy machine may leave one unknown, or be
/// disturbed: then it is asked again, twice at most; a wrong one is never forgiven.
fn agrees(faults: &[&str], expected: &[(&str, &str)]) {
    for _ in 0..3 {
        let Some(told) = verdict(faults) else {
            return;
        };
        let named = expected.iter().map(|(list, _)| first(&told, list));
        let named: Vec<&str> = named.collect();
        if is_disturbed(&told) {
            continue;
        }
        for (named, (list, cause)) in named.iter().zip(expected) {
            assert!(["", *cause].contains(named), "{list}: {told:#}");
        }
        if !named.contains(&"") {
            return;
        }
    }
    panic!("{faults:?}: unknown or disturbed three times");
}

#[test]
fn what_binds_next_is_the_verdict_once_the_first_limit_is_gone() {
    // About 50 Mb/s over 20 ms, and three times that.
    let (delay, window) = ("delay:20ms", "receive-window:far,192KiB");
    let rate = "path-rate:150Mb/s,deep,forward";
    let both = [("limits", "receive-window"), ("next", "path-rate")];
    agrees(&[delay, window, rate], &both);
    agrees(&[delay, rate], &[("limits", "path-rate")]);
}
