//! Long round trips beside a load, by the built program in a lab: a deep queue is named and proved, and
//! where what exceeds the rate is dropped nothing is said of latency.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not take for tests"
)]

mod disturbed;
mod lab;
mod skip;

use disturbed::is_disturbed;
use serde_json::Value;

/// The result of a run through a fault, in its direction; `None` where there can be no lab.
fn verdict(fault: &str) -> Option<Value> {
    let home = tempfile::TempDir::new().unwrap();
    let lab = ["--fault", fault, "--", lab::PROGRAM, "run", "FAR", "--open"];
    let plan = ["--congestion", "cubic", "--direction", "forward"];
    let rest = ["--time", "90s", "--no-save", "--quiet", "--json"];
    let [out, _] = lab::run(home.path(), &[&lab[..], &plan, &rest].concat())?;
    Some(serde_json::from_str(&out).unwrap())
}

/// What of a verdict is about latency.
fn of_latency(result: &Value) -> Vec<&Value> {
    let limits = result["verdict"]["limits"].as_array().unwrap();
    let is_latency = |limit: &&Value| limit["metric"] == "latency";
    limits.iter().filter(is_latency).collect()
}

/// Whether the queue was proved in a run; it must be named, and no other limit of goodput than the rate.
fn is_proved(result: &Value) -> bool {
    let limits = of_latency(result);
    let [queue] = limits.as_slice() else {
        panic!("{result:#}");
    };
    let told = ["cause", "side"].map(|key| queue[key].as_str().unwrap());
    assert_eq!(told, ["latency-queue", "path"], "{result:#}");
    let first = &result["verdict"]["limits"][0];
    if first["metric"] == "goodput" {
        assert_eq!(first["cause"], "path-rate", "{result:#}");
    }
    let proved = queue["certainty"] == "proved";
    if proved {
        assert_eq!(queue["trial"]["kind"], "half-pace");
        assert!(queue["trial"]["latency"].as_f64().unwrap() < 0.5);
    }
    proved
}

#[test]
fn a_deep_queue_is_proved_by_half_the_pace_beside_what_limits_goodput() {
    // A busy machine may leave it without a proof, or stand still: then it is asked again, twice at most.
    for _ in 0..3 {
        let Some(result) = verdict("path-rate:50Mb/s,deep,forward") else {
            return;
        };
        if !is_disturbed(&result["verdict"]) && is_proved(&result) {
            return;
        }
    }
    panic!("it was not proved in any run");
}

#[test]
fn what_is_dropped_does_not_wait_and_nothing_is_said_of_it() {
    let Some(result) = verdict("police:50Mb/s,forward") else {
        return;
    };
    assert_eq!(of_latency(&result), Vec::<&Value>::new(), "{result:#}");
    let unknown = result["verdict"]["unknown"].to_string();
    assert!(!unknown.contains("round trips"), "{unknown}");
}
