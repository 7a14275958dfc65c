//! Long round trips beside a load, by the built program in a lab: a deep queue is named and proved, and
//! where what exceeds the rate is dropped nothing is said of latency.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not take for tests"
)]

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// One lab at a time: what another one sends would take the CPUs that round trips need.
static TURN: Mutex<()> = Mutex::new(());

/// Most seconds a run may take.
const PATIENCE: &str = "240";

/// The result of a run through a fault, in its direction; `None` where there can be no lab.
fn verdict(fault: &str) -> Option<Value> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let home = tempfile::TempDir::new().unwrap();
    let program = env!("CARGO_BIN_EXE_linerate");
    let output = Command::new("timeout")
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .args([PATIENCE, program, "lab", "run", "--fault", fault, "--"])
        .args([program, "run", "FAR", "--open", "--congestion", "cubic"])
        .args(["--direction", "forward", "--time", "90s"])
        .args(["--no-save", "--quiet", "--json"])
        .output()
        .unwrap();
    let [out, errors] = [output.stdout, output.stderr].map(|b| String::from_utf8(b).unwrap());
    if errors.contains("cannot build the lab") {
        let wanted = std::env::var("LINERATE_REQUIRE").unwrap_or_default();
        assert!(!wanted.contains("namespaces"), "{errors}");
        println!("SKIPPED: no lab here: {}", errors.trim());
        return None;
    }
    assert!(output.status.success(), "{}: {out}{errors}", output.status);
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
    // A busy machine may leave it without a proof: then it is asked again, twice at most.
    for _ in 0..3 {
        let Some(result) = verdict("path-rate:50Mb/s,deep,forward") else {
            return;
        };
        if is_proved(&result) {
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
